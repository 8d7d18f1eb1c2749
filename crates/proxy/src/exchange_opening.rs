//! The first half of an exchange whose every step is taken in the loop: a request that has been received becomes a transaction, and its
//! first step. What an HTTP/1 connection may answer at once it receives by itself.

use std::rc::Rc;
use std::sync::Arc;

use wire::ReceivedRequest;

use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::forward::admission;
use crate::parsed_request::ParsedRequest;
use crate::peer::Peer;
use crate::receive;
use crate::records::request_records;
use crate::records::session_records::SessionRecords;
use crate::transaction::transaction_states::State;
use crate::transaction::{Outcome, Step, Transaction};
use crate::vcl_site::VclSite;
use crate::vcl_story::client_state::ClientState;
use crate::vcl_story::program_at_once::OnItsWay;
use crate::vcl_story::xids;

/// Who asks, and where.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'s> {
    pub(crate) peer: Peer,
    /// It came to a listener of the forward proxy.
    pub(crate) at_proxy: bool,
    /// Where records are wanted.
    pub(crate) session: Option<&'s SessionRecords>,
}

/// The transaction of a request, and its first step. `addresses` is asked where a program decides.
pub(crate) fn open(
    core: &Rc<Core>,
    asker: Asker<'_>,
    received: ReceivedRequest<'_>,
    addresses: impl FnOnce(&ClientIdentity) -> Rc<ConnectionAddresses>,
) -> (Box<Transaction>, Step) {
    core.counters.requests.add(1);
    let moment = Moment::now();
    let named = if asker.at_proxy { None } else { receive::host_of_target(&received.request) };
    let mut received = received;
    let persistent = received.persistent;
    let site = core.site();
    if !asker.at_proxy {
        receive::at_origin(&mut received.request, named.as_ref());
        if let Some(program) = site.vcl.clone() {
            return under_program(core, asker, (&received, moment), program, addresses);
        }
    }
    let trimmed = receive::trimmed(&site.settings, &received);
    if let Some(query) = &trimmed {
        received.request.query = (!query.is_empty()).then_some(query);
    }
    let found = match asker.at_proxy {
        false => receive::run(core, &site, &mut received, asker.peer),
        true => admission::run(core, &site, &mut received, asker.peer),
    };
    let step = found.verdict.clone().into_step();
    let parsed = ParsedRequest { received: &received, seen: found.seen, client: found.client, persistent, moment };
    (parsed.builtin(core, &found, (State::Receive, None, Outcome::NONE)), step)
}

fn under_program(
    core: &Rc<Core>,
    asker: Asker<'_>,
    (received, moment): (&ReceivedRequest<'_>, Moment),
    program: Arc<VclSite>,
    addresses: impl FnOnce(&ClientIdentity) -> Rc<ConnectionAddresses>,
) -> (Box<Transaction>, Step) {
    let site = core.site();
    let (client, seen, refused) = receive::before_policy(&site, received, asker.peer);
    let now_s = core.clock().at(moment).wall_ms as f64 / 1_000.0;
    let xid = xids::next(&core.xids);
    let mut state = ClientState::new(program, addresses(&client), xid, now_s);
    if core.records.is_some() {
        let asked = (received, None, moment);
        state.records = request_records::begin(core, (asker.session, xid), &state.addresses, &state.site.name, asked);
    }
    let step = refused.map_or(Step::Receive, Step::Synth);
    let on_its_way = OnItsWay::from_start(received, client, step);
    let parsed = ParsedRequest { received, seen, client, persistent: received.persistent, moment };
    parsed.under_program(core, site, state, on_its_way)
}
