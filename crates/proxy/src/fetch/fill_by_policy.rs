//! Fill under a policy: what the program settled on lands in the store, or answers those who wait and nobody else.

use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cache::{Description, Failure, Mark, MarkKind, Now, Renewal, StoreAs, Ticket};
use message::{FieldName, ResponseHead};
use rules::date::parse_date;
use rules::{Facts, Lifetimes, Vary, VarySpec};
use wire::{HopByHop, ResponseBody};

use crate::fetch::fill::{Course, pour, store_in_slices};
use crate::fetch::notes::FetchNotes;
use crate::fetch::origin_body::{Arriving, OriginBody, OriginPiece};
use crate::fetch::settled::{Keeping, Settled, SettledBody};
use crate::fetch::{Broken, Client, Fetch, FetchState, slice_manifest};
use crate::limits::MARK_TTL_MIN_MS;
use crate::stored_head;
use crate::vcl_story::policy_purge;

/// The whole fetch of a miss. `notes` are absent for a refresh in the background. It goes on to its end whoever leaves, as
/// Varnish's does: what the program does about an answer may be meant for more than who asked, such as a mark that the
/// next requests meet, and a body that is kept is there for whoever asks next. One that is not kept ends with its readers.
pub(crate) async fn run(mut fetch: Fetch, ticket: Ticket, notes: Option<Rc<FetchNotes>>) {
    let mut client = Client::Detached(notes.clone());
    fetch.departure = Some(ticket.departure());
    let settled = match fetch.converse_by_policy(&mut client).await {
        Ok(settled) => settled,
        Err(Broken::Origin(failure)) => return ticket.fail(failure, fetch.core.now()),
        // A detached fetch has no client that could leave or fail.
        Err(Broken::ClientLeft | Broken::ClientFault(_)) => return drop(ticket),
    };
    if let Some(notes) = &notes {
        notes.note_lifetimes(settled.lifetimes);
        if !settled.why.is_empty() {
            notes.note_not_stored(settled.why);
        }
    }
    land(fetch, ticket, settled).await;
}

async fn land(mut fetch: Fetch, mut ticket: Ticket, settled: Settled) {
    let Settled { mut made, body, keeping, lifetimes, received, streams, .. } = settled;
    // What its program made of the request is what the origin chose a variant by.
    ticket.asked_as(fetch.head.request().to_head());
    let policy = fetch.vcl.as_deref().expect("only a fetch under a policy comes here");
    // What a program says of a connection is about no other one.
    made.head.fields = HopByHop::end_to_end(made.head.fields.view());
    made.head.fields.retain(|field| !field.name_text.eq_ignore_ascii_case(b"x-varnish"));
    made.head.fields.push_named(b"X-Varnish", policy.xid.get().to_string().as_bytes());
    made.head.fields.remove(FieldName::ContentLength);
    made.head.fields.shrink();
    let facts = dates(&made.head, received);
    let rendered = stored_head::render_by_policy(&made.head, &fetch.site);
    let sliced = match &body {
        SettledBody::Origin(_, ResponseBody::Length(length)) => {
            slice_manifest::of_whole_by_policy(&fetch, &made, ticket.flight().key(), *length, received)
        }
        _ => None,
    };
    let head = Arc::new(made.head);
    let vary = match Vary::of(head.fields.view()) {
        Vary::Fields(spec) => Ok(Some(spec)),
        Vary::None => Ok(None),
        Vary::Any | Vary::TooMany => Err(()),
    };
    let tags = policy_purge::tags_of(&fetch.core.shared.cache, head.fields.view());
    let (arriving, framing) = match body {
        SettledBody::Stored => {
            fetch.enter(FetchState::Refreshed);
            match (keeping, &vary, tags) {
                (Keeping::Store, Ok(vary), Ok(tags)) => {
                    let (lifetimes, vary) = (Some(lifetimes), vary.clone());
                    let renewal = Renewal { facts, lifetimes, groups: None, tags, vary };
                    ticket.renewed((head, rendered), renewal, received)
                }
                _ => {
                    let mark = mark(keeping, lifetimes, vary.ok().flatten());
                    ticket.refreshed_privately((head, rendered), mark, received)
                }
            };
            return fetch.enter(FetchState::Landed);
        }
        SettledBody::Program(body) => (Err(body), ResponseBody::None),
        SettledBody::Origin(arriving, framing) => (Ok(*arriving), framing),
    };
    fetch.enter(FetchState::Fill);
    // An error that the program made for those who wait, and gives no life, leaves what is stored in its place.
    let supersedes = arriving.is_ok() || lifetimes.ttl_ms > 0;
    let storable = match (keeping, &vary) {
        (Keeping::Store, Ok(vary)) if tags.is_ok() => Some(StoreAs {
            facts,
            lifetimes: Some(lifetimes),
            vary: vary.clone(),
            rendered,
            partial: None,
            whole: None,
            sliced,
            elsewhere: None,
            groups: None,
            tags: tags.ok().flatten(),
        }),
        _ => None,
    };
    let (arriving, storable) = match (arriving, storable) {
        (Ok(arriving), Some(store_as)) if sliced.is_some() => {
            return store_in_slices(fetch, ticket, (store_as, head), arriving, received).await;
        }
        others => others,
    };
    let source = match prepare(&fetch, arriving, streams).await {
        Ok(source) => source,
        Err(failure) => {
            fetch.enter(FetchState::Failed);
            // Nobody has seen anything of it: the program may answer instead.
            return match fetch.settle_broken(failure.token) {
                Some(settled) => Box::pin(land(fetch, ticket, settled)).await,
                None => ticket.fail(failure, fetch.core.now()),
            };
        }
    };
    let length = match (&source, framing) {
        (BodySource::Whole(bytes), _) => Some(bytes.len() as u64),
        (BodySource::Arriving(_), ResponseBody::Length(length)) => Some(length),
        (BodySource::Arriving(_), ResponseBody::None) => Some(0),
        _ => None,
    };
    if storable.is_none()
        && keeping == Keeping::Store
        && let Some(notes) = fetch.vcl.as_deref().and_then(|policy| policy.log_notes.as_ref())
    {
        notes.note_not_stored(if vary.is_err() { "vary" } else { "xkey" });
    }
    let mut draft = ticket.describe(Description {
        shared_head: Arc::clone(&head),
        head,
        length,
        storable,
        uncacheable_ms: 0,
        is_personal: false,
        supersedes,
        mark: mark(keeping, lifetimes, vary.ok().flatten()),
        now: received,
    });
    let ended = match source {
        BodySource::Whole(bytes) => {
            draft.append(bytes);
            draft.land(None);
            true
        }
        BodySource::Arriving(body) => {
            // Whoever leaves: as Varnish's does.
            let course = Course { length, gives_up: false, place: None };
            pour(&fetch, draft, *body, course).await
        }
    };
    fetch.enter(if ended { FetchState::Landed } else { FetchState::Failed });
}

/// What the next requests for it meet.
fn mark(keeping: Keeping, lifetimes: Lifetimes, vary: Option<VarySpec>) -> Option<Mark> {
    let kind = match keeping {
        Keeping::HitForMiss => MarkKind::Miss,
        Keeping::HitForPass => MarkKind::Pass,
        Keeping::Store | Keeping::Not => return None,
    };
    // Without any ttl there would be no mark, and who is set free now would queue up behind one another again.
    let lifetimes = Lifetimes { ttl_ms: lifetimes.ttl_ms.max(MARK_TTL_MIN_MS), ..lifetimes };
    Some(Mark { kind, lifetimes, vary, tags: None })
}

/// Its dates, by which conditions are judged.
pub(crate) fn dates(head: &ResponseHead, received: Now) -> Facts {
    let now_s = (received.wall_ms / 1_000) as i64;
    let date_of = |name| head.fields.view().get(name).and_then(|text| parse_date(text, now_s));
    let date = date_of(FieldName::Date).unwrap_or(now_s);
    Facts { last_modified: date_of(FieldName::LastModified), date, ..Facts::default() }
}

/// A body as it is poured.
enum BodySource {
    Whole(Bytes),
    Arriving(Box<OriginBody>),
}

/// Without streaming the whole body comes first, and nobody sees the head of one that breaks off. What is too long to be
/// stored streams all the same.
async fn prepare(fetch: &Fetch, from: Result<Arriving, Bytes>, streams: bool) -> Result<BodySource, Failure> {
    let arriving = match from {
        Err(bytes) => return Ok(BodySource::Whole(bytes)),
        Ok(arriving) => arriving,
    };
    if streams || is_too_long(fetch, &arriving) {
        return Ok(BodySource::Arriving(Box::new(arriving.into_body(fetch))));
    }
    read_whole(fetch, arriving).await.map(BodySource::Whole)
}

/// Is it known to be longer than what is read without streaming?
pub(crate) fn is_too_long(fetch: &Fetch, arriving: &Arriving) -> bool {
    matches!(arriving.framing, ResponseBody::Length(length) if length > fetch.site.settings.limits.object_bytes_max)
}

/// All of a body.
pub(crate) async fn read_whole(fetch: &Fetch, arriving: Arriving) -> Result<Bytes, Failure> {
    let bytes_max = fetch.site.settings.limits.object_bytes_max;
    let mut body = arriving.into_body(fetch);
    let mut held = fetch.core.shared.cache.account().charge(0);
    let mut whole = BytesMut::new();
    loop {
        match std::future::poll_fn(|cx| body.poll_next(cx)).await? {
            OriginPiece::Data(bytes) | OriginPiece::InBlock(bytes) => {
                whole.extend_from_slice(&bytes);
                held.resize(whole.len());
                if whole.len() as u64 > bytes_max {
                    return Err(Failure {
                        status: 503,
                        token: "body-too-long",
                        text: "a body of unknown length, fetched without streaming, is longer than \
                               limits.object_bytes_max"
                            .into(),
                        remember_ms: 0,
                    });
                }
            }
            OriginPiece::End(_) => return Ok(whole.freeze()),
        }
    }
}
