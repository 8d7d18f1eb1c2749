//! The HTTP/2 connections of one core: each carries many exchanges with one address of an origin. Which of them has room, and who waits
//! for one that is being opened, is known here; the bytes are moved by the task that serves it.
//!
//! An exchange holds a slot of its origin's `connections_max`, as one over HTTP/1 does with its connection: what an origin is asked at a
//! time does not depend on how it is asked. The connection itself holds none, so none is kept from other cores.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::Notify;

use super::address::{Address, Ejection};
use super::lease::Lease;
use super::origin_pool::IdleAccount;
use super::{CarriedBytes, CoreHandle, OriginConnection, OriginFailure};
use crate::clock::deadline_now_ms;
use crate::origin_streams::OriginStreams;
use crate::socket::Socket;

/// A core's.
#[derive(Debug, Default)]
pub struct SharedConnections(RefCell<Vec<OfAddress>>);

/// Those to one address.
#[derive(Debug)]
struct OfAddress {
    address: Arc<Address>,
    connections: Vec<Rc<SharedConnection>>,
    /// The newest that is being opened, or was.
    opening: Rc<OpeningState>,
}

/// One connection.
pub struct SharedConnection {
    pub(crate) streams: OriginStreams,
    address: Arc<Address>,
    account: Arc<IdleAccount>,
    pub(crate) carried: Arc<CarriedBytes>,
    descriptor: i32,
    ends: (SocketAddr, SocketAddr),
    /// Exchanges that have a stream, or are about to.
    taken: Cell<u32>,
    /// Those that it ever had.
    requests: Cell<u32>,
    /// It takes no more of them.
    is_retired: Cell<bool>,
    /// When something came last, in the milliseconds of `clock::deadline_now_ms`.
    heard_ms: Cell<u64>,
    /// Until the origin has said its settings.
    opening: RefCell<Option<Opening>>,
}

/// What those wait for who want to share a connection that is not there yet.
#[derive(Debug, Default)]
struct OpeningState {
    outcome: RefCell<Option<OpenedConnection>>,
    heard: Notify,
}

/// `None`: it came to nothing.
type OpenedConnection = Option<Rc<SharedConnection>>;

/// The duty to say what comes of it. Dropped, it came to nothing.
#[derive(Debug)]
pub struct Opening(Rc<OpeningState>);

/// What there is for an exchange with an address.
#[derive(Debug)]
pub(super) enum Sharing {
    Room(Rc<SharedConnection>),
    /// One is being opened.
    Soon(OpeningWait),
    Nothing,
}

/// For a connection that is being opened.
#[derive(Debug)]
pub(super) struct OpeningWait(Rc<OpeningState>);

/// An exchange's part of a connection. Dropped, it makes room for another.
#[derive(Debug)]
pub struct SharedStream {
    pub(crate) connection: Rc<SharedConnection>,
    /// Requests were sent on the connection before this one.
    pub(crate) reused: bool,
    ejection: Ejection,
    /// When it was taken.
    since_ms: u64,
    lease: Lease,
}

impl SharedConnections {
    /// What there is for an exchange with this address; `fresh`: not on a connection that is there already.
    pub(super) fn find(&self, address: &Arc<Address>, fresh: bool) -> Sharing {
        let all = self.0.borrow();
        let Some(shared) = all.iter().find(|of| Arc::ptr_eq(&of.address, address)) else { return Sharing::Nothing };
        let with_room = shared.connections.iter().find(|connection| connection.has_room());
        match with_room.filter(|_| !fresh) {
            Some(connection) => Sharing::Room(Rc::clone(connection)),
            None if shared.opening.outcome.borrow().is_none() => Sharing::Soon(OpeningWait(Rc::clone(&shared.opening))),
            None => Sharing::Nothing,
        }
    }

    /// The caller opens one, and others may wait for it.
    pub(super) fn begin(&self, address: &Arc<Address>) -> Opening {
        let opening = Rc::new(OpeningState::default());
        let mut all = self.0.borrow_mut();
        all.retain(|of| !of.connections.is_empty() || of.opening.outcome.borrow().is_none());
        match all.iter_mut().find(|of| Arc::ptr_eq(&of.address, address)) {
            Some(of) => of.opening = Rc::clone(&opening),
            None => {
                let (address, opening) = (Arc::clone(address), Rc::clone(&opening));
                all.push(OfAddress { address, connections: Vec::new(), opening });
            }
        }
        Opening(opening)
    }

    /// Makes of a fresh connection, upon which HTTP/2 was agreed, one that others may share. Returns it with the stream of who opened
    /// it, and with its socket, for who serves it.
    pub(crate) fn share(
        &self,
        connection: OriginConnection,
        opening: Opening,
        streams: OriginStreams,
    ) -> (SharedStream, Socket) {
        let (descriptor, ends) = (connection.descriptor(), connection.ends());
        let OriginConnection { stream: socket, ejection, lease, .. } = connection;
        let address = Arc::clone(lease.address().expect("a connection's lease is of an open one"));
        address.http2_connections.fetch_add(1, Ordering::Relaxed);
        let shared = Rc::new(SharedConnection {
            streams,
            account: Arc::clone(&lease.servers().account),
            carried: Arc::clone(&lease.servers().carried),
            address: Arc::clone(&address),
            descriptor,
            ends,
            taken: Cell::new(0),
            requests: Cell::new(0),
            is_retired: Cell::new(false),
            heard_ms: Cell::new(deadline_now_ms()),
            opening: RefCell::new(Some(opening)),
        });
        if let Some(of) = self.0.borrow_mut().iter_mut().find(|of| Arc::ptr_eq(&of.address, &address)) {
            of.connections.push(Rc::clone(&shared));
        }
        (shared.take(lease, ejection), socket)
    }

    /// It is over.
    pub(crate) fn remove(&self, connection: &Rc<SharedConnection>) {
        for of in self.0.borrow_mut().iter_mut() {
            of.connections.retain(|other| !Rc::ptr_eq(other, connection));
            let outcome = &mut *of.opening.outcome.borrow_mut();
            if matches!(outcome, Some(Some(opened)) if Rc::ptr_eq(opened, connection)) {
                *outcome = Some(None);
            }
        }
        connection.retire();
        // Who waited for it has to look for another.
        drop(connection.opening.take());
    }
}

impl SharedConnection {
    pub(super) fn has_room(&self) -> bool {
        !self.is_retired.get() && self.taken.get() < self.streams.room()
    }

    /// A part of it, for who has a lease.
    pub(super) fn take(self: &Rc<Self>, lease: Lease, ejection: Ejection) -> SharedStream {
        self.taken.set(self.taken.get() + 1);
        self.requests.set(self.requests.get().saturating_add(1));
        self.streams.queues.wake();
        SharedStream {
            connection: Rc::clone(self),
            reused: self.requests.get() > 1,
            ejection,
            since_ms: deadline_now_ms(),
            lease,
        }
    }

    /// When something came last, in the milliseconds of `clock::deadline_now_ms`.
    pub(crate) fn heard_ms(&self) -> u64 {
        self.heard_ms.get()
    }

    /// Something has come.
    pub(crate) fn heard(self: &Rc<Self>) {
        self.heard_ms.set(deadline_now_ms());
        if self.streams.queues.machine.borrow().has_spoken()
            && let Some(opening) = self.opening.take()
        {
            opening.came(self);
        }
    }

    /// Ready when the origin has said its settings, or will never.
    pub(crate) async fn settled(&self) {
        let wait = self.opening.borrow().as_ref().map(|opening| OpeningWait(Rc::clone(&opening.0)));
        if let Some(wait) = wait {
            wait.over().await;
        }
    }

    /// Takes no further exchange.
    pub(crate) fn retire(&self) {
        self.is_retired.set(true);
        self.streams.queues.wake();
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.get()
    }

    /// No exchange has a part of it.
    pub(crate) fn is_idle(&self) -> bool {
        self.taken.get() == 0
    }

    /// Counts it among the idle connections. False: there are too many, and it must be closed.
    pub(crate) fn lies_idle(&self) -> bool {
        self.account.add();
        if self.account.is_over() {
            self.account.close_oldest();
        }
        let is_kept = !self.account.is_over();
        if !is_kept {
            self.account.sub();
        }
        is_kept
    }

    pub(crate) fn lies_idle_no_more(&self) {
        self.account.sub();
    }

    /// How long it may lie idle.
    pub(crate) fn idle_timeout_ms(&self) -> u64 {
        self.account.timeout_ms()
    }
}

impl std::fmt::Debug for SharedConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedConnection({}, {} taken)", self.address.label, self.taken.get())
    }
}

impl Drop for SharedConnection {
    fn drop(&mut self) {
        self.address.http2_connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Opening {
    fn came(self, connection: &Rc<SharedConnection>) {
        *self.0.outcome.borrow_mut() = Some(Some(Rc::clone(connection)));
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.outcome.borrow_mut().get_or_insert(None);
        self.0.heard.notify_waiters();
    }
}

impl OpeningWait {
    /// Ends when it is known what comes of it. False: nothing.
    pub(super) async fn over(&self) -> Option<Rc<SharedConnection>> {
        loop {
            let heard = self.0.heard.notified();
            if let Some(outcome) = &*self.0.outcome.borrow() {
                return outcome.clone();
            }
            heard.await;
        }
    }
}

impl SharedStream {
    pub(crate) fn descriptor(&self) -> i32 {
        self.connection.descriptor
    }

    pub(crate) fn ends(&self) -> (SocketAddr, SocketAddr) {
        self.connection.ends
    }

    pub(crate) fn label(&self) -> &Arc<str> {
        &self.connection.address.label
    }

    pub(crate) fn address(&self) -> &Arc<Address> {
        &self.connection.address
    }

    /// See [`OriginConnection::succeeded`].
    pub(crate) fn succeeded(&self, now_ms: impl FnOnce() -> u64) {
        self.connection.address.succeeded(now_ms);
    }

    /// See [`OriginConnection::failed`]. A connection on which nothing came for the latter half of the time in which an answer was
    /// awaited takes no more requests: its other end may be gone without a word.
    pub(crate) fn failed(&self, core: &CoreHandle<'_>, failure: OriginFailure) {
        let (now_ms, heard_ms) = (deadline_now_ms(), self.connection.heard_ms.get());
        let is_silent = now_ms.saturating_sub(heard_ms) >= now_ms.saturating_sub(self.since_ms) / 2;
        if failure == OriginFailure::FirstByte && is_silent {
            self.connection.retire();
        }
        super::note_failure(&self.lease, self.ejection, core, failure);
    }
}

impl Drop for SharedStream {
    fn drop(&mut self) {
        self.connection.taken.set(self.connection.taken.get() - 1);
        self.connection.streams.queues.wake();
    }
}
