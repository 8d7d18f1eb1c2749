//! What `explain` says is what `ask` then does, and nothing is other than before.

use crate::stage::*;
use cache::{Answer, Description, Explained, LookupOptions, LookupPlan, WhyUncacheable};
use message::Fields;
use rules::{Facts, RequestDirectives, WhyNotStored};

fn options() -> LookupOptions {
    LookupOptions { pass_uncacheable: true, ..LookupOptions::default() }
}

fn explain(stage: &Stage, fields: &Fields) -> Explained {
    stage.cache.explain(stage.key("/"), &request(fields), &options(), stage.now)
}

/// What `ask` would answer to such a plan.
fn kind_of(plan: &LookupPlan) -> &'static str {
    match plan {
        LookupPlan::Serve(_) => "fresh",
        LookupPlan::ServeStale(_) => "stale",
        LookupPlan::Refresh(_) => "stale and refresh",
        LookupPlan::Fetch { .. } => "miss",
        LookupPlan::Follow(..) => "busy",
        LookupPlan::HitForMiss(..) => "hit for miss",
        LookupPlan::HitForPass(_) => "hit for pass",
        LookupPlan::Pass => "uncacheable",
        LookupPlan::Failed(_) => "recent failure",
        LookupPlan::Over(_) => "over",
    }
}

/// It is explained three times, then asked: all say the same, and figures and what is stored are as before.
#[track_caller]
fn check(stage: &Stage, lines: &[(&str, &str)], expect: &str) -> Explained {
    let fields = fields_of(lines);
    let before = stage.cache.stats();
    for _ in 0..3 {
        assert_eq!(kind_of(&explain(stage, &fields).plan), expect, "{lines:?}");
    }
    let explained = explain(stage, &fields);
    assert_eq!(stage.cache.stats(), before, "nothing is counted, and nothing leaves");
    let answer = stage.ask_with("/", lines, &options());
    assert_eq!(kind(&answer), expect, "{lines:?}: asked");
    explained
}

#[test]
fn nothing_stored() {
    let stage = Stage::new();
    let explained = check(&stage, &[], "miss");
    assert!(explained.stored.is_empty() && explained.selected.is_none());
}

#[test]
fn fresh_then_stale() {
    let mut stage = Stage::new();
    let object = stage.store("/", b"abc");
    let explained = check(&stage, &[], "fresh");
    assert_eq!((explained.stored.len(), explained.fetching), (1, 0));
    stage.advance_ms(MINUTE_MS);
    let explained = check(&stage, &[], "miss");
    let LookupPlan::Fetch { stored: Some(stale), is_shared: true } = explained.plan else {
        panic!("with what is stored")
    };
    assert!(std::sync::Arc::ptr_eq(&stale, &object));
}

#[test]
fn stale_while_revalidate() {
    let mut stage = Stage::new();
    let facts = Facts { stale_while_revalidate_ms: MINUTE_MS, ..facts(1_000) };
    stage.fill(stage.miss("/"), cache::StoreAs { facts, ..storable(0) }, b"abc").expect("stored");
    stage.advance_ms(5_000);
    check(&stage, &[], "stale and refresh");
}

#[test]
fn a_fetch_under_way_is_followed_by_nobody() {
    let stage = Stage::new();
    let ticket = stage.miss("/");
    let fields = fields_of(&[]);
    let explained = explain(&stage, &fields);
    assert_eq!((kind_of(&explained.plan), explained.fetching), ("busy", 1));
    // Nobody has joined: it is given up as soon as its own reader leaves.
    assert!(ticket.abandon(failure(0)).is_none());
    check(&stage, &[], "miss");
}

#[test]
fn variants_are_told_apart() {
    let stage = Stage::new();
    let german = [("Accept-Language", "de")];
    stage.fill(ticket(stage.ask_with("/", &german, &options())), varying("Accept-Language"), b"de").expect("stored");
    let explained = check(&stage, &german, "fresh");
    assert_eq!(explained.stored[0].vary().map(|vary| vary.names().count()), Some(1));
    let explained = check(&stage, &[("Accept-Language", "fr")], "miss");
    assert_eq!((explained.stored.len(), explained.selected.is_some()), (1, false));
}

#[test]
fn what_is_known_not_to_be_storable_is_told_with_the_reason() {
    let stage = Stage::new();
    let described = |why_not| Description { why_not, ..stage.description(None, None) };
    stage.miss("/").describe(described(Some(WhyNotStored::Private))).land(None);
    let explained = check(&stage, &[], "uncacheable");
    assert_eq!(explained.why_uncacheable, Some(WhyUncacheable::Rules(WhyNotStored::Private)));
}

#[test]
fn a_body_that_is_too_large_is_told_so() {
    let stage = Stage::with(cache::CacheSettings { object_bytes_max: 10, ..Default::default() });
    stage.describe(stage.miss("/"), Some(storable(MINUTE_MS)), Some(11)).append(bytes::Bytes::from_static(&[0; 11]));
    let explained = check(&stage, &[], "uncacheable");
    assert_eq!(explained.why_uncacheable, Some(WhyUncacheable::TooLarge));
}

#[test]
fn what_is_only_for_others_is_not_told() {
    let stage = Stage::new();
    let personal =
        Description { is_personal: true, why_not: Some(WhyNotStored::Cookie), ..stage.description(None, None) };
    let cookie = [("Cookie", "a=1")];
    ticket(stage.ask_with("/", &cookie, &options())).describe(personal).land(None);
    let explained = check(&stage, &cookie, "uncacheable");
    assert_eq!(explained.why_uncacheable, Some(WhyUncacheable::Rules(WhyNotStored::Cookie)));
    let explained = explain(&stage, &fields_of(&[]));
    assert_eq!((kind_of(&explained.plan), explained.why_uncacheable), ("miss", None));
}

#[test]
fn a_failure_of_a_moment_ago() {
    let stage = Stage::new();
    stage.fails("/", &failure(10_000));
    check(&stage, &[], "recent failure");
}

#[test]
fn what_is_over_stays_until_it_is_asked_for() {
    let mut stage = Stage::new();
    stage.fill(stage.miss("/"), living(1_000, 0, 0), b"abc").expect("stored");
    stage.advance_ms(5_000);
    check(&stage, &[], "miss");
}

#[test]
fn what_is_banned_stays_until_it_is_asked_for() {
    let stage = Stage::new();
    crate::banned::store(&stage, "/", "red");
    crate::banned::ban(&stage, "tag red");
    let tested = |stage: &Stage| stage.cache.bans().iter().map(|ban| (ban.tested, ban.matched)).collect::<Vec<_>>();
    let before = tested(&stage);
    explain(&stage, &fields_of(&[]));
    assert_eq!(tested(&stage), before, "no test is counted");
    check(&stage, &[], "miss");
}

#[test]
fn a_reload_asks_though_it_is_fresh() {
    let stage = Stage::new();
    stage.store("/", b"abc");
    let directives = RequestDirectives { no_cache: true, ..RequestDirectives::default() };
    let options = LookupOptions { directives, ..options() };
    let fields = fields_of(&[]);
    let explained = stage.cache.explain(stage.key("/"), &request(&fields), &options, stage.now);
    assert!(matches!(explained.plan, LookupPlan::Fetch { stored: Some(_), .. }));
    assert!(matches!(stage.ask_with("/", &[], &options), Answer::Miss(ticket) if ticket.stale().is_some()));
}
