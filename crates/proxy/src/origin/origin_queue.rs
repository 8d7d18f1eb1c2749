//! How many connections an origin has, and who waits for one: a count and a first-come queue under one lock, over all
//! cores. It hands out slots and used connections without knowing what a connection is, so it is tested without any.
//!
//! What is handed over is a plain value on its way: whoever receives it owns the slot it stands for. No wake-up is
//! lost because whoever frees something looks at the queue after freeing it, and whoever queues looks for something
//! free after queueing, each through [`ConnectionSlots::settle`].

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// What a waiter gets: room for a new connection, or one that came back (its slot with it).
#[derive(Debug)]
pub enum Grant<C> {
    Slot,
    Used(C),
}

#[derive(Debug)]
pub struct ConnectionSlots<C> {
    /// Length of the queue, for those who hold no lock.
    waiting: AtomicUsize,
    /// More connections are open than a reload allows now: returning ones are closed.
    shrinking: AtomicBool,
    queue: Mutex<Queue<C>>,
}

#[derive(Debug)]
struct Queue<C> {
    /// Connections open or being opened, idle ones included.
    open: usize,
    open_max: usize,
    next_number: u64,
    /// In the order of their numbers.
    waiters: VecDeque<QueuedWaiter<C>>,
}

#[derive(Debug)]
struct QueuedWaiter<C> {
    number: u64,
    hand: oneshot::Sender<Grant<C>>,
}

/// A place in the queue. Who gives it up must say so with [`ConnectionSlots::leave`].
#[derive(Debug)]
pub struct QueuePlace<C> {
    pub number: u64,
    pub grant: oneshot::Receiver<Grant<C>>,
}

impl<C> ConnectionSlots<C> {
    pub fn new(open_max: usize) -> ConnectionSlots<C> {
        ConnectionSlots {
            waiting: AtomicUsize::new(0),
            shrinking: AtomicBool::new(false),
            queue: Mutex::new(Queue { open: 0, open_max: open_max.max(1), next_number: 0, waiters: VecDeque::new() }),
        }
    }

    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waiters as they are seen after everything this thread did before: the freeing side of the agreement above.
    #[inline]
    pub fn waiting_after_freeing(&self) -> usize {
        fence(Ordering::SeqCst);
        self.waiting()
    }

    #[inline]
    pub fn is_shrinking(&self) -> bool {
        self.shrinking.load(Ordering::Relaxed)
    }

    pub fn open(&self) -> usize {
        self.queue.lock().open
    }

    pub fn open_max(&self) -> usize {
        self.queue.lock().open_max
    }

    /// Room for one more, if there is any and nobody came earlier.
    pub fn try_open(&self) -> bool {
        let mut queue = self.queue.lock();
        let free = queue.waiters.is_empty() && queue.open < queue.open_max;
        queue.open += usize::from(free);
        free
    }

    /// The end of the queue, unless it is full. Whoever joins calls [`ConnectionSlots::settle`] next.
    pub fn join(&self, queue_max: usize) -> Option<QueuePlace<C>> {
        let mut queue = self.queue.lock();
        if queue.waiters.len() >= queue_max {
            return None;
        }
        let (hand, grant) = oneshot::channel();
        let number = queue.next_number;
        queue.next_number += 1;
        queue.waiters.push_back(QueuedWaiter { number, hand });
        self.waiting.store(queue.waiters.len(), Ordering::Relaxed);
        drop(queue);
        fence(Ordering::SeqCst);
        Some(QueuePlace { number, grant })
    }

    /// Gives a place up. Nothing happens if it was served already.
    pub fn leave(&self, number: u64) {
        let mut queue = self.queue.lock();
        if let Ok(index) = queue.waiters.binary_search_by_key(&number, |waiter| waiter.number) {
            queue.waiters.remove(index);
            self.waiting.store(queue.waiters.len(), Ordering::Relaxed);
        }
    }

    /// A connection is closed: its slot is free.
    pub fn close(&self) {
        let mut queue = self.queue.lock();
        assert!(queue.open > 0, "closed more connections than were open");
        queue.open -= 1;
        self.shrinking.store(queue.open > queue.open_max, Ordering::Relaxed);
    }

    /// A reload changed the limit. Lowering it closes nothing that is in use.
    pub fn set_open_max(&self, open_max: usize) {
        let mut queue = self.queue.lock();
        queue.open_max = open_max.max(1);
        self.shrinking.store(queue.open > queue.open_max, Ordering::Relaxed);
    }

    /// Gives what is free to those who wait, in their order: slots first, then what `take` finds on the shelves.
    /// Returns a connection that was taken for a waiter who had left.
    #[must_use]
    pub fn settle(&self, mut take: impl FnMut() -> Option<C>) -> Option<C> {
        let mut queue = self.queue.lock();
        let mut in_hand: Option<Grant<C>> = None;
        while !queue.waiters.is_empty() {
            let Some(grant) = in_hand.take().or_else(|| queue.find(&mut take)) else { break };
            let waiter = queue.waiters.pop_front().expect("checked in the loop's head");
            in_hand = waiter.hand.send(grant).err();
        }
        self.waiting.store(queue.waiters.len(), Ordering::Relaxed);
        match in_hand? {
            Grant::Used(connection) => Some(connection),
            Grant::Slot => {
                queue.open -= 1;
                None
            }
        }
    }
}

impl<C> Queue<C> {
    fn find(&mut self, take: &mut impl FnMut() -> Option<C>) -> Option<Grant<C>> {
        if self.open < self.open_max {
            self.open += 1;
            return Some(Grant::Slot);
        }
        take().map(Grant::Used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a place has been given so far: a slot, a connection by its number, or nothing.
    fn check(place: &mut QueuePlace<u32>, expect: Option<Grant<u32>>) {
        let text = |grant: Option<Grant<u32>>| format!("{grant:?}");
        assert_eq!(text(place.grant.try_recv().ok()), text(expect));
    }

    fn full() -> ConnectionSlots<u32> {
        let slots = ConnectionSlots::new(1);
        assert!(slots.try_open());
        assert!(!slots.try_open());
        slots
    }

    #[test]
    fn a_slot_goes_to_who_came_first() {
        let slots = full();
        let (mut first, mut second) = (slots.join(2).unwrap(), slots.join(2).unwrap());
        assert!(slots.join(2).is_none(), "the queue is full");
        slots.close();
        assert!(!slots.try_open(), "nobody passes those who wait");
        assert_eq!(slots.settle(|| None), None);
        check(&mut first, Some(Grant::Slot));
        check(&mut second, None);
        assert_eq!((slots.open(), slots.waiting()), (1, 1));
    }

    #[test]
    fn a_returned_connection_goes_to_who_came_first() {
        let slots = full();
        let (mut first, mut second) = (slots.join(2).unwrap(), slots.join(2).unwrap());
        let mut shelf = vec![7];
        assert_eq!(slots.settle(|| shelf.pop()), None);
        check(&mut first, Some(Grant::Used(7)));
        check(&mut second, None);
    }

    #[test]
    fn who_left_is_passed_over() {
        let slots = full();
        let (first, mut second) = (slots.join(2).unwrap(), slots.join(2).unwrap());
        slots.leave(first.number);
        assert_eq!(slots.waiting(), 1);
        let third = slots.join(2).unwrap();
        drop(third.grant); // gone, and did not say so yet
        let mut shelf = vec![8, 7];
        assert_eq!(slots.settle(|| shelf.pop()), Some(8), "taken for the third, who is gone");
        check(&mut second, Some(Grant::Used(7)));
        slots.leave(third.number);
        assert_eq!((slots.open(), slots.waiting()), (1, 0));
    }

    #[test]
    fn a_slot_found_for_somebody_who_left_is_free_again() {
        let slots = full();
        drop(slots.join(1).unwrap().grant);
        slots.close();
        assert_eq!(slots.settle(|| None), None);
        assert_eq!((slots.open(), slots.waiting()), (0, 0));
    }

    #[test]
    fn a_raised_limit_lets_waiters_in_and_a_lowered_one_shrinks() {
        let slots = full();
        let mut place = slots.join(1).unwrap();
        slots.set_open_max(2);
        assert_eq!(slots.settle(|| None), None);
        check(&mut place, Some(Grant::Slot));
        slots.set_open_max(1);
        assert!(slots.is_shrinking());
        slots.close();
        assert!(!slots.is_shrinking());
        assert!(!slots.try_open());
    }

    #[test]
    fn a_limit_of_nothing_still_lets_one_in() {
        assert!(ConnectionSlots::<u32>::new(0).try_open());
    }
}
