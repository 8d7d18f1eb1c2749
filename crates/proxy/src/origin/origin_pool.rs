//! Where idle connections to an address lie: a shelf per core, newest taken first, so that taking and returning on one
//! core is one short lock that nobody else wants. The account beside it counts idle connections over all origins.
//!
//! A connection on a shelf still holds its slot of the origin's `connections_max`; whoever takes it off without
//! using it gives the slot back.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::address::Address;
use super::servers::Servers;
use crate::socket::Socket;

/// A connection between two requests.
#[derive(Debug)]
pub struct Idle {
    pub stream: Socket,
    /// The core whose runtime polls the stream.
    pub core: usize,
    pub since_ms: u64,
    /// Requests sent on it so far.
    pub requests: u32,
}

/// One address's idle connections.
#[derive(Debug)]
pub struct Shelves {
    shelves: Box<[Shelf]>,
    /// Something was put here once. Where connections end with their request nobody looks through empty shelves.
    are_used: AtomicBool,
}

/// A cache line to itself: neighbours belong to other cores.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Shelf(Mutex<ShelfState>);

#[derive(Debug)]
enum ShelfState {
    /// Oldest in front.
    Open(VecDeque<Idle>),
    /// No lookup names the address any more: nothing may be put here.
    Closed,
}

impl Default for ShelfState {
    fn default() -> ShelfState {
        ShelfState::Open(VecDeque::new())
    }
}

impl Shelves {
    pub fn new(count: usize) -> Shelves {
        Shelves { shelves: (0..count.max(1)).map(|_| Shelf::default()).collect(), are_used: AtomicBool::new(false) }
    }

    pub fn count(&self) -> usize {
        self.shelves.len()
    }

    /// False: nothing lies here, nor ever did.
    #[inline]
    pub fn are_used(&self) -> bool {
        self.are_used.load(Ordering::Relaxed)
    }

    #[inline]
    fn of(&self, core: usize) -> &Mutex<ShelfState> {
        &self.shelves[core % self.shelves.len()].0
    }

    /// The newest on this core's shelf.
    #[inline]
    pub fn take_newest(&self, core: usize) -> Option<Idle> {
        match &mut *self.of(core).lock() {
            ShelfState::Open(idle) => idle.pop_back(),
            ShelfState::Closed => None,
        }
    }

    /// Gives the connection back if the shelves are closed.
    #[inline]
    pub fn put(&self, core: usize, connection: Idle) -> Result<(), Idle> {
        if !self.are_used() {
            self.are_used.store(true, Ordering::Relaxed);
        }
        match &mut *self.of(core).lock() {
            ShelfState::Open(idle) => idle.push_back(connection),
            ShelfState::Closed => return Err(connection),
        }
        Ok(())
    }

    pub fn oldest_since_ms(&self, shelf: usize) -> Option<u64> {
        match &*self.of(shelf).lock() {
            ShelfState::Open(idle) => idle.front().map(|idle| idle.since_ms),
            ShelfState::Closed => None,
        }
    }

    /// The oldest on a shelf, if it lies there since then or longer.
    pub fn take_oldest(&self, shelf: usize, since_ms_max: u64) -> Option<Idle> {
        match &mut *self.of(shelf).lock() {
            ShelfState::Open(idle) if idle.front()?.since_ms <= since_ms_max => idle.pop_front(),
            _ => None,
        }
    }

    /// Takes off what this core put there and must not be used again. Each is asked about once: asking a connection
    /// whether it is quiet may swallow the byte that tells.
    pub fn take_unusable(&self, core: usize, usable: impl Fn(&mut Idle) -> bool) -> Vec<Idle> {
        let mut unusable = Vec::new();
        if let ShelfState::Open(idle) = &mut *self.of(core).lock() {
            let mut index = 0;
            while let Some(connection) = idle.get_mut(index) {
                if connection.core == core && !usable(connection) {
                    unusable.extend(idle.remove(index));
                } else {
                    index += 1;
                }
            }
        }
        unusable
    }

    /// Closes all shelves and takes everything off.
    pub fn close(&self) -> Vec<Idle> {
        let take_all = |shelf: &Shelf| match std::mem::replace(&mut *shelf.0.lock(), ShelfState::Closed) {
            ShelfState::Open(idle) => idle,
            ShelfState::Closed => VecDeque::new(),
        };
        self.shelves.iter().flat_map(take_all).collect()
    }

    pub fn len(&self) -> usize {
        let len = |shelf: &Shelf| match &*shelf.0.lock() {
            ShelfState::Open(idle) => idle.len(),
            ShelfState::Closed => 0,
        };
        self.shelves.iter().map(len).sum()
    }
}

/// Idle connections of all origins together; it outlives reloads.
#[derive(Debug)]
pub struct IdleAccount {
    /// Never too small: counted before a connection is put on a shelf, uncounted after it was taken off.
    count: AtomicUsize,
    count_max: AtomicUsize,
    timeout_ms: AtomicU64,
    /// Whose shelves they lie on.
    pub(super) members: Mutex<Vec<Weak<Servers>>>,
}

impl IdleAccount {
    pub fn new() -> IdleAccount {
        IdleAccount {
            count: AtomicUsize::new(0),
            count_max: AtomicUsize::new(0),
            timeout_ms: AtomicU64::new(0),
            members: Mutex::new(Vec::new()),
        }
    }

    pub fn set_limits(&self, count_max: usize, timeout_ms: u64) {
        self.count_max.store(count_max, Ordering::Relaxed);
        self.timeout_ms.store(timeout_ms, Ordering::Relaxed);
    }

    pub fn timeout_ms(&self) -> u64 {
        self.timeout_ms.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn keeps_any(&self) -> bool {
        self.count_max.load(Ordering::Relaxed) > 0
    }

    #[inline]
    pub fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    pub fn sub(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    #[inline]
    pub fn is_over(&self) -> bool {
        self.count.load(Ordering::Relaxed) > self.count_max.load(Ordering::Relaxed)
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Did a connection lie idle for too long?
    #[inline]
    pub fn is_too_old(&self, idle: &Idle, now_ms: u64) -> bool {
        now_ms.saturating_sub(idle.since_ms) >= self.timeout_ms()
    }

    /// Closes the oldest idle connection of all. Walks every shelf: it runs only when the limit is passed, which a
    /// connection that is taken and returned does not do.
    pub fn close_oldest(&self) {
        let members: Vec<Arc<Servers>> = self.members.lock().iter().filter_map(Weak::upgrade).collect();
        let oldest = members.iter().filter_map(|servers| servers.oldest_idle().map(|oldest| (servers, oldest)));
        if let Some((servers, oldest)) = oldest.min_by_key(|(_, oldest)| oldest.since_ms)
            && let Some(idle) = oldest.address.shelves.take_oldest(oldest.shelf, oldest.since_ms)
        {
            servers.close_idle(&oldest.address, idle);
        }
    }
}

/// Where an origin's oldest idle connection lay when we looked.
pub struct Oldest {
    pub since_ms: u64,
    pub address: Arc<Address>,
    pub shelf: usize,
}
