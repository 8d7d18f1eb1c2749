//! How long all of a fetch may take: until its head has come, and then until its body has.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::error::Elapsed;
use tokio::time::{Instant, Sleep};

/// From a fetch's beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeTime {
    time: Duration,
    ends: Instant,
}

/// What of it is left for a body.
#[derive(Debug)]
pub(crate) struct WholeLeft {
    time: Duration,
    end: Pin<Box<Sleep>>,
}

impl WholeTime {
    /// Begins now.
    pub(crate) fn new(time: Duration) -> WholeTime {
        WholeTime { time, ends: tokio::time::sleep(time).deadline() }
    }

    pub(crate) fn time(self) -> Duration {
        self.time
    }

    /// What comes in time.
    pub(crate) async fn within<T>(self, coming: impl Future<Output = T>) -> Result<T, Elapsed> {
        tokio::time::timeout_at(self.ends, coming).await
    }

    pub(crate) fn left(&self) -> Box<WholeLeft> {
        Box::new(WholeLeft { time: self.time, end: Box::pin(tokio::time::sleep_until(self.ends)) })
    }
}

impl WholeLeft {
    /// Ready, with how long it was in all, when nothing is left.
    pub(crate) fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        self.end.as_mut().poll(cx).map(|()| self.time)
    }
}
