//! Says of a disk that takes no writes though some wait for it, and gives no error: a device that hangs, a network that is gone, a snapshot
//! that holds the file system up. It is said once that it has stalled, and once that it has not any more; a disk that fails says so by itself.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cache::{DiskState, DiskStats};
use proxy::{LineAllowance, NOTICES_AT_ONCE};

use crate::limits::DISK_STALLED_AFTER_MS;

#[derive(Debug, Default)]
pub struct DiskWatch(HashMap<PathBuf, WrittenLast>);

#[derive(Debug)]
struct WrittenLast {
    written: u64,
    /// Since when nothing was written while something waited.
    since_ms: Option<u64>,
    is_told: bool,
    allowance: LineAllowance,
}

impl DiskWatch {
    /// Sentences for the log; `now_ms` is of a clock that only goes forward.
    pub fn look(&mut self, disks: &[DiskStats], now_ms: u64) -> Vec<String> {
        for disk in disks.iter().filter(|disk| disk.state != DiskState::Up) {
            // Whatever has become of it is said by itself.
            self.0.remove(&disk.path);
        }
        let up = disks.iter().filter(|disk| disk.state == DiskState::Up);
        let figures = up.map(|disk| (&disk.path, disk.bytes_written + disk.commits, disk.queued_bytes > 0));
        figures.filter_map(|(path, written, waits)| self.sentence(path, written, waits, now_ms)).collect()
    }

    fn sentence(&mut self, path: &Path, written: u64, waits: bool, now_ms: u64) -> Option<String> {
        let first =
            || WrittenLast { written, since_ms: None, is_told: false, allowance: LineAllowance::of(NOTICES_AT_ONCE) };
        let seen = self.0.entry(path.to_owned()).or_insert_with(first);
        let (shown, goes_on) = (path.display(), !waits || seen.written != written);
        seen.written = written;
        if goes_on {
            let since_ms = seen.since_ms.take();
            let stalled_s = now_ms.saturating_sub(since_ms.unwrap_or(now_ms)) / 1_000;
            return std::mem::take(&mut seen.is_told)
                .then(|| format!("disk {shown}: writes again after {stalled_s} s"));
        }
        let stalled_ms = now_ms - *seen.since_ms.get_or_insert(now_ms);
        if seen.is_told || stalled_ms < DISK_STALLED_AFTER_MS || !seen.allowance.take(now_ms) {
            return None;
        }
        seen.is_told = true;
        Some(format!(
            "warning: disk {shown}: has written nothing for {} s, though something waits: what is fetched is kept in memory alone, and purges \
             are not acknowledged ([[disk]] path)",
            stalled_ms / 1_000
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_stalls_is_said_once_and_once_that_it_does_no_more() {
        let mut watch = DiskWatch::default();
        let mut said = |written, waits, now_s: u64| watch.sentence(Path::new("/d"), written, waits, now_s * 1_000);
        assert_eq!(said(0, false, 0), None);
        assert_eq!(said(5, true, 2), None);
        assert_eq!(said(5, true, 4), None);
        assert_eq!(said(9, true, 6), None, "it writes");
        assert_eq!(said(9, true, 8), None);
        let line = said(9, true, 18).expect("ten seconds");
        assert!(line.contains("disk /d: has written nothing for 10 s") && line.contains("[[disk]] path"), "{line}");
        assert_eq!(said(9, true, 90), None);
        assert_eq!(said(9, false, 98).as_deref(), Some("disk /d: writes again after 90 s"), "nothing waits any more");
        assert_eq!(said(9, false, 99), None);
        // One that stalls all the time gets a few lines.
        let lines = (10..60).filter(|round| {
            let at_s = round * 12;
            let _ = (said(*round, true, at_s), said(*round, true, at_s + 1));
            said(*round, true, at_s + 11).is_some()
        });
        assert!((4..20).contains(&lines.count()));
    }
}
