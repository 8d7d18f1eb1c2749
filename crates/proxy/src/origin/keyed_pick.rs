//! Who of an origin's addresses a key belongs to, asked before there is a connection: nodes of a fleet want to know that first.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::address::{Address, Standing};
use super::balance::{Affinity, RequestTurn};
use super::{Origin, Servers};

impl Origin {
    /// The one that a request would go to, beside these.
    pub(crate) fn pick(&self, affinity: Affinity, now_ms: u64, avoid: &[Arc<Address>]) -> Option<Arc<Address>> {
        self.servers.book().pick(RequestTurn { number: 0, affinity }, now_ms, avoid).cloned()
    }

    /// Is the one to which a key belongs left out, or taken out?
    pub(crate) fn is_first_out(&self, key: u64, now_ms: u64) -> bool {
        let book = self.servers.book();
        let first = book.first_by_key(key);
        first.is_some_and(|first| !matches!(first.standing(now_ms, 0), Standing::Serves { .. }))
    }

    /// All that are known.
    pub(crate) fn addresses(&self) -> Vec<Arc<Address>> {
        self.servers.book().addresses.clone()
    }

    /// Requests under way at all of them, where the balance counts these; what this one weighs, and what all do.
    pub(crate) fn load_and_weights(&self, of: &Arc<Address>) -> (u64, u32, u32) {
        let book = self.servers.book();
        let in_use = book.addresses.iter().map(|address| u64::from(address.in_use.load(Ordering::Relaxed))).sum();
        let weight = book.addresses.iter().zip(&book.shares).find(|(address, _)| Arc::ptr_eq(address, of));
        (in_use, weight.map_or(1, |(_, share)| share.weight), book.shares.iter().map(|share| share.weight).sum())
    }

    /// Its names are looked up if that is due, and nobody waits for it.
    pub(crate) fn wants_names(&self, now_ms: u64) {
        let servers: &Arc<Servers> = &self.servers;
        if now_ms >= servers.book().fresh_until_ms {
            servers.look_up_soon(&self.resolver, now_ms);
        }
    }
}
