//! `larder config`: what may stand in a larder.toml, and what holds when it is read.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use crate::bounded_file;
use crate::config::{self, ConfigError, Shown};
use crate::flag_settings;
use crate::flags::{ConfigCommand, ServeFlags, ShowFlags};
use crate::limits::CONFIG_BYTES_MAX;
use crate::routes_as_vcl;
use crate::running_config;

/// A closed pipe must not end it with a panic.
pub fn config(command: &ConfigCommand) -> ExitCode {
    let text = match command {
        ConfigCommand::Show(flags) => match shown(flags) {
            Ok(text) => text,
            Err(error) => {
                let _ = write!(std::io::stderr(), "{}", error.show(std::io::stderr().is_terminal()));
                return ExitCode::FAILURE;
            }
        },
        ConfigCommand::Running(flags) => return running_config::show(flags),
        ConfigCommand::Schema => format!("{:#}\n", config::schema()),
        ConfigCommand::Sample => config::sample(),
        ConfigCommand::Preset { name } => config::presets::text_of(name).unwrap_or_default().to_owned(),
        ConfigCommand::Reference => config::reference(),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// What holds with these flags, for others than their operator.
pub fn without_secrets(flags: &ServeFlags) -> Result<String, ConfigError> {
    shown(&ShowFlags { changed: false, secrets: false, as_vcl: false, serve: flags.clone() })
}

/// What holds with these flags.
fn shown(flags: &ShowFlags) -> Result<String, ConfigError> {
    let plan = flags.serve.plan()?;
    if let Some(vcl) = plan.vcl_file.as_ref().filter(|_| flags.as_vcl) {
        let why = format!("error: the VCL {} decides already, so nothing is to be printed as one", vcl.display());
        return Err(ConfigError::Unreadable(why));
    }
    let (name, text) = match &flags.serve.config {
        None => (String::new(), String::new()),
        Some(file) => {
            let name = file.display().to_string();
            let wrong = |why: String| ConfigError::Unreadable(format!("{name}: error: {why}"));
            let text = bounded_file::read_text(file, CONFIG_BYTES_MAX).map_err(wrong)?;
            (name, text)
        }
    };
    if flags.as_vcl {
        return Ok(routes_as_vcl::print(&plan, if name.is_empty() { "these flags" } else { &name }));
    }
    let shown = Shown {
        name: &name,
        text: &text,
        flags: &flag_settings::of(&flags.serve),
        limits: &plan.settings.limits,
        has_program: plan.vcl_file.is_some(),
        accelerates: plan.accelerates_something(),
        listens_by_default: flag_settings::default_address(),
        changed_only: flags.changed,
        with_secrets: flags.secrets,
    };
    let head = match name.is_empty() {
        true => String::new(),
        false => format!("# Relative paths begin where those of {name} do.\n\n"),
    };
    Ok(head + &shown.draw())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::Parser;

    use super::*;
    use crate::flags::{Command, Flags};
    use crate::plan::Plan;

    fn flags(words: &[&str]) -> ShowFlags {
        let typed = ["larder", "config", "show"].iter().chain(words);
        match Flags::try_parse_from(typed).unwrap().command {
            Command::Config { command: ConfigCommand::Show(flags) } => *flags,
            other => panic!("{other:?}"),
        }
    }

    /// All that a plan says, but for what it says only to its operator.
    fn told(plan: Plan) -> String {
        format!(
            "{:?}",
            Plan {
                workers: Some(plan.workers_count()),
                warnings: vec![],
                of_programs: vec![],
                files_read: vec![],
                asks_for_connections: false,
                ..plan
            }
        )
    }

    /// What is shown is read again, and says the same; and so does what differs from the defaults alone.
    fn check(words: &[&str], expect: &[&str]) {
        let flags = flags(words);
        let plan = told(flags.serve.plan().unwrap_or_else(|error| panic!("{words:?}: {}", error.show(false))));
        let all = shown(&flags).unwrap_or_else(|error| panic!("{}", error.show(false)));
        let changed = shown(&ShowFlags { changed: true, ..flags }).unwrap_or_default();
        for text in [&all, &changed] {
            let again = config::read(text).unwrap_or_else(|complaints| panic!("{words:?}: {complaints:?}\n{text}"));
            assert_eq!(told(again), plan, "{words:?}\n{text}");
        }
        for part in expect {
            assert!(all.contains(part), "{words:?} does not show {part}\n{all}");
        }
        assert!(!changed.contains("# default"), "{changed}");
    }

    fn file(name: &str, text: &str) -> PathBuf {
        let file = std::env::temp_dir().join(format!("larder-show-{}-{name}", std::process::id()));
        std::fs::write(&file, text).unwrap();
        file
    }

    #[test]
    fn what_flags_say_is_shown_as_the_keys_that_they_stand_for() {
        let made = rcgen::generate_simple_self_signed(vec!["a.test".to_owned()]).unwrap();
        let both = file("both.pem", &format!("{}{}", made.cert.pem(), made.signing_key.serialize_pem()));
        let vcl = file("a.vcl", "vcl 4.1; backend default { .host = \"127.0.0.1\"; }");
        let (both, vcl) = (both.to_str().unwrap(), vcl.to_str().unwrap());
        check(&[], &["address = \"127.0.0.1:8080\"  # default", "idle_timeout = \"60s\""]);
        check(
            &["--origin", "http://a:1", "--origin", "unix:/x", "--memory", "1GiB", "--workers", "2"],
            &["[origin.origin]", "# --origin", "size = \"1GiB\"", "# --memory", "# --workers"],
        );
        check(&["--origin", "http://a", "--listen", "127.0.0.1:0", "--h2c", "--forward", "*:3128"], &["h2c = true"]);
        check(&["--origin", "http://a", "--forward", "127.0.0.1:3128"], &["# --forward", "127.0.0.1:8080"]);
        check(&["--forward", "127.0.0.1:3128"], &["mode = \"forward\""]);
        check(&["--root", "/srv/www", "--admin", "off", "--no-compress"], &["root = \"/srv/www\"", "# --no-compress"]);
        check(&["--root", "/srv", "--disk", "/x/y:1GiB", "--disk", "/z:20MiB"], &["[[disk]]", "size = \"20MiB\""]);
        check(&["--root", "/srv", "--log", "/x.log", "--log-format", "json"], &["# --log\n", "# --log-format"]);
        check(&["--root", "/srv", "--log", "-", "--server-name", "edge"], &["path = \"-\""]);
        check(&["--root", "/srv", "--admin", "127.0.0.1:9180"], &["# --admin"]);
        check(
            &["--root", "/srv", "--tls", "*:443", "--cert", both, "--redirect-http", "*:80", "--hsts", "max-age=9"],
            &["mode = \"redirect\"", "# --tls", "# --hsts"],
        );
        check(
            &["--root", "/srv", "--tls", "*:443", "--cert", both, "--key", both, "--tls", "*:444"],
            &[&format!(
                "address = \"{}:444\"",
                if crate::addresses::every_address().is_ipv6() { "[::]" } else { "0.0.0.0" }
            )],
        );
        let acme = ["--acme-domain", "a.test", "--acme-agree-terms", "--acme-email", "a@a.test", "--acme-folder", "/f"];
        check(&[&["--root", "/srv", "--tls", "*:443"], &acme[..]].concat(), &["# --acme-…", "terms_agreed = true"]);
        check(
            &["--vcl", vcl, "--vcl-path", "/v", "-p", "default_ttl=1h", "-p", "timeout_idle=5"],
            &["# --vcl\n", "idle_timeout = \"5s\"", "# parameter", "default_ttl = \"1h\""],
        );
        check(&["--vcl", vcl, "-p", "vcl_path=/a:/b", "-p", "connect_timeout=9"], &["vcl_dir = \"/a:/b\""]);
    }

    #[test]
    fn secrets_are_shown_to_who_asks_for_them() {
        let text = "[origin.a]\nurls = \"http://a\"\n[admin]\ntoken = \"0123456789abcdef\"\n[traces]\n\
                    endpoint = \"http://127.0.0.1:4318\"\nheaders = { Authorization = \"Bearer of-the-collector\" }\n";
        let path = file("secrets.toml", text);
        let path = path.to_str().unwrap();
        let all = shown(&flags(&["--config", path])).unwrap();
        assert!(all.contains("token = \"(secret)\"") && all.contains("secrets.toml:4\n"), "{all}");
        assert!(!all.contains("0123456789abcdef") && !all.contains("of-the-collector"), "{all}");
        assert!(config::read(&all).is_err(), "nobody starts larder with that token");
        let words = ["--config", path, "--secrets"];
        check(&words, &["token = \"0123456789abcdef\"", "Bearer of-the-collector"]);
    }

    #[test]
    fn what_a_file_says_is_shown_with_its_lines_and_flags_over_it() {
        let sample = file("sample.toml", &config::sample());
        check(&["--config", sample.to_str().unwrap()], &["sample.toml:"]);
        let text = "workers = 3\n[origin.\"a b\"]\nurls = \"http://a\"\n[[route]]\nmemcached = \"m\"\nmode = \"nginx-memc\"\n\
                    [[route]]\nhost = \"x.test\"\nroot = \"/r\"\ntypes = { \"a-b\" = \"text/plain\" }\n\
                    [[route]]\npath = \"/s\"\nstub_status = true\n[[route]]\npath = \"/o\"\norigin = \"a b\"\n\
                    [policy]\nthread_pools = 3\nfirst_byte_timeout = 7\nkeep = 0\n[limits]\nidle_timeout = \"1m\"\n\
                    [[forward.parent]]\naddress = \"p:1\"\n[resolver]\nhosts = { \"a.b\" = \"192.0.2.1\" }\n[disk]\n";
        let text = text.replace("keep = 0\n", "keep = \"0s\"\n").replace("[disk]\n", "");
        let path = file("mixed.toml", &text);
        let path = path.to_str().unwrap();
        check(
            &["--config", path],
            &[
                "workers = 3",
                "mixed.toml:1\n",
                "[origin.\"a b\"]",
                "# commands = [\"get\"]",
                "first_byte_timeout = \"7s\"",
                "mixed.toml:18\n",
                "[[forward.parent]]",
            ],
        );
        check(&["--config", path, "--workers", "1", "--listen", "127.0.0.1:0"], &["workers = 1", "# --workers"]);
        check(&["--config", path, "--root", "/srv"], &["root = \"/srv\"", "# --root"]);
        let changed = shown(&ShowFlags { changed: true, ..flags(&["--config", path]) }).unwrap_or_default();
        assert!(!changed.contains("\nidle_timeout"), "a minute is the default\n{changed}");
        let vcl = file("b.vcl", "vcl 4.1; backend default { .host = \"127.0.0.1\"; }");
        // What holds for all routes is taken back by no default of one.
        let all = "[origin.a]\nurls = \"http://a\"\n[policy]\ndeny = \"10.0.0.0/8\"\ncache = false\nrequest_id = true\nvary_by = \"device\"\n\
                   security_headers = true\nmaintenance = true\n[[route]]\n[[route]]\nhost = \"x.test\"\npreset = \"spa\"\n\
                   [[route]]\nhost = \"y.test\"\nsecurity_headers = false\nrequest_id = false\nmaintenance = false\n";
        let path = file("policy.toml", all);
        check(&["--config", path.to_str().unwrap()], &["deny = \"10.0.0.0/8\"", "maintenance = false"]);
        let path = file("vcl.toml", &format!("[policy]\nvcl = {vcl:?}\ndefault_ttl = 5\n"));
        check(&["--config", path.to_str().unwrap()], &["default_ttl = 5", "max_restarts = 4"]);
        assert!(
            shown(&ShowFlags {
                changed: false,
                as_vcl: false,
                secrets: false,
                serve: ServeFlags { config: Some("/nowhere".into()), ..flags(&[]).serve }
            })
            .is_err()
        );
    }
}
