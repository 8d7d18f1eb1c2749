//! How many connections each client address holds, while `limits.connections_per_client_max` asks for it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// The counts of all cores together. Empty while there is no limit. Hashed with a random key: clients choose these.
#[derive(Debug, Default)]
pub(crate) struct ClientPlaces(Mutex<HashMap<IpAddr, usize>>);

/// One connection's place; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct ClientPlace {
    places: Arc<ClientPlaces>,
    ip: IpAddr,
}

impl ClientPlaces {
    /// A place for one more connection of this client, if it has fewer than `limit`.
    pub(crate) fn take(self: &Arc<Self>, ip: IpAddr, limit: usize) -> Option<ClientPlace> {
        let mut counts = self.0.lock();
        let count = counts.entry(ip).or_default();
        if *count >= limit {
            return None;
        }
        *count += 1;
        Some(ClientPlace { places: Arc::clone(self), ip })
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        let mut counts = self.places.0.lock();
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
        let places = Arc::new(ClientPlaces::default());
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let first = places.take(one, 1);
        assert!(first.is_some() && places.take(one, 1).is_none() && places.take(other, 1).is_some());
        drop(first);
        assert!(places.0.lock().is_empty());
        assert!(places.take(one, 1).is_some());
    }
}
