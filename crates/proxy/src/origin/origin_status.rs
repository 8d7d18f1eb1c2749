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
    /// Requests and connections that failed by its doing, or that it was too busy for, since it was first configured.
    pub errors: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressStatus {
    pub label: Arc<str>,
    pub state: AddressState,
    /// Connections, or requests over HTTP/2.
    pub in_use: usize,
    pub idle: usize,
    /// Over which HTTP/2 is spoken, in use or idle.
    pub http2_connections: usize,
    pub failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressState {
    /// It answered the last time, or was not asked yet.
    Up,
    /// It failed the last time, and is asked again.
    Failing,
    /// Left out after failures, for so long still.
    Ejected { for_ms: u64 },
}

impl Origin {
    pub(super) fn status(&self, now_ms: u64) -> OriginStatus {
        let address = |address: &Arc<Address>| {
            let idle = address.shelves.len();
            AddressStatus {
                label: Arc::clone(&address.label),
                state: match address.ejected_for_ms(now_ms) {
                    Some(for_ms) => AddressState::Ejected { for_ms },
                    None if address.failures() > 0 => AddressState::Failing,
                    None => AddressState::Up,
                },
                in_use: address.connections.load(Ordering::Relaxed).saturating_sub(idle),
                idle,
                http2_connections: address.http2_connections.load(Ordering::Relaxed),
                failures: address.failures(),
            }
        };
        OriginStatus {
            name: Arc::clone(&self.name),
            addresses: self.servers.book().addresses.iter().map(address).collect(),
            connections: self.servers.slots.open(),
            connections_max: self.servers.slots.open_max(),
            queued: self.servers.slots.waiting(),
            errors: self.servers.errors.load(Ordering::Relaxed),
        }
    }
}
