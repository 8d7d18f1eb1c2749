//! A page that is put together: its own text, and where that says so the answers to requests of their own.
//!
//! What is included is asked for side by side, some of it ahead, and goes out in its order as it comes. Who asks, and how, is an
//! [`Includer`]'s to know.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use cache::EsiPage;
use esi::{Include, Piece};

use crate::body::{Body, BodyEvent, Wanted};
use crate::included::{Fragment, IncludedAnswer, IncludedBody};
use crate::send_outcome::End;

/// What the log says of a page that something is missing of.
const INCLUDE_FAILED: &str = "esi-include-failed";
/// What it says of a text that is shorter than it was when its includes were found.
const CUT_SHORT: &str = "esi-text-cut-short";

/// Asks for what is included.
pub(crate) trait Includer {
    /// Begins to ask. `None`: it may not, or there is no such address.
    fn begin(&self, src: &[u8]) -> Option<Fragment>;

    /// How many are asked for at a time.
    fn ahead_max(&self) -> usize;

    /// Is only that included which succeeded (`onerror`)? Otherwise whatever is answered.
    fn judges(&self) -> bool;
}

pub(crate) struct Assembly {
    /// The page's own text, in order.
    text: Body,
    taken: VecDeque<Bytes>,
    /// How much of the text is behind us.
    at: u64,
    page: Arc<EsiPage>,
    includer: Rc<dyn Includer>,
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
    /// All answers of an attempt are awaited, before anything of it goes out.
    Judging,
    Awaiting {
        begun: AskedInclude,
        alt: Option<Vec<u8>>,
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
    pub(crate) fn new(text: Body, page: Arc<EsiPage>, includer: Rc<dyn Includer>) -> Assembly {
        let frames = vec![Frame::new(Branch::Page)];
        Assembly { text, taken: VecDeque::new(), at: 0, page, includer, frames, now: Now::Next }
    }

    /// Puts the next bytes into the queue, or says what there is instead.
    pub(crate) fn poll(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>) -> Poll<BodyEvent> {
        loop {
            self.begin_ahead();
            let event = match &mut self.now {
                Now::Next => match self.go_on() {
                    true => None,
                    false => Some(BodyEvent::End(None)),
                },
                Now::Text(_) => ready!(self.poll_text(queue, cx)),
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
        let ahead_max = self.includer.ahead_max().saturating_sub(usize::from(is_busy));
        let page = Arc::clone(&self.page);
        let pieces = pieces_of(&page, &self.frames);
        let Some(frame) = self.frames.last_mut() else { return };
        while frame.begun.len() < ahead_max && frame.begun_to < pieces.len() {
            if let Piece::Include(include) = &pieces[frame.begun_to] {
                frame.begun.push_back(AskedInclude::of(self.includer.begin(&include.src)));
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
            Piece::Text(range) => self.now = Now::Text(range.clone()),
            Piece::Include(Include { alt, goes_on, .. }) => {
                let begun = frame.begun.pop_front().unwrap_or(AskedInclude::Failed);
                self.now = Now::Awaiting { begun, alt: alt.clone(), goes_on: *goes_on };
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

    /// Asks for all that the innermost list includes.
    fn begin_all(&mut self) {
        let page = Arc::clone(&self.page);
        let pieces = pieces_of(&page, &self.frames);
        let Some(frame) = self.frames.last_mut() else { return };
        for piece in pieces {
            if let Piece::Include(include) = piece {
                frame.begun.push_back(AskedInclude::of(self.includer.begin(&include.src)));
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
                Branch::Page | Branch::Except(_) => unreachable!("only an attempt is judged"),
            };
        }
        self.now = Now::Next;
        Poll::Ready(None)
    }

    fn poll_answer(&mut self, cx: &Context<'_>) -> Poll<Option<BodyEvent>> {
        let Now::Awaiting { begun, alt, goes_on } = &mut self.now else { unreachable!("an answer is awaited") };
        ready!(begun.poll_answered(cx));
        if self.includer.judges() && !begun.is_well() {
            if let Some(alt) = alt.take() {
                *begun = AskedInclude::of(self.includer.begin(&alt));
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
        let mut is_needed = self.includer.judges();
        if let Now::Flowing { fragment, bytes, goes_on, .. } = std::mem::replace(&mut self.now, Now::Next) {
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
    fn of(fragment: Option<Fragment>) -> AskedInclude {
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
            Branch::Attempt(of) | Branch::Except(of) => match &pieces[of] {
                Piece::Try { attempt, .. } if frame.branch == Branch::Attempt(of) => attempt,
                Piece::Try { except, .. } => except,
                Piece::Text(_) | Piece::Include(_) => unreachable!("an alternative is one"),
            },
        };
    }
    pieces
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::task::Waker;

    use esi::{Options, Scanner};

    use super::*;
    use crate::body::BodySource;
    use crate::included::{self, IncludedClient};

    /// Remembers what was asked for, in order, and lets the test answer.
    struct Asked {
        all: RefCell<Vec<(String, Option<IncludedClient>)>>,
        ahead_max: usize,
        judges: bool,
    }

    impl Includer for Asked {
        fn begin(&self, src: &[u8]) -> Option<Fragment> {
            let src = String::from_utf8_lossy(src).into_owned();
            if src == "/refused" {
                return None;
            }
            let (client, fragment) = included::pair();
            self.all.borrow_mut().push((src, Some(client)));
            Some(fragment)
        }

        fn ahead_max(&self) -> usize {
            self.ahead_max
        }

        fn judges(&self) -> bool {
            self.judges
        }
    }

    impl Asked {
        fn new(ahead_max: usize, judges: bool) -> Rc<Asked> {
            Rc::new(Asked { all: RefCell::default(), ahead_max, judges })
        }

        fn srcs(&self) -> Vec<String> {
            self.all.borrow().iter().map(|(src, _)| src.clone()).collect()
        }

        /// The answer to the first that was asked for there and has none yet.
        fn answer(&self, src: &str, status: u16, body: &str) {
            let mut all = self.all.borrow_mut();
            let (_, client) = all.iter_mut().find(|(asked, client)| asked == src && client.is_some()).expect("asked");
            let mut client = client.take().unwrap();
            let body = Box::new(Body::from(BodySource::Bytes(body.to_owned().into())));
            tokio::task::spawn_local(async move { client.send(IncludedAnswer { status, body }).await });
        }
    }

    fn assembly(text: &str, asked: &Rc<Asked>) -> Assembly {
        let mut scanner = Scanner::new(Options::default());
        scanner.push(text.as_bytes());
        let page = EsiPage { document: scanner.finish(), is_gzipped: false };
        let text = BodySource::Bytes(Bytes::copy_from_slice(text.as_bytes())).into();
        Assembly::new(text, Arc::new(page), Rc::clone(asked) as Rc<dyn Includer>)
    }

    /// What goes out until something is waited for, and whether that was the end.
    async fn pull(assembly: &mut Assembly) -> (String, Option<Option<End>>) {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let (mut queue, mut cx) = (VecDeque::new(), Context::from_waker(Waker::noop()));
        let ended = loop {
            match assembly.poll(&mut queue, &mut cx) {
                Poll::Ready(BodyEvent::More) => {}
                Poll::Ready(BodyEvent::End(_)) => break Some(None),
                Poll::Ready(BodyEvent::Broken(end)) => break Some(Some(end)),
                Poll::Ready(BodyEvent::Pages) => unreachable!("bytes are asked for"),
                Poll::Pending => break None,
            }
        };
        let text = queue.iter().flat_map(|piece| piece.to_vec()).collect();
        (String::from_utf8(text).unwrap(), ended)
    }

    fn play(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, test);
    }

    const PAGE: &str = "a<esi:include src=\"/1\"/>b<esi:include src=\"/2\"/>c<esi:include src=\"/3\"/>d";

    #[test]
    fn parts_are_asked_for_side_by_side_and_go_out_in_their_order() {
        play(async {
            let asked = Asked::new(2, false);
            let mut page = assembly(PAGE, &asked);
            assert_eq!(pull(&mut page).await, ("a".to_owned(), None));
            assert_eq!(asked.srcs(), ["/1", "/2"]);
            asked.answer("/2", 200, "[2]");
            assert_eq!(pull(&mut page).await, (String::new(), None));
            asked.answer("/1", 200, "[1]");
            assert_eq!(pull(&mut page).await, ("[1]b[2]c".to_owned(), None));
            assert_eq!(asked.srcs(), ["/1", "/2", "/3"]);
            asked.answer("/3", 503, "[3]");
            assert_eq!(pull(&mut page).await, ("[3]d".to_owned(), Some(None)));
        });
    }

    #[test]
    fn nothing_is_asked_for_a_page_that_nobody_sends_and_who_leaves_is_told_to_the_parts() {
        play(async {
            let asked = Asked::new(8, false);
            let mut page = assembly(PAGE, &asked);
            assert!(asked.srcs().is_empty());
            pull(&mut page).await;
            let cx = Context::from_waker(Waker::noop());
            let has_left = || asked.all.borrow().iter().all(|(_, client)| client.as_ref().unwrap().has_left(&cx));
            assert!(!has_left());
            drop(page);
            assert!(has_left());
        });
    }

    #[test]
    fn what_cannot_be_asked_or_is_not_answered_leaves_nothing() {
        play(async {
            let asked = Asked::new(8, false);
            let mut page = assembly("a<esi:include src=\"/refused\"/>b<esi:include src=\"/1\"/>c", &asked);
            assert_eq!(pull(&mut page).await, ("ab".to_owned(), None));
            asked.all.borrow_mut().clear();
            assert_eq!(pull(&mut page).await, ("c".to_owned(), Some(None)));
        });
    }

    #[test]
    fn where_failures_count_there_is_another_or_nothing_or_an_end() {
        play(async {
            let asked = Asked::new(8, true);
            let text = "a<esi:include src=\"/1\" alt=\"/2\"/>b<esi:include src=\"/1\" onerror=\"continue\"/>c<esi:include src=\"/1\"/>d";
            let mut page = assembly(text, &asked);
            pull(&mut page).await;
            (0..3).for_each(|_| asked.answer("/1", 404, "gone"));
            assert_eq!(pull(&mut page).await, (String::new(), None));
            asked.answer("/2", 200, "[2]");
            assert_eq!(pull(&mut page).await, ("[2]bc".to_owned(), Some(Some(End::Cut(INCLUDE_FAILED)))));
        });
    }

    #[test]
    fn an_attempt_goes_out_when_all_of_it_is_well_and_not_before() {
        const TRY: &str = "a<esi:try><esi:attempt>b<esi:include src=\"/1\"/><esi:include src=\"/2\"/></esi:attempt>\
                           <esi:except>c<esi:include src=\"/3\"/></esi:except></esi:try>d";
        for (status, expect) in [(200, "b[1][2]d"), (500, "c[3]d")] {
            play(async {
                let asked = Asked::new(1, false);
                let mut page = assembly(TRY, &asked);
                assert_eq!(pull(&mut page).await, ("a".to_owned(), None));
                assert_eq!(asked.srcs(), ["/1", "/2"]);
                asked.answer("/1", 200, "[1]");
                assert_eq!(pull(&mut page).await, (String::new(), None));
                asked.answer("/2", status, "[2]");
                let (mut all, mut ended) = pull(&mut page).await;
                if ended.is_none() {
                    asked.answer("/3", 200, "[3]");
                    let (more, end) = pull(&mut page).await;
                    all += &more;
                    ended = end;
                }
                assert_eq!((all.as_str(), ended), (expect, Some(None)));
            });
        }
    }

    #[test]
    fn a_text_that_is_shorter_than_it_was_breaks_off() {
        play(async {
            let asked = Asked::new(8, false);
            let mut page = assembly(PAGE, &asked);
            page.text = BodySource::Bytes(Bytes::from_static(b"a<esi")).into();
            pull(&mut page).await;
            ["/1", "/2", "/3"].iter().for_each(|src| asked.answer(src, 200, ""));
            assert_eq!(pull(&mut page).await, (String::new(), Some(Some(End::Cut(CUT_SHORT)))));
        });
    }
}
