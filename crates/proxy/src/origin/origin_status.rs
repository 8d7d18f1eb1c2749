//! What the admin shows of an origin.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Origin;
use super::balance::Address;

/// One origin at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginStatus {
    pub name: Arc<str>,
    pub addresses: Vec<AddressStatus>,
    /// Open or being opened, to addresses that are gone too.
    pub connections: usize,
    pub connections_max: usize,
    pub queued: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressStatus {
    pub label: Arc<str>,
    pub state: AddressState,
    pub in_use: usize,
    pub idle: usize,
    pub failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressState {
    Up,
    /// Left out after failures, for so long still.
    Ejected {
        for_ms: u64,
    },
}

impl Origin {
    pub(super) fn status(&self, now_ms: u64) -> OriginStatus {
        let address = |address: &Arc<Address>| {
            let idle = address.shelves.len();
            AddressStatus {
                label: Arc::clone(&address.label),
                state: address
                    .ejected_for_ms(now_ms)
                    .map_or(AddressState::Up, |for_ms| AddressState::Ejected { for_ms }),
                in_use: address.connections.load(Ordering::Relaxed).saturating_sub(idle),
                idle,
                failures: address.failures(),
            }
        };
        OriginStatus {
            name: Arc::clone(&self.name),
            addresses: self.servers.book().addresses.iter().map(address).collect(),
            connections: self.servers.slots.open(),
            connections_max: self.servers.slots.open_max(),
            queued: self.servers.slots.waiting(),
        }
    }
}
