//! The body of an answer on its way out: where its bytes come from. It knows neither framing nor sockets: a protocol's writer asks for
//! bytes, or for pages of a file where it can send such.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use cache::{BodyPiece, Follower, Object};
use message::Fields;

use crate::assembly::Assembly;
use crate::fetch::fetched_body::FetchedBody;
use crate::filtered_source::FilteredSource;
use crate::held_body::{HeldBody, Pages};
use crate::included::IncludedBody;
use crate::limits::SLICES_MAX;
use crate::memcached_gateway::chunked_read::ChunkedRead;
use crate::paced_source::PacedSource;
use crate::route_rules::bandwidth::Bandwidth;
use crate::send_outcome::End;
use crate::sliced_read::SlicedRead;
use crate::unsent::RestOfBody;
use crate::upstream::OriginPiece;

/// What of a stored body is taken into the queue at once.
const PIECES_BYTES_MAX: u64 = SLICES_MAX as u64 * (64 << 10);
/// What of one part of a multipart answer may be copied out of the page file; `rules` bounds how many there are.
const COPIED_PART_BYTES_MAX: u64 = 4 << 10;

/// Where the bytes come from.
pub(crate) enum BodySource {
    Empty,
    Bytes(Bytes),
    /// `from..to` of what is there as a whole.
    Held {
        held: HeldBody,
        from: u64,
        to: u64,
    },
    /// Part heads and ranges of a multipart answer, in order.
    Parts {
        held: HeldBody,
        parts: VecDeque<(Vec<u8>, Range<u64>)>,
    },
    /// Of a fetch under way so many bytes from where its reader stands, or all where nobody knows how many.
    Follow {
        follower: Follower,
        left: Option<u64>,
    },
    Origin(Box<FetchedBody>),
    /// Of memcached's, all of them, one at a time: the next is on its way to us meanwhile.
    Chunks(Box<ChunkedRead>),
    /// Of a body that lies in slices.
    Slices(Box<SlicedRead>),
    /// Another body, through filters.
    Filtered(Box<FilteredSource>),
    /// A page that is put together.
    Assembled(Box<Assembly>),
    /// Another body, no faster than it may go.
    Paced(Box<PacedSource>),
    /// It broke off. It must not be asked again; what was taken of it still goes out.
    Broken(End),
}

/// A body, as a protocol's writer sees it.
pub(crate) struct Body {
    source: BodySource,
}

/// What asking for bytes brought.
pub(crate) enum BodyEvent {
    /// Something, in the queue.
    More,
    /// Nothing: what is next can be sent as pages.
    Pages,
    /// All of it is there.
    End(Option<Arc<Fields>>),
    Broken(End),
}

/// What a writer can send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Bytes,
    /// Bytes, or pages of a file where they lie in one.
    BytesOrPages,
}

impl From<BodySource> for Body {
    fn from(source: BodySource) -> Body {
        Body { source }
    }
}

impl Body {
    pub(crate) fn empty() -> Body {
        BodySource::Empty.into()
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self.source, BodySource::Empty)
    }

    /// The same, no faster than that.
    pub(crate) fn paced(self, pace: Bandwidth) -> Body {
        BodySource::Paced(Box::new(PacedSource::new(self, pace))).into()
    }

    /// Puts the next bytes into the queue, or says what there is instead.
    pub(crate) fn poll_bytes(
        &mut self,
        queue: &mut VecDeque<Bytes>,
        cx: &mut Context<'_>,
        wanted: Wanted,
    ) -> Poll<BodyEvent> {
        let event = ready!(self.source.poll(queue, cx, wanted));
        match event {
            BodyEvent::End(_) => self.source = BodySource::Empty,
            BodyEvent::Broken(end) => self.source = BodySource::Broken(end),
            BodyEvent::More | BodyEvent::Pages => {}
        }
        Poll::Ready(event)
    }

    /// What comes next, if it can be sent as it lies in a file: where from, which moves, and where to.
    pub(crate) fn pages(&mut self) -> Option<(Pages<'_>, &mut u64, u64)> {
        match &mut self.source {
            BodySource::Held { held, from, to } if *from < *to => Some((held.pages_at(*from)?, from, *to)),
            BodySource::Parts { held, parts } => {
                let (_, range) =
                    parts.front_mut().filter(|(head, range)| head.is_empty() && sends_pages(held, range))?;
                Some((held.pages_at(range.start)?, &mut range.start, range.end))
            }
            BodySource::Slices(read) => read.pages(),
            _ => None,
        }
    }

    /// Ready when what is next in a file can be read without waiting for a disk; the error is a token.
    pub(crate) fn poll_at_hand(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        self.source.poll_at_hand(cx)
    }

    /// Pages could not be sent.
    pub(crate) fn failed(&mut self, error: &io::Error) {
        if let Some((HeldBody::Leased(read), _)) = self.source.next_in_file() {
            read.failed(error);
        }
    }

    /// Does it come from a disk's file?
    pub(crate) fn is_leased(&mut self) -> bool {
        match &mut self.source {
            BodySource::Held { held, .. } | BodySource::Parts { held, .. } => matches!(held, HeldBody::Leased(_)),
            BodySource::Slices(read) => matches!(read.next_in_file(), Some((HeldBody::Leased(_), _))),
            _ => false,
        }
    }

    /// Where what has not been asked for yet lies.
    pub(crate) fn rest(&self) -> RestOfBody {
        match &self.source {
            BodySource::Held { held, .. } | BodySource::Parts { held, .. } => held.rest(),
            BodySource::Follow { follower, .. } => RestOfBody::of_flight(follower.flight()),
            BodySource::Slices(read) => read.rest(),
            BodySource::Filtered(source) => source.body().rest(),
            BodySource::Paced(source) => source.body().rest(),
            BodySource::Empty
            | BodySource::Bytes(_)
            | BodySource::Origin(_)
            | BodySource::Chunks(_)
            | BodySource::Assembled(_)
            | BodySource::Broken(_) => RestOfBody::Queued,
        }
    }

    /// The object that it is all of, from its beginning, if it lies in memory.
    pub(crate) fn all_of_object(&self) -> Option<&Arc<Object>> {
        match &self.source {
            BodySource::Held { held: HeldBody::Object(object), from: 0, to }
                if *to == object.length() && object.has_whole_body() =>
            {
                Some(object)
            }
            _ => None,
        }
    }

    /// A page in gzip, to be a piece of another; else the body as it was.
    pub(crate) fn into_page_in_gzip(self) -> Result<Box<Assembly>, Body> {
        match self.source {
            BodySource::Assembled(page) => page.into_piece().map_err(|page| BodySource::Assembled(page).into()),
            source => Err(source.into()),
        }
    }

    /// Do the pieces that were taken of it belong to nobody else?
    pub(crate) fn is_handed_over(&self) -> bool {
        use BodySource::{Assembled, Filtered, Follow, Origin, Paced, Slices};
        matches!(self.source, Follow { .. } | Origin(_) | Slices(_) | Filtered(_) | Assembled(_) | Paced(_))
    }

    /// Does it come from somewhere else while it is sent, so that its end may come late, or more than was promised?
    pub(crate) fn is_streamed(&self) -> bool {
        match &self.source {
            BodySource::Follow { .. } | BodySource::Origin(_) | BodySource::Assembled(_) => true,
            BodySource::Filtered(source) => source.body().is_streamed(),
            BodySource::Paced(source) => source.body().is_streamed(),
            _ => false,
        }
    }

    /// Is all of it taken that somebody else holds? It is held on to until that has gone: it is on its account.
    pub(crate) fn is_all_taken(&self) -> bool {
        match &self.source {
            BodySource::Held { from, to, .. } => from == to,
            BodySource::Parts { parts, .. } => parts.is_empty(),
            _ => false,
        }
    }

    /// Is what was taken of it on somebody else's account?
    pub(crate) fn is_accounted_for(&self) -> bool {
        matches!(self.source, BodySource::Held { .. } | BodySource::Parts { .. } | BodySource::Chunks(_))
    }
}

impl IncludedBody for Body {
    fn poll_included(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>) -> Poll<Option<End>> {
        Poll::Ready(match ready!(self.poll_bytes(queue, cx, Wanted::Bytes)) {
            BodyEvent::More => None,
            BodyEvent::End(_) => Some(End::Sent),
            BodyEvent::Broken(end) => Some(end),
            BodyEvent::Pages => unreachable!("bytes are asked for"),
        })
    }
}

impl BodySource {
    fn poll(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>, wanted: Wanted) -> Poll<BodyEvent> {
        if let BodySource::Follow { follower, left: Some(left) } = self
            && let Some(held) = landed_in_pages(follower, *left)
        {
            *self = held;
        }
        let pages = |held: &HeldBody| wanted == Wanted::BytesOrPages && held.is_in_file();
        Poll::Ready(match self {
            BodySource::Empty => BodyEvent::End(None),
            BodySource::Broken(end) => BodyEvent::Broken(*end),
            BodySource::Bytes(bytes) => {
                queue.push_back(std::mem::take(bytes));
                *self = BodySource::Empty;
                BodyEvent::More
            }
            BodySource::Held { from, to, .. } if from == to => BodyEvent::End(None),
            // Sent from where it lies, once the head has gone.
            BodySource::Held { held, .. } if pages(held) => BodyEvent::Pages,
            BodySource::Held { held, from, to } => ready!(put(held, queue, cx, from, *to)),
            BodySource::Parts { held, parts } => match parts.front_mut() {
                None => BodyEvent::End(None),
                Some((head, _)) if !head.is_empty() => {
                    queue.push_back(Bytes::from(std::mem::take(head)));
                    BodyEvent::More
                }
                Some((_, range)) if range.is_empty() => {
                    parts.pop_front();
                    BodyEvent::More
                }
                Some((_, range)) if wanted == Wanted::BytesOrPages && sends_pages(held, range) => BodyEvent::Pages,
                Some((_, range)) => ready!(put(held, queue, cx, &mut range.start, range.end)),
            },
            BodySource::Follow { left: Some(0), .. } => BodyEvent::End(None),
            BodySource::Follow { follower, left } => match ready!(follower.poll_body(cx)) {
                BodyPiece::Data(pieces) => {
                    pieces.into_iter().for_each(|piece| push_wanted(queue, piece, left));
                    BodyEvent::More
                }
                BodyPiece::End { trailers } => BodyEvent::End(trailers),
                BodyPiece::Truncated(failure) => BodyEvent::Broken(End::Cut(failure.token)),
                BodyPiece::CutOff => BodyEvent::Broken(End::ClientSlow),
            },
            BodySource::Origin(body) => match ready!(body.poll_next(cx)) {
                Ok(OriginPiece::Data(bytes) | OriginPiece::InBlock(bytes)) => {
                    queue.push_back(bytes);
                    BodyEvent::More
                }
                Ok(OriginPiece::End(trailers)) => BodyEvent::End(trailers.map(Arc::new)),
                Err(failure) => BodyEvent::Broken(End::Cut(failure.token)),
            },
            BodySource::Slices(read) => match ready!(read.poll_more(queue, cx, wanted)) {
                Ok(event) => event,
                Err(failure) => BodyEvent::Broken(End::Cut(failure.token)),
            },
            BodySource::Filtered(source) => ready!(source.poll(queue, cx)),
            BodySource::Assembled(page) => ready!(page.poll(queue, cx)),
            BodySource::Paced(source) => ready!(source.poll(queue, cx)),
            // One at a time.
            BodySource::Chunks(read) if read.has_begun() && !queue.is_empty() => return Poll::Pending,
            BodySource::Chunks(read) => match ready!(read.poll_next(cx)) {
                Ok(Some(chunk)) => {
                    queue.push_back(chunk);
                    BodyEvent::More
                }
                Ok(None) => BodyEvent::End(None),
                Err(why) => BodyEvent::Broken(End::Cut(why.token())),
            },
        })
    }

    /// The part of a whole that is sent next, if it is sent from where it lies.
    fn next_in_file(&mut self) -> Option<(&mut HeldBody, Range<u64>)> {
        match self {
            BodySource::Held { held, from, to } if *from < *to && held.is_in_file() => Some((held, *from..*to)),
            BodySource::Parts { held, parts } => {
                let (_, range) = parts.front().filter(|(head, range)| head.is_empty() && sends_pages(held, range))?;
                Some((held, range.clone()))
            }
            BodySource::Slices(read) => read.next_in_file(),
            _ => None,
        }
    }

    fn poll_at_hand(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        match self.next_in_file() {
            Some((held, range)) => held.poll_at_hand(cx, range.start, range.end),
            None => Poll::Ready(Ok(())),
        }
    }
}

/// Queues the next bytes of what is held, from memory or read from its file.
pub(crate) fn put(
    held: &mut HeldBody,
    queue: &mut VecDeque<Bytes>,
    cx: &mut Context<'_>,
    from: &mut u64,
    to: u64,
) -> Poll<BodyEvent> {
    if let Err(token) = ready!(held.poll_at_hand(cx, *from, to)) {
        return Poll::Ready(BodyEvent::Broken(End::Cut(token)));
    }
    Poll::Ready(match held.put_bytes(queue, *from, to, PIECES_BYTES_MAX) {
        // The file has become shorter than it was when its length was said.
        Ok(0) => BodyEvent::Broken(End::Cut("file-cut-short")),
        Ok(put) => {
            *from += put;
            BodyEvent::More
        }
        Err(error) => {
            if let HeldBody::Leased(read) = held {
                read.failed(&error);
            }
            BodyEvent::Broken(End::Cut("file-unreadable"))
        }
    })
}

/// What of a piece is wanted, if not all is.
fn push_wanted(queue: &mut VecDeque<Bytes>, piece: Bytes, left: &mut Option<u64>) {
    let Some(left) = left else { return queue.push_back(piece) };
    let length = piece.len() as u64;
    match length <= *left {
        true => queue.push_back(piece),
        false if *left > 0 => queue.push_back(piece.slice(..*left as usize)),
        false => {}
    }
    *left = left.saturating_sub(length);
}

/// The rest of a body that has landed meanwhile, if it is sent as it lies in the page file: nothing of it is copied any more.
fn landed_in_pages(follower: &Follower, left: u64) -> Option<BodySource> {
    let (object, from) = follower.landed()?;
    let is_there = object.body().extent().is_some() && from + left <= object.body().len();
    is_there.then(|| BodySource::Held { held: HeldBody::Object(object), from, to: from + left })
}

/// Is a part sent as it lies in a file? A short one of the page file is copied, and goes out with its head.
fn sends_pages(held: &HeldBody, range: &Range<u64>) -> bool {
    let is_short = range.end - range.start <= COPIED_PART_BYTES_MAX;
    !range.is_empty() && held.is_in_file() && !(is_short && held.is_in_memory())
}
