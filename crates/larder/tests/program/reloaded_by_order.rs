//! `larder reload` and `POST /reload`: what is new is told, what is broken is refused with its line, and both are seen later.

use serde_json::Value;

use crate::purging_larder::{PurgingLarder, exchange};

fn metric(larder: &PurgingLarder, series: &str) -> String {
    let page = exchange(larder.admin, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series}")).to_owned()
}

fn last(larder: &PurgingLarder) -> Value {
    larder.order("GET /status", "").1["reloads"].clone()
}

#[test]
fn a_reload_says_what_is_new_and_a_refused_one_why() {
    let larder = PurgingLarder::start("reloaded", false);
    assert_eq!((last(&larder)["taken"].as_u64(), last(&larder)["last"].is_null()), (Some(0), true));
    assert_eq!(larder.said(&["reload"]), "reloaded: nothing that larder.toml says is new\n");
    larder.rewrite_config(|text| {
        text + "ttl = \"1m\"\n[[route]]\npath = \"/new\"\nrespond = { status = 200, body = \"new\" }\n"
    });
    let said = larder.said(&["reload"]);
    assert!(said.starts_with("reloaded: 2 things are new\n"), "{said}");
    assert!(said.contains("  [[route]] any host and /\n  [[route]] any host and /new is new\n"), "{said}");
    assert_eq!(larder.ask("/new", &[]), (200, "new".to_owned()));

    larder.rewrite_config(|text| text.replace("token = \"", "token = \"short\"\n# \""));
    let output = larder.command(&["reload"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.starts_with("larder: error: not reloaded, the old config stays:\n")
            && errors.contains("larder.toml:5:9: error: `short`"),
        "{errors}"
    );
    assert_eq!(larder.ask("/new", &[]), (200, "new".to_owned()), "the old one stays");
    let (status, refused) = larder.order("POST /reload", "");
    assert_eq!((status, refused["outcome"].as_str()), (422, Some("refused")), "{refused}");

    let seen = last(&larder);
    assert_eq!((seen["taken"].as_u64(), seen["failures"].as_u64()), (Some(2), Some(2)));
    let (outcome, error) = (seen["last"]["outcome"].as_str(), seen["last"]["error"].as_str().unwrap_or_default());
    assert!(outcome == Some("refused") && error.ends_with("larder.toml:5:9"), "{seen}");
    assert!(seen["last"]["at"].as_str().is_some_and(|at| at.ends_with("GMT")), "{seen}");
    assert_eq!(metric(&larder, "larder_reloads_total{outcome=\"refused\"}"), "2");
    assert_eq!(metric(&larder, "larder_last_reload_refused"), "1");

    larder.rewrite_config(|text| text.replace("\"short\"\n# \"", "\""));
    larder.said(&["reload"]);
    assert_eq!(metric(&larder, "larder_last_reload_refused"), "0");
}

#[test]
fn what_is_no_toml_is_refused_by_the_larder_that_runs_and_counted() {
    let larder = PurgingLarder::start("no-toml", false);
    let config = larder.folder.join("larder.toml");
    let reload = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(["reload", "--config"]).arg(&config).args(["--admin", &larder.admin.to_string()]);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    larder.rewrite_config(|text| text + "ttl = 1h\n");
    let (code, errors) = reload();
    assert!(code == Some(1) && errors.contains("not reloaded") && errors.contains("write ttl = \"1h\""), "{errors}");
    assert_eq!(metric(&larder, "larder_reloads_total{outcome=\"refused\"}"), "1");

    // What was appended stands in the last section, be it [admin]: the larder that runs says so.
    let former = std::fs::read_to_string(&config).expect("it is there");
    let (header, admin) = former.split_once("[admin]").expect("it has one");
    let (admin, rest) = admin.split_at(admin.find("\n[").unwrap_or(admin.len()));
    std::fs::write(&config, format!("{header}{}\n[admin]{admin}\nttl = \"1m\"\n", rest.replace("ttl = 1h\n", "")))
        .expect("it can be written");
    let (code, errors) = reload();
    assert!(code == Some(1) && errors.contains("unknown key `ttl` in [admin]"), "{errors}");
    assert!(errors.contains("`ttl` belongs in [[route]]") && !errors.contains("Is the "), "{errors}");
    std::fs::write(&config, former).expect("it can be written");

    // A new token is none of the larder that runs, which has to read the file first.
    larder.rewrite_config(|text| text.replace("ttl = 1h\n", "").replace("0123456789abcdef", "fedcba9876543210"));
    let (code, errors) = reload();
    assert!(code == Some(1) && errors.contains("`kill -HUP ") && errors.contains("--token-file"), "{errors}");
}

#[test]
fn a_root_that_is_not_there_is_refused() {
    let larder = PurgingLarder::start("no-root", false);
    larder.rewrite_config(|text| text + "[[route]]\npath = \"/files\"\nroot = \"no-such-folder\"\n");
    let output = larder.command(&["reload"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("no-such-folder of /files cannot be read"), "{errors}");
    let (status, seen) = larder.order("POST /reload", "");
    assert_eq!((status, seen["outcome"].as_str()), (422, Some("refused")), "{seen}");
    std::fs::create_dir_all(larder.folder.join("no-such-folder")).expect("the folder can be written");
    assert!(larder.said(&["reload"]).contains("/files is new"));
}

#[test]
fn only_who_may_change_things_has_it_reload() {
    let larder = PurgingLarder::start("reload-rights", false);
    let ask = |line: &str, more: &str| {
        exchange(larder.admin, &format!("{line} HTTP/1.1\r\nHost: localhost\r\n{more}Content-Length: 0\r\n\r\n"))
    };
    assert!(ask("POST /reload", "").starts_with("HTTP/1.1 403"));
    assert!(ask("POST /reload", "Authorization: Bearer 0123456789abcdeX\r\n").starts_with("HTTP/1.1 403"));
    assert!(ask("GET /reload", "").starts_with("HTTP/1.1 405"));
    assert_eq!(last(&larder)["taken"].as_u64(), Some(0));
}

#[test]
fn a_note_stands_in_the_history() {
    let larder = PurgingLarder::start("noted", false);
    assert_eq!(larder.said(&["note", "shop", "4.2: <b>ä"]), "noted: shop 4.2: <b>ä\n");
    let (status, history) = larder.order("GET /history", "");
    let noted = history["annotations"].as_array().and_then(|all| all.iter().find(|one| one["kind"] == "note"));
    assert_eq!((status, noted.and_then(|one| one["text"].as_str())), (200, Some("shop 4.2: <b>ä")), "{history}");
    let output = larder.command(&["note", "two\nlines"]);
    assert_eq!(output.status.code(), Some(1));
    let refused = exchange(larder.admin, "POST /notes?text=x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
}
