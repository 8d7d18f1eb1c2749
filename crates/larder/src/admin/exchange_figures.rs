//! What all cores together have counted of exchanges that are over, and how long these took.

use std::sync::Arc;

use message::Version;
use proxy::access_log::CacheVerdict;
use proxy::counters::{CoreCounters, HISTOGRAM_BUCKETS, Histogram};
use proxy::exchange_tally::{ExchangeSum, ExchangeTime};

/// By class, protocol and route.
#[derive(Clone, Debug)]
pub struct ExchangeFigures {
    /// By their places.
    pub routes: Vec<Arc<str>>,
    /// By route, class and protocol, in this order.
    pub sums: Vec<ExchangeSum>,
    /// By class.
    pub first_byte: Vec<Latencies>,
    pub whole: Vec<Latencies>,
}

/// What came from the store, and files.
const FROM_HERE: [CacheVerdict; 3] = [CacheVerdict::Hit, CacheVerdict::Stale, CacheVerdict::File];
/// What an origin was asked for, or failed to give.
const FROM_ORIGINS: [CacheVerdict; 6] = [
    CacheVerdict::Miss,
    CacheVerdict::Coalesced,
    CacheVerdict::Revalidated,
    CacheVerdict::Pass,
    CacheVerdict::Error,
    CacheVerdict::Memcached,
];

pub const fn protocol_word(version: Version) -> &'static str {
    match version {
        Version::Http10 => "http/1.0",
        Version::Http11 => "http/1.1",
        Version::Http2 => "h2",
    }
}

fn places(routes: usize) -> impl Iterator<Item = (usize, CacheVerdict, Version)> {
    let classes = move |route| CacheVerdict::ALL.into_iter().map(move |class| (route, class));
    let protocols = |(route, class)| Version::ALL.into_iter().map(move |protocol| (route, class, protocol));
    (0..routes).flat_map(classes).flat_map(protocols)
}

fn add(sum: &mut ExchangeSum, other: ExchangeSum) {
    sum.requests = sum.requests.wrapping_add(other.requests);
    sum.body_bytes = sum.body_bytes.wrapping_add(other.body_bytes);
}

impl ExchangeFigures {
    pub fn of(cores: &[Arc<CoreCounters>], routes: Vec<Arc<str>>) -> ExchangeFigures {
        let of_cores = |(route, class, protocol)| {
            let mut all = ExchangeSum::default();
            cores.iter().for_each(|core| add(&mut all, core.exchanges.of(route, class, protocol)));
            all
        };
        let times = |time| {
            let of = |class| Latencies::of(cores.iter().flat_map(|core| core.exchanges.times(class, time)));
            CacheVerdict::ALL.into_iter().map(of).collect()
        };
        ExchangeFigures {
            sums: places(routes.len()).map(of_cores).collect(),
            first_byte: times(ExchangeTime::FirstByte),
            whole: times(ExchangeTime::Whole),
            routes,
        }
    }

    fn each(&self) -> impl Iterator<Item = ((usize, CacheVerdict, Version), ExchangeSum)> {
        places(self.routes.len()).zip(self.sums.iter().copied())
    }

    fn sum_of(&self, is_meant: impl Fn((usize, CacheVerdict, Version)) -> bool) -> ExchangeSum {
        let mut all = ExchangeSum::default();
        self.each().filter(|(place, _)| is_meant(*place)).for_each(|(_, sum)| add(&mut all, sum));
        all
    }

    pub fn by_class_and_protocol(&self, mut to: impl FnMut([&str; 2], ExchangeSum)) {
        for class in CacheVerdict::ALL {
            for protocol in Version::ALL {
                let sum = self.sum_of(|(_, of, over)| of == class && over == protocol);
                to([class.token(), protocol_word(protocol)], sum);
            }
        }
    }

    /// But for what never happened: there may be many routes, and few of them answer in all ways.
    pub fn by_route_and_class(&self, mut to: impl FnMut([&str; 2], ExchangeSum)) {
        for (at, route) in self.routes.iter().enumerate() {
            for class in CacheVerdict::ALL {
                let sum = self.sum_of(|(by, of, _)| by == at && of == class);
                if sum.requests > 0 {
                    to([route, class.token()], sum);
                }
            }
        }
    }

    pub fn times(&self, time: ExchangeTime, mut to: impl FnMut(&str, &Latencies)) {
        let times = match time {
            ExchangeTime::FirstByte => &self.first_byte,
            ExchangeTime::Whole => &self.whole,
        };
        CacheVerdict::ALL.iter().zip(times).for_each(|(class, times)| to(class.token(), times));
    }

    pub fn latency_hit(&self) -> Latencies {
        self.latency_of(&FROM_HERE)
    }

    pub fn latency_origin(&self) -> Latencies {
        self.latency_of(&FROM_ORIGINS)
    }

    fn latency_of(&self, classes: &[CacheVerdict]) -> Latencies {
        let mut all = Latencies::none();
        classes.iter().for_each(|class| all.add(&self.whole[*class as usize]));
        all
    }
}

/// A histogram over all cores.
#[derive(Clone, Debug)]
pub struct Latencies {
    pub buckets: [u64; HISTOGRAM_BUCKETS],
    pub sum_micros: u64,
}

impl Latencies {
    pub const fn none() -> Latencies {
        Latencies { buckets: [0; HISTOGRAM_BUCKETS], sum_micros: 0 }
    }

    /// Of all answers of these classes so far, to the last byte.
    pub fn of_classes(cores: &[Arc<CoreCounters>], classes: &[CacheVerdict]) -> Latencies {
        let pairs = cores.iter().flat_map(|core| classes.iter().map(move |class| (core, *class)));
        Latencies::of(pairs.flat_map(|(core, class)| core.exchanges.times(class, ExchangeTime::Whole)))
    }

    fn of<'a>(cores: impl Iterator<Item = &'a Histogram>) -> Latencies {
        let mut all = Latencies::none();
        for core in cores {
            all.sum_micros = all.sum_micros.wrapping_add(core.sum_micros.get());
            all.buckets.iter_mut().zip(&core.buckets).for_each(|(sum, bucket)| *sum += bucket.get());
        }
        all
    }

    fn add(&mut self, other: &Latencies) {
        self.sum_micros = self.sum_micros.wrapping_add(other.sum_micros);
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(sum, bucket)| *sum += bucket);
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// No more than `percent` of the answers took longer; `None` without any answer.
    pub fn percentile_micros(&self, percent: f64) -> Option<u64> {
        let count = self.count();
        let rank = ((count as f64 * percent / 100.0).ceil() as u64).max(1);
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|&n| {
            seen += n;
            seen >= rank
        })?;
        Histogram::upper_bound_micros(bucket).or_else(|| Histogram::upper_bound_micros(bucket - 1))
    }

    /// What came in after `earlier`.
    pub fn since(&self, earlier: &Latencies) -> Latencies {
        let mut all = self.clone();
        all.sum_micros = all.sum_micros.wrapping_sub(earlier.sum_micros);
        all.buckets.iter_mut().zip(&earlier.buckets).for_each(|(now, then)| *now = now.saturating_sub(*then));
        all
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Two routes. Each place has a value of its own; of the times only those of hits are there.
    pub fn sample_exchanges() -> ExchangeFigures {
        let routes: Vec<Arc<str>> = vec!["none".into(), "other".into(), "a.example/".into()];
        let sums = places(routes.len()).zip(0..);
        let sums = sums.map(|(_, at)| ExchangeSum { requests: at, body_bytes: at * 1_000 }).collect();
        let mut hits = Latencies { sum_micros: 250, ..Latencies::none() };
        (hits.buckets[3], hits.buckets[10]) = (90, 10);
        let mut whole = vec![Latencies::none(); CacheVerdict::ALL.len()];
        whole[CacheVerdict::Hit as usize] = hits;
        ExchangeFigures { routes, sums, first_byte: vec![Latencies::none(); CacheVerdict::ALL.len()], whole }
    }

    #[test]
    fn percentiles_come_from_the_buckets() {
        let latencies = sample_exchanges().latency_hit();
        let upper = |bucket| Histogram::upper_bound_micros(bucket);
        assert_eq!(latencies.count(), 100);
        assert_eq!(latencies.percentile_micros(50.0), upper(3));
        assert_eq!(latencies.percentile_micros(90.0), upper(3));
        assert_eq!(latencies.percentile_micros(91.0), upper(10));
        assert_eq!(sample_exchanges().latency_origin().percentile_micros(50.0), None);
        assert_eq!(latencies.since(&latencies).count(), 0);
    }

    #[test]
    fn sums_are_of_their_class_and_protocol() {
        let figures = sample_exchanges();
        let per_route = (CacheVerdict::ALL.len() * Version::ALL.len()) as u64;
        let mut seen = Vec::new();
        figures.by_class_and_protocol(|labels, sum| seen.push((labels.map(str::to_owned), sum.requests)));
        let first = ["hit".to_owned(), "http/1.0".to_owned()];
        assert_eq!(seen[0], (first, per_route + 2 * per_route));
        let mut by_route = Vec::new();
        figures.by_route_and_class(|labels, sum| by_route.push((labels.join(" "), sum.requests)));
        let hits = (3..6).map(|at| 2 * per_route + at - 3).sum();
        assert!(by_route.contains(&("a.example/ hit".to_owned(), hits)), "{by_route:?}");
    }
}
