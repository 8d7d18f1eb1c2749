//! A request under a program: answered at once if the program and the store agree, else copied into a transaction. What
//! `http1_serving` does for the built-in policy, with the program's words in between.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use message::{FieldName, Method, Request};
use wire::ReceivedRequest;

use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::connection::Connection;
use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::http1_serving::Turn;
use crate::parsed_request::ParsedRequest;
use crate::receive;
use crate::records::request_records;
use crate::transaction::Step;
use crate::vcl_site::VclSite;
use crate::vcl_story::client_state::ClientState;
use crate::vcl_story::program_at_once::{self, OnItsWay};
use crate::vcl_story::{builtin_hit, xids};

impl Connection {
    /// One request: answered (`None`), or what is to be done about it.
    pub(crate) fn take_program_request(
        &mut self,
        core: &Rc<Core>,
        received: &ReceivedRequest<'_>,
        program: Arc<VclSite>,
        moment: Moment,
    ) -> Option<Turn> {
        if received.expects_continue && self.is_varnishd_s() {
            return self.take_expecting(core, received, program, moment);
        }
        self.take_as_it_is(core, (received, None), program, moment)
    }

    /// In place of varnishd 100 is ours to say: no program sees that it is waited for, and no origin.
    #[cold]
    fn take_expecting(
        &mut self,
        core: &Rc<Core>,
        received: &ReceivedRequest<'_>,
        program: Arc<VclSite>,
        moment: Moment,
    ) -> Option<Turn> {
        let fields = receive::without_expect(&received.request);
        let expected = received.request.fields.get(FieldName::Expect);
        let request = Request { fields: fields.view(), ..received.request.clone() };
        let received = ReceivedRequest { request, ..received.clone() };
        self.take_as_it_is(core, (&received, expected), program, moment)
    }

    fn take_as_it_is(
        &mut self,
        core: &Rc<Core>,
        (received, expected): (&ReceivedRequest<'_>, Option<&[u8]>),
        program: Arc<VclSite>,
        moment: Moment,
    ) -> Option<Turn> {
        let site = core.site();
        // What follows a CONNECT may be meant for whom it asked for, and is no request to us.
        let persistent = self.begins_exchange(core, &site, received) && received.request.method != Method::Connect;
        let (client, seen, refused) = receive::before_policy(core, &site, received, &self.asker());
        // Who has a body does not get an answer at once: it may have to be read first.
        let has_body = self.unread.is_some();
        let parsed = ParsedRequest { received, seen, client, persistent, is_secure: self.asker().is_secure(), moment };
        let xid = xids::next(&core.xids);
        let mut rest_of_hit = None;
        if refused.is_none() && !has_body && program.leaves_hits_to_builtin && !core.is_heard() {
            let outcome = builtin_hit::run(self, core, &site, &parsed, xid);
            match outcome.map(|outcome| self.after_instant(&site, received.persistent, outcome)) {
                None => {}
                Some(ControlFlow::Break(turn)) => return turn,
                Some(ControlFlow::Continue(begun)) => rest_of_hit = Some(begun),
            }
        }
        let now_s = core.clock().at(moment).wall_ms as f64 / 1_000.0;
        let mut state = ClientState::new(program, self.addresses_for(&client), xid, now_s);
        if core.records.is_some() {
            let (session, asked) = (self.session(), (received, expected, moment));
            state.records = request_records::begin(core, (session, xid), &state.addresses, &state.vcl_site.name, asked);
        }
        let on_its_way = match (rest_of_hit, refused) {
            (Some((state, step, outcome)), _) => {
                Box::new(OnItsWay { head: received.request.to_head(), state, step, outcome })
            }
            (None, Some(synth)) => Box::new(OnItsWay::from_start(received, client, Step::Synth(synth))),
            (None, None) if has_body => Box::new(OnItsWay::from_start(received, client, Step::Receive)),
            (None, None) => {
                let outcome = program_at_once::run(self, core, &site, &state, &parsed);
                match self.after_instant(&site, received.persistent, outcome) {
                    ControlFlow::Break(turn) => return turn,
                    ControlFlow::Continue(on_its_way) => on_its_way,
                }
            }
        };
        self.begins_transaction();
        let (tx, step) = parsed.under_program(core, site, state, *on_its_way);
        Some(Turn::Step(tx, step))
    }

    /// The ends of the connection, which are asked for once; and who asks, if a trusted proxy says so.
    fn addresses_for(&mut self, client: &ClientIdentity) -> Rc<ConnectionAddresses> {
        let addresses =
            self.addresses.get_or_insert_with(|| Rc::new(ConnectionAddresses::of(&self.socket, client.peer.text())));
        if client.ip == client.peer.ip() {
            return Rc::clone(addresses);
        }
        Rc::new(ConnectionAddresses { client: SocketAddr::new(client.ip, 0), ..ConnectionAddresses::clone(addresses) })
    }
}
