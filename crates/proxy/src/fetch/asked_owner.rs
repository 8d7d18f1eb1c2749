//! A fetch that asks another node, the owner of its URL, in place of the origin: when it does, what it says there, and what comes of the answer.
//!
//! Only what the built-in policy may store goes there, and nothing that came from a node. Whatever goes wrong with an owner, the next one
//! or the origin itself is asked: what is only read may be asked for again.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use crate::fetch::broken::Broken;
use crate::fetch::origin_request::NodeRequest;
use crate::fetch::retry::{Lost, LostBy};
use crate::fetch::timeouts::Timeouts;
use crate::fetch::{Fetch, OriginReply, failed};
use crate::fleet::crossings::Crossing;
use crate::fleet::node_opening::route_digest;
use crate::fleet::node_proof::{NODE_FIELD, NodeClaim, NodeWord, Proof};
use crate::fleet::{Fleet, Owner};
use crate::limits::FLEET_OWNERS_TRIED_MAX;
use crate::origin::{Address, Origin};
use crate::settings::{EsiPages, RouteTarget, RouteTimeouts};

/// The owner that is asked.
pub(crate) struct AskedOwner {
    fleet: Arc<Fleet>,
    key: u64,
    at: Arc<Address>,
    /// In whose place none of these is asked.
    pub(super) avoid: Vec<Arc<Address>>,
    failed: Vec<Arc<Address>>,
    /// Of the request that was sent last.
    proof: Cell<Proof>,
    /// Who is asked when there is no owner any more, and how long.
    origin: Arc<Origin>,
    timeouts: Timeouts,
    _crossing: Crossing,
}

/// The fetch has its origin. Is somebody else asked in its place?
pub(super) fn begin(fetch: &mut Fetch) {
    let Some(fleet) = fetch.site.fleet.clone().filter(|_| is_of_fleet(fetch)) else { return };
    let (request, now_ms) = (fetch.head.request(), fetch.core.now().mono_ms);
    if !may_trust_owners(fetch, now_ms) {
        return;
    }
    let key = fleet.key_of(&request);
    let counters = &fetch.core.counters;
    let Some(Owner { address, avoid }) = fleet.owner(key, now_ms, &[], counters) else {
        fetch.own_fetch = Some(fleet.begin_own());
        return;
    };
    let Some(crossing) = fleet.crossings.ask(key) else { return };
    let said = fetch.site.rules_of(fetch.routed).map_or_else(RouteTimeouts::default, |rules| rules.timeouts);
    let of_owner = Timeouts::asked(&said, fleet.origin(), &fetch.site.settings.limits);
    let timeouts = std::mem::replace(&mut fetch.timeouts, of_owner);
    let Some(origin) = fetch.chosen.replace(Arc::clone(fleet.origin())) else { return };
    let (failed, proof) = (Vec::new(), Cell::default());
    let owner = AskedOwner { fleet, key, at: address, avoid, failed, proof, origin, timeouts, _crossing: crossing };
    fetch.owner = Some(Box::new(owner));
}

/// Is what an owner has as good as what the origin has? Who has heard nothing of the log for a lease knows of no purge by which to hold an
/// owner to account, and what an owner has may be a lease old itself.
fn may_trust_owners(fetch: &Fetch, now_ms: u64) -> bool {
    let shared = &fetch.core.shared;
    !shared.log_position.is_alone() && !shared.cache.fleet_lease().has_lapsed(now_ms)
}

/// May others get what it brings, and would another node find the same for it? A page that is put together of parts, what a script beneath a
/// root answers, and what a service has said of the client are each node's own affair.
fn is_of_fleet(fetch: &Fetch) -> bool {
    let site = &fetch.site;
    fetch.purpose.is_for_many()
        && !fetch.client.is_some_and(|client| client.is_node)
        && !fetch.is_forwarded()
        && !fetch.routed.is_bypass
        && site.route_of(fetch.routed).is_some_and(|route| matches!(route.target, RouteTarget::Origin(_)))
        && site.program.is_none()
        && site.esi_pages(fetch.routed) == EsiPages::None
        && !site.asks_service(fetch.routed)
}

/// What an answer of the owner comes to, or that there is none. `None`: somebody else is asked.
pub(super) fn hear(fetch: &mut Fetch, outcome: Result<OriginReply, Lost>) -> Option<Result<OriginReply, Lost>> {
    let counters = Rc::clone(&fetch.core);
    let counters = &counters.counters;
    let reply = match outcome {
        Ok(reply) => reply,
        Err(lost) if is_the_clients(&lost) || is_of_pool(fetch, &lost) => return Some(Err(lost)),
        Err(_) => {
            counters.fleet_owners_down.add(1);
            go_on_without(fetch);
            return None;
        }
    };
    let mut reply = reply;
    match word_of(fetch, &mut reply) {
        Some(NodeWord::Answer) => return Some(Ok(reply)),
        Some(NodeWord::Failed) => {
            let failure = failed::by_owner(fetch.origin(), &reply.body.upstream, reply.head.status.0);
            reply.body.into_body(fetch).finish();
            return Some(Err(Lost::for_good(Broken::Origin(failure))));
        }
        Some(NodeWord::Behind) => counters.fleet_owners_behind.add(1),
        Some(NodeWord::Crossed | NodeWord::Unable) | None => counters.fleet_owners_unable.add(1),
    }
    reply.body.into_body(fetch).finish();
    go_to_origin(fetch);
    None
}

fn is_the_clients(lost: &Lost) -> bool {
    matches!(lost.broken, Broken::ClientLeft | Broken::ClientFault(_))
}

/// The connection had served others, and the node may be well.
fn is_of_pool(fetch: &Fetch, lost: &Lost) -> bool {
    matches!(lost.by, LostBy::DeadConnection | LostBy::Unprocessed) && !fetch.wants_fresh_connection
        || lost.by == LostBy::WrongProtocol && !fetch.wants_http1
}

/// What the node says of its answer, which nobody else is to see.
fn word_of(fetch: &Fetch, reply: &mut OriginReply) -> Option<NodeWord> {
    let owner = fetch.owner.as_ref()?;
    let (name, fields) = (NODE_FIELD.as_bytes(), &mut reply.head.fields);
    let secret = &owner.fleet.settings.secret;
    let word = fields.view().get_all_named(name).next();
    let word = word.and_then(|said| NodeWord::read(said, secret, &owner.proof.get()));
    fields.retain(|field| !field.name_text.eq_ignore_ascii_case(name));
    word
}

/// The owner does not answer: the next one is asked, or the origin.
fn go_on_without(fetch: &mut Fetch) {
    let now_ms = fetch.core.now().mono_ms;
    let Some(owner) = &mut fetch.owner else { return };
    owner.failed.push(Arc::clone(&owner.at));
    let may_ask_another = owner.failed.len() < FLEET_OWNERS_TRIED_MAX;
    let next = owner.fleet.owner(owner.key, now_ms, &owner.failed, &fetch.core.counters).filter(|_| may_ask_another);
    match next {
        Some(Owner { address, avoid }) => {
            (owner.at, owner.avoid) = (address, avoid);
            (fetch.wants_fresh_connection, fetch.wants_http1) = (false, false);
        }
        None => go_to_origin(fetch),
    }
}

fn go_to_origin(fetch: &mut Fetch) {
    let Some(owner) = fetch.owner.take() else { return };
    fetch.own_fetch = Some(owner.fleet.begin_own());
    (fetch.chosen, fetch.timeouts) = (Some(owner.origin), owner.timeouts);
    (fetch.wants_fresh_connection, fetch.wants_http1) = (false, false);
    fetch.failed_at.clear();
}

impl Fetch {
    /// What the owner is told of who asks.
    pub(super) fn asked_as_node(&self) -> Option<NodeRequest<'_>> {
        let owner = self.owner.as_ref()?;
        let claim = NodeClaim {
            sent_s: self.core.now().wall_ms / 1_000,
            position: self.core.shared.log_position.heard(),
            route: route_digest(&self.site, self.routed),
        };
        Some(NodeRequest { claim, secret: &owner.fleet.settings.secret, proof: &owner.proof })
    }
}
