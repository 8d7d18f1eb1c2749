//! Vary: variants, several specifications, and waiters whom the response does not fit.

use crate::stage::*;
use cache::{Answer, CacheSettings, HotTable, LookupOptions, Release};
use std::sync::Arc;

const GZIP: &[(&str, &str)] = &[("Accept-Encoding", "gzip")];
const BROTLI: &[(&str, &str)] = &[("Accept-Encoding", "br")];

fn ask(stage: &Stage, fields: &[(&str, &str)]) -> Answer {
    stage.ask_with("/", fields, &LookupOptions::default())
}

fn fill(stage: &Stage, fields: &[(&str, &str)], names: &str, body: &str) {
    let store_as = if names.is_empty() { storable(MINUTE_MS) } else { varying(names) };
    let anew = LookupOptions { always_miss: true, ..LookupOptions::default() };
    stage.fill(ticket(stage.ask_with("/", fields, &anew)), store_as, body.as_bytes()).expect("stored");
}

#[test]
fn each_variant_has_its_own_response() {
    let stage = Stage::new();
    fill(&stage, GZIP, "Accept-Encoding", "gzip");
    assert_eq!(kind(&ask(&stage, BROTLI)), "miss");
    fill(&stage, BROTLI, "Accept-Encoding", "br");
    assert_eq!(body_of(&fresh(ask(&stage, GZIP))), b"gzip");
    assert_eq!(body_of(&fresh(ask(&stage, BROTLI))), b"br");
    assert_eq!(kind(&ask(&stage, &[])), "miss", "absent is not empty");
    let any = LookupOptions { ignore_vary: true, ..LookupOptions::default() };
    assert_eq!(body_of(&fresh(stage.ask_with("/", &[], &any))), b"br");
}

#[test]
fn order_and_case_of_codings_make_no_variant() {
    let stage = Stage::new();
    fill(&stage, &[("Accept-Encoding", "gzip, br")], "accept-encoding", "both");
    assert_eq!(kind(&ask(&stage, &[("Accept-Encoding", "BR,gzip")])), "fresh");
}

#[test]
fn a_waiter_whom_the_response_does_not_fit_is_regrouped() {
    let stage = Stage::new();
    let gzip = ticket(ask(&stage, GZIP));
    // Before the head comes nobody knows that it varies.
    let mut same = follower(ask(&stage, GZIP));
    let (mut one, mut other) = (follower(ask(&stage, BROTLI)), follower(ask(&stage, BROTLI)));
    let mut draft = stage.describe(gzip, Some(varying("Accept-Encoding")), None);
    assert!(head_of(&mut same).unwrap().is_ok());
    assert_eq!(head_of(&mut one).unwrap().unwrap_err(), Release::VaryMismatch);
    assert_eq!(head_of(&mut other).unwrap().unwrap_err(), Release::VaryMismatch);
    // They ask again: one fetches for both, since it is known by now what the response varies on.
    let brotli = ticket(ask(&stage, BROTLI));
    let mut other = follower(ask(&stage, BROTLI));
    assert_eq!(kind(&ask(&stage, GZIP)), "busy");
    draft.append("gzip".into());
    draft.land(None).expect("stored");
    stage.fill(brotli, varying("Accept-Encoding"), b"br").expect("stored");
    assert_eq!(whole_body(&mut same), b"gzip");
    assert!(head_of(&mut other).unwrap().is_ok());
    assert_eq!(whole_body(&mut other), b"br");
    assert_eq!(body_of(&fresh(ask(&stage, GZIP))), b"gzip");
}

#[test]
fn a_waiter_who_comes_to_a_landed_flight_is_checked_too() {
    let stage = Stage::new();
    let gzip = ticket(ask(&stage, GZIP));
    let mut late = follower(ask(&stage, BROTLI));
    stage.fill(gzip, varying("Accept-Encoding"), b"gzip").expect("stored");
    assert_eq!(head_of(&mut late).unwrap().unwrap_err(), Release::VaryMismatch);
}

#[test]
fn of_several_specifications_the_newest_that_has_it_answers() {
    let stage = Stage::new();
    let both: &[(&str, &str)] = &[("Accept-Encoding", "gzip"), ("Accept-Language", "de")];
    fill(&stage, both, "", "plain");
    fill(&stage, both, "Accept-Encoding", "by coding");
    fill(&stage, both, "Accept-Language", "by language");
    assert_eq!(body_of(&fresh(ask(&stage, both))), b"by language");
    assert_eq!(body_of(&fresh(ask(&stage, GZIP))), b"by coding");
    assert_eq!(body_of(&fresh(ask(&stage, BROTLI))), b"plain");
    fill(&stage, both, "", "plain again");
    assert_eq!(body_of(&fresh(ask(&stage, both))), b"plain again");
}

#[test]
fn specifications_are_bounded_and_the_oldest_goes_with_its_variants() {
    let stage = Stage::new();
    let names = ["A", "B", "C", "D", "E"];
    let fields: Vec<(&str, &str)> = names.iter().map(|name| (*name, "1")).collect();
    names.iter().for_each(|name| fill(&stage, &fields, name, name));
    assert_eq!(stage.cache.stats().objects, 4);
    assert_eq!(kind(&ask(&stage, &fields[..1])), "miss");
    assert_eq!(body_of(&fresh(ask(&stage, &fields[1..2]))), b"B");
}

#[test]
fn variants_are_bounded_and_the_oldest_goes() {
    let stage = Stage::with(CacheSettings { variants_max: 100, ..CacheSettings::default() });
    let agents: Vec<String> = (0..1_000).map(|index| format!("agent/{index}")).collect();
    for agent in &agents {
        fill(&stage, &[("User-Agent", agent)], "User-Agent", agent);
    }
    assert_eq!(stage.cache.stats().objects, 100);
    assert_eq!(kind(&ask(&stage, &[("User-Agent", &agents[899])])), "miss");
    assert_eq!(body_of(&fresh(ask(&stage, &[("User-Agent", &agents[900])]))), b"agent/900");
}

#[test]
fn a_variant_whose_fetch_took_the_longest_is_not_its_own_victim() {
    let stage = Stage::with(CacheSettings { variants_max: 2, ..CacheSettings::default() });
    let slow = ticket(ask(&stage, GZIP));
    fill(&stage, BROTLI, "Accept-Encoding", "br");
    fill(&stage, &[("Accept-Encoding", "zstd")], "Accept-Encoding", "zstd");
    let slow = stage.fill(slow, varying("Accept-Encoding"), b"gzip").expect("stored");
    assert!(slow.is_live());
    assert_eq!(body_of(&fresh(ask(&stage, GZIP))), b"gzip");
    assert_eq!((kind(&ask(&stage, BROTLI)), stage.cache.stats().objects), ("miss", 2));
}

#[test]
fn two_keys_never_meet() {
    let stage = Stage::new();
    for index in 0..500 {
        stage.store(&format!("/{index}"), format!("body {index}").as_bytes());
    }
    for index in 0..500 {
        assert_eq!(body_of(&stage.fresh(&format!("/{index}"))), format!("body {index}").as_bytes());
    }
}

/// RFC 9111 §4.1: some responses lack Vary by mistake; a program's rule is Varnish's.
#[test]
fn what_lacks_vary_answers_only_whom_no_variant_does() {
    let stage = Stage::new();
    let ask = |kind: &str, options: &LookupOptions| stage.ask_with("/", &[("X-Kind", kind)], options);
    let by_rfc = LookupOptions::default();
    for kind in ["a", "b"] {
        stage.fill(ticket(ask(kind, &by_rfc)), varying("X-Kind"), kind.as_bytes()).expect("stored");
    }
    let plain = stage.fill(ticket(ask("c", &by_rfc)), storable(MINUTE_MS), b"not found").expect("stored");
    for (kind, expect) in [("a", &b"a"[..]), ("b", b"b"), ("c", b"not found"), ("d", b"not found")] {
        assert_eq!(body_of(&fresh(ask(kind, &by_rfc))), expect, "{kind}");
        let newest = LookupOptions { newest_first: true, ..LookupOptions::default() };
        assert!(Arc::ptr_eq(&fresh(ask(kind, &newest)), &plain), "{kind}");
    }
    let mut hot = HotTable::new(&stage.cache);
    hot.remember(stage.key("/"), Default::default(), &plain);
    assert!(hot.get_plain(stage.key("/")).is_none(), "the shards choose");
}

#[test]
fn what_replaces_a_variant_takes_its_place_though_it_lacks_vary() {
    let mut stage = Stage::new();
    let ask = |stage: &Stage, kind: &str| stage.ask_with("/", &[("X-Kind", kind)], &LookupOptions::default());
    for kind in ["a", "b"] {
        stage.fill(ticket(ask(&stage, kind)), varying("X-Kind"), kind.as_bytes()).expect("stored");
    }
    stage.advance_ms(2 * MINUTE_MS);
    let leader = ticket(ask(&stage, "a"));
    let old = Arc::clone(leader.stale().expect("it is stale"));
    stage.fill(leader, storable(MINUTE_MS), b"new").expect("stored");
    assert!(!old.is_live());
    assert_eq!(body_of(&fresh(ask(&stage, "a"))), b"new");
    // Nobody has asked for the other yet: its validator may be good still.
    assert!(ticket(ask(&stage, "b")).stale().is_some());
}
