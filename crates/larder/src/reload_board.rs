//! Reloads, between who carries them out and who asks for them or about them: the order itself, how many there were, and what became of the last
//! one, for `/status` and `/metrics`.
//!
//! It knows no config: the main thread reloads (`serve.rs`), and says here what came of it.

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::limits::RELOADS_WAITING_MAX;

/// What came of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// The new config holds. What of it is new, and what the operator should know.
    Taken { changed: Vec<String>, warnings: Vec<String> },
    /// The old one stays. Why, with the lines that are wrong, for who may change things; and where, for everybody: a line may hold a password.
    Refused { why: String, place: String },
}

impl ReloadOutcome {
    /// For a reason that everybody may read, as far as its first line goes.
    pub fn refused(why: String) -> ReloadOutcome {
        let place = why.lines().next().unwrap_or_default().to_owned();
        ReloadOutcome::Refused { why, place }
    }
}

/// Somebody waits for the outcome of a reload.
pub type ReloadOrder = oneshot::Sender<ReloadOutcome>;

/// The last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastReload {
    /// In milliseconds since 1970.
    pub wall_ms: u64,
    pub outcome: ReloadOutcome,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadFigures {
    pub taken: u64,
    pub refused: u64,
    pub last: Option<LastReload>,
}

/// Why no reload comes of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReload {
    /// Nobody obeys: this larder was started without anything that is read again.
    Unheard,
    /// Others wait already.
    Crowded,
    /// Whoever obeyed has ended.
    Ended,
}

/// Where reloads are ordered and told.
#[derive(Debug, Default)]
pub struct ReloadBoard {
    figures: Mutex<ReloadFigures>,
    orders: Mutex<Option<mpsc::Sender<ReloadOrder>>>,
}

impl ReloadBoard {
    /// For who obeys.
    pub fn hear(&self) -> mpsc::Receiver<ReloadOrder> {
        let (order, heard) = mpsc::channel(RELOADS_WAITING_MAX);
        *self.orders.lock() = Some(order);
        heard
    }

    /// Has everything read again, and waits for what comes of it.
    pub async fn order(&self) -> Result<ReloadOutcome, NoReload> {
        let orders = self.orders.lock().clone().ok_or(NoReload::Unheard)?;
        let (order, outcome) = oneshot::channel();
        orders.try_send(order).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NoReload::Crowded,
            mpsc::error::TrySendError::Closed(_) => NoReload::Ended,
        })?;
        outcome.await.map_err(|_| NoReload::Ended)
    }

    /// What came of one, `wall_ms` milliseconds after 1970.
    pub fn note(&self, wall_ms: u64, outcome: &ReloadOutcome) {
        let mut figures = self.figures.lock();
        match outcome {
            ReloadOutcome::Taken { .. } => figures.taken += 1,
            ReloadOutcome::Refused { .. } => figures.refused += 1,
        }
        figures.last = Some(LastReload { wall_ms, outcome: outcome.clone() });
    }

    pub fn figures(&self) -> ReloadFigures {
        self.figures.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn an_order_is_answered_with_what_came_of_it() {
        let board = ReloadBoard::default();
        assert_eq!(block_on(board.order()), Err(NoReload::Unheard));
        let mut heard = board.hear();
        let refused = ReloadOutcome::refused("line 3".to_owned());
        let told = block_on(async {
            let obey = async {
                let order = heard.recv().await.unwrap();
                order.send(refused.clone()).unwrap();
            };
            tokio::join!(board.order(), obey).0
        });
        assert_eq!(told, Ok(refused));
        drop(heard);
        assert_eq!(block_on(board.order()), Err(NoReload::Ended));
    }

    #[test]
    fn reloads_are_counted_by_what_came_of_them() {
        let board = ReloadBoard::default();
        let taken = ReloadOutcome::Taken { changed: Vec::new(), warnings: Vec::new() };
        let refused = ReloadOutcome::refused("line 3".to_owned());
        for (at, outcome) in [&taken, &refused, &refused].into_iter().enumerate() {
            board.note(at as u64, outcome);
        }
        let ReloadFigures { taken, refused: count, last } = board.figures();
        assert_eq!((taken, count, last), (1, 2, Some(LastReload { wall_ms: 2, outcome: refused })));
    }
}
