//! How many connections each client address holds, while `limits.connections_per_client_max` asks for it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// The counts of all cores together. Empty while there is no limit. Hashed with a random key: clients choose these.
#[derive(Debug, Default)]
pub(crate) struct ClientPermits(Mutex<HashMap<IpAddr, usize>>);

/// One connection's permit; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct ClientPermit {
    permits: Arc<ClientPermits>,
    ip: IpAddr,
}

impl ClientPermits {
    /// A permit for one more connection of this client, if it has fewer than `limit`.
    pub(crate) fn take(self: &Arc<Self>, ip: IpAddr, limit: usize) -> Option<ClientPermit> {
        let mut counts = self.0.lock();
        let count = counts.entry(ip).or_default();
        if *count >= limit {
            return None;
        }
        *count += 1;
        Some(ClientPermit { permits: Arc::clone(self), ip })
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        let mut counts = self.permits.0.lock();
        if let Some(count) = counts.get_mut(&self.ip) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.ip);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_own_limit_and_leaves_nothing_behind() {
        let permits = Arc::new(ClientPermits::default());
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let first = permits.take(one, 1);
        assert!(first.is_some() && permits.take(one, 1).is_none() && permits.take(other, 1).is_some());
        drop(first);
        assert!(permits.0.lock().is_empty());
        assert!(permits.take(one, 1).is_some());
    }
}
