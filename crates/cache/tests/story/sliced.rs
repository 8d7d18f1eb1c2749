//! Manifests, whose bodies lie in slices: who waits for one, what takes one away, and that its slices go with it.

use std::sync::Arc;

use crate::stage::*;
use bytes::Bytes;
use cache::{Answer, CacheSettings, Description, Object, Release, SliceAnswer, Sliced, StoreAs, Ticket};
use message::{Fields, ResponseHead, Status};

const COMPLETE: u64 = 25;

fn with_manifest(sliced: Sliced) -> StoreAs {
    StoreAs { sliced: Some(sliced), ..storable(MINUTE_MS) }
}

fn manifest(stage: &Stage) -> Arc<Object> {
    stage.fill(stage.miss("/"), with_manifest(Sliced::new(COMPLETE, 10)), b"").expect("stored")
}

fn ask(stage: &Stage, sliced: Sliced, number: u64) -> SliceAnswer {
    stage.cache.ask_slice(sliced, number, &request(&Fields::default()), 0, stage.now)
}

fn fill(stage: &Stage, ticket: Ticket, body: &'static [u8]) {
    let head = Arc::new(ResponseHead::new(Status::PARTIAL_CONTENT));
    let description = stage.description(Some(storable(MINUTE_MS)), Some(body.len() as u64));
    let mut draft = ticket.describe(Description { head: Arc::clone(&head), shared_head: head, ..description });
    draft.append(Bytes::from_static(body));
    draft.land(None).expect("a slice is stored");
}

fn fetch(stage: &Stage, sliced: Sliced, number: u64) -> Ticket {
    match ask(stage, sliced, number) {
        SliceAnswer::Fetch(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

fn is_held(stage: &Stage, sliced: Sliced, number: u64) -> bool {
    assert_eq!(stage.cache.may_have_slice(sliced, number), matches!(ask(stage, sliced, number), SliceAnswer::Held(_)));
    stage.cache.may_have_slice(sliced, number)
}

#[test]
fn slices_are_all_as_long_but_the_last() {
    let check = |complete: u64, expect: &[(u64, u64)]| {
        let sliced = Sliced::new(complete, 10);
        let ranges: Vec<_> = (0..sliced.count()).map(|number| sliced.range(number)).collect();
        assert_eq!(ranges.iter().map(|range| (range.start, range.end)).collect::<Vec<_>>(), expect);
        assert!(ranges.iter().enumerate().all(|(number, range)| sliced.number_at(range.start) == number as u64));
        assert!(sliced.range(sliced.count()).is_empty());
    };
    check(25, &[(0, 10), (10, 20), (20, 25)]);
    check(20, &[(0, 10), (10, 20)]);
    check(1, &[(0, 1)]);
    check(0, &[]);
    assert!(Sliced::new(u64::MAX, 10).range(u64::MAX).is_empty());
}

#[test]
fn one_fetches_a_slice_and_the_others_follow() {
    let stage = Stage::new();
    let sliced = manifest(&stage).sliced().expect("a manifest");
    let ticket = fetch(&stage, sliced, 1);
    let SliceAnswer::Busy(mut follower) = ask(&stage, sliced, 1) else { panic!("it is on its way") };
    // The one beside it is another's.
    drop(fetch(&stage, sliced, 2));
    fill(&stage, ticket, b"abcdefghij");
    let headed = head_of(&mut follower).expect("now").expect("it has landed");
    assert_eq!(headed.object.expect("whole").body().len(), 10);
    assert!(is_held(&stage, sliced, 1) && !stage.cache.may_have_slice(sliced, 0));
}

#[test]
fn a_ticket_that_is_given_back_sets_all_free_who_wait() {
    let stage = Stage::new();
    let sliced = manifest(&stage).sliced().expect("a manifest");
    let mut ticket = fetch(&stage, sliced, 0);
    assert!(now_or_never(|cx| ticket.poll_wanted(cx)).is_none());
    let mut own = ticket.join(0);
    let SliceAnswer::Busy(mut other) = ask(&stage, sliced, 0) else { panic!("it is on its way") };
    assert!(now_or_never(|cx| ticket.poll_wanted(cx)).is_some());
    ticket.give_back();
    for follower in [&mut own, &mut other] {
        assert_eq!(head_of(follower).expect("now").expect_err("there is none"), Release::Private);
    }
    drop(fetch(&stage, sliced, 0));
}

#[test]
fn a_slice_that_was_found_elsewhere_is_had_by_all_who_wait_though_it_has_left_already() {
    let stage = Stage::new();
    let sliced = manifest(&stage).sliced().expect("a manifest");
    fill(&stage, fetch(&stage, sliced, 0), b"0123456789");
    let SliceAnswer::Held(slice) = ask(&stage, sliced, 0) else { panic!("it is stored") };
    stage.cache.release(&slice);
    let ticket = fetch(&stage, sliced, 0);
    let mut own = ticket.join(0);
    let SliceAnswer::Busy(mut other) = ask(&stage, sliced, 0) else { panic!("it is on its way") };
    ticket.hand_over(Arc::clone(&slice), stage.now);
    for follower in [&mut own, &mut other] {
        let headed = head_of(follower).expect("now").expect("it was handed over");
        assert!(headed.object.is_some_and(|object| Arc::ptr_eq(&object, &slice)));
    }
    // It is not stored by that.
    drop(fetch(&stage, sliced, 0));
}

const MIB: usize = 1 << 20;

/// So much memory, and slices of one MiB.
fn in_memory_of(mib: usize) -> (Stage, Sliced) {
    let stage = Stage::with(CacheSettings { memory_bytes_max: mib * MIB, ..CacheSettings::default() });
    (stage, Sliced::new(64 << 20, MIB as u64))
}

#[test]
fn slices_on_their_way_leave_no_room_for_more_than_memory_holds() {
    let (stage, sliced) = in_memory_of(3);
    assert!(stage.cache.has_room_for_slice(sliced));
    let first = stage.cache.slice_under_way(sliced);
    assert!(stage.cache.has_room_for_slice(sliced));
    let second = stage.cache.slice_under_way(sliced);
    assert!(!stage.cache.has_room_for_slice(sliced));
    drop(second);
    assert!(stage.cache.has_room_for_slice(sliced));
    // What has come is charged where it lies, and counted once.
    let ticket = fetch(&stage, sliced, 0);
    let description = stage.description(Some(storable(MINUTE_MS)), Some(MIB as u64));
    let mut draft = ticket.describe_within(first, description);
    assert!(!draft.lacks_room());
    draft.append(Bytes::from(vec![7; MIB]));
    assert!(stage.cache.has_room_for_slice(sliced) && draft.is_kept());
    draft.land(None).expect("it is stored");
}

#[test]
fn a_slice_for_which_room_was_held_is_kept_however_much_readers_hold() {
    let (stage, sliced) = in_memory_of(8);
    let held: Vec<_> = (0..3).map(|n| stage.store(&format!("/{n}"), &vec![7; MIB])).collect();
    held.iter().for_each(|object| stage.cache.release(object));
    let brings = |number: u64, room| {
        let description = stage.description(Some(storable(MINUTE_MS)), Some(MIB as u64));
        let ticket = fetch(&stage, sliced, number);
        match room {
            Some(room) => ticket.describe_within(room, description).is_kept(),
            None => ticket.describe(description).is_kept(),
        }
    };
    assert!(!brings(0, None), "half of the memory is left to others");
    assert!(stage.cache.has_room_for_slice(sliced) && brings(1, Some(stage.cache.slice_under_way(sliced))));
}

#[test]
fn room_for_a_slice_is_not_made_of_most_of_what_is_stored() {
    let (stage, sliced) = in_memory_of(4);
    let bodies = ["/a", "/b", "/c", "/d", "/e", "/f"];
    for path in bodies {
        stage.fill(stage.miss(path), storable(MINUTE_MS), &vec![7; MIB / 2]).expect("it is stored");
    }
    let count = || stage.cache.stats().objects;
    let (_first, second) = (stage.cache.slice_under_way(sliced), stage.cache.slice_under_way(sliced));
    assert!(!stage.cache.has_room_for_slice(sliced), "more than two of the three MiB would have to go");
    assert_eq!(count(), bodies.len() as u64);
    drop(second);
    assert!(stage.cache.has_room_for_slice(sliced), "less than half of them");
    assert!(count() >= 3 && count() < bodies.len() as u64, "{}", count());
}

#[test]
fn who_waits_for_a_manifest_gets_it_whole_or_asks_again() {
    let stage = Stage::new();
    let (ticket, mut waiting) = (stage.miss("/"), stage.busy("/"));
    let draft = stage.describe(ticket, Some(with_manifest(Sliced::new(COMPLETE, 10))), Some(0));
    // Its head is known, and where the body is is not.
    assert!(head_of(&mut waiting).is_none());
    let manifest = draft.land(None).expect("stored");
    assert_eq!((manifest.length(), manifest.body().len(), manifest.has_whole_body()), (COMPLETE, 0, false));
    let headed = head_of(&mut waiting).expect("now").expect("it has landed");
    assert!(headed.object.is_some_and(|object| Arc::ptr_eq(&object, &manifest)));
    assert_eq!(headed.length, Some(COMPLETE));
    assert!(Arc::ptr_eq(&stage.fresh("/"), &manifest));

    stage.cache.purge(stage.key("/"));
    let (ticket, mut waiting) = (stage.miss("/"), stage.busy("/"));
    let draft = stage.describe(ticket, Some(with_manifest(Sliced::new(COMPLETE, 10))), Some(0));
    stage.cache.purge(stage.key("/"));
    assert!(draft.land(None).is_none());
    assert_eq!(head_of(&mut waiting).expect("now").expect_err("purged meanwhile"), Release::VaryMismatch);
}

#[test]
fn another_manifest_has_other_slices() {
    let stage = Stage::new();
    let first = manifest(&stage);
    let sliced = first.sliced().expect("a manifest");
    fill(&stage, fetch(&stage, sliced, 0), b"0123456789");
    stage.cache.outdate(&first);
    assert!(!first.is_live() && matches!(stage.ask("/"), Answer::Miss(_)));
    let second = manifest(&stage).sliced().expect("a manifest");
    assert!(is_held(&stage, sliced, 0), "who reads the first may finish");
    assert!(!stage.cache.may_have_slice(second, 0));
    // What is not stored any more is nothing to be outdated.
    stage.cache.outdate(&first);
    assert_eq!(stage.fresh("/").sliced(), Some(second));
}
