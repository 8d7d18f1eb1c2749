//! How long somebody may wait altogether, over several times that it has to.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use crate::clock::Moment;

/// What is left of it.
pub(crate) struct WaitBudget {
    left: Duration,
    /// It waits since then.
    waiting: Option<(Moment, Pin<Box<Sleep>>)>,
}

impl WaitBudget {
    pub(crate) fn new(whole: Duration) -> WaitBudget {
        WaitBudget { left: whole, waiting: None }
    }

    /// It waits. Ready when nothing is left.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let left = self.left;
        let (_, sleep) = self.waiting.get_or_insert_with(|| (Moment::now(), Box::pin(sleep(left))));
        ready!(sleep.as_mut().poll(cx));
        self.left = Duration::ZERO;
        Poll::Ready(())
    }

    /// It does not wait any more.
    pub(crate) fn pause(&mut self) {
        if let Some((since, _)) = self.waiting.take() {
            let waited = Duration::from_micros(since.micros_until(Moment::now()));
            self.left = self.left.saturating_sub(waited);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[test]
    fn all_waits_together_are_bounded() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut budget = WaitBudget::new(Duration::from_millis(30));
            let mut waits_count = 0;
            while budget.left > Duration::ZERO {
                waits_count += 1;
                let over = tokio::time::timeout(Duration::from_millis(12), poll_fn(|cx| budget.poll(cx))).await;
                budget.pause();
                assert!(waits_count < 4, "{:?} is left", budget.left);
                if over.is_ok() {
                    break;
                }
            }
            assert!(waits_count > 1, "none of these waits is as long as all may be");
            assert_eq!(budget.left, Duration::ZERO);
        });
    }
}
