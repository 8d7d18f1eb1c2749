//! Memory: the limit is kept, the hot set stays, and the account returns to zero.

use crate::stage::*;
use bytes::Bytes;
use cache::{Answer, CacheSettings, EvictionKind, HotTable};

const MIB: usize = 1 << 20;

fn sized(memory_bytes_max: usize, eviction: EvictionKind) -> Stage {
    Stage::with(CacheSettings { memory_bytes_max, eviction, ..CacheSettings::default() })
}

/// Asks as a client does: a hit touches, a miss is fetched.
fn visit(stage: &Stage, path: &str, body: &[u8]) -> bool {
    match stage.ask(path) {
        Answer::Fresh(object) => {
            object.touch(stage.now);
            true
        }
        Answer::Miss(ticket) => {
            stage.fill(ticket, storable(MINUTE_MS), body);
            false
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_limit_is_kept_and_the_hot_set_survives_a_scan() {
    let stage = sized(4 * MIB, EvictionKind::S3Fifo);
    let body = vec![7; 6_221];
    for index in 0..40_000 {
        visit(&stage, &format!("/hot/{}", index % 100), &body);
        // J16: addresses that are asked for once.
        visit(&stage, &format!("/scan/{index}"), &body);
        assert!(stage.cache.account().used() <= 4 * MIB);
    }
    let kept = (0..100).filter(|index| visit(&stage, &format!("/hot/{index}"), &body)).count();
    assert_eq!(kept, 100);
    let stats = stage.cache.stats();
    assert!(stats.keys == stats.objects && stats.evictions > 30_000, "{stats:?}");
}

#[test]
fn lru_keeps_the_limit_and_what_was_used_last() {
    let stage = sized(4 * MIB, EvictionKind::Lru);
    for index in 0..2_000 {
        visit(&stage, "/used", &[7; 6_221]);
        visit(&stage, &format!("/{index}"), &[7; 6_221]);
        assert!(stage.cache.account().used() <= 4 * MIB);
    }
    assert_eq!(kind(&stage.ask("/used")), "fresh");
    assert_eq!((kind(&stage.ask("/1999")), kind(&stage.ask("/0"))), ("fresh", "miss"));
}

#[test]
fn the_limit_can_be_changed_while_running() {
    let stage = sized(8 * MIB, EvictionKind::S3Fifo);
    for index in 0..2_000 {
        visit(&stage, &format!("/{index}"), &[7; 6_221]);
    }
    stage.cache.set_memory(MIB);
    let stats = stage.cache.stats();
    assert!(stats.memory_bytes <= MIB as u64 && stats.memory_bytes > (MIB - 8_000) as u64, "{stats:?}");
    stage.cache.set_memory(8 * MIB);
    for index in 0..2_000 {
        visit(&stage, &format!("/{index}"), &[7; 6_221]);
    }
    assert!(stage.cache.stats().memory_bytes > 7 * MIB as u64);
}

#[test]
fn what_readers_still_hold_counts_and_does_not_empty_the_cache() {
    let stage = sized(8 * MIB, EvictionKind::S3Fifo);
    let mut table = HotTable::new(&stage.cache);
    for index in 0..5_000 {
        let path = format!("/{index}");
        visit(&stage, &path, &[7; 6_221]);
        if let Answer::Fresh(object) = stage.ask(&path) {
            table.remember(object.key(), Default::default(), &object);
        }
        if index % 200 == 0 {
            (0..4).for_each(|_| table.sweep());
        }
        assert!(stage.cache.account().used() <= 8 * MIB + 8 * MIB / 4, "{}", stage.cache.account().used());
    }
    assert!(stage.cache.stats().objects > 600, "{:?}", stage.cache.stats());
}

#[test]
fn a_smaller_limit_takes_what_is_over_it_and_no_more_even_if_readers_hold_it() {
    let stage = sized(8 * MIB, EvictionKind::S3Fifo);
    let held: Vec<_> = (0..1_000).map(|index| stage.store(&format!("/{index}"), &[7; 6_221])).collect();
    stage.cache.set_memory(5 * MIB);
    let stays = held.iter().filter(|object| object.is_live()).count();
    assert!((700..900).contains(&stays), "{stays}");
}

#[test]
fn a_body_is_charged_while_it_grows_and_exactly_when_it_landed() {
    let stage = Stage::new();
    let account = stage.cache.account();
    let leader = stage.miss("/");
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), None);
    let before = account.used();
    for step in 1..=100 {
        draft.append(Bytes::from(vec![1; 3_000]));
        assert_eq!(account.used(), before + step * 3_000);
    }
    let object = draft.land(None).expect("stored");
    assert_eq!(body_of(&object), vec![1; 300_000]);
    // A head, and the whole of the last page.
    let over = account.used() - before - 300_000_usize.next_multiple_of(4_096);
    assert!((1..2_000).contains(&over), "{over}");
    drop(object);
    stage.cache.purge(stage.key("/"));
    assert_eq!(account.used(), 0);
}

#[test]
fn a_body_for_which_nothing_can_be_evicted_is_not_kept() {
    let stage = sized(MIB, EvictionKind::S3Fifo);
    let _elsewhere = stage.cache.account().charge(MIB - 2_000);
    let leader = stage.miss("/");
    let mut reader = leader.follow(0);
    let mut draft = stage.describe(leader, Some(storable(MINUTE_MS)), None);
    draft.append(Bytes::from(vec![1; 10_000]));
    assert!(!draft.is_kept());
    assert!(draft.land(None).is_none());
    assert_eq!(whole_body(&mut reader).len(), 10_000);
}

/// What a stored response costs beside its body, and that nothing that happens to it in passing makes it dearer.
#[test]
fn a_key_costs_what_its_object_does_however_it_was_touched() {
    let mut stage = Stage::new();
    let account = std::sync::Arc::clone(stage.cache.account());
    let object = stage.store("/", b"body");
    drop(object);
    let alone = account.used();
    assert!(alone < 700, "{alone}");
    let none = fields_of(&[]);
    let ask = |stage: &Stage| stage.cache.find(stage.key("/"), &request(&none)).expect("it is stored");
    let check = |what: &str| assert_eq!(account.used(), alone, "{what}");
    ask(&stage);
    stage.fresh("/");
    check("looked up");
    let renewed = stage
        .cache
        .freshen(&ask(&stage), None, facts(MINUTE_MS), (stage.cache.began(), stage.now))
        .expect("it is the stored one");
    drop(renewed);
    check("freshened");
    drop(stage.miss("/other"));
    check("another key was fetched in vain");
    stage.advance_ms(2 * MINUTE_MS);
    assert!(stage.cache.refresh(&ask(&stage), &request(&none), &on_core(0), stage.now).is_some());
    check("a refresh was given up");
    let stale = stage.miss("/");
    assert!(account.used() > alone, "an entry is there while there is a fetch");
    stale.give_back();
    check("it was asked for when it was stale");
    stage.fill(stage.miss("/"), storable(MINUTE_MS), b"body").expect("it is stored");
    check("it was fetched again");
    stage.cache.purge(stage.key("/"));
    assert_eq!(account.used(), 0);
}
