//! The story of one request: what it has on its way, and the steps that it may take. `story` is the loop over them, and each
//! step is a file.
//!
//! Receive has happened before: `exchange_opening` takes a request that was read and runs receive, lookup, hit and deliver at once
//! when the answer is in the store. Under a program it happens in `vcl_story/program_request.rs`, or as `Step::Receive` where the program
//! cannot be run at once. Whatever must wait goes on here. A step returns the next one, with what that
//! one needs; the table in `transaction_states` says which may follow which.

use std::rc::Rc;
use std::sync::Arc;

use cache::{Charge, Key, Object, Ticket};
use message::{Fields, Method, RequestHead};
use rules::RequestDirectives;
use wire::RequestBody;

use crate::access_log::CacheVerdict;
use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::core::Core;
use crate::disk_read::DiskRead;
use crate::downstream::Downstream;
use crate::error_note::ErrorNote;
use crate::events::origin_try::OriginTry;
use crate::field_set::FieldSet;
use crate::fleet::asking_node::AskingNode;
use crate::included::IncludedClient;
use crate::outgoing::Outgoing;
use crate::page_budget::PlaceInPage;
use crate::policy::{self, Policy};
use crate::reason::Reason;
use crate::route_rules::under_way::Counted;
use crate::send_outcome::End;
use crate::site::{Routed, Site};
use crate::static_files::open_file_table::KnownFile;
use crate::static_files::script_path::ScriptPath;
use crate::tls_facts::TlsFacts;
use crate::traces::exchange_trace::ExchangeTrace;
use crate::transaction::transaction_states::State;
use crate::transaction::why_forwarded::Forwarded;

pub(crate) mod admit;
mod admitted;
pub(crate) mod assembled_answer;
pub(crate) mod deliver;
pub(crate) mod error_page;
pub(crate) mod error_text;
pub(crate) mod files;
pub(crate) mod hit;
pub(crate) mod log;
pub(crate) mod lookup;
pub(crate) mod memcached;
mod memcached_chunks;
mod memcached_value;
mod mirror;
pub(crate) mod miss;
pub(crate) mod opening;
mod part_receiving;
pub(crate) mod pass;
pub(crate) mod pipe;
pub(crate) mod purge;
mod raw_pipe;
pub(crate) mod recalling;
mod requesting;
pub(crate) mod restart;
mod slice_probe;
pub(crate) mod slicing;
pub(crate) mod story;
pub(crate) mod synth;
pub(crate) mod synthesis;
pub(crate) mod transaction_states;
pub(crate) mod transmit;
mod tunnel;
mod unread_body;
pub(crate) mod wait;
pub(crate) mod why_forwarded;

/// Begins the story of what is included in a page, in a task of its own. Its loop is not known to the steps.
pub(crate) type BeginIncluded = fn(Box<Transaction>, IncludedClient, Step);

/// What comes next, and what it needs.
pub(crate) enum Step {
    /// Once more from the start, under a program.
    Receive,
    /// The same under the program of a label.
    Relabel(Box<str>),
    Restart,
    Lookup,
    Recall(Box<recalling::Recall>),
    Hit(Arc<Object>, hit::Why),
    Slicing(Box<slicing::Slicing>),
    Wait(Box<wait::Wait>),
    Miss(Ticket),
    Pass,
    Pipe,
    Purge,
    Synth(synth::Synth),
    Files {
        root: usize,
        file: KnownFile,
        /// What a script answers may be stored.
        is_lookup: bool,
    },
    ErrorPage(Box<error_page::ErrorPage>),
    Admit(Box<admit::Unverified>),
    /// By this route.
    Memcached(usize),
    Deliver(Box<deliver::Answer>),
    Transmit(Box<Outgoing>),
    Log(End),
}

impl Step {
    pub(crate) fn state(&self) -> State {
        match self {
            Step::Receive | Step::Relabel(_) => State::Receive,
            Step::Restart => State::Restart,
            Step::Lookup => State::Lookup,
            Step::Recall(_) => State::Recall,
            Step::Hit(..) => State::Hit,
            Step::Slicing(_) => State::Slicing,
            Step::Wait(_) => State::Wait,
            Step::Miss(_) => State::Miss,
            Step::Pass => State::Pass,
            Step::Pipe => State::Pipe,
            Step::Purge => State::Purge,
            Step::Synth(_) => State::Synth,
            Step::Files { .. } | Step::ErrorPage(_) => State::Files,
            Step::Admit(_) => State::Admit,
            Step::Memcached(_) => State::Memcached,
            Step::Deliver(_) => State::Deliver,
            Step::Transmit(_) => State::Transmit,
            Step::Log(_) => State::Log,
        }
    }
}

impl Step {
    /// The client left before its answer was over.
    pub(crate) fn client_left(downstream: &mut Downstream<'_>) -> Step {
        downstream.cut();
        Step::Log(End::ClientLeft)
    }
}

/// A request on its way, once it has to wait for something.
pub(crate) struct Transaction {
    pub(crate) core: Rc<Core>,
    pub(crate) site: Arc<Site>,
    pub(crate) policy: Policy,
    pub(crate) head: Rc<RequestHead>,
    /// As its client sent it, where its route has made another of it, and that matters: a service is asked about this, and the requests for the
    /// parts of a page are made of it.
    pub(crate) came: Option<Rc<RequestHead>>,
    /// The query as its client sent it, where its route has cut it: for the access log.
    pub(crate) query_cut: Option<Box<[u8]>>,
    pub(crate) seen: FieldSet,
    pub(crate) body: RequestBody,
    pub(crate) expects_continue: bool,
    /// May the client's connection be used again after this?
    pub(crate) persistent: bool,
    /// The client said that this is its last request on it.
    pub(crate) client_closes: bool,
    pub(crate) client: ClientIdentity,
    /// Who has shown a password, or of whom a service has said who it is.
    pub(crate) user: Option<Box<[u8]>>,
    /// Where it came over TLS of ours.
    pub(crate) tls: Option<Arc<TlsFacts>>,
    /// Its place in a trace, or that of the page that includes it, with `[traces]`.
    pub(crate) trace: Option<Rc<ExchangeTrace>>,
    /// Absent for what we answer ourselves, files too.
    pub(crate) routed: Routed,
    /// Of a root, by whom the origin is to answer.
    pub(crate) script: Option<Arc<ScriptPath>>,
    pub(crate) key: Option<Key>,
    pub(crate) directives: RequestDirectives,
    pub(crate) started: Moment,
    /// When its answer began to go out.
    pub(crate) answer_began: Option<Moment>,
    pub(crate) outcome: Outcome,
    /// Whom its fetches have asked, while somebody reads along.
    pub(crate) tries: Vec<OriginTry>,
    /// What the log says of an error of ours.
    pub(crate) error_note: Option<Box<ErrorNote>>,
    pub(crate) state: State,
    /// Times that an answer somebody else waited for could not be shared with us.
    pub(crate) asked_again_count: u32,
    /// Was a disk asked already, and did it have what was looked for?
    pub(crate) recalled: Option<bool>,
    /// The body of what was hit, if it lies on a disk.
    pub(crate) leased: Option<DiskRead>,
    /// What of a 304 that confirmed its answer is for this request alone.
    pub(crate) own_fields: Fields,
    /// Counts of its client's requests, and of its route's, that it is one of.
    pub(crate) counted: Vec<Counted>,
    /// Where its client is another node of the fleet.
    pub(crate) node: Option<Box<AskingNode>>,
    /// Why it is answered as it is, where its client may know.
    pub(crate) explained: Option<Box<str>>,
    /// Where it stands, if a page includes it; and what a page shares with its parts.
    pub(crate) place_in_page: PlaceInPage,
    /// What it costs, in the account of the process.
    pub(crate) _held: Charge,
    pub(crate) _counted: ActiveRequest,
}

/// Counts a request as long as it is worked on.
pub(crate) struct ActiveRequest(Rc<Core>);

impl ActiveRequest {
    fn begin(core: &Rc<Core>) -> ActiveRequest {
        core.counters.requests_active.add(1);
        ActiveRequest(Rc::clone(core))
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.counters.requests_active.sub(1);
    }
}

/// What has become of the request, for the log, Cache-Status and the counters. `why` is a token that `deliver` and `log` compare.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) status: u16,
    pub(crate) verdict: CacheVerdict,
    pub(crate) why: &'static str,
    /// Why an origin is asked, where one is.
    pub(crate) forwarded: Forwarded,
    pub(crate) body_bytes: u64,
}

impl Outcome {
    pub(crate) const NONE: Outcome =
        Outcome { status: 0, verdict: CacheVerdict::Synth, why: "", forwarded: Forwarded::Nothing, body_bytes: 0 };

    /// Why an origin was asked for it, if one was: the word of RFC 9211 §2.2.
    pub(crate) fn why_forwarded(&self) -> Option<&'static str> {
        match self.verdict {
            CacheVerdict::Miss | CacheVerdict::Revalidated | CacheVerdict::Coalesced => Some(self.forwarded.word()),
            CacheVerdict::Pass if self.why == Reason::Head.token() => Some(self.forwarded.word()),
            CacheVerdict::Pass if self.why == Reason::Method.token() => Some("method"),
            CacheVerdict::Pass => Some("bypass"),
            _ => None,
        }
    }

    /// What is sent was read from a disk, or is sent from there.
    fn is_hit_of_disk(&self) -> bool {
        matches!(self.verdict, CacheVerdict::Hit | CacheVerdict::Stale) && self.why == hit::FROM_DISK
    }
}

impl Transaction {
    pub(crate) fn enter(&mut self, state: State) {
        self.core.edges.take(self.state, state);
        self.state = state;
    }

    /// Was a disk asked, and is it not to be asked again? What it had may have had to make room before it was looked up in memory:
    /// then it is brought again, so often as somebody else's answers are waited for.
    pub(crate) fn has_recalled(&self) -> bool {
        self.recalled.is_some_and(|found| !found || self.asked_again_count > lookup::ASKED_AGAIN_MAX)
    }

    /// May the answer be stored, as far as the request goes?
    pub(crate) fn is_lookup(&self) -> bool {
        let has_host = !self.head.request().authority.host.is_empty();
        has_host && (self.head.method == Method::Post || !self.body.follows())
    }

    /// Does the client expect a head alone? What it asked with counts: a program may ask the origin otherwise.
    pub(crate) fn wants_head_only(&self) -> bool {
        self.asked().method == Method::Head
    }

    /// The request as its client sent it.
    pub(crate) fn as_it_came(&self) -> &Rc<RequestHead> {
        self.came.as_ref().unwrap_or(&self.head)
    }

    /// The key under which the request is looked up and invalidated.
    pub(crate) fn key(&mut self) -> Key {
        let (core, head) = (&self.core, &self.head);
        *self.key.get_or_insert_with(|| policy::key(&core.shared, &head.request()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_served_from_a_disk_is_a_hit_of_it() {
        let is_hit = |verdict, why| Outcome { verdict, why, ..Outcome::NONE }.is_hit_of_disk();
        assert!(is_hit(CacheVerdict::Hit, hit::FROM_DISK) && is_hit(CacheVerdict::Stale, hit::FROM_DISK));
        assert!(!is_hit(CacheVerdict::Hit, "") && !is_hit(CacheVerdict::Coalesced, hit::FROM_DISK));
    }
}
