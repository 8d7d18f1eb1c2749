//! What `ask` answers: the table of what is stored, what is under way and what is wished.

use crate::stage::*;
use cache::{Answer, Key, LookupOptions, Release, StoreAs};
use rules::{Facts, RequestDirectives};

fn check(store_as: StoreAs, after_ms: u64, options: LookupOptions, expect: &str) {
    let mut stage = Stage::new();
    stage.fill(stage.miss("/"), store_as.clone(), b"body");
    stage.advance_ms(after_ms);
    let answer = stage.ask_with("/", &[], &options);
    assert_eq!(kind(&answer), expect, "{:?} after {after_ms} ms, {options:?}", store_as.facts);
}

fn with(facts: Facts) -> StoreAs {
    StoreAs { facts, ..storable(0) }
}

fn asking(directives: RequestDirectives) -> LookupOptions {
    LookupOptions { directives, ..LookupOptions::default() }
}

#[test]
fn what_is_stored_is_judged_by_its_facts() {
    let grace = Facts { stale_while_revalidate_ms: 5_000, ..facts(1_000) };
    check(storable(1_000), 999, LookupOptions::default(), "fresh");
    check(storable(1_000), 1_000, LookupOptions::default(), "miss");
    check(with(grace), 1_000, LookupOptions::default(), "stale and refresh");
    check(with(grace), 5_999, LookupOptions::default(), "stale and refresh");
    check(with(grace), 6_000, LookupOptions::default(), "miss");
    check(with(Facts { always_validate: true, ..facts(1_000) }), 0, LookupOptions::default(), "miss");
}

#[test]
fn options_narrow_what_may_be_served() {
    let grace = Facts { stale_while_revalidate_ms: 5_000, ..facts(1_000) };
    check(
        with(grace),
        2_000,
        LookupOptions { grace_max_ms: Some(1_000), ..LookupOptions::default() },
        "stale and refresh",
    );
    check(with(grace), 2_001, LookupOptions { grace_max_ms: Some(1_000), ..LookupOptions::default() }, "miss");
    check(storable(9_000), 500, LookupOptions { age_max_ms: Some(500), ..LookupOptions::default() }, "fresh");
    check(storable(9_000), 501, LookupOptions { age_max_ms: Some(500), ..LookupOptions::default() }, "miss");
    check(storable(9_000), 0, LookupOptions { always_miss: true, ..LookupOptions::default() }, "miss");
    check(storable(9_000), 1, asking(RequestDirectives { no_cache: true, ..Default::default() }), "miss");
    check(storable(1_000), 3_000, asking(RequestDirectives { max_stale_s: Some(2), ..Default::default() }), "stale");
    check(storable(1_000), 3_001, asking(RequestDirectives { max_stale_s: Some(2), ..Default::default() }), "miss");
}

#[test]
fn one_fetches_and_the_others_follow() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    assert_eq!(kind(&stage.ask("/")), "busy");
    assert_eq!(kind(&stage.ask("/other")), "miss");
    let alone = LookupOptions { alone: true, ..LookupOptions::default() };
    assert_eq!(kind(&stage.ask_with("/", &[], &alone)), "miss");
    stage.fill(leader, storable(MINUTE_MS), b"body");
    assert_eq!(body_of(&stage.fresh("/")), b"body");
}

/// req.hash_ignore_busy: nobody is waited for, but who has a head already is followed.
#[test]
fn who_ignores_the_busy_follows_those_that_stream() {
    let stage = Stage::new();
    let hasty = LookupOptions { ignore_busy: true, ..LookupOptions::default() };
    assert_eq!(kind(&stage.ask_with("/first", &[], &hasty)), "miss");
    let leader = stage.miss("/");
    let Answer::Miss(other, ..) = stage.ask_with("/", &[], &hasty) else { panic!("it waits") };
    drop(other);
    let draft = stage.describe(leader, Some(storable(MINUTE_MS)), None);
    assert_eq!(kind(&stage.ask_with("/", &[], &hasty)), "busy");
    assert_eq!(kind(&stage.ask_with("/", &[], &LookupOptions { alone: true, ..LookupOptions::default() })), "miss");
    draft.land(None);
}

#[test]
fn one_refreshes_and_the_others_are_served_stale() {
    let mut stage = Stage::new();
    let grace = Facts { stale_while_revalidate_ms: MINUTE_MS, ..facts(1_000) };
    stage.fill(stage.miss("/"), with(grace), b"old");
    stage.advance_ms(2_000);
    let Answer::Stale(old, Some(refresh)) = stage.ask("/") else { panic!("no refresh") };
    assert_eq!(body_of(&old), b"old");
    assert_eq!(kind(&stage.ask("/")), "stale");
    assert!(refresh.stale().is_some_and(|stale| std::sync::Arc::ptr_eq(stale, &old)));
    stage.fill(refresh, storable(MINUTE_MS), b"new");
    assert_eq!(body_of(&stage.fresh("/")), b"new");
    assert!(!old.is_live());
}

#[test]
fn what_was_found_is_refreshed_once_and_only_while_it_is_stored() {
    let mut stage = Stage::new();
    let grace = Facts { stale_while_revalidate_ms: MINUTE_MS, ..facts(1_000) };
    let object = stage.fill(stage.miss("/"), with(grace), b"old").expect("it is stored");
    stage.advance_ms(2_000);
    let fields = fields_of(&[]);
    let refresh = |stage: &Stage| stage.cache.refresh(&object, &request(&fields), &LookupOptions::default(), stage.now);
    let first = refresh(&stage).expect("nobody else does it");
    assert!(first.stale().is_some_and(|stale| std::sync::Arc::ptr_eq(stale, &object)));
    assert!(refresh(&stage).is_none(), "it is under way");
    assert_eq!(kind(&stage.ask("/")), "stale");
    first.fail(failure(1_000), stage.now);
    refresh(&stage).expect("that may have been about one request").fail(failure(1_000), stage.now);
    assert!(refresh(&stage).is_none(), "it failed a moment ago");
    stage.advance_ms(1_000);
    stage.fill(refresh(&stage).expect("a moment is over"), storable(MINUTE_MS), b"new");
    assert!(refresh(&stage).is_none(), "it was replaced");
    stage.cache.purge(stage.key("/"));
    assert!(refresh(&stage).is_none(), "there is none");
}

#[test]
fn what_is_not_storable_is_fetched_in_parallel_for_a_while() {
    let mut stage = Stage::new();
    stage.describe(stage.miss("/"), None, None).land(None);
    let one = stage.ask("/");
    assert_eq!((kind(&one), kind(&stage.ask("/"))), ("hit for miss", "hit for miss"));
    // As soon as one of them turns out storable, the others can follow it.
    let Answer::HitForMiss(ticket, _) = one else { unreachable!() };
    let mut draft = stage.describe(ticket, Some(storable(MINUTE_MS)), None);
    assert_eq!(kind(&stage.ask("/")), "busy");
    draft.append("x".into());
    draft.land(None);
    assert_eq!(kind(&stage.ask("/")), "fresh");
    stage.cache.purge(stage.key("/"));
    stage.describe(stage.miss("/"), None, None).land(None);
    stage.advance_ms(10_000);
    assert_eq!(kind(&stage.ask("/")), "miss");
}

#[test]
fn a_failure_is_remembered_as_long_as_it_says() {
    let mut stage = Stage::new();
    stage.fails("/", &failure(1_000));
    stage.advance_ms(999);
    match stage.ask("/") {
        Answer::RecentFailure(again) => assert_eq!(again, failure(1_000)),
        other => panic!("{other:?}"),
    }
    let anew = LookupOptions { always_miss: true, ..LookupOptions::default() };
    assert_eq!(kind(&stage.ask_with("/", &[], &anew)), "miss");
    stage.advance_ms(1);
    stage.miss("/").fail(failure(0), stage.now);
    assert_eq!(kind(&stage.ask("/")), "miss");
}

/// What one request alone did not get, because of its fields perhaps, says nothing to the others.
#[test]
fn a_failure_before_a_head_is_told_to_others_once_a_second_fetch_has_failed_so() {
    let mut stage = Stage::new();
    let leader = stage.miss("/");
    let mut waiting = stage.busy("/");
    leader.fail(failure(1_000), stage.now);
    assert_eq!(head_of(&mut waiting).unwrap().unwrap_err(), Release::Failed(failure(1_000)));
    assert_eq!(kind(&stage.ask("/")), "miss", "it was one fetch, though two had it");
    // The second one may take its time.
    stage.advance_ms(119_999);
    stage.miss("/").fail(failure(1_000), stage.now);
    assert_eq!(kind(&stage.ask("/")), "recent failure");
    // From now on one each time is enough.
    stage.advance_ms(1_000);
    stage.miss("/").fail(failure(1_000), stage.now);
    assert_eq!(kind(&stage.ask("/")), "recent failure");
    stage.advance_ms(120_000);
    stage.miss("/").fail(failure(1_000), stage.now);
    assert_eq!(kind(&stage.ask("/")), "miss", "long ago");
}

#[test]
fn an_answer_of_whatever_kind_ends_the_memory_of_failures() {
    let check = |answer: fn(&Stage), expect: &str| {
        let mut stage = Stage::new();
        stage.fails("/", &failure(1_000));
        stage.advance_ms(1_000);
        answer(&stage);
        stage.advance_ms(2 * MINUTE_MS - 2_000);
        let ticket = match stage.ask("/") {
            Answer::Miss(ticket) | Answer::HitForMiss(ticket, _) => ticket,
            other => panic!("{other:?}"),
        };
        ticket.fail(failure(1_000), stage.now);
        assert_eq!(kind(&stage.ask("/")), expect);
    };
    check(|_| {}, "recent failure");
    check(|stage| drop(stage.fill(stage.miss("/"), storable(MINUTE_MS), b"page")), "miss");
    check(|stage| drop(stage.describe(stage.miss("/"), None, None).land(None)), "miss");
}

#[test]
fn what_is_stale_stands_in_for_a_remembered_failure_unless_it_must_not() {
    for (must_revalidate, expect) in [(false, "stale"), (true, "recent failure")] {
        let mut stage = Stage::new();
        stage.fill(stage.miss("/"), with(Facts { must_revalidate, ..facts(1_000) }), b"old");
        stage.advance_ms(2_000);
        stage.fails("/", &failure(1_000));
        assert_eq!(kind(&stage.ask("/")), expect);
    }
}

#[test]
fn marks_and_failures_of_invented_keys_are_bounded() {
    let stage = Stage::new();
    for index in 0..40_000 {
        let path = format!("/{index}");
        match index % 2 {
            0 => drop(stage.describe(stage.miss(&path), None, None).land(None)),
            _ => stage.fails(&path, &failure(60_000)),
        }
    }
    let keys = stage.cache.stats().keys;
    assert!((8_000..=16_384).contains(&keys), "{keys}");
    assert_eq!(kind(&stage.ask("/39999")), "recent failure");
    assert_eq!(kind(&stage.ask("/0")), "miss");
}

#[test]
fn a_ticket_that_is_dropped_lets_nobody_wait() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let mut waiting = stage.busy("/");
    assert!(head_of(&mut waiting).is_none());
    drop(leader);
    let release = head_of(&mut waiting).expect("it is released").unwrap_err();
    assert!(matches!(release, cache::Release::Failed(failure) if failure.token == "fetch-abandoned"));
    assert_eq!(kind(&stage.ask("/")), "miss");
    drop(waiting);
    assert_eq!((stage.cache.stats().keys, stage.cache.account().used()), (0, 0));
}

#[test]
fn keys_are_compared_whole() {
    let stage = Stage::new();
    let key = |parts: &[&str]| -> Key { stage.cache.key(parts.iter().map(|part| part.as_bytes())) };
    // J01: host, scheme and port are told apart; J04: so are `?` and no query, by who builds the parts.
    assert_ne!(key(&["http", "a", "/"]), key(&["https", "a", "/"]));
    assert_ne!(key(&["http", "a", "/"]), key(&["http", "a/", ""]));
    assert_ne!(key(&["http", "a", "/"]), key(&["http", "a", "/", ""]));
}
