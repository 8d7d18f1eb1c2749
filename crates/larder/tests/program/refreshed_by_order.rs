//! What is fetched again, or before anybody asks: what counts as done and what as failed, what lies on a disk alone, several URLs, sitemaps,
//! and how a run is ended.

use std::sync::atomic::Ordering::SeqCst;

use serde_json::{Value, json};

use crate::peer_process::wait_for;
use crate::purging_larder::PurgingLarder;

fn progress(larder: &PurgingLarder) -> Value {
    larder.order("GET /refresh", "").1
}

/// What a run came to.
fn ran(larder: &PurgingLarder, line: &str, order: &Value) -> Value {
    let (status, answer) = larder.order(line, &order.to_string());
    assert_eq!(status, 202, "{order}: {answer}");
    wait_for("the run is over", || progress(larder)["running"] == false);
    progress(larder)
}

fn down(larder: &PurgingLarder, is_down: bool) {
    larder.origin.is_down.store(is_down, SeqCst);
}

#[test]
fn what_its_origin_did_not_bring_has_failed() {
    let larder = PurgingLarder::start("covered", false);
    let paths = ["/covered/1", "/soft/1"];
    let before = paths.map(|path| larder.version_of(path));
    down(&larder, true);
    let urls = paths.map(|path| larder.url(path));
    let over = ran(&larder, "POST /refresh", &json!({ "urls": urls, "rate": 100 }));
    assert_eq!((&over["done"], &over["failed"]), (&json!(2), &json!(2)), "{over}");
    assert_eq!(larder.version_of("/covered/1"), before[0], "what is stored is served on");
    down(&larder, false);
    for path in ["/cut", "/cut/chunked", "/forbidden"] {
        let over = ran(&larder, "POST /warm", &json!({ "urls": [larder.url(path)] }));
        assert_eq!(over["failed"], 1, "{path}: {over}");
    }
    let over = ran(&larder, "POST /warm", &json!({ "urls": [larder.url("/gone"), larder.url("/a")] }));
    assert_eq!(over["failed"], 0, "what its origin says is not there is known: {over}");
}

#[test]
fn what_lies_on_a_disk_alone_is_fetched_again_by_its_url() {
    let mut larder = PurgingLarder::start("disk-alone", true);
    larder.version_of("/a");
    larder.end();
    larder.begin();
    let now = larder.origin.renew();
    let (status, answer) = larder.order("POST /refresh", &json!({ "url": larder.url("/a") }).to_string());
    assert!(status == 202 && answer["queued"] == 1, "{answer}");
    wait_for("the run is over", || progress(&larder)["running"] == false);
    assert_eq!(larder.version_of("/a"), now);
    let (_, answer) = larder.order("POST /refresh", &json!({ "prefix": "/b", "dry_run": true }).to_string());
    assert!(answer["notes"].to_string().contains("on the disks alone"), "{answer}");
}

#[test]
fn several_urls_are_one_run_and_one_run_is_under_way_at_a_time() {
    let larder = PurgingLarder::start("several", false);
    let paths = ["/a", "/news/1", "/news/2"];
    paths.iter().for_each(|path| assert!(larder.version_of(path) > 0));
    let now = larder.origin.renew();
    let said = larder.said(&["refresh", "--no-wait", "--rate", "1", &larder.url("/a"), &larder.url("/news/1")]);
    assert!(said.starts_with("fetching 2 URLs"), "{said}");
    let (status, answer) = larder.order("POST /refresh", &json!({ "url": larder.url("/news/2") }).to_string());
    assert!(status == 409 && answer["error"].to_string().contains("DELETE /refresh"), "{answer}");
    wait_for("the run is over", || progress(&larder)["running"] == false);
    assert_eq!(["/a", "/news/1"].map(|path| larder.version_of(path)), [now, now]);
    let done = larder.purge(&json!({ "urls": [larder.url("/a"), larder.url("/news/2")] }));
    assert_eq!(done["dropped"], 2, "{done}");
}

#[test]
fn sitemaps_lead_to_sitemaps_and_an_order_ends_their_reading() {
    let larder = PurgingLarder::start("sitemaps", false);
    let over = ran(&larder, "POST /warm", &json!({ "sitemap": larder.url("/sitemap-index.xml"), "rate": 100 }));
    assert_eq!((&over["queued"], &over["failed"]), (&json!(2), &json!(0)), "{over}");
    assert!(larder.is_stored("/warm/1") && larder.is_stored("/warm/2"));
    // One that names itself, and 60 others.
    let asked = larder.origin.asked();
    let over = ran(&larder, "POST /warm", &json!({ "sitemap": larder.url("/sitemap-many.xml"), "rate": 100 }));
    assert!(larder.origin.asked() - asked < 60, "{over}");
    assert!(over["notes"].to_string().contains("50 sitemaps"), "{over}");
    // Each of these takes a while.
    let order = json!({ "sitemap": larder.url("/sitemap-slow.xml"), "rate": 100 });
    assert_eq!(larder.order("POST /warm", &order.to_string()).0, 202);
    let asked = larder.origin.asked();
    wait_for("it is read", || larder.origin.asked() > asked + 1);
    larder.order("DELETE /refresh", "");
    wait_for("the run is over", || progress(&larder)["running"] == false);
    assert_eq!(progress(&larder)["stopped"], "it was ended");
    assert!(larder.origin.asked() < asked + 15, "{}", larder.origin.asked() - asked);
    let over = ran(&larder, "POST /warm", &json!({ "sitemap": larder.url("/sitemap-large.xml") }));
    assert!(over["stopped"].to_string().contains("16 MiB"), "{over}");
}
