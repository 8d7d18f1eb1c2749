//! The origin's side of the story: `Prepare → Send → Reply → {Refreshed | Fill} → Landed`. `fetch_loop.rs` goes around the first
//! three until an answer is settled; `fill.rs` lands it.
//!
//! A miss runs it in a task of its own, so that its requester's leaving ends nothing; a pass runs it inside its
//! transaction, because it needs the client's bytes. A request that died on a pooled connection is sent once
//! more, never after a byte of an answer; a program may ask for `max_retries` rounds.
//!
//! What is asked, and what comes of the answer, a policy decides: `fetch_policy.rs`.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use cache::{Charge, Departure};
use message::{FieldName, FieldsView, Method, Request, RequestHead, ResponseHead, TargetForm};
use rules::{StoreDefaults, VarySpec};
use wire::{RequestBody, ResponseBody};

use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::core::Core;
use crate::fetch::arrival::Arrival;
use crate::fetch::fetch_states::FetchState;
use crate::fetch::purpose::Purpose;
use crate::fetch::timeouts::Timeouts;
use crate::fleet::fleet_load::OwnFetch;
use crate::forward::parents::Ways;
use crate::origin::{Address, Origin};
use crate::policy;
use crate::records::task_records::TaskRecords;
use crate::settings::ParentLogin;
use crate::site::{Compression, Routed, Site};
use crate::static_files::script_path::ScriptPath;
use crate::stored_head;
use crate::traces::exchange_trace::ExchangeTrace;
use crate::upstream::carriage::Carriage;
use crate::url_variations::VariationKey;

mod affinity;
pub(crate) mod arrival;
mod arriving;
mod asked_owner;
pub(crate) mod begin;
pub(crate) mod bereq;
mod beresp;
pub(crate) mod body_copy;
pub(crate) mod body_filters;
pub(crate) mod broken;
mod builtin_esi;
pub(crate) mod builtin_steps;
mod cgi_variables;
mod claims;
pub(crate) mod client_link;
pub(crate) mod esi_scan;
pub(crate) mod failed;
mod fetch_loop;
mod fetch_policy;
pub(crate) mod fetch_states;
#[cfg(test)]
pub(crate) mod fetch_test_messages;
pub(crate) mod fetched_body;
pub(crate) mod fill;
mod head_sink;
mod invalidated;
pub(crate) mod mirrored;
pub(crate) mod notes;
pub(crate) mod origin_body;
mod origin_request;
mod owner_steps;
pub(crate) mod program_answer;
mod program_steps;
pub(crate) mod purpose;
pub(crate) mod question;
mod refreshed;
mod reply;
mod retry;
mod script_request;
mod send;
pub(crate) mod settled;
pub(crate) mod slice_fetch;
pub(crate) mod slice_manifest;
pub(crate) mod slice_stream;
pub(crate) mod timeouts;
pub(crate) mod try_journal;
mod upload;
mod whole_time;

use self::asked_owner::AskedOwner;
use self::body_copy::BodyCopy;
use self::fetch_policy::FetchPolicy;
use self::origin_body::Arriving;
use self::try_journal::TryJournal;
use self::whole_time::WholeTime;

/// One fetch.
pub(crate) struct Fetch {
    pub(crate) core: Rc<Core>,
    pub(crate) site: Arc<Site>,
    routed: Routed,
    /// Of an application over FastCGI, what is to answer.
    script: Option<Arc<ScriptPath>>,
    /// Under a program it is chosen only when that has spoken.
    chosen: Option<Arc<Origin>>,
    /// It is a node of the fleet, in place of the route's origin.
    owner: Option<Box<AskedOwner>>,
    /// It is the origin, which this node asks for the fleet.
    own_fetch: Option<OwnFetch>,
    /// It is this parent: a proxy, which is asked for the whole URL.
    parent: Option<usize>,
    /// Whom else to ask when it cannot be connected to.
    ways: Ways,
    purpose: Purpose,
    policy: FetchPolicy,
    head: Rc<RequestHead>,
    client: Option<ClientIdentity>,
    /// What it is a part of, with `[traces]`.
    pub(crate) trace: Option<Rc<ExchangeTrace>>,
    /// Each try is a span of the exchange that it is for.
    tells_tries: bool,
    body: RequestBody,
    expects_continue: bool,
    state: FetchState,
    /// Path and query that the origin is asked for, where the route says other ones than the client's.
    target: Option<Vec<u8>>,
    /// A pooled connection has died under it, or what is sent cannot be sent again.
    wants_fresh_connection: bool,
    /// The origin has said that it wants HTTP/1.1.
    wants_http1: bool,
    /// The addresses of its origin that failed it.
    failed_at: Vec<Arc<Address>>,
    /// When the request left, for RFC 9111 §4.2.3.
    sent: Moment,
    pub(crate) tries: TryJournal,
    timeouts: Timeouts,
    /// How long all of it may take, if its route says that.
    whole: Option<WholeTime>,
    /// The client's body, where it was read before: it goes out with the head.
    carried: Option<Bytes>,
    /// Somebody wants a copy of it when it is sent.
    pub(crate) copy: Option<BodyCopy>,
    /// The strong entity tag of the origin's answer, where that is large and the origin can be asked for parts of it.
    ranges_tag: Option<Bytes>,
    /// To be told when the request leaves, from when on invalidations are about what comes; by RFC 9111 they are from the start
    /// of the fetch.
    departure: Option<Departure>,
    /// What it costs, in the account of the process.
    _held: Charge,
}

/// The final head of an answer, and the body that follows.
pub(crate) struct OriginReply {
    pub(crate) head: ResponseHead,
    pub(crate) framing: ResponseBody,
    pub(crate) body: Arriving,
    pub(crate) arrival: Arrival,
}

impl Fetch {
    /// The one function through which a fetch changes its state.
    fn enter(&mut self, state: FetchState) {
        self.core.edges.take_of_fetch(self.state, state);
        self.state = state;
    }

    /// If anybody wants them.
    fn records(&self) -> Option<&Rc<TaskRecords>> {
        self.policy.task()?.records.as_ref()
    }

    fn origin(&self) -> &Arc<Origin> {
        self.chosen.as_ref().expect("an origin is chosen before anything is sent")
    }

    /// The head of a response as it is stored, with all that is said to whoever gets it.
    fn rendered(&self, head: &ResponseHead) -> Bytes {
        let is_surrogate = self.site.is_esi_surrogate && !self.is_forwarded();
        let edits = self.site.rules_of(self.routed).map(|rules| &rules.answer_fields);
        stored_head::render(head, &self.site, is_surrogate, |field| {
            edits.is_some_and(|edits| edits.removes(head.status, field))
        })
    }

    /// By what a response is selected that says so much of it.
    fn widened(&self, spec: Option<VarySpec>) -> Option<VarySpec> {
        let spec = match self.site.rules_of(self.routed).filter(|rules| rules.selects()) {
            Some(rules) => rules.caching.widen(spec, rules.cookies.select()),
            None => spec,
        };
        if !self.client.is_some_and(|client| client.peer_is_trusted) || self.is_forwarded() {
            return spec;
        }
        let with = |spec: Option<VarySpec>, name: &str| Some(VarySpec::with(spec.as_ref(), name.as_bytes()));
        claims::selecting(&self.head.request()).fold(spec, with)
    }

    /// Asked of a proxy: the origin does not know us, and is told nothing of who asks.
    fn is_forwarded(&self) -> bool {
        matches!(self.head.form, TargetForm::Absolute | TargetForm::Authority)
    }

    /// Where the answer belongs.
    pub(crate) fn place(&self, fields: FieldsView<'_>) -> VariationKey {
        policy::place(&self.core.shared, &self.head.request(), fields)
    }

    /// As the origin is to know it.
    fn request_to_origin(&self) -> Request<'_> {
        let mut request = self.head.request();
        // An owner has the route of the path that the client names.
        if let Some(target) = self.target.as_ref().filter(|_| self.owner.is_none()) {
            match target.iter().position(|&byte| byte == b'?') {
                Some(at) => (request.path, request.query) = (&target[..at], Some(&target[at + 1..])),
                None => (request.path, request.query) = (target, None),
            }
        }
        request
    }

    fn method(&self) -> Method {
        self.head.method
    }

    pub(crate) fn is_piped(&self) -> bool {
        matches!(self.purpose, Purpose::Piped)
    }

    /// What carries it.
    fn carriage(&self) -> Carriage {
        let is_websocket =
            || self.method() == Method::Get && self.head.fields().has_token(FieldName::Upgrade, "websocket");
        match self.purpose {
            _ if self.wants_http1 => Carriage::Http1,
            Purpose::Raw | Purpose::Tunnel => Carriage::Http1,
            Purpose::Upgrade if is_websocket() => Carriage::WebSocket,
            Purpose::Upgrade => Carriage::Http1,
            Purpose::Store(_)
            | Purpose::Slice { .. }
            | Purpose::Pass
            | Purpose::Question
            | Purpose::Mirrored
            | Purpose::Piped => Carriage::Any,
        }
    }

    fn is_upgrade(&self) -> bool {
        matches!(self.purpose, Purpose::Upgrade)
    }

    /// Name and password for the parent that is asked.
    fn parent_login(&self) -> Option<&ParentLogin> {
        self.site.forward.settings.parents[self.parent?].login.as_ref()
    }

    /// Is what its client says behind the body handed on?
    fn hands_on_trailers(&self) -> bool {
        self.site.rules_of(self.routed).is_none_or(|rules| rules.hands_on_trailers())
    }

    /// How what it brings is compressed for those who ask for it, if it is.
    fn compression(&self) -> Option<Compression<'_>> {
        let is_builtin = matches!(self.policy, FetchPolicy::Builtin);
        self.site.compression_of(self.routed).filter(|_| is_builtin)
    }

    /// The body of a pass is delivered by its transaction; the fetch's story ends with it.
    pub(crate) fn passed(&mut self) {
        self.enter(FetchState::Fill);
    }

    pub(crate) fn store_defaults(&self) -> StoreDefaults {
        let mut defaults = store_defaults_of(&self.site, self.routed);
        if self.is_forwarded() {
            // We work for those who ask here, not for whom they ask.
            defaults.is_surrogate = false;
        }
        defaults
    }
}

/// What the operator decided about storing what comes by a route, in the words of `rules`.
pub(crate) fn store_defaults_of(site: &Site, routed: Routed) -> StoreDefaults {
    let policy = &site.settings.policy;
    StoreDefaults {
        heuristic_percent: u64::from(policy.heuristic_percent),
        heuristic_max_s: policy.heuristic_max.as_secs(),
        honour_client_cache_control: policy.honour_client_cache_control,
        share_set_cookie: policy.share_set_cookie,
        share_by_max_age: policy.share_by_max_age,
        is_surrogate: true,
        surrogate_device: Some(site.settings.server_name.clone()),
        grant: site.rules_of(routed).map(|rules| rules.caching.grant.clone()).unwrap_or_default(),
    }
}
