//! What values on their way take of memory, all of them together: each is bounded by its route, and their sum by
//! `limits.memcached_values_bytes_max`. What is held is given back when its holder goes.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use crate::core::Core;

pub(crate) struct ValueHold {
    core: Rc<Core>,
    bytes: usize,
}

impl ValueHold {
    pub(crate) fn new(core: &Rc<Core>) -> ValueHold {
        ValueHold { core: Rc::clone(core), bytes: 0 }
    }

    /// Takes so much more. False, and nothing is taken: there is no room.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let max = self.core.site_ref().settings.limits.memcached_values_bytes_max;
        let all = &self.core.shared.memcached_values_bytes;
        if all.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > max {
            all.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.core.shared.cache.account().take(bytes);
        self.bytes += bytes;
        true
    }

    pub(crate) fn shrink(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.core.shared.memcached_values_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.core.shared.cache.account().give_back(bytes);
    }
}

impl Drop for ValueHold {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

impl std::fmt::Debug for ValueHold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ValueHold({} B)", self.bytes)
    }
}
