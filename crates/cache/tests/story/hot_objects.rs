//! The hot table: it answers what the shards would, and stops the moment they would not.

use crate::stage::*;
use cache::{HotTable, Key, LookupOptions, Object};
use std::sync::Arc;

fn get(table: &mut HotTable, key: Key, lines: &[(&str, &str)]) -> Option<Arc<Object>> {
    let fields = fields_of(lines);
    table.get(key, Default::default(), &request(&fields)).cloned()
}

fn store(stage: &Stage, lines: &[(&str, &str)], names: Option<&str>, body: &[u8]) -> Arc<Object> {
    let anew = LookupOptions { always_miss: true, ..LookupOptions::default() };
    let store_as = names.map_or_else(|| storable(MINUTE_MS), varying);
    stage.fill(ticket(stage.ask_with("/", lines, &anew)), store_as, body).expect("stored")
}

#[test]
fn it_has_what_it_was_told_until_that_dies() {
    let stage = Stage::new();
    let (mut table, key) = (HotTable::new(&stage.cache), stage.key("/"));
    let object = stage.store("/", b"one");
    assert!(get(&mut table, key, &[]).is_none());
    table.remember(key, Default::default(), &object);
    assert!(Arc::ptr_eq(&get(&mut table, key, &[]).unwrap(), &object));
    assert!(get(&mut table, stage.key("/other"), &[]).is_none());
    let newer = store(&stage, &[], None, b"two");
    assert!(get(&mut table, key, &[]).is_none(), "replaced");
    table.remember(key, Default::default(), &object);
    assert!(get(&mut table, key, &[]).is_none(), "the dead are not taken in");
    table.remember(key, Default::default(), &newer);
    assert!(get(&mut table, key, &[]).is_some());
    stage.cache.purge(key);
    assert!(get(&mut table, key, &[]).is_none(), "purged");
}

#[test]
fn it_is_left_at_eviction_and_swept_of_its_dead() {
    let stage = Stage::new();
    let (mut table, key) = (HotTable::new(&stage.cache), stage.key("/"));
    table.remember(key, Default::default(), &stage.store("/", &[7; 9_000]));
    stage.cache.set_memory(0);
    assert!(get(&mut table, key, &[]).is_none());
    let account = stage.cache.account();
    assert!(account.leaving() > 9_000 && account.used() == account.leaving());
    (0..4).for_each(|_| table.sweep());
    assert_eq!((account.used(), account.leaving()), (0, 0));
}

#[test]
fn each_variant_is_found_by_its_own_request() {
    let stage = Stage::new();
    let (mut table, key) = (HotTable::new(&stage.cache), stage.key("/"));
    for coding in ["gzip", "br", "zstd"] {
        let lines = [("Accept-Encoding", coding)];
        table.remember(key, Default::default(), &store(&stage, &lines, Some("Accept-Encoding"), coding.as_bytes()));
    }
    for coding in ["zstd", "gzip", "br"] {
        let found = get(&mut table, key, &[("Accept-Encoding", coding)]).expect(coding);
        assert_eq!(body_of(&found), coding.as_bytes());
    }
    assert!(get(&mut table, key, &[]).is_none());
}

#[test]
fn a_newer_sibling_of_another_specification_cools_the_older_ones() {
    let stage = Stage::new();
    let (mut table, key) = (HotTable::new(&stage.cache), stage.key("/"));
    let lines = [("Accept-Encoding", "gzip")];
    let plain = store(&stage, &[], None, b"plain");
    table.remember(key, Default::default(), &plain);
    let coded = store(&stage, &lines, Some("Accept-Encoding"), b"coded");
    // It still is the one for requests without gzip, but only the directory knows that.
    assert!(get(&mut table, key, &lines).is_none() && plain.is_live());
    table.remember(key, Default::default(), &coded);
    assert_eq!(body_of(&get(&mut table, key, &lines).unwrap()), b"coded");
    assert_eq!(body_of(&stage.fresh("/")), b"plain");
    // What has Vary comes before what has none: a newer plain one takes neither its place nor its heat.
    let plain = store(&stage, &[], None, b"plain again");
    table.remember(key, Default::default(), &plain);
    assert_eq!(body_of(&get(&mut table, key, &lines).unwrap()), b"coded");
    assert!(get(&mut table, key, &[]).is_none());
    assert_eq!(body_of(&fresh(stage.ask_with("/", &lines, &LookupOptions::default()))), b"coded");
}

#[test]
fn ten_thousand_addresses_fit_and_the_used_ones_stay() {
    let stage = Stage::new();
    let mut table = HotTable::new(&stage.cache);
    let objects: Vec<Arc<Object>> = (0..10_000).map(|index| stage.store(&format!("/{index}"), b"x")).collect();
    let mut found = 0;
    // Zipf-like: the first tenth is asked for nine times as often.
    for round in 0..10 {
        let hot_only = round % 10 != 9;
        for object in &objects[..if hot_only { 1_000 } else { 10_000 }] {
            match get(&mut table, object.key(), &[]) {
                Some(_) => found += 1,
                None => table.remember(object.key(), Default::default(), object),
            }
        }
    }
    let (asked, first_time) = (9 * 1_000 + 10_000, 10_000);
    assert!(found >= asked - first_time - 200, "{found}");
    let present = objects.iter().filter(|object| get(&mut table, object.key(), &[]).is_some()).count();
    assert!(present > 9_000, "{present}");
}
