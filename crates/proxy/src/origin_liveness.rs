//! Whether an origin is still there that says nothing while requests are under way: over HTTP/2 it can be asked (RFC 9113 §6.7). A connection
//! of which the other end is gone, behind a firewall that has forgotten it for example, would hold all that is sent on it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

use crate::clock::deadline_now_ms;

/// What the silence of an origin comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// It is to be asked.
    Unsure,
    /// It was asked, and is gone.
    Gone,
}

/// While requests are under way.
pub(crate) struct OriginLiveness {
    /// Wakes when the silence may have been long enough.
    wakes: Pin<Box<Sleep>>,
    since_ms: u64,
    asked_ms: Option<u64>,
}

impl OriginLiveness {
    /// From now on something is expected of it.
    pub(crate) fn begin(limit: Duration) -> OriginLiveness {
        OriginLiveness { wakes: Box::pin(tokio::time::sleep(limit)), since_ms: deadline_now_ms(), asked_ms: None }
    }

    /// Ready when the silence is too long, given when something came last.
    pub(crate) fn poll(&mut self, limit: Duration, heard_ms: u64, cx: &mut Context<'_>) -> Poll<Liveness> {
        while self.wakes.as_mut().poll(cx).is_ready() {
            let (now_ms, limit_ms) = (deadline_now_ms(), limit.as_millis() as u64);
            self.asked_ms = self.asked_ms.filter(|asked_ms| heard_ms < *asked_ms);
            let quiet_since_ms = self.asked_ms.unwrap_or(self.since_ms.max(heard_ms));
            let left_ms = (quiet_since_ms + limit_ms).saturating_sub(now_ms);
            let wait_ms = if left_ms == 0 { limit_ms } else { left_ms };
            self.wakes = Box::pin(tokio::time::sleep(Duration::from_millis(wait_ms)));
            match (left_ms, self.asked_ms) {
                (0, Some(_)) => return Poll::Ready(Liveness::Gone),
                (0, None) => {
                    self.asked_ms = Some(now_ms);
                    return Poll::Ready(Liveness::Unsure);
                }
                _ => {}
            }
        }
        Poll::Pending
    }
}
