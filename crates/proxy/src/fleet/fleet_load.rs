//! Bounded loads: an owner on which this node waits for more than its share is passed over, so that a slow node does not hold up what all
//! others could fetch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::limits::FLEET_LOAD_ALWAYS;
use crate::origin::{Address, Origin};

/// Fetches that this node has sent to origins as the owner.
#[derive(Debug, Default)]
pub(crate) struct OwnFetches(AtomicU32);

impl OwnFetches {
    pub(super) fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn begin(self: &Arc<Self>) -> OwnFetch {
        self.0.fetch_add(1, Ordering::Relaxed);
        OwnFetch(Arc::clone(self))
    }
}

/// One of them. Dropped, it is over.
#[derive(Debug)]
pub(crate) struct OwnFetch(Arc<OwnFetches>);

impl Drop for OwnFetch {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Has the node more of our fetches than so many thousandths of its share of all that are under way? A few are never too many: of two fetches
/// one is as good as all, and who passed owners over for that would have each URL fetched by several nodes.
pub(super) fn is_too_much(nodes: &Origin, node: &Arc<Address>, own_fetches: u32, load_max_permille: u32) -> bool {
    let its = u64::from(node.in_use.load(Ordering::Relaxed)) + 1;
    if its <= FLEET_LOAD_ALWAYS {
        return false;
    }
    let (in_use, weight, weights) = nodes.load_and_weights(node);
    let all = in_use + u64::from(own_fetches) + 1;
    u128::from(its) * u128::from(weights) * 1_000 > u128::from(load_max_permille) * u128::from(all) * u128::from(weight)
}
