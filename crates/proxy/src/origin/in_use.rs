//! A request under way at an address: counted where the balance compares loads, and alone where the address is on trial.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::address::Address;

/// From the choice of its address, before anything is connected, to its end. Dropped, it is over.
#[derive(Debug)]
pub struct InUse {
    address: Arc<Address>,
    is_counted: bool,
    is_trial: bool,
}

impl InUse {
    /// `None` where nobody asks: the balance does not count, and the address is not on trial.
    #[inline]
    pub fn begin(is_counted: bool, address: &Arc<Address>) -> Option<InUse> {
        let is_trial = address.begins_trial();
        if !is_counted && !is_trial {
            return None;
        }
        if is_counted {
            address.in_use.fetch_add(1, Ordering::Relaxed);
        }
        Some(InUse { address: Arc::clone(address), is_counted, is_trial })
    }

    pub fn is_of(&self, address: &Arc<Address>) -> bool {
        Arc::ptr_eq(&self.address, address)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if self.is_counted {
            self.address.in_use.fetch_sub(1, Ordering::Relaxed);
        }
        if self.is_trial {
            self.address.ends_trial();
        }
    }
}
