//! What share of requests and bytes was answered from the store in the last minutes: the ratios that Squid shows. A sample
//! of the counters every ten seconds, for an hour.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::counters::CoreCounters;

/// Between two samples.
const SAMPLE_MS: u64 = 10_000;
/// An hour of them, and the one before.
const SAMPLES_MAX: usize = 361;

/// One for all cores.
pub(crate) struct HitHistory(Mutex<VecDeque<Sample>>);

/// The counters of all cores at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sample {
    at_ms: u64,
    requests: u64,
    hits: u64,
    hits_disk: u64,
    bytes_out: u64,
    origin_bytes_in: u64,
}

/// Shares in per cent since `seconds` ago; `None` where there was nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HitRatios {
    /// How far back they reach: less than asked for when the program is younger.
    pub seconds: u64,
    /// Of requests that origins or the store were asked for, those answered from the store without asking an origin first.
    pub request_percent: Option<f64>,
    /// Of bytes sent to clients, those that no origin sent; negative when more came in than went out.
    pub byte_percent: Option<f64>,
    /// Of what was answered from the store, what came from memory.
    pub memory_percent: Option<f64>,
    /// The same from disks.
    pub disk_percent: Option<f64>,
}

/// Since the start: requests that origins or the store were asked for, and those answered from the store.
pub(crate) fn requests_and_hits<'a>(counters: impl Iterator<Item = &'a CoreCounters>) -> (u64, u64) {
    let Sample { requests, hits, .. } = Sample::of(counters, 0);
    (requests, hits)
}

impl Sample {
    fn of<'a>(counters: impl Iterator<Item = &'a CoreCounters>, at_ms: u64) -> Sample {
        counters.fold(Sample { at_ms, ..Sample::default() }, |mut sum, core| {
            let hits = core.hits.get() + core.hits_stale.get();
            sum.hits += hits;
            sum.hits_disk += core.hits_disk.get();
            let fetched = core.revalidated.get() + core.misses.get() + core.coalesced.get() + core.passes.get();
            sum.requests += hits + fetched + core.errors.get();
            sum.bytes_out += core.bytes_out.get();
            sum.origin_bytes_in += core.origin_bytes_in.get();
            sum
        })
    }

    fn since(&self, former: &Sample) -> HitRatios {
        let requests = self.requests.saturating_sub(former.requests);
        let hits = self.hits.saturating_sub(former.hits);
        let from_disk = self.hits_disk.saturating_sub(former.hits_disk) as f64 * 100.0 / hits.max(1) as f64;
        let (out, from_origins) = (
            self.bytes_out.saturating_sub(former.bytes_out) as f64,
            self.origin_bytes_in.saturating_sub(former.origin_bytes_in) as f64,
        );
        HitRatios {
            seconds: self.at_ms.saturating_sub(former.at_ms) / 1_000,
            request_percent: (requests > 0).then(|| hits as f64 * 100.0 / requests as f64),
            byte_percent: (out > 0.0).then(|| (out - from_origins) * 100.0 / out),
            memory_percent: (hits > 0).then_some(100.0 - from_disk),
            disk_percent: (hits > 0).then_some(from_disk),
        }
    }
}

impl HitHistory {
    /// Of counters that are all at nothing yet.
    pub(crate) fn new(now_ms: u64) -> HitHistory {
        HitHistory(Mutex::new(VecDeque::from([Sample { at_ms: now_ms, ..Sample::default() }])))
    }

    /// For a tick: takes a sample when one is due.
    pub(crate) fn note<'a>(&self, counters: impl Iterator<Item = &'a CoreCounters>, now_ms: u64) {
        let mut samples = self.0.lock();
        if samples.back().is_some_and(|last| now_ms < last.at_ms + SAMPLE_MS) {
            return;
        }
        if samples.len() == SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(Sample::of(counters, now_ms));
    }

    /// Since so many minutes ago, or since there is anything to tell.
    pub(crate) fn ratios<'a>(
        &self,
        counters: impl Iterator<Item = &'a CoreCounters>,
        now_ms: u64,
        minutes: u64,
    ) -> HitRatios {
        let now = Sample::of(counters, now_ms);
        let from_ms = now_ms.saturating_sub(minutes * 60_000);
        let samples = self.0.lock();
        // The last that is old enough; the first there is, if none is.
        let former = samples.iter().rev().find(|sample| sample.at_ms <= from_ms).or_else(|| samples.front());
        now.since(former.expect("there was one from the start"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_last_minutes_alone() {
        let (history, core) = (HitHistory::new(0), CoreCounters::default());
        let ratios = |now_ms, minutes| history.ratios([&core].into_iter(), now_ms, minutes);
        assert_eq!(ratios(0, 5).request_percent, None);
        history.note([&core].into_iter(), 0);
        core.misses.add(100);
        core.bytes_out.add(1_000);
        core.origin_bytes_in.add(1_000);
        for at_ms in (SAMPLE_MS..=600_000).step_by(SAMPLE_MS as usize) {
            history.note([&core].into_iter(), at_ms);
        }
        core.hits.add(40);
        core.hits_stale.add(20);
        core.revalidated.add(5);
        core.coalesced.add(5);
        core.passes.add(10);
        core.bytes_out.add(1_000);
        core.origin_bytes_in.add(250);
        let five = ratios(600_000, 5);
        assert_eq!((five.seconds, five.request_percent, five.byte_percent), (300, Some(75.0), Some(75.0)));
        assert_eq!(five.memory_percent, Some(100.0));
        let sixty = ratios(600_000, 60);
        assert_eq!((sixty.seconds, sixty.byte_percent), (600, Some(37.5)));
        assert_eq!(sixty.request_percent.map(|percent| percent as u32), Some(33));
    }

    #[test]
    fn what_came_before_the_first_sample_was_due_counts_as_well() {
        let (history, core) = (HitHistory::new(0), CoreCounters::default());
        core.misses.add(1);
        history.note([&core].into_iter(), 900);
        core.hits.add(3);
        assert_eq!(history.ratios([&core].into_iter(), 1_000, 5).request_percent, Some(75.0));
    }

    #[test]
    fn an_hour_is_kept_and_no_more() {
        let (history, core) = (HitHistory::new(0), CoreCounters::default());
        for n in 0..1_000 {
            history.note([&core].into_iter(), n * SAMPLE_MS);
            history.note([&core].into_iter(), n * SAMPLE_MS + 1);
        }
        assert_eq!(history.0.lock().len(), SAMPLES_MAX);
        assert_eq!(history.ratios([&core].into_iter(), 999 * SAMPLE_MS, 60).seconds, 3_600);
    }
}
