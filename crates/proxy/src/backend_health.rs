//! Whether a backend is believed to answer: what its probes found, and what an operator ordered in place of that.
//!
//! Every request that chooses among backends asks, on every core, so the answer is one or two loads of a word that is
//! rarely written. What an operator wants to see besides is behind a lock that requests never take.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::probe_window::ProbeWindow;

/// Healthy or not, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) healthy: bool,
    /// Milliseconds since 1970.
    pub(crate) changed_ms: u64,
}

/// What an operator decides about a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthOrder {
    /// The probes say; without any it is healthy.
    Auto,
    Healthy,
    Sick,
}

impl HealthOrder {
    pub const WORDS: [(&'static str, HealthOrder); 3] =
        [("auto", HealthOrder::Auto), ("healthy", HealthOrder::Healthy), ("sick", HealthOrder::Sick)];

    pub fn word(self) -> &'static str {
        HealthOrder::WORDS[self as usize].0
    }
}

/// The health of one backend of one program, or of one address of an origin.
#[derive(Debug)]
pub(crate) struct BackendHealth {
    /// By probes, packed as [`Health::pack`] does.
    found: AtomicU64,
    /// By an operator, packed the same way; 0: nothing was ordered.
    ordered: AtomicU64,
    probes: Option<Mutex<ProbeRecord>>,
}

/// What its probes have brought, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeStatus {
    pub good: u32,
    pub threshold: u32,
    pub window: u32,
    pub probes_count: u64,
    /// How the last one ended.
    pub last: String,
    pub last_took_ms: u64,
}

/// What the probes of a backend have brought.
#[derive(Clone, Debug)]
pub(crate) struct ProbeRecord {
    pub(crate) window: ProbeWindow,
    pub(crate) probes_count: u64,
    /// How the last one ended, for people.
    pub(crate) last: String,
    pub(crate) last_took_ms: u64,
}

impl std::fmt::Display for ProbeStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ProbeStatus { good, threshold, window, last, .. } = self;
        write!(f, "its last probe: {last}; {good} of the last {window} were good, {threshold} have to be")
    }
}

impl Health {
    /// The time in the upper 63 bits, the verdict in the lowest.
    fn pack(self) -> u64 {
        self.changed_ms << 1 | u64::from(self.healthy)
    }

    fn unpack(word: u64) -> Health {
        Health { healthy: word & 1 == 1, changed_ms: word >> 1 }
    }
}

impl BackendHealth {
    /// Of a backend that nobody probes.
    pub(crate) fn unprobed(healthy: bool, now_ms: u64) -> BackendHealth {
        let found = Health { healthy, changed_ms: now_ms }.pack();
        BackendHealth { found: AtomicU64::new(found), ordered: AtomicU64::new(0), probes: None }
    }

    pub(crate) fn probed(window: ProbeWindow, now_ms: u64) -> BackendHealth {
        let health = BackendHealth::unprobed(window.is_healthy(), now_ms);
        let record = ProbeRecord { window, probes_count: 0, last: "not probed yet".to_owned(), last_took_ms: 0 };
        BackendHealth { probes: Some(Mutex::new(record)), ..health }
    }

    /// Another one that begins with what was found here; orders stay with whom they were given for. `None` before
    /// anything was found.
    pub(crate) fn twin(&self) -> Option<BackendHealth> {
        let record = self.probes.as_ref()?.lock().clone();
        let found = self.found.load(Ordering::Relaxed);
        (record.probes_count > 0).then(|| BackendHealth {
            found: AtomicU64::new(found),
            ordered: AtomicU64::new(0),
            probes: Some(Mutex::new(record)),
        })
    }

    #[inline]
    pub(crate) fn read(&self) -> Health {
        match self.ordered.load(Ordering::Relaxed) {
            0 => Health::unpack(self.found.load(Ordering::Relaxed)),
            ordered => Health::unpack(ordered),
        }
    }

    /// A probe ended. True when that changed what the probes say.
    pub(crate) fn note(&self, good: bool, last: String, took_ms: u64, now_ms: u64) -> bool {
        let Some(probes) = &self.probes else { return false };
        let mut record = probes.lock();
        record.window.add(good);
        record.probes_count += 1;
        (record.last, record.last_took_ms) = (last, took_ms);
        // Written under the record's lock, so it is never of an older window than the record.
        let healthy = record.window.is_healthy();
        let changes = healthy != Health::unpack(self.found.load(Ordering::Relaxed)).healthy;
        if changes {
            self.found.store(Health { healthy, changed_ms: now_ms }.pack(), Ordering::Relaxed);
        }
        changes
    }

    /// What its probes say, whatever was ordered.
    pub(crate) fn is_found_healthy(&self) -> bool {
        Health::unpack(self.found.load(Ordering::Relaxed)).healthy
    }

    pub(crate) fn order(&self, order: HealthOrder, now_ms: u64) {
        let word = match order {
            HealthOrder::Auto => 0,
            HealthOrder::Healthy => Health { healthy: true, changed_ms: now_ms.max(1) }.pack(),
            HealthOrder::Sick => Health { healthy: false, changed_ms: now_ms.max(1) }.pack(),
        };
        self.ordered.store(word, Ordering::Relaxed);
    }

    pub(crate) fn ordered(&self) -> HealthOrder {
        match self.ordered.load(Ordering::Relaxed) {
            0 => HealthOrder::Auto,
            ordered if Health::unpack(ordered).healthy => HealthOrder::Healthy,
            _ => HealthOrder::Sick,
        }
    }

    pub(crate) fn record(&self) -> Option<ProbeRecord> {
        self.probes.as_ref().map(|probes| probes.lock().clone())
    }

    /// `None` where nobody probes.
    pub(crate) fn probe_status(&self) -> Option<ProbeStatus> {
        self.record().map(|record| ProbeStatus {
            good: record.window.good_count(),
            threshold: record.window.threshold(),
            window: record.window.size(),
            probes_count: record.probes_count,
            last: record.last,
            last_took_ms: record.last_took_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(health: &BackendHealth, healthy: bool, changed_ms: u64) {
        assert_eq!(health.read(), Health { healthy, changed_ms });
    }

    #[test]
    fn probes_change_the_health_and_the_time_of_the_change() {
        let health = BackendHealth::probed(ProbeWindow::new(3, 2, 1), 1_000);
        check(&health, false, 1_000);
        assert!(health.note(true, "200".to_owned(), 5, 2_000));
        assert!(!health.note(true, "200".to_owned(), 6, 3_000));
        check(&health, true, 2_000);
        assert!(!health.note(false, "refused".to_owned(), 0, 4_000));
        assert!(health.note(false, "refused".to_owned(), 0, 5_000));
        check(&health, false, 5_000);
        let record = health.record().unwrap();
        assert_eq!((record.probes_count, record.last.as_str(), record.window.good_count()), (4, "refused", 1));
    }

    #[test]
    fn an_order_holds_until_it_is_taken_back() {
        let health = BackendHealth::probed(ProbeWindow::new(1, 1, 1), 1_000);
        health.order(HealthOrder::Sick, 2_000);
        check(&health, false, 2_000);
        assert_eq!(health.ordered(), HealthOrder::Sick);
        assert!(!health.note(true, String::new(), 0, 3_000));
        check(&health, false, 2_000);
        health.order(HealthOrder::Healthy, 4_000);
        assert!(health.note(false, String::new(), 0, 5_000), "probes go on beneath");
        check(&health, true, 4_000);
        health.order(HealthOrder::Auto, 6_000);
        check(&health, false, 5_000);
    }

    #[test]
    fn who_is_not_probed_stays_as_it_is() {
        let health = BackendHealth::unprobed(true, 7);
        assert!(!health.note(false, String::new(), 0, 9));
        check(&health, true, 7);
        assert!(health.record().is_none());
    }

    #[test]
    fn a_twin_begins_with_what_is_known() {
        let health = BackendHealth::probed(ProbeWindow::new(2, 1, 0), 1_000);
        assert!(health.twin().is_none(), "nothing is known yet");
        health.note(true, "200".to_owned(), 5, 2_000);
        health.order(HealthOrder::Sick, 3_000);
        let twin = health.twin().unwrap();
        check(&twin, true, 2_000);
        twin.note(false, String::new(), 0, 4_000);
        assert_eq!((health.record().unwrap().probes_count, twin.record().unwrap().probes_count), (1, 2));
    }

    #[test]
    fn every_order_has_its_word() {
        assert!(HealthOrder::WORDS.iter().all(|(word, order)| order.word() == *word));
    }
}
