//! Reading behind the writer: heads, bodies, windows, wakes.

use crate::stage::*;
use bytes::Bytes;
use cache::{Answer, BodyPiece, CacheSettings, Follower, LookupOptions, Release, StoreAs};
use message::FieldName;
use rules::{Facts, RequestDirectives};
use std::task::Poll;

fn set_cookie(follower: &mut Follower) -> bool {
    let headed = head_of(follower).expect("described").expect("not released");
    headed.head.fields.view().contains(FieldName::SetCookie)
}

#[test]
fn everybody_reads_from_byte_0_at_their_own_pace() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let mut first = leader.follow(0);
    let mut second = stage.busy("/");
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), None);
    draft.append("hello ".into());
    assert_eq!(read_body(&mut first).0, b"hello ");
    draft.append("world".into());
    let mut third = stage.busy("/");
    assert_eq!(read_body(&mut second).0, b"hello world");
    let trailers = fields_of(&[("Checksum", "1")]);
    let object = draft.land(Some(trailers)).expect("stored");
    assert_eq!(whole_body(&mut first), b"world");
    assert_eq!(whole_body(&mut third), b"hello world");
    match read_body(&mut second) {
        (rest, Some(BodyPiece::End { trailers: Some(trailers) })) => {
            assert!(rest.is_empty() && trailers.view().get_all_named(b"checksum").eq([b"1"]));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(body_of(&object), b"hello world");
}

#[test]
fn the_leaders_cookie_goes_to_the_leader_alone() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let (mut first, mut second) = (leader.follow(0), stage.busy("/"));
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), None);
    assert!(set_cookie(&mut first) && !set_cookie(&mut second));
    let mut third = stage.busy("/");
    draft.append("x".into());
    let object = draft.land(None).expect("stored");
    assert!(!set_cookie(&mut third));
    assert!(!object.fields().contains(FieldName::SetCookie));
}

#[test]
fn a_private_answer_frees_all_waiters_at_once() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let mut first = leader.follow(0);
    let mut waiters: Vec<Follower> = (0..3).map(|_| stage.busy("/")).collect();
    let bells: Vec<_> = waiters.iter().map(|_| Bell::new()).collect();
    for (waiter, bell) in waiters.iter_mut().zip(&bells) {
        assert!(poll_with(bell, |cx| waiter.poll_head(cx)).is_pending());
    }
    let mut draft = stage.describe(leader, None, None);
    for (waiter, bell) in waiters.iter_mut().zip(&bells) {
        assert_eq!((bell.rings(), head_of(waiter).unwrap().unwrap_err()), (1, Release::Private));
    }
    assert!(set_cookie(&mut first));
    draft.append("mine".into());
    assert!(draft.land(None).is_none());
    assert_eq!(whole_body(&mut first), b"mine");
}

#[test]
fn a_failure_before_the_head_is_the_same_for_all() {
    let mut stage = Stage::new();
    stage.store("/", b"old");
    stage.advance_ms(2 * MINUTE_MS);
    let leader = stage.miss("/");
    let (mut first, mut second) = (leader.follow(0), stage.busy("/"));
    leader.fail(failure(1_000), stage.now);
    for follower in [&mut first, &mut second] {
        assert_eq!(head_of(follower).unwrap().unwrap_err(), Release::Failed(failure(1_000)));
    }
    assert_eq!(second.stale().map(body_of).as_deref(), Some(&b"old"[..]));
}

#[test]
fn a_body_that_breaks_off_is_truncated_for_readers_and_not_stored() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let (mut first, mut late) = (leader.follow(0), stage.busy("/"));
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), Some(10));
    assert!(head_of(&mut first).unwrap().is_ok());
    draft.append("half".into());
    draft.abort(failure(0), stage.now);
    let (body, end) = read_body(&mut first);
    assert!(body == b"half" && matches!(end, Some(BodyPiece::Truncated(_))), "{end:?}");
    // Who has shown nothing yet can still answer as if nothing had come.
    assert_eq!(head_of(&mut late).unwrap().unwrap_err(), Release::Failed(failure(0)));
    assert_eq!(kind(&stage.ask("/")), "miss");
}

#[test]
fn a_body_that_breaks_off_is_remembered_where_several_had_it_and_all_would_have() {
    let check = |storable, too_long: bool, readers_count, expect| {
        let mut stage = Stage::with(CacheSettings { object_bytes_max: 1_000, ..CacheSettings::default() });
        let leader = stage.miss("/");
        let _readers: Vec<_> = (0..readers_count).map(|core| leader.follow(core)).collect();
        let mut draft = stage.describe(leader, storable, None);
        draft.append("half".into());
        if too_long {
            draft.append(Bytes::from(vec![1; 1_000]));
        }
        draft.abort(failure(1_000), stage.now);
        assert_eq!(kind(&stage.ask("/")), expect);
        stage.advance_ms(10_000);
        assert_eq!(kind(&stage.ask("/")), "miss");
    };
    check(Some(storable(MINUTE_MS)), false, 2, "recent failure");
    check(Some(storable(MINUTE_MS)), false, 1, "miss");
    check(Some(storable(MINUTE_MS)), false, 0, "miss");
    check(Some(storable(MINUTE_MS)), true, 2, "hit for miss");
    check(None, false, 2, "hit for miss");
}

#[test]
fn a_body_of_another_length_than_was_said_is_not_stored() {
    for (said, sent) in [(3, "abcd"), (5, "abcd"), (1, "")] {
        let stage = Stage::new();
        let leader = stage.miss("/");
        let mut reader = leader.follow(0);
        let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), Some(said));
        draft.append(Bytes::from_static(sent.as_bytes()));
        assert!(draft.land(None).is_none());
        assert!(matches!(read_body(&mut reader).1, Some(BodyPiece::Truncated(it)) if it.token == "origin-body-length"));
        assert_eq!(kind(&stage.ask("/")), "miss");
    }
}

#[test]
fn a_range_reader_goes_ahead_and_waits_there() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let mut reader = leader.follow(0);
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), None);
    reader.seek(6);
    draft.append("0123".into());
    assert!(matches!(read_body(&mut reader), (nothing, None) if nothing.is_empty()));
    draft.append("4567".into());
    assert_eq!(read_body(&mut reader).0, b"67");
    assert_eq!(draft.flight().received_bytes(), 8);
    reader.seek(2);
    draft.land(None);
    assert_eq!(whole_body(&mut reader), b"", "there is no way back");
}

fn small_window() -> Stage {
    Stage::with(CacheSettings { object_bytes_max: 1_000, window_bytes_max: 1_000, ..CacheSettings::default() })
}

#[test]
fn a_body_that_is_too_large_passes_through_a_window() {
    let stage = small_window();
    let leader = stage.miss("/");
    let (mut fast, mut slow) = (leader.follow(0), stage.busy("/"));
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), None);
    draft.append(Bytes::from(vec![1; 900]));
    assert!(draft.is_kept() && now_or_never(|cx| draft.poll_room(cx)).is_some());
    draft.append(Bytes::from(vec![2; 900]));
    assert!(!draft.is_kept());
    // Nobody new comes in, and nobody waits for it.
    assert_eq!(kind(&stage.ask("/")), "hit for miss");
    assert_eq!(read_body(&mut fast).0.len(), 1_800);
    let bell = Bell::new();
    assert!(poll_with(&bell, |cx| draft.poll_room(cx)).is_pending(), "the slowest has read nothing");
    assert_eq!(read_body(&mut slow).0.len(), 1_800);
    assert_eq!(bell.rings(), 1);
    assert!(poll_with(&bell, |cx| draft.poll_room(cx)).is_ready());
    draft.append(Bytes::from(vec![3; 5]));
    assert!(draft.land(None).is_none());
    assert_eq!((whole_body(&mut fast), whole_body(&mut slow)), (vec![3; 5], vec![3; 5]));
    drop((fast, slow));
    assert_eq!(stage.cache.stats().overflowed, 1);
}

#[test]
fn a_length_that_is_too_large_is_a_window_from_the_start() {
    let stage = small_window();
    let leader = stage.miss("/");
    let (mut first, mut second) = (leader.follow(0), stage.busy("/"));
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), Some(2_000));
    assert!(!draft.is_kept() && head_of(&mut second).unwrap().is_ok());
    draft.append(Bytes::from(vec![1; 2_000]));
    assert!(draft.land(None).is_none());
    assert_eq!((whole_body(&mut first).len(), whole_body(&mut second).len()), (2_000, 2_000));
}

#[test]
fn the_slowest_is_cut_off_and_holds_nobody_up() {
    let stage = small_window();
    let leader = stage.miss("/");
    let (mut fast, mut slow) = (leader.follow(0), stage.busy("/"));
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), Some(9_000));
    draft.append(Bytes::from(vec![1; 3_000]));
    assert_eq!(read_body(&mut fast).0.len(), 3_000);
    assert!(now_or_never(|cx| draft.poll_room(cx)).is_none());
    assert_eq!((draft.slowest_position(), draft.cut_off_slowest()), (Some(0), 1));
    assert!(now_or_never(|cx| draft.poll_room(cx)).is_some());
    assert!(matches!(read_body(&mut slow).1, Some(BodyPiece::CutOff)));
    assert_eq!(draft.readers_count(), 1);
    draft.append(Bytes::from(vec![1; 6_000]));
    draft.land(None);
    assert_eq!(whole_body(&mut fast).len(), 6_000);
}

#[test]
fn a_slow_reader_that_leaves_gives_the_others_their_pace_back() {
    let stage = small_window();
    let leader = stage.miss("/");
    let (mut fast, slow) = (leader.follow(0), stage.busy("/"));
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), Some(9_000));
    draft.append(Bytes::from(vec![1; 3_000]));
    assert_eq!(read_body(&mut fast).0.len(), 3_000);
    assert!(now_or_never(|cx| draft.poll_room(cx)).is_none());
    drop(slow);
    assert!(now_or_never(|cx| draft.poll_room(cx)).is_some());
}

#[test]
fn a_window_is_charged_by_what_it_holds() {
    let stage = small_window();
    let leader = stage.miss("/");
    let mut reader = leader.follow(0);
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), None);
    let before = stage.cache.account().used();
    for _ in 0..3 {
        draft.append(Bytes::from(vec![1; 700]));
    }
    // And as much again for what its pieces hold beside themselves.
    assert_eq!(stage.cache.account().used() - before, 2 * 2_100);
    assert_eq!(read_body(&mut reader).0.len(), 2_100);
    draft.append(Bytes::from(vec![1; 5]));
    assert_eq!(stage.cache.account().used() - before, 2 * 5);
}

#[test]
fn where_others_have_left_no_room_a_window_holds_one_piece() {
    let stage = small_window();
    let leader = stage.miss("/");
    let mut reader = leader.follow(0);
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), Some(9_000));
    draft.append(Bytes::from(vec![1; 5]));
    assert!(now_or_never(|cx| draft.poll_room(cx)).is_some(), "5 of 1,000 bytes");
    let account = stage.cache.account();
    let others = account.charge(account.limit());
    assert!(now_or_never(|cx| draft.poll_room(cx)).is_none());
    assert_eq!(read_body(&mut reader).0.len(), 5);
    assert!(now_or_never(|cx| draft.poll_room(cx)).is_some(), "the reader has the last piece, and waits for the next");
    draft.append(Bytes::from(vec![1; 5]));
    assert!(now_or_never(|cx| draft.poll_room(cx)).is_none());
    drop(others);
    assert!(now_or_never(|cx| draft.poll_room(cx)).is_some());
}

#[test]
fn nobody_is_cut_off_while_the_body_is_kept() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let mut reader = leader.follow(0);
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), None);
    draft.append("x".into());
    assert_eq!(draft.cut_off_slowest(), 0);
    draft.land(None);
    assert_eq!(whole_body(&mut reader), b"x");
}

#[test]
fn a_reader_ahead_of_a_window_does_not_hold_it_back() {
    let stage = small_window();
    let leader = stage.miss("/");
    let mut reader = leader.follow(0);
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), Some(5_000));
    reader.seek(4_998);
    for _ in 0..5 {
        assert!(now_or_never(|cx| draft.poll_room(cx)).is_some());
        draft.append(Bytes::from(vec![1; 1_000]));
    }
    draft.land(None);
    assert_eq!(whole_body(&mut reader).len(), 2);
}

#[test]
fn a_window_without_readers_keeps_nothing_and_waits_for_nobody() {
    let stage = small_window();
    let leader = stage.miss("/");
    let reader = leader.follow(0);
    let mut draft = stage.describe(leader, None, None);
    draft.append(Bytes::from(vec![1; 5_000]));
    let bell = Bell::new();
    assert!(poll_with(&bell, |cx| draft.poll_room(cx)).is_pending());
    drop(reader);
    assert_eq!(bell.rings(), 1);
    assert!(poll_with(&bell, |cx| draft.poll_room(cx)).is_ready());
    let before = stage.cache.account().used();
    draft.append(Bytes::from(vec![1; 100_000]));
    assert!(stage.cache.account().used() <= before);
    assert!(now_or_never(|cx| draft.poll_abandoned(cx)).is_some());
}

#[test]
fn a_writer_learns_that_its_last_reader_left() {
    let stage = Stage::new();
    let mut leader = stage.miss("/");
    let (first, second) = (leader.follow(0), stage.busy("/"));
    let bell = Bell::new();
    assert!(poll_with(&bell, |cx| leader.poll_abandoned(cx)).is_pending());
    drop(first);
    assert!(poll_with(&bell, |cx| leader.poll_abandoned(cx)).is_pending(), "the leader leaving kills nothing");
    drop(second);
    assert!(bell.rings() > 0 && poll_with(&bell, |cx| leader.poll_abandoned(cx)).is_ready());
}

#[test]
fn a_fetch_is_given_up_only_while_nobody_reads() {
    let stage = Stage::new();
    let waiting = (stage.miss("/"), stage.busy("/"));
    let leader = waiting.0.abandon(failure(0)).expect("somebody waits");
    drop(waiting.1);
    assert!(leader.abandon(failure(0)).is_none());
    let (leader, mut reader) = (stage.miss("/"), stage.busy("/"));
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), None);
    draft.append("x".into());
    draft = draft.abandon(failure(0)).expect("somebody reads");
    assert_eq!(read_body(&mut reader).0, b"x");
    drop(reader);
    assert!(draft.abandon(failure(0)).is_none());
    assert_eq!(kind(&stage.ask("/")), "miss");
    assert_eq!((stage.cache.stats().keys, stage.cache.account().used()), (0, 0));
}

#[test]
fn another_core_gets_one_post_for_all_its_readers() {
    let stage = Stage::new();
    let leader = ticket(stage.ask_with("/", &[], &on_core(0)));
    let mut here = leader.follow(0);
    let mut there: Vec<Follower> = (0..3).map(|_| follower(stage.ask_with("/", &[], &on_core(1)))).collect();
    let (bell, far) = (Bell::new(), Bell::new());
    assert!(poll_with(&bell, |cx| here.poll_head(cx)).is_pending());
    for reader in &mut there {
        assert!(poll_with(&far, |cx| reader.poll_head(cx)).is_pending());
        assert!(poll_with(&far, |cx| reader.poll_head(cx)).is_pending(), "polled twice, woken once");
    }
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), None);
    draft.append("x".into());
    assert_eq!((bell.rings(), far.rings()), (1, 0));
    assert_eq!(stage.posted_cores(), [1]);
    stage.deliver();
    assert_eq!(far.rings(), 3);
    for reader in &mut there {
        assert!(matches!(poll_with(&far, |cx| reader.poll_head(cx)), Poll::Ready(Ok(_))));
        assert_eq!(read_body(reader).0, b"x");
        assert!(poll_with(&far, |cx| reader.poll_body(cx)).is_pending());
    }
    draft.land(None);
    assert_eq!(stage.posted_cores(), [1]);
}

#[test]
fn a_reader_that_left_is_not_woken() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let (bell, other) = (Bell::new(), Bell::new());
    let (mut gone, mut stays) = (stage.busy("/"), stage.busy("/"));
    assert!(poll_with(&bell, |cx| gone.poll_head(cx)).is_pending());
    assert!(poll_with(&other, |cx| stays.poll_head(cx)).is_pending());
    drop(gone);
    let _draft = stage.describe(leader, Some(storable(MINUTE_MS)), None);
    assert_eq!((bell.rings(), other.rings()), (0, 1));
}

#[test]
fn a_writer_on_another_core_is_posted_to_once() {
    let stage = small_window();
    let leader = ticket(stage.ask_with("/", &[], &on_core(0)));
    let mut readers = [leader.follow(1), leader.follow(1)];
    let mut draft = stage.describe(leader, None, None);
    draft.append(Bytes::from(vec![1; 2_000]));
    let bell = Bell::new();
    assert!(poll_with(&bell, |cx| draft.poll_room(cx)).is_pending());
    readers.iter_mut().for_each(|reader| drop(read_body(reader)));
    assert_eq!((stage.posted_cores(), bell.rings()), (vec![0], 0));
    stage.deliver();
    assert_eq!(bell.rings(), 1);
    assert!(poll_with(&bell, |cx| draft.poll_room(cx)).is_ready());
}

/// RFC 9111 §4, §5.2.2.4: behind its head a response is one that might be stored.
#[test]
fn who_comes_after_the_head_follows_only_what_is_fresh_for_it() {
    let plain = RequestDirectives::default();
    let check = |store_as: StoreAs, after_ms: u64, directives: RequestDirectives, expect: &str| {
        let mut stage = Stage::new();
        let leader = stage.miss("/");
        let options = LookupOptions { directives, ..LookupOptions::default() };
        assert_eq!(kind(&stage.ask_with("/", &[], &options)), "busy", "before the head anybody waits");
        let facts = store_as.facts;
        let draft = stage.describe(leader, Some(store_as), None);
        stage.advance_ms(after_ms);
        let answer = stage.ask_with("/", &[], &options);
        assert_eq!(kind(&answer), expect, "{facts:?} after {after_ms} ms, {directives:?}");
        if let Answer::Miss(second) = answer
            && directives == plain
        {
            assert_eq!(kind(&stage.ask("/")), "busy", "for the newer one, whose head is not there");
            let mut newer = stage.describe(second, Some(storable(MINUTE_MS)), None);
            newer.append("newer".into());
            assert_eq!(read_body(&mut stage.busy("/")).0, b"newer");
        }
        drop(draft);
    };
    check(storable(MINUTE_MS), 0, plain, "busy");
    check(storable(MINUTE_MS), MINUTE_MS, plain, "miss");
    check(storable(0), 0, plain, "miss");
    let validated = StoreAs { facts: Facts { always_validate: true, ..facts(MINUTE_MS) }, ..storable(0) };
    check(validated, 0, plain, "miss");
    let aged = StoreAs { facts: Facts { initial_age_ms: 2 * MINUTE_MS, ..facts(MINUTE_MS) }, ..storable(0) };
    check(aged, 0, plain, "miss");
    check(storable(MINUTE_MS), 0, RequestDirectives { no_cache: true, ..plain }, "miss");
    check(storable(MINUTE_MS), 5_000, RequestDirectives { max_age_s: Some(1), ..plain }, "miss");
    // As a policy said: ttl, then grace; in keep it can only be validated, which what has not landed cannot.
    check(living(60_000, 0, 0), 5_000, RequestDirectives { no_cache: true, ..plain }, "busy");
    check(living(1_000, 10_000, 0), 5_000, plain, "busy");
    check(living(1_000, 0, MINUTE_MS), 5_000, plain, "miss");
    check(living(0, 0, 0), 5_000, plain, "miss");
}

/// As a policy's `obj.hits` says: who follows has hit what is on its way, and the stored object goes on counting.
#[test]
fn who_follows_is_counted_as_a_hit_of_what_lands() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let (mut own, mut waiting) = (leader.follow(0), stage.busy("/"));
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), None);
    let hits = |follower: &mut Follower| head_of(follower).expect("described").expect("not released").hits;
    assert_eq!((hits(&mut own), hits(&mut waiting)), (0, 1));
    let mut late = stage.busy("/");
    assert_eq!((hits(&mut late), late.hits()), (2, 2));
    let mut last = stage.busy("/");
    draft.append("x".into());
    let object = draft.land(None).expect("it is stored");
    assert_eq!((object.hits(), hits(&mut last), object.hits()), (2, 3, 3));
}
