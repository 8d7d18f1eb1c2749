//! The story of one request: a loop over steps, a file a step.
//!
//! Receive has happened before: `connection` reads the request and runs receive, lookup, hit and deliver at once
//! when the answer is in the store. Whatever must wait goes on here. A step returns the next one, with what that
//! one needs; the table below says which may follow which.

use std::rc::Rc;
use std::sync::Arc;

use cache::{Charge, Key, Object, Ticket};
use message::{Fields, Method, RequestHead};
use rules::RequestDirectives;
use wire::RequestBody;

use crate::access_log::CacheVerdict;
use crate::clock::Moment;
use crate::disk_read::DiskRead;
use crate::downstream::Downstream;
use crate::edges;
use crate::error_note::ErrorNote;
use crate::field_set::FieldSet;
use crate::outgoing::{End, Outgoing};
use crate::policy::{self, Policy};
use crate::receive::Client;
use crate::site::{Backend, Site};
use crate::static_files::open_file_table::Kept;
use crate::vcl_story::{client_steps, receiving};
use crate::worker::Core;

pub(crate) mod admit;
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
pub(crate) mod miss;
pub(crate) mod opening;
pub(crate) mod pass;
pub(crate) mod pipe;
pub(crate) mod purge;
mod raw_pipe;
pub(crate) mod recalling;
pub(crate) mod restart;
mod slice_probe;
pub(crate) mod slicing;
pub(crate) mod synth;
pub(crate) mod transmit;
mod tunnel;
mod unread_body;
pub(crate) mod wait;

/// The states of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Receive,
    Restart,
    Lookup,
    /// A disk is asked.
    Recall,
    Hit,
    /// What was hit lies in slices: the first is waited for.
    Slicing,
    Wait,
    Miss,
    Pass,
    Pipe,
    Purge,
    Synth,
    /// A file beneath a root is looked for, or the page for an error.
    Files,
    /// Credentials for the forward proxy are being verified.
    Admit,
    /// memcached is asked.
    Memcached,
    Deliver,
    Transmit,
    Log,
}

const STATES: usize = State::Log as usize + 1;

/// Which state may follow which. Anything else is a bug and ends the connection.
pub(crate) const TRANSACTION_EDGES: [(State, State); 74] = {
    use State::*;
    [
        (Receive, Lookup),
        (Receive, Pass),
        (Receive, Pipe),
        (Receive, Purge),
        (Receive, Synth),
        (Receive, Files),
        (Receive, Admit),
        (Admit, Lookup),
        (Admit, Pass),
        (Admit, Pipe),
        (Admit, Purge),
        // Wrong ones; or right ones, and what is asked for is refused.
        (Admit, Synth),
        // The client left.
        (Admit, Log),
        (Files, Deliver),
        // There is none, it may not be shown, or it is a directory that was asked for without its slash.
        (Files, Synth),
        (Receive, Memcached),
        (Memcached, Deliver),
        // A miss, a refusal, or nobody who replies.
        (Memcached, Synth),
        // The same, where an origin stands behind it.
        (Memcached, Pass),
        (Memcached, Log),
        (Lookup, Hit),
        // Somebody fetches it already.
        (Lookup, Wait),
        (Lookup, Miss),
        // A HEAD, or a range far into a body, of what is not stored goes to the origin as it is.
        (Lookup, Pass),
        // only-if-cached, or an origin that failed a moment ago.
        (Lookup, Synth),
        // Memory has nothing of it, and a disk may.
        (Lookup, Recall),
        (Recall, Lookup),
        // It is not what was asked for.
        (Recall, Miss),
        (Recall, Pass),
        (Recall, Synth),
        (Hit, Deliver),
        (Hit, Slicing),
        (Slicing, Deliver),
        // Its body lay on a disk, which has written over it since.
        (Hit, Lookup),
        // The origin has another representation by now.
        (Slicing, Lookup),
        // It fails, or the client takes nothing but what is stored.
        (Slicing, Synth),
        // The client left.
        (Slicing, Log),
        // The fetch runs in a task of its own and its requester follows it like everybody else.
        (Miss, Wait),
        (Wait, Deliver),
        // Freed by an uncacheable answer, or by a Vary that does not fit: ask again.
        (Wait, Lookup),
        // The origin confirmed what was stored, or failed and stale is allowed.
        (Wait, Hit),
        (Wait, Synth),
        // The client left.
        (Wait, Log),
        (Pass, Deliver),
        // An answer that may be stored after all.
        (Pass, Wait),
        // A range far ahead made a manifest.
        (Pass, Hit),
        (Pass, Synth),
        (Pass, Log),
        // The origin did not switch protocols.
        (Pipe, Deliver),
        (Pipe, Synth),
        (Pipe, Log),
        (Purge, Synth),
        (Synth, Deliver),
        // There may be a page for this error.
        (Synth, Files),
        (Deliver, Transmit),
        (Transmit, Log),
        // From here on only where a policy says so. Any of its subroutines may send the request elsewhere …
        (Hit, Pass),
        (Hit, Miss),
        (Hit, Synth),
        (Miss, Pass),
        (Miss, Synth),
        (Wait, Pass),
        (Deliver, Synth),
        // The request's body is read first.
        (Receive, Receive),
        // The client left meanwhile.
        (Receive, Log),
        // … or back to the start.
        (Receive, Restart),
        (Hit, Restart),
        (Miss, Restart),
        (Pass, Restart),
        (Purge, Restart),
        (Deliver, Restart),
        (Synth, Restart),
        (Restart, Receive),
        // Once too often.
        (Restart, Synth),
    ]
};

/// Edge numbers by states, `u8::MAX` where there is no edge.
const EDGE_OF: [[u8; STATES]; STATES] = {
    let mut table = [[u8::MAX; STATES]; STATES];
    let mut at = 0;
    while at < TRANSACTION_EDGES.len() {
        let (from, to) = TRANSACTION_EDGES[at];
        table[from as usize][to as usize] = at as u8;
        at += 1;
    }
    table
};

/// The one function through which a transaction changes its state.
#[inline]
pub(crate) fn take_edge(core: &Core, from: State, to: State) {
    let edge = EDGE_OF[from as usize][to as usize];
    assert!(edge != u8::MAX, "no transaction goes from {from:?} to {to:?}");
    edges::take(&core.edges.transaction, usize::from(edge));
}

/// What comes next, and what it needs.
pub(crate) enum Step {
    /// Once more from the start, under a policy.
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
        file: Kept,
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
    pub(crate) seen: FieldSet,
    pub(crate) body: RequestBody,
    pub(crate) expects_continue: bool,
    /// May the client's connection be used again after this?
    pub(crate) persistent: bool,
    /// The client said that this is its last request on it.
    pub(crate) client_closes: bool,
    pub(crate) client: Client,
    /// Absent for what we answer ourselves, files too.
    pub(crate) backend: Option<Backend>,
    pub(crate) key: Option<Key>,
    pub(crate) directives: RequestDirectives,
    pub(crate) started: Moment,
    pub(crate) outcome: Outcome,
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
    /// What it costs, in the account of the process.
    pub(crate) _held: Charge,
}

/// What the log will say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) status: u16,
    pub(crate) verdict: CacheVerdict,
    pub(crate) why: &'static str,
    pub(crate) body_bytes: u64,
}

impl Outcome {
    pub(crate) const NONE: Outcome = Outcome { status: 0, verdict: CacheVerdict::Synth, why: "", body_bytes: 0 };

    /// What is sent was read from a disk, or is sent from there.
    fn is_hit_of_disk(&self) -> bool {
        matches!(self.verdict, CacheVerdict::Hit | CacheVerdict::Stale) && self.why == hit::FROM_DISK
    }
}

impl Transaction {
    fn enter(&mut self, state: State) {
        take_edge(&self.core, self.state, state);
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
        has_host && (self.head.method == Method::Post || self.body == RequestBody::None)
    }

    /// Does the client expect a head alone? What it asked with counts: a policy may ask the origin otherwise.
    pub(crate) fn wants_head_only(&self) -> bool {
        self.asked().method == Method::Head
    }

    /// The key under which the request is looked up and invalidated.
    pub(crate) fn key(&mut self) -> Key {
        let (core, head) = (&self.core, &self.head);
        *self.key.get_or_insert_with(|| policy::key(&core.shared, &head.request()))
    }
}

/// Runs the transaction from `step` to its end. True when its client may ask again the same way.
pub(crate) async fn run(mut tx: Box<Transaction>, downstream: Downstream<'_>, step: Step) -> bool {
    let (tx, downstream) = (&mut *tx, &mut { downstream });
    let mut step = step;
    loop {
        tx.enter(step.state());
        step = match step {
            Step::Receive => receiving::run(tx, downstream).await,
            Step::Relabel(label) => client_steps::relabel(tx, &label),
            Step::Restart => restart::run(tx),
            Step::Lookup => lookup::ask(tx),
            Step::Recall(recall) => recalling::run(tx, *recall).await,
            Step::Hit(object, why) => hit::run(tx, object, why),
            Step::Slicing(slicing) => slicing::run(tx, downstream, *slicing).await,
            Step::Wait(wait) => wait::run(tx, downstream, *wait).await,
            Step::Miss(ticket) => miss::run(tx, downstream, ticket),
            Step::Pass => pass::run(tx, downstream).await,
            Step::Pipe => pipe::run(tx, downstream).await,
            Step::Purge => purge::run(tx).await,
            Step::Synth(synth) => synth::run(tx, synth),
            Step::Files { root, file } => files::run(tx, root, file).await,
            Step::ErrorPage(page) => error_page::run(tx, *page).await,
            Step::Admit(unverified) => admit::run(tx, downstream, *unverified).await,
            Step::Memcached(route) => memcached::run(tx, downstream, route).await,
            Step::Deliver(answer) => deliver::run(tx, *answer),
            Step::Transmit(outgoing) => {
                if downstream.owes_body() {
                    unread_body::settle(tx, downstream).await;
                }
                tx.core.counters.answered(tx.outcome.verdict);
                tx.core.counters.hits_disk.add(u64::from(tx.outcome.is_hit_of_disk()));
                transmit::run(tx, downstream, *outgoing).await
            }
            Step::Log(end) => return log::run(tx, downstream, end).await,
        };
    }
}
