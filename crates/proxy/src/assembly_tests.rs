//! A page that is put together, over parts that the test answers.

use std::cell::RefCell;
use std::task::Waker;

use cache::PagePiece;
use coding::{Coding, PieceEncoder};
use esi::{Options, Scanner, VariableName};

use super::*;
use crate::body::BodySource;
use crate::coding_threads::CodingThreads;
use crate::included::{self, IncludedClient, PageForm, PieceMaking};
use crate::part_in_gzip;

const BOUNDS: PageBounds = PageBounds { ahead_max: 8, bytes_max: 1 << 20, wait_max: Duration::from_secs(600) };

/// Remembers what was asked for, in order, and lets the test answer.
struct TestedParts {
    all: RefCell<Vec<(String, Option<IncludedClient>)>>,
    bounds: PageBounds,
    judges: bool,
}

impl Includer for TestedParts {
    fn begin(&self, src: &[u8]) -> Option<Fragment> {
        let src = String::from_utf8_lossy(src).into_owned();
        if src == "/refused" {
            return None;
        }
        let (client, fragment) = included::pair(PageForm::Text);
        self.all.borrow_mut().push((src, Some(client)));
        Some(fragment)
    }

    fn bounds(&self) -> PageBounds {
        self.bounds
    }

    fn judges(&self) -> bool {
        self.judges
    }
}

impl Variables for TestedParts {
    fn value(&self, name: VariableName, key: Option<&[u8]>) -> Option<Vec<u8>> {
        (name == VariableName::Cookie && key == Some(b"id")).then(|| b"<7>".to_vec())
    }
}

impl TestedParts {
    fn new(ahead_max: usize, judges: bool) -> Rc<TestedParts> {
        Rc::new(TestedParts { all: RefCell::default(), bounds: PageBounds { ahead_max, ..BOUNDS }, judges })
    }

    fn within(bounds: PageBounds) -> Rc<TestedParts> {
        Rc::new(TestedParts { all: RefCell::default(), bounds, judges: false })
    }

    fn srcs(&self) -> Vec<String> {
        self.all.borrow().iter().map(|(src, _)| src.clone()).collect()
    }

    /// Whose answer is still to come, the first of those that were asked for there.
    fn client(&self, src: &str) -> IncludedClient {
        let mut all = self.all.borrow_mut();
        let (_, client) = all.iter_mut().find(|(asked, client)| asked == src && client.is_some()).expect("asked");
        client.take().unwrap()
    }

    fn answer(&self, src: &str, status: u16, body: &str) {
        let mut client = self.client(src);
        let body = Box::new(Body::from(BodySource::Bytes(body.to_owned().into())));
        tokio::task::spawn_local(async move { client.send(IncludedAnswer { status, body }).await });
    }

    /// The same for a page in gzip.
    fn answer_in_gzip(&self, src: &str, body: Body, is_gzip: bool) {
        let mut client = self.client(src);
        let by = PieceMaking { threads: Arc::new(CodingThreads::none()), counters: Arc::default() };
        let body = part_in_gzip::of(body, is_gzip, &PageForm::Gzip(by));
        tokio::task::spawn_local(async move { client.send(IncludedAnswer { status: 200, body }).await });
    }
}

fn assembly(text: &str, asked: &Rc<TestedParts>) -> Assembly {
    let mut scanner = Scanner::new(Options { has_variables: true, ..Options::default() });
    scanner.push(text.as_bytes());
    let page = EsiPage { document: scanner.finish(), in_gzip: None };
    let text = BodySource::Bytes(Bytes::copy_from_slice(text.as_bytes())).into();
    Assembly::new(text, Arc::new(page), Rc::clone(asked) as Rc<dyn Includer>, false)
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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

const PAGE: &str = "a<esi:include src=\"/1\"/>b<esi:include src=\"/2\"/>c<esi:include src=\"/3\"/>d";

#[test]
fn parts_are_asked_for_side_by_side_and_go_out_in_their_order() {
    play(async {
        let asked = TestedParts::new(2, false);
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
        let asked = TestedParts::new(8, false);
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
        let asked = TestedParts::new(8, false);
        let mut page = assembly("a<esi:include src=\"/refused\"/>b<esi:include src=\"/1\"/>c", &asked);
        assert_eq!(pull(&mut page).await, ("ab".to_owned(), None));
        asked.all.borrow_mut().clear();
        assert_eq!(pull(&mut page).await, ("c".to_owned(), Some(None)));
    });
}

#[test]
fn where_failures_count_there_is_another_or_nothing_or_an_end() {
    play(async {
        let asked = TestedParts::new(8, true);
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
            let asked = TestedParts::new(1, false);
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
fn what_the_request_says_stands_in_the_page_and_chooses_what_does() {
    play(async {
        let asked = TestedParts::new(8, false);
        let text = "a<esi:vars>$(HTTP_COOKIE{id})|$(HTTP_HOST|none)</esi:vars><esi:choose><esi:when test=\"$(HTTP_HOST)\">b\
                    <esi:include src=\"/never\"/></esi:when><esi:when test=\"$(HTTP_COOKIE{id})=='&lt;7&gt;'\">c\
                    <esi:include src=\"/x?$(HTTP_COOKIE{id})\"/></esi:when><esi:otherwise>d</esi:otherwise></esi:choose>e\
                    <esi:choose><esi:when test=\"$(HTTP_HOST)\">f</esi:when><esi:otherwise>g</esi:otherwise></esi:choose>";
        let mut page = assembly(text, &asked);
        assert_eq!(pull(&mut page).await, ("a&lt;7&gt;|nonec".to_owned(), None));
        assert_eq!(asked.srcs(), ["/x?%3C7%3E"]);
        asked.answer("/x?%3C7%3E", 200, "[x]");
        assert_eq!(pull(&mut page).await, ("[x]eg".to_owned(), Some(None)));
    });
}

#[test]
fn a_text_that_is_shorter_than_it_was_breaks_off() {
    play(async {
        let asked = TestedParts::new(8, false);
        let mut page = assembly(PAGE, &asked);
        page.text = BodySource::Bytes(Bytes::from_static(b"a<esi")).into();
        pull(&mut page).await;
        ["/1", "/2", "/3"].iter().for_each(|src| asked.answer(src, 200, ""));
        assert_eq!(pull(&mut page).await, (String::new(), Some(Some(End::Cut(CUT_SHORT)))));
    });
}

#[test]
fn a_page_breaks_off_where_it_is_longer_than_it_may_be() {
    play(async {
        let asked = TestedParts::within(PageBounds { bytes_max: 10, ..BOUNDS });
        let mut page = assembly("a<esi:include src=\"/1\"/>b", &asked);
        pull(&mut page).await;
        asked.answer("/1", 200, "12345678");
        assert_eq!(pull(&mut page).await, ("12345678b".to_owned(), Some(None)), "ten bytes may be");
        let mut page = assembly("a<esi:include src=\"/2\"/>b", &asked);
        pull(&mut page).await;
        asked.answer("/2", 200, "1234567890");
        let (_, ended) = pull(&mut page).await;
        assert_eq!(ended, Some(Some(End::Cut(TOO_LONG))));
    });
}

#[test]
fn a_page_breaks_off_when_it_has_waited_for_so_long() {
    play(async {
        let asked = TestedParts::within(PageBounds { wait_max: Duration::from_millis(5), ..BOUNDS });
        let mut page = assembly(PAGE, &asked);
        let mut queue = VecDeque::new();
        let ended = std::future::poll_fn(|cx| {
            loop {
                match std::task::ready!(page.poll(&mut queue, cx)) {
                    BodyEvent::More => {}
                    event => return Poll::Ready(event),
                }
            }
        });
        assert!(matches!(ended.await, BodyEvent::Broken(End::Cut(WAITED_TOO_LONG))));
    });
}

/// The same page, its text stored in gzip.
fn assembly_in_gzip(text: &str, asked: &Rc<TestedParts>) -> Assembly {
    let mut scanner = Scanner::new(Options { has_variables: true, ..Options::default() });
    scanner.push(text.as_bytes());
    let document = scanner.finish();
    let (mut encoder, mut gzip, mut pieces, mut at) = (PieceEncoder::new(6), Vec::new(), Vec::new(), 0);
    for range in document.texts() {
        let (from, to) = (range.start as usize, range.end as usize);
        encoder.between(&text.as_bytes()[at..from], &mut gzip).unwrap();
        let piece = encoder.piece(&text.as_bytes()[from..to], &mut gzip).unwrap();
        pieces.push(PagePiece { text_at: range.start, gzip: piece });
        at = to;
    }
    encoder.between(&text.as_bytes()[at..], &mut gzip).unwrap();
    encoder.finish(&mut gzip).unwrap();
    let page = EsiPage { document, in_gzip: Some(pieces) };
    let text = BodySource::Bytes(gzip.into()).into();
    Assembly::new(text, Arc::new(page), Rc::clone(asked) as Rc<dyn Includer>, true)
}

fn ungzipped(gzip: &[u8]) -> String {
    let (mut decoder, mut out) = (coding::Decoder::new(Coding::Gzip, coding::Bounds::NONE).unwrap(), Vec::new());
    assert_eq!(decoder.decode(gzip, 1 << 20, &mut out).unwrap().taken, gzip.len());
    decoder.finish().unwrap();
    String::from_utf8(out).unwrap()
}

/// All that goes out.
fn pull_bytes(assembly: &mut Assembly, out: &mut Vec<u8>) -> Option<Option<End>> {
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
    out.extend(queue.iter().flat_map(|piece| piece.to_vec()));
    ended
}

#[test]
fn a_page_in_gzip_is_joined_of_pieces_of_gzips() {
    play(async {
        let asked = TestedParts::new(8, false);
        let text = "a<esi:include src=\"/gzip\"/><esi:remove>x</esi:remove>b<esi:vars>$(HTTP_COOKIE{id})</esi:vars>\
                    <esi:include src=\"/plain\"/><esi:include src=\"/page\"/><esi:include src=\"/gzip\"/>c";
        let mut page = assembly_in_gzip(text, &asked);
        let mut out = Vec::new();
        assert_eq!(pull_bytes(&mut page, &mut out), None);
        let inner = assembly_in_gzip("<esi:include src=\"/deep\"/>[inner]", &asked);
        let mut gzip = Vec::new();
        let mut encoder = coding::Encoder::new(Coding::Gzip, 9).unwrap();
        encoder.encode(b"[gzip]", &mut gzip).unwrap();
        encoder.finish(&mut gzip).unwrap();
        let gzip = || Body::from(BodySource::Bytes(gzip.clone().into()));
        asked.answer_in_gzip("/gzip", gzip(), true);
        asked.answer_in_gzip("/plain", BodySource::Bytes(Bytes::from_static(b"[plain]")).into(), false);
        asked.answer_in_gzip("/page", BodySource::Assembled(Box::new(inner)).into(), true);
        asked.answer_in_gzip("/gzip", gzip(), true);
        for _ in 0..4 {
            tokio::task::yield_now().await;
            pull_bytes(&mut page, &mut out);
        }
        asked.answer_in_gzip("/deep", gzip(), true);
        tokio::task::yield_now().await;
        assert_eq!(pull_bytes(&mut page, &mut out), Some(None));
        assert_eq!(ungzipped(&out), "a[gzip]b&lt;7&gt;[plain][gzip][inner][gzip]c");
        // Of the page within there is no second head.
        assert_eq!(out.windows(3).filter(|bytes| bytes == &[0x1f, 0x8b, 8]).count(), 1);
    });
}

#[test]
fn a_part_that_is_no_gzip_breaks_a_page_in_gzip_off_where_failures_count() {
    for (judges, expect) in [(true, Some(Some(End::Cut(INCLUDE_FAILED)))), (false, Some(None))] {
        play(async {
            let asked = TestedParts::new(8, judges);
            let mut page = assembly_in_gzip("a<esi:include src=\"/1\"/>b", &asked);
            let mut out = Vec::new();
            pull_bytes(&mut page, &mut out);
            asked.answer_in_gzip("/1", BodySource::Bytes(Bytes::from_static(b"<html>")).into(), true);
            tokio::task::yield_now().await;
            assert_eq!(pull_bytes(&mut page, &mut out), expect);
        });
    }
}
