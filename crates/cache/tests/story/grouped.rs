//! Cache groups (RFC 9875): what belongs to a group goes with it, wherever it is, and nothing else does.

use std::sync::Arc;

use bytes::Bytes;
use cache::limits::GROUP_SLOTS;
use cache::{Groups, HotTable, Key, LookupOptions, Release, StoreAs};
use message::{ResponseHead, Status};

use crate::stage::*;

/// Names of different lengths or letters fall into different slots here: no test may hang on chance.
fn group(stage: &Stage, name: &str) -> Key {
    let slot = name.bytes().map(u64::from).sum::<u64>() % GROUP_SLOTS as u64;
    let mut keys = (0u32..).map(|n| stage.cache.key([name.as_bytes(), &n.to_be_bytes()]));
    keys.find(|key| key.bits() % GROUP_SLOTS as u64 == slot).expect("some number fits")
}

fn of(stage: &Stage, names: &[&str]) -> Option<Groups> {
    Groups::new(names.iter().map(|name| group(stage, name)))
}

fn grouped(stage: &Stage, names: &[&str]) -> StoreAs {
    StoreAs { groups: of(stage, names), ..storable(MINUTE_MS) }
}

fn store(stage: &Stage, path: &str, names: &[&str]) {
    stage.fill(stage.miss(path), grouped(stage, names), path.as_bytes()).expect("stored");
}

fn invalidate(stage: &Stage, name: &str) {
    stage.cache.invalidate_group(group(stage, name));
}

#[test]
fn what_belongs_to_an_invalidated_group_is_gone() {
    let stage = Stage::new();
    store(&stage, "/a", &["scripts", "all"]);
    store(&stage, "/b", &["styles", "all"]);
    store(&stage, "/c", &[]);
    invalidate(&stage, "nobody's");
    let kinds = |stage: &Stage| ["/a", "/b", "/c"].map(|path| kind(&stage.ask(path)));
    assert_eq!(kinds(&stage), ["fresh"; 3]);
    invalidate(&stage, "scripts");
    assert_eq!(kinds(&stage), ["miss", "fresh", "fresh"]);
    invalidate(&stage, "all");
    assert_eq!(kinds(&stage), ["miss", "miss", "fresh"]);
    assert_eq!((stage.cache.stats().objects, stage.cache.stats().invalidated), (1, 2));
    store(&stage, "/a", &["scripts", "all"]);
    assert_eq!(kinds(&stage), ["fresh", "miss", "fresh"], "what is stored after it is of the group again");
}

#[test]
fn a_hot_table_serves_nothing_of_an_invalidated_group() {
    let stage = Stage::new();
    store(&stage, "/a", &["scripts"]);
    let (mut hot, key, fields) = (HotTable::new(&stage.cache), stage.key("/a"), fields_of(&[]));
    let object = stage.fresh("/a");
    hot.remember(key, Default::default(), &object);
    assert!(hot.get(key, Default::default(), &request(&fields)).is_some() && object.is_live());
    invalidate(&stage, "styles");
    assert!(hot.get(key, Default::default(), &request(&fields)).is_some());
    invalidate(&stage, "scripts");
    assert!(hot.get(key, Default::default(), &request(&fields)).is_none() && !object.is_live());
    hot.remember(key, Default::default(), &object);
    assert!(hot.get(key, Default::default(), &request(&fields)).is_none());
}

#[test]
fn a_fetch_that_began_before_is_not_stored() {
    let stage = Stage::new();
    let ticket = stage.miss("/a");
    invalidate(&stage, "scripts");
    // The leader gets it, as it was asked for before.
    let mut leader = ticket.follow(0);
    let mut draft = stage.describe(ticket, Some(grouped(&stage, &["scripts"])), None);
    draft.append("old".into());
    assert!(draft.land(None).is_none());
    assert!(head_of(&mut leader).unwrap().is_ok());
    assert_eq!((whole_body(&mut leader), kind(&stage.ask("/a"))), (b"old".to_vec(), "miss"));

    let mut draft = stage.describe(stage.miss("/b"), Some(grouped(&stage, &["scripts"])), None);
    draft.append("old".into());
    invalidate(&stage, "scripts");
    assert!(draft.land(None).is_none());
    assert_eq!(kind(&stage.ask("/b")), "miss");
}

#[test]
fn who_comes_after_the_invalidation_does_not_get_what_began_before() {
    let stage = Stage::new();
    let ticket = stage.miss("/a");
    let mut early = stage.busy("/a");
    invalidate(&stage, "scripts");
    // Which groups it will have nobody knows yet.
    let mut late = stage.busy("/a");
    let mut draft = stage.describe(ticket, Some(grouped(&stage, &["scripts"])), None);
    assert!(head_of(&mut early).unwrap().is_ok());
    assert_eq!(head_of(&mut late).unwrap().err(), Some(Release::VaryMismatch));
    assert_eq!(kind(&stage.ask("/a")), "miss", "nobody joins it any more");
    draft.append("old".into());
    draft.land(None);
    assert_eq!(whole_body(&mut early), b"old");

    // Known by now, and invalidated while it fills.
    let mut draft = stage.describe(stage.miss("/b"), Some(grouped(&stage, &["scripts"])), None);
    draft.append("ol".into());
    let mut early = stage.busy("/b");
    invalidate(&stage, "scripts");
    assert_eq!(kind(&stage.ask("/b")), "miss");
    draft.append("d".into());
    draft.land(None);
    assert!(head_of(&mut early).unwrap().is_ok());
    assert_eq!(whole_body(&mut early), b"old");
}

#[test]
fn other_invalidations_release_nobody() {
    let stage = Stage::new();
    let ticket = stage.miss("/a");
    invalidate(&stage, "styles");
    let mut late = stage.busy("/a");
    let draft = stage.describe(ticket, Some(grouped(&stage, &["scripts"])), None);
    assert!(head_of(&mut late).unwrap().is_ok());
    assert!(draft.land(None).is_some());
}

/// RFC 9111 §4.3.4: a 304 renews what is stored, with the groups it has now.
#[test]
fn what_a_304_confirmed_counts_from_its_own_fetch() {
    let check = |before: &[&str], after: &[&str], during: &str, later: &str, expect: [&str; 2]| {
        let mut stage = Stage::new();
        store(&stage, "/a", before);
        stage.advance_ms(2 * MINUTE_MS);
        let ticket = stage.miss("/a");
        assert!(ticket.stale().is_some());
        invalidate(&stage, during);
        let head = Arc::new(ResponseHead::new(Status::OK));
        ticket.refreshed((head, Bytes::new()), facts(MINUTE_MS), of(&stage, after), stage.now);
        let first = kind(&stage.ask("/a"));
        invalidate(&stage, later);
        assert_eq!([first, kind(&stage.ask("/a"))], expect, "{before:?} {after:?} {during} {later}");
    };
    check(&["a"], &["a"], "x", "x", ["fresh", "fresh"]);
    check(&["a"], &["a"], "x", "a", ["fresh", "miss"]);
    check(&["a"], &["b"], "x", "a", ["fresh", "fresh"]);
    check(&["a"], &["b"], "x", "b", ["fresh", "miss"]);
    check(&["a"], &["b"], "b", "x", ["miss", "miss"]);
    check(&["a"], &["b"], "a", "x", ["miss", "miss"]);
    check(&[], &["b"], "b", "x", ["miss", "miss"]);
}

#[test]
fn a_new_head_keeps_the_groups() {
    let stage = Stage::new();
    store(&stage, "/a", &["a"]);
    let freshen = |stage: &Stage| {
        let object = stage.cache.find(stage.key("/a"), &request(&fields_of(&[])))?;
        let head = Arc::new(ResponseHead::new(Status::OK));
        stage.cache.freshen(&object, Some((&head, b"")), facts(MINUTE_MS), (stage.cache.began(), stage.now))
    };
    assert!(freshen(&stage).is_some());
    invalidate(&stage, "a");
    assert!(freshen(&stage).is_none());
    assert_eq!((stage.cache.stats().keys, stage.cache.account().used()), (0, 0), "a look takes it out");
    store(&stage, "/a", &["a"]);
    assert!(
        stage
            .cache
            .find_part(stage.key("/a"), &request(&fields_of(&[])), &LookupOptions::default(), stage.now)
            .is_none()
    );
    assert_eq!(kind(&stage.ask("/a")), "fresh");
}
