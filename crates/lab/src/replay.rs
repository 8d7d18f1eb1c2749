//! What a log says was asked, and when: the moments and the requests of a replay, in the order of time.
//!
//! Made by `replay_log` from lines, read by the timetable and the agenda. It knows nothing of logs.

#[derive(Debug, Default, PartialEq)]
pub struct Replay {
    /// From the first one; never less than the one before.
    pub(crate) offsets_nanos: Vec<u64>,
    /// Numbers in the catalogue.
    pub(crate) requests: Vec<u32>,
}

impl Replay {
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// From the first to the last request, at the original speed.
    pub fn length_seconds(&self) -> f64 {
        self.offsets_nanos.last().map_or(0.0, |&nanos| nanos as f64 / 1e9)
    }

    /// The moment of a start, so many times as fast.
    #[inline]
    pub(crate) fn offset_nanos(&self, index: usize, speed: f64) -> f64 {
        self.offsets_nanos.get(index).map_or(f64::INFINITY, |&nanos| nanos as f64 / speed)
    }
}
