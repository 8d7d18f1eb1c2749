//! What is of no use any more leaves before what is, whatever the order of eviction says.

use std::sync::Arc;

use crate::stage::*;
use bytes::Bytes;
use cache::{Answer, CacheSettings, Description, EvictionKind, SliceAnswer, Sliced, StoreAs};
use message::{FieldName, ResponseHead, Status};
use rules::Facts;

const MIB: usize = 1 << 20;
const BODY: [u8; 6_221] = [7; 6_221];
const HOUR_MS: u64 = 60 * MINUTE_MS;

fn sized(eviction: EvictionKind) -> Stage {
    let stage = Stage::with(CacheSettings { memory_bytes_max: 4 * MIB, eviction, ..CacheSettings::default() });
    stage.cache.note_time(stage.now);
    stage
}

/// Stores so many, and uses each of them often. Nobody holds them then: what is held is not room that is made.
fn liked(stage: &Stage, name: &str, count: usize, store_as: impl Fn() -> StoreAs) {
    for path in paths(name, count) {
        let object = stage.fill(stage.miss(&path), store_as(), &BODY).expect("it is stored");
        (0..5).for_each(|_| object.touch(stage.now));
    }
}

fn paths(name: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |index| format!("/{name}/{index}"))
}

/// How many of them are stored, fresh or not.
fn left(stage: &Stage, name: &str, count: usize) -> usize {
    let none = fields_of(&[]);
    paths(name, count).filter(|path| stage.cache.find(stage.key(path), &request(&none)).is_some()).count()
}

/// Of 250 used ones with that life among 250 that were stored before them and never used, how many of both are left when room
/// was made for 280 new ones, after so long?
fn check(eviction: EvictionKind, store_as: impl Fn() -> StoreAs, after_ms: u64) -> (usize, usize) {
    let mut stage = sized(eviction);
    for path in paths("unused", 250) {
        stage.fill(stage.miss(&path), storable(HOUR_MS), &BODY).expect("it is stored");
    }
    liked(&stage, "used", 250, store_as);
    assert_eq!((left(&stage, "unused", 250), left(&stage, "used", 250)), (250, 250));
    stage.advance_ms(after_ms);
    stage.cache.note_time(stage.now);
    for path in paths("new", 280) {
        stage.fill(stage.miss(&path), storable(HOUR_MS), &BODY).expect("it is stored");
        assert!(stage.cache.account().used() <= 4 * MIB);
    }
    (left(&stage, "unused", 250), left(&stage, "used", 250))
}

/// The manifest is confirmed and its slices are not: they live as long as they are used.
#[test]
fn slices_do_not_leave_because_their_manifest_was_fetched_long_ago() {
    let mut stage = sized(EvictionKind::S3Fifo);
    for path in paths("unused", 250) {
        stage.fill(stage.miss(&path), storable(HOUR_MS), &BODY).expect("it is stored");
    }
    let with_manifest = StoreAs { sliced: Some(Sliced::new(250 * 6_221, 6_221)), ..storable(MINUTE_MS) };
    let manifest = stage.fill(stage.miss("/film"), with_manifest, b"").expect("it is stored");
    let (sliced, none) = (manifest.sliced().expect("a manifest"), fields_of(&[]));
    for number in 0..250 {
        let SliceAnswer::Fetch(ticket) = stage.cache.ask_slice(sliced, number, &request(&none), 0, stage.now) else {
            panic!("nobody has it");
        };
        let mut draft = ticket.describe(manifest.slice_description(&sliced.range(number), stage.now));
        draft.append(Bytes::from_static(&BODY));
        let slice = draft.land(None).expect("it is stored");
        (0..5).for_each(|_| slice.touch(stage.now));
    }
    stage.advance_ms(3 * MINUTE_MS);
    stage.cache.note_time(stage.now);
    for path in paths("new", 280) {
        stage.fill(stage.miss(&path), storable(HOUR_MS), &BODY).expect("it is stored");
    }
    let slices = (0..250).filter(|&number| stage.cache.may_have_slice(sliced, number)).count();
    assert_eq!(slices, 250, "and {} that nobody used", left(&stage, "unused", 250));
}

#[test]
fn what_is_over_leaves_before_what_is_not_though_it_was_used_more() {
    for eviction in EvictionKind::ALL {
        let (unused, used) = check(eviction, || storable(MINUTE_MS), 3 * MINUTE_MS);
        assert!(unused == 250 && used < 150, "{eviction:?}: {unused} {used}");
    }
}

#[test]
fn what_has_just_expired_keeps_its_place_for_it_may_be_validated() {
    for eviction in EvictionKind::ALL {
        let (unused, used) = check(eviction, || storable(MINUTE_MS), MINUTE_MS + 30_000);
        assert!(unused < 150 && used == 250, "{eviction:?}: {unused} {used}");
    }
}

#[test]
fn what_the_origin_allows_to_serve_stale_lives_so_long() {
    let with = |change: fn(&mut Facts)| {
        move || {
            let mut store_as = storable(MINUTE_MS);
            change(&mut store_as.facts);
            store_as
        }
    };
    for change in [
        |facts: &mut Facts| facts.stale_while_revalidate_ms = HOUR_MS,
        |facts: &mut Facts| facts.stale_if_error_ms = Some(HOUR_MS),
        // Of use only to be validated, as much now as then.
        |facts: &mut Facts| facts.always_validate = true,
    ] {
        assert_eq!(check(EvictionKind::S3Fifo, with(change), 10 * MINUTE_MS).1, 250);
    }
}

#[test]
fn a_policy_that_keeps_a_response_is_taken_at_its_word() {
    let keeping = |keep_ms| move || living(MINUTE_MS as i64, 10_000, keep_ms);
    assert_eq!(check(EvictionKind::S3Fifo, keeping(HOUR_MS), 10 * MINUTE_MS).1, 250);
    assert_eq!(check(EvictionKind::S3Fifo, keeping(0), MINUTE_MS + 5_000).1, 250);
    let (unused, used) = check(EvictionKind::S3Fifo, keeping(0), MINUTE_MS + 20_000);
    assert!(unused == 250 && used < 150, "{unused} {used}");
}

#[test]
fn what_nobody_can_validate_and_nobody_may_serve_stale_is_over_at_once() {
    let mut stage = sized(EvictionKind::S3Fifo);
    let strict = || {
        let mut store_as = storable(HOUR_MS);
        store_as.facts.must_revalidate = true;
        store_as
    };
    for path in paths("strict", 500) {
        let shared_head = Arc::new(ResponseHead::new(Status::OK));
        let description = stage.description(Some(strict()), Some(BODY.len() as u64));
        let mut draft = stage.miss(&path).describe(Description { shared_head, ..description });
        draft.append(Bytes::from_static(&BODY));
        let object = draft.land(None).expect("it is stored");
        assert!(object.fields().get(FieldName::Etag).is_none());
    }
    stage.advance_ms(HOUR_MS + HOUR_MS / 7);
    stage.cache.note_time(stage.now);
    liked(&stage, "new", 400, || storable(HOUR_MS));
    assert_eq!(left(&stage, "new", 400), 400);
    assert!(left(&stage, "strict", 500) < 250);
}

#[test]
fn where_there_is_room_what_is_over_stays_and_may_be_confirmed() {
    let mut stage = sized(EvictionKind::S3Fifo);
    stage.store("/", &BODY);
    stage.advance_ms(HOUR_MS);
    stage.cache.note_time(stage.now);
    stage.store("/another", &BODY);
    match stage.ask("/") {
        Answer::Miss(ticket) => assert!(ticket.stale().is_some()),
        other => panic!("{other:?}"),
    }
}
