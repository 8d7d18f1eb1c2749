//! Parts (206): kept side by side or beside a stale whole, put together under one strong entity tag, and never given to
//! who did not ask for one (J09; RFC 9111 §3.3, §3.4).

use std::sync::Arc;

use crate::stage::*;
use bytes::Bytes;
use cache::limits::{PARTS_JOIN_BYTES_MAX, PARTS_MAX};
use cache::{Answer, Description, LookupOptions, Object, Part, Release, StoreAs, WholeHead};
use message::{FieldName, ResponseHead, Status};
use rules::range::RangeSpecs;

const LENGTH: u64 = 100;

fn body(from: u64, to: u64) -> Vec<u8> {
    (from..to).map(|at| (at % 251) as u8).collect()
}

fn wanting(range: &str) -> LookupOptions {
    let specs = RangeSpecs::parse(format!("bytes={range}").as_bytes()).expect("a range");
    LookupOptions { range: specs.single(), ..LookupOptions::default() }
}

fn part(from: u64, to: u64) -> StoreAs {
    let whole = WholeHead { head: Arc::new(ResponseHead::new(Status::OK)), rendered: Bytes::from_static(b"whole") };
    StoreAs { partial: Some(Part { from, to, complete: Some(LENGTH) }), whole: Some(whole), ..storable(MINUTE_MS) }
}

/// Fetches a part past everybody else, as a range request does.
fn fetch(stage: &Stage, etag: &str, store_as: StoreAs) -> Option<Arc<Object>> {
    let Part { from, to, .. } = store_as.partial.expect("a part");
    let mut draft = describe(stage, etag, store_as);
    draft.append(body(from, to).into());
    draft.land(None)
}

fn describe(stage: &Stage, etag: &str, store_as: StoreAs) -> cache::Draft {
    let alone = LookupOptions { always_miss: true, alone: true, ..LookupOptions::default() };
    let mut head = ResponseHead::new(Status::PARTIAL_CONTENT);
    head.fields.push(FieldName::Etag, etag);
    let (head, description) = (Arc::new(head), stage.description(Some(store_as), None));
    ticket(stage.ask_with("/", &[], &alone)).describe(Description {
        head: Arc::clone(&head),
        shared_head: head,
        ..description
    })
}

fn with(parts: &[(u64, u64)]) -> Stage {
    let stage = Stage::new();
    for &(from, to) in parts {
        fetch(&stage, "\"1\"", part(from, to)).expect("stored");
    }
    stage
}

fn held(stage: &Stage, range: &str) -> Option<(u64, u64)> {
    match stage.ask_with("/", &[], &wanting(range)) {
        Answer::Fresh(object) => {
            let (from, to) = object.partial().map_or((0, object.body().len()), |part| (part.from, part.to));
            assert_eq!(body_of(&object), body(from, to), "{range}");
            Some((from, to))
        }
        _ => None,
    }
}

#[test]
fn a_part_is_only_for_who_wants_what_it_holds() {
    let stage = with(&[(20, 60)]);
    for (range, expect) in [("20-59", true), ("30-30", true), ("19-30", false), ("50-60", false), ("30-", false)] {
        assert_eq!(held(&stage, range), expect.then_some((20, 60)), "{range}");
    }
    assert!(stage.miss("/").stale().is_none());
}

#[test]
fn waiters_are_released_when_only_a_part_comes() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let mut first = leader.follow(0);
    let any = LookupOptions { ignore_vary: true, ..LookupOptions::default() };
    let mut waiting = [stage.busy("/"), follower(stage.ask_with("/", &[], &any))];
    let mut draft = stage.describe(leader, Some(part(2, 6)), None);
    for waiting in &mut waiting {
        assert_eq!(head_of(waiting).unwrap().unwrap_err(), Release::VaryMismatch);
    }
    assert_eq!(kind(&stage.ask("/")), "miss", "nobody joins a part");
    draft.append(body(2, 6).into());
    draft.land(None).expect("stored");
    assert!(head_of(&mut first).unwrap().is_ok());
    assert_eq!(whole_body(&mut first), body(2, 6));
}

#[test]
fn a_part_of_another_length_than_its_range_is_not_stored() {
    let stage = Stage::new();
    let mut draft = describe(&stage, "\"1\"", part(2, 6));
    draft.append(body(2, 7).into());
    assert!(draft.land(None).is_none());
    assert_eq!(held(&stage, "2-3"), None);
}

#[test]
fn the_whole_takes_the_place_of_its_parts() {
    let stage = with(&[(2, 6), (90, 100)]);
    stage.store("/", &body(0, LENGTH));
    assert_eq!(stage.cache.stats().objects, 1);
    assert_eq!(held(&stage, "2-3"), Some((0, LENGTH)));
}

#[test]
fn a_part_stands_beside_a_stale_whole() {
    let mut stage = Stage::new();
    stage.store("/", &body(0, LENGTH));
    stage.advance_ms(2 * MINUTE_MS);
    fetch(&stage, "\"1\"", part(20, 60)).expect("stored");
    assert_eq!(stage.cache.stats().objects, 2);
    assert_eq!(held(&stage, "20-30"), Some((20, 60)));
    assert!(ticket(stage.ask_with("/", &[], &wanting("0-9"))).stale().is_some());
}

#[test]
fn parts_are_purged_like_everything_else() {
    let stage = with(&[(0, 5), (90, 95)]);
    assert_eq!(stage.cache.purge(stage.key("/")), 2);
    assert_eq!(held(&stage, "0-1"), None);
}

#[test]
fn a_stale_part_answers_nobody() {
    let mut stage = with(&[(20, 60)]);
    stage.advance_ms(2 * MINUTE_MS);
    assert_eq!(held(&stage, "20-30"), None);
}

/// RFC 9111 §3.4.
#[test]
fn parts_that_touch_or_overlap_become_one() {
    let check = |parts: &[(u64, u64)], range: &str, expect: (u64, u64), objects: u64| {
        let stage = with(parts);
        assert_eq!(held(&stage, range), Some(expect), "{parts:?}");
        assert_eq!(stage.cache.stats().objects, objects, "{parts:?}");
    };
    check(&[(20, 40), (40, 60)], "30-50", (20, 60), 1);
    check(&[(40, 60), (20, 40)], "30-50", (20, 60), 1);
    check(&[(20, 45), (40, 60)], "30-50", (20, 60), 1);
    check(&[(20, 40), (60, 80), (40, 60)], "30-70", (20, 80), 1);
    check(&[(20, 40), (41, 60)], "30-39", (20, 40), 2);
    check(&[(20, 60), (30, 40)], "50-55", (20, 60), 1);
    check(&[(30, 40), (20, 60)], "50-55", (20, 60), 1);
    check(&[(20, 60), (20, 60)], "50-55", (20, 60), 1);
}

/// RFC 9111 §3.4: and what has all bytes is a complete response, for everybody.
#[test]
fn a_complete_set_is_the_whole() {
    for parts in [&[(0, 50), (50, 100)][..], &[(50, 100), (0, 50)], &[(0, 30), (70, 100), (20, 80)], &[(0, 100)]] {
        let stage = with(parts);
        let object = stage.fresh("/");
        assert_eq!((object.status(), object.partial()), (Status::OK, None), "{parts:?}");
        assert_eq!((object.rendered(), body_of(&object)), (&b"whole"[..], body(0, LENGTH)), "{parts:?}");
        assert_eq!(stage.cache.stats().objects, 1, "{parts:?}");
    }
}

/// RFC 9111 §3.4: "the same strong validator".
#[test]
fn a_part_of_another_representation_takes_the_place_of_all() {
    let stage = with(&[(20, 40), (60, 80)]);
    fetch(&stage, "\"2\"", part(40, 60)).expect("stored");
    assert_eq!((held(&stage, "30-50"), held(&stage, "20-30"), held(&stage, "45-50")), (None, None, Some((40, 60))));
    assert_eq!(stage.cache.stats().objects, 1);
    let other_length = Part { from: 60, to: 70, complete: Some(LENGTH + 1) };
    fetch(&stage, "\"2\"", StoreAs { partial: Some(other_length), ..part(60, 70) }).expect("stored");
    assert_eq!((held(&stage, "45-50"), held(&stage, "65-66")), (None, Some((60, 70))));
}

#[test]
fn an_older_part_of_another_representation_comes_too_late() {
    let mut stage = Stage::new();
    let mut late = describe(&stage, "\"1\"", part(20, 40));
    stage.advance_ms(1);
    fetch(&stage, "\"2\"", part(60, 80)).expect("stored");
    late.append(body(20, 40).into());
    assert!(late.land(None).is_none());
    assert_eq!((held(&stage, "25-30"), held(&stage, "65-70")), (None, Some((60, 80))));
}

#[test]
fn a_confirmed_part_is_as_fresh_as_what_confirmed_it() {
    let mut stage = with(&[(20, 60)]);
    stage.advance_ms(2 * MINUTE_MS);
    fetch(&stage, "\"1\"", part(30, 40)).expect("stored");
    assert_eq!(held(&stage, "50-55"), Some((20, 60)));
}

#[test]
fn parts_are_bounded_in_number_and_in_what_is_copied() {
    let stage = Stage::new();
    let length = 3 * PARTS_MAX as u64;
    let bytes = |from| StoreAs { partial: Some(Part { from, to: from + 1, complete: Some(length) }), ..part(0, 1) };
    for at in 0..=PARTS_MAX as u64 {
        fetch(&stage, "\"1\"", bytes(2 * at)).expect("stored");
    }
    assert_eq!(stage.cache.stats().objects, PARTS_MAX as u64);
    assert_eq!((held(&stage, "0-0"), held(&stage, "2-2")), (None, Some((2, 3))), "the oldest went");

    let stage = Stage::new();
    let mib = |from: u64, to: u64| {
        let partial = Some(Part { from: from << 20, to: to << 20, complete: None });
        StoreAs { partial, ..part(0, 1) }
    };
    let max = PARTS_JOIN_BYTES_MAX >> 20;
    for (from, to) in [(0, max / 2), (max / 2, max), (max, max + 4), (max + 4, max + 5)] {
        fetch(&stage, "\"1\"", mib(from, to)).expect("stored");
    }
    // The first two are as long as may be copied, and the last is a quarter of its neighbour.
    assert_eq!(stage.cache.stats().objects, 2);
    fetch(&stage, "\"1\"", StoreAs { partial: Some(Part { from: 0, to: 9, complete: None }), ..part(0, 1) });
    assert_eq!(stage.cache.stats().objects, 2, "what is held already is not stored again");
}

#[test]
fn what_came_of_a_part_that_nobody_waits_for_is_a_shorter_part() {
    let stage = Stage::new();
    let mut draft = describe(&stage, "\"1\"", part(20, 60));
    draft.append(body(20, 35).into());
    assert!(draft.abandon(failure(0)).is_none());
    assert_eq!((held(&stage, "20-34"), held(&stage, "30-40")), (Some((20, 35)), None));
    let nothing = describe(&stage, "\"1\"", part(50, 60));
    assert!(nothing.abandon(failure(0)).is_none());
    assert_eq!(stage.cache.stats().objects, 1);
}

#[test]
fn a_part_of_what_is_too_large_leaves_the_whole_uncacheable() {
    let stage = Stage::with(cache::CacheSettings { object_bytes_max: 50, ..Default::default() });
    stage.describe(stage.miss("/"), Some(storable(MINUTE_MS)), Some(LENGTH)).land(None);
    let pass = LookupOptions { pass_uncacheable: true, ..wanting("0-9") };
    assert!(matches!(stage.ask_with("/", &[], &pass), Answer::Uncacheable));
    fetch(&stage, "\"1\"", part(20, 40)).expect("stored");
    assert!(matches!(stage.ask_with("/", &[], &pass), Answer::Uncacheable));
    assert_eq!(held(&stage, "20-30"), Some((20, 40)));
}

#[test]
fn what_joined_parts_cost_is_what_they_are() {
    let stage = with(&[(0, 20), (40, 60), (20, 40)]);
    stage.cache.purge(stage.key("/"));
    drop(stage.miss("/"));
    assert_eq!(stage.cache.account().used(), 0);
}
