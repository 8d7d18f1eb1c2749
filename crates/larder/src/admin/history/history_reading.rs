//! The running proxy read once: every figure that a row is made of. Two readings make a row.

use std::collections::BTreeMap;

use proxy::access_log::CacheVerdict;
use proxy::counters::COUNTERS;
use proxy::origin::AddressState;
use proxy::{Moment, Proxy, wall_now_ms};

use super::history_columns::{COLUMNS, CORE_SUMS, GAUGES, HistoryRow, LATENCIES, NONE, PERCENTILES, SUMS, TIMES};
use crate::admin::exchange_figures::Latencies;
use crate::process_memory;

/// The classes whose times are told apart, in the order of the columns.
const TIMED: [&[CacheVerdict]; LATENCIES.len() / PERCENTILES.len()] = [
    &[CacheVerdict::Hit, CacheVerdict::Stale, CacheVerdict::File],
    &[CacheVerdict::Miss, CacheVerdict::Coalesced, CacheVerdict::Revalidated],
    &[CacheVerdict::Pass, CacheVerdict::Memcached],
    &[CacheVerdict::Error],
];

#[derive(Clone)]
pub struct HistoryReading {
    at: Moment,
    at_s: u64,
    sums: [u64; SUMS.len()],
    times: [Latencies; TIMED.len()],
    gauges: [u64; GAUGES.len()],
    /// By origin and address, and by backend: does it get requests?
    serving: BTreeMap<String, bool>,
}

impl HistoryReading {
    pub fn of(proxy: &Proxy) -> HistoryReading {
        let cores = proxy.core_counters();
        let mut counters = vec![0u64; COUNTERS.len()];
        for core in cores {
            counters.iter_mut().zip(core.values()).for_each(|(sum, value)| *sum = sum.wrapping_add(value));
        }
        let of =
            |name: &str| COUNTERS.iter().position(|counter| counter.name == name).map_or(0, |index| counters[index]);
        let (cache, disks, origins) = (proxy.cache_stats(), proxy.disks_status(), proxy.origins_status());
        let mut sums = [0; SUMS.len()];
        sums.iter_mut().zip(&SUMS[..CORE_SUMS]).for_each(|(sum, name)| *sum = of(name));
        let origin_errors = origins.iter().map(|origin| origin.errors()).fold(0, u64::wrapping_add);
        sums[CORE_SUMS..].copy_from_slice(&[origin_errors, cache.evictions, cache.landed]);
        let serving = serving(proxy, &origins);
        let used = |disk: &cache::DiskStats| {
            let segments = disk.segments.saturating_sub(disk.segments_free);
            (u128::from(disk.bytes) * u128::from(segments) / u128::from(disk.segments.max(1))) as u64
        };
        // Cores are read one after the other, so a gauge that moves between two may seem to be below nothing.
        let gauge = |name: &str| of(name) * u64::from(of(name) <= i64::MAX as u64);
        HistoryReading {
            at: Moment::now(),
            at_s: wall_now_ms() / 1_000,
            sums,
            times: TIMED.map(|classes| Latencies::of_classes(cores, classes)),
            gauges: [
                gauge("connections_active"),
                gauge("requests_active"),
                cache.memory_bytes,
                process_memory::resident_bytes().unwrap_or(NONE),
                cache.objects,
                disks.iter().map(used).sum(),
                disks.iter().map(|disk| disk.objects).sum(),
                serving.values().filter(|serves| !**serves).count() as u64,
                serving.len() as u64,
            ],
            serving,
        }
    }

    pub fn at_s(&self) -> u64 {
        self.at_s
    }

    /// What happened since an earlier one, as a row.
    pub fn since(&self, earlier: &HistoryReading) -> HistoryRow {
        let mut values = [0; COLUMNS];
        let (times, rest) = values.split_at_mut(TIMES.len());
        let (sums, rest) = rest.split_at_mut(SUMS.len());
        let (latencies, gauges) = rest.split_at_mut(LATENCIES.len());
        times.copy_from_slice(&[self.at_s, earlier.at.micros_until(self.at) / 1_000]);
        let grown = self.sums.iter().zip(&earlier.sums).map(|(now, then)| now.saturating_sub(*then));
        sums.iter_mut().zip(grown).for_each(|(value, grown)| *value = grown);
        let pairs = self.times.iter().zip(&earlier.times).map(|(now, then)| now.since(then));
        for (columns, times) in latencies.chunks_exact_mut(PERCENTILES.len()).zip(pairs) {
            for (value, percent) in columns.iter_mut().zip(PERCENTILES) {
                *value = times.percentile_micros(percent).unwrap_or(NONE);
            }
        }
        gauges.copy_from_slice(&self.gauges);
        HistoryRow { values }
    }

    /// Who serves no more, and who serves again. Who was not there before is news to nobody.
    pub fn turned<'a>(&'a self, earlier: &'a HistoryReading) -> impl Iterator<Item = (&'a str, bool)> {
        self.serving.iter().filter_map(|(name, serves)| {
            let before = *earlier.serving.get(name)?;
            (before != *serves).then_some((name.as_str(), *serves))
        })
    }

    /// Purges by request that were carried out since.
    pub fn purges_since(&self, earlier: &HistoryReading) -> u64 {
        let purges = |reading: &HistoryReading| {
            SUMS.iter().position(|name| *name == "purges").map_or(0, |column| reading.sums[column])
        };
        purges(self).saturating_sub(purges(earlier))
    }
}

/// What operators took out themselves is told by an annotation of its own, and is not out by failing.
fn serving(proxy: &Proxy, origins: &[proxy::OriginStatus]) -> BTreeMap<String, bool> {
    let addresses = origins.iter().flat_map(|origin| {
        origin.addresses.iter().map(|address| {
            let is_out = matches!(address.state, AddressState::Ejected { .. } | AddressState::DownByProbe);
            (format!("{} {}", origin.name, address.label), !is_out)
        })
    });
    let programs = proxy.vcls_status();
    let active = programs.iter().filter(|vcl| vcl.is_active);
    let backends = active.flat_map(|vcl| &vcl.backends);
    let backends = backends.map(|backend| (format!("backend {}", backend.origin.name), backend.healthy));
    addresses.chain(backends).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// At a second, with so many requests so far, each of which was a hit of 6 to 7 µs.
    pub fn reading(at_s: u64, requests: u64, app_serves: bool) -> HistoryReading {
        let mut times = [const { Latencies::none() }; TIMED.len()];
        times[0].buckets[5] = requests;
        let mut sums = [0; SUMS.len()];
        (sums[0], sums[1]) = (requests, requests);
        HistoryReading {
            at: Moment { nanos: at_s * 1_000_000_000 },
            at_s,
            sums,
            times,
            gauges: [7; GAUGES.len()],
            serving: [("app 10.0.0.1:80".to_owned(), app_serves)].into(),
        }
    }

    #[test]
    fn counters_of_the_cores_have_their_names() {
        for name in &SUMS[..CORE_SUMS] {
            assert!(COUNTERS.iter().any(|counter| counter.name == *name), "{name} is no counter");
        }
    }

    #[test]
    fn a_row_is_what_came_between_two_readings() {
        let row = reading(160, 30, true).since(&reading(100, 10, true));
        assert_eq!((row.at_s(), row.of("span_ms"), row.of("requests"), row.of("hits")), (160, 60_000, 20, 20));
        assert_eq!((row.of("store_p50"), row.of("store_p99"), row.of("fetched_p50")), (7, 7, NONE));
        assert_eq!((row.of("connections"), row.of("addresses")), (7, 7));
    }

    #[test]
    fn who_turns_is_told_once() {
        let (up, down) = (reading(1, 0, true), reading(2, 0, false));
        assert_eq!(down.turned(&up).collect::<Vec<_>>(), [("app 10.0.0.1:80", false)]);
        assert_eq!(up.turned(&down).collect::<Vec<_>>(), [("app 10.0.0.1:80", true)]);
        assert_eq!(up.turned(&up).count(), 0);
    }
}
