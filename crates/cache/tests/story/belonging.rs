//! A response that turns out to belong under another key than the one it was asked by: stored there, given here only to
//! who wants the same target, and too late when something was invalidated meanwhile.

use cache::{Answer, Elsewhere, Follower, Key, Release, StoreAs, Wishes};
use message::Request;

use crate::stage::*;

fn there(stage: &Stage, only_target: bool, is_new: bool) -> StoreAs {
    let elsewhere = Some(Elsewhere { key: stage.key("/there"), only_target, is_new });
    StoreAs { elsewhere, ..storable(MINUTE_MS) }
}

fn ask_for(stage: &Stage, key: Key, query: &str) -> Answer {
    let fields = fields_of(&[]);
    let request = Request { query: Some(query.as_bytes()), ..request(&fields) };
    stage.cache.ask(key, &request, &Wishes::default(), stage.now)
}

#[test]
fn it_is_stored_where_it_belongs() {
    let stage = Stage::new();
    let object = stage.fill(stage.miss("/here"), there(&stage, true, true), b"body").expect("stored");
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
    stage.fill(ticket, there(&stage, true, false), b"new").expect("stored");
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
        let mut draft = stage.describe(leader, Some(there(&stage, only_target, false)), None);
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
    let check = |invalidated: &str, is_new: bool| {
        let stage = Stage::new();
        let draft = stage.describe(stage.miss("/here"), Some(there(&stage, false, is_new)), None);
        stage.cache.purge(stage.key(invalidated));
        assert!(draft.land(None).is_none(), "{invalidated} {is_new}");
        assert!(!stage.cache.holds(stage.key("/there")), "{invalidated} {is_new}");
    };
    for is_new in [false, true] {
        check("/there", is_new);
        check("/here", is_new);
    }
    // Whoever purged did not know the key: any purge may have meant it.
    check("/elsewhere", true);
}

#[test]
fn nothing_is_left_behind_that_costs() {
    let stage = Stage::new();
    stage.fill(stage.miss("/here"), there(&stage, true, false), b"body").expect("stored");
    stage.cache.purge(stage.key("/there"));
    let draft = stage.describe(stage.miss("/here"), Some(there(&stage, true, true)), None);
    stage.cache.purge(stage.key("/there"));
    assert!(draft.land(None).is_none());
    assert_eq!((stage.cache.stats().keys, stage.cache.account().used()), (0, 0));
}
