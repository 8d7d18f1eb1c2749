//! Purges by every selector, hard and soft, dry and done, over the admin address and by the commands: what is meant goes, nothing else does, the
//! answer says how many, and nobody gives orders who may not.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::peer_process::wait_for;
use crate::purging_larder::{PurgingLarder, exchange};

const PATHS: [&str; 9] =
    ["/a", "/a?x=1", "/news/1", "/news/2", "/shop/print", "/tagged/1", "/tagged/2", "/grouped", "/picture"];

/// Each selector, and what of the paths it means.
fn selectors(larder: &PurgingLarder) -> Vec<(Value, Vec<&'static str>)> {
    let (address, origin) = (larder.address, larder.url(""));
    vec![
        (json!({ "url": larder.url("/a") }), vec!["/a"]),
        (json!({ "url": larder.url("/a?x=1#top") }), vec!["/a?x=1"]),
        (json!({ "url": larder.url("/nothing") }), vec![]),
        (json!({ "prefix": format!("{address}/news/") }), vec!["/news/1", "/news/2"]),
        (json!({ "prefix": format!("https://{address}/a") }), vec!["/a", "/a?x=1"]),
        (json!({ "prefix": format!("HTTP://{address}/a?") }), vec!["/a?x=1"]),
        (json!({ "prefix": "/news/1" }), vec!["/news/1"]),
        (json!({ "host": address.to_string() }), PATHS.to_vec()),
        (json!({ "host": "www.example.org" }), vec![]),
        (json!({ "glob": "/*/print" }), vec!["/shop/print"]),
        (json!({ "glob": format!("{address}/a?*") }), vec!["/a?x=1"]),
        (json!({ "regex": "/(news|tagged)/2$" }), vec!["/news/2", "/tagged/2"]),
        (json!({ "ban": "obj.http.content-type ~ ^image/" }), vec!["/picture"]),
        (json!({ "ban": "obj.url ~ ^/a && obj.status == 200" }), vec!["/a", "/a?x=1"]),
        (json!({ "tags": ["product-1"] }), vec!["/tagged/1"]),
        (json!({ "tags": ["Menu"] }), vec!["/tagged/1", "/tagged/2"]),
        (json!({ "tags": ["menu", "product-1"] }), vec!["/tagged/1", "/tagged/2"]),
        (json!({ "tags": ["PRODUCT-1", "nobody's"] }), vec![]),
        (json!({ "group": "news", "origin": origin }), vec!["/grouped"]),
        (json!({ "group": "news", "origin": "http://www.example.org" }), vec![]),
        (json!({ "all": true }), PATHS.to_vec()),
    ]
}

fn with(order: &Value, more: Value) -> Value {
    let mut order = order.clone();
    more.as_object().expect("an object").iter().for_each(|(key, value)| order[key] = value.clone());
    order
}

fn stored(larder: &PurgingLarder) -> BTreeSet<&'static str> {
    PATHS.into_iter().filter(|path| larder.is_stored(path)).collect()
}

#[test]
fn every_selector_takes_what_it_means_and_nothing_else() {
    let larder = PurgingLarder::start("selectors", false);
    for (order, meant) in selectors(&larder) {
        PATHS.iter().for_each(|path| assert!(larder.version_of(path) > 0));
        let count = meant.len();
        let dry = larder.purge(&with(&order, json!({ "dry_run": true, "samples": 20 })));
        assert_eq!(
            (&dry["matched"], &dry["dropped"], &dry["disks"]),
            (&json!(count), &json!(0), &json!("none")),
            "{order}"
        );
        let shown: BTreeSet<&str> =
            dry["samples"].as_array().unwrap().iter().map(|it| it["url"].as_str().unwrap()).collect();
        let urls: Vec<String> = meant.iter().map(|path| larder.url(path)).collect();
        assert_eq!(shown, urls.iter().map(String::as_str).collect(), "{order}");
        assert_eq!(stored(&larder).len(), PATHS.len(), "{order}: a dry run does nothing");
        let done = larder.purge(&with(&order, json!({ "samples": 1 })));
        assert_eq!((&done["matched"], &done["dropped"]), (&json!(count), &json!(count)), "{order}");
        assert_eq!(done["samples"].as_array().unwrap().len(), count.min(1), "{order}");
        let left: BTreeSet<&str> = PATHS.into_iter().filter(|path| !meant.contains(path)).collect();
        assert_eq!(stored(&larder), left, "{order}");
        assert!(done["sequence"].as_u64() > dry["sequence"].as_u64() && done["took_ms"].is_number(), "{done}");
        assert_eq!(larder.purge(&order)["dropped"], 0, "{order}: it is gone already");
    }
}

#[test]
fn what_is_softly_purged_is_served_stale_and_fetched_again() {
    let larder = PurgingLarder::start("softly", false);
    let paths = ["/soft/1", "/soft/2", "/soft/3"];
    let one = format!("{}/soft/1", larder.address);
    for order in [
        json!({ "url": larder.url("/soft/1") }),
        json!({ "prefix": one }),
        json!({ "glob": "*/soft/1" }),
        json!({ "regex": "/soft/1$" }),
        json!({ "ban": "obj.url == /soft/1" }),
    ] {
        let before = larder.origin.version.load(std::sync::atomic::Ordering::SeqCst);
        larder.purge(&json!({ "all": true }));
        paths.iter().for_each(|path| assert_eq!(larder.version_of(path), before));
        larder.origin.renew();
        let done = larder.purge(&with(&order, json!({ "soft": true })));
        assert_eq!((&done["softened"], &done["dropped"]), (&json!(1), &json!(0)), "{order}: {done}");
        assert_eq!(paths.map(|path| larder.version_of(path)), [before; 3], "{order}: nobody waits");
        wait_for("it is fetched again", || larder.version_of("/soft/1") == before + 1);
        assert_eq!(["/soft/2", "/soft/3"].map(|path| larder.version_of(path)), [before; 2], "{order}");
    }
    // Without any grace it is as good as gone.
    let before = larder.version_of("/soft/2");
    larder.purge(&json!({ "prefix": "/soft/2", "soft": true, "grace_s": 0 }));
    assert!(larder.version_of("/soft/2") > before);
}

/// By whatever its program finds a page: the URL that it was fetched for is known.
#[test]
fn a_program_with_a_hash_of_its_own_has_its_pages_purged_by_url_and_tag() {
    let hash = "sub vcl_hash { hash_data(regsub(req.url, \"\\?.*\", \"\")); return (lookup); }";
    let larder = PurgingLarder::under("program", hash);
    let is_hit = |path: &str| {
        let asked = larder.origin.asked();
        larder.version_of(path);
        larder.origin.asked() == asked
    };
    for order in [
        json!({ "url": larder.url("/tagged/1?x=1") }),
        json!({ "url": larder.url("/tagged/1?z=3") }),
        json!({ "prefix": "/tagged/1" }),
        json!({ "tags": ["product-1"] }),
        json!({ "all": true }),
    ] {
        larder.version_of("/tagged/1?x=1");
        assert!(is_hit("/tagged/1?y=2"), "{order}");
        assert_eq!(larder.purge(&order)["dropped"], 1, "{order}");
        assert!(!is_hit("/tagged/1?y=2"), "{order}");
        larder.purge(&json!({ "all": true }));
    }
    larder.version_of("/a");
    let now = larder.origin.renew();
    assert!(
        larder.said(&["refresh", "--prefix", "/a", "--rate", "100"]).ends_with("1 of 1 URL asked for, none failed\n")
    );
    wait_for("it is fetched again", || larder.version_of("/a") == now);
}

#[test]
fn a_url_goes_with_all_its_variants() {
    let larder = PurgingLarder::start("variants", false);
    let ask = |agent: &str| larder.ask("/agents", &[&format!("X-Agent: {agent}")]);
    (0..3).for_each(|agent| drop(ask(&agent.to_string())));
    assert_eq!(larder.purge(&json!({ "url": larder.url("/agents") }))["dropped"], 3);
    let asked = larder.origin.asked();
    ask("1");
    assert_eq!(larder.origin.asked(), asked + 1);
}

#[test]
fn nobody_gives_orders_who_may_not_and_no_order_is_guessed() {
    let larder = PurgingLarder::start("refused", false);
    larder.version_of("/a");
    for (line, body, status, part) in [
        ("POST /purge", "", 400, "no JSON"),
        ("POST /purge", "{\"url\": \"/a\"}", 400, "http:// or https://"),
        ("POST /purge", "{\"all\": true, \"url\": \"http://a/\"}", 400, "both"),
        ("POST /purge", "{\"regex\": \"(\"}", 422, "regular expression"),
        ("POST /purge", "{\"regex\": \"a b\"}", 422, "no URL has a blank"),
        ("POST /purge", "{\"ban\": \"obj.uri ~ a\"}", 422, "obj.uri"),
        ("POST /purge", "{\"prefix\": \"www.example.org\"}", 422, "a whole host"),
        ("POST /purge", "{\"prefix\": \"*.example.org/\"}", 422, "`glob`"),
        ("POST /purge", "{\"host\": \"*.example.org\"}", 422, "`glob`"),
        ("POST /refresh", "{\"ban\": \"req.url ~ a\"}", 422, "obj.url"),
        ("GET /purge", "", 405, ""),
    ] {
        let (got, answer) = larder.order(line, body);
        let said = answer["error"].as_str().map_or_else(|| answer.to_string(), str::to_owned);
        assert!(got == status && said.contains(part), "{line} {body}: {got} {said}");
    }
    let body = "{\"all\":true}";
    for fields in [
        "Content-Type: application/json\r\n",
        "Content-Type: application/json\r\nAuthorization: Bearer 0123456789abcdeX\r\n",
        "Content-Type: text/plain\r\nAuthorization: Bearer 0123456789abcdef\r\n",
        "Content-Type: application/json\r\nAuthorization: Bearer 0123456789abcdef\r\nHost: evil.test\r\n",
    ] {
        let host = if fields.contains("Host:") { "" } else { "Host: localhost\r\n" };
        let head = format!("POST /purge HTTP/1.1\r\n{host}{fields}Content-Length: {}\r\n\r\n{body}", body.len());
        let answer = exchange(larder.admin, &head);
        assert!(answer.starts_with("HTTP/1.1 403") || answer.starts_with("HTTP/1.1 415"), "{fields}: {answer}");
    }
    assert!(larder.is_stored("/a"));
}

#[test]
fn the_commands_say_in_words_what_they_did() {
    let larder = PurgingLarder::start("commands", false);
    let fill = || PATHS.iter().for_each(|path| assert!(larder.version_of(path) > 0));
    fill();
    let tags = larder.said(&["tags"]);
    assert!(
        tags.contains("Surrogate-Key  Menu") && tags.contains("Cache-Tag      menu") && tags.contains("4 tags"),
        "{tags}"
    );
    let tags = larder.said(&["tags", "--prefix", "product-", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&tags).unwrap()["total"], 2, "{tags}");
    let said = larder.said(&["purge", "--prefix", "/news/", "--dry-run"]);
    assert!(said.starts_with("would drop 2 responses (in "), "{said}");
    assert!(said.contains(&format!("fresh, age 0 s, 0 hits: {}", larder.url("/news/1"))), "{said}");
    let said = larder.said(&["purge", &larder.url("/a"), &larder.url("/news/1")]);
    assert_eq!(said.matches("dropped 1 response in ").count(), 2, "{said}");
    assert!(larder.said(&["purge", "--tag", "menu", "--tag", "product-1"]).starts_with("dropped 2 responses"));
    assert!(larder.said(&["purge", "--soft", "--glob", "/shop/*"]).starts_with("made 1 response stale"));
    assert!(larder.said(&["ban", "obj.url ~ ^/picture"]).starts_with("banned: "));
    assert!(!larder.is_stored("/picture"));
    assert!(larder.said(&["purge", "--group", "news", "--origin", &larder.url("")]).starts_with("dropped 1 response"));
    fill();
    assert!(larder.said(&["purge", "--all"]).starts_with("dropped 9 responses"));
    let output = larder.command(&["purge", "--regex", "("]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("regular expression"), "{errors}");
}

#[test]
fn what_may_be_the_matter_is_said_where_nothing_was_meant() {
    let larder = PurgingLarder::start("hints", false);
    larder.version_of("/a");
    let (address, star) = (larder.address.to_string(), larder.url("/news/*"));
    for (words, part) in [
        (["--host", "wrong.test"], format!("stored are, among others, responses of {address}: ")),
        (["--prefix", "wrong.test/a"], format!("responses of {address}: ")),
        (["--prefix", "/news/*"], "larder purge --glob 'PATTERN'".to_owned()),
    ] {
        let said = larder.said(&["purge", words[0], words[1]]);
        assert!(said.starts_with("dropped 0 responses ") && said.contains(&part), "{words:?}: {said}");
    }
    let said = larder.said(&["purge", &star]);
    assert!(said.contains("dropped 0 responses ") && said.contains("larder purge --glob 'PATTERN'"), "{said}");
    let said = larder.said(&["purge", &larder.url("/gone")]);
    assert!(said.contains("larder explain URL says under which key"), "{said}");
    let stored = larder.url("/a");
    for (words, part) in [
        (vec!["purge", "http://127.0.0.1/a"], format!("but {stored}: a URL is stored with the port")),
        (vec!["purge", "http://other.test/a"], format!("but {stored}: a URL is stored under the host")),
        (vec!["purge", "--regex", "^/a"], "held against HOST/PATH?QUERY".to_owned()),
        (vec!["purge", "--glob", "/a?"], "no wildcard".to_owned()),
        (vec!["purge", "--tag", "none"], "carries the tag `none`".to_owned()),
    ] {
        let said = larder.said(&words);
        assert!(said.starts_with("dropped 0 responses ") && said.contains(&part), "{words:?}: {said}");
    }
    let said = larder.said(&["purge", &format!("{stored}?b=1")]);
    assert!(said.contains(&format!("but {stored}: a URL is one query")), "{said}");
    assert!(larder.is_stored("/a"));
    larder.said(&["purge", "--all"]);
    let said = larder.said(&["purge", "--host", "wrong.test"]);
    assert!(said.contains("nothing at all is stored in memory"), "{said}");
}

#[test]
fn what_is_stored_is_fetched_again_and_what_is_listed_before_anybody_asks() {
    let larder = PurgingLarder::start("refreshed", false);
    let before = PATHS.map(|path| larder.version_of(path))[0];
    let now = larder.origin.renew();
    let asked = larder.origin.asked();
    let dry = larder.said(&["refresh", "--prefix", "/news/", "--dry-run"]);
    assert!(dry.starts_with("would fetch 2 URLs, 10 a second\n"), "{dry}");
    assert_eq!(larder.origin.asked(), asked);
    let said = larder.said(&["refresh", "--tag", "Menu", "--rate", "100"]);
    assert!(
        said.starts_with("fetching 2 URLs, 100 a second\n") && said.ends_with("2 of 2 URLs asked for, none failed\n"),
        "{said}"
    );
    assert_eq!(larder.origin.asked(), asked + 2);
    assert!(larder.is_stored("/tagged/1") && larder.is_stored("/tagged/2"));
    assert_eq!(["/tagged/1", "/tagged/2", "/news/1"].map(|path| larder.version_of(path)), [now, now, before]);

    let urls = (1..=5).map(|n| larder.url(&format!("/listed/{n}"))).collect::<Vec<_>>();
    let (status, answer) = larder.order("POST /warm", &json!({ "urls": urls, "rate": 100 }).to_string());
    assert_eq!((status, &answer["queued"]), (202, &json!(5)), "{answer}");
    wait_for("they are fetched", || larder.order("GET /refresh", "").1["running"] == false);
    assert!((1..=5).all(|n| larder.is_stored(&format!("/listed/{n}"))));
    let said = larder.said(&["warm", "--sitemap", &larder.url("/sitemap.xml"), "--rate", "100"]);
    assert!(said.ends_with("2 of 2 URLs asked for, none failed\n"), "{said}");
    assert!(larder.is_stored("/warm/1") && larder.is_stored("/warm/2"));
}

#[test]
fn a_run_ends_where_the_origin_is_down() {
    let larder = PurgingLarder::start("down", false);
    larder.origin.is_down.store(true, std::sync::atomic::Ordering::SeqCst);
    let urls = (1..=100).map(|n| larder.url(&format!("/down/{n}"))).collect::<Vec<_>>();
    let list = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("purging/down/urls");
    std::fs::write(&list, urls.join("\n")).unwrap();
    let output = larder.command(&["warm", "--urls", list.to_str().unwrap(), "--rate", "200"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.code() == Some(1)
            && said.contains("10 URLs in a row failed, the last: http://")
            && said.contains(": status 503"),
        "{said}"
    );
    assert!(larder.origin.asked() < 50, "{} were asked for", larder.origin.asked());
}

/// The ports 80 and 443 go without saying, whatever the scheme: of what is stored, and of what is ordered.
#[test]
fn a_host_is_one_whichever_of_the_usual_ports_it_names() {
    let larder = PurgingLarder::start("ports", false);
    let ask = |host: &str| {
        let head = format!("GET /a HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert!(exchange(larder.address, &head).starts_with("HTTP/1.1 200"), "{host}");
    };
    for host in ["a.test", "a.test:80", "a.test:443"] {
        for order in [
            json!({ "host": "a.test" }),
            json!({ "host": "a.test:443" }),
            json!({ "host": "A.test:80" }),
            json!({ "prefix": "https://a.test:443/" }),
            json!({ "prefix": "a.test/a" }),
        ] {
            ask(host);
            ask("a.test:8080");
            assert_eq!(larder.purge(&order)["dropped"], 1, "{host} by {order}");
        }
    }
    assert_eq!(larder.purge(&json!({ "host": "a.test:8080" }))["dropped"], 1);
}

#[test]
fn a_pattern_past_its_limit_is_said() {
    let larder = PurgingLarder::start("past-limit", false);
    larder.version_of(&format!("/{}", "a".repeat(60)));
    let done = larder.purge(&json!({ "regex": "/((a+)+)+\\2[!?]$" }));
    assert!(done["notes"].to_string().contains("gave up"), "{done}");
}

/// What another group left behind is not this one's.
#[test]
fn a_group_counts_what_is_its_own() {
    let larder = PurgingLarder::start("groups", false);
    larder.version_of("/grouped");
    larder.version_of("/grouped/others");
    let line = "Cache-Group-Invalidation: \"others\"";
    let head = format!("PURGE /x HTTP/1.1\r\nHost: {}\r\n{line}\r\nConnection: close\r\n\r\n", larder.address);
    assert!(exchange(larder.address, &head).starts_with("HTTP/1.1 200"));
    let done = larder.purge(&json!({ "group": "news", "origin": larder.url("") }));
    assert_eq!((&done["matched"], &done["dropped"]), (&json!(1), &json!(1)), "{done}");
}
