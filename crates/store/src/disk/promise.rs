//! One value from an I/O thread to whoever awaits it, under any runtime or none.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::sync::Mutex;

struct Slot<T> {
    value: Option<T>,
    is_given_up: bool,
    waker: Option<Waker>,
}

/// The end that gives. Dropped without having given, it gives up.
pub struct Promise<T>(Arc<Mutex<Slot<T>>>);

/// The end that awaits: `None` when the other one gave up. May be dropped at any moment.
pub struct Awaited<T>(Arc<Mutex<Slot<T>>>);

pub fn promise<T>() -> (Promise<T>, Awaited<T>) {
    let slot = Arc::new(Mutex::new(Slot { value: None, is_given_up: false, waker: None }));
    (Promise(Arc::clone(&slot)), Awaited(slot))
}

impl<T> Promise<T> {
    pub fn keep(self, value: T) {
        self.0.lock().value = Some(value);
        // Dropping it wakes.
    }

    /// Nobody waits any more.
    pub fn is_moot(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        let mut slot = self.0.lock();
        slot.is_given_up = true;
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Future for Awaited<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut slot = self.0.lock();
        if slot.value.is_some() || slot.is_given_up {
            return Poll::Ready(slot.value.take());
        }
        slot.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// Waits on this thread: for tests and for the end of the process, never on a worker.
pub fn wait<F: Future>(future: F) -> F::Output {
    wait_for(future, Duration::MAX).expect("who waits for ever gets an answer")
}

/// The same, but not for much longer than this.
pub fn wait_for<F: Future>(future: F, patience: Duration) -> Option<F::Output> {
    const TICK: Duration = Duration::from_millis(50);
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (mut future, mut left) = (std::pin::pin!(future), patience);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return Some(value),
            Poll::Pending if left.is_zero() => return None,
            Poll::Pending => std::thread::park_timeout(TICK),
        }
        // Nobody asks a clock here: a wake-up counts for a whole tick, and there are few.
        left = left.saturating_sub(TICK);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn a_value_arrives_or_it_is_known_that_none_will() {
        let (promise, awaited) = promise::<u32>();
        let giver = std::thread::spawn(move || promise.keep(7));
        assert_eq!(wait(awaited), Some(7));
        giver.join().expect("it gave");
        let (promise, awaited) = super::promise::<u32>();
        drop(promise);
        assert_eq!(wait(awaited), None);
        let (promise, awaited) = super::promise::<u32>();
        assert!(!promise.is_moot());
        drop(awaited);
        assert!(promise.is_moot());
    }
}
