//! Command lines that people have in their units, and those that make no sense.

use super::*;
use crate::listen_argument::ListenPlace;
use crate::storage_argument::StorageKind;

fn parse(typed: &str) -> Result<CommandLine, Misused> {
    CommandLine::parse(typed.split(' ').filter(|word| !word.is_empty()).map(|word| word.replace("''", "")).collect())
}

#[test]
fn the_packaged_unit_is_understood() {
    let line = parse(
        "-j unix,user=vcache -F -a :6081 -T localhost:6082 -f /etc/varnish/default.vcl -S /etc/varnish/secret -s malloc,256m",
    )
    .unwrap();
    assert_eq!(line.task, Task::Serve);
    assert!(line.is_foreground && !line.is_debug);
    assert_eq!(line.jail.as_deref(), Some("unix,user=vcache"));
    assert_eq!(line.listen[0].place, ListenPlace::Port { host: None, port: 6081 });
    assert_eq!(line.management, [Some((Some("localhost".to_owned()), 6082))]);
    assert_eq!(line.vcl_files, ["/etc/varnish/default.vcl"]);
    assert_eq!(line.secret.as_deref(), Some("/etc/varnish/secret"));
    assert_eq!(line.storages[0].kind, StorageKind::Memory { size: Some("256m".to_owned()) });
    assert!(line.notes.is_empty());
}

#[test]
fn the_drivers_line_is_understood() {
    let line = parse(
        "-d -n /tmp/v1 -i v1 -l 2m -p auto_restart=off -p debug=+vtc_mode -a 127.0.0.1:0 -M 127.0.0.1\u{a0}7000 -P /tmp/pid",
    );
    // A blank stands between the two, which a word can hold.
    let words = ["-d", "-l", "2m", "-p", "auto_restart=off", "-M", "127.0.0.1 7000", "-P/tmp/pid"].map(str::to_owned);
    assert!(line.is_err());
    let line = CommandLine::parse(words.to_vec()).unwrap();
    assert_eq!(line.callers, [(Some("127.0.0.1".to_owned()), 7000)]);
    assert_eq!(line.parameters, [("vsl_space".into(), "2m".into()), ("auto_restart".into(), "off".into())]);
    assert_eq!(line.pid_file.as_deref(), Some("/tmp/pid"));
}

#[test]
fn letters_are_read_as_getopt_reads_them() {
    assert_eq!(parse("-FTnone -b127.0.0.1:80").unwrap().management, [None]);
    assert_eq!(parse("-F -f '' -t 60 -r a,b").unwrap().read_only, ["a", "b"]);
    assert_eq!(parse("-V").unwrap().task, Task::Version);
    assert_eq!(parse("-x builtin").unwrap().task, Task::Document("builtin".to_owned()));
    assert_eq!(parse("-b none -h classic,9 -W epoll").unwrap().notes.len(), 2);
    assert_eq!(parse("-b none --admin=off --log -").unwrap().log.as_deref(), Some("-"));
}

#[test]
fn what_makes_no_sense_is_said() {
    let check = |typed: &str, part: &str, shows_usage: bool| {
        let why = parse(typed).unwrap_err();
        assert!(why.sentence.contains(part) && why.shows_usage == shows_usage, "{typed}: {why:?}");
    };
    check("", "Neither -b nor -f", false);
    check("-d -F", "Only one of -d or -F", false);
    check("-b a -f b", "Only one of -b or -f", false);
    check("-b a -b b", "Only one -b", false);
    check("-C", "-C needs", false);
    check("-C -F -b a", "-C cannot", false);
    check("-Q", "invalid option -- 'Q'", true);
    check("-:", "invalid option", true);
    check("--colour", "invalid option --colour", true);
    check("-i", "requires an argument -- 'i'", true);
    check("-b none extra", "Too many arguments (extra", false);
    check("-b none -- extra", "Too many arguments (extra", false);
    check("-b none -a a=:1 -a a=:2", "already used", false);
    check("-b none -s a=malloc -s a=malloc", "already defined", false);
    check("-b none -p foo", "NAME=VALUE", false);
    check("-b none -T [::1", "-T argument", false);
}
