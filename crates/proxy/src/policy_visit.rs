//! A request under a policy of the operator's: answered at once if the program and the store agree, else copied into a
//! transaction. What `connection` does for the built-in policy, with the program's words in between.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use message::{FieldName, Method, Request};
use wire::{Event, ReceivedRequest};

use crate::client_identity::ClientIdentity;
use crate::clock::{Moment, deadline_now_ms};
use crate::connection::Connection;
use crate::connection_addresses::Ends;
use crate::core::Core;
use crate::field_set::CONDITIONAL;
use crate::http1_serving::Turn;
use crate::receive;
use crate::records::request_records;
use crate::records::session_records::Closing;
use crate::request_body::OwedBody;
use crate::site::Site;
use crate::transaction::Step;
use crate::transaction::opening::Opening;
use crate::vcl_site::VclSite;
use crate::vcl_story::client_state::ClientState;
use crate::vcl_story::instant_policy_hit::{self, OnItsWay, Reached};
use crate::vcl_story::{builtin_hit, xids};

impl Connection {
    /// The same under a policy of the operator's: answered at once if the program and the store agree.
    pub(crate) fn take_by_policy(
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
        let persistent = received.persistent
            && received.request.method != Method::Connect
            && !core.draining()
            && self.requests_count < site.settings.limits.requests_per_connection_max;
        self.owed = OwedBody::of(received.body, &site.settings.limits.chunked);
        self.exchange(if self.owed.is_some() { Event::HeadRead } else { Event::BodilessHeadRead });
        let (client, seen, refused) = receive::before_policy(&site, received, self.peer);
        let is_conditional = seen.has_any(CONDITIONAL);
        // Who has a body does not get an answer at once: it may have to be read first.
        let has_body = self.owed.is_some();
        let visit = instant_policy_hit::Visit { received, client, persistent, is_conditional, moment };
        let (xid, mut reached) = (xids::next(&core.xids), None);
        if refused.is_none() && !has_body && program.leaves_hits_to_builtin && !core.is_heard() {
            reached = builtin_hit::run(self, core, &site, &visit, seen, xid);
            if let Some(Reached::Answered { .. } | Reached::Left) = reached {
                return self.after_answer(&site, received, reached);
            }
        }
        let now_s = core.clock().at(moment).wall_ms as f64 / 1_000.0;
        let mut state = ClientState::new(program, self.ends_for(&client), xid, now_s);
        if core.records.is_some() {
            let (session, asked) = (self.session(), (received, expected, moment));
            state.records = request_records::begin(core, (session, xid), &state.ends, &state.site.name, asked);
        }
        let reached = match (reached, refused) {
            (Some(reached), _) => reached,
            (None, Some(synth)) => Reached::Step(Box::new(OnItsWay::from_start(received, client, Step::Synth(synth)))),
            (None, None) if has_body => Reached::Step(Box::new(OnItsWay::from_start(received, client, Step::Receive))),
            (None, None) => instant_policy_hit::run(self, core, &site, &state, &visit),
        };
        match reached {
            Reached::Step(on_its_way) => {
                self.begins_transaction();
                let opening = Opening { received, persistent, moment };
                let (tx, step) = opening.under_program(core, site, client, state, *on_its_way);
                Some(Turn::Step(tx, step))
            }
            ended => self.after_answer(&site, received, Some(ended)),
        }
    }

    /// What becomes of the connection.
    fn after_answer(&mut self, site: &Site, received: &ReceivedRequest<'_>, reached: Option<Reached>) -> Option<Turn> {
        match reached {
            Some(Reached::Answered { persistent: true }) => {
                let idle_ms = self.idle_ms(&site.settings.limits);
                self.slot.set_idle(deadline_now_ms() + idle_ms);
                None
            }
            Some(Reached::Answered { .. }) if received.persistent => {
                self.closes(Closing::Response);
                Some(Turn::Linger)
            }
            Some(Reached::Answered { .. }) => {
                self.closes(Closing::Request);
                Some(Turn::Close)
            }
            _ => Some(Turn::Close),
        }
    }

    /// The ends of the connection, which are asked for once; and who asks, if a trusted proxy says so.
    fn ends_for(&mut self, client: &ClientIdentity) -> Rc<Ends> {
        let ends = self.ends.get_or_insert_with(|| Rc::new(Ends::of(&self.wire, client.peer.text())));
        if client.ip == client.peer.ip() {
            return Rc::clone(ends);
        }
        Rc::new(Ends { client: SocketAddr::new(client.ip, 0), ..Ends::clone(ends) })
    }
}
