//! The readers of a flight: how far each has come, and whom to wake.
//!
//! One subscription per core: the writer wakes readers of its own core itself, and for another core posts the
//! flight to that core once, which then wakes its own (waking a task of another core costs a system call when
//! that core sleeps; a post is shared by all readers there).

use std::task::Waker;

use smallvec::SmallVec;

#[derive(Debug, Default)]
pub(crate) struct Readers {
    slots: Vec<Option<Reader>>,
    free: Vec<usize>,
    cores: SmallVec<[Subscription; 2]>,
    count: usize,
}

#[derive(Debug)]
struct Reader {
    core: usize,
    /// The next byte it wants.
    position: u64,
    /// Too slow: it is told so, and counts for nothing any more.
    cut_off: bool,
    waker: Option<Waker>,
}

#[derive(Debug)]
struct Subscription {
    core: usize,
    /// Exactly the slots with a waker.
    waiting: Vec<usize>,
    posted: bool,
}

impl Readers {
    /// A new reader at byte 0.
    pub fn join(&mut self, core: usize) -> usize {
        let reader = Some(Reader { core, position: 0, cut_off: false, waker: None });
        self.count += 1;
        if let Some(slot) = self.free.pop() {
            self.slots[slot] = reader;
            return slot;
        }
        self.slots.push(reader);
        self.slots.len() - 1
    }

    pub fn leave(&mut self, slot: usize) {
        let reader = self.slots[slot].take().expect("a reader leaves once");
        self.free.push(slot);
        self.count -= usize::from(!reader.cut_off);
        if reader.waker.is_some()
            && let Some(subscription) = self.cores.iter_mut().find(|subscription| subscription.core == reader.core)
            && let Some(index) = subscription.waiting.iter().position(|waiting| *waiting == slot)
        {
            subscription.waiting.swap_remove(index);
        }
    }

    /// Readers that have not been cut off.
    pub fn count(&self) -> usize {
        self.count
    }

    fn reader(&mut self, slot: usize) -> &mut Reader {
        self.slots[slot].as_mut().expect("the follower of this slot is alive")
    }

    pub fn position(&mut self, slot: usize) -> u64 {
        self.reader(slot).position
    }

    pub fn set_position(&mut self, slot: usize, position: u64) {
        self.reader(slot).position = position;
    }

    pub fn is_cut_off(&mut self, slot: usize) -> bool {
        self.reader(slot).cut_off
    }

    /// Where the slowest stands.
    pub fn floor(&self) -> Option<u64> {
        self.slots.iter().flatten().filter(|reader| !reader.cut_off).map(|reader| reader.position).min()
    }

    /// Cuts off whoever stands at the floor.
    pub fn cut_off_at(&mut self, floor: u64) -> usize {
        let mut cut = 0;
        for reader in self.slots.iter_mut().flatten() {
            if !reader.cut_off && reader.position == floor {
                reader.cut_off = true;
                cut += 1;
            }
        }
        self.count -= cut;
        cut
    }

    /// Wakes the reader at the next change.
    pub fn wait(&mut self, slot: usize, waker: &Waker) {
        let reader = self.reader(slot);
        let core = reader.core;
        let waits_already = match &mut reader.waker {
            Some(old) => {
                old.clone_from(waker);
                true
            }
            none => {
                *none = Some(waker.clone());
                false
            }
        };
        if waits_already {
            return;
        }
        match self.cores.iter_mut().find(|subscription| subscription.core == core) {
            Some(subscription) => subscription.waiting.push(slot),
            None => self.cores.push(Subscription { core, waiting: vec![slot], posted: false }),
        }
    }

    /// Everybody is to look again: those of `here` are taken along, other cores get one post.
    pub fn wake(&mut self, here: usize, wakes: &mut Wakes) {
        for index in 0..self.cores.len() {
            let subscription = &mut self.cores[index];
            if subscription.waiting.is_empty() {
                continue;
            }
            if subscription.core == here {
                self.take_wakers(index, wakes);
            } else if !subscription.posted {
                subscription.posted = true;
                wakes.posts.push(subscription.core);
            }
        }
    }

    /// A core got its post.
    pub fn wake_core(&mut self, core: usize, wakes: &mut Wakes) {
        if let Some(index) = self.cores.iter().position(|subscription| subscription.core == core) {
            self.cores[index].posted = false;
            self.take_wakers(index, wakes);
        }
    }

    fn take_wakers(&mut self, index: usize, wakes: &mut Wakes) {
        let subscription = &mut self.cores[index];
        for slot in subscription.waiting.drain(..) {
            if let Some(waker) = self.slots[slot].as_mut().and_then(|reader| reader.waker.take()) {
                wakes.wakers.push(waker);
            }
        }
    }
}

/// Whom to wake once no lock is held.
#[must_use]
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    pub wakers: SmallVec<[Waker; 4]>,
    pub posts: SmallVec<[usize; 4]>,
}
