//! How a request becomes a transaction: what was borrowed of it is copied.

use std::rc::Rc;
use std::sync::Arc;

use cache::Key;
use message::{Fields, Request, RequestHead};
use rules::RequestDirectives;
use wire::RequestBody;

use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::core::Core;
use crate::field_set::FieldSet;
use crate::limits::TRANSACTION_BYTES;
use crate::page_budget::PlaceInPage;
use crate::parsed_request::ParsedRequest;
use crate::policy::{self, Policy};
use crate::receive::Received;
use crate::settings::EsiPages;
use crate::site::{Routed, Site};
use crate::traces::exchange_trace::ExchangeTrace;
use crate::transaction::transaction_states::State;
use crate::transaction::{ActiveRequest, Outcome, Step, Transaction};
use crate::vcl_story::client_state::ClientState;
use crate::vcl_story::completed_fields;
use crate::vcl_story::program_at_once::OnItsWay;

/// What receive made of the request, or the program.
struct Begun {
    policy: Policy,
    head: RequestHead,
    came: Option<Rc<RequestHead>>,
    routed: Routed,
    key: Option<Key>,
    directives: RequestDirectives,
    outcome: Outcome,
    state: State,
}

impl ParsedRequest<'_> {
    /// Under the built-in policy, from the state that the request has got to.
    pub(crate) fn builtin(
        &self,
        core: &Rc<Core>,
        found: &Received,
        (state, key, outcome): (State, Option<Key>, Outcome),
    ) -> Box<Transaction> {
        let site = core.site();
        let request = &self.received.request;
        let mut outcome = outcome;
        if let Some(why) = found.verdict.why_passed() {
            outcome.why = why.token();
        }
        let directives = policy::directives(&site.settings.policy, request, self.seen);
        let (head, routed) = (request.to_head(), found.routed);
        let came = self.came.filter(|_| site.esi_pages(routed) != EsiPages::None || site.asks_service(routed));
        let came = came.map(|came| Rc::new(came.to_head()));
        let policy = Policy::Builtin;
        self.transaction(core, site, Begun { policy, head, came, routed, key, directives, outcome, state })
    }

    /// Under a program, with the head as it left it. The first step is the second of what is returned.
    pub(crate) fn under_program(
        &self,
        core: &Rc<Core>,
        site: Arc<Site>,
        (mut vcl, routed): (ClientState, Routed),
        on_its_way: OnItsWay,
    ) -> (Box<Transaction>, Step) {
        let OnItsWay { head, state, step, outcome } = on_its_way;
        let request = &self.received.request;
        let completed = completed_fields::complete(request.fields, self.client.peer.ip());
        let original = Request { fields: completed.view(), ..request.clone() }.to_head();
        vcl.original = Some(Rc::new(original));
        let (key, directives) = (vcl.key.get(), RequestDirectives::default());
        let policy = Policy::Program(Box::new(vcl));
        let came = self.came.filter(|_| site.asks_service(routed)).map(|came| Rc::new(came.to_head()));
        let begun = Begun { policy, head, came, routed, key, directives, outcome, state };
        (self.transaction(core, site, begun), step)
    }

    /// The query as it came, where its route has cut it.
    fn query_cut(&self) -> Option<Box<[u8]>> {
        let sent = self.query_sent()?;
        (Some(sent) != self.received.request.query).then(|| sent.into())
    }

    fn transaction(&self, core: &Rc<Core>, site: Arc<Site>, begun: Begun) -> Box<Transaction> {
        let Begun { policy, head, came, routed, key, directives, outcome, state } = begun;
        let whose = (self.received.request.fields, self.client.peer_is_trusted);
        let trace = site.settings.traces.as_ref().map(|traces| ExchangeTrace::begin(traces, &core.trace_dice, whose));
        Box::new(Transaction {
            core: Rc::clone(core),
            policy,
            seen: FieldSet::of(head.fields()),
            head: Rc::new(head),
            came,
            query_cut: self.query_cut(),
            body: self.received.body,
            expects_continue: self.received.expects_continue,
            persistent: self.persistent,
            client_closes: !self.received.persistent,
            client: self.client,
            user: self.client.is_user.then(|| core.user().as_slice().into()),
            tls: self.tls.clone(),
            trace: trace.map(Rc::new),
            routed,
            script: None,
            key,
            directives,
            started: self.moment,
            answer_began: None,
            outcome,
            state,
            tries: Vec::new(),
            error_note: None,
            asked_again_count: 0,
            recalled: None,
            leased: None,
            own_fields: Fields::default(),
            counted: Vec::new(),
            node: None,
            explained: None,
            place_in_page: PlaceInPage::default(),
            _held: core.shared.cache.account().charge(TRANSACTION_BYTES),
            _counted: ActiveRequest::begin(core),
            site,
        })
    }
}

impl Transaction {
    /// Of what is included in a page: nothing of it is the client's own connection's affair.
    pub(crate) fn included(
        (core, site): (&Rc<Core>, &Arc<Site>),
        policy: Policy,
        head: RequestHead,
        client: ClientIdentity,
        place_in_page: PlaceInPage,
    ) -> Box<Transaction> {
        let trace = place_in_page.page().and_then(|page| page.trace.clone());
        Box::new(Transaction {
            core: Rc::clone(core),
            site: Arc::clone(site),
            policy,
            seen: FieldSet::of(head.fields()),
            head: Rc::new(head),
            came: None,
            query_cut: None,
            body: RequestBody::None,
            expects_continue: false,
            persistent: true,
            client_closes: false,
            client,
            user: None,
            tls: None,
            trace,
            routed: Routed::default(),
            script: None,
            key: None,
            directives: RequestDirectives::default(),
            started: Moment::now(),
            answer_began: None,
            outcome: Outcome::NONE,
            state: State::Receive,
            tries: Vec::new(),
            error_note: None,
            asked_again_count: 0,
            recalled: None,
            leased: None,
            own_fields: Fields::default(),
            counted: Vec::new(),
            node: None,
            explained: None,
            place_in_page,
            _held: core.shared.cache.account().charge(TRANSACTION_BYTES),
            _counted: ActiveRequest::begin(core),
        })
    }
}
