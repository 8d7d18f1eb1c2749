//! The origin's side of the story: a second loop, `Prepare → Send → Reply → {Refreshed | Fill} → Landed`.
//!
//! A miss runs it in a task of its own, so that its requester's leaving ends nothing; a pass runs it inside its
//! transaction, because it needs the client's bytes. One retry, bounded, and never after a byte of an answer.
//!
//! What is asked, and what comes of the answer, a policy decides: `fetch_policy.rs`.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cache::{Charge, Departure, Failure, Now, Object};
use message::{FieldsView, Method, Request, RequestHead, Response, ResponseHead, TargetForm};
use rules::{Exchange, StoreDefaults};
use wire::{Refusal, RequestBody, ResponseBody};

use crate::clock::Moment;
use crate::downstream::Downstream;
use crate::edges;
use crate::forward::Taken;
use crate::forward::parents::Ways;
use crate::limits::Limits;
use crate::origin::{Origin, OriginConnection};
use crate::policy;
use crate::receive::Client as ClientIdentity;
use crate::records::fetch_records;
use crate::records::task_records::TaskRecords;
use crate::settings::ParentLogin;
use crate::site::{Backend, Site};
use crate::url_variations::Place;
use crate::worker::Core;

mod begin;
pub(crate) mod bereq;
mod beresp;
mod block_read;
pub(crate) mod builtin_steps;
mod failed;
mod fetch_policy;
#[cfg(test)]
mod fetch_test_messages;
pub(crate) mod fill;
mod invalidated;
pub(crate) mod notes;
pub(crate) mod origin_body;
mod prepare;
pub(crate) mod program_answer;
mod program_steps;
mod refreshed;
mod reply;
mod retry;
mod send;
pub(crate) mod settled;
pub(crate) mod slice_fetch;
pub(crate) mod slice_manifest;
pub(crate) mod slice_stream;
mod upload;

pub(crate) use self::begin::{Requester, spawn, spawn_refresh};
pub(crate) use self::failed::{SERVER_ERROR, unconnected};
use self::fetch_policy::{FetchPolicy, FetchVerdict};
pub(crate) use self::fill::store_passed;
use self::notes::FetchNotes;
use self::origin_body::Arriving;
pub(crate) use self::reply::brings_body;
use self::settled::Settled;

/// The states of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchState {
    Prepare,
    Send,
    Reply,
    Retry,
    /// Of a program: vcl_backend_error makes an answer.
    Error,
    Refreshed,
    Fill,
    Landed,
    Failed,
}

const STATES: usize = FetchState::Failed as usize + 1;

/// Which state may follow which.
pub(crate) const FETCH_EDGES: [(FetchState, FetchState); 20] = {
    use FetchState::*;
    [
        (Prepare, Send),
        (Send, Reply),
        // The pooled connection was dead when we wrote, or died before a byte of an answer.
        (Send, Retry),
        (Reply, Retry),
        (Retry, Send),
        // No connection; the client left or sent what is no body.
        (Send, Failed),
        (Reply, Failed),
        // A 304 about what we hold. To one that is not it is asked again, without conditions.
        (Reply, Refreshed),
        (Refreshed, Landed),
        (Reply, Prepare),
        (Reply, Fill),
        (Fill, Landed),
        (Fill, Failed),
        // From here on only where a program says so: an answer of its own in place of one …
        (Prepare, Error),
        (Reply, Error),
        (Failed, Error),
        (Error, Fill),
        // … or another try, or none.
        (Error, Prepare),
        (Error, Failed),
        (Prepare, Failed),
    ]
};

const EDGE_OF: [[u8; STATES]; STATES] = {
    let mut table = [[u8::MAX; STATES]; STATES];
    let mut at = 0;
    while at < FETCH_EDGES.len() {
        table[FETCH_EDGES[at].0 as usize][FETCH_EDGES[at].1 as usize] = at as u8;
        at += 1;
    }
    table
};

/// What the fetch is for; it decides what the origin is asked.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// To be stored: no conditions or ranges of the client's, but our validators for what we hold.
    Store(Option<Arc<Object>>),
    /// Bytes of a body that is kept in slices, of the representation with this validator, if one is known.
    Slice { range: Range<u64>, if_range: Option<Bytes> },
    /// As the client asked.
    Pass,
    /// The same, with Upgrade.
    Upgrade,
    /// What a program pipes without one: the last of its connections on both sides.
    Piped,
    /// The same in place of varnishd: as it comes, and so is the answer.
    Raw,
    /// CONNECT, of a proxy.
    Tunnel,
}

impl Purpose {
    /// What comes is stored, and others get it too.
    pub(crate) fn is_for_many(&self) -> bool {
        matches!(self, Purpose::Store(_) | Purpose::Slice { .. })
    }
}

/// One fetch.
pub(crate) struct Fetch {
    pub(crate) core: Rc<Core>,
    pub(crate) site: Arc<Site>,
    backend: Option<Backend>,
    /// Under a program it is chosen only when that has spoken.
    chosen: Option<Arc<Origin>>,
    /// It is this parent: a proxy, which is asked for the whole URL.
    parent: Option<usize>,
    /// Whom else to ask when it cannot be connected to.
    ways: Ways,
    purpose: Purpose,
    policy: FetchPolicy,
    head: Rc<RequestHead>,
    client: Option<ClientIdentity>,
    body: RequestBody,
    expects_continue: bool,
    state: FetchState,
    retried: bool,
    /// When the request left, for RFC 9111 §4.2.3.
    sent: Moment,
    timeouts: Timeouts,
    /// The client's body, where it was read before: it goes out with the head.
    carried: Option<Bytes>,
    /// The strong entity tag of the origin's answer, where that is large and the origin can be asked for parts of it.
    ranges_tag: Option<Bytes>,
    /// To be told when the request leaves, from when on invalidations are about what comes; by RFC 9111 they are from the start
    /// of the fetch.
    departure: Option<Departure>,
    /// What it costs, in the account of the process.
    _held: Charge,
}

/// How long this fetch waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    pub(crate) connect: Duration,
    pub(crate) first_byte: Duration,
    pub(crate) between_bytes: Duration,
}

impl Timeouts {
    pub(crate) fn of(limits: &Limits) -> Timeouts {
        Timeouts {
            connect: limits.connect_timeout,
            first_byte: limits.first_byte_timeout,
            between_bytes: limits.between_bytes_timeout,
        }
    }
}

/// Who is on the other side while the origin is talked to.
pub(crate) enum Client<'a> {
    /// A pass: body up, interim answers down, and its leaving ends the fetch.
    Attached(Downstream<'a>),
    /// A miss: its requester reads interim answers from the notes, if it is still there.
    Detached(Option<Rc<FetchNotes>>),
}

/// The final head of an answer, and the body that follows.
pub(crate) struct Reply {
    pub(crate) head: ResponseHead,
    pub(crate) framing: ResponseBody,
    pub(crate) body: Arriving,
    pub(crate) arrival: Arrival,
}

/// When the head of an answer arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) received: Now,
    /// RFC 9111 §4.2.3: response_delay.
    pub(crate) delay_ms: u64,
}

impl Arrival {
    /// What `rules` are asked about.
    pub(crate) fn exchange<'a>(
        self,
        request: &'a Request<'a>,
        response: Response<'a>,
        defaults: &'a StoreDefaults,
    ) -> Exchange<'a> {
        let (response_wall_ms, response_delay_ms) = (self.received.wall_ms, self.delay_ms);
        Exchange { request, response, response_wall_ms, response_delay_ms, defaults }
    }
}

/// Why there is no reply.
pub(crate) enum Broken {
    Origin(Failure),
    ClientLeft,
    /// What the client sent as a body is none.
    ClientFault(Refusal),
}

impl Fetch {
    /// The one function through which a fetch changes its state.
    fn enter(&mut self, state: FetchState) {
        let edge = EDGE_OF[self.state as usize][state as usize];
        assert!(edge != u8::MAX, "no fetch goes from {:?} to {state:?}", self.state);
        edges::take(&self.core.edges.fetch, usize::from(edge));
        self.state = state;
    }

    /// If anybody wants them.
    fn records(&self) -> Option<&Rc<TaskRecords>> {
        self.policy.task()?.records.as_ref()
    }

    fn origin(&self) -> &Arc<Origin> {
        self.chosen.as_ref().expect("an origin is chosen before anything is sent")
    }

    /// Asked of a proxy: the origin does not know us, and is told nothing of who asks.
    fn is_forwarded(&self) -> bool {
        matches!(self.head.form, TargetForm::Absolute | TargetForm::Authority)
    }

    /// Where the answer belongs.
    pub(crate) fn place(&self, fields: FieldsView<'_>) -> Place {
        policy::place(&self.core.shared, &self.head.request(), fields)
    }

    fn method(&self) -> Method {
        self.head.method
    }

    pub(crate) fn is_piped(&self) -> bool {
        matches!(self.purpose, Purpose::Piped)
    }

    fn is_upgrade(&self) -> bool {
        matches!(self.purpose, Purpose::Upgrade)
    }

    /// From Prepare to an answer: asks the origin, lets the policy judge what comes, and goes around again where that is what
    /// it says.
    pub(crate) async fn settle(&mut self, client: &mut Client<'_>) -> Result<Box<Settled>, Broken> {
        loop {
            let mut verdict = match self.prepare(client).await {
                Some(verdict) => verdict,
                None => match self.converse(client).await {
                    Ok(reply) => self.judge(reply),
                    Err(broken) => self.judge_broken(client, broken),
                },
            };
            while let FetchVerdict::Settled(settled) = verdict {
                match self.gather(settled, client).await {
                    Ok(settled) => return Ok(settled),
                    Err(broken) => verdict = self.judge_broken(client, broken),
                }
            }
            if let FetchVerdict::Fail(broken) = verdict {
                return Err(self.fail(broken));
            }
            self.note_again();
            self.retried = false;
            self.enter(FetchState::Prepare);
        }
    }

    /// From Prepare to the answer of the origin, for a slice of a body that was judged before.
    pub(crate) async fn ask_for_slice(&mut self) -> Result<Reply, Broken> {
        let client = &mut Client::Detached(None);
        let verdict = match self.prepare(client).await {
            Some(verdict) => verdict,
            None => match self.converse(client).await {
                Ok(reply) => return Ok(reply),
                Err(broken) => self.judge_broken(client, broken),
            },
        };
        match verdict {
            FetchVerdict::Fail(broken) => Err(self.fail(broken)),
            FetchVerdict::Settled(_) | FetchVerdict::Again => unreachable!("of a slice no policy makes an answer"),
        }
    }

    fn fail(&mut self, broken: Broken) -> Broken {
        if self.state != FetchState::Failed {
            self.enter(FetchState::Failed);
        }
        broken
    }

    /// From Send to a final head: sends the request and reads answers until one is final.
    pub(crate) async fn converse(&mut self, client: &mut Client<'_>) -> Result<Reply, Broken> {
        let mut request = self.asked().to_bytes();
        loop {
            self.enter(FetchState::Send);
            let sent = send::run(self, client, &request).await;
            let outcome = match sent {
                Ok(sent) => {
                    self.enter(FetchState::Reply);
                    reply::run(self, client, sent).await
                }
                Err(unsent) => Err(unsent),
            };
            let broken = match outcome {
                Ok(reply) if self.is_refused_by_parent(&reply) => Broken::Origin(failed::login_refused(self.origin())),
                Ok(reply) if self.is_unasked_tunnel(&reply) => Broken::Origin(failed::unasked_tunnel(self.origin())),
                Ok(reply) => return Ok(reply),
                Err(lost) if retry::is_worth_it(&lost, self.retried, self.method()) => {
                    self.enter(FetchState::Retry);
                    self.retried = true;
                    self.core.counters.origin_retries.add(1);
                    continue;
                }
                Err(lost) if lost.unconnected && self.go_another_way() => {
                    self.enter(FetchState::Retry);
                    request = self.asked().to_bytes();
                    continue;
                }
                Err(lost) => lost.broken,
            };
            return Err(self.unanswered(broken));
        }
    }

    /// Notes that no final head came.
    fn unanswered(&mut self, broken: Broken) -> Broken {
        self.enter(FetchState::Failed);
        if let (Some(records), Broken::Origin(failure)) = (self.records(), &broken) {
            fetch_records::failed(records, &self.origin().name, failure);
        }
        broken
    }

    /// A connection of our own, with the head on it.
    pub(crate) async fn open_pipe(&mut self, client: &mut Client<'_>) -> Result<OriginConnection, Broken> {
        let request = self.asked().to_bytes();
        // One from the pool may be dead, and what is piped cannot be sent again.
        self.retried = true;
        self.enter(FetchState::Send);
        match send::run(self, client, &request).await {
            Ok(connection) => Ok(connection),
            Err(lost) => Err(self.unanswered(lost.broken)),
        }
    }

    /// Nothing was sent: somebody else may be asked. False when there is nobody.
    fn go_another_way(&mut self) -> bool {
        if self.ways.is_empty() {
            return false;
        }
        let taken = self.site.forward.take_way(&mut self.ways, &self.head.request(), self.core.now().mono_ms);
        let Ok(Taken { origin, parent }) = taken else { return false };
        self.chosen = Some(origin);
        self.parent = parent;
        true
    }

    /// A 407 of the next proxy is about what we said to it: our client can do nothing about it. Who asks for a tunnel
    /// looks itself.
    fn is_refused_by_parent(&self, reply: &Reply) -> bool {
        self.parent.is_some() && reply.head.status.0 == 407 && self.method() != Method::Connect
    }

    /// A CONNECT that a program passes and does not pipe: what comes behind a 2xx is no body of an answer (RFC 9110 §9.3.6) and
    /// would have no end.
    fn is_unasked_tunnel(&self, reply: &Reply) -> bool {
        matches!(self.purpose, Purpose::Pass | Purpose::Store(_))
            && self.method() == Method::Connect
            && reply.framing == ResponseBody::Tunnel
    }

    /// Name and password for the parent that is asked.
    fn parent_login(&self) -> Option<&ParentLogin> {
        self.site.forward.settings.parents[self.parent?].login.as_ref()
    }

    /// The body of a pass is delivered by its transaction; the fetch's story ends with it.
    pub(crate) fn passed(&mut self) {
        self.enter(FetchState::Fill);
    }

    pub(crate) fn store_defaults(&self) -> StoreDefaults {
        let mut defaults = store_defaults(&self.site);
        if self.is_forwarded() {
            // We work for those who ask here, not for whom they ask.
            defaults.is_surrogate = false;
        }
        defaults
    }
}

/// What the operator decided about storing, in the words of `rules`.
pub(crate) fn store_defaults(site: &Site) -> StoreDefaults {
    let policy = &site.settings.policy;
    StoreDefaults {
        heuristic_percent: u64::from(policy.heuristic_percent),
        heuristic_max_s: policy.heuristic_max.as_secs(),
        honour_client_cache_control: policy.honour_client_cache_control,
        share_set_cookie: policy.share_set_cookie,
        is_surrogate: true,
        surrogate_device: Some(site.settings.server_name.clone()),
    }
}
