//! Doubly linked queues in one array, so that a tenant that is purged leaves from the middle at once.
//!
//! The policies keep their queues in it. Index and queue stand in the tenant's seat; 16 bytes a node, counted by the
//! owner of the tenants as part of an index entry. Beside the queues everybody whose life has an end lies in a timing wheel, which
//! knows places as this file does: 8 bytes more.

use std::sync::Arc;

use crate::eviction::Tenant;
use crate::expiry_wheel::ExpiryWheel;

const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Arena<T, const QUEUES: usize> {
    nodes: Vec<Node<T>>,
    free: Vec<u32>,
    queues: [Queue; QUEUES],
    wheel: ExpiryWheel,
}

#[derive(Debug)]
struct Node<T> {
    tenant: Option<Arc<T>>,
    newer: u32,
    older: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    newest: u32,
    oldest: u32,
    pub count: usize,
    pub weight: usize,
}

impl<T: Tenant, const QUEUES: usize> Arena<T, QUEUES> {
    pub fn new() -> Arena<T, QUEUES> {
        let empty = Queue { newest: NONE, oldest: NONE, count: 0, weight: 0 };
        Arena { nodes: Vec::new(), free: Vec::new(), queues: [empty; QUEUES], wheel: ExpiryWheel::new() }
    }

    pub fn queue(&self, queue: usize) -> Queue {
        self.queues[queue]
    }

    pub fn count(&self) -> usize {
        self.queues.iter().map(|queue| queue.count).sum()
    }

    pub fn weight(&self) -> usize {
        self.queues.iter().map(|queue| queue.weight).sum()
    }

    /// Puts a tenant at the newest end.
    pub fn push(&mut self, queue: usize, tenant: Arc<T>) {
        assert!(tenant.seat().place().is_none(), "a tenant sits in one place");
        let index = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(Node { tenant: None, newer: NONE, older: NONE });
            u32::try_from(self.nodes.len() - 1).expect("fewer than 4 billion tenants")
        });
        tenant.seat().set_place(Some(index), queue);
        if let Some(over_s) = tenant.over_s() {
            self.wheel.put(index, over_s);
        }
        let weight = tenant.weight();
        let ends = &mut self.queues[queue];
        let older = std::mem::replace(&mut ends.newest, index);
        if older == NONE {
            ends.oldest = index;
        } else {
            self.nodes[older as usize].newer = index;
        }
        ends.count += 1;
        ends.weight += weight;
        self.nodes[index as usize] = Node { tenant: Some(tenant), newer: NONE, older };
    }

    /// Takes out the oldest.
    pub fn pop(&mut self, queue: usize) -> Option<Arc<T>> {
        let index = self.queues[queue].oldest;
        (index != NONE).then(|| self.unlink(index))
    }

    /// Takes a tenant out, wherever it sits.
    pub fn remove(&mut self, tenant: &T) -> Option<Arc<T>> {
        tenant.seat().place().map(|index| self.unlink(index))
    }

    /// A tenant that weighed so much weighs what it says now.
    pub fn reweigh(&mut self, tenant: &T, before: usize) {
        if tenant.seat().place().is_some() {
            let ends = &mut self.queues[tenant.seat().queue()];
            ends.weight = ends.weight - before + tenant.weight();
        }
    }

    /// It is this second now.
    pub fn note_time(&mut self, now_s: u32) {
        self.wheel.turn(now_s);
    }

    /// The place of one whose life is over, whatever its queue.
    pub fn over(&self) -> Option<u32> {
        self.wheel.due()
    }

    /// The place of the oldest.
    pub fn oldest(&self, queue: usize) -> Option<u32> {
        some_place(self.queues[queue].oldest)
    }

    /// The place of who came next after the one that sits there.
    pub fn newer(&self, place: u32) -> Option<u32> {
        some_place(self.nodes[place as usize].newer)
    }

    pub fn tenant(&self, place: u32) -> Option<&Arc<T>> {
        self.nodes[place as usize].tenant.as_ref()
    }

    /// Takes out who sits there.
    pub fn take(&mut self, place: u32) -> Option<Arc<T>> {
        self.nodes[place as usize].tenant.is_some().then(|| self.unlink(place))
    }

    fn unlink(&mut self, index: u32) -> Arc<T> {
        let node = &mut self.nodes[index as usize];
        let tenant = node.tenant.take().expect("a place in a seat names a taken node");
        let (newer, older) = (node.newer, node.older);
        let (weight, queue) = (tenant.weight(), tenant.seat().queue());
        let ends = &mut self.queues[queue];
        ends.count -= 1;
        ends.weight -= weight;
        match newer {
            NONE => ends.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.queues[queue].oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
        self.free.push(index);
        self.wheel.take_out(index);
        tenant.seat().set_place(None, 0);
        tenant
    }
}

fn some_place(index: u32) -> Option<u32> {
    (index != NONE).then_some(index)
}
