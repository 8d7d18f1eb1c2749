//! Every policy at every size, each a replay of the whole trace, as many at once as there are cores.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;
use store::{EvictionKind, Misses, Tried, replay};

use crate::load_tool::simulation::trace_file::Trace;

/// How many sizes are tried when nobody names any: powers of two below what holds everything.
const SIZES_USUAL: usize = 10;

/// Within this part of what the largest cache misses, more memory is of no use: nine tenths of what it can win are won.
const WON: f64 = 0.9;

/// What is tried.
#[derive(Clone, Debug)]
pub struct Grid {
    pub kinds: Vec<EvictionKind>,
    pub sizes_bytes: Vec<u64>,
    pub object_bytes: u64,
    pub ttl_s: Option<u32>,
}

/// A policy's misses, one for each size.
#[derive(Clone, Debug)]
pub struct Curve {
    pub kind: EvictionKind,
    pub misses: Vec<Misses>,
}

/// What everything takes, that is asked for.
pub fn whole_bytes(trace: &Trace, object_bytes: u64) -> u64 {
    trace.footprint_bytes() + u64::from(trace.objects) * object_bytes
}

/// From what holds everything down by halves.
pub fn usual_sizes(whole_bytes: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> = (0..SIZES_USUAL).map(|halves| whole_bytes >> halves).filter(|bytes| *bytes > 0).collect();
    sizes.reverse();
    sizes
}

pub fn curves(trace: &Trace, grid: &Grid, on_done: impl Fn(usize) + Sync) -> Vec<Curve> {
    let pairs: Vec<(EvictionKind, u64)> =
        grid.kinds.iter().flat_map(|kind| grid.sizes_bytes.iter().map(|size| (*kind, *size))).collect();
    let made = Mutex::new(vec![Misses::default(); pairs.len()]);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(pairs.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((place, (kind, limit_bytes))) =
                    Some(next.fetch_add(1, Relaxed)).and_then(|at| Some((at, *pairs.get(at)?)))
                {
                    let Grid { object_bytes, ttl_s, .. } = *grid;
                    let tried = Tried { kind, limit_bytes, object_bytes, ttl_s, standby_s: standby_s(ttl_s) };
                    let misses = replay(&trace.asks, tried);
                    made.lock()[place] = misses;
                    on_done(done.fetch_add(1, Relaxed) + 1);
                }
            });
        }
    });
    let made = made.into_inner();
    let rows = made.chunks(grid.sizes_bytes.len());
    grid.kinds.iter().zip(rows).map(|(kind, misses)| Curve { kind: *kind, misses: misses.to_vec() }).collect()
}

/// As the server has it, of responses that can be validated.
pub fn standby_s(ttl_s: Option<u32>) -> u32 {
    ttl_s.map_or(0, |ttl_s| (cache::standby_ms(u64::from(ttl_s) * 1_000) / 1_000) as u32)
}

/// The smallest size tried from which on more memory is of little use.
pub fn enough(curve: &Curve) -> Option<usize> {
    let (first, last) = (curve.misses.first()?.ratio(), curve.misses.last()?.ratio());
    let wanted = first - (first - last) * WON;
    curve.misses.iter().position(|misses| misses.ratio() <= wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Ask;

    /// Popular ones again and again, and as many that come once.
    fn trace() -> Trace {
        let ask = |object| Ask { object, bytes: 100, at_s: 0 };
        let asks = (0..4_000u32).map(|at| if at % 2 == 0 { ask(at / 2 % 20) } else { ask(20 + at / 2) }).collect();
        Trace { asks, objects: 2_020, ..Trace::default() }
    }

    #[test]
    fn more_memory_misses_less_and_all_of_it_only_what_is_new() {
        let trace = trace();
        let whole = whole_bytes(&trace, 28);
        assert_eq!(whole, 2_020 * 128);
        let grid =
            Grid { kinds: EvictionKind::ALL.to_vec(), sizes_bytes: usual_sizes(whole), object_bytes: 28, ttl_s: None };
        assert_eq!((grid.sizes_bytes.len(), grid.sizes_bytes[9]), (10, whole));
        let done = AtomicUsize::new(0);
        let curves = curves(&trace, &grid, |_| {
            done.fetch_add(1, Relaxed);
        });
        assert_eq!((curves.len(), done.into_inner()), (3, 30));
        for curve in &curves {
            assert_eq!(curve.misses[9].missed, 2_020, "{:?}", curve.kind);
            assert!(curve.misses.windows(2).all(|pair| pair[0].missed >= pair[1].missed), "{curve:?}");
        }
        // The popular twenty take 2,560 bytes; LRU needs twice that, since every second request is for another.
        let enough_bytes = |at: usize| grid.sizes_bytes[enough(&curves[at]).unwrap()];
        assert!(enough_bytes(0) < enough_bytes(2), "{} {}", enough_bytes(0), enough_bytes(2));
    }
}
