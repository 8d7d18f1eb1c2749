//! A core's table of open client connections: who is in which phase and until when.
//!
//! A timer per request would cost more than a hit. Each connection writes its deadline into its slot, and the
//! core's tick looks over all slots a few times a second and wakes those that are late.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;

use crate::unsent::{Candidate, Unsent, worst};

/// What a connection is doing, for the gauges and for drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Idle between requests (or before the first).
    Waiting,
    Reading,
    Writing,
    /// A stream: its connection has a place of its own, which is the one that is counted.
    Stream,
}

/// Why a connection must end before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    None,
    /// Its deadline has passed.
    Late,
    /// Drain: an idle connection closes now, a busy one after its answer.
    Drain,
    /// What its answer keeps in memory is needed, and its client takes nothing.
    Memory,
    /// Drain's grace is over.
    Now,
}

/// Who says whether a client is still there while it waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientWatch {
    /// Its socket does, when it has news.
    Socket,
    /// Bytes that lie unread, or a FIN, hide all further news: at each tick the socket is to be asked.
    Tick,
    /// The tick has come.
    Due,
}

/// A place in the table: of a connection, or of a stream for as long as its client has to be waited for.
pub(crate) struct Slot {
    pub(crate) phase: Cell<Phase>,
    close_reason: Cell<CloseReason>,
    index: Cell<u32>,
    deadline_ms: Cell<u64>,
    /// A request has been answered on it.
    served: Cell<bool>,
    pub(crate) watch: Cell<ClientWatch>,
    waker: Cell<Option<Waker>>,
    /// Set while its client has to be waited for, to take more of an answer.
    unsent: RefCell<Option<Box<Unsent>>>,
}

impl Slot {
    /// Until when the connection may do what it is doing, in the milliseconds of `clock::deadline_now_ms`.
    #[inline]
    pub(crate) fn set_deadline(&self, deadline_ms: u64) {
        self.deadline_ms.set(deadline_ms);
        if matches!(self.close_reason.get(), CloseReason::Late | CloseReason::Memory) {
            self.close_reason.set(CloseReason::None);
        }
    }

    /// An answer has gone out; until when the next request may come.
    #[inline]
    pub(crate) fn set_idle(&self, deadline_ms: u64) {
        self.served.set(true);
        self.phase.set(Phase::Waiting);
        self.set_deadline(deadline_ms);
    }

    pub(crate) fn deadline(&self) -> u64 {
        self.deadline_ms.get()
    }

    #[inline]
    pub(crate) fn close_reason(&self) -> CloseReason {
        self.close_reason.get()
    }

    /// Past its deadline, or drain's grace is over, or its memory is needed.
    #[inline]
    pub(crate) fn must_end(&self) -> bool {
        matches!(self.close_reason.get(), CloseReason::Late | CloseReason::Memory | CloseReason::Now)
    }

    /// Its client has to be waited for: `note` says what its answer keeps meanwhile, given what was said of it before.
    pub(crate) fn waits_for_client(&self, note: impl FnOnce(Option<&Unsent>) -> Unsent) {
        let mut unsent = self.unsent.borrow_mut();
        let now = note(unsent.as_deref());
        match &mut *unsent {
            Some(before) => **before = now,
            none => *none = Some(Box::new(now)),
        }
    }

    /// Its client is waited for no more: it is not its turn, or the answer is over.
    pub(crate) fn waits_no_more(&self) {
        self.unsent.take();
    }

    /// Before returning Pending: who is to be woken when the time is up.
    #[inline]
    pub(crate) fn park(&self, waker: &Waker) {
        match self.waker.take() {
            Some(known) if known.will_wake(waker) => self.waker.set(Some(known)),
            _ => self.waker.set(Some(waker.clone())),
        }
    }

    fn close_for(&self, close_reason: CloseReason) {
        self.close_reason.set(close_reason);
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// How many connections are in each phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Census {
    pub(crate) waiting: u64,
    pub(crate) reading: u64,
    pub(crate) writing: u64,
}

impl Census {
    fn count(&mut self, phase: Phase) {
        match phase {
            Phase::Waiting => self.waiting += 1,
            Phase::Reading => self.reading += 1,
            Phase::Writing => self.writing += 1,
            Phase::Stream => {}
        }
    }

    /// Those that read and those that write.
    pub(crate) fn busy(self) -> (u64, u64) {
        (self.reading, self.writing)
    }
}

#[derive(Default)]
pub(crate) struct Slots {
    slots: RefCell<Vec<Option<Rc<Slot>>>>,
    free: RefCell<Vec<u32>>,
}

impl Slots {
    pub(crate) fn open(&self, deadline_ms: u64) -> Rc<Slot> {
        let slot = Rc::new(Slot {
            phase: Cell::new(Phase::Waiting),
            close_reason: Cell::new(CloseReason::None),
            index: Cell::new(0),
            deadline_ms: Cell::new(deadline_ms),
            served: Cell::new(false),
            watch: Cell::new(ClientWatch::Socket),
            waker: Cell::new(None),
            unsent: RefCell::new(None),
        });
        let mut slots = self.slots.borrow_mut();
        let index = self.free.borrow_mut().pop().unwrap_or_else(|| {
            slots.push(None);
            slots.len() as u32 - 1
        });
        slot.index.set(index);
        slots[index as usize] = Some(Rc::clone(&slot));
        slot
    }

    /// The place of a stream whose client has to be waited for.
    pub(crate) fn open_stream(&self) -> Rc<Slot> {
        let slot = self.open(u64::MAX);
        slot.phase.set(Phase::Stream);
        slot
    }

    pub(crate) fn close(&self, slot: &Slot) {
        self.slots.borrow_mut()[slot.index.get() as usize] = None;
        self.free.borrow_mut().push(slot.index.get());
    }

    /// Who is doing what at this moment.
    pub(crate) fn census(&self) -> Census {
        let mut census = Census::default();
        self.slots.borrow().iter().flatten().for_each(|slot| census.count(slot.phase.get()));
        census
    }

    /// Wakes every connection whose deadline has passed or whose client has to be looked after, and counts.
    pub(crate) fn sweep(&self, now_ms: u64) -> Census {
        let mut census = Census::default();
        for slot in self.slots.borrow().iter().flatten() {
            census.count(slot.phase.get());
            if slot.deadline_ms.get() <= now_ms
                && matches!(slot.close_reason.get(), CloseReason::None | CloseReason::Drain)
            {
                slot.close_for(CloseReason::Late);
            }
            if slot.watch.get() == ClientWatch::Tick {
                slot.watch.set(ClientWatch::Due);
                slot.wake();
            }
        }
        census
    }

    /// What those answers keep in memory whose clients have taken nothing for at least so long, and how many clients have to be
    /// waited for at all.
    pub(crate) fn kept_by_stalled(&self, stalled_ms_min: u64, now_ms: u64) -> (u64, u64) {
        let kept = self.candidates(stalled_ms_min, now_ms).iter().map(|candidate| candidate.kept_bytes).sum();
        let slots = self.slots.borrow();
        let waited_for = slots.iter().flatten().filter(|slot| slot.unsent.borrow().is_some()).count();
        (kept, waited_for as u64)
    }

    /// Ends answers whose clients have taken nothing for at least so long, until so many bytes are free: who keeps most for
    /// longest first. Returns how many ended.
    pub(crate) fn cut_stalled(&self, bytes: u64, stalled_ms_min: u64, now_ms: u64) -> u64 {
        // What was cut already, and has not been told yet, is as good as free.
        let bytes = bytes.saturating_sub(self.cut_bytes());
        let worst = worst(self.candidates(stalled_ms_min, now_ms), bytes);
        let slots = self.slots.borrow();
        for slot in worst.iter().filter_map(|candidate| slots[candidate.whose].as_ref()) {
            slot.close_for(CloseReason::Memory);
        }
        worst.len() as u64
    }

    /// What answers that have been cut keep until their tasks have run.
    pub(crate) fn cut_bytes(&self) -> u64 {
        let slots = self.slots.borrow();
        let cut = slots.iter().flatten().filter(|slot| slot.close_reason.get() == CloseReason::Memory);
        cut.filter_map(|slot| slot.unsent.borrow().as_ref().map(|unsent| unsent.kept_bytes())).sum()
    }

    fn candidates(&self, stalled_ms_min: u64, now_ms: u64) -> Vec<Candidate<usize>> {
        let slots = self.slots.borrow();
        let waited_for = slots
            .iter()
            .flatten()
            .filter(|slot| matches!(slot.close_reason.get(), CloseReason::None | CloseReason::Drain));
        let candidate = |slot: &Rc<Slot>| {
            let unsent = slot.unsent.borrow();
            let unsent = unsent.as_ref()?;
            let stalled_ms = unsent.stalled_ms(now_ms);
            (stalled_ms >= stalled_ms_min).then(|| Candidate {
                whose: slot.index.get() as usize,
                kept_bytes: unsent.kept_bytes(),
                stalled_ms,
            })
        };
        waited_for.filter_map(candidate).collect()
    }

    /// Tells every connection that the core is draining.
    pub(crate) fn drain(&self, close_reason: CloseReason) {
        for slot in self.slots.borrow().iter().flatten() {
            slot.close_for(close_reason);
        }
    }

    /// Ends the connection that has been idle longest, at a limit. One that still owes its first request is not idle.
    /// False when there is none.
    pub(crate) fn end_oldest_idle(&self) -> bool {
        let slots = self.slots.borrow();
        let is_idle = |s: &&Rc<Slot>| {
            s.served.get() && s.phase.get() == Phase::Waiting && s.close_reason.get() == CloseReason::None
        };
        let idle = slots.iter().flatten().filter(is_idle);
        match idle.min_by_key(|slot| slot.deadline_ms.get()) {
            Some(slot) => {
                slot.close_for(CloseReason::Late);
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_connection_is_doomed_once_and_forgiven_by_a_new_deadline() {
        let slots = Slots::default();
        let (early, late) = (slots.open(100), slots.open(200));
        late.phase.set(Phase::Writing);
        assert_eq!(slots.sweep(150), Census { waiting: 1, reading: 0, writing: 1 });
        assert_eq!((early.close_reason(), late.close_reason()), (CloseReason::Late, CloseReason::None));
        early.set_deadline(300);
        assert_eq!(early.close_reason(), CloseReason::None);
        slots.close(&early);
        assert_eq!(slots.sweep(150), Census { waiting: 0, reading: 0, writing: 1 });
    }

    #[test]
    fn an_answer_that_is_cut_for_memory_is_forgiven_when_its_client_takes_more() {
        use crate::unsent::RestOfBody;
        let slots = Slots::default();
        let (deaf, slow, quick) = (slots.open(9_000), slots.open(9_000), slots.open(9_000));
        let waits = |slot: &Slot, queued, at_ms| {
            slot.waits_for_client(|before| Unsent::new(before, (1, queued), RestOfBody::Queued, at_ms));
        };
        waits(&deaf, 500, 1_000);
        waits(&slow, 400, 1_000);
        waits(&quick, 900, 3_000);
        assert_eq!((slots.kept_by_stalled(0, 3_000), slots.kept_by_stalled(2_000, 3_000)), ((1_800, 3), (900, 3)));
        assert_eq!(slots.cut_stalled(1, 2_000, 3_000), 1);
        assert_eq!((deaf.must_end(), slow.must_end(), quick.must_end()), (true, false, false));
        assert_eq!(slots.cut_stalled(9_999, 2_000, 3_000), 1, "who is cut is not cut again");
        slow.set_deadline(10_000);
        assert!(!slow.must_end());
        slow.waits_no_more();
        assert_eq!(slots.cut_stalled(9_999, 0, 3_000), 1);
    }

    #[test]
    fn a_stream_is_cut_like_a_connection_and_counted_with_its_own() {
        use crate::unsent::RestOfBody;
        let slots = Slots::default();
        let (connection, stream) = (slots.open(9_000), slots.open_stream());
        connection.phase.set(Phase::Writing);
        stream.waits_for_client(|before| Unsent::new(before, (0, 700), RestOfBody::Queued, 1_000));
        assert_eq!(slots.census(), Census { waiting: 0, reading: 0, writing: 1 });
        assert_eq!(slots.cut_stalled(1, 2_000, 3_000), 1);
        assert_eq!((connection.close_reason(), stream.close_reason()), (CloseReason::None, CloseReason::Memory));
        assert_eq!(slots.sweep(u64::MAX - 1), Census { waiting: 0, reading: 0, writing: 1 });
        assert_eq!(stream.close_reason(), CloseReason::Memory, "a stream has no deadline here");
    }

    #[test]
    fn only_a_client_whose_socket_says_nothing_new_is_looked_after_at_the_tick() {
        let slots = Slots::default();
        let (heard, hidden) = (slots.open(100), slots.open(100));
        hidden.watch.set(ClientWatch::Tick);
        slots.sweep(50);
        assert_eq!((heard.watch.get(), hidden.watch.get()), (ClientWatch::Socket, ClientWatch::Due));
    }

    #[test]
    fn at_a_limit_the_longest_idle_goes_first() {
        let slots = Slots::default();
        let (young, old, fresh) = (slots.open(0), slots.open(0), slots.open(100));
        young.set_idle(300);
        old.set_idle(200);
        assert!(slots.end_oldest_idle());
        assert_eq!(
            (young.close_reason(), old.close_reason(), fresh.close_reason()),
            (CloseReason::None, CloseReason::Late, CloseReason::None)
        );
        young.phase.set(Phase::Reading);
        assert!(!slots.end_oldest_idle());
    }
}
