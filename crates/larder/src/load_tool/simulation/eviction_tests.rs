//! S3-FIFO against LRU on made traces: the short form of what `cargo xtask miss-ratios` does with a million requests.
//!
//! LRU twice: as the store has it, and strict, by a list of its own that no code of the store's is in.

use std::collections::BTreeMap;

use store::{Ask, EvictionKind};

use super::made_trace::{MadeKind, Recipe, make};
use super::miss_curves::{Grid, curves, whole_bytes};

const PERCENTS: [f64; 12] = [0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0];
const OBJECT_BYTES: u64 = 1_480;
/// At no size may S3-FIFO be worse by more.
const WORSE_MAX: f64 = 0.01;

fn check(kind: MadeKind) {
    let trace = make(&Recipe { kind, requests: 60_000, objects: 10_000, seed: 1 });
    let whole = whole_bytes(&trace, OBJECT_BYTES) as f64;
    let sizes_bytes: Vec<u64> = PERCENTS.iter().map(|percent| (whole * percent / 100.0) as u64).collect();
    let strict: Vec<f64> = sizes_bytes.iter().map(|bytes| strict_lru(&trace.asks, *bytes)).collect();
    let kinds = vec![EvictionKind::S3Fifo, EvictionKind::Lru];
    let made = curves(&trace, &Grid { kinds, sizes_bytes, object_bytes: OBJECT_BYTES, ttl_s: None }, |_| {});
    let ratios = |at: usize| made[at].misses.iter().map(|misses| misses.ratio()).collect::<Vec<f64>>();
    let (ours, mean) = (ratios(0), |ratios: &[f64]| ratios.iter().sum::<f64>() / ratios.len() as f64);
    for lru in [ratios(1), strict] {
        assert!(mean(&ours) < mean(&lru), "{kind:?}: {} against {}", mean(&ours), mean(&lru));
        for ((percent, ours), lru) in PERCENTS.iter().zip(&ours).zip(lru) {
            assert!(*ours <= lru + WORSE_MAX, "{kind:?} at {percent} %: {ours} against {lru}");
        }
    }
}

/// The part of the requests that it misses.
fn strict_lru(asks: &[Ask], limit_bytes: u64) -> f64 {
    // By the number of the last use, which 0 is none of.
    let mut by_use: BTreeMap<u64, Ask> = BTreeMap::new();
    let mut uses = vec![0; asks.len()];
    let weight = |ask: &Ask| u64::from(ask.bytes) + OBJECT_BYTES;
    let (mut taken_bytes, mut missed) = (0, 0);
    for (ask, number) in asks.iter().zip(1..) {
        if by_use.remove(&uses[ask.object as usize]).is_none() {
            missed += 1;
            if weight(ask) > limit_bytes {
                continue;
            }
            taken_bytes += weight(ask);
        }
        uses[ask.object as usize] = number;
        by_use.insert(number, *ask);
        while taken_bytes > limit_bytes {
            let (_, last) = by_use.pop_first().expect("bytes are taken");
            taken_bytes -= weight(&last);
        }
    }
    f64::from(missed) / asks.len() as f64
}

#[test]
fn s3_fifo_misses_less_than_lru_of_what_is_asked_for_by_a_zipf_law() {
    check(MadeKind::Zipf);
}

#[test]
fn s3_fifo_misses_less_than_lru_where_a_crawler_comes_by() {
    check(MadeKind::Scan);
}

#[test]
fn s3_fifo_misses_less_than_lru_of_a_week_of_a_site() {
    check(MadeKind::Site);
}
