//! What a row of the history holds: the names of its columns in their order, and the row itself.

/// When the row ends, in seconds since 1970, and how long it is: a process that was stopped has a row that covers less.
pub const TIMES: [&str; 2] = ["at_s", "span_ms"];

/// What was counted in the time of the row. All but the last three are counters of the cores, by their names.
pub const SUMS: [&str; 25] = [
    "requests",
    "hits",
    "hits_stale",
    "files",
    "revalidated",
    "misses",
    "coalesced",
    "passes",
    "pipes",
    "memcached_requests",
    "synths",
    "refused",
    "errors",
    "answers_cut",
    "bytes_in",
    "bytes_out",
    "origin_requests",
    "origin_bytes_in",
    "origin_retries",
    "origin_ejections",
    "purges",
    "log_lines_lost",
    // Over all origins, of whatever kind.
    "origin_errors",
    // Of the cache.
    "evictions",
    "stored",
];
/// So many of them are counters of the cores.
pub const CORE_SUMS: usize = SUMS.len() - 3;

/// To the last byte, in microseconds: the upper end of the histogram's step. [`NONE`] without any answer.
pub const PERCENTILES: [f64; 3] = [50.0, 90.0, 99.0];
pub const LATENCIES: [&str; 12] = [
    "store_p50",
    "store_p90",
    "store_p99",
    "fetched_p50",
    "fetched_p90",
    "fetched_p99",
    "passed_p50",
    "passed_p90",
    "passed_p99",
    "failed_p50",
    "failed_p90",
    "failed_p99",
];

/// As they are at the end of the row.
pub const GAUGES: [&str; 9] = [
    "connections",
    "requests_active",
    "memory_used_bytes",
    "memory_resident_bytes",
    "objects",
    "disk_used_bytes",
    "disk_objects",
    "addresses_out",
    "addresses",
];

pub const COLUMNS: usize = TIMES.len() + SUMS.len() + LATENCIES.len() + GAUGES.len();

/// A value that is not there.
pub const NONE: u64 = u64::MAX;

/// All names, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    TIMES.into_iter().chain(SUMS).chain(LATENCIES).chain(GAUGES)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryRow {
    pub values: [u64; COLUMNS],
}

impl HistoryRow {
    pub fn at_s(&self) -> u64 {
        self.values[0]
    }

    #[cfg(test)]
    pub fn of(&self, column: &str) -> u64 {
        self.values[names().position(|name| name == column).unwrap_or_else(|| panic!("no column {column}"))]
    }

    /// A row of tests, each of whose values tells where it stands.
    #[cfg(test)]
    pub fn sample(at_s: u64) -> HistoryRow {
        let mut values = std::array::from_fn(|column| at_s * 1_000 + column as u64);
        values[0] = at_s;
        HistoryRow { values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once() {
        let mut all: Vec<&str> = names().collect();
        assert_eq!(all.len(), COLUMNS);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), COLUMNS);
    }
}
