//! A response that turns out to belong under another key than the one it was asked by: stored there, given here only to
//! who wants the same target, and too late when something was invalidated meanwhile.

use cache::{Answer, Began, Elsewhere, Follower, Key, LookupOptions, Release, StoreAs};
use message::Request;

use crate::stage::*;

fn there(stage: &Stage, only_target: bool, known_since: Option<Began>) -> StoreAs {
    let elsewhere = Some(Elsewhere { key: stage.key("/there"), only_target, known_since });
    StoreAs { elsewhere, ..storable(MINUTE_MS) }
}

fn ask_for(stage: &Stage, key: Key, query: &str) -> Answer {
    let fields = fields_of(&[]);
    let request = Request { query: Some(query.as_bytes()), ..request(&fields) };
    stage.cache.ask(key, &request, &LookupOptions::default(), stage.now)
}

#[test]
fn it_is_stored_where_it_belongs() {
    let stage = Stage::new();
    let object = stage.fill(stage.miss("/here"), there(&stage, true, None), b"body").expect("stored");
    assert_eq!(object.key(), stage.key("/there"));
    assert_eq!(body_of(&stage.fresh("/there")), b"body");
    assert!(stage.cache.holds(stage.key("/there")) && !stage.cache.holds(stage.key("/here")));
    assert_eq!(kind(&stage.ask("/here")), "miss");
}

#[test]
fn what_lay_here_is_superseded() {
    let mut stage = Stage::new();
    stage.store("/here", b"old");
    stage.advance_ms(2 * MINUTE_MS);
    let ticket = stage.miss("/here");
    assert!(ticket.stale().is_some());
    stage.fill(ticket, there(&stage, true, Some(Began::FIRST)), b"new").expect("stored");
    assert!(!stage.cache.holds(stage.key("/here")));
    assert_eq!(stage.cache.stats().objects, 1);
}

#[test]
fn who_waits_gets_it_for_the_same_target_only() {
    let check = |only_target: bool, expect_other: bool| {
        let stage = Stage::new();
        let here = stage.key("/here");
        let leader = ticket(ask_for(&stage, here, "a"));
        let mut first = leader.follow(0);
        let [mut same, mut other]: [Follower; 2] = ["a", "b"].map(|query| follower(ask_for(&stage, here, query)));
        let mut draft = stage.describe(leader, Some(there(&stage, only_target, Some(Began::FIRST))), None);
        assert!(head_of(&mut first).unwrap().is_ok() && head_of(&mut same).unwrap().is_ok());
        assert_eq!(head_of(&mut other).unwrap().err(), (!expect_other).then_some(Release::VaryMismatch));
        let joins = matches!(ask_for(&stage, here, "b"), Answer::Busy(_));
        assert_eq!(joins, !only_target, "nobody joins what may not be theirs");
        draft.append("body".into());
        draft.land(None).expect("stored");
        assert_eq!((whole_body(&mut first), whole_body(&mut same)), (b"body".to_vec(), b"body".to_vec()));
    };
    check(true, false);
    check(false, true);
}

#[test]
fn it_comes_too_late_when_its_key_was_invalidated() {
    let check = |invalidated: &str, known_since: Option<Began>| {
        let stage = Stage::new();
        let draft = stage.describe(stage.miss("/here"), Some(there(&stage, false, known_since)), None);
        stage.cache.purge(stage.key(invalidated));
        assert!(draft.land(None).is_none(), "{invalidated} {known_since:?}");
        assert!(!stage.cache.holds(stage.key("/there")), "{invalidated} {known_since:?}");
    };
    for known_since in [Some(Began::FIRST), None] {
        check("/there", known_since);
        check("/here", known_since);
    }
    // Whoever purged did not know the key: any purge may have meant it.
    check("/elsewhere", None);
}

#[test]
fn it_comes_too_late_when_something_was_invalidated_before_its_key_was_known() {
    let stage = Stage::new();
    let [early, late] = ["/early", "/late"].map(|path| {
        let ticket = stage.miss(path);
        stage.cache.purge(stage.key("/elsewhere"));
        ticket
    });
    let known_since = Some(stage.cache.began());
    assert!(stage.fill(early, there(&stage, false, known_since), b"early").is_none());
    assert!(stage.fill(late, there(&stage, false, known_since), b"late").is_none());
    let began_after = stage.miss("/here");
    stage.cache.purge(stage.key("/elsewhere"));
    assert!(stage.fill(began_after, there(&stage, false, known_since), b"body").is_some());
}

#[test]
fn nothing_is_left_behind_that_costs() {
    let stage = Stage::new();
    stage.fill(stage.miss("/here"), there(&stage, true, Some(Began::FIRST)), b"body").expect("stored");
    stage.cache.purge(stage.key("/there"));
    let draft = stage.describe(stage.miss("/here"), Some(there(&stage, true, None)), None);
    stage.cache.purge(stage.key("/there"));
    assert!(draft.land(None).is_none());
    assert_eq!((stage.cache.stats().keys, stage.cache.account().used()), (0, 0));
}
