//! The first half of an exchange of a stream, or of a dry run: a request that has been received is answered at once, or becomes a
//! transaction with its first step. HTTP/1 connections do the same in `http1_serving.rs`, with the rest of their state.

use std::rc::Rc;
use std::sync::Arc;

use wire::ReceivedRequest;

use crate::asker::Asker;
use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::forward::admission;
use crate::instant_answer::{InstantClient, InstantOutcome};
use crate::instant_hit;
use crate::parsed_request::ParsedRequest;
use crate::receive::{self, Verdict};
use crate::records::request_records;
use crate::records::session_records::SessionRecords;
use crate::transaction::transaction_states::State;
use crate::transaction::{Outcome, Step, Transaction};
use crate::vcl_site::VclSite;
use crate::vcl_story::client_state::ClientState;
use crate::vcl_story::program_at_once::OnItsWay;
use crate::vcl_story::xids;

/// The transaction of a request, and its first step; `None` where `client` was answered at once. `addresses` is asked where a program
/// decides. `session`: where records are wanted.
pub(crate) fn open(
    core: &Rc<Core>,
    (asker, session): (Asker<'_>, Option<&SessionRecords>),
    received: ReceivedRequest<'_>,
    addresses: impl FnOnce(&ClientIdentity) -> Rc<ConnectionAddresses>,
    client: Option<&mut impl InstantClient>,
) -> Option<(Box<Transaction>, Step)> {
    core.counters.requests.add(1);
    let moment = Moment::now();
    let site = core.site();
    let rewritten = receive::rewritten_fields(&site, &asker, &received.request);
    let mut received = received;
    let persistent = received.persistent;
    if !asker.asks_proxy() {
        receive::at_origin(&mut received.request, rewritten.as_ref());
        if let Some(program) = site.vcl.clone() {
            return Some(under_program(core, (asker, session), (&received, moment), program, addresses));
        }
    }
    let trimmed = receive::trimmed(&site.settings, &received);
    if let Some(query) = &trimmed {
        received.request.query = (!query.is_empty()).then_some(query);
    }
    let found = match asker.asks_proxy() {
        false => receive::run(core, &site, &mut received, &asker),
        true => admission::run(core, &site, &mut received, asker.peer),
    };
    let parsed = ParsedRequest {
        received: &received,
        seen: found.seen,
        client: found.client,
        persistent,
        is_secure: asker.is_secure(),
        moment,
    };
    let (outcome, key) = match (&found.verdict, client) {
        (Verdict::Lookup(key), Some(client)) => {
            core.edges.take(State::Receive, State::Lookup);
            (instant_hit::run(client, core, &site, &parsed, (*key, found.backend)), Some(*key))
        }
        (verdict, _) => (InstantOutcome::Step((State::Receive, verdict.clone().into_step(), Outcome::NONE)), None),
    };
    match outcome {
        InstantOutcome::Answered { .. } => None,
        InstantOutcome::Step((state, step, outcome)) => {
            Some((parsed.builtin(core, &found, (state, key, outcome)), step))
        }
    }
}

fn under_program(
    core: &Rc<Core>,
    (asker, session): (Asker<'_>, Option<&SessionRecords>),
    (received, moment): (&ReceivedRequest<'_>, Moment),
    program: Arc<VclSite>,
    addresses: impl FnOnce(&ClientIdentity) -> Rc<ConnectionAddresses>,
) -> (Box<Transaction>, Step) {
    let site = core.site();
    let (client, seen, refused) = receive::before_policy(core, &site, received, &asker);
    let now_s = core.clock().at(moment).wall_ms as f64 / 1_000.0;
    let xid = xids::next(&core.xids);
    let mut state = ClientState::new(program, addresses(&client), xid, now_s);
    if core.records.is_some() {
        let asked = (received, None, moment);
        state.records = request_records::begin(core, (session, xid), &state.addresses, &state.vcl_site.name, asked);
    }
    let step = refused.map_or(Step::Receive, Step::Synth);
    let on_its_way = OnItsWay::from_start(received, client, step);
    let (persistent, is_secure) = (received.persistent, asker.is_secure());
    let parsed = ParsedRequest { received, seen, client, persistent, is_secure, moment };
    parsed.under_program(core, site, state, on_its_way)
}
