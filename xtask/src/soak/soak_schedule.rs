//! What is done to the larders of a soak, and when: it follows from the seed. Events come in rounds, in each of which every kind has its turn. In the second half of a run no process is
//! killed or replaced, so that the memory of one that lives long is seen.

use crate::dice::Dice;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SoakEventKind {
    Reload,
    BrokenReload,
    Upgrade,
    Kill,
    Stopped,
    OriginDown,
    OriginFlapping,
    Certificate,
    BrokenCertificate,
    LogRotated,
    LogFull,
    DiskFrozen,
    PurgeAll,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoakEvent {
    pub kind: SoakEventKind,
    /// Whom it hits; the origin is that of all.
    pub larder: usize,
    /// So long nothing is done before it.
    pub pause_ms: u64,
}

const PAUSE_MS: (u64, u64) = (800, 2_500);

impl SoakEventKind {
    pub const ALL: [SoakEventKind; 13] = [
        SoakEventKind::Reload,
        SoakEventKind::BrokenReload,
        SoakEventKind::Upgrade,
        SoakEventKind::Kill,
        SoakEventKind::Stopped,
        SoakEventKind::OriginDown,
        SoakEventKind::OriginFlapping,
        SoakEventKind::Certificate,
        SoakEventKind::BrokenCertificate,
        SoakEventKind::LogRotated,
        SoakEventKind::LogFull,
        SoakEventKind::DiskFrozen,
        SoakEventKind::PurgeAll,
    ];

    pub fn words(self) -> &'static str {
        match self {
            SoakEventKind::Reload => "config or VCL reloaded",
            SoakEventKind::BrokenReload => "broken config or VCL refused",
            SoakEventKind::Upgrade => "upgraded in place",
            SoakEventKind::Kill => "serving process killed",
            SoakEventKind::Stopped => "serving process stopped for a second",
            SoakEventKind::OriginDown => "origin down",
            SoakEventKind::OriginFlapping => "origin flapping",
            SoakEventKind::Certificate => "certificate renewed",
            SoakEventKind::BrokenCertificate => "broken certificate refused",
            SoakEventKind::LogRotated => "log rotated",
            SoakEventKind::LogFull => "log's file system full",
            SoakEventKind::DiskFrozen => "disk frozen",
            SoakEventKind::PurgeAll => "everything purged",
        }
    }

    /// Another process serves behind it.
    pub fn ends_a_process(self) -> bool {
        matches!(self, SoakEventKind::Upgrade | SoakEventKind::Kill)
    }

    /// Both larders meet it in each round: what ends a process, because there is but half a run for it, and what keeps logs short.
    fn comes_to_both(self) -> bool {
        self.ends_a_process() || self == SoakEventKind::LogRotated
    }

    /// Only root can make the file system for it.
    pub fn needs_a_mount(self) -> bool {
        matches!(self, SoakEventKind::LogFull | SoakEventKind::DiskFrozen)
    }
}

/// Events without an end.
pub struct SoakSchedule {
    dice: Dice,
    left: Vec<(SoakEventKind, usize)>,
    round: usize,
    has_mounts: bool,
}

impl SoakSchedule {
    pub fn of(seed: u64, has_mounts: bool) -> SoakSchedule {
        SoakSchedule { dice: Dice::of(seed), left: Vec::new(), round: 0, has_mounts }
    }

    /// `is_calm`: no process ends.
    pub fn next(&mut self, is_calm: bool) -> SoakEvent {
        loop {
            let Some((kind, larder)) = self.left.pop() else {
                self.draw_round();
                continue;
            };
            // Drawn in any case, so that the order of a seed is one whatever the machine can do.
            let pause_ms = PAUSE_MS.0 + self.dice.below(PAUSE_MS.1 - PAUSE_MS.0);
            let is_left_out = is_calm && kind.ends_a_process() || kind.needs_a_mount() && !self.has_mounts;
            if !is_left_out {
                return SoakEvent { kind, larder, pause_ms };
            }
        }
    }

    /// Every kind once, at one larder or the other; both in two rounds.
    fn draw_round(&mut self) {
        for (at, kind) in SoakEventKind::ALL.into_iter().enumerate() {
            let larder = (at + self.round) % 2;
            self.left.push((kind, larder));
            if kind.comes_to_both() {
                self.left.push((kind, 1 - larder));
            }
        }
        for at in (1..self.left.len()).rev() {
            self.left.swap(at, self.dice.below(at as u64 + 1) as usize);
        }
        self.round += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn drawn(seed: u64, is_calm: bool, has_mounts: bool) -> Vec<SoakEvent> {
        let mut schedule = SoakSchedule::of(seed, has_mounts);
        // Two rounds.
        (0..32).map(|_| schedule.next(is_calm)).collect()
    }

    fn kinds(events: &[SoakEvent], larder: usize) -> BTreeSet<SoakEventKind> {
        events.iter().filter(|event| event.larder == larder).map(|event| event.kind).collect()
    }

    #[test]
    fn a_seed_is_one_order_of_events() {
        assert_eq!(drawn(7, false, true), drawn(7, false, true));
        assert_ne!(drawn(7, false, true), drawn(8, false, true));
    }

    #[test]
    fn in_two_rounds_both_larders_meet_every_kind() {
        let events = drawn(1, false, true);
        for larder in 0..2 {
            assert_eq!(kinds(&events, larder).len(), SoakEventKind::ALL.len());
        }
    }

    #[test]
    fn in_the_calm_half_no_process_ends_and_without_mounts_nothing_needs_one() {
        assert!(!drawn(1, true, true).iter().any(|event| event.kind.ends_a_process()));
        assert!(!drawn(1, false, false).iter().any(|event| event.kind.needs_a_mount()));
    }
}
