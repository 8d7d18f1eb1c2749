//! A fetch that asks the owner of its URL in place of the origin: what it says there, and what comes of the answer. When it does is said in
//! `builtin_steps.rs`.
//!
//! Whatever goes wrong with an owner, the next one or the origin itself is asked: what is only read may be asked for again.

use std::rc::Rc;
use std::sync::Arc;

use crate::fetch::broken::Broken;
use crate::fetch::origin_request::NodeRequest;
use crate::fetch::retry::{Lost, LostBy};
use crate::fetch::{Fetch, OriginReply, failed};
use crate::fleet::Owner;
use crate::fleet::node_proof::{NODE_FIELD, NodeClaim, NodeWord};
use crate::limits::FLEET_OWNERS_TRIED_MAX;

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
            route: self.site.route_digest(self.routed),
        };
        Some(NodeRequest { claim, secret: &owner.fleet.settings.secret, proof: &owner.proof })
    }
}
