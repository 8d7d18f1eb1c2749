//! A reader of a flight: first its head, then its body from byte 0, at its own pace.
//!
//! The leader follows like everybody else. A follower that the response does not fit, or that may not have it, is
//! released to ask again; that is checked here, so that nobody can forget it. It lives on one core.

use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};

use message::{Fields, Request, RequestHead, ResponseHead};
use rules::Facts;

use crate::encodings::Encodings;
use crate::esi_page::EsiPage;
use crate::failure::Failure;
use crate::flight::{End, Fits, Flight, FlightHead, Inner};
use crate::flight_body::{FlightBody, Pieces};
use crate::flight_state::FlightState;
use crate::limits::{HITS_EXACT_MAX, READ_BYTES_MAX};
use crate::moment::Now;
use crate::object::Object;

#[derive(Debug)]
pub struct Follower {
    flight: Arc<Flight>,
    slot: usize,
    core: usize,
    leader: bool,
    /// What the response must fit, until it is known to. The leader, and who ignores Vary, has none.
    request: Option<Box<RequestHead>>,
    stale: Option<Arc<Object>>,
    /// The number of the last invalidation when it came to wait.
    joined: u64,
    /// As in [`Headed`].
    hits: u32,
}

/// The head of the response that is followed.
#[derive(Clone, Debug)]
pub struct Headed {
    /// The leader's is whole; everybody else's is without Set-Cookie.
    pub head: Arc<ResponseHead>,
    /// The length of the body, when it was said or has landed.
    pub length: Option<u64>,
    /// What freshness and Age go by, when the response may be stored.
    pub facts: Option<Facts>,
    /// When the head was received.
    pub received: Now,
    /// The fetch is this follower's own.
    pub leader: bool,
    /// Set when everything has landed already: conditions and ranges can be answered from it.
    pub object: Option<Arc<Object>>,
    /// Who had it before and this follower, as [`Object::hits`] counts. 0 for the leader.
    pub hits: u32,
    /// What is to be included in its body, if anything is.
    pub esi: Option<Arc<EsiPage>>,
}

/// Why there is no head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Release {
    /// It may not be shared: ask again, or fetch for yourself.
    Private,
    /// It is another variant, another URL's, only a part, or outdated: ask again.
    VaryMismatch,
    /// It answers this reader, and its body lies on a disk, from where nobody reads it through the fetch:
    /// [`Follower::landed`] has it, to be borrowed.
    OnDisk,
    /// There is none. [`Follower::stale`] may stand in.
    Failed(Failure),
}

/// What comes next of the body.
#[derive(Clone, Debug)]
pub enum BodyPiece {
    Data(Pieces),
    End {
        trailers: Option<Arc<Fields>>,
    },
    /// The body ends here, but is not whole: end the client's so that it can tell.
    Truncated(Failure),
    /// This reader was too slow for a body that is not kept.
    CutOff,
}

impl Follower {
    pub(crate) fn new(flight: Arc<Flight>, slot: usize, core: usize) -> Follower {
        Follower { flight, slot, core, leader: true, request: None, stale: None, joined: 0, hits: 0 }
    }

    /// A reader of what has been described, from its first byte on. `None` where that is not kept.
    pub(crate) fn from_start(flight: &Arc<Flight>, core: usize) -> Option<Follower> {
        let slot = flight.with(|inner| match inner.body {
            FlightBody::Window(_) => None,
            FlightBody::Growing(_) | FlightBody::Landed(_) => Some(inner.readers.join(core)),
        })?;
        Some(Follower::new(Arc::clone(flight), slot, core).waiting(None, None, 0))
    }

    /// The encodings of what is followed. `None` where it is not kept.
    pub fn encodings(&self) -> Option<Arc<Encodings>> {
        self.flight.with(|inner| match &inner.body {
            FlightBody::Window(_) => None,
            FlightBody::Growing(_) => Some(Arc::clone(inner.encodings.get_or_insert_default())),
            FlightBody::Landed(object) => Some(Arc::clone(object.encodings_or_new())),
        })
    }

    pub(crate) fn waiting(
        mut self,
        request: Option<&Request<'_>>,
        stale: Option<Arc<Object>>,
        joined: u64,
    ) -> Follower {
        self.leader = false;
        self.joined = joined;
        self.request = request.map(|request| Box::new(request.to_head()));
        self.stale = stale;
        self
    }

    pub fn flight(&self) -> &Arc<Flight> {
        &self.flight
    }

    pub fn is_leader(&self) -> bool {
        self.leader
    }

    /// As [`Headed::hits`], once there is a head.
    pub fn hits(&self) -> u32 {
        self.hits
    }

    /// What is stored and was not fresh enough to be served; it may stand in for a failure.
    pub fn stale(&self) -> Option<&Arc<Object>> {
        self.stale.as_ref()
    }

    /// Tells a writer that waits for somebody to come.
    pub fn announce(&self) {
        self.flight.read(self.core, |_| ((), true));
    }

    /// Would the response, as far as it is known, fit this request? [`poll_head`](Follower::poll_head) has checked
    /// the request that was asked with.
    pub fn matches(&self, request: &Request<'_>) -> bool {
        self.flight.with(|inner| inner.head.as_ref().is_none_or(|head| head.fits.request(request)))
    }

    /// The head, or why there is none for this reader.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Headed, Release>> {
        let (slot, leader) = (self.slot, self.leader);
        let seen = self.flight.with(|inner| look_at_head(inner, leader).or_else(|| wait(inner, slot, cx)));
        let Some(seen) = seen else { return Poll::Pending };
        let (head, object) = match seen {
            Ok(known) => known,
            Err(release) => return Poll::Ready(Err(release)),
        };
        let fits = match &self.request {
            Some(request) => head.fits.request(&request.request()) && head.is_for(request.request().fields),
            None => leader || matches!(head.fits, Fits::Variant(..)),
        };
        // Its groups were not known when this reader came: an invalidation of one may have been before that, or a ban.
        let banned_before = head.trial.banned.is_some_and(|ban| ban <= self.joined);
        let came_late = !leader && (self.joined > self.flight.began() && !head.is_valid() || banned_before);
        if !fits || came_late {
            return Poll::Ready(Err(Release::VaryMismatch));
        }
        self.request = None;
        if object.as_ref().is_some_and(|object| object.body().on_disk().is_some()) {
            return Poll::Ready(Err(Release::OnDisk));
        }
        let length = object.as_ref().map_or(head.length, |object| Some(object.length()));
        self.hits = if leader { 0 } else { self.count_hit(object.as_deref()) };
        let hits = self.hits;
        let FlightHead { full, shared, facts, received, esi, .. } = head;
        let head = if leader { full } else { shared };
        Poll::Ready(Ok(Headed { head, length, facts, received, leader, object, hits, esi }))
    }

    fn count_hit(&self, landed: Option<&Object>) -> u32 {
        if let Some(object) = landed {
            object.count_hit();
            return object.hits();
        }
        self.flight.with(|inner| {
            inner.hits = inner.hits.saturating_add(1).min(HITS_EXACT_MAX);
            u32::from(inner.hits)
        })
    }

    /// The next bytes, the end, or that there will be none.
    pub fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<BodyPiece> {
        let slot = self.slot;
        let next = self.flight.read(self.core, |inner| {
            if inner.readers.is_cut_off(slot) {
                return (Next::Piece(BodyPiece::CutOff), false);
            }
            if let Some((object, range)) = inner.take_landed(slot) {
                return (Next::Landed(object, range), false);
            }
            let position = inner.readers.position(slot);
            let pieces = inner.body.read(position);
            if !pieces.is_empty() {
                let taken: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
                let moved = inner.move_reader(slot, position, position + taken);
                return (Next::Piece(BodyPiece::Data(pieces)), moved);
            }
            let piece = match &inner.end {
                End::Open => {
                    inner.readers.wait(slot, cx.waker());
                    return (Next::Wait, false);
                }
                End::Whole(trailers) => BodyPiece::End { trailers: trailers.clone() },
                End::Truncated(failure) => BodyPiece::Truncated(failure.clone()),
            };
            (Next::Piece(piece), false)
        });
        match next {
            Next::Wait => Poll::Pending,
            Next::Piece(piece) => Poll::Ready(piece),
            // Read with nothing locked: it may have to be copied.
            Next::Landed(object, range) => {
                Poll::Ready(BodyPiece::Data(object.body().pieces(range.start, range.end).collect()))
            }
        }
    }

    /// Leaves with all that was wanted (a 304, a head): the fetch of a body that is kept goes on, though nobody reads it.
    pub fn leave_content(self) {
        self.flight.with(|inner| inner.is_wanted = true);
    }

    /// More of the body may come.
    pub fn is_under_way(&self) -> bool {
        self.flight.with(|inner| matches!(inner.end, End::Open))
    }

    /// What has landed, and where in it this reader stands: it may be sent as it lies from there on.
    pub fn landed(&self) -> Option<(Arc<Object>, u64)> {
        self.flight.with(|inner| match &inner.body {
            FlightBody::Landed(object) if !inner.readers.is_cut_off(self.slot) => {
                Some((Arc::clone(object), inner.readers.position(self.slot)))
            }
            _ => None,
        })
    }

    /// Goes forward to the first byte of a range. What lies before is not waited for and not held for this reader;
    /// there is no way back.
    pub fn seek(&mut self, from: u64) {
        let slot = self.slot;
        self.flight.read(self.core, |inner| {
            let position = inner.readers.position(slot);
            ((), from > position && inner.move_reader(slot, position, from))
        });
    }
}

/// What a look at the body found.
enum Next {
    Wait,
    Piece(BodyPiece),
    /// A stretch of what has landed.
    Landed(Arc<Object>, Range<u64>),
}

impl Inner {
    /// What this reader reads next of a body that has landed.
    fn take_landed(&mut self, slot: usize) -> Option<(Arc<Object>, Range<u64>)> {
        let FlightBody::Landed(object) = &self.body else { return None };
        let position = self.readers.position(slot);
        let to = object.body().len().min(position.saturating_add(READ_BYTES_MAX as u64));
        let object = (position < to).then(|| Arc::clone(object))?;
        self.readers.set_position(slot, to);
        Some((object, position..to))
    }

    /// Moves a reader; true if that made room in a window.
    fn move_reader(&mut self, slot: usize, from: u64, to: u64) -> bool {
        self.readers.set_position(slot, to);
        let held_window_back = matches!(&self.body, FlightBody::Window(window) if window.base() == from);
        if held_window_back {
            self.trim();
        }
        held_window_back
    }
}

type Seen = Result<(FlightHead, Option<Arc<Object>>), Release>;

/// What there is to see for this reader already.
fn look_at_head(inner: &Inner, leader: bool) -> Option<Seen> {
    // A failure that comes before this reader has shown anything to its client still is the same answer for all.
    if let End::Truncated(failure) = &inner.end {
        return Some(Err(Release::Failed(failure.clone())));
    }
    if inner.state == FlightState::Private && !leader {
        return Some(Err(Release::Private));
    }
    let head = inner.head.clone()?;
    let object = match &inner.body {
        FlightBody::Landed(object) => Some(Arc::clone(object)),
        // Only what has landed says where its body is.
        _ if head.is_manifest && matches!(inner.end, End::Open) => return None,
        _ if head.is_manifest => return Some(Err(Release::VaryMismatch)),
        _ => None,
    };
    Some(Ok((head, object)))
}

fn wait(inner: &mut Inner, slot: usize, cx: &mut Context<'_>) -> Option<Seen> {
    inner.readers.wait(slot, cx.waker());
    None
}

impl Drop for Follower {
    fn drop(&mut self) {
        let slot = self.slot;
        self.flight.read(self.core, |inner| {
            inner.readers.leave(slot);
            inner.trim();
            // A writer that waits for room has some now; one that waits for readers may have none left.
            ((), true)
        });
    }
}
