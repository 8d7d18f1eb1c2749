//! Marks: that responses like one are not stored, as a policy said. For misses, for passes, and for the requests that Vary
//! says and no other.

use std::sync::Arc;

use bytes::Bytes;
use cache::{Answer, CacheSettings, Description, HotTable, LookupOptions, Mark, MarkKind, Release, Ticket};
use message::{ResponseHead, Status};
use rules::Lifetimes;

use crate::stage::*;

fn mark(kind: MarkKind) -> Mark {
    Mark {
        kind,
        lifetimes: Lifetimes { age_ms: 0, ttl_ms: 10_000, grace_ms: 2_000, keep_ms: 0 },
        vary: None,
        tags: None,
    }
}

fn leave(stage: &Stage, ticket: Ticket, mark: Mark) {
    let description = Description { mark: Some(mark), uncacheable_ms: 0, ..stage.description(None, None) };
    ticket.describe(description).land(None);
}

fn marked(kind: MarkKind) -> Stage {
    let stage = Stage::new();
    leave(&stage, stage.miss("/"), mark(kind));
    stage
}

fn check(of: MarkKind, after_ms: u64, options: LookupOptions, expect: &str) {
    let mut stage = marked(of);
    stage.advance_ms(after_ms);
    assert_eq!(kind(&stage.ask_with("/", &[], &options)), expect, "{of:?} after {after_ms} ms, {options:?}");
}

#[test]
fn a_mark_counts_for_its_lifetimes() {
    for (of, expect) in [(MarkKind::Pass, "hit for pass"), (MarkKind::Miss, "hit for miss")] {
        check(of, 0, LookupOptions::default(), expect);
        check(of, 9_999, LookupOptions::default(), expect);
        check(of, 10_000, LookupOptions::default(), "hit for miss");
        check(of, 12_000, LookupOptions::default(), "miss");
        check(of, 0, LookupOptions { always_miss: true, ..LookupOptions::default() }, "miss");
        check(of, 5_000, LookupOptions { ttl_max_ms: Some(4_000), ..LookupOptions::default() }, "miss");
    }
    let stage = marked(MarkKind::Pass);
    let Answer::HitForPass(mark) = stage.ask("/") else { panic!("no mark") };
    assert_eq!(mark.lifetimes(stage.now).ttl_ms, 10_000);
}

#[test]
fn who_waits_is_released_at_once_and_meets_the_mark() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let (mut first, mut waiting) = (leader.follow(0), stage.busy("/"));
    let bell = Bell::new();
    assert!(poll_with(&bell, |cx| waiting.poll_head(cx)).is_pending());
    let description = Description { mark: Some(mark(MarkKind::Pass)), ..stage.description(None, None) };
    let mut draft = leader.describe(description);
    assert_eq!((bell.rings(), head_of(&mut waiting).unwrap().err()), (1, Some(Release::Private)));
    assert_eq!(kind(&stage.ask("/")), "hit for pass", "before the body has come");
    draft.append("own".into());
    draft.land(None);
    assert!(head_of(&mut first).unwrap().is_ok());
    assert_eq!(whole_body(&mut first), b"own");
}

#[test]
fn misses_beside_one_another_until_one_can_be_stored() {
    let stage = marked(MarkKind::Miss);
    let [one, other] = [(); 2].map(|()| match stage.ask("/") {
        Answer::HitForMiss(ticket, _) => ticket,
        answer => panic!("{answer:?}"),
    });
    assert!(one.stale().is_none() && other.stale().is_none());
    let mut draft = stage.describe(one, Some(living(10_000, 0, 0)), None);
    assert_eq!(kind(&stage.ask("/")), "busy");
    draft.append("body".into());
    draft.land(None);
    assert_eq!((kind(&stage.ask("/")), stage.cache.stats().objects), ("fresh", 1));
    leave(&stage, other, mark(MarkKind::Pass));
    assert_eq!(kind(&stage.ask("/")), "hit for pass", "the newer of two counts");
}

#[test]
fn nobody_waits_behind_a_fetch_that_a_mark_has_overtaken() {
    let stage = Stage::new();
    let slow = stage.miss("/");
    let quick = ticket(stage.ask_with("/", &[], &LookupOptions { always_miss: true, ..LookupOptions::default() }));
    leave(&stage, quick, mark(MarkKind::Miss));
    assert_eq!(kind(&stage.ask("/")), "hit for miss");
    drop(slow);
}

#[test]
fn a_mark_is_met_by_the_requests_that_vary_says() {
    let stage = Stage::new();
    let ask = |user: &str| stage.ask_with("/", &[("X-User", user)], &LookupOptions::default());
    leave(&stage, ticket(ask("known")), Mark { vary: Some(spec("X-User")), ..mark(MarkKind::Pass) });
    stage.fill(ticket(ask("nobody")), varying("X-User"), b"for all").expect("stored");
    assert_eq!([kind(&ask("known")), kind(&ask("nobody")), kind(&ask("other"))], ["hit for pass", "fresh", "miss"]);
    let any = LookupOptions { ignore_vary: true, ..LookupOptions::default() };
    assert_eq!(kind(&stage.ask_with("/", &[("X-User", "known")], &any)), "fresh", "the newest");
}

#[test]
fn a_mark_takes_the_place_of_what_was_stored() {
    let mut stage = Stage::new();
    let old = stage.fill(stage.miss("/"), living(1_000, 0, 9_000), b"old").expect("stored");
    let (mut hot, key) = (HotTable::new(&stage.cache), stage.key("/"));
    hot.remember(key, Default::default(), &old);
    stage.advance_ms(2_000);
    let validating = stage.miss("/");
    assert!(validating.stale().is_some());
    leave(&stage, validating, mark(MarkKind::Miss));
    assert!(!old.is_live() && stage.cache.stats().objects == 1);
    let fields = fields_of(&[]);
    assert!(hot.get(key, Default::default(), &request(&fields)).is_none());
    assert!(stage.cache.find(key, &request(&fields)).is_none(), "a mark is no response");
}

#[test]
fn a_304_may_end_in_a_mark() {
    for left in [None, Some(mark(MarkKind::Pass))] {
        let mut stage = Stage::new();
        stage.fill(stage.miss("/"), living(1_000, 0, 9_000), b"old").expect("stored");
        stage.advance_ms(2_000);
        let leader = stage.miss("/");
        let (mut first, mut waiting) = (leader.follow(0), stage.busy("/"));
        let heads = (Arc::new(ResponseHead::new(Status::OK)), Bytes::new());
        let expect = if left.is_some() { "hit for pass" } else { "miss" };
        assert!(!leader.refreshed_privately(heads, left, stage.now).is_live());
        assert!(head_of(&mut first).unwrap().is_ok());
        assert_eq!(whole_body(&mut first), b"old");
        assert_eq!(head_of(&mut waiting).unwrap().err(), Some(Release::Private));
        assert_eq!(kind(&stage.ask("/")), expect);
    }
}

#[test]
fn a_mark_goes_like_everything_stored() {
    let stage = marked(MarkKind::Pass);
    assert_eq!(stage.cache.purge(stage.key("/")), 1);
    assert_eq!(kind(&stage.ask("/")), "miss");
    let condemned = stage.miss("/");
    stage.cache.purge(stage.key("/"));
    leave(&stage, condemned, mark(MarkKind::Pass));
    assert_eq!(kind(&stage.ask("/")), "miss", "what began before a purge leaves none");
    leave(&stage, stage.miss("/"), mark(MarkKind::Pass));
    stage.cache.set_memory(0);
    assert_eq!(kind(&stage.ask("/")), "miss", "evicted");
    assert_eq!((stage.cache.stats().keys, stage.cache.account().used()), (0, 0));
}

#[test]
fn what_a_mark_overtakes_is_there_when_the_mark_is_over() {
    let mut stage = Stage::new();
    stage.fill(stage.miss("/"), living(60_000, 0, 0), b"good").expect("stored");
    let quick = ticket(stage.ask_with("/", &[], &LookupOptions { always_miss: true, ..LookupOptions::default() }));
    leave(&stage, quick, mark(MarkKind::Miss));
    assert_eq!(kind(&stage.ask("/")), "hit for miss");
    stage.advance_ms(12_000);
    assert_eq!(body_of(&stage.fresh("/")), b"good");
}

#[test]
fn marks_take_no_place_of_a_variant() {
    let stage = Stage::with(CacheSettings { variants_max: 2, ..CacheSettings::default() });
    let ask = |value: &str| stage.ask_with("/", &[("X-A", value)], &LookupOptions::default());
    for value in ["1", "2"] {
        stage.fill(ticket(ask(value)), varying("X-A"), b"page");
    }
    for value in ["3", "4", "5"] {
        leave(&stage, ticket(ask(value)), Mark { vary: Some(spec("X-A")), ..mark(MarkKind::Miss) });
    }
    let kinds = ["1", "2", "3", "4", "5"].map(|value| kind(&ask(value)));
    assert_eq!(kinds, ["fresh", "fresh", "miss", "hit for miss", "hit for miss"], "two of each");
}
