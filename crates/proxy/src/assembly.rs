//! A page that is put together: its own text, and where that says so the answers to requests of their own.
//!
//! What is included is asked for side by side, some of it ahead, and goes out in its order as it comes. Who asks, and how, is an
//! [`Includer`]'s to know.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use cache::EsiPage;
use coding::TextSum;
use esi::{Include, Piece, Variables, When};

use crate::body::{Body, BodyEvent, Wanted};
use crate::included::{Fragment, IncludedAnswer, IncludedBody};
use crate::page_in_gzip::{self, PageInGzip};
use crate::send_outcome::End;
use crate::wait_budget::WaitBudget;

/// What the log says of a page that something is missing of.
const INCLUDE_FAILED: &str = "esi-include-failed";
/// What it says of a text that is shorter than it was when its includes were found.
const CUT_SHORT: &str = "esi-text-cut-short";
/// What it says of a page of which more came than `limits.esi_page_bytes_max` …
const TOO_LONG: &str = "esi-page-bytes";
/// … or for whose parts it waited longer than `limits.esi_wait_max`.
const WAITED_TOO_LONG: &str = "esi-wait";

/// Asks for what is included, and says what stands for the variables of a page.
pub(crate) trait Includer: Variables {
    /// Begins to ask. `None`: it may not, or there is no such address.
    fn begin(&self, src: &[u8]) -> Option<Fragment>;

    fn bounds(&self) -> PageBounds;

    /// Is only that included which succeeded (`onerror`)? Otherwise whatever is answered.
    fn judges(&self) -> bool;
}

/// What a page may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageBounds {
    /// Parts that are asked for at a time.
    pub(crate) ahead_max: usize,
    /// All that goes out.
    pub(crate) bytes_max: u64,
    /// How long it waits, altogether.
    pub(crate) wait_max: Duration,
}

pub(crate) struct Assembly {
    /// The page's own text, in order.
    text: Body,
    taken: VecDeque<Bytes>,
    /// How much of the text is behind us.
    at: u64,
    page: Arc<EsiPage>,
    includer: Rc<dyn Includer>,
    /// Text and parts are pieces of a gzip.
    in_gzip: Option<PageInGzip>,
    bounds: PageBounds,
    /// How much has gone out.
    gone: u64,
    wait: WaitBudget,
    /// Where we are: in the page, and in an alternative within it, and so on.
    frames: Vec<Frame>,
    now: Now,
}

/// A list of pieces.
struct Frame {
    branch: Branch,
    /// The next piece.
    next: usize,
    /// Up to this piece what is included has been asked for.
    begun_to: usize,
    begun: VecDeque<AskedInclude>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Branch {
    Page,
    /// Of the alternative that is this piece of the frame around.
    Attempt(usize),
    Except(usize),
    /// Of the choice that is this piece: so many of its tests do not hold.
    Chosen(usize, usize),
}

/// An include that has been asked for.
enum AskedInclude {
    /// It could not be.
    Failed,
    Asked(Fragment),
    Answered(Fragment, IncludedAnswer),
}

/// What is being sent.
enum Now {
    /// The next piece.
    Next,
    Text(Range<u64>),
    /// Of a variable.
    Value(Bytes),
    /// All answers of an attempt are awaited, before anything of it goes out.
    Judging,
    Awaiting {
        begun: AskedInclude,
        /// And whether there may be variables in it.
        alt: Option<(Vec<u8>, bool)>,
        goes_on: bool,
    },
    Flowing {
        fragment: Fragment,
        body: Box<dyn IncludedBody>,
        bytes: u64,
        goes_on: bool,
    },
}

impl Assembly {
    /// `in_gzip`: the text is the gzip that it is stored as, and the whole becomes one.
    pub(crate) fn new(text: Body, page: Arc<EsiPage>, includer: Rc<dyn Includer>, in_gzip: bool) -> Assembly {
        let in_gzip = in_gzip.then(PageInGzip::default);
        let (bounds, frames) = (includer.bounds(), vec![Frame::new(Branch::Page)]);
        let (wait, taken) = (WaitBudget::new(bounds.wait_max), VecDeque::new());
        Assembly { text, taken, at: 0, page, includer, in_gzip, bounds, gone: 0, wait, frames, now: Now::Next }
    }

    /// Of a page in gzip: it is a piece of another.
    pub(crate) fn into_piece(mut self: Box<Self>) -> Result<Box<Assembly>, Box<Assembly>> {
        match &mut self.in_gzip {
            Some(in_gzip) => {
                in_gzip.becomes_piece();
                Ok(self)
            }
            None => Err(self),
        }
    }

    /// Of a page in gzip that has ended: that of its text.
    pub(crate) fn sum(&self) -> TextSum {
        self.in_gzip.as_ref().map(PageInGzip::sum).unwrap_or_default()
    }

    /// Puts the next bytes into the queue, or says what there is instead.
    pub(crate) fn poll(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>) -> Poll<BodyEvent> {
        let queued = queue.len();
        let Poll::Ready(event) = self.poll_next(queue, cx) else {
            ready!(self.wait.poll(cx));
            return Poll::Ready(BodyEvent::Broken(End::Cut(WAITED_TOO_LONG)));
        };
        self.wait.pause();
        self.gone += queue.iter().skip(queued).map(|piece| piece.len() as u64).sum::<u64>();
        Poll::Ready(if self.gone > self.bounds.bytes_max { BodyEvent::Broken(End::Cut(TOO_LONG)) } else { event })
    }

    fn poll_next(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>) -> Poll<BodyEvent> {
        if self.in_gzip.as_mut().is_some_and(|in_gzip| in_gzip.begin(queue)) {
            return Poll::Ready(BodyEvent::More);
        }
        loop {
            self.begin_ahead();
            let event = match &mut self.now {
                Now::Next => match self.go_on() {
                    true => None,
                    false if self.in_gzip.as_mut().is_some_and(|in_gzip| in_gzip.end(queue)) => Some(BodyEvent::More),
                    false => Some(BodyEvent::End(None)),
                },
                Now::Text(_) => ready!(self.poll_text(queue, cx)),
                Now::Value(value) => {
                    let value = std::mem::take(value);
                    self.now = Now::Next;
                    (!value.is_empty()).then(|| {
                        match &mut self.in_gzip {
                            Some(in_gzip) => {
                                in_gzip.add(TextSum::of(&value));
                                page_in_gzip::push_stored(queue, &value);
                            }
                            None => queue.push_back(value),
                        }
                        BodyEvent::More
                    })
                }
                Now::Judging => ready!(self.poll_judging(cx)),
                Now::Awaiting { .. } => ready!(self.poll_answer(cx)),
                Now::Flowing { .. } => ready!(self.poll_flow(queue, cx)),
            };
            if let Some(event) = event {
                return Poll::Ready(event);
            }
        }
    }

    /// Asks for what will be included soon.
    fn begin_ahead(&mut self) {
        let is_busy = matches!(self.now, Now::Awaiting { .. } | Now::Flowing { .. });
        let ahead_max = self.bounds.ahead_max.saturating_sub(usize::from(is_busy));
        let page = Arc::clone(&self.page);
        let pieces = pieces_of(&page, &self.frames);
        let Some(frame) = self.frames.last_mut() else { return };
        while frame.begun.len() < ahead_max && frame.begun_to < pieces.len() {
            if let Piece::Include(include) = &pieces[frame.begun_to] {
                frame.begun.push_back(AskedInclude::begin(&*self.includer, &include.src, include.has_variables));
            }
            frame.begun_to += 1;
        }
    }

    /// Begins with the next piece. False: there is none.
    fn go_on(&mut self) -> bool {
        let page = Arc::clone(&self.page);
        let pieces = pieces_of(&page, &self.frames);
        let Some(frame) = self.frames.last_mut() else { return false };
        let Some(piece) = pieces.get(frame.next) else {
            self.frames.pop();
            return !self.frames.is_empty();
        };
        frame.next += 1;
        match piece {
            Piece::Text(range) => self.now = Now::Text(self.begin_text(&page, range.clone())),
            Piece::Include(Include { alt, has_variables, goes_on, .. }) => {
                let begun = frame.begun.pop_front().unwrap_or(AskedInclude::Failed);
                let alt = alt.clone().map(|alt| (alt, *has_variables));
                self.now = Now::Awaiting { begun, alt, goes_on: *goes_on };
            }
            Piece::Variable(variable) => self.now = Now::Value(variable.escaped(&*self.includer).into()),
            Piece::Choose { whens, .. } => {
                let holds = |when: &When| esi::holds(&when.test, &*self.includer).unwrap_or(false);
                let chosen = whens.iter().position(holds).unwrap_or(whens.len());
                let branch = Branch::Chosen(frame.next - 1, chosen);
                self.frames.push(Frame::new(branch));
            }
            Piece::Try { .. } => {
                let branch = Branch::Attempt(frame.next - 1);
                self.frames.push(Frame::new(branch));
                self.begin_all();
                self.now = Now::Judging;
            }
        }
        true
    }

    /// Where a text of the page lies in what it is stored as.
    fn begin_text(&mut self, page: &EsiPage, range: Range<u64>) -> Range<u64> {
        let Some(in_gzip) = &mut self.in_gzip else { return range };
        match page.gzip_piece(range.start) {
            Some(piece) => {
                in_gzip.add(piece.sum);
                piece.coded.clone()
            }
            // Behind all that there is: it breaks off there.
            None => u64::MAX - 1..u64::MAX,
        }
    }

    /// Asks for all that the innermost list includes.
    fn begin_all(&mut self) {
        let page = Arc::clone(&self.page);
        let pieces = pieces_of(&page, &self.frames);
        let Some(frame) = self.frames.last_mut() else { return };
        for piece in pieces {
            if let Piece::Include(include) = piece {
                frame.begun.push_back(AskedInclude::begin(&*self.includer, &include.src, include.has_variables));
            }
        }
        frame.begun_to = pieces.len();
    }

    fn poll_text(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>) -> Poll<Option<BodyEvent>> {
        let Now::Text(range) = &mut self.now else { unreachable!("a text is being sent") };
        let Some(mut piece) = self.taken.pop_front() else {
            return Poll::Ready(match ready!(self.text.poll_bytes(&mut self.taken, cx, Wanted::Bytes)) {
                BodyEvent::More => None,
                BodyEvent::End(_) => Some(BodyEvent::Broken(End::Cut(CUT_SHORT))),
                BodyEvent::Broken(end) => Some(BodyEvent::Broken(end)),
                BodyEvent::Pages => unreachable!("bytes are asked for"),
            });
        };
        let length = piece.len() as u64;
        let skipped = range.start.saturating_sub(self.at).min(length);
        let mut wanted = piece.split_off(skipped as usize);
        self.at += skipped;
        let rest = wanted.split_off((range.end - range.start).min(wanted.len() as u64) as usize);
        self.at += wanted.len() as u64;
        range.start += wanted.len() as u64;
        if !rest.is_empty() {
            self.taken.push_front(rest);
        }
        if range.is_empty() {
            self.now = Now::Next;
        }
        if wanted.is_empty() {
            return Poll::Ready(None);
        }
        queue.push_back(wanted);
        Poll::Ready(Some(BodyEvent::More))
    }

    /// Waits for the answers to all that an attempt includes: if one failed, the other way is gone.
    fn poll_judging(&mut self, cx: &Context<'_>) -> Poll<Option<BodyEvent>> {
        let Some(frame) = self.frames.last_mut() else { unreachable!("an attempt is a list") };
        for begun in &mut frame.begun {
            ready!(begun.poll_answered(cx));
        }
        if !frame.begun.iter().all(AskedInclude::is_well) {
            *frame = match frame.branch {
                Branch::Attempt(of) => Frame::new(Branch::Except(of)),
                Branch::Page | Branch::Except(_) | Branch::Chosen(..) => unreachable!("only an attempt is judged"),
            };
        }
        self.now = Now::Next;
        Poll::Ready(None)
    }

    fn poll_answer(&mut self, cx: &Context<'_>) -> Poll<Option<BodyEvent>> {
        let Now::Awaiting { begun, alt, goes_on } = &mut self.now else { unreachable!("an answer is awaited") };
        ready!(begun.poll_answered(cx));
        if self.includer.judges() && !begun.is_well() {
            if let Some((alt, has_variables)) = alt.take() {
                *begun = AskedInclude::begin(&*self.includer, &alt, has_variables);
                return Poll::Ready(None);
            }
            let goes_on = *goes_on;
            self.now = Now::Next;
            return Poll::Ready((!goes_on).then_some(BodyEvent::Broken(End::Cut(INCLUDE_FAILED))));
        }
        self.now = match std::mem::replace(&mut self.now, Now::Next) {
            Now::Awaiting { begun: AskedInclude::Answered(fragment, answer), goes_on, .. } => {
                Now::Flowing { fragment, body: answer.body, bytes: 0, goes_on }
            }
            _ => Now::Next,
        };
        Poll::Ready(None)
    }

    fn poll_flow(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>) -> Poll<Option<BodyEvent>> {
        let Now::Flowing { body, bytes, .. } = &mut self.now else { unreachable!("something flows") };
        let (before, ended) = (queue.len(), ready!(body.poll_included(queue, cx)));
        *bytes += queue.iter().skip(before).map(|piece| piece.len() as u64).sum::<u64>();
        let Some(end) = ended else { return Poll::Ready(Some(BodyEvent::More)) };
        let sum = body.sum();
        let mut is_needed = self.includer.judges();
        if let Now::Flowing { fragment, bytes, goes_on, .. } = std::mem::replace(&mut self.now, Now::Next) {
            if let Some(in_gzip) = &mut self.in_gzip {
                in_gzip.add(sum);
            }
            fragment.finish(end, bytes);
            is_needed &= !goes_on;
        }
        // Nothing in the middle of a page can say that it is not whole but the end of all.
        let breaks = end != End::Sent && is_needed;
        Poll::Ready(breaks.then_some(BodyEvent::Broken(End::Cut(INCLUDE_FAILED))))
    }
}

impl Frame {
    fn new(branch: Branch) -> Frame {
        Frame { branch, next: 0, begun_to: 0, begun: VecDeque::new() }
    }
}

impl AskedInclude {
    fn begin(includer: &dyn Includer, address: &[u8], has_variables: bool) -> AskedInclude {
        let fragment = match has_variables {
            true => includer.begin(&esi::expanded(address, includer)),
            false => includer.begin(address),
        };
        fragment.map_or(AskedInclude::Failed, AskedInclude::Asked)
    }

    /// Ready when there is an answer, or will be none.
    fn poll_answered(&mut self, cx: &Context<'_>) -> Poll<()> {
        if let AskedInclude::Asked(fragment) = self {
            let answer = ready!(fragment.poll_answer(cx));
            let fragment = std::mem::replace(self, AskedInclude::Failed);
            if let (AskedInclude::Asked(fragment), Some(answer)) = (fragment, answer) {
                *self = AskedInclude::Answered(fragment, answer);
            }
        }
        Poll::Ready(())
    }

    fn is_well(&self) -> bool {
        matches!(self, AskedInclude::Answered(_, IncludedAnswer { status: 200 | 204, .. }))
    }
}

/// The pieces of the innermost list.
fn pieces_of<'p>(page: &'p EsiPage, frames: &[Frame]) -> &'p [Piece] {
    let mut pieces = &page.document.pieces[..];
    for frame in frames {
        pieces = match frame.branch {
            Branch::Page => pieces,
            Branch::Attempt(of) | Branch::Except(of) | Branch::Chosen(of, _) => match (&pieces[of], frame.branch) {
                (Piece::Try { attempt, .. }, Branch::Attempt(_)) => attempt,
                (Piece::Try { except, .. }, _) => except,
                (Piece::Choose { whens, otherwise }, Branch::Chosen(_, nth)) => {
                    whens.get(nth).map_or(&otherwise[..], |when| &when.pieces)
                }
                _ => unreachable!("a branch is one of what has branches"),
            },
        };
    }
    pieces
}

#[cfg(test)]
#[path = "assembly_tests.rs"]
mod tests;
