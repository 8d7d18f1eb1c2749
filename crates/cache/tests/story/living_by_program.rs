//! Lifetimes that a policy gave: ttl, then grace, then keep, and nothing of RFC 9111 beside them.

use std::sync::Arc;

use bytes::Bytes;
use cache::{Answer, HotTable, LookupOptions, Renewal, StoreAs};
use message::{ResponseHead, Status};
use rules::{Facts, Freshness, Lifetimes, RequestDirectives};

use crate::stage::*;

/// Ten seconds of ttl, five of grace, three of keep.
fn stored_since(after_ms: u64) -> Stage {
    let mut stage = Stage::new();
    stage.fill(stage.miss("/"), living(10_000, 5_000, 3_000), b"body").expect("stored");
    stage.advance_ms(after_ms);
    stage
}

fn check(after_ms: u64, options: LookupOptions, expect: &str, validates: bool) {
    let stage = stored_since(after_ms);
    let answer = stage.ask_with("/", &[], &options);
    assert_eq!(kind(&answer), expect, "after {after_ms} ms, {options:?}");
    if let Answer::Miss(ticket) = answer {
        assert_eq!(ticket.stale().is_some(), validates, "after {after_ms} ms, {options:?}");
    }
}

#[test]
fn a_life_is_ttl_then_grace_then_keep() {
    check(9_999, LookupOptions::default(), "fresh", false);
    check(10_000, LookupOptions::default(), "stale and refresh", false);
    check(14_999, LookupOptions::default(), "stale and refresh", false);
    check(15_000, LookupOptions::default(), "miss", true);
    check(17_999, LookupOptions::default(), "miss", true);
    check(18_000, LookupOptions::default(), "miss", false);
}

#[test]
fn a_request_narrows_ttl_and_grace() {
    let ttl = |ms| LookupOptions { ttl_max_ms: Some(ms), ..LookupOptions::default() };
    let age = |ms| LookupOptions { age_max_ms: Some(ms), ..LookupOptions::default() };
    let grace = |ms| LookupOptions { grace_max_ms: Some(ms), ..LookupOptions::default() };
    for bound in [ttl, age] {
        check(4_999, bound(5_000), "fresh", false);
        // It has not expired: there is nothing to validate, and no grace to serve it in.
        check(5_000, bound(5_000), "miss", false);
        check(10_000, bound(8_000), "stale and refresh", false);
        check(13_000, bound(8_000), "miss", true);
    }
    check(11_000, grace(2_000), "stale and refresh", false);
    check(12_000, grace(2_000), "miss", true);
    check(14_000, grace(60_000), "stale and refresh", false);
    check(5_000, LookupOptions { always_miss: true, ..LookupOptions::default() }, "miss", false);
}

#[test]
fn what_rfc_9111_says_of_it_counts_for_nothing() {
    let facts = Facts { must_revalidate: true, always_validate: true, ..facts(1) };
    let stage = Stage::new();
    stage.fill(stage.miss("/"), StoreAs { facts, ..living(10_000, 5_000, 0) }, b"body").expect("stored");
    assert_eq!(kind(&stage.ask("/")), "fresh");
    let options = LookupOptions {
        directives: RequestDirectives { no_cache: true, max_age_s: Some(0), ..RequestDirectives::default() },
        ..LookupOptions::default()
    };
    assert_eq!(kind(&stage.ask_with("/", &[], &options)), "fresh");
}

#[test]
fn one_refreshes_it_in_its_grace_and_the_others_are_served() {
    let stage = stored_since(12_000);
    let Answer::Stale(_, Some(refresh)) = stage.ask("/") else { panic!("no refresh") };
    assert_eq!(kind(&stage.ask("/")), "stale");
    assert_eq!(
        kind(&stage.ask_with("/", &[], &LookupOptions { grace_max_ms: Some(0), ..LookupOptions::default() })),
        "busy"
    );
    refresh.fail(failure(0), stage.now);
    assert_eq!(kind(&stage.ask("/")), "stale and refresh", "what failed leaves it in place");
}

#[test]
fn outside_its_grace_nothing_stands_in_for_a_failure() {
    let stage = stored_since(16_000);
    stage.fails("/", &failure(1_000));
    assert_eq!(kind(&stage.ask("/")), "recent failure");
}

#[test]
fn what_is_left_of_its_life_is_told() {
    let mut stage = Stage::new();
    let lifetimes = Lifetimes { age_ms: 7_000, ttl_ms: 10_000, grace_ms: 5_000, keep_ms: 3_000 };
    let object = stage.fill(stage.miss("/"), StoreAs { lifetimes: Some(lifetimes), ..storable(0) }, b"body");
    let object = object.expect("stored");
    assert!(object.is_by_program());
    assert_eq!((object.lifetimes(stage.now), object.age_s(stage.now)), (lifetimes, 7));
    stage.advance_ms(11_000);
    assert_eq!(object.lifetimes(stage.now), Lifetimes { age_ms: 18_000, ttl_ms: -1_000, ..lifetimes });
    let by_rfc = stage.store("/other", b"body");
    assert!(!by_rfc.is_by_program() && by_rfc.lifetimes(stage.now).ttl_ms == MINUTE_MS as i64);
}

#[test]
fn it_is_dropped_when_its_life_is_over() {
    let stage = stored_since(18_000);
    drop(stage.miss("/"));
    let stats = stage.cache.stats();
    assert_eq!((stats.objects, stats.keys, stats.expired, stats.memory_bytes), (0, 0, 1, 0));
}

#[test]
fn the_reaper_drops_what_nobody_asks_for() {
    let mut stage = Stage::new();
    for index in 0..2_000 {
        let life = if index % 2 == 0 { living(1_000, 1_000, 1_000) } else { living(1_000, 9_000, 9_000) };
        stage.fill(stage.miss(&format!("/{index}")), life, b"body").expect("stored");
    }
    stage.store("/by-its-fields", b"body");
    assert_eq!(stage.cache.reap(stage.now, usize::MAX), 0);
    stage.advance_ms(3_000);
    let some = stage.cache.reap(stage.now, 200);
    assert!((1..400).contains(&some), "{some}");
    assert_eq!(some + stage.cache.reap(stage.now, usize::MAX), 1_000);
    stage.advance_ms(10 * MINUTE_MS);
    assert_eq!(stage.cache.reap(stage.now, usize::MAX), 1_000);
    let stats = stage.cache.stats();
    assert_eq!((stats.objects, stats.expired), (1, 2_000));
    assert_eq!(stage.cache.reap(stage.now, 0), 0, "a round without end it is not");
}

/// Varnish serves nothing whose ttl was never above zero, grace or not.
#[test]
fn without_a_ttl_it_answers_only_who_waited() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let mut waiting = stage.busy("/");
    stage.fill(leader, living(0, 60_000, 60_000), b"body");
    assert!(head_of(&mut waiting).unwrap().is_ok());
    assert_eq!(whole_body(&mut waiting), b"body");
    assert_eq!(kind(&stage.ask("/")), "miss");
}

#[test]
fn a_hot_table_serves_it_while_it_is_fresh() {
    let mut stage = Stage::new();
    let object = stage.fill(stage.miss("/"), living(10_000, 5_000, 0), b"body").expect("stored");
    let (mut hot, key, fields) = (HotTable::new(&stage.cache), stage.key("/"), fields_of(&[]));
    hot.remember(key, Default::default(), &object);
    let asks = RequestDirectives::default();
    assert!(
        hot.get(key, Default::default(), &request(&fields))
            .is_some_and(|it| it.freshness(stage.now, &asks) == Freshness::Fresh)
    );
    stage.advance_ms(10_000);
    assert!(
        hot.get(key, Default::default(), &request(&fields))
            .is_some_and(|it| it.freshness(stage.now, &asks) != Freshness::Fresh)
    );
}

#[test]
fn a_304_gives_it_another_life() {
    let mut stage = stored_since(16_000);
    let head = || (Arc::new(ResponseHead::new(Status::OK)), Bytes::new());
    let lifetimes = Some(Lifetimes { age_ms: 0, ttl_ms: 1_000, grace_ms: 0, keep_ms: 9_000 });
    let renewal = Renewal { facts: Facts::default(), lifetimes, vary: None, groups: None, tags: None };
    let object = stage.miss("/").renewed(head(), renewal, stage.now);
    assert_eq!((body_of(&object), kind(&stage.ask("/"))), (b"body".to_vec(), "fresh"));
    stage.advance_ms(2_000);
    let again = stage.miss("/");
    assert!(again.stale().is_some(), "within its keep");
    again.refreshed(head(), facts(MINUTE_MS), None, stage.now);
    assert!(!stage.fresh("/").is_by_program(), "by its fields again");
}
