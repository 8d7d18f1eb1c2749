//! Numbers of transactions, as `req.xid` and X-Varnish show them: of every request, restart and fetch under a policy.
//!
//! Each core takes a block at a time, so that counting costs no shared write.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::worker::Core;

const BLOCK: u64 = 4_096;
static NEXT_BLOCK: AtomicU64 = AtomicU64::new(0);

/// The numbers that a core has left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Xids {
    next: u64,
    end: u64,
}

impl Xids {
    /// Of a core that counts by itself: a rehearsal's first number is always the same.
    pub(crate) fn apart() -> Xids {
        Xids { next: 2, end: u64::MAX }
    }
}

/// A number that no other transaction of this process has.
#[inline]
pub(crate) fn next(core: &Core) -> u64 {
    let mut xids = core.xids.get();
    if xids.next == xids.end {
        // The first number is 2, as everybody's first is.
        xids.next = NEXT_BLOCK.fetch_add(BLOCK, Ordering::Relaxed) + 2;
        xids.end = xids.next + BLOCK;
    }
    let xid = xids.next;
    core.xids.set(Xids { next: xid + 1, ..xids });
    xid
}
