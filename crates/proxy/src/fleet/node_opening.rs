//! The first half of an exchange whose client is another node of the fleet, which sends on what a client of its own has asked.
//!
//! What a route says of a request (who may ask, how often, what becomes of query, cookies and fields) the other node has done: it is not done
//! twice. So nobody comes in here who does not prove to be a node, and nothing is answered but what the other node may have of an origin.

use std::rc::Rc;
use std::sync::Arc;

use message::{Fields, Method, Request};
use wire::ReceivedRequest;

use super::Fleet;
use super::asking_node::AskingNode;
use super::node_proof::{NODE_FIELD, NodeClaim, Proof};
use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::core::Core;
use crate::exchange_opening;
use crate::field_set::FieldSet;
use crate::receive::{self, Received, Verdict};
use crate::request_source::{Opened, RequestSource};
use crate::route_rules::route_verdict::RouteVerdict;
use crate::secret_comparison::is_same_secret;
use crate::site::Routed;
use crate::transaction::admit::{Door, Unverified};
use crate::transaction::synth::Synth;
use crate::unhurried::Unhurried;

/// A request that bears the field of nodes.
#[cold]
pub(crate) fn open<S: RequestSource>(
    core: &Rc<Core>,
    source: &mut S,
    received: ReceivedRequest<'_>,
    (fleet, moment): (Arc<Fleet>, Moment),
) -> Opened {
    core.counters.requests.add(1);
    let (site, peer) = (core.site(), source.asker().peer);
    let name = NODE_FIELD.as_bytes();
    let claimed = received.request.fields.get_all_named(name).next().and_then(NodeClaim::read);
    let mut others = Fields::default();
    let kept = received.request.fields.iter().filter(|field| !field.name_text.eq_ignore_ascii_case(name));
    kept.for_each(|field| others.push_field(&field));
    let request = Request { fields: others.view(), ..received.request.clone() };
    let mut received = ReceivedRequest { request, ..received.clone() };
    let seen = FieldSet::of(received.request.fields);
    let client = receive::client_of_node(&site.settings, &mut received, seen, peer);
    let proven = claimed.filter(|(claim, proof)| is_proven(core, &fleet, &received, (claim, proof, moment)));
    let Some((claim, proof)) = proven else {
        core.counters.fleet_proofs_refused.add(1);
        let client = ClientIdentity::of_peer(peer);
        let found = Received { verdict: Verdict::Synth(Synth::no_node()), seen, client, routed: Routed::default() };
        return exchange_opening::begin(core, source, &site, (&received, None), (found, moment));
    };
    let ruling = RouteVerdict { route: site.routes.find(&received.request), ..RouteVerdict::default() };
    let found = receive::judge(core, &site, &received, (seen, client), ruling);
    let has_same_route = site.route_digest(found.routed) == claim.route;
    let verdict = match found.verdict {
        Verdict::Lookup(key) if has_same_route && site.program.is_none() => {
            let then = Verdict::Lookup(key);
            Verdict::Admit(Box::new(Unverified { credentials: None, by: Door::Node, also: Box::default(), then }))
        }
        refused @ Verdict::Synth(_) => refused,
        _ => Verdict::Synth(Synth::node_unable()),
    };
    let found = Received { verdict, ..found };
    match exchange_opening::begin(core, &mut Unhurried(source), &site, (&received, None), (found, moment)) {
        Opened::Begun(mut tx, step) => {
            let asking = AskingNode { fleet, proof, position: claim.position, crossing: None };
            tx.node = Some(Box::new(asking));
            Opened::Begun(tx, step)
        }
        answered => answered,
    }
}

/// Does it come from a node, now, and is it what nodes ask?
fn is_proven(
    core: &Core,
    fleet: &Fleet,
    received: &ReceivedRequest<'_>,
    (claim, proof, moment): (&NodeClaim, &Proof, Moment),
) -> bool {
    let request = &received.request;
    let now_s = core.clock().at(moment).wall_ms / 1_000;
    request.method == Method::Get
        && !received.body.follows()
        && !received.upgrade
        && claim.is_of_now(now_s)
        && is_same_secret(&claim.proof(&fleet.settings.secret, request, request.fields), proof)
}
