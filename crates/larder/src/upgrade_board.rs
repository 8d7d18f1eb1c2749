//! Upgrades in place, between who orders them over the admin address and the supervisor, which carries them out; and what became of the last
//! one, and of the processes before this one.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use supervisor::ServingLink;
use tokio::sync::oneshot;

use crate::limits::UPGRADES_WAITING_MAX;

/// What came of an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpgradeOutcome {
    /// That process serves now.
    Succeeded { process: i32 },
    /// This one still does.
    Refused { why: String },
}

/// What became of serving processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessFigures {
    /// So many have died since the supervisor was started, and others took their places.
    pub deaths: u64,
    /// So many were to take over from this one, and could not.
    pub upgrades_refused: u64,
}

/// Why nobody upgrades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoUpgrade {
    /// There is no supervisor.
    Alone,
    /// Others wait already.
    Crowded,
    /// The supervisor is gone.
    Ended,
}

/// See the module.
#[derive(Debug, Default)]
pub struct UpgradeBoard {
    link: OnceLock<Arc<ServingLink>>,
    waiting: Mutex<Vec<oneshot::Sender<UpgradeOutcome>>>,
    refused: Mutex<u64>,
    deaths: OnceLock<u64>,
}

impl UpgradeBoard {
    /// Orders go this way. `deaths`: so many serving processes have died before this one.
    pub fn lead_to(&self, link: Arc<ServingLink>, deaths: u64) {
        let _ = self.link.set(link);
        let _ = self.deaths.set(deaths);
    }

    /// Has another process of the program as it lies there now take over, and waits for what comes of it.
    pub async fn order(&self) -> Result<UpgradeOutcome, NoUpgrade> {
        let link = self.link.get().ok_or(NoUpgrade::Alone)?;
        let outcome = {
            let mut waiting = self.waiting.lock();
            waiting.retain(|order| !order.is_closed());
            if waiting.len() >= UPGRADES_WAITING_MAX {
                return Err(NoUpgrade::Crowded);
            }
            let (order, outcome) = oneshot::channel();
            waiting.push(order);
            outcome
        };
        link.upgrade().map_err(|_| NoUpgrade::Ended)?;
        outcome.await.map_err(|_| NoUpgrade::Ended)
    }

    /// An order that is nobody's at the admin address, such as a signal's.
    pub fn begin(&self) -> Result<(), NoUpgrade> {
        self.link.get().ok_or(NoUpgrade::Alone)?.upgrade().map_err(|_| NoUpgrade::Ended)
    }

    /// What has come of one. Returns how many have waited for it.
    pub fn settle(&self, outcome: &UpgradeOutcome) -> usize {
        if matches!(outcome, UpgradeOutcome::Refused { .. }) {
            *self.refused.lock() += 1;
        }
        let waiting = std::mem::take(&mut *self.waiting.lock());
        // Who has ordered it may be gone.
        waiting.into_iter().map(|order| order.send(outcome.clone())).filter(Result::is_ok).count()
    }

    /// What there is to say of the processes of this larder.
    pub fn figures(&self) -> ProcessFigures {
        ProcessFigures {
            deaths: self.deaths.get().copied().unwrap_or_default(),
            upgrades_refused: *self.refused.lock(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_supervisor_nobody_upgrades() {
        let board = UpgradeBoard::default();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        assert_eq!(runtime.block_on(board.order()), Err(NoUpgrade::Alone));
        assert_eq!(board.begin(), Err(NoUpgrade::Alone));
    }

    #[test]
    fn what_did_not_come_of_an_upgrade_is_counted() {
        let board = UpgradeBoard::default();
        assert_eq!(board.settle(&UpgradeOutcome::Refused { why: "x".to_owned() }), 0);
        assert_eq!(board.settle(&UpgradeOutcome::Succeeded { process: 7 }), 0);
        assert_eq!(board.figures(), ProcessFigures { deaths: 0, upgrades_refused: 1 });
    }
}
