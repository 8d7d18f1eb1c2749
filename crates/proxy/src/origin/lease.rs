//! The right to one open connection of an origin, and the place in the queue of who waits for one: dropped, either goes on to the next.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::address::Address;
use super::in_use::InUse;
use super::origin_pool::Idle;
use super::origin_queue::{Grant, QueuePlace};
use super::servers::{Returned, Servers};

/// The right to one open connection. Dropped, it gives the slot back and lets the next in.
#[derive(Debug)]
pub struct Lease {
    servers: Arc<Servers>,
    holds: Holds,
    /// By the request that it is for; where that is somebody's business.
    in_use: Option<InUse>,
}

#[derive(Debug)]
enum Holds {
    /// A slot, no connection yet.
    Slot,
    /// A slot and a connection to this address.
    Open(Arc<Address>),
    /// The slot went elsewhere.
    Nothing,
}

impl Lease {
    /// Of a slot that was taken for a connection to be opened.
    pub fn of_slot(servers: &Arc<Servers>) -> Lease {
        Lease { servers: Arc::clone(servers), holds: Holds::Slot, in_use: None }
    }

    /// Of an open connection that comes with its slot.
    #[inline]
    pub fn of_open(servers: &Arc<Servers>, address: Arc<Address>) -> Lease {
        let in_use = InUse::begin(servers.counts_in_use(), &address);
        Lease { servers: Arc::clone(servers), holds: Holds::Open(address), in_use }
    }

    /// A connection to this address is to be opened, for a request that is under way there from now on.
    pub fn aim(&mut self, address: &Arc<Address>) {
        self.in_use = None;
        self.in_use = InUse::begin(self.servers.counts_in_use(), address);
    }

    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// The connection was opened, to whom it was aimed at or to somebody beside.
    pub fn opened(mut self, address: Arc<Address>) -> Lease {
        assert!(matches!(self.holds, Holds::Slot), "a lease is for one connection");
        address.connections.fetch_add(1, Ordering::Relaxed);
        if self.in_use.as_ref().is_some_and(|in_use| !in_use.is_of(&address)) {
            self.aim(&address);
        }
        self.holds = Holds::Open(address);
        self
    }

    /// The connection was closed and another is to be opened in its slot.
    pub fn emptied(mut self) -> Lease {
        self.in_use = None;
        if let Holds::Open(address) = std::mem::replace(&mut self.holds, Holds::Slot) {
            address.connections.fetch_sub(1, Ordering::Relaxed);
        }
        self
    }

    /// The address it is open to.
    #[inline]
    pub fn address(&self) -> Option<&Arc<Address>> {
        match &self.holds {
            Holds::Open(address) => Some(address),
            Holds::Slot | Holds::Nothing => None,
        }
    }

    /// Ends the lease: the connection takes its slot along to a shelf.
    #[inline]
    pub fn put(mut self, idle: Idle) {
        self.in_use = None;
        if let Holds::Open(address) = std::mem::replace(&mut self.holds, Holds::Nothing) {
            self.servers.put(&address, idle);
        }
    }
}

impl Drop for Lease {
    #[inline]
    fn drop(&mut self) {
        // Who gets the slot compares loads without this one.
        self.in_use = None;
        match std::mem::replace(&mut self.holds, Holds::Nothing) {
            Holds::Slot => self.servers.closed(None),
            Holds::Nothing => {}
            Holds::Open(address) => self.servers.closed(Some(&address)),
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
