//! Numbers of transactions, as `req.xid` and X-Varnish show them: of every request, restart and fetch under a program, and
//! of sessions where records are wanted.
//!
//! Each core takes a block at a time, so that counting costs no shared write.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Records have thirty bits for a number; after the last one the first comes again.
const XID_MAX: u64 = (1 << 30) - 1;

static BLOCK: AtomicU64 = AtomicU64::new(4_096);
/// Where the next block begins. A request's number is 2 at first, as everybody's is: 1 is its session's.
static NEXT: AtomicU64 = AtomicU64::new(2);
/// Changes when somebody sets the numbers: what cores have left is void then.
static SETTING: AtomicU32 = AtomicU32::new(0);

/// The numbers that a core has left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Xids {
    next: u64,
    end: u64,
    setting: u32,
}

impl Xids {
    /// Of a core that counts by itself: a dry run's first number is always the same.
    pub(crate) fn apart() -> Xids {
        Xids { next: 2, end: u64::MAX, setting: SETTING.load(Ordering::Relaxed) }
    }
}

/// From here on transactions of this process are numbered from `next`, and workers take so many numbers at a time: with 1
/// all are in order.
pub fn set_xids(next: u64, block: u64) {
    NEXT.store(next, Ordering::Relaxed);
    BLOCK.store(block.max(1), Ordering::Relaxed);
    SETTING.fetch_add(1, Ordering::Release);
}

/// A number that no other transaction of this process has.
#[inline]
pub(crate) fn next(of_core: &Cell<Xids>) -> u64 {
    let mut xids = of_core.get();
    if xids.next == xids.end || xids.setting != SETTING.load(Ordering::Acquire) {
        xids = fresh_block();
    }
    let xid = xids.next;
    of_core.set(Xids { next: xid + 1, ..xids });
    (xid & XID_MAX).max(1)
}

#[cold]
fn fresh_block() -> Xids {
    let setting = SETTING.load(Ordering::Acquire);
    let block = BLOCK.load(Ordering::Relaxed);
    let next = NEXT.fetch_add(block, Ordering::Relaxed);
    Xids { next, end: next + block, setting }
}
