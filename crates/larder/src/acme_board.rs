//! How the certificates stand that larder orders by itself, for `/status` and `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

use acme::{NameSet, Turn};
use parking_lot::Mutex;

/// One set of names. All times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeStatus {
    pub names: NameSet,
    /// The URL of the authority's directory.
    pub directory: String,
    /// Until when the certificate is good that is stored.
    pub until_s: Option<u64>,
    pub renew_at_s: Option<u64>,
    /// Orders that failed since one last went well.
    pub failures: u32,
    pub last_failure: Option<String>,
}

/// What who orders has written last.
#[derive(Debug, Default)]
pub struct AcmeBoard {
    all: Mutex<Vec<AcmeStatus>>,
    orders: AtomicU64,
    failures: AtomicU64,
}

impl AcmeBoard {
    pub fn note(&self, names: &NameSet, directory: &str, turn: &Turn) {
        let status = AcmeStatus {
            names: names.clone(),
            directory: directory.to_owned(),
            until_s: turn.until_s,
            renew_at_s: turn.renew_at_s,
            failures: turn.failures,
            last_failure: turn.last_failure.clone(),
        };
        let mut all = self.all.lock();
        match all.iter_mut().find(|known| known.names == *names && known.directory == directory) {
            Some(known) => *known = status,
            None => all.push(status),
        }
    }

    /// Those that a reload took out.
    pub fn retain(&self, is_kept: impl Fn(&NameSet, &str) -> bool) {
        self.all.lock().retain(|status| is_kept(&status.names, &status.directory));
    }

    pub fn count_order(&self) {
        self.orders.fetch_add(1, Ordering::Relaxed);
    }

    pub fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub fn statuses(&self) -> Vec<AcmeStatus> {
        self.all.lock().clone()
    }

    /// Orders, and those of them that failed, since the start.
    pub fn counts(&self) -> (u64, u64) {
        (self.orders.load(Ordering::Relaxed), self.failures.load(Ordering::Relaxed))
    }
}
