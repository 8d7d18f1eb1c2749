//! Purges and refreshes under a VCL: a URL is the one that clients ask for, whatever the program makes of it; what is fetched again is fetched,
//! and what could not be is said.

use std::sync::atomic::Ordering::SeqCst;

use serde_json::json;

use crate::purging_larder::PurgingLarder;

fn is_hit(larder: &PurgingLarder, path: &str, lines: &[&str]) -> bool {
    let asked = larder.origin.asked();
    assert_eq!(larder.ask(path, lines).0, 200, "{path}");
    larder.origin.asked() == asked
}

#[test]
fn a_purge_of_a_url_means_what_clients_ask_for() {
    let rewriting = "sub vcl_recv {
        set req.url = regsub(req.url, \"^/old/\", \"/new/\");
        set req.http.Host = \"site.test\";
        if (req.url == \"/banning\") { ban(\"obj.url ~ /\"); }
        if (req.url == \"/twice\" && req.restarts == 0) { return (restart); }
        if (req.restarts == 1) { set req.url = \"/twice-asked\"; }
    }
    sub vcl_hash { hash_data(regsub(req.url, \"\\?.*\", \"\")); hash_data(req.http.X-Device); return (lookup); }";
    let larder = PurgingLarder::under("rewriting", rewriting);
    for (asked, purged, device) in [
        ("/old/1", "/old/1", ""),
        ("/old/1", "/new/1", ""),
        ("/old/1?x=1", "/old/1?y=2", ""),
        // The key of another client is not known, and the URL as the program leaves it is.
        ("/old/1?x=1", "/old/1?x=1", "phone"),
        ("/twice", "/twice", ""),
    ] {
        let line = format!("X-Device: {device}");
        let lines: &[&str] = if device.is_empty() { &[] } else { &[&line] };
        larder.ask(asked, lines);
        larder.ask("/other", &[]);
        assert!(is_hit(&larder, asked, lines), "{asked}");
        let order = json!({ "url": larder.url(purged), "dry_run": true });
        assert_eq!(larder.purge(&order)["matched"], 1, "{asked} by {purged}");
        let done = larder.purge(&json!({ "url": larder.url(purged) }));
        assert_eq!((&done["dropped"], &done["matched"]), (&json!(1), &json!(1)), "{asked} by {purged}");
        assert!(!is_hit(&larder, asked, lines), "{asked} by {purged}");
        assert!(is_hit(&larder, "/other", &[]), "{asked} by {purged}");
        larder.purge(&json!({ "all": true }));
    }
    // The program runs for its key, and what it does otherwise is not done.
    larder.ask("/other", &[]);
    assert_eq!(larder.purge(&json!({ "url": larder.url("/banning") }))["dropped"], 0);
    assert!(is_hit(&larder, "/other", &[]));
    // Patterns mean what the program made of the URL, and the answer says so.
    larder.ask("/old/1", &[]);
    let done = larder.purge(&json!({ "prefix": "/old/" }));
    let notes = done["notes"].to_string();
    assert!(done["dropped"] == 0 && notes.contains("as the VCL leaves it"), "{done}");
    assert_eq!(larder.purge(&json!({ "host": "site.test" }))["dropped"], 2);
}

/// What is stored is served on while its origin fails, and a refresh that brought nothing says so.
#[test]
fn a_refresh_under_a_program_says_what_failed() {
    let larder = PurgingLarder::under("refreshing", "sub vcl_backend_response { set beresp.grace = 1h; }");
    let before = larder.version_of("/a");
    let now = larder.origin.renew();
    larder.origin.is_down.store(true, SeqCst);
    let output = larder.command(&["refresh", &larder.url("/a"), "--rate", "100"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("1 failed"), "{said}");
    assert_eq!(larder.version_of("/a"), before);
    larder.origin.is_down.store(false, SeqCst);
    assert!(larder.said(&["refresh", &larder.url("/a")]).ends_with("1 of 1 URL asked for, none failed\n"));
    assert_eq!(larder.version_of("/a"), now, "it is there when the command ends");
}
