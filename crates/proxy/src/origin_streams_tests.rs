//! What a fetch hears of its stream, whatever an origin says: both ends of a connection in memory.

use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use cache::{CacheSettings, Flight, Notifier};
use message::Status;
use wire::http2::hpack;

use super::*;
use crate::http2_streams::Queued;
use crate::limits::ORIGIN_UNTAKEN_BYTES_MAX;

struct Unheard;

impl Notifier for Unheard {
    fn post(&self, _: usize, _: Arc<Flight>) {}
}

/// Both ends.
struct Both {
    streams: OriginStreams,
    origin: Http2Connection,
    ours: HeadArena,
    its: HeadArena,
    /// Framed by the origin, and not sent.
    said: Vec<u8>,
    /// What the origin has heard.
    heard: Vec<String>,
}

impl Both {
    /// The greetings are exchanged.
    fn new(streams_max: u32) -> Both {
        let terms = OriginTerms {
            response_head: HeadLimits::RESPONSE,
            trailers: ChunkedLimits::DEFAULT,
            streams_max,
            scheme: Scheme::Http,
        };
        let cache = Cache::new(CacheSettings::default(), Arc::new(Unheard));
        let streams = OriginStreams::new(terms, &cache);
        let origin = Http2Connection::of_client(&streams.terms.options());
        let (ours, its) = (HeadArena::default(), HeadArena::default());
        let mut both = Both { streams, origin, ours, its, said: Vec::new(), heard: Vec::new() };
        both.go().expect("the greetings are good");
        both.heard.clear();
        both
    }

    /// Moves all that either side has to say.
    fn go(&mut self) -> Result<(), ConnectionError> {
        loop {
            self.streams.frame();
            let up = std::mem::take(&mut *self.streams.framed.borrow_mut());
            self.hear(&up);
            let mut down = self.origin.control().to_vec();
            self.origin.control_written(down.len());
            down.append(&mut self.said);
            if up.is_empty() && down.is_empty() {
                return Ok(());
            }
            assert_eq!(self.streams.receive(&down, &mut self.ours, 0)?, down.len());
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        let (terms, mut at) = (self.streams.terms, 0);
        loop {
            let received = self.origin.receive(&bytes[at..], &mut self.its, &terms.options(), 0).expect("we are good");
            at += received.consumed;
            let word = match received.event {
                None => return,
                Some(ConnectionEvent::Request { stream, is_whole, .. }) => format!("asked {} {is_whole}", stream.0),
                Some(ConnectionEvent::Data { stream, range, is_last }) => {
                    self.origin.release(stream, range.len());
                    format!("data {} {} {is_last}", stream.0, range.len())
                }
                Some(ConnectionEvent::StreamEnded { stream, code, .. }) => format!("ended {} {code:?}", stream.0),
                Some(_) => continue,
            };
            self.heard.push(word);
        }
    }

    /// A GET, of which the origin has heard.
    fn ask(&mut self) -> StreamId {
        let mut block = vec![0x82, 0x86, 0x84];
        block.extend_from_slice(&[0x01, 1, b't']);
        let id = self.streams.open(Method::Get, &block, true).expect("there is room");
        self.go().expect("a good request");
        id
    }

    fn head(&mut self, id: StreamId, status: u16, ends: bool) {
        let mut block = Vec::new();
        hpack::write_status(Status(status), &mut block);
        let frames = self.origin.head_frames(id, block.len(), ends).expect("the stream is open");
        frames.for_each(|frame| self.said.extend_from_slice(frame.bytes()));
        self.said.extend_from_slice(&block);
    }

    /// As many of these bytes as the windows let it send.
    fn data(&mut self, id: StreamId, mut bytes: usize, ends: bool) -> usize {
        let mut sent = 0;
        loop {
            let length = self.origin.sendable(id).min(bytes);
            bytes -= length;
            let Some(head) = self.origin.data_frame(id, length, ends && bytes == 0) else { return sent };
            self.said.extend_from_slice(&head);
            self.said.resize(self.said.len() + length, b'x');
            sent += length;
            if bytes == 0 || length == 0 {
                return sent;
            }
        }
    }

    fn next_head(&self, id: StreamId) -> Option<Result<u16, StreamLoss>> {
        match self.streams.poll_head(id, &Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer.map(|head| head.head.status.0)),
            Poll::Pending => None,
        }
    }

    /// So many bytes, an end, or a loss.
    fn next_piece(&self, id: StreamId) -> Option<Result<Option<usize>, StreamLoss>> {
        match self.streams.poll_body(id, &Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(Ok(bytes))) => Some(Ok(Some(bytes.len()))),
            Poll::Ready(Ok(Err(_))) => Some(Ok(None)),
            Poll::Ready(Err(loss)) => Some(Err(loss)),
            Poll::Pending => None,
        }
    }
}

#[test]
fn heads_come_before_the_body_and_the_end_behind_it() {
    let mut both = Both::new(10);
    let (one, other) = (both.ask(), both.ask());
    assert_eq!(both.heard, ["asked 1 true", "asked 3 true"]);
    assert_eq!((both.next_head(one), both.next_piece(one)), (None, None));
    both.head(one, 103, false);
    both.head(one, 200, false);
    both.data(one, 5, true);
    both.head(other, 404, true);
    both.go().expect("a good answer");
    assert_eq!((both.next_head(one), both.next_head(one)), (Some(Ok(103)), Some(Ok(200))));
    assert_eq!((both.next_piece(one), both.next_piece(one)), (Some(Ok(Some(5))), Some(Ok(None))));
    assert_eq!((both.next_head(other), both.next_piece(other)), (Some(Ok(404)), Some(Ok(None))));
    [one, other].into_iter().for_each(|id| both.streams.close(id));
    both.go().expect("nothing more is said");
    assert_eq!(both.heard.len(), 2, "both were over: {:?}", both.heard);
}

#[test]
fn a_stream_says_why_it_was_lost() {
    let mut both = Both::new(10);
    let ids: Vec<StreamId> = (0..5).map(|_| both.ask()).collect();
    both.origin.reset(ids[0], ErrorCode::RefusedStream);
    both.origin.reset(ids[1], ErrorCode::InternalError);
    both.go().expect("resets are no mistakes");
    assert_eq!(both.next_head(ids[0]), Some(Err(StreamLoss::Unprocessed)));
    assert_eq!(both.next_head(ids[1]), Some(Err(StreamLoss::Reset(ErrorCode::InternalError))));
    // A status that is none.
    let frames = both.origin.head_frames(ids[2], 1, false).expect("the stream is open");
    frames.for_each(|frame| both.said.extend_from_slice(frame.bytes()));
    both.said.push(0x82);
    both.go().expect("a mistake of the stream");
    assert_eq!(both.next_head(ids[2]), Some(Err(StreamLoss::Garbled("pseudo-field-unknown"))));
    assert!(both.heard.contains(&"ended 5 ProtocolError".to_owned()), "{:?}", both.heard);
    both.head(ids[3], 103, false);
    both.go().expect("a good answer");
    both.streams.end_all(None);
    assert_eq!(both.next_head(ids[3]), Some(Ok(103)), "what came before is told first");
    assert_eq!(both.next_head(ids[3]), Some(Err(StreamLoss::Closed { heard: true })));
    assert_eq!(both.next_head(ids[4]), Some(Err(StreamLoss::Closed { heard: false })));
}

#[test]
fn what_is_above_goaways_last_was_not_worked_on_and_no_more_is_asked() {
    let mut both = Both::new(10);
    let (one, other) = (both.ask(), both.ask());
    // GOAWAY, whose last stream is the first.
    both.said.extend_from_slice(&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    both.head(one, 200, true);
    both.go().expect("it may leave");
    assert_eq!(both.next_head(other), Some(Err(StreamLoss::Unprocessed)));
    assert_eq!(both.next_head(one), Some(Ok(200)));
    assert!(both.streams.takes_none() && both.streams.open(Method::Get, &[0x82, 0x86, 0x84], true).is_none());
}

#[test]
fn a_mistake_of_the_connection_is_told_to_all_that_were_on_it() {
    let mut both = Both::new(10);
    let ids = [both.ask(), both.ask()];
    both.said.extend_from_slice(&[0, 0, 4, 5, 4, 0, 0, 0, 1, 0, 0, 0, 2]);
    let error = both.go().expect_err("nobody asked for a push");
    both.streams.end_all(Some(error.token));
    for id in ids {
        assert_eq!(both.next_head(id), Some(Err(StreamLoss::Garbled("push-unasked"))));
    }
}

#[test]
fn who_leaves_says_so_and_hears_nothing_more() {
    let mut both = Both::new(10);
    let (one, other) = (both.ask(), both.ask());
    both.head(one, 200, false);
    both.data(one, 1_000, false);
    both.go().expect("a good answer");
    both.streams.close(one);
    // This was on its way.
    both.data(one, 1_000, false);
    both.go().expect("no mistake");
    assert_eq!(both.heard.last().map(String::as_str), Some("ended 1 Cancel"));
    assert_eq!(both.streams.queues.came_bytes(), 0);
    both.head(other, 200, true);
    both.go().expect("the connection goes on");
    assert_eq!(both.next_head(other), Some(Ok(200)));
}

/// The window of the connection is more than one stream's, and less than those of a hundred.
#[test]
fn a_body_that_nobody_takes_stops_its_stream_and_no_other() {
    let mut both = Both::new(100);
    let ids: Vec<StreamId> = (0..50).map(|_| both.ask()).collect();
    let (reader, stalled) = ids.split_first().expect("there are fifty");
    ids.iter().for_each(|id| both.head(*id, 200, false));
    let mut came = 0;
    for _ in 0..20 {
        for id in stalled {
            came += both.data(*id, 1 << 20, false);
            both.go().expect("within the windows");
        }
    }
    assert_eq!(came, stalled.len() * (128 << 10), "each has its own window, and no more");
    assert_eq!(both.streams.queues.came_bytes(), came);
    let mut taken = 0;
    while taken < 4 << 20 {
        both.data(*reader, 1 << 20, false);
        both.go().expect("within the windows");
        while let Some(Ok(Some(bytes))) = both.next_piece(*reader) {
            taken += bytes;
        }
    }
    assert!(came < ORIGIN_UNTAKEN_BYTES_MAX);
}

#[test]
fn what_waits_for_all_streams_together_is_bounded() {
    let mut both = Both::new(400);
    let ids: Vec<StreamId> = (0..400).map(|_| both.ask()).collect();
    ids.iter().for_each(|id| both.head(*id, 200, false));
    for id in &ids {
        both.data(*id, 1 << 20, false);
        both.go().expect("within the windows");
    }
    let came = both.streams.queues.came_bytes();
    let window_max = wire::limits::CONNECTION_WINDOW_BYTES_MAX as usize;
    assert!((ORIGIN_UNTAKEN_BYTES_MAX..ORIGIN_UNTAKEN_BYTES_MAX + window_max).contains(&came), "{came}");
    // When those are taken, the others come.
    for id in &ids {
        while let Some(Ok(Some(_))) = both.next_piece(*id) {}
    }
    both.go().expect("windows are given back");
    assert!(both.data(ids[399], 1 << 20, false) > 0);
}

#[test]
fn small_pieces_of_a_body_are_joined_to_frames_and_large_ones_are_cut() {
    let mut both = Both::new(10);
    let id = both.streams.open(Method::Post, &[0x83, 0x86, 0x84, 0x01, 1, b't'], false).expect("there is room");
    both.go().expect("a good request");
    both.heard.clear();
    let frame = both.streams.queues.sendable(id);
    let mut send = |pieces: &[usize], ends: bool| {
        for (nth, bytes) in pieces.iter().enumerate() {
            let is_last = ends && nth + 1 == pieces.len();
            both.streams.queues.queue(id, Queued::Data { bytes: Bytes::from(vec![b'x'; *bytes]), is_last });
        }
        both.go().expect("good frames");
        std::mem::take(&mut both.heard)
    };
    assert_eq!(send(&[3; 1_000], false), ["data 1 3000 false"]);
    assert_eq!(send(&[1, frame, 2], false), [format!("data 1 {frame} false"), "data 1 3 false".to_owned()]);
    assert_eq!(send(&[1, 2, 0], true), ["data 1 3 true"]);
}

/// A piece that needs no window is no reason to come to a stream again and again whose next one does.
#[test]
fn where_no_window_is_left_nothing_is_framed() {
    let mut both = Both::new(10);
    let id = both.streams.open(Method::Post, &[0x83, 0x86, 0x84, 0x01, 1, b't'], false).expect("there is room");
    both.go().expect("a good request");
    both.heard.clear();
    let queue = |both: &Both, bytes: usize, is_last: bool| {
        both.streams.queues.queue(id, Queued::Data { bytes: Bytes::from(vec![b'x'; bytes]), is_last });
    };
    while both.streams.queues.sendable(id) > 0 {
        queue(&both, both.streams.queues.sendable(id), false);
        both.streams.frame();
    }
    let framed = both.streams.framed.borrow().len();
    queue(&both, 0, false);
    queue(&both, 5, true);
    both.streams.frame();
    assert_eq!(both.streams.framed.borrow().len(), framed, "nobody takes it");
    both.go().expect("good frames");
    assert_eq!(both.heard.last().map(String::as_str), Some("data 1 5 true"));
}
