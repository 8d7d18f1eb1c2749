//! `larder config running` and `GET /config`: what the larder that runs holds, whatever its file says by now, and that no secret is in it.

use crate::purging_larder::{PurgingLarder, exchange};

#[test]
fn what_holds_is_told_and_what_the_file_says_by_now() {
    let larder = PurgingLarder::start("config-running", false);
    let said = larder.said(&["config", "running"]);
    assert!(said.contains("larder.toml on ") && said.contains("\n# The file says the same.\n"), "{said}");
    assert!(said.contains("token = \"(secret)\"") && !said.contains("0123456789abcdef"), "{said}");
    assert!(said.contains("[origin.app]") && !said.contains("ttl = \"1m\""), "{said}");

    larder.rewrite_config(|text| text + "ttl = \"1m\"\n");
    let said = larder.said(&["config", "running"]);
    let new = "# The file says something else by now, which a reload takes over: [[route]] any host and /\n";
    assert!(said.contains(new) && !said.contains("ttl = \"1m\""), "{said}");

    larder.said(&["reload"]);
    let said = larder.said(&["config", "running"]);
    assert!(said.contains("\n# The file says the same.\n") && said.contains("ttl = \"1m\""), "{said}");

    larder.rewrite_config(|text| text + "tttl = 5\n");
    let said = larder.said(&["config", "running"]);
    assert!(
        said.contains("# The file is wrong by now, and a reload would be refused: ") && !said.contains("tttl"),
        "{said}"
    );
    assert!(said.contains("ttl = \"1m\""), "{said}");
}

#[test]
fn only_who_may_change_things_sees_it() {
    let larder = PurgingLarder::start("config-rights", false);
    let ask =
        |line: &str, more: &str| exchange(larder.admin, &format!("{line} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n"));
    assert!(ask("GET /config", "").starts_with("HTTP/1.1 403"));
    assert!(ask("GET /config", "Authorization: Bearer 0123456789abcdeX\r\n").starts_with("HTTP/1.1 403"));
    assert!(ask("POST /config", "Content-Length: 0\r\n").starts_with("HTTP/1.1 405"));
    assert_eq!(larder.order("GET /config", "").0, 200);
}
