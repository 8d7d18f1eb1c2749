//! Users that sleep until a moment of their own: the end of their thinking, or their beginning in a ramp.
//!
//! A heap of moments and a waker for each user. It reads no clock: the pacer comes when the earliest moment is there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::task::{Context, Waker};

use crate::lab_clock::Nanos;

#[derive(Debug)]
pub(crate) struct Sleepers {
    moments: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// By user; a user is in the heap while it has one.
    wakers: Vec<Option<Waker>>,
}

impl Sleepers {
    pub(crate) fn new(users: usize) -> Sleepers {
        Sleepers { moments: BinaryHeap::new(), wakers: vec![None; users] }
    }

    /// Is this the earliest of all moments now, so that the pacer has to know?
    pub(crate) fn sleep(&mut self, user: usize, until: Nanos, cx: &Context<'_>) -> bool {
        if self.wakers[user].replace(cx.waker().clone()).is_some() {
            return false;
        }
        let is_earliest = self.earliest().is_none_or(|earliest| until < earliest);
        self.moments.push(Reverse((until, user)));
        is_earliest
    }

    pub(crate) fn earliest(&self) -> Option<Nanos> {
        self.moments.peek().map(|Reverse((moment, _))| *moment)
    }

    pub(crate) fn wake_until(&mut self, now: Nanos) {
        while let Some(&Reverse((moment, user))) = self.moments.peek()
            && moment <= now
        {
            self.moments.pop();
            self.wakers[user].take().into_iter().for_each(Waker::wake);
        }
    }

    /// Nobody has to wait any longer.
    pub(crate) fn wake_all(&mut self) {
        self.wake_until(Nanos(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_moment_is_what_the_pacer_waits_for() {
        let mut sleepers = Sleepers::new(3);
        let cx = Context::from_waker(Waker::noop());
        assert!(sleepers.sleep(0, Nanos(50), &cx));
        assert!(!sleepers.sleep(1, Nanos(70), &cx));
        assert!(sleepers.sleep(2, Nanos(20), &cx));
        assert!(!sleepers.sleep(2, Nanos(20), &cx), "it sleeps already");
        sleepers.wake_until(Nanos(49));
        assert_eq!(sleepers.earliest(), Some(Nanos(50)));
        sleepers.wake_all();
        assert_eq!(sleepers.earliest(), None);
        assert!(sleepers.sleep(1, Nanos(90), &cx), "who was woken may sleep again");
    }
}
