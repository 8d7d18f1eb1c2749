//! A task that has more to do lets everybody else go first.
//!
//! A task that only woke itself would be polled again before sockets are looked at: the runtime asks the kernel once for many tasks, and
//! those that are ready all the time would keep waiting whoever's bytes are there and not seen yet.

use std::pin::pin;
use std::task::Context;

/// This task is polled again once all others that are ready were, and once the kernel was asked what else is. Whoever calls it returns
/// `Poll::Pending`.
pub(crate) fn give_way(cx: &mut Context<'_>) {
    // Its first poll hands the waker to the runtime, and is never ready.
    let _ = pin!(tokio::task::yield_now()).poll(cx);
}
