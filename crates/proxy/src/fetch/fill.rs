//! Fill: the fetch of a miss, from its ticket to its landing. Describes the head to all who wait, pours the body in,
//! and knows when nobody wants it any more.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use cache::{Description, Draft, Failure, Now, Part, StoreAs, Ticket, WholeHead};
use message::{FieldName, ResponseHead, Status};
use rules::freshness::{OriginFailure as Kind, may_serve_on_error};
use rules::storing::{Withholding, may_store, may_store_part};
use rules::{Exchange, Facts, RequestDirectives, Vary, WhyNotStored, credentials};
use wire::{HopByHop, ResponseBody};

use crate::cache_groups;
use crate::fetch::notes::FetchNotes;
use crate::fetch::origin_body::{Arriving, OriginBody, OriginPiece};
use crate::fetch::slice_fetch;
use crate::fetch::slice_stream::SliceStream;
use crate::fetch::{Broken, Client, Fetch, FetchState, Purpose, Reply, failed, refreshed, slice_manifest};
use crate::limits::POURED_BYTES_MAX;
use crate::stored_head;
use crate::url_variations::Place;

/// The whole fetch of a miss. `notes` are absent for a refresh in the background.
pub(crate) async fn run(mut fetch: Fetch, ticket: Ticket, notes: Option<Rc<FetchNotes>>) {
    let mut ticket = ticket;
    let mut client = Client::Detached(notes.clone());
    loop {
        let Some((asked, kept)) = converse_while_wanted(&mut fetch, &mut client, ticket, notes.is_some()).await else {
            return fetch.enter(FetchState::Failed);
        };
        ticket = kept;
        let reply = match asked {
            Ok(reply) => reply,
            Err(Broken::Origin(failure)) => return ticket.fail(failure, fetch.core.now()),
            // A detached fetch has no client that could leave or fail.
            Err(Broken::ClientLeft | Broken::ClientFault(_)) => return drop(ticket),
        };
        if reply.head.status != Status::NOT_MODIFIED {
            return store(fetch, ticket, reply, notes).await;
        }
        match refreshed::run(&mut fetch, ticket, reply, notes.as_deref()) {
            None => return,
            Some(again) => ticket = again,
        }
    }
}

/// Nothing is known yet of how much will come, so a fetch whose last reader leaves before its head is given up; what is
/// fetched for nobody in particular goes on. `None`: the ticket is given up. Under a policy every fetch goes on to its head,
/// as Varnish's does (`fill_by_policy.rs`).
async fn converse_while_wanted(
    fetch: &mut Fetch,
    client: &mut Client<'_>,
    ticket: Ticket,
    gives_up: bool,
) -> Option<(Result<Reply, Broken>, Ticket)> {
    let mut conversing = pin!(fetch.converse(client));
    let mut kept = Some(ticket);
    let reply = poll_fn(|cx| {
        if let Poll::Ready(reply) = conversing.as_mut().poll(cx) {
            return Poll::Ready(Some(reply));
        }
        while let Some(mut ticket) = kept.take() {
            if !gives_up || ticket.poll_abandoned(cx).is_pending() {
                kept = Some(ticket);
                return Poll::Pending;
            }
            // Somebody may have come in this very moment.
            kept = ticket.abandon(unwanted("nobody waits for this answer any more"));
        }
        Poll::Ready(None)
    })
    .await?;
    Some((reply, kept?))
}

fn unwanted(text: &str) -> Failure {
    Failure { status: 502, token: "fetch-unwanted", text: text.into(), remember_ms: 0 }
}

/// A pass whose answer turned out to be storable goes on in a task of its own.
pub(crate) fn store_passed(fetch: Fetch, ticket: Ticket, reply: Reply) {
    tokio::task::spawn_local(store(fetch, ticket, reply, None));
}

/// A new response.
async fn store(mut fetch: Fetch, ticket: Ticket, reply: Reply, notes: Option<Rc<FetchNotes>>) {
    fetch.enter(FetchState::Fill);
    if let Some(failure) = in_whose_place_stale_serves(&fetch, &ticket, &reply) {
        fetch.enter(FetchState::Failed);
        ticket.fail(failure, reply.received);
        return reply.body.into_body(&fetch).finish();
    }
    let length = match reply.framing {
        ResponseBody::Length(length) => Some(length),
        ResponseBody::None => Some(0),
        _ => None,
    };
    let shared_head = Arc::new(shared_head(&fetch, &reply.head));
    let place = fetch.place(&reply);
    let mut is_personal = false;
    let storable = match judge(&fetch, &reply, &shared_head) {
        Ok(store_as) => {
            let elsewhere = place.elsewhere(ticket.flight().key());
            Some(StoreAs { elsewhere, ..store_as })
        }
        Err(why) => {
            if let Some(notes) = &notes {
                notes.note_not_stored(why.token());
            }
            is_personal = fetch.is_personal(why);
            None
        }
    };
    let storable = match storable {
        Some(store_as) => match slice_manifest::of_whole(&fetch, &reply, &store_as, ticket.flight().key(), length) {
            Some(sliced) => {
                let what = (StoreAs { sliced: Some(sliced), ..store_as }, shared_head);
                return store_in_slices(fetch, ticket, what, reply.body, reply.received).await;
            }
            None => Some(store_as),
        },
        None => None,
    };
    let is_part = storable.as_ref().is_some_and(|store_as| store_as.partial.is_some());
    let draft = ticket.describe(Description {
        head: Arc::new(leaders_head(&reply.head)),
        shared_head,
        length,
        storable,
        uncacheable_ms: fetch.site.settings.policy.uncacheable.as_millis() as u64,
        is_personal,
        supersedes: true,
        mark: None,
        now: reply.received,
    });
    let body = reply.body.into_body(&fetch);
    // The rest of a part that its requester does not want any more is nobody's wish.
    let course = Course { length, gives_up: notes.is_some() || is_part, place: Some(place) };
    let ended = pour(&fetch, draft, body, course).await;
    fetch.enter(if ended { FetchState::Landed } else { FetchState::Failed });
}

/// A new response that is too large to be kept in one piece.
pub(crate) async fn store_in_slices(
    mut fetch: Fetch,
    ticket: Ticket,
    (store_as, head): (StoreAs, Arc<ResponseHead>),
    arriving: Arriving,
    received: Now,
) {
    let count = store_as.sliced.map_or(0, |sliced| sliced.count());
    let begun = slice_manifest::begin(&fetch, ticket, (store_as, head), (0, count), received);
    let stream = begun.and_then(|(_, stream)| stream);
    let is_whole = match stream {
        Some(stream) => stream.pour(&fetch, arriving.into_body(&fetch)).await,
        None => false,
    };
    fetch.enter(if is_whole { FetchState::Landed } else { FetchState::Failed });
}

/// The same for the slice that an answer to a range brought.
pub(crate) fn spawn_slices(mut fetch: Fetch, reply: Reply, stream: SliceStream) {
    tokio::task::spawn_local(async move {
        fetch.enter(FetchState::Fill);
        let body = reply.body.into_body(&fetch);
        let is_whole = stream.pour(&fetch, body).await;
        fetch.enter(if is_whole { FetchState::Landed } else { FetchState::Failed });
    });
}

/// RFC 5861 §4: an error answer is as bad as none where something stale may be served. What is beyond 599 is no status and
/// counts as one (RFC 9110 §15).
fn in_whose_place_stale_serves(fetch: &Fetch, ticket: &Ticket, reply: &Reply) -> Option<Failure> {
    if !matches!(reply.head.status.0, 500 | 502 | 503 | 504 | 600..) {
        return None;
    }
    let stale = ticket.stale().filter(|stale| stale.is_live())?;
    let directives = RequestDirectives::parse(fetch.head.request().fields);
    let resident_ms = stale.resident_ms(reply.received);
    may_serve_on_error(&stale.facts(), resident_ms, &directives, Kind::ServerError)
        .then(|| failed::server_error(fetch.origin(), reply.head.status.0))
}

impl Fetch {
    /// What `rules` make of the exchange, and which part of the representation it brings, if not the whole.
    fn facts(&self, reply: &Reply) -> Result<(Facts, Option<Part>), WhyNotStored> {
        let defaults = self.store_defaults();
        let exchange = Exchange {
            request: &self.head.request(),
            response: reply.head.response(),
            response_wall_ms: reply.received.wall_ms,
            response_delay_ms: reply.delay_ms,
            defaults: &defaults,
        };
        // Only who asked for a range: a 206 that nobody asked for is none of ours.
        let asks_for_range = matches!(self.purpose, Purpose::Pass | Purpose::Slice { .. });
        if reply.head.status != Status::PARTIAL_CONTENT || !asks_for_range {
            return Ok((may_store(&exchange)?, None));
        }
        let (facts, said) = may_store_part(&exchange)?;
        // A body that is not as long as its Content-Range says is nobody's part (J13), but the client's to judge.
        if reply.framing != ResponseBody::Length(said.length()) {
            return Err(WhyNotStored::ContentRange);
        }
        let part = Part { from: said.range.start, to: said.range.end, complete: said.complete_length };
        Ok((facts, Some(part)))
    }

    /// Is a response not stored for the credentials that it was asked for with? Those to others may be.
    pub(crate) fn is_personal(&self, why: WhyNotStored) -> bool {
        why.is_about_credentials() && credentials::of_request(self.head.request().fields).is_some()
    }

    pub(crate) fn why_not_stored(&self, reply: &Reply) -> Option<WhyNotStored> {
        self.facts(reply).err()
    }
}

/// May it be stored, and as what? The reason if not.
pub(crate) fn judge(fetch: &Fetch, reply: &Reply, shared_head: &ResponseHead) -> Result<StoreAs, WhyNotStored> {
    let (facts, partial) = fetch.facts(reply)?;
    let vary = match Vary::of(reply.head.fields.view()) {
        Vary::Fields(spec) => Some(spec),
        Vary::None => None,
        Vary::Any => return Err(WhyNotStored::VaryAny),
        Vary::TooMany => return Err(WhyNotStored::VaryTooMany),
    };
    let rendered = stored_head::render(shared_head, &fetch.site);
    let whole = partial.map(|_| whole_head(fetch, shared_head));
    let cache = &fetch.core.shared.cache;
    let groups = cache_groups::of_response(cache, &fetch.head.request(), reply.head.fields.view());
    let (sliced, elsewhere, tags) = (None, None, None);
    Ok(StoreAs { facts, lifetimes: None, vary, rendered, partial, whole, sliced, elsewhere, groups, tags })
}

/// The head of a 206 as that of the whole, for when its parts are all there (RFC 9111 §3.4).
fn whole_head(fetch: &Fetch, part: &ResponseHead) -> WholeHead {
    let mut head =
        ResponseHead { reason: None, status: Status::OK, version: part.version, fields: part.fields.clone() };
    head.fields.remove(FieldName::ContentRange);
    head.fields.shrink();
    let rendered = stored_head::render(&head, &fetch.site);
    WholeHead { head: Arc::new(head), rendered }
}

/// What is stored, and what everybody but the first requester gets: no Set-Cookie (RFC 9111 §7.3), no field of the
/// connection, no Age.
pub(crate) fn shared_head(fetch: &Fetch, head: &ResponseHead) -> ResponseHead {
    let mut fields = Withholding::stored(head.fields.view(), &fetch.store_defaults());
    fields.remove(FieldName::ContentLength);
    fields.shrink();
    ResponseHead { status: head.status, version: head.version, reason: None, fields }
}

/// What the first requester gets: all but what belongs to the connection.
fn leaders_head(head: &ResponseHead) -> ResponseHead {
    let fields = HopByHop::end_to_end(head.fields.view());
    ResponseHead { status: head.status, version: head.version, reason: None, fields }
}

/// What is known of a body beforehand.
pub(crate) struct Course {
    pub(crate) length: Option<u64>,
    /// It is nobody's wish when its readers have left.
    pub(crate) gives_up: bool,
    /// Under a policy the key is the program's, and there is none.
    pub(crate) place: Option<Place>,
}

/// Moves the body into the draft. True when it landed whole.
pub(crate) async fn pour(fetch: &Fetch, mut draft: Draft, mut body: OriginBody, course: Course) -> bool {
    let mut poured = 0;
    loop {
        if poured >= POURED_BYTES_MAX {
            // An origin that is near has always more: who is asked for what is here already comes in between.
            tokio::task::yield_now().await;
            poured = 0;
        }
        wait_for_room(fetch, &mut draft).await;
        let may_give_up = (course.gives_up || !draft.is_kept()) && !is_worth_finishing(fetch, &draft, course.length);
        let piece = poll_fn(|cx| {
            if may_give_up && draft.poll_abandoned(cx).is_ready() {
                return Poll::Ready(None);
            }
            match draft.is_kept() {
                true => body.poll_next_kept(cx, draft.block_bytes_left()).map(Some),
                false => body.poll_next(cx).map(Some),
            }
        })
        .await;
        match piece {
            None => {
                match draft.abandon(unwanted("nobody waits for this body any more (limits.quick_abort_bytes_max)")) {
                    None => return false,
                    // Somebody came in this very moment.
                    Some(wanted) => draft = wanted,
                }
            }
            Some(Ok(OriginPiece::Data(bytes))) => {
                poured += bytes.len();
                draft.append(bytes);
            }
            Some(Ok(OriginPiece::InBlock(bytes))) => {
                poured += bytes.len();
                draft.append_own(bytes);
            }
            Some(Ok(OriginPiece::End(trailers))) => {
                if let Some(place) = course.place.filter(|_| draft.is_kept()) {
                    fetch.core.shared.variations.note(&fetch.core.shared.cache, place);
                }
                draft.land(trailers);
                return true;
            }
            Some(Err(failure)) => {
                draft.abort(failure, fetch.core.now());
                return false;
            }
        }
    }
}

/// Where the body is not kept its writer waits for the slowest reader; one of several that takes nothing for
/// `limits.reader_stall_max` is cut off.
pub(crate) async fn wait_for_room(fetch: &Fetch, draft: &mut Draft) {
    slice_fetch::wait_for_memory(draft).await;
    if poll_fn(|cx| Poll::Ready(draft.poll_room(cx).is_ready())).await {
        return;
    }
    let stall_max = fetch.site.settings.limits.reader_stall_max;
    loop {
        let position = draft.slowest_position();
        if tokio::time::timeout(stall_max, poll_fn(|cx| draft.poll_room(cx))).await.is_ok() {
            return;
        }
        // A single reader holds up nobody else: its own send limits count.
        if draft.readers_count() > 1 && draft.slowest_position() == position {
            draft.cut_off_slowest();
        }
    }
}

/// Is so little left of a body that will be kept that it is fetched even when nobody waits for it?
fn is_worth_finishing(fetch: &Fetch, draft: &Draft, length: Option<u64>) -> bool {
    let left_max = fetch.site.settings.limits.quick_abort_bytes_max;
    draft.is_kept() && length.is_some_and(|length| length.saturating_sub(draft.received_bytes()) <= left_max)
}
