//! Requests with credentials beside others: who waits for whom, who gets what, and what is remembered.

use crate::stage::*;
use cache::{Answer, Description, Follower, LookupOptions, Release, StoreAs};
use rules::Facts;

const COOKIE: &[(&str, &str)] = &[("Cookie", "id=1")];

fn ask(stage: &Stage, fields: &[(&str, &str)]) -> Answer {
    stage.ask_with("/", fields, &LookupOptions::default())
}

/// To be validated each time, and nothing is said of sharing.
fn unshared() -> StoreAs {
    StoreAs { facts: Facts { always_validate: true, ..Facts::default() }, ..storable(0) }
}

#[test]
fn a_private_answer_to_credentials_says_nothing_of_others() {
    let stage = Stage::new();
    let description = Description { is_personal: true, ..stage.description(None, None) };
    let draft = ticket(ask(&stage, COOKIE)).describe(description);
    draft.land(None);
    assert_eq!(kind(&ask(&stage, COOKIE)), "hit for miss");
    let leader = ticket(ask(&stage, &[]));
    assert_eq!(kind(&ask(&stage, &[])), "busy", "others wait for each other as before");
    // What comes for them does not end it …
    stage.fill(leader, unshared(), b"public").expect("stored");
    assert_eq!(kind(&ask(&stage, COOKIE)), "hit for miss");
    // … but for what says that it is shared.
    stage.fill(stage.miss("/"), storable(0), b"public").expect("stored");
    assert_eq!(kind(&ask(&stage, COOKIE)), "miss");
}

#[test]
fn who_waits_with_credentials_gets_what_is_shared_or_fresh() {
    let check = |store_as: StoreAs, fields: &[(&str, &str)], expect: bool| {
        let stage = Stage::new();
        let leader = stage.miss("/");
        let mut waiting: Follower = follower(ask(&stage, fields));
        let facts = store_as.facts;
        let _draft = stage.describe(leader, Some(store_as), None);
        match head_of(&mut waiting).expect("described") {
            Ok(_) => assert!(expect, "{facts:?} {fields:?}"),
            Err(release) => assert!(!expect && release == Release::VaryMismatch, "{facts:?} {fields:?}"),
        }
    };
    let guessed = Facts { lifetime_ms: MINUTE_MS, ..Facts::default() };
    check(storable(MINUTE_MS), COOKIE, true);
    check(storable(0), COOKIE, true);
    check(StoreAs { facts: guessed, ..storable(0) }, COOKIE, true);
    check(unshared(), COOKIE, false);
    check(unshared(), &[], true);
}
