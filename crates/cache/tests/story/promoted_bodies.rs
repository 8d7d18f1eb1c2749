//! A body that is asked for again and again is promoted to the page file; what is fetched once is not.

use crate::stage::*;
use cache::{BodyPromotion, CacheSettings, Object};
use std::sync::Arc;

const LEN: usize = 300_007;

fn body() -> Vec<u8> {
    (0..LEN).map(|at| (at % 251) as u8).collect()
}

/// Says that all of it was sent, as often as it takes until it is to be promoted.
fn ask_until_promoted(object: &Arc<Object>) -> (usize, BodyPromotion) {
    (1..9).find_map(|times| Some((times, object.body().note_sent(LEN as u64)?))).expect("it is promoted in the end")
}

fn promote(promotion: BodyPromotion) -> usize {
    let (mut left, mut steps) = (Some(promotion), 0);
    while let Some(promotion) = left {
        left = promotion.step();
        steps += 1;
    }
    steps
}

#[test]
fn what_is_sent_often_is_laid_bit_by_bit_and_charged_once() {
    let stage = Stage::new();
    let object = stage.store("/", &body());
    let used = stage.cache.account().used();
    assert_eq!((object.body().extent().is_some(), stage.cache.file_memory_bytes()), (false, 0));
    let reading = object.body().out_of_line().expect("a body of its own");
    let (times, promotion) = ask_until_promoted(&object);
    assert_eq!(times, 3);
    assert!(stage.cache.account().used() >= used + LEN, "it stands twice meanwhile");
    assert!(object.body().note_sent(9 * LEN as u64).is_none(), "somebody is at it");
    assert_eq!(promote(promotion), LEN.div_ceil(128 << 10));
    assert!(object.body().extent().is_some() && stage.cache.file_memory_bytes() >= LEN as u64);
    assert_eq!(stage.cache.account().used(), used);
    assert!(reading.pieces(0, u64::MAX).collect::<Vec<_>>().concat() == body(), "who reads in the blocks goes on");
    assert!(body_of(&object) == body() && object.body().note_sent(9 * LEN as u64).is_none());
    stage.cache.purge(stage.key("/"));
    drop(object);
    assert_eq!((stage.cache.account().used(), stage.cache.file_memory_bytes()), (0, 0));
}

#[test]
fn ranges_count_by_their_bytes() {
    let stage = Stage::new();
    let object = stage.store("/", &body());
    assert!((0..2_000).all(|_| object.body().note_sent(100).is_none()));
    assert!(object.body().note_sent(3 * LEN as u64 - 200_001).is_none());
    assert!(object.body().note_sent(1).is_some());
}

#[test]
fn what_leaves_meanwhile_is_given_up() {
    let stage = Stage::new();
    let object = stage.store("/", &body());
    let (_, promotion) = ask_until_promoted(&object);
    let promotion = promotion.step().expect("there is more");
    stage.cache.purge(stage.key("/"));
    assert!(promotion.step().is_none());
    assert!(object.body().extent().is_none() && body_of(&object) == body());
    assert_eq!(stage.cache.file_memory_bytes(), 0);
}

#[test]
fn what_comes_to_nothing_is_tried_again() {
    // A 64th of it is room for four.
    let stage = Stage::with(CacheSettings { memory_bytes_max: 80 << 20, ..CacheSettings::default() });
    let objects: Vec<_> = (0..5).map(|n| stage.store(&format!("/{n}"), &body())).collect();
    let mut layings: Vec<_> = objects[..4].iter().map(|object| ask_until_promoted(object).1).collect();
    let last = &objects[4];
    assert!((0..20).all(|_| last.body().note_sent(LEN as u64).is_none()), "enough others are on their way");
    layings.pop();
    promote(ask_until_promoted(last).1);
    assert!(last.body().extent().is_some());
    // The one that was dropped half-way, too.
    promote(ask_until_promoted(&objects[3]).1);
    assert!(objects[3].body().extent().is_some());
}

#[test]
fn small_and_very_large_bodies_stay_where_they_are() {
    let stage = Stage::new();
    for len in [0, 1_000, (48 << 10) - 1, (2 << 20) + 1] {
        let object = stage.store(&format!("/{len}"), &vec![7; len]);
        assert!((0..9).all(|_| object.body().note_sent(len as u64).is_none()), "{len}");
        assert!(object.body().extent().is_none() && body_of(&object).len() == len);
    }
}
