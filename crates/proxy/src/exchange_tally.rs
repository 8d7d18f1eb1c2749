//! What a core counts of every exchange that is over: by the class of its answer, by protocol and by route, with the bytes of its body and
//! the time it took.
//!
//! An exchange is what has a line in the access log, whether or not one is written. `transaction/log.rs` and `instant_answer.rs`, where
//! exchanges end, are the only ones that count here. Adding is a load and a store by the one thread that owns the core; sums by class or by
//! protocol are made by who reads.

use message::Version;

use crate::access_log::CacheVerdict;
use crate::counted_routes::{ROUTE_SLOTS, RouteSlot};
use crate::counters::{Count, Histogram};

const PROTOCOLS: usize = Version::ALL.len();
const CLASSES: usize = CacheVerdict::ALL.len();
const SLOT_CELLS: usize = CLASSES * PROTOCOLS;

/// Exchanges of one class, protocol and route.
#[derive(Debug, Default)]
struct Cell {
    requests: Count,
    body_bytes: Count,
}

/// How long answers of a class took.
#[derive(Debug, Default)]
struct ClassTimes {
    /// Of those that went out by one write: their first byte left with their last.
    at_once: Histogram,
    /// Of the others, until the answer began to go out …
    first_byte: Histogram,
    /// … and until it had gone.
    whole: Histogram,
}

/// All of it, for one core.
#[derive(Debug)]
pub struct ExchangeTally {
    cells: Box<[Cell]>,
    times: [ClassTimes; CLASSES],
}

/// An exchange that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedExchange {
    pub(crate) class: CacheVerdict,
    pub(crate) protocol: Version,
    pub(crate) route: RouteSlot,
    pub(crate) body_bytes: u64,
    /// From the first byte of the request to the last of its answer.
    pub(crate) whole_micros: u64,
}

/// A sum over cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeSum {
    pub requests: u64,
    pub body_bytes: u64,
}

/// Which of a class' histograms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeTime {
    FirstByte,
    Whole,
}

impl Default for ExchangeTally {
    fn default() -> ExchangeTally {
        ExchangeTally {
            cells: std::iter::repeat_with(Cell::default).take(ROUTE_SLOTS * SLOT_CELLS).collect(),
            times: std::array::from_fn(|_| ClassTimes::default()),
        }
    }
}

fn place_of(route: usize, class: CacheVerdict, protocol: Version) -> usize {
    route * SLOT_CELLS + class as usize * PROTOCOLS + protocol as usize
}

impl ExchangeTally {
    /// One that went out by one write.
    #[inline]
    pub(crate) fn ended_at_once(&self, ended: &EndedExchange) {
        self.add(ended);
        self.times[ended.class as usize].at_once.record(ended.whole_micros);
    }

    /// Any other; `first_byte_micros`: when its answer began to go out, if one did. Without one no time is told.
    pub(crate) fn ended(&self, ended: &EndedExchange, first_byte_micros: Option<u64>) {
        self.add(ended);
        let times = &self.times[ended.class as usize];
        if let Some(first_byte_micros) = first_byte_micros {
            times.whole.record(ended.whole_micros);
            times.first_byte.record(first_byte_micros);
        }
    }

    #[inline]
    fn add(&self, ended: &EndedExchange) {
        let cell = &self.cells[place_of(ended.route.index(), ended.class, ended.protocol)];
        cell.requests.add(1);
        cell.body_bytes.add(ended.body_bytes);
    }

    /// What was counted of one class, protocol and route.
    pub fn of(&self, route: usize, class: CacheVerdict, protocol: Version) -> ExchangeSum {
        let cell = &self.cells[place_of(route, class, protocol)];
        ExchangeSum { requests: cell.requests.get(), body_bytes: cell.body_bytes.get() }
    }

    /// The histograms whose sum says how long answers of a class took.
    pub fn times(&self, class: CacheVerdict, time: ExchangeTime) -> [&Histogram; 2] {
        let times = &self.times[class as usize];
        match time {
            ExchangeTime::FirstByte => [&times.at_once, &times.first_byte],
            ExchangeTime::Whole => [&times.at_once, &times.whole],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(class: CacheVerdict, protocol: Version) -> EndedExchange {
        EndedExchange { class, protocol, route: RouteSlot::NONE, body_bytes: 7, whole_micros: 30 }
    }

    #[test]
    fn each_class_protocol_and_route_has_a_count_of_its_own() {
        let tally = ExchangeTally::default();
        let mut places: Vec<usize> = Vec::new();
        for route in 0..ROUTE_SLOTS {
            for class in CacheVerdict::ALL {
                places.extend(Version::ALL.map(|protocol| place_of(route, class, protocol)));
            }
        }
        assert!(places.iter().enumerate().all(|(at, place)| at == *place));
        assert_eq!(places.len(), tally.cells.len());
        tally.ended_at_once(&ended(CacheVerdict::Hit, Version::Http2));
        tally.ended(&ended(CacheVerdict::Hit, Version::Http2), Some(20));
        assert_eq!(tally.of(0, CacheVerdict::Hit, Version::Http2), ExchangeSum { requests: 2, body_bytes: 14 });
        assert_eq!(tally.of(0, CacheVerdict::Hit, Version::Http11), ExchangeSum::default());
    }

    #[test]
    fn what_was_answered_is_in_both_histograms() {
        let tally = ExchangeTally::default();
        tally.ended_at_once(&ended(CacheVerdict::Hit, Version::Http11));
        tally.ended(&ended(CacheVerdict::Hit, Version::Http11), Some(20));
        tally.ended(&ended(CacheVerdict::Hit, Version::Http11), None);
        let count = |time| -> u64 {
            let both = tally.times(CacheVerdict::Hit, time);
            both.iter().flat_map(|one| &one.buckets).map(Count::get).sum()
        };
        assert_eq!((count(ExchangeTime::FirstByte), count(ExchangeTime::Whole)), (2, 2));
    }
}
