//! Waits for something so long and no longer. Most of what is waited for is there at once: then no clock is read and no timer set.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

/// It did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLate;

/// The time counts from when it is first found not to be there. It is pinned by who waits: an async fn would keep it twice.
pub(crate) async fn in_time<T>(after: Duration, mut coming: impl Future<Output = T> + Unpin) -> Result<T, TooLate> {
    let mut timer = None;
    poll_fn(|cx| {
        if let Poll::Ready(came) = Pin::new(&mut coming).poll(cx) {
            return Poll::Ready(Ok(came));
        }
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(after)));
        timer.as_mut().poll(cx).map(|()| Err(TooLate))
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(5);

    #[tokio::test]
    async fn what_comes_in_time_comes() {
        assert_eq!(in_time(LONG, pin!(async { 0 })).await, Ok(0));
        assert_eq!(in_time(LONG, pin!(tokio::time::sleep(SHORT))).await, Ok(()));
    }

    #[tokio::test]
    async fn what_does_not_is_given_up() {
        assert_eq!(in_time(SHORT, pin!(std::future::pending::<()>())).await, Err(TooLate));
        assert_eq!(in_time(SHORT, pin!(tokio::time::sleep(LONG))).await, Err(TooLate));
    }

    /// Outside a runtime there is no timer to be had.
    #[test]
    fn what_is_there_at_once_needs_no_timer() {
        let coming = pin!(async { 1 });
        let waiting = pin!(in_time(LONG, coming));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert_eq!(waiting.poll(&mut cx), Poll::Ready(Ok(1)));
    }
}
