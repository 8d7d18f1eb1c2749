//! 304s: one merges only into the very object that was validated, and changes nobody's answer under way.

use crate::stage::*;
use bytes::Bytes;
use cache::{LookupOptions, Object, Purge, Release, Renewal, StoreAs, Tags, Ticket, Unshared};
use message::{FieldName, ResponseHead, Status};
use std::sync::Arc;

fn refresh(stage: &Stage, ticket: Ticket) -> Arc<Object> {
    let mut head = ResponseHead::new(Status::OK);
    head.fields.push(FieldName::Etag, "\"1\"");
    head.fields.push_named(b"X-Refreshed", b"yes");
    ticket.refreshed((Arc::new(head), Bytes::from_static(b"HTTP/1.1 200 OK\r\n")), facts(MINUTE_MS), None, stage.now)
}

fn stale_stage() -> Stage {
    let mut stage = Stage::new();
    stage.store("/", b"body");
    stage.advance_ms(2 * MINUTE_MS);
    stage
}

#[test]
fn a_304_renews_the_stored_head_and_keeps_the_body() {
    let stage = stale_stage();
    let leader = stage.miss("/");
    let old = Arc::clone(leader.stale().expect("there is something to validate"));
    let (mut first, mut waiting) = (leader.follow(0), stage.busy("/"));
    old.touch(stage.now);
    let fresh = refresh(&stage, leader);
    assert!(fresh.is_live() && !old.is_live() && fresh.hits() == 1);
    for follower in [&mut first, &mut waiting] {
        let headed = head_of(follower).unwrap().expect("served");
        assert_eq!(headed.length, Some(4));
        assert!(headed.object.is_some_and(|object| Arc::ptr_eq(&object, &fresh)));
        assert!(headed.head.fields.view().get_all_named(b"x-refreshed").eq([b"yes"]));
        assert_eq!(whole_body(follower), b"body");
    }
    assert!(Arc::ptr_eq(&stage.fresh("/"), &fresh));
    assert_eq!((body_of(&old), body_of(&fresh)), (b"body".to_vec(), b"body".to_vec()));
    assert_eq!(stage.cache.stats().objects, 1);
    assert!(stage.cache.account().leaving() > 0, "the old head goes with its last reader");
    let used = stage.cache.account().used();
    drop((old, first, waiting));
    let head_only = used - stage.cache.account().used();
    assert!((1..1_500).contains(&head_only), "the body is charged once: {head_only}");
}

#[test]
fn a_large_body_that_two_heads_share_does_not_leave_with_the_first() {
    let mut stage = Stage::new();
    let old = stage.store("/", &[7; 60_000]);
    stage.advance_ms(2 * MINUTE_MS);
    refresh(&stage, stage.miss("/"));
    let leaving = stage.cache.account().leaving();
    assert!((1..2_000).contains(&leaving), "{leaving}");
    stage.cache.purge(stage.key("/"));
    assert!(stage.cache.account().leaving() > 60_000);
    drop(old);
    assert_eq!(stage.cache.account().used(), 0);
}

#[test]
fn a_304_after_a_purge_serves_who_waits_and_is_not_stored() {
    let stage = stale_stage();
    let leader = stage.miss("/");
    let mut waiting = stage.busy("/");
    stage.cache.purge(stage.key("/"));
    let fresh = refresh(&stage, leader);
    assert!(!fresh.is_live());
    assert!(head_of(&mut waiting).unwrap().is_ok());
    assert_eq!(whole_body(&mut waiting), b"body");
    assert_eq!(kind(&stage.ask("/")), "miss");
}

#[test]
fn a_304_that_forbids_storing_frees_who_waits_and_takes_out_what_it_confirms() {
    let mut stage = Stage::new();
    let ask = |stage: &Stage, kind: &str| stage.ask_with("/", &[("X-Kind", kind)], &LookupOptions::default());
    stage.fill(ticket(ask(&stage, "a")), varying("X-Kind"), b"body").expect("stored");
    stage.fill(ticket(ask(&stage, "b")), varying("X-Kind"), b"other").expect("stored");
    stage.advance_ms(2 * MINUTE_MS);
    let (leader, beside) = (ticket(ask(&stage, "a")), ticket(ask(&stage, "b")));
    let mut waiting = follower(ask(&stage, "a"));
    let head = Arc::new(ResponseHead::new(Status::OK));
    let mut first = leader.follow(0);
    assert!(!leader.refreshed_for_leader((head, Bytes::new()), Unshared::default(), stage.now).is_live());
    assert_eq!(head_of(&mut waiting).unwrap().unwrap_err(), Release::Private);
    assert_eq!(whole_body(&mut first), b"body");
    // Another variant is stored as if nothing had been said.
    stage.fill(beside, varying("X-Kind"), b"newer").expect("stored");
    assert_eq!(kind(&ask(&stage, "b")), "fresh");
    let again = ticket(ask(&stage, "a"));
    assert!(again.stale().is_none(), "there is nothing to validate any more");
    assert_eq!(stage.cache.stats().objects, 1);
}

#[test]
fn a_304_that_is_for_who_asked_alone_leaves_what_it_confirms() {
    let stage = stale_stage();
    let leader = ticket(stage.ask_with("/", &[("Cookie", "a=b")], &LookupOptions::default()));
    let mut waiting = stage.busy("/");
    let unshared = Unshared { is_kept: true, is_personal: true, uncacheable_ms: 9_000, ..Unshared::default() };
    leader.refreshed_for_leader((Arc::new(ResponseHead::new(Status::OK)), Bytes::new()), unshared, stage.now);
    assert_eq!(head_of(&mut waiting).unwrap().unwrap_err(), Release::Private);
    assert_eq!(kind(&stage.ask_with("/", &[("Cookie", "c=d")], &LookupOptions::default())), "hit for miss");
    let again = stage.miss("/");
    assert!(again.stale().is_some_and(|stale| stale.is_live()), "it can be validated still");
    assert_eq!(kind(&stage.ask("/")), "busy");
}

/// RFC 9111 §4.1.
#[test]
fn a_304_that_brings_a_vary_selects_by_it_from_then_on() {
    let stage = stale_stage();
    let ask = |kind: &str| stage.ask_with("/", &[("X-Kind", kind)], &LookupOptions::default());
    let leader = ticket(ask("a"));
    let old = Arc::clone(leader.stale().unwrap());
    let (mut same, mut other) = (follower(ask("a")), follower(ask("b")));
    let renewal =
        Renewal { facts: facts(MINUTE_MS), lifetimes: None, groups: None, tags: None, vary: Some(spec("X-Kind")) };
    let fresh = leader.renewed((Arc::new(ResponseHead::new(Status::OK)), Bytes::new()), renewal, stage.now);
    assert_eq!(whole_body(&mut same), b"body");
    assert_eq!(head_of(&mut other).unwrap().unwrap_err(), Release::VaryMismatch);
    assert!(fresh.is_live() && !old.is_live());
    assert_eq!((kind(&ask("a")), stage.cache.stats().objects), ("fresh", 1));
    assert!(ticket(ask("b")).stale().is_none());
}

#[test]
fn a_304_does_not_replace_what_was_stored_meanwhile() {
    let stage = stale_stage();
    let leader = stage.miss("/");
    let beside = ticket(stage.ask_with("/", &[], &LookupOptions { always_miss: true, ..LookupOptions::default() }));
    stage.fill(beside, storable(MINUTE_MS), b"newer").expect("stored");
    assert!(!refresh(&stage, leader).is_live());
    assert_eq!(body_of(&stage.fresh("/")), b"newer");
}

#[test]
fn a_304_brings_back_what_was_merely_evicted() {
    let stage = stale_stage();
    let leader = stage.miss("/");
    stage.cache.set_memory(0);
    stage.cache.set_memory(1 << 28);
    assert_eq!(stage.cache.stats().objects, 0);
    assert!(refresh(&stage, leader).is_live());
    assert_eq!(body_of(&stage.fresh("/")), b"body");
}

#[test]
fn a_200_replaces_what_was_validated() {
    let stage = stale_stage();
    let leader = stage.miss("/");
    let old = Arc::clone(leader.stale().unwrap());
    stage.fill(leader, storable(MINUTE_MS), b"new").expect("stored");
    assert_eq!((old.is_live(), body_of(&stage.fresh("/"))), (false, b"new".to_vec()));
}

#[test]
fn a_head_request_may_freshen_the_stored_one_only() {
    let stage = stale_stage();
    let fields = fields_of(&[]);
    let stored = stage.cache.find(stage.key("/"), &request(&fields)).expect("stored");
    let head = Arc::new(ResponseHead::new(Status::OK));
    let began = stage.cache.began();
    let freshen = |object| stage.cache.freshen(object, Some((&head, b"")), facts(MINUTE_MS), (began, stage.now));
    let fresh = freshen(&stored).expect("it is the stored one");
    assert!(freshen(&stored).is_none());
    assert!(Arc::ptr_eq(&stage.fresh("/"), &fresh));
}

/// What a HEAD brings that was asked before a purge of its response says nothing of what is left of that.
#[test]
fn an_answer_to_a_head_request_from_before_a_purge_undoes_nothing() {
    let tag = |stage: &Stage| stage.cache.key([&b"tag"[..]]);
    let by_key = |stage: &Stage| stage.cache.purge_as(stage.key("/"), Purge::SOFT, stage.now);
    let by_tag = |stage: &Stage| stage.cache.purge_tags(&[tag(stage)], Purge::SOFT, stage.now);
    let by_another = |stage: &Stage| stage.cache.purge_as(stage.key("/other"), Purge::SOFT, stage.now);
    type Order<'a> = &'a dyn Fn(&Stage) -> usize;
    let orders: [(Order<'_>, &str); 3] =
        [(&by_key, "stale and refresh"), (&by_tag, "stale and refresh"), (&by_another, "fresh")];
    for (tagged, (order, expect)) in [(true, orders[0]), (false, orders[0]), (true, orders[1]), (true, orders[2])] {
        let stage = Stage::new();
        let tags = tagged.then(|| Tags::new([tag(&stage)]).expect("one is few")).flatten();
        stage.fill(stage.miss("/"), StoreAs { tags, ..living(10_000, 10_000, 0) }, b"body").expect("stored");
        let began = stage.cache.began();
        order(&stage);
        let stored = stage.cache.find(stage.key("/"), &request(&fields_of(&[]))).expect("stored");
        stage.cache.freshen(&stored, None, facts(MINUTE_MS), (began, stage.now));
        assert_eq!(kind(&stage.ask("/")), expect, "tagged: {tagged}");
    }
}
