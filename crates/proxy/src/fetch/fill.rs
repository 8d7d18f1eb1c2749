//! Fill: the fetch of a miss, from its ticket to its landing. Describes the head to all who wait, pours the body in,
//! and knows when nobody wants it any more.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use cache::{Description, Draft, EsiPage, Failure, Mark, Now, Object, Renewal, StoreAs, Ticket, Unshared};
use message::ResponseHead;
use rules::WhyNotStored;

use crate::dictionary_use;
use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::fetch::fetch_states::FetchState;
use crate::fetch::fetched_body::FetchedBody;
use crate::fetch::notes::FetchNotes;
use crate::fetch::origin_body::Arriving;
use crate::fetch::settled::{Settled, SettledBody};
use crate::fetch::slice_fetch;
use crate::fetch::slice_stream::SliceStream;
use crate::fetch::{Fetch, slice_manifest};
use crate::limits::POURED_BYTES_MAX;
use crate::upstream::OriginPiece;
use crate::url_variations::VariationKey;

/// The whole fetch of a miss. `notes` are absent for a refresh in the background.
pub(crate) async fn run(mut fetch: Box<Fetch>, ticket: Ticket, notes: Option<Rc<FetchNotes>>) {
    fetch.departure = Some(ticket.departure());
    let settled = settle_while_wanted(&mut fetch, ticket, notes.as_ref()).await;
    if let Some(notes) = &notes {
        notes.note_tries(fetch.tries.take());
    }
    let Some((settled, ticket)) = settled else {
        return fetch.enter(FetchState::Failed);
    };
    match settled {
        Ok(settled) => land(fetch, ticket, settled, notes).await,
        Err(Broken::Origin(failure)) => ticket.fail(failure, fetch.core.now()),
        // A detached fetch has no client that could leave or fail.
        Err(Broken::ClientLeft | Broken::ClientFault(_)) => drop(ticket),
    }
}

/// Nothing is known yet of how much will come, so a fetch whose last reader leaves before its head is given up, if its policy
/// lets it; what is fetched for nobody in particular goes on. `None`: the ticket is given up.
async fn settle_while_wanted(
    fetch: &mut Fetch,
    ticket: Ticket,
    notes: Option<&Rc<FetchNotes>>,
) -> Option<(Result<Box<Settled>, Broken>, Ticket)> {
    let gives_up = notes.is_some() && fetch.ends_with_its_readers();
    let mut client = ClientLink::Detached(notes.cloned());
    let mut settling = pin!(fetch.settle(&mut client));
    let mut kept = Some(ticket);
    let settled = poll_fn(|cx| {
        if let Poll::Ready(settled) = settling.as_mut().poll(cx) {
            return Poll::Ready(Some(settled));
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
    Some((settled, kept?))
}

fn unwanted(text: &str) -> Failure {
    Failure { status: 502, token: "fetch-unwanted", text: text.into(), remember_ms: 0 }
}

/// A pass whose answer turned out to be storable goes on in a task of its own.
pub(crate) fn store_passed(fetch: Box<Fetch>, ticket: Ticket, settled: Box<Settled>) {
    tokio::task::spawn_local(land(fetch, ticket, settled, None));
}

/// How an answer is described to who waits, and what is stored of it.
pub(super) struct Landing {
    /// As its first requester gets it …
    pub(super) head: Arc<ResponseHead>,
    /// … and as everybody else does.
    pub(super) shared_head: Arc<ResponseHead>,
    pub(super) kept: Result<StoreAs, Unkept>,
    /// See [`Description`].
    pub(super) uncacheable_ms: u64,
    pub(super) supersedes: bool,
    /// Where it belongs. Under a program the key is the program's, and there is none.
    pub(super) place: Option<VariationKey>,
    /// What is to be included in its body.
    pub(super) esi: Option<Arc<EsiPage>>,
}

/// What is left of an answer that is not stored.
pub(super) struct Unkept {
    pub(super) mark: Option<Mark>,
    /// What it confirmed is stored all the same.
    pub(super) is_kept: bool,
    /// It is not stored for the credentials that it was asked for with.
    pub(super) is_personal: bool,
    /// Where rules say so.
    pub(super) why_not: Option<WhyNotStored>,
    /// The head as text, of what was confirmed.
    pub(super) rendered: Bytes,
}

impl Landing {
    fn description(self, length: Option<u64>, now: Now) -> Description {
        let Landing { head, shared_head, kept, uncacheable_ms, supersedes, esi, .. } = self;
        let (storable, mark, is_personal, why_not) = match kept {
            Ok(store_as) => (Some(store_as), None, false, None),
            Err(Unkept { mark, is_personal, why_not, .. }) => (None, mark, is_personal, why_not),
        };
        Description {
            head,
            shared_head,
            length,
            storable,
            uncacheable_ms,
            is_personal,
            why_not,
            mark,
            supersedes,
            esi,
            now,
        }
    }

    /// The origin confirmed what is stored.
    fn confirm(self, ticket: Ticket, now: Now) {
        match self.kept {
            Ok(StoreAs { facts, lifetimes, vary, rendered, groups, tags, .. }) => {
                let renewal = Renewal { facts, lifetimes, groups, tags, vary };
                ticket.renewed((self.head, rendered), renewal, now)
            }
            Err(Unkept { mark, is_kept, is_personal, why_not, rendered }) => {
                let unshared = Unshared { mark, is_kept, uncacheable_ms: self.uncacheable_ms, is_personal, why_not };
                ticket.refreshed_for_leader((self.head, rendered), unshared, now)
            }
        };
    }
}

/// Lands an answer in the store, or with those who wait and nobody else.
async fn land(mut fetch: Box<Fetch>, mut ticket: Ticket, settled: Box<Settled>, notes: Option<Rc<FetchNotes>>) {
    let is_confirmed = matches!(settled.body, SettledBody::Stored { .. });
    fetch.enter(if is_confirmed { FetchState::Refreshed } else { FetchState::Fill });
    let landing = fetch.landing(&settled, &mut ticket, notes.as_deref());
    let now = settled.arrival.received;
    let landing = match landing {
        Ok(landing) => landing,
        Err(failure) => {
            fetch.enter(FetchState::Failed);
            ticket.fail(failure, now);
            return settled.body.finish(&fetch);
        }
    };
    let length = settled.body.length();
    let ended = match settled.body {
        SettledBody::Stored { .. } => {
            landing.confirm(ticket, now);
            true
        }
        SettledBody::Read(bytes) | SettledBody::Made(bytes) => {
            let mut draft = ticket.describe(landing.description(length, now));
            draft.append(bytes);
            draft.land(None);
            true
        }
        SettledBody::Origin(arriving) => fill(&fetch, ticket, landing, arriving, (now, notes.is_some())).await,
    };
    fetch.enter(if ended { FetchState::Landed } else { FetchState::Failed });
}

/// True when all of the body landed.
async fn fill(
    fetch: &Fetch,
    ticket: Ticket,
    mut landing: Landing,
    arriving: Arriving,
    (now, has_requester): (Now, bool),
) -> bool {
    let length = arriving.length();
    let sliced = slice_manifest::of_whole(fetch, &landing, ticket.flight().key(), length, now);
    if let (Some(_), Ok(store_as)) = (sliced, &mut landing.kept) {
        store_as.sliced = sliced;
        // Boxed, so that a body in one piece carries none of it.
        return Box::pin(store_in_slices(fetch, ticket, landing, arriving, now)).await;
    }
    let is_part = landing.kept.as_ref().is_ok_and(|store_as| store_as.partial.is_some());
    // The rest of a part that its requester does not want any more is nobody's wish.
    let gives_up = fetch.ends_with_its_readers() && (has_requester || is_part);
    let course = Course { length, gives_up, place: landing.place.take() };
    let draft = ticket.describe(landing.description(length, now));
    pour(fetch, draft, arriving.into_body(fetch), course).await
}

/// A new response that is too large to be kept in one piece.
async fn store_in_slices(fetch: &Fetch, ticket: Ticket, landing: Landing, arriving: Arriving, now: Now) -> bool {
    let Ok(store_as) = landing.kept else { return false };
    let count = store_as.sliced.map_or(0, |sliced| sliced.count());
    let begun = slice_manifest::begin(fetch, ticket, (store_as, landing.shared_head), (0, count), now);
    match begun.and_then(|(_, stream)| stream) {
        Some(stream) => stream.pour(fetch, arriving.into_body(fetch)).await,
        None => false,
    }
}

/// The same for the slice that an answer to a range brought.
pub(crate) fn spawn_slices(mut fetch: Box<Fetch>, arriving: Arriving, stream: SliceStream) {
    tokio::task::spawn_local(async move {
        fetch.enter(FetchState::Fill);
        let body = arriving.into_body(&fetch);
        let is_whole = stream.pour(&fetch, body).await;
        fetch.enter(if is_whole { FetchState::Landed } else { FetchState::Failed });
    });
}

impl Fetch {
    /// What was stored may be a dictionary.
    fn note_dictionary(&self, stored: Option<&Arc<Object>>) {
        if let (Some(object), Some(compression)) = (stored, self.compression()) {
            dictionary_use::note(&self.core, compression, &self.head.request(), object);
        }
    }
}

/// What is known of a body beforehand.
pub(crate) struct Course {
    pub(crate) length: Option<u64>,
    /// It is nobody's wish when its readers have left.
    pub(crate) gives_up: bool,
    /// Where what lands belongs, if that is to be noted.
    pub(crate) place: Option<VariationKey>,
}

/// Moves the body into the draft. True when it landed whole.
pub(crate) async fn pour(fetch: &Fetch, mut draft: Draft, mut body: FetchedBody, course: Course) -> bool {
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
                fetch.note_dictionary(draft.land(trailers).as_ref());
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
