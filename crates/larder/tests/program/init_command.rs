//! `larder init` by the real program: what it writes is taken by `larder check` and served by `larder serve`; it asks at a terminal and
//! nowhere else, and writes over nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::peer_process::{Running, free_address, wait_for, wait_until_it_listens};
use crate::subject::get;

const PROGRAM: &str = env!("CARGO_BIN_EXE_larder");

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("init-{name}"));
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(folder.join("www")).expect("the target folder can be written");
    std::fs::write(folder.join("www/index.html"), "a page of the folder").expect("the target folder can be written");
    folder
}

fn larder(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(words).current_dir(folder).stdin(Stdio::null()).output().expect("larder can be started")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stderr.as_slice(), output.stdout.as_slice()].concat()).into_owned()
}

/// It is good, and a page comes from where it listens.
fn is_served(folder: &Path, address: std::net::SocketAddr, expect: &str) {
    let checked = larder(folder, &["check", "larder.toml"]);
    let only_warns = !said(&checked).contains("error");
    assert!(checked.status.success() && only_warns, "{}", said(&checked));
    let mut command = Command::new(PROGRAM);
    command
        .args(["serve", "--no-supervisor", "--config", "larder.toml", "--admin", "off"])
        .current_dir(folder)
        .stderr(Stdio::null());
    let _running = Running(command.spawn().expect("larder can be started"));
    wait_until_it_listens(address);
    let answer = get(address, "/").expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(expect), "{answer}");
}

/// Its pages have paths of their own, and no file lies there.
#[test]
fn an_application_of_the_browser_starts_at_every_path() {
    let (folder, address) = (folder("spa"), free_address());
    let written = larder(&folder, &["init", "--root", "www", "--preset", "spa", "--listen", &address.to_string()]);
    assert!(written.status.success(), "{}", said(&written));
    let mut command = Command::new(PROGRAM);
    command
        .args(["serve", "--no-supervisor", "--config", "larder.toml", "--admin", "off"])
        .current_dir(&folder)
        .stderr(Stdio::null());
    let _running = Running(command.spawn().expect("larder can be started"));
    wait_until_it_listens(address);
    let answer = get(address, "/some/deep/link").expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("a page of the folder"), "{answer}");
}

#[test]
fn what_flags_ask_for_is_written_checked_and_served() {
    let folder = folder("flags");
    let (files, front) = (free_address(), free_address());
    let written = larder(&folder, &["init", "--root", "www", "--listen", &files.to_string()]);
    assert!(written.status.success(), "{}", said(&written));
    assert!(said(&written).contains("larder serve --config larder.toml runs it"), "{}", said(&written));
    let text = std::fs::read_to_string(folder.join("larder.toml")).expect("it was written");
    assert!(text.lines().count() < 40 && text.contains("# Where larder listens"), "{text}");
    is_served(&folder, files, "a page of the folder");
    // Another one stands in front of it.
    let behind = Command::new(PROGRAM)
        .args(["serve", "--no-supervisor", "--config", "larder.toml", "--admin", "off"])
        .current_dir(&folder)
        .stderr(Stdio::null())
        .spawn();
    let _behind = Running(behind.expect("larder can be started"));
    wait_until_it_listens(files);
    let origin = format!("http://{files}");
    let words = ["init", "--origin", &origin, "--listen", &front.to_string()];
    let refused = larder(&folder, &words);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("larder.toml is there already: --force writes over it"), "{}", said(&refused));
    assert_eq!(std::fs::read_to_string(folder.join("larder.toml")).expect("it is there"), text, "nothing was written");
    assert!(larder(&folder, &[&words[..], &["--force"]].concat()).status.success());
    is_served(&folder, front, "a page of the folder");
}

/// The commands of the first hour act with what `init` has written, for whoever may read that.
#[test]
fn what_is_written_has_the_token_of_its_commands() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder("token");
    let (front, admin) = (free_address(), free_address().to_string());
    std::fs::write(folder.join("larder.toml"), "one for everybody").expect("the target folder can be written");
    let words = ["init", "--root", "www", "--listen", &front.to_string(), "--force"];
    let written = larder(&folder, &words);
    assert!(written.status.success() && said(&written).contains("for its owner alone"), "{}", said(&written));
    let rights = std::fs::metadata(folder.join("larder.toml")).expect("it was written").permissions().mode();
    assert_eq!(rights & 0o777, 0o600);
    let mut command = Command::new(PROGRAM);
    let serve = ["serve", "--no-supervisor", "--config", "larder.toml", "--admin", &admin];
    let _running = Running(command.args(serve).current_dir(&folder).stderr(Stdio::null()).spawn().expect("it starts"));
    wait_until_it_listens(front);
    wait_until_it_listens(admin.parse().expect("an address"));
    let url = format!("http://{front}/");
    for command in ["purge", "explain"] {
        let refused = larder(&folder, &[command, &url, "--admin", &admin]);
        assert!(!refused.status.success(), "{command}");
        assert!(said(&refused).contains("--config larder.toml has it read there"), "{}", said(&refused));
        let done = larder(&folder, &[command, &url, "--admin", &admin, "--config", "larder.toml"]);
        assert!(done.status.success(), "{command}: {}", said(&done));
    }
    // In the folder of a config nobody has to name it.
    let by = folder.join("by");
    std::fs::create_dir_all(&by).expect("the target folder can be written");
    let text = std::fs::read_to_string(folder.join("larder.toml")).expect("it was written");
    let text = text.replacen("[admin]\n", &format!("[admin]\naddress = \"{admin}\"\n"), 1);
    std::fs::write(by.join("larder.toml"), text).expect("the target folder can be written");
    let done = larder(&by, &["purge", &url]);
    assert!(done.status.success(), "{}", said(&done));
    assert_eq!(said(&done).matches("larder.toml says whom to ask").count(), 1, "{}", said(&done));
    let gone = larder(&by, &["reload", "--config", "gone.toml"]);
    assert!(!gone.status.success() && said(&gone).contains("goes on with the config that it has"), "{}", said(&gone));
}

#[test]
fn what_is_typed_as_for_other_programs_is_answered_with_the_way_here() {
    let folder = folder("hints");
    for (words, hint) in
        [(&["flush"][..], "larder purge --all"), (&["serve", "--no-supervisor", "larder.toml"], "--config larder.toml")]
    {
        let refused = larder(&folder, words);
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        assert!(said(&refused).contains(hint), "{}", said(&refused));
    }
}

/// A pipe, here, which stands for a device of everybody's.
#[test]
fn rights_of_what_is_no_file_stay() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder("pipe");
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").args(["-m", "666"]).arg(&pipe).status().expect("mkfifo is there").success());
    let mut reads = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().expect("cat is there");
    let written = larder(&folder, &["init", "--root", "www", "-o", "pipe", "--force"]);
    assert!(written.status.success(), "{}", said(&written));
    assert_eq!(std::fs::metadata(&pipe).expect("it is there").permissions().mode() & 0o777, 0o666);
    assert!(reads.wait().expect("it ends").success());
}

/// Words that people append to the file belong to the site.
#[test]
fn what_is_appended_is_a_word_of_the_route() {
    let folder = folder("appended");
    let written = larder(&folder, &["init", "--root", "www", "--listen", "127.0.0.1:0", "--host", "localhost"]);
    assert!(written.status.success() && !said(&written).contains("warning"), "{}", said(&written));
    let text = std::fs::read_to_string(folder.join("larder.toml")).expect("it was written");
    assert!(text.contains("host = [\"localhost\"]") && text.contains("#error_pages = { 404"), "{text}");
    assert!(text.contains("#cache_control = ") && text.contains("[log]\npath = \"-\""), "{text}");
    std::fs::write(folder.join("larder.toml"), text + "closed_paths = ['/secret']\n").expect("it can be written");
    let checked = larder(&folder, &["check", "--file-only", "larder.toml"]);
    assert!(checked.status.success(), "{}", said(&checked));
    std::fs::write(folder.join("www/404.html"), "not here").expect("the folder can be written");
    assert!(larder(&folder, &["init", "--root", "www", "--force"]).status.success());
    let text = std::fs::read_to_string(folder.join("larder.toml")).expect("it was written");
    assert!(text.contains("\nerror_pages = { 404 = \"/404.html\" }"), "{text}");
}

/// What is written where files are shown, and what browsers would refuse.
#[test]
fn what_is_unwise_is_said_when_it_is_written() {
    let folder = folder("unwise");
    let written = larder(&folder, &["init", "--root", ".", "--listen", "127.0.0.1:0"]);
    let told = said(&written);
    assert!(written.status.success() && told.contains("warning: larder.toml lies beneath the root "), "{told}");
    assert!(told.contains("such as /etc/larder"), "{told}");
    let made = rcgen::generate_simple_self_signed(vec!["a.test".to_owned()]).expect("a certificate");
    let both = format!("{}{}", made.cert.pem(), made.signing_key.serialize_pem());
    std::fs::write(folder.join("a.pem"), both).expect("the folder can be written");
    let words = ["init", "--root", "www", "--cert", "a.pem", "--host", "a.test,www.a.test", "-o", "other.toml"];
    let told = said(&larder(&folder, &words));
    assert!(told.contains("no certificate is for www.a.test") && !told.contains("is for a.test,"), "{told}");
}

#[test]
fn nobody_is_asked_where_there_is_no_terminal() {
    let folder = folder("silent");
    let refused = larder(&folder, &["init"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("--origin URL or --root DIR"), "{}", said(&refused));
    let refused = larder(&folder, &["init", "--root", "www", "--cert", "/nowhere/a.pem"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("nothing is written") && said(&refused).contains("/nowhere/a.pem: No such file"));
    assert!(!folder.join("larder.toml").exists());
    let shown = larder(&folder, &["init", "--root", "www", "-o", "-"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("[[route]]\nroot = "), "{}", said(&shown));
}

#[test]
fn a_wordpress_is_a_folder_php_fpm_and_a_preset() {
    let folder = folder("wordpress");
    std::fs::write(folder.join("www/index.php"), "<?php").expect("the folder can be written");
    let address = free_address();
    // Who has an index.php is asked for php-fpm, and what it is.
    let lines = format!("www\nunix:/nowhere/php.sock\nwordpress\n\n{address}\n");
    std::fs::write(folder.join("answers"), lines).expect("it can be written");
    let script = format!("script -qec '{PROGRAM} init -o asked.toml' /dev/null < answers");
    let asked = Command::new("sh").args(["-c", &script]).current_dir(&folder).output().expect("sh is there");
    assert!(asked.status.success(), "{}", said(&asked));
    let flags = ["--root", "www", "--fastcgi", "unix:/nowhere/php.sock", "--preset", "wordpress"];
    let listen = ["--listen", &address.to_string()];
    assert!(larder(&folder, &[&["init"], &flags[..], &listen[..]].concat()).status.success());
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect("it was written");
    let but_its_token =
        |name: &str| text(name).lines().filter(|line| !line.starts_with("token = ")).collect::<String>();
    assert_eq!(but_its_token("asked.toml").replace("asked.toml", "larder.toml"), but_its_token("larder.toml"));
    let token = |name: &str| text(name).lines().find(|line| line.starts_with("token = ")).map(str::to_owned);
    assert!(token("asked.toml").is_some() && token("asked.toml") != token("larder.toml"));
    let checked = larder(&folder, &["check", "larder.toml"]);
    let warned = "warning: origin.php.fastcgi: there is no socket at unix:/nowhere/php.sock";
    assert!(checked.status.success() && said(&checked).contains(warned), "{}", said(&checked));
    // A line tells of the site, and none of each path that the preset speaks of.
    let told = folder.join("told");
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--no-supervisor", "--config", "larder.toml", "--admin", "off"]).current_dir(&folder);
    let stderr = std::fs::File::create(&told).expect("the folder can be written");
    let running = Running(command.stderr(stderr).spawn().expect("larder can be started"));
    let lines = || std::fs::read_to_string(&told).expect("it was written");
    wait_for("larder has said what it serves", || lines().contains("larder: version"));
    drop(running);
    let lines = lines();
    let of_site = lines.lines().filter(|line| line.contains("php")).collect::<Vec<_>>();
    assert!(of_site.len() == 1 && of_site[0].contains("whose scripts run in php (FastCGI at unix:/"), "{lines}");
    assert!(!lines.contains("wp-"), "{lines}");
    // Without php-fpm no script is shown, and who takes that line out is told.
    let files = larder(&folder, &["init", "--root", "www", "--listen", &address.to_string(), "-o", "files.toml"]);
    assert!(files.status.success() && text("files.toml").contains("closed_paths = ['[.]php']"), "{}", said(&files));
    let shown_as_it_is = "has an index.php, which is neither run nor shown";
    assert!(!said(&larder(&folder, &["check", "files.toml"])).contains(shown_as_it_is));
    std::fs::write(folder.join("open.toml"), text("files.toml").replace("closed_paths", "#"))
        .expect("it can be written");
    let open = larder(&folder, &["check", "open.toml"]);
    assert!(open.status.success() && said(&open).contains(shown_as_it_is), "{}", said(&open));
    let refused = larder(&folder, &["init", "--origin", "http://a", "--fastcgi", "unix:/a", "-o", "-"]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
}

#[test]
fn names_and_an_email_address_order_certificates() {
    let folder = folder("acme");
    let words = [
        "init",
        "--origin",
        "http://127.0.0.1:1",
        "--host",
        "a.test",
        "--host",
        "www.a.test",
        "--acme-email",
        "me@a.test",
    ];
    let written = larder(&folder, &words);
    assert!(written.status.success(), "{}", said(&written));
    let checked = larder(&folder, &["check", "--file-only", "larder.toml"]);
    assert!(checked.status.success(), "{}", said(&checked));
    let shown = larder(&folder, &["config", "show", "--config", "larder.toml", "--changed"]);
    for part in
        ["acme = [\"a.test\", \"www.a.test\"]", "mode = \"redirect\"", "email = \"me@a.test\"", "# larder.toml:"]
    {
        assert!(said(&shown).contains(part), "{part}: {}", said(&shown));
    }
}

/// `script` gives it a terminal.
#[test]
fn three_questions_are_asked_at_a_terminal() {
    let folder = folder("asked");
    let address = free_address();
    std::fs::write(folder.join("answers"), format!("nowhere at all\nwww\n\n\n{address}\n")).expect("it can be written");
    let script = format!("script -qec '{PROGRAM} init' /dev/null < answers");
    let output = Command::new("sh").args(["-c", &script]).current_dir(&folder).output().expect("sh is there");
    for part in
        ["1. What is behind larder?", "the host or the port is not valid", "2. Which host names", "3. Where does it"]
    {
        assert!(said(&output).contains(part), "{part}: {}", said(&output));
    }
    assert!(output.status.success(), "{}", said(&output));
    is_served(&folder, address, "a page of the folder");
}
