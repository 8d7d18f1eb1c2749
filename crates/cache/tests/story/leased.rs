//! A node of a fleet that has not heard the others' purges for a lease: what it may serve, and whom it asks.

use cache::{Answer, LookupOptions, LookupPlan, Now, Stamp};
use rules::Lifetimes;

use crate::stage::*;

const LEASE_MS: u64 = 5_000;

/// One that has just heard all there is.
fn leased() -> Stage {
    let stage = Stage::new();
    stage.cache.fleet_lease().begin(LEASE_MS);
    stage.cache.fleet_lease().extend(stage.now.mono_ms + LEASE_MS);
    stage
}

impl Stage {
    /// As a request asks at this moment.
    fn asks(&mut self, path: &str) -> Answer {
        self.now = self.cache.now(self.now.stamp());
        self.ask(path)
    }

    fn later(&mut self, ms: u64) {
        let Now { wall_ms, mono_ms, .. } = self.now;
        self.now = self.cache.now(Stamp { wall_ms: wall_ms + ms, mono_ms: mono_ms + ms });
    }
}

#[test]
fn within_the_lease_what_is_fresh_is_served() {
    let mut stage = leased();
    stage.store("/", b"body");
    stage.later(LEASE_MS - 1);
    assert!(matches!(stage.asks("/"), Answer::Fresh(_)));
}

#[test]
fn behind_the_lease_the_origin_is_asked_and_may_confirm() {
    let mut stage = leased();
    let stored = stage.store("/", b"body");
    stage.later(LEASE_MS);
    let ticket = ticket(stage.asks("/"));
    assert!(std::sync::Arc::ptr_eq(ticket.stale().expect("there is something to confirm"), &stored));
}

#[test]
fn what_was_fetched_since_it_lapsed_is_served_for_a_lease() {
    let mut stage = leased();
    stage.later(60_000);
    stage.store("/", b"body");
    assert!(matches!(stage.asks("/"), Answer::Fresh(_)), "an origin is not asked for each request");
    stage.later(LEASE_MS);
    assert!(matches!(stage.asks("/"), Answer::Miss(_)));
}

#[test]
fn a_fetch_from_before_is_followed_by_nobody_who_comes_behind_the_lease() {
    let mut stage = leased();
    let long = stage.miss("/");
    assert!(matches!(stage.asks("/"), Answer::Busy(_)));
    stage.later(60_000);
    let own = ticket(stage.asks("/"));
    assert!(matches!(stage.asks("/"), Answer::Busy(_)), "its own fetch is young");
    drop((long, own));
}

#[test]
fn once_it_hears_again_what_is_stored_is_as_good_as_before() {
    let mut stage = leased();
    stage.store("/", b"body");
    stage.later(LEASE_MS);
    assert!(matches!(stage.asks("/"), Answer::Miss(_)));
    stage.cache.fleet_lease().extend(stage.now.mono_ms + LEASE_MS);
    assert!(matches!(stage.asks("/"), Answer::Fresh(_)));
}

#[test]
fn what_may_have_been_missed_is_confirmed_whatever_is_heard_since() {
    let mut stage = leased();
    stage.store("/old", b"body");
    let number = stage.cache.condemn();
    stage.store("/new", b"body");
    assert!(matches!(stage.asks("/old"), Answer::Miss(_)));
    assert!(matches!(stage.asks("/new"), Answer::Fresh(_)));
    assert_eq!(number, stage.cache.sequence());
}

/// Its lifetimes, and those of marks, are a program's; what was purged elsewhere is not.
#[test]
fn what_a_program_keeps_is_confirmed_too() {
    let mut stage = leased();
    let lives = Lifetimes { age_ms: 0, ttl_ms: 600_000, grace_ms: 600_000, keep_ms: 600_000 };
    let mut storable = storable(0);
    storable.lifetimes = Some(lives);
    let ticket_of_it = stage.miss("/");
    stage.fill(ticket_of_it, storable, b"body").expect("it is stored");
    assert!(matches!(stage.asks("/"), Answer::Fresh(_)));
    stage.later(LEASE_MS);
    assert!(matches!(stage.asks("/"), Answer::Miss(ticket) if ticket.stale().is_some()), "and no grace lets it out");
}

#[test]
fn an_explanation_says_the_same() {
    let mut stage = leased();
    stage.store("/", b"body");
    stage.later(LEASE_MS);
    let (fields, options) = (fields_of(&[]), LookupOptions::default());
    let explained = stage.cache.explain(stage.key("/"), &request(&fields), &options, stage.now);
    assert!(matches!(explained.plan, LookupPlan::Fetch { stored: Some(_), .. }), "{:?}", explained.plan);
}
