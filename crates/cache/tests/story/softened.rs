//! Soft purges: what is stored has less of its life before it, and is otherwise what it was.

use std::sync::Arc;

use cache::{Answer, EncodingAnswer, HotTable, Key, LookupOptions, Mark, MarkKind, Purge, Release, StoreAs, Tags};
use message::{ResponseHead, Status};
use rules::{ContentCoding, Facts, Lifetimes};

use crate::stage::*;

fn soften(stage: &Stage, path: &str) -> usize {
    stage.cache.purge_as(stage.key(path), Purge::SOFT, stage.now)
}

/// A minute of ttl, of grace and of keep; purged so after ten seconds, asked for at once or a little later.
fn check(how: Purge, then_ms: u64, expect: &str) {
    let mut stage = Stage::new();
    let minute = MINUTE_MS as i64;
    stage.fill(stage.miss("/"), living(minute, MINUTE_MS, MINUTE_MS), b"body").expect("stored");
    stage.advance_ms(10_000);
    assert_eq!(stage.cache.purge_as(stage.key("/"), how, stage.now), 1);
    stage.advance_ms(then_ms);
    assert_eq!(kind(&stage.ask("/")), expect, "{how:?}, {then_ms} ms later");
}

#[test]
fn it_leaves_as_much_of_a_life_as_it_says() {
    let soft = |ttl_ms, grace_ms, keep_ms| Purge::Soft { ttl_ms, grace_ms, keep_ms };
    check(Purge::Hard, 0, "miss");
    check(Purge::SOFT, 0, "stale and refresh");
    check(Purge::SOFT, 59_999, "stale and refresh");
    check(Purge::SOFT, 60_000, "miss");
    check(soft(5_000, None, None), 4_999, "fresh");
    check(soft(5_000, None, None), 5_000, "stale and refresh");
    check(soft(99_000, None, None), 50_000, "stale and refresh");
    check(soft(0, Some(2_000), None), 1_999, "stale and refresh");
    check(soft(0, Some(2_000), None), 2_000, "miss");
    check(soft(0, Some(0), Some(0)), 0, "miss");
}

#[test]
fn what_was_purged_is_the_same_response() {
    let mut stage = Stage::new();
    let old = stage.fill(stage.miss("/"), living(10_000, 10_000, 10_000), b"body").expect("stored");
    let (mut hot, fields) = (HotTable::new(&stage.cache), fields_of(&[]));
    hot.remember(stage.key("/"), Default::default(), &old);
    (0..3).for_each(|_| old.touch(stage.now));
    stage.advance_ms(4_000);
    assert_eq!(soften(&stage, "/"), 1);
    assert!(hot.get(stage.key("/"), Default::default(), &request(&fields)).is_none() && !old.is_live());
    let Answer::Stale(soft, Some(_)) = stage.ask("/") else { panic!("not stale") };
    assert_eq!((body_of(&soft), soft.hits(), soft.last_hit_ms()), (b"body".to_vec(), 3, old.last_hit_ms()));
    assert_eq!(soft.lifetimes(stage.now), Lifetimes { age_ms: 4_000, ttl_ms: 0, grace_ms: 10_000, keep_ms: 10_000 });
    assert_eq!(soft.age_s(stage.now), 4);
    let stats = stage.cache.stats();
    assert_eq!((stats.objects, stats.invalidated), (1, 1));
}

#[test]
fn in_the_moment_of_its_birth_it_is_stale_too() {
    let stage = Stage::new();
    stage.fill(stage.miss("/"), living(10_000, 10_000, 0), b"body").expect("stored");
    assert_eq!((soften(&stage, "/"), soften(&stage, "/"), soften(&stage, "/other")), (1, 1, 0));
    assert_eq!(kind(&stage.ask("/")), "stale and refresh");
}

#[test]
fn every_variant_every_part_and_every_mark_is_hit() {
    let stage = Stage::new();
    let ask = |of: &str| stage.ask_with("/", &[("X-Of", of)], &LookupOptions::default());
    for of in ["a", "b"] {
        let store_as = StoreAs { vary: Some(spec("X-Of")), ..living(10_000, 10_000, 0) };
        stage.fill(ticket(ask(of)), store_as, b"body").expect("stored");
    }
    let lifetimes = Lifetimes { age_ms: 0, ttl_ms: 10_000, grace_ms: 10_000, keep_ms: 0 };
    let mark = Some(Mark { kind: MarkKind::Pass, lifetimes, vary: Some(spec("X-Of")), tags: None });
    let description = cache::Description { mark, uncacheable_ms: 0, ..stage.description(None, None) };
    ticket(ask("c")).describe(description).land(None);
    let alone = LookupOptions { always_miss: true, ..LookupOptions::default() };
    let part = StoreAs { partial: Some(cache::Part { from: 0, to: 4, complete: Some(9) }), ..varying("X-Of") };
    stage.fill(ticket(stage.ask_with("/", &[("X-Of", "d")], &alone)), part, b"part").expect("stored");
    assert_eq!(stage.cache.stats().objects, 4);
    assert_eq!(soften(&stage, "/"), 4);
    let kinds = ["a", "b", "c", "d"].map(|of| kind(&ask(of)));
    assert_eq!(kinds, ["stale and refresh", "stale and refresh", "hit for miss", "miss"]);
    assert_eq!(stage.cache.stats().objects, 3, "nobody is served a stale part");
}

#[test]
fn a_fetch_that_began_before_stores_nothing() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let mut waiting = stage.busy("/");
    assert_eq!(soften(&stage, "/"), 0);
    assert_eq!(kind(&stage.ask("/")), "miss");
    assert!(stage.fill(leader, living(10_000, 0, 0), b"old").is_none());
    assert!(head_of(&mut waiting).unwrap().is_ok_and(|headed| !headed.leader));
    assert_eq!(whole_body(&mut waiting), b"old");
}

#[test]
fn a_refresh_of_what_was_purged_meanwhile_is_not_stored() {
    let mut stage = Stage::new();
    stage.fill(stage.miss("/"), living(1_000, MINUTE_MS, 0), b"old").expect("stored");
    stage.advance_ms(2_000);
    let Answer::Stale(_, Some(refresh)) = stage.ask("/") else { panic!("no refresh") };
    let mut leader = refresh.follow(0);
    soften(&stage, "/");
    let head = std::sync::Arc::new(message::ResponseHead::new(message::Status::OK));
    refresh.refreshed((head, bytes::Bytes::new()), facts(MINUTE_MS), None, stage.now);
    assert!(!matches!(head_of(&mut leader).unwrap(), Err(Release::Failed(_))));
    assert_eq!(kind(&stage.ask("/")), "stale and refresh");
}

#[test]
fn what_lives_by_its_fields_becomes_stale() {
    let stage = Stage::new();
    let grace = Facts { stale_while_revalidate_ms: 5_000, ..facts(MINUTE_MS) };
    stage.fill(stage.miss("/a"), StoreAs { facts: grace, ..storable(0) }, b"body").expect("stored");
    stage.store("/b", b"body");
    assert_eq!((soften(&stage, "/a"), soften(&stage, "/b")), (1, 1));
    assert_eq!(kind(&stage.ask("/a")), "stale and refresh");
    assert!(stage.miss("/b").stale().is_some(), "to be validated");
}

fn tag(stage: &Stage) -> Key {
    stage.cache.key([&b"tag"[..]])
}

fn carrying(stage: &Stage, store_as: StoreAs) -> StoreAs {
    StoreAs { tags: Tags::new([tag(stage)]).expect("one is few"), ..store_as }
}

/// By its tag a response is softened where it is: thousands are, at once.
#[test]
fn what_carries_a_tag_is_shortened_in_its_place() {
    let mut stage = Stage::new();
    let lives = carrying(&stage, living(10_000, 10_000, 10_000));
    let object = stage.fill(stage.miss("/"), lives, b"body").expect("stored");
    let (mut hot, fields) = (HotTable::new(&stage.cache), fields_of(&[]));
    hot.remember(stage.key("/"), Default::default(), &object);
    (0..3).for_each(|_| object.touch(stage.now));
    stage.advance_ms(4_000);
    let purge = |how| stage.cache.purge_tags(&[tag(&stage)], how, stage.now);
    assert_eq!((purge(Purge::SOFT), purge(Purge::SOFT)), (1, 0), "what is stale is not hit again");
    assert!(hot.get(stage.key("/"), Default::default(), &request(&fields)).is_none());
    let Answer::Stale(soft, Some(refresh)) = stage.ask("/") else { panic!("not stale") };
    assert!(Arc::ptr_eq(&soft, &object) && soft.is_live());
    assert_eq!(soft.lifetimes(stage.now), Lifetimes { age_ms: 4_000, ttl_ms: 0, grace_ms: 10_000, keep_ms: 10_000 });
    assert_eq!((soft.hits(), soft.age_s(stage.now), stage.cache.stats().invalidated), (3, 4, 1));
    hot.remember(stage.key("/"), Default::default(), &soft);
    assert!(hot.get(stage.key("/"), Default::default(), &request(&fields)).is_none(), "no hot table has it again");
    let newer = carrying(&stage, living(10_000, 0, 0));
    stage.fill(refresh, newer, b"newer").expect("stored");
    assert_eq!((body_of(&stage.fresh("/")), object.is_live()), (b"newer".to_vec(), false));
    assert_eq!((stage.cache.stats().tags, purge(Purge::Hard)), (1, 1));
}

#[test]
fn orders_that_follow_one_another_only_shorten() {
    let soft = |ttl_ms, grace_ms, keep_ms| Purge::Soft { ttl_ms, grace_ms, keep_ms };
    let mut stage = Stage::new();
    let lives = carrying(&stage, living(60_000, 60_000, 60_000));
    let object = stage.fill(stage.miss("/"), lives, b"body").expect("stored");
    stage.advance_ms(10_000);
    let left = |expect: (i64, u64, u64)| {
        let lifetimes = object.lifetimes(stage.now);
        assert_eq!((lifetimes.ttl_ms, lifetimes.grace_ms, lifetimes.keep_ms), expect);
    };
    let by_tag = |how| assert_eq!(stage.cache.purge_tags(&[tag(&stage)], how, stage.now), 1);
    by_tag(soft(20_000, None, Some(5_000)));
    left((20_000, 60_000, 5_000));
    by_tag(soft(40_000, Some(1_000), None));
    left((20_000, 1_000, 5_000));
    assert_eq!(kind(&stage.ask("/")), "fresh");
    assert_eq!(stage.cache.purge_as(stage.key("/"), soft(1, None, None), stage.now), 1);
    left((1, 1_000, 5_000));
    stage.advance_ms(1);
    assert_eq!(kind(&stage.ask("/")), "stale and refresh");
}

#[test]
fn a_part_that_carries_the_tag_goes() {
    let stage = Stage::new();
    let part = StoreAs { partial: Some(cache::Part { from: 0, to: 4, complete: Some(9) }), ..storable(MINUTE_MS) };
    stage.fill(stage.miss("/"), carrying(&stage, part), b"part").expect("stored");
    assert_eq!(stage.cache.purge_tags(&[tag(&stage)], Purge::SOFT, stage.now), 1);
    stage.cache.take_out_purged(usize::MAX);
    assert_eq!((stage.cache.stats().objects, stage.cache.stats().tags), (0, 0));
}

#[test]
fn its_encodings_are_softened_with_it_also_those_that_are_being_made() {
    let mut stage = Stage::new();
    let lives = carrying(&stage, living(10_000, 10_000, 0));
    let primary = stage.fill(stage.miss("/"), lives, b"body").expect("stored");
    let begin = |coding| {
        let head = || ResponseHead { fields: primary.fields().to_fields(), ..ResponseHead::new(Status::OK) };
        match stage.cache.encoding(primary.encodings_or_new(), coding, (primary.key(), 0), head) {
            EncodingAnswer::Make(mut draft, _) => {
                draft.append("s".into());
                draft
            }
            other => panic!("{other:?}"),
        }
    };
    let made = begin(ContentCoding::Gzip).land(Some(&primary)).expect("it is kept");
    let under_way = begin(ContentCoding::Brotli);
    let mut hot = HotTable::new(&stage.cache);
    hot.remember(stage.key("/"), Default::default(), &made);
    assert!(hot.get_plain(stage.key("/")).is_some());
    stage.advance_ms(4_000);
    assert_eq!(stage.cache.purge_tags(&[tag(&stage)], Purge::SOFT, stage.now), 1);
    let late = under_way.land(Some(&primary)).expect("it is kept");
    for encoding in [&made, &late] {
        hot.remember(stage.key("/"), Default::default(), encoding);
        assert!(hot.get_plain(stage.key("/")).is_none() && encoding.is_live());
    }
    assert_eq!(made.lifetimes(stage.now).ttl_ms, 0);
    assert_eq!(kind(&stage.ask("/")), "stale and refresh");
}
