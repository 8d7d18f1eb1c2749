//! The fast way through the story: lookup, hit, deliver and the first write in one synchronous run over the
//! borrowed request head, by code of its own that passes the same states. Nothing is allocated or awaited, and a hit from the core's own table touches no lock and
//! no shared reference count. Whatever does not fit goes on as a transaction, with the same steps.

use std::cell::OnceCell;
use std::hint::black_box;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::sync::Arc;

use cache::{Key, Now, Object};
use message::{Method, Request};
use rules::Freshness;
use smallvec::SmallVec;
use wire::{Event, Persistence, ReceivedRequest};

use crate::access_log::CacheVerdict;
use crate::answer_plan::{self, AnswerPlan, PlanRules, Representation};
use crate::body::BodySource;
use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::connection::Connection;
use crate::core::Core;
use crate::field_set::CONDITIONAL;
use crate::held_body::{Pages, Whole};
use crate::limits::SLICES_MAX;
use crate::outgoing::{Outgoing, OutgoingHead};
use crate::policy;
use crate::receive::Received;
use crate::records::request_records;
use crate::records::task_records::TaskRecords;
use crate::site::Site;
use crate::stored_head;
use crate::transaction::lookup::Question;
use crate::transaction::transaction_states::State;
use crate::transaction::{Outcome, Step, hit, log, lookup};
use crate::vcl_story::log_notes::LogNotes;

/// So much of a head and of a body is asked for ahead; the CPU itself goes on from there.
const AHEAD_BYTES: usize = 256;
const CACHE_LINE_BYTES: usize = 64;

/// A request that has been received and not yet copied.
pub(crate) struct Visit<'a> {
    pub(crate) received: &'a ReceivedRequest<'a>,
    pub(crate) found: &'a Received,
    pub(crate) persistent: bool,
    pub(crate) moment: Moment,
}

impl<'a> Visit<'a> {
    /// Its answer, of which nothing but the method says whether it has a body.
    #[inline]
    pub(crate) fn shot(&self) -> Shot<'a> {
        let request = &self.received.request;
        Shot {
            request,
            head_only: request.method == Method::Head,
            persistent: self.persistent,
            client: self.found.client,
            moment: self.moment,
            notes: None,
            records: None,
        }
    }
}

/// How far the run came.
pub(crate) enum Instant {
    /// The whole answer is with the kernel.
    Answered,
    /// The client is gone.
    Left,
    /// Go on here, as a transaction that is in this state.
    Step(State, Step, Outcome),
}

/// Looks the request up and answers it if that can be done at once. The transaction is in state Lookup.
#[inline]
pub(crate) fn run(
    connection: &mut Connection,
    core: &Rc<Core>,
    site: &Arc<Site>,
    visit: &Visit<'_>,
    key: Key,
) -> Instant {
    let request = &visit.received.request;
    let directives = policy::directives(&site.settings.policy, request, visit.found.seen);
    let now = core.clock().at(visit.moment);
    let mut hot = core.hot.borrow_mut();
    if let Some(object) = hot.get(key, request)
        && object.freshness(now, &directives) == Freshness::Fresh
    {
        ask_ahead(object);
        return answer(connection, core, site, visit, object, now);
    }
    let question = Question {
        key,
        request,
        seen: visit.found.seen,
        directives: &directives,
        backend: visit.found.backend,
        alone: false,
        has_recalled: false,
    };
    match lookup::find(core, site, &question, now) {
        // Borrowed in the loop: it is large.
        lookup::Found::Fresh(object) if object.body().on_disk().is_some() => {
            Instant::Step(State::Lookup, Step::Hit(object, hit::Why::Fresh), Outcome::NONE)
        }
        lookup::Found::Fresh(object) => {
            hot.remember(key, &object);
            drop(hot);
            answer(connection, core, site, visit, &object, now)
        }
        lookup::Found::Step(step, outcome) => Instant::Step(State::Lookup, step, outcome),
    }
}

/// Begins to read what the kernel is about to copy, so that both misses of the CPU's cache are under way while the end
/// of the head is written.
#[inline]
fn ask_ahead(object: &Arc<Object>) {
    for bytes in [object.rendered(), object.body().behind_head()] {
        for at in (0..AHEAD_BYTES).step_by(CACHE_LINE_BYTES) {
            black_box(bytes.get(at).copied());
        }
    }
}

/// Hit, deliver and the first write.
#[inline]
fn answer(
    connection: &mut Connection,
    core: &Core,
    site: &Site,
    visit: &Visit<'_>,
    object: &Arc<Object>,
    now: Now,
) -> Instant {
    let request = &visit.received.request;
    if !is_sent_whole(visit, object) {
        // Several pieces, or a head that is made anew: no hurry.
        return Instant::Step(State::Lookup, Step::Hit(Arc::clone(object), hit::Why::Fresh), Outcome::NONE);
    }
    core.edges.take(State::Lookup, State::Hit);
    core.edges.take(State::Hit, State::Deliver);
    object.touch(now);
    let mut tail = core.tail.borrow_mut();
    tail.clear();
    stored_head::write_tail(&mut tail, site, object, now, Persistence::of(visit.persistent, request.version));
    let shot = visit.shot();
    let head = [object.rendered(), &tail];
    send(connection, core, site, &shot, object, head)
}

/// Does the whole of it go out, or its head alone, as it was rendered?
#[inline]
fn is_sent_whole(visit: &Visit<'_>, object: &Object) -> bool {
    if !object.has_whole_body() {
        return false;
    }
    let (request, seen) = (&visit.received.request, visit.found.seen);
    if !seen.has_any(CONDITIONAL) {
        return true;
    }
    let (facts, head_only) = (object.facts(), request.method == Method::Head);
    let plan = answer_plan::plan(request, seen, head_only, Representation::stored(object, &facts), PlanRules::Rfc);
    matches!(plan, AnswerPlan::Whole | AnswerPlan::HeadOnly)
}

/// An answer that is about to be sent, whole and as it is held.
pub(crate) struct Shot<'a> {
    pub(crate) request: &'a Request<'a>,
    /// No body goes out, by the client's method or by the status.
    pub(crate) head_only: bool,
    pub(crate) persistent: bool,
    pub(crate) client: ClientIdentity,
    pub(crate) moment: Moment,
    /// What a policy has to say to the log.
    pub(crate) notes: Option<&'a Rc<LogNotes>>,
    pub(crate) records: Option<&'a Rc<TaskRecords>>,
}

/// The first write, and if that took all of it, the end of the story.
#[inline]
pub(crate) fn send(
    connection: &mut Connection,
    core: &Core,
    site: &Site,
    shot: &Shot<'_>,
    held: &impl Whole,
    head: [&[u8]; 2],
) -> Instant {
    connection.exchange(Event::AnswerBegun);
    let (written, total) = write(connection, held, head, shot.head_only);
    let sent = match written {
        Ok(sent) => sent,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(_) => return Instant::Left,
    };
    core.counters.bytes_out.add(sent as u64);
    if sent as u64 == total {
        core.edges.take(State::Deliver, State::Transmit);
        core.edges.take(State::Transmit, State::Log);
        connection.exchange(Event::AnswerEnded);
        if shot.persistent {
            connection.exchange(Event::Reused);
        }
        // What goes on in the loop is counted there.
        count(held, core);
        let ended = Moment::now();
        core.counters.latency_hit.record(shot.moment.micros_until(ended));
        if let Some(records) = shot.records {
            let head_out = (head[0].len() + head[1].len()) as u64;
            request_records::sent(records, head_out, total - head_out, shot.persistent);
            request_records::end(records, ended);
        }
        if core.shared.logs() {
            log::instant_hit(core, site, shot, held, total, ended);
        }
        return Instant::Answered;
    }
    if is_file(held) {
        // The loop counts answers by their class, and files are in none.
        count(held, core);
    }
    rest_of(held, head, sent, shot)
}

fn is_file<T: Whole>(_: &T) -> bool {
    T::VERDICT == CacheVerdict::File
}

/// The same, all of it in the loop.
#[cold]
pub(crate) fn send_later<T: Whole>(shot: &Shot<'_>, held: &T, head: [&[u8]; 2]) -> Instant {
    rest_of(held, head, 0, shot)
}

#[inline]
fn count<T: Whole>(_: &T, core: &Core) {
    T::count(&core.counters);
}

/// One write of as much as fits into it. Returns also how many bytes the whole answer has.
#[inline]
fn write(connection: &Connection, held: &impl Whole, head: [&[u8]; 2], head_only: bool) -> (io::Result<usize>, u64) {
    let hold = OnceCell::new();
    let mut slices: SmallVec<[IoSlice<'_>; SLICES_MAX]> = SmallVec::new();
    slices.extend(head.map(IoSlice::new));
    let head_len = (head[0].len() + head[1].len()) as u64;
    if head_only {
        return (connection.wire.try_write(&slices), head_len);
    }
    let total = head_len + held.length();
    if let Some(pages) = held.pages() {
        return (write_pages(connection, &slices, pages, held.length()), total);
    }
    held.slices(&hold, &mut slices);
    let written = connection.wire.try_write(&slices);
    if hold.get().is_some()
        && let Ok(sent) = written
    {
        held.note_sent((sent as u64).saturating_sub(head_len));
    }
    (written, total)
}

/// Head and tail first, then the body as it lies in its file.
fn write_pages(connection: &Connection, head: &[IoSlice<'_>], pages: Pages<'_>, length: u64) -> io::Result<usize> {
    let head_len = head.iter().map(|slice| slice.len()).sum();
    let sent = connection.wire.try_write(head)?;
    if sent < head_len {
        return Ok(sent);
    }
    match connection.wire.try_send_pages(pages, 0, length) {
        Ok(of_body) => Ok(sent + of_body),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(sent),
        Err(error) => Err(error),
    }
}

/// The socket took only a part: pin the object and go on in the loop.
#[cold]
fn rest_of<T: Whole>(held: &T, [rendered, tail]: [&[u8]; 2], sent: usize, shot: &Shot<'_>) -> Instant {
    let mut head = Vec::new();
    let head_len = rendered.len() + tail.len();
    if sent < head_len {
        head.extend_from_slice(&rendered[sent.min(rendered.len())..]);
        head.extend_from_slice(&tail[sent.saturating_sub(rendered.len())..]);
    }
    let from = sent.saturating_sub(head_len) as u64;
    let to = if shot.head_only { from } else { held.length() };
    let outgoing = Outgoing {
        head: OutgoingHead::Begun { rest: head, body_bytes_sent: from, left: to - from },
        body: BodySource::Held { held: held.source(), from, to }.into(),
    };
    let outcome = Outcome { status: held.status(), verdict: T::VERDICT, ..Outcome::NONE };
    Instant::Step(State::Deliver, Step::Transmit(Box::new(outgoing)), outcome)
}
