//! Parts (206): kept beside or instead of the whole, and never given to who did not ask for one (J09).

use crate::stage::*;
use cache::{Part, Release, StoreAs, Wishes};

const PART: Part = Part { from: 2, to: 6, complete: Some(10) };

fn ranged() -> Wishes {
    Wishes { partial_ok: true, ..Wishes::default() }
}

fn part(lifetime_ms: u64) -> StoreAs {
    StoreAs { partial: Some(PART), ..storable(lifetime_ms) }
}

fn with_part() -> Stage {
    let stage = Stage::new();
    stage.fill(ticket(stage.ask_with("/", &[], &ranged())), part(MINUTE_MS), b"2345").expect("stored");
    stage
}

#[test]
fn a_part_is_only_for_who_asks_for_parts() {
    let stage = with_part();
    let object = fresh(stage.ask_with("/", &[], &ranged()));
    assert_eq!((object.partial(), body_of(&object)), (Some(PART), b"2345".to_vec()));
    let whole = stage.miss("/");
    assert!(whole.stale().is_none() && whole.partial().is_some_and(|object| object.partial() == Some(PART)));
}

#[test]
fn waiters_are_released_when_only_a_part_comes() {
    let stage = Stage::new();
    let leader = ticket(stage.ask_with("/", &[], &ranged()));
    let mut first = leader.follow(0);
    let any = Wishes { ignore_vary: true, ..Wishes::default() };
    let mut waiting = [stage.busy("/"), follower(stage.ask_with("/", &[], &any))];
    let mut draft = stage.describe(leader, Some(part(MINUTE_MS)), None);
    for waiting in &mut waiting {
        assert_eq!(head_of(waiting).unwrap().unwrap_err(), Release::VaryMismatch);
    }
    assert_eq!(kind(&stage.ask("/")), "miss", "nobody joins a part");
    draft.append("2345".into());
    draft.land(None).expect("stored");
    assert!(head_of(&mut first).unwrap().is_ok());
    assert_eq!(whole_body(&mut first), b"2345");
}

#[test]
fn a_part_of_another_length_than_its_range_is_not_stored() {
    let stage = Stage::new();
    assert!(stage.fill(ticket(stage.ask_with("/", &[], &ranged())), part(MINUTE_MS), b"23456").is_none());
    assert_eq!(kind(&stage.ask_with("/", &[], &ranged())), "miss");
}

#[test]
fn the_whole_takes_the_place_of_its_part() {
    let stage = with_part();
    stage.store("/", b"0123456789");
    assert_eq!(stage.cache.stats().objects, 1);
    assert_eq!(body_of(&fresh(stage.ask_with("/", &[], &ranged()))), b"0123456789");
}

#[test]
fn a_part_stands_beside_a_stale_whole() {
    let mut stage = Stage::new();
    stage.store("/", b"0123456789");
    stage.advance_ms(2 * MINUTE_MS);
    stage.fill(ticket(stage.ask_with("/", &[], &ranged())), part(MINUTE_MS), b"2345").expect("stored");
    assert_eq!(stage.cache.stats().objects, 2);
    let ticket = ticket(stage.ask_with("/", &[], &ranged()));
    assert!(ticket.stale().is_some() && ticket.partial().is_some());
}

#[test]
fn a_part_is_purged_like_everything_else() {
    let stage = with_part();
    assert_eq!(stage.cache.purge(stage.key("/")), 1);
    assert_eq!(kind(&stage.ask_with("/", &[], &ranged())), "miss");
}
