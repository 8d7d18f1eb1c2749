//! Nothing that was purged is served again: not to clients that ask all the time, by any selector, not from a disk, and not after a crash.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use serde_json::{Value, json};

use crate::purging_larder::PurgingLarder;

/// All ways in which the hammered page is purged, one after another.
fn orders(larder: &PurgingLarder) -> Vec<Value> {
    let address = larder.address;
    vec![
        json!({ "url": larder.url("/hammered") }),
        json!({ "prefix": format!("{address}/ham") }),
        json!({ "host": address.to_string() }),
        json!({ "glob": "*/hammered" }),
        json!({ "regex": "/hammered$" }),
        json!({ "ban": "obj.url == /hammered" }),
        json!({ "ban": "req.url == /hammered" }),
        json!({ "tags": ["hammer"] }),
        json!({ "group": "hammer", "origin": larder.url("") }),
        // It may not be served stale.
        json!({ "url": larder.url("/hammered"), "soft": true }),
        json!({ "prefix": "/ham", "soft": true }),
        json!({ "tags": ["hammer"], "soft": true }),
        json!({ "all": true }),
    ]
}

/// Clients ask without a pause; what any of them gets is no older than the last purge that was acknowledged before it asked.
#[test]
fn clients_that_hammer_never_see_what_was_purged() {
    let larder = PurgingLarder::start("hammered", true);
    let (floor, is_over, served) = (AtomicU64::new(0), AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(SeqCst) {
                    let least = floor.load(SeqCst);
                    let version = larder.version_of("/hammered");
                    assert!(version >= least, "version {version} after version {least} was purged");
                    served.fetch_add(1, SeqCst);
                }
            });
        }
        for _ in 0..10 {
            for order in orders(&larder) {
                let version = larder.origin.renew();
                let answer = larder.purge(&order);
                floor.store(version, SeqCst);
                assert_eq!(answer["disks"], "acknowledged", "{order}");
            }
        }
        is_over.store(true, SeqCst);
    });
    assert!(served.load(SeqCst) > 100);
}

/// What lies on a disk alone is purged there, and a crash right behind the answer does not bring it back; what was not meant is still there.
#[test]
fn a_crash_behind_the_answer_brings_nothing_back() {
    let mut larder = PurgingLarder::start("crashed", true);
    for number in 0..orders(&larder).len() {
        let order = orders(&larder).swap_remove(number);
        let takes_all = order.get("all").is_some() || order.get("host").is_some();
        let old = larder.version_of("/hammered");
        let others = larder.version_of("/other");
        larder.end();
        larder.begin();
        let new = larder.origin.renew();
        larder.purge(&order);
        larder.crash();
        larder.begin();
        let version = larder.version_of("/hammered");
        assert!(version >= new && new > old, "{order}: version {version}");
        let asked = larder.origin.asked();
        assert_eq!(larder.version_of("/other") == others, !takes_all, "{order}");
        assert_eq!(larder.origin.asked() > asked, takes_all, "{order}");
    }
}

/// Most of what a tag that many carry hits is freed behind the answer: to clients it is gone before, in memory, on the disk, and when a crash comes in between.
#[test]
fn what_many_carry_is_gone_before_it_is_freed() {
    const MANY: usize = 300;
    let mut larder = PurgingLarder::start("many", true);
    let paths: Vec<String> = (0..MANY).map(|number| format!("/tagged/1?{number}")).collect();
    let is_all_of = |larder: &PurgingLarder, version: u64| {
        paths.iter().for_each(|path| assert_eq!(larder.version_of(path), version, "{path}"));
    };
    is_all_of(&larder, 1);
    for round in 0..3 {
        let version = larder.origin.renew();
        let answer = larder.purge(&json!({ "tags": ["product-1"] }));
        assert_eq!((&answer["dropped"], &answer["disks"]), (&json!(MANY), &json!("acknowledged")), "{answer}");
        assert_eq!(larder.purge(&json!({ "tags": ["menu"] }))["dropped"], 0, "they are gone already");
        if round == 1 {
            larder.crash();
            larder.begin();
        }
        is_all_of(&larder, version);
    }
}
