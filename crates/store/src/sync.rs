//! The locks and atomics of `store` and `cache`, in one place so that the feature `shuttle` can replace them by
//! ones whose schedule a test decides.
//!
//! A panic while one of these locks is held would leave shared state half-changed: it aborts the process, and
//! who started it starts it again.

#[cfg(feature = "shuttle")]
pub use shuttle::sync::atomic;
#[cfg(not(feature = "shuttle"))]
pub use std::sync::atomic;

use std::ops::{Deref, DerefMut};

#[cfg(not(feature = "shuttle"))]
type Inner<T> = parking_lot::Mutex<T>;
#[cfg(not(feature = "shuttle"))]
type InnerGuard<'a, T> = parking_lot::MutexGuard<'a, T>;
#[cfg(feature = "shuttle")]
type Inner<T> = shuttle::sync::Mutex<T>;
#[cfg(feature = "shuttle")]
type InnerGuard<'a, T> = shuttle::sync::MutexGuard<'a, T>;

/// A lock around shared state.
#[derive(Debug, Default)]
pub struct Mutex<T>(Inner<T>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex(Inner::new(value))
    }

    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        #[cfg(not(feature = "shuttle"))]
        let inner = self.0.lock();
        #[cfg(feature = "shuttle")]
        let inner = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Guard { inner, unwinding: std::thread::panicking() }
    }
}

/// The right to change what the lock guards.
pub struct Guard<'a, T> {
    inner: InnerGuard<'a, T>,
    /// A destructor that runs during a panic may take locks and is not itself a panic under a lock.
    unwinding: bool,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if cfg!(not(feature = "shuttle")) && std::thread::panicking() && !self.unwinding {
            eprintln!("larder: a panic while shared state was locked; the process ends");
            std::process::abort();
        }
    }
}
