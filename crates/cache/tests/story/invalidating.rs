//! Purge and unsafe methods, above all while a fetch is under way: nothing old comes back.

use crate::stage::*;
use bytes::Bytes;
use cache::{FlightState, LookupOptions, Release};
use std::sync::Arc;

#[test]
fn a_purge_drops_all_variants() {
    let stage = Stage::new();
    for coding in ["gzip", "br", "zstd"] {
        let fields = [("Accept-Encoding", coding)];
        let leader = ticket(stage.ask_with("/", &fields, &LookupOptions::default()));
        stage.fill(leader, varying("Accept-Encoding"), coding.as_bytes());
    }
    stage.store("/other", b"stays");
    assert_eq!(stage.cache.purge(stage.key("/")), 3);
    assert_eq!(stage.cache.purge(stage.key("/")), 0);
    assert_eq!(stage.cache.purge(stage.key("/never")), 0);
    assert_eq!(kind(&stage.ask_with("/", &[("Accept-Encoding", "br")], &LookupOptions::default())), "miss");
    assert_eq!(kind(&stage.ask("/other")), "fresh");
}

/// Purges at some moment of a fetch: who waits is served, the next one fetches anew, and nothing is stored.
fn check(described: bool, filling: bool) {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let (mut first, mut waiting) = (leader.follow(0), stage.busy("/"));
    let flight = Arc::clone(leader.flight());
    let mut leader = Some(leader);
    let mut describe = || stage.describe(leader.take().unwrap(), Some(storable(MINUTE_MS)), None);
    let mut draft = described.then(&mut describe);
    if let Some(draft) = draft.as_mut().filter(|_| filling) {
        draft.append("old ".into());
    }
    stage.cache.purge(stage.key("/"));
    assert_eq!(flight.state(), FlightState::Condemned);
    let anew = stage.miss("/");
    let mut newcomer = stage.busy("/");
    let mut draft = draft.unwrap_or_else(describe);
    draft.append("body".into());
    assert!(draft.land(None).is_none());
    let expect: &[u8] = if filling { b"old body" } else { b"body" };
    assert!(head_of(&mut first).unwrap().is_ok() && head_of(&mut waiting).unwrap().is_ok());
    assert_eq!((whole_body(&mut first), whole_body(&mut waiting)), (expect.to_vec(), expect.to_vec()));
    assert!(head_of(&mut newcomer).is_none());
    assert_eq!(kind(&stage.ask("/")), "busy");
    stage.fill(anew, storable(MINUTE_MS), b"new").expect("stored");
    assert_eq!(whole_body(&mut newcomer), b"new");
    assert_eq!(body_of(&stage.fresh("/")), b"new");
}

#[test]
fn a_purge_before_the_head_condemns_the_fetch() {
    check(false, false);
}

#[test]
fn a_purge_after_the_head_condemns_the_fetch() {
    check(true, false);
}

#[test]
fn a_purge_during_the_body_condemns_the_fetch() {
    check(true, true);
}

#[test]
fn a_purge_reaches_fetches_that_nobody_can_find() {
    for options in [
        LookupOptions { always_miss: true, ..LookupOptions::default() },
        LookupOptions { alone: true, ..LookupOptions::default() },
    ] {
        for described in [false, true] {
            let stage = Stage::new();
            let _listed = stage.miss("/");
            let hidden = ticket(stage.ask_with("/", &[], &options));
            let mut reader = hidden.follow(0);
            let hidden =
                if described { Err(stage.describe(hidden, Some(storable(MINUTE_MS)), None)) } else { Ok(hidden) };
            stage.cache.invalidate(stage.key("/"));
            let mut draft =
                hidden.map(|it| stage.describe(it, Some(storable(MINUTE_MS)), None)).unwrap_or_else(|draft| draft);
            draft.append("old".into());
            assert!(draft.land(None).is_none(), "{options:?} {described}");
            assert_eq!(whole_body(&mut reader), b"old");
            assert_eq!(kind(&stage.ask("/")), "miss");
        }
    }
}

#[test]
fn the_number_of_a_purge_outlives_everything_else_of_the_key() {
    let stage = Stage::new();
    let hidden = ticket(stage.ask_with("/", &[], &LookupOptions { always_miss: true, ..LookupOptions::default() }));
    stage.store("/", b"one");
    stage.cache.purge(stage.key("/"));
    stage.store("/", b"two");
    stage.cache.set_memory(0);
    stage.cache.set_memory(1 << 28);
    assert_eq!(stage.cache.stats().objects, 0);
    assert!(stage.fill(hidden, storable(MINUTE_MS), b"old").is_none());
    assert_eq!(kind(&stage.ask("/")), "miss");
}

#[test]
fn a_purge_lets_the_origin_be_asked_again_after_a_failure() {
    let stage = Stage::new();
    stage.fails("/", &failure(60_000));
    assert_eq!(kind(&stage.ask("/")), "recent failure");
    stage.cache.purge(stage.key("/"));
    let old = stage.miss("/");
    stage.cache.purge(stage.key("/"));
    old.fail(failure(60_000), stage.now);
    assert_eq!(kind(&stage.ask("/")), "miss");
}

#[test]
fn a_condemned_fetch_that_fails_or_is_private_says_so_to_who_waits() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let mut waiting = stage.busy("/");
    stage.cache.purge(stage.key("/"));
    leader.fail(failure(0), stage.now);
    assert_eq!(head_of(&mut waiting).unwrap().unwrap_err(), Release::Failed(failure(0)));
    let leader = stage.miss("/");
    let mut waiting = stage.busy("/");
    stage.cache.purge(stage.key("/"));
    let _draft = stage.describe(leader, None, None);
    assert_eq!(head_of(&mut waiting).unwrap().unwrap_err(), Release::Private);
}

/// A response that was fetched past the store and may be stored after all: by what happened since it began.
fn check_late(meanwhile: impl FnOnce(&Stage), expect: bool) {
    let stage = Stage::new();
    stage.describe(stage.miss("/"), None, None).land(None);
    let passing = LookupOptions { pass_uncacheable: true, ..LookupOptions::default() };
    assert_eq!(kind(&stage.ask_with("/", &[], &passing)), "uncacheable");
    let began = stage.cache.began();
    meanwhile(&stage);
    let options = LookupOptions { always_miss: true, began: Some(began), ..LookupOptions::default() };
    let stored = stage.fill(ticket(stage.ask_with("/", &[], &options)), storable(MINUTE_MS), b"body");
    assert_eq!(stored.is_some(), expect);
}

#[test]
fn a_response_that_was_fetched_past_the_store_is_stored_unless_its_key_was_purged() {
    check_late(|_| {}, true);
    check_late(|stage| assert_eq!(stage.cache.purge(stage.key("/other")), 0), true);
    check_late(|stage| assert_eq!(stage.cache.purge(stage.key("/")), 0), false);
    // Nothing else is known of the key any more.
    check_late(
        |stage| {
            let marked = stage.key("/");
            (0..100_000).for_each(|index| {
                let path = format!("/{index}");
                stage.describe(stage.miss(&path), None, None).land(None);
            });
            stage.cache.purge(marked);
            assert!(stage.cache.find(marked, &request(&fields_of(&[]))).is_none());
        },
        false,
    );
}

#[test]
fn an_unsafe_exchange_can_store_its_own_response_after_invalidating() {
    for (stored_before, purged, expect) in
        [(true, false, true), (true, true, false), (false, false, true), (false, true, false)]
    {
        let stage = Stage::new();
        if stored_before {
            stage.store("/", b"before");
        }
        let began = stage.cache.began();
        if purged {
            stage.cache.purge(stage.key("/"));
        }
        let began = stage.cache.invalidate_before_storing(stage.key("/"), began);
        assert_eq!(kind(&stage.ask("/")), "miss");
        let options = LookupOptions { always_miss: true, began: Some(began), ..LookupOptions::default() };
        let stored = stage.fill(ticket(stage.ask_with("/", &[], &options)), storable(MINUTE_MS), b"own");
        assert_eq!(stored.is_some(), expect, "{stored_before} {purged}");
    }
}

#[test]
fn an_older_head_does_not_replace_a_newer_one() {
    let mut stage = Stage::new();
    let slow = stage.miss("/");
    let mut slow = stage.describe(slow, Some(storable(MINUTE_MS)), None);
    stage.advance_ms(5);
    let quick = ticket(stage.ask_with("/", &[], &LookupOptions { always_miss: true, ..LookupOptions::default() }));
    stage.fill(quick, storable(MINUTE_MS), b"newer").expect("stored");
    slow.append(Bytes::from_static(b"older"));
    assert!(slow.land(None).is_none());
    assert_eq!(body_of(&stage.fresh("/")), b"newer");
}
