//! A run as it is kept between two of its blocks, so that it can go on after an interruption: what was measured, and
//! by which file and which binaries. Everything that follows from it is computed again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::limits::{LATENCY_DIGITS, LATENCY_MICROS_MAX};
use crate::results::{Block, ErrorSeen, Gate, ServerUsed};
use crate::whole_file::write_whole;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedRun {
    /// Of the lab file and of what else changes what is measured.
    pub(crate) fingerprint: String,
    pub(crate) servers: Vec<ServerUsed>,
    pub(crate) begun: String,
    pub(crate) elapsed_seconds: f64,
    pub(crate) is_finished: bool,
    pub(crate) warnings: Vec<String>,
    /// By row, then by server.
    pub(crate) rows: BTreeMap<String, SavedRow>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedRow {
    pub(crate) null_ceiling_per_second: Option<f64>,
    /// Blocks that all servers have behind them.
    pub(crate) blocks: usize,
    pub(crate) servers: BTreeMap<String, SavedCell>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedCell {
    pub(crate) blocks: Vec<Block>,
    pub(crate) gate: Option<Gate>,
    pub(crate) steady: Option<bool>,
    /// Why it was not measured, or not to the end.
    pub(crate) trouble: Vec<String>,
    /// It could not be measured any more.
    pub(crate) is_lost: bool,
    pub(crate) from_intended: Counts,
    pub(crate) from_send: Counts,
    #[serde(default)]
    pub(crate) send_lag: Counts,
    pub(crate) errors: BTreeMap<String, ErrorSeen>,
}

/// A histogram as what it has counted: (microseconds, how often).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counts(Vec<(u64, u64)>);

impl Counts {
    pub(crate) fn add(&mut self, more: &Histogram<u64>) {
        let mut sum = self.histogram();
        sum.add(more).expect("all histograms have the same bounds");
        let recorded = sum.iter_recorded();
        self.0 = recorded.map(|step| (step.value_iterated_to(), step.count_at_value())).collect();
    }

    pub(crate) fn histogram(&self) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, LATENCY_MICROS_MAX, LATENCY_DIGITS)
            .expect("the bounds are constants that fit");
        self.0.iter().for_each(|&(value, count)| histogram.saturating_record_n(value, count));
        histogram
    }
}

impl SavedRun {
    /// What stands there; none when nothing does, or nothing that can be read.
    pub(crate) fn load(path: &Path) -> Option<SavedRun> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    pub(crate) fn save(&self, path: &Path) -> Result<(), String> {
        write_whole(path, &serde_json::to_vec(self).map_err(|error| error.to_string())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_comes_back() {
        let mut run = SavedRun { fingerprint: "f".to_owned(), ..SavedRun::default() };
        let mut histogram = Counts::default().histogram();
        [3, 3, 70_000].into_iter().for_each(|micros| histogram.saturating_record(micros));
        let row = run.rows.entry("a row".to_owned()).or_default();
        let cell = row.servers.entry("larder".to_owned()).or_default();
        cell.from_intended.add(&histogram);
        cell.from_intended.add(&histogram);
        cell.blocks.push(Block { good: 7, ..Block::default() });
        assert_eq!(cell.from_intended.histogram().len(), 6);
        assert_eq!(cell.from_intended.histogram().value_at_percentile(50.0), 3);
        let path = std::env::temp_dir().join(format!("larder-lab-saved-{}", std::process::id()));
        run.save(&path).unwrap();
        assert_eq!(SavedRun::load(&path), Some(run));
        fs::write(&path, "{").unwrap();
        assert_eq!(SavedRun::load(&path), None);
        fs::remove_file(&path).unwrap();
    }
}
