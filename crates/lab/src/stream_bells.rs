//! Which streams of a connection have something to read: each has a bell of its own, and who was rung for is looked at,
//! so that one answer among many streams costs no look at the others.
//!
//! Wakers must be fit for other threads, so there is a lock; nobody else ever wants it. The user is woken only while
//! it rests: during its own turn it looks at the bells by itself before it rests again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// The bells of one connection.
pub(crate) struct StreamBells {
    board: Arc<Board>,
    bells: Vec<Waker>,
}

#[derive(Default)]
struct Board {
    rung: Mutex<Rung>,
}

#[derive(Default)]
struct Rung {
    bells: Vec<usize>,
    /// Of the user while it rests.
    resting: Option<Waker>,
}

struct Bell {
    number: usize,
    board: Arc<Board>,
}

impl StreamBells {
    pub(crate) fn new(count: usize) -> StreamBells {
        let board = Arc::new(Board::default());
        let bell = |number| Waker::from(Arc::new(Bell { number, board: Arc::clone(&board) }));
        StreamBells { bells: (0..count).map(bell).collect(), board }
    }

    pub(crate) fn bell(&self, number: usize) -> &Waker {
        &self.bells[number]
    }

    /// The turn of the user begins.
    pub(crate) fn begin(&self) {
        self.board.lock().resting = None;
    }

    /// Those that have rung since the last call, into an empty list.
    pub(crate) fn take(&self, rung: &mut Vec<usize>) {
        debug_assert!(rung.is_empty());
        std::mem::swap(&mut self.board.lock().bells, rung);
    }

    /// The turn ends, unless one has rung meanwhile.
    pub(crate) fn rest(&self, user: &Waker) -> bool {
        let mut rung = self.board.lock();
        if !rung.bells.is_empty() {
            return false;
        }
        rung.resting = Some(user.clone());
        true
    }
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Rung> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let user = {
            let mut rung = self.board.lock();
            rung.bells.push(self.number);
            rung.resting.take()
        };
        if let Some(user) = user {
            user.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_user_is_woken_only_while_it_rests_and_never_rests_over_a_bell() {
        let (bells, woken) = (StreamBells::new(3), Arc::new(Woken::default()));
        let user = Waker::from(Arc::clone(&woken));
        let mut rung = Vec::new();
        bells.begin();
        bells.bell(2).wake_by_ref();
        assert!(!bells.rest(&user), "one has rung");
        bells.take(&mut rung);
        assert_eq!((rung.as_slice(), woken.0.load(Ordering::Relaxed)), (&[2][..], 0));
        rung.clear();
        assert!(bells.rest(&user));
        bells.bell(0).wake_by_ref();
        bells.bell(1).wake_by_ref();
        assert_eq!(woken.0.load(Ordering::Relaxed), 1, "once for all of them");
        bells.begin();
        bells.take(&mut rung);
        assert_eq!(rung, [0, 1]);
    }
}
