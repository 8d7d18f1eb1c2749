//! An answer that goes out at once: one write of what is held, synchronously, and the end of the story if that took all of it. What it did
//! not take goes on as a transaction.
//!
//! Hits and files of every policy are sent from here. How they are found, and which head they have, is theirs: `instant_hit.rs`,
//! `instant_file.rs`, `vcl_story/program_at_once.rs`, `vcl_story/builtin_hit.rs`.

use std::cell::OnceCell;
use std::io::{self, IoSlice};
use std::rc::Rc;

use message::Method;
use smallvec::SmallVec;
use wire::Event;

use crate::access_log::CacheVerdict;
use crate::body::BodySource;
use crate::clock::Moment;
use crate::connection::Connection;
use crate::core::Core;
use crate::head_form::{HeadForm, TextForm};
use crate::held_body::{Pages, Whole};
use crate::limits::SLICES_MAX;
use crate::outgoing::{Outgoing, OutgoingHead};
use crate::parsed_request::ParsedRequest;
use crate::receive::Verdict;
use crate::records::request_records;
use crate::records::task_records::TaskRecords;
use crate::site::Site;
use crate::transaction::transaction_states::State;
use crate::transaction::{Outcome, Step, log};
use crate::vcl_story::log_notes::LogNotes;

/// How far an answer at once came.
pub(crate) enum InstantOutcome<S> {
    /// All of it is with the kernel.
    Answered { persistent: bool },
    /// Go on here, as a transaction.
    Step(S),
}

/// The state that a transaction goes on in, its first step, and what the log will say.
pub(crate) type BegunStep = (State, Step, Outcome);

impl InstantOutcome<BegunStep> {
    /// By the first step of the story.
    #[inline]
    pub(crate) fn begins(verdict: &Verdict) -> InstantOutcome<BegunStep> {
        InstantOutcome::Step((State::Receive, verdict.clone().into_step(), Outcome::NONE))
    }
}

/// An answer that is about to be sent, whole and as it is held.
pub(crate) struct HitResponse<'a> {
    pub(crate) request: &'a ParsedRequest<'a>,
    /// No body goes out, by the client's method or by the status.
    pub(crate) head_only: bool,
    pub(crate) persistent: bool,
    /// Not before the disks know what the program invalidated: the loop waits for them.
    pub(crate) waits: bool,
    /// What a program has to say to the log.
    pub(crate) notes: Option<&'a Rc<LogNotes>>,
    pub(crate) records: Option<&'a Rc<TaskRecords>>,
}

impl<'a> HitResponse<'a> {
    /// Of which nothing but the method says whether it has a body.
    #[inline]
    pub(crate) fn to(request: &'a ParsedRequest<'a>) -> HitResponse<'a> {
        let head_only = request.received.request.method == Method::Head;
        HitResponse { request, head_only, persistent: request.persistent, waits: false, notes: None, records: None }
    }
}

/// Who is answered at once, in the protocol that it speaks.
pub(crate) trait InstantClient {
    /// How its heads are written.
    type Form: HeadForm;

    /// Sends an answer, whole and as it is held. What the client does not take now goes on as a transaction.
    fn send<T: Whole>(
        &mut self,
        core: &Core,
        site: &Site,
        response: &HitResponse<'_>,
        held: &T,
        head: InstantHead<'_>,
    ) -> InstantOutcome<BegunStep>;
}

/// The head of an answer at once, in the form of its client.
#[derive(Clone, Copy)]
pub(crate) enum InstantHead<'a> {
    /// As it was rendered once, and behind it what differs from answer to answer.
    Stored { tail: &'a [u8] },
    /// Made for this answer.
    Made(&'a [u8]),
}

impl<'a> InstantHead<'a> {
    #[inline]
    pub(crate) fn parts(self, stored: impl FnOnce() -> &'a [u8]) -> [&'a [u8]; 2] {
        match self {
            InstantHead::Stored { tail } => [stored(), tail],
            InstantHead::Made(head) => [head, b""],
        }
    }
}

/// Nobody: to whom no answer goes at once.
pub(crate) enum Nobody {}

impl InstantClient for Nobody {
    type Form = TextForm;

    fn send<T: Whole>(
        &mut self,
        _: &Core,
        _: &Site,
        _: &HitResponse<'_>,
        _: &T,
        _: InstantHead<'_>,
    ) -> InstantOutcome<BegunStep> {
        match *self {}
    }
}

impl InstantClient for Connection {
    type Form = TextForm;

    #[inline]
    fn send<T: Whole>(
        &mut self,
        core: &Core,
        site: &Site,
        response: &HitResponse<'_>,
        held: &T,
        head: InstantHead<'_>,
    ) -> InstantOutcome<BegunStep> {
        send(self, core, site, response, held, head.parts(|| held.rendered()))
    }
}

/// The first write, and if that took all of it, the end of the story.
#[inline]
fn send(
    connection: &mut Connection,
    core: &Core,
    site: &Site,
    response: &HitResponse<'_>,
    held: &impl Whole,
    head: [&[u8]; 2],
) -> InstantOutcome<BegunStep> {
    if response.waits {
        return goes_on(core, response, held, head, 0);
    }
    connection.exchange(Event::AnswerBegun);
    let (written, total) = write(connection, held, head, response.head_only);
    // Whatever stands in the way meets the loop's next write, too, which says what becomes of the answer.
    let sent = written.unwrap_or(0);
    core.counters.bytes_out.add(sent as u64);
    if sent as u64 == total && !connection.socket.has_unsent() {
        connection.exchange(Event::AnswerEnded);
        if response.persistent {
            connection.exchange(Event::Reused);
        }
        end(core, site, response, held, ((head[0].len() + head[1].len()) as u64, total));
        return InstantOutcome::Answered { persistent: response.persistent };
    }
    goes_on(core, response, held, head, sent)
}

/// All of an answer is on its way. What goes on in the loop is counted there.
#[inline]
pub(crate) fn end(
    core: &Core,
    site: &Site,
    response: &HitResponse<'_>,
    held: &impl Whole,
    (head_bytes, total): (u64, u64),
) {
    core.edges.take(State::Deliver, State::Transmit);
    core.edges.take(State::Transmit, State::Log);
    count(held, core);
    let ended = Moment::now();
    log::count_at_once(core, site, response, held, (total - head_bytes, ended));
    if let Some(records) = response.records {
        let version = response.request.received.request.version;
        request_records::sent(records, version, (head_bytes, total - head_bytes), response.persistent);
        request_records::end(records, ended);
    }
    if core.shared.tells_exchanges() {
        log::instant_hit(core, site, response, held, total, ended);
    }
}

#[inline]
fn count<T: Whole>(_: &T, core: &Core) {
    T::count(&core.counters);
}

/// One write of as much as fits into it. Returns also how many bytes the whole answer has.
#[inline]
fn write(
    connection: &mut Connection,
    held: &impl Whole,
    head: [&[u8]; 2],
    head_only: bool,
) -> (io::Result<usize>, u64) {
    let hold = OnceCell::new();
    let mut slices: SmallVec<[IoSlice<'_>; SLICES_MAX]> = SmallVec::new();
    slices.extend(head.map(IoSlice::new));
    let head_len = (head[0].len() + head[1].len()) as u64;
    if head_only {
        return (connection.socket.try_write(&slices), head_len);
    }
    let total = head_len + held.length();
    match held.pages() {
        // The loop reads its bytes, and sends them with the head.
        Some(_) if !connection.socket.takes_pages() => return (Ok(0), total),
        Some(pages) => return (write_pages(connection, &slices, pages, held.length()), total),
        None => {}
    }
    held.slices(&hold, &mut slices);
    let written = connection.socket.try_write(&slices);
    if hold.get().is_some()
        && let Ok(sent) = written
    {
        held.note_sent((sent as u64).saturating_sub(head_len));
    }
    (written, total)
}

/// Head and tail first, then the body as it lies in its file.
fn write_pages(connection: &mut Connection, head: &[IoSlice<'_>], pages: Pages<'_>, length: u64) -> io::Result<usize> {
    let head_len = head.iter().map(|slice| slice.len()).sum();
    let sent = connection.socket.try_write(head)?;
    if sent < head_len {
        return Ok(sent);
    }
    Ok(sent + connection.socket.try_send_pages(pages, 0, length).unwrap_or(0))
}

/// The client took only so many bytes: pin the object and go on in the loop.
#[cold]
pub(crate) fn goes_on<T: Whole>(
    core: &Core,
    response: &HitResponse<'_>,
    held: &T,
    [first, behind]: [&[u8]; 2],
    sent: usize,
) -> InstantOutcome<BegunStep> {
    if T::VERDICT == CacheVerdict::File {
        // The loop counts answers by their class, and files are in none.
        count(held, core);
    }
    let mut head = Vec::new();
    let head_len = first.len() + behind.len();
    if sent < head_len {
        head.extend_from_slice(&first[sent.min(first.len())..]);
        head.extend_from_slice(&behind[sent.saturating_sub(first.len())..]);
    }
    let (head_bytes_sent, from) = (sent.min(head_len) as u64, sent.saturating_sub(head_len) as u64);
    let to = if response.head_only { from } else { held.length() };
    let outgoing = Outgoing {
        head: OutgoingHead::Begun { rest: head, head_bytes_sent, body_bytes_sent: from, left: to - from },
        body: BodySource::Held { held: held.source(), from, to }.into(),
    };
    let outcome = Outcome { status: held.status(), verdict: T::VERDICT, ..Outcome::NONE };
    InstantOutcome::Step((State::Deliver, Step::Transmit(Box::new(outgoing)), outcome))
}
