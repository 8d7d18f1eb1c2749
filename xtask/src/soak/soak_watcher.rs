//! What the kernel says of the serving processes of a soak, second by second: resident memory, the store's file in memory included, and descriptors. And what is to be read from that: whether a
//! line was crossed, and how it grew in the last process of each larder, by least squares.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use super::soak_books::LARDERS;
use super::soak_stage::SoakStage;
use crate::memory::{FileInMemory, resident};

const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Of the seconds of a process that are judged, so many hundredths are its warming up.
const WARM_PERCENT: usize = 40;
/// Fewer say nothing of how it grows.
const JUDGED_SECONDS_MIN: usize = 20;

/// One serving process at one second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessSample {
    pub second: u64,
    pub larder: usize,
    pub process: u32,
    pub resident_bytes: u64,
    pub descriptors: u64,
    /// Of the processes of its larder it is the newest, and the one that accepts.
    pub is_newest: bool,
}

/// How something grew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    pub per_second: f64,
    pub seconds: f64,
}

impl Growth {
    pub fn total(self) -> f64 {
        self.per_second * self.seconds
    }
}

/// Until the soak is over.
pub fn watch(stage: &SoakStage) -> Vec<ProcessSample> {
    let (mut samples, mut looked) = (Vec::new(), None);
    while !stage.is_over.load(SeqCst) {
        let second = stage.books.clock.seconds() as u64;
        if looked != Some(second) {
            looked = Some(second);
            samples.extend((0..LARDERS).flat_map(|larder| look(stage, larder, second)));
        }
        thread::sleep(LOOK_EVERY);
    }
    samples
}

fn look(stage: &SoakStage, larder: usize, second: u64) -> Vec<ProcessSample> {
    let processes = stage.larders[larder].serving();
    let newest = processes.last().copied();
    let sample = |process: u32| {
        let (resident, _) = resident(process)?;
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).ok()?.count() as u64;
        let resident_bytes = resident + FileInMemory::of(process).bytes();
        let is_newest = newest == Some(process);
        Some(ProcessSample { second, larder, process, resident_bytes, descriptors, is_newest })
    };
    processes.into_iter().filter_map(sample).collect()
}

/// A line each.
pub fn as_csv(samples: &[ProcessSample]) -> String {
    let line = |sample: &ProcessSample| {
        let ProcessSample { second, larder, process, resident_bytes, descriptors, is_newest } = sample;
        format!("{second},{larder},{process},{resident_bytes},{descriptors},{}\n", u8::from(*is_newest))
    };
    let lines: String = samples.iter().map(line).collect();
    format!("second,larder,process,resident_bytes,descriptors,is_newest\n{lines}")
}

/// What is judged of how the last process of a larder grew: all but its beginning. `None`: it did not live long enough.
pub fn judged(samples: &[ProcessSample], larder: usize) -> Option<Vec<ProcessSample>> {
    let last = samples.iter().rfind(|sample| sample.larder == larder && sample.is_newest)?.process;
    let life: Vec<ProcessSample> = samples.iter().filter(|sample| sample.process == last).copied().collect();
    let judged = life[life.len() * WARM_PERCENT / 100..].to_vec();
    (judged.len() >= JUDGED_SECONDS_MIN).then_some(judged)
}

/// By least squares.
pub fn growth(samples: &[ProcessSample], figure: fn(&ProcessSample) -> u64) -> Growth {
    let count = samples.len() as f64;
    let mean = |of: &dyn Fn(&ProcessSample) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(&|sample| sample.second as f64), mean(&|sample| figure(sample) as f64));
    let spread = samples.iter().map(|sample| (sample.second as f64 - mean_x).powi(2)).sum::<f64>();
    let shared = samples.iter().map(|sample| (sample.second as f64 - mean_x) * (figure(sample) as f64 - mean_y));
    let seconds = samples.last().zip(samples.first()).map_or(0, |(last, first)| last.second - first.second) as f64;
    let per_second = if spread > 0.0 { shared.sum::<f64>() / spread } else { 0.0 };
    Growth { per_second, seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(process: u32, from: u64, seconds: u64, resident: impl Fn(u64) -> u64) -> Vec<ProcessSample> {
        let sample = |second| ProcessSample {
            second,
            larder: 0,
            process,
            resident_bytes: resident(second),
            descriptors: 50,
            is_newest: true,
        };
        (from..from + seconds).map(sample).collect()
    }

    #[test]
    fn what_grows_is_seen_to_and_what_swings_is_not() {
        let grows =
            growth(&life(1, 100, 200, |second| 1_000 + 7 * second + second % 3), |sample| sample.resident_bytes);
        assert!((grows.per_second - 7.0).abs() < 0.01 && (grows.total() - 7.0 * 199.0).abs() < 2.0, "{grows:?}");
        let swings = growth(&life(1, 100, 200, |second| 1_000 + second % 2), |sample| sample.resident_bytes);
        assert!(swings.total().abs() < 0.1, "{swings:?}");
        assert_eq!(growth(&life(1, 100, 200, |_| 5), |sample| sample.descriptors).per_second, 0.0);
    }

    #[test]
    fn the_last_process_is_judged_without_its_beginning() {
        let samples = [life(1, 0, 50, |_| 1), life(2, 50, 100, |_| 2)].concat();
        let judged = judged(&samples, 0).expect("it lived long enough");
        assert_eq!((judged.len(), judged[0].process, judged[0].second), (60, 2, 90));
        assert_eq!(super::judged(&samples, 1), None);
        assert_eq!(super::judged(&samples[..60], 0), None);
    }
}
