//! The right to one open connection of an origin, and the place in the queue of who waits for one: dropped, either goes on to the next.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::address::Address;
use super::origin_pool::Idle;
use super::origin_queue::{Grant, QueuePlace};
use super::servers::{Returned, Servers};

/// The right to one open connection. Dropped, it gives the slot back and lets the next in.
#[derive(Debug)]
pub struct Lease {
    servers: Arc<Servers>,
    holds: Holds,
}

#[derive(Debug)]
enum Holds {
    /// A slot, no connection yet.
    Slot,
    /// A slot and a connection to this address.
    Open { address: Arc<Address>, is_counted: bool },
    /// The slot went elsewhere.
    Nothing,
}

impl Holds {
    /// A connection that is open to this address, and in use from now on.
    #[inline]
    fn open(servers: &Servers, address: Arc<Address>) -> Holds {
        let is_counted = servers.counts_in_use();
        if is_counted {
            address.in_use.fetch_add(1, Ordering::Relaxed);
        }
        Holds::Open { address, is_counted }
    }

    /// Whose connection it was that is not in use any more.
    #[inline]
    fn into_address(self) -> Option<Arc<Address>> {
        let Holds::Open { address, is_counted } = self else { return None };
        if is_counted {
            address.in_use.fetch_sub(1, Ordering::Relaxed);
        }
        Some(address)
    }
}

impl Lease {
    /// Of a slot that was taken for a connection to be opened.
    pub fn of_slot(servers: &Arc<Servers>) -> Lease {
        Lease { servers: Arc::clone(servers), holds: Holds::Slot }
    }

    /// Of an open connection that comes with its slot.
    #[inline]
    pub fn of_open(servers: &Arc<Servers>, address: Arc<Address>) -> Lease {
        let holds = Holds::open(servers, address);
        Lease { servers: Arc::clone(servers), holds }
    }

    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// The connection was opened.
    pub fn opened(mut self, address: Arc<Address>) -> Lease {
        assert!(matches!(self.holds, Holds::Slot), "a lease is for one connection");
        address.connections.fetch_add(1, Ordering::Relaxed);
        self.holds = Holds::open(&self.servers, address);
        self
    }

    /// The connection was closed and another is to be opened in its slot.
    pub fn emptied(mut self) -> Lease {
        if let Some(address) = std::mem::replace(&mut self.holds, Holds::Slot).into_address() {
            address.connections.fetch_sub(1, Ordering::Relaxed);
        }
        self
    }

    /// The address it is open to.
    #[inline]
    pub fn address(&self) -> Option<&Arc<Address>> {
        match &self.holds {
            Holds::Open { address, .. } => Some(address),
            Holds::Slot | Holds::Nothing => None,
        }
    }

    /// Ends the lease: the connection takes its slot along to a shelf.
    #[inline]
    pub fn put(mut self, idle: Idle) {
        if let Some(address) = std::mem::replace(&mut self.holds, Holds::Nothing).into_address() {
            self.servers.put(&address, idle);
        }
    }
}

impl Drop for Lease {
    #[inline]
    fn drop(&mut self) {
        match std::mem::replace(&mut self.holds, Holds::Nothing) {
            Holds::Slot => self.servers.closed(None),
            Holds::Nothing => {}
            open => self.servers.closed(open.into_address().as_deref()),
        }
    }
}

/// A place in the queue. Dropped before it was served, the others move up; dropped after, what it was given goes on.
#[derive(Debug)]
pub struct Waiting<'a> {
    servers: &'a Arc<Servers>,
    place: QueuePlace<Returned>,
}

impl<'a> Waiting<'a> {
    pub fn join(servers: &'a Arc<Servers>, queue_max: usize) -> Option<Waiting<'a>> {
        let waiting = Waiting { servers, place: servers.slots.join(queue_max)? };
        servers.settle();
        Some(waiting)
    }

    pub async fn served(&mut self) -> Grant<Returned> {
        (&mut self.place.grant).await.expect("a place is in the queue until it is served or dropped")
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.place.grant.close();
        match self.place.grant.try_recv() {
            Ok(grant) => self.servers.give_back(grant),
            Err(_) => self.servers.slots.leave(self.place.number),
        }
    }
}
