//! Nodes that serve the same site. For each URL one of them is its owner, and a fetch whose answer may be stored asks that one in place of the
//! origin (`fetch/owner_steps.rs`), so that an origin sees one fetch a fleet.
//!
//! The nodes are an origin of the proxy's own kind, whose addresses they are: names, TLS, HTTP/2, connections, ejection and probes are its
//! affair, and who owns a URL is its balance by hash. What is here is what an origin does not know: which address is this node itself, who is
//! passed over for its load, how nodes know one another, and that nobody waits in a circle.

use std::sync::Arc;

use message::Request;

pub(crate) mod asking_node;
pub(crate) mod crossings;
pub(crate) mod fleet_load;
pub mod fleet_secret;
pub(crate) mod log_position;
pub mod machine_address;
pub mod node_draws;
pub(crate) mod node_opening;
pub(crate) mod node_proof;
pub(crate) mod own_address;
pub(crate) mod url_digest;

use self::crossings::Crossings;
use self::fleet_load::{OwnFetch, OwnFetches, is_too_much};
use self::own_address::OwnAddresses;
use crate::counters::CoreCounters;
use crate::origin::{Address, Affinity, Origin, Origins};
use crate::settings::FleetSettings;

/// The nodes of a configuration.
pub(crate) struct Fleet {
    pub(crate) settings: Arc<FleetSettings>,
    /// One, whose addresses are the nodes.
    pub(crate) origins: Arc<Origins>,
    own: OwnAddresses,
    own_fetches: Arc<OwnFetches>,
    pub(crate) crossings: Arc<Crossings>,
}

/// Who is asked for a URL.
pub(crate) struct Owner {
    pub(crate) address: Arc<Address>,
    /// Those before it, and this node itself: they are not asked in its place.
    pub(crate) avoid: Vec<Arc<Address>>,
}

impl Fleet {
    /// Fetches that are under way, and connections, outlive a reload.
    pub(crate) fn new(settings: &Arc<FleetSettings>, origins: &Origins, previous: Option<&Fleet>) -> Fleet {
        let origins = origins.of_nodes(std::slice::from_ref(&settings.nodes), previous.map(|former| &*former.origins));
        let own = OwnAddresses::new(settings.own.clone());
        let (own_fetches, crossings) = match previous {
            Some(former) => (Arc::clone(&former.own_fetches), Arc::clone(&former.crossings)),
            None => Default::default(),
        };
        Fleet { settings: Arc::clone(settings), origins, own, own_fetches, crossings }
    }

    /// The nodes, as who is asked.
    pub(crate) fn origin(&self) -> &Arc<Origin> {
        self.origins.get(0)
    }

    /// By what the owner of a URL is found, in every node alike.
    pub(crate) fn key_of(&self, request: &Request<'_>) -> u64 {
        self.settings.secret.digest_key().digest(request)
    }

    /// Who is to be asked, beside those that failed. `None`: the origin, for this node is the owner itself, or nobody is there.
    pub(crate) fn owner(
        &self,
        key: u64,
        now_ms: u64,
        failed: &[Arc<Address>],
        counters: &CoreCounters,
    ) -> Option<Owner> {
        let nodes = self.origin();
        nodes.wants_names(now_ms);
        let affinity = Affinity { key: Some(key), sticks_to: None };
        let mut avoid = failed.to_vec();
        if failed.is_empty() && nodes.is_first_out(key, now_ms) {
            counters.fleet_owners_down.add(1);
        }
        let address = loop {
            let address = nodes.pick(affinity, now_ms, &avoid)?;
            if self.own.are(&address.place) {
                return None;
            }
            if !is_too_much(nodes, &address, self.own_fetches.count(), self.settings.load_max_permille) {
                break address;
            }
            counters.fleet_owners_loaded.add(1);
            avoid.push(address);
        };
        avoid.extend(nodes.addresses().into_iter().filter(|address| self.own.are(&address.place)));
        Some(Owner { address, avoid })
    }

    /// Counts a fetch that this node sends to the origin.
    pub(crate) fn begin_own(&self) -> OwnFetch {
        self.own_fetches.begin()
    }

    /// For the tick of each core.
    pub(crate) fn sweep(&self, core: usize, now_ms: u64) {
        self.origins.sweep(core, now_ms);
    }
}

#[cfg(test)]
mod tests;
