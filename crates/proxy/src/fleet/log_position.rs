//! How far this node is in the fleet's log of invalidations. A node asks an owner with its own position: what an owner has that is behind may
//! have been purged already.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::limits::{FLEET_BEHIND_LOOK, FLEET_BEHIND_WAIT_MAX};

/// The number of the last invalidation of the log; 0 without a log. Neither number goes back.
#[derive(Debug, Default)]
pub(crate) struct LogPosition {
    /// What this node has begun to carry out: nothing from before that may come from an owner.
    heard: AtomicU64,
    /// What is in force here.
    in_force: AtomicU64,
    /// Something was purged here that no other node has heard of.
    is_alone: AtomicBool,
}

impl LogPosition {
    /// What an owner must have in force.
    pub(crate) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Acquire)
    }

    /// Owners may have what was purged here.
    pub(crate) fn is_alone(&self) -> bool {
        self.is_alone.load(Ordering::Acquire)
    }

    /// The invalidation with this number is about to be carried out.
    pub(crate) fn hear(&self, position: u64) {
        self.heard.fetch_max(position, Ordering::Release);
    }

    /// All of them up to this one are in force here.
    pub(crate) fn reach(&self, position: u64) {
        self.hear(position);
        self.in_force.fetch_max(position, Ordering::Release);
    }

    pub(crate) fn stand_alone(&self, is_alone: bool) {
        self.is_alone.store(is_alone, Ordering::Release);
    }

    fn in_force(&self) -> u64 {
        self.in_force.load(Ordering::Acquire)
    }

    /// Waits a moment until it is there. False: it is not.
    pub(crate) async fn reaches(&self, position: u64) -> bool {
        let looks_max = FLEET_BEHIND_WAIT_MAX.as_millis() / FLEET_BEHIND_LOOK.as_millis();
        for _ in 0..looks_max {
            if self.in_force() >= position {
                return true;
            }
            tokio::time::sleep(FLEET_BEHIND_LOOK).await;
        }
        self.in_force() >= position
    }
}
