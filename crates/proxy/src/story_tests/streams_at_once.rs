//! What goes to a stream of HTTP/2 at once, and what goes on as a transaction.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;

use message::Scheme;
use wire::http2::hpack::{BlockDecoder, ListLimits};
use wire::http2::{
    ConnectionEvent, FRAME_HEAD_BYTES, FrameType, HeadArena, Http2Connection, Http2Options, PREFACE, StreamId,
    frame_head,
};
use wire::limits::FRAME_PAYLOAD_BYTES_MIN;
use wire::{ChunkedLimits, HeadLimits};

use super::files_beneath_a_root::beneath;
use super::*;
use crate::accepted::Accepted;
use crate::clock::Moment;
use crate::connection::Connection;
use crate::connection_addresses::ConnectionAddresses;
use crate::exchange_opening;
use crate::http2_outbox::Http2Outbox;
use crate::http2_streams::Http2Streams;
use crate::instant_stream::InstantStream;
use crate::peer::Peer;
use crate::request_source::Opened;
use crate::settings::ListenMode;
use crate::static_files::finding::tests::TestFolder;
use crate::transaction::Step;

const OPTIONS: Http2Options<'static> = Http2Options {
    head_limits: &HeadLimits::REQUEST,
    trailer_limits: &ChunkedLimits::DEFAULT,
    scheme: Scheme::Http,
    believes_scheme: false,
    streams_max: 100,
    extended_connect: false,
    peer_frame_bytes_min: FRAME_PAYLOAD_BYTES_MIN,
};
const OTHER: StreamId = StreamId(1);
const STREAM: StreamId = StreamId(3);
/// END_STREAM and END_HEADERS.
const WHOLE: u8 = 5;
const END_STREAM: u8 = 1;

/// What went at once: whether that was all, the fields of the head, and of each frame of the body how long it is and whether it is the last.
struct AtOnce {
    is_all: bool,
    head: String,
    body: Vec<(usize, bool)>,
}

/// Asks for a path on a stream of a client whose windows have so many bytes, while another stream waits to write or none does.
fn ask(story: &Story, path: &str, window: u32, is_other_ready: bool) -> AtOnce {
    let (ours, _theirs) = UnixStream::pair().expect("a pair of sockets");
    ours.set_nonblocking(true).expect("a socket");
    let asked = [
        PREFACE,
        &frame(FrameType::Settings, 0, StreamId::CONNECTION, &[&[0, 4][..], &window.to_be_bytes()].concat()),
        &frame(FrameType::WindowUpdate, 0, StreamId::CONNECTION, &1_000_000_u32.to_be_bytes()),
        &frame(FrameType::Headers, WHOLE, OTHER, &head("/other")),
        &frame(FrameType::Headers, WHOLE, STREAM, &head(path)),
    ]
    .concat();
    let _guard = story.runtime.enter();
    let peer = Peer::of(SocketAddr::from(([127, 0, 0, 1], 9)));
    let accepted = Accepted {
        socket: ours.into(),
        is_unix: true,
        peer,
        proxy_protocol: false,
        mode: ListenMode::Accelerate,
        name: None,
        h2c: true,
        tls: None,
        permit: None,
    };
    let mut connection = Connection::open(&story.core, accepted).expect("it can be registered");
    let streams = Http2Streams::new(Http2Connection::of_client(&OPTIONS), &story.core.shared.cache, false);
    let mut outbox = Http2Outbox::new(false);
    let addresses = Rc::new(ConnectionAddresses::of(&connection.socket, peer.text()));
    let (mut arena, mut at) = (HeadArena::default(), 0);
    loop {
        let received = streams.machine.borrow_mut().receive(&asked[at..], &mut arena, &OPTIONS, 0);
        let received = received.expect("it is well said");
        at += received.consumed;
        let Some(ConnectionEvent::Request { stream, head, .. }) = received.event else { continue };
        if stream != STREAM {
            streams.machine.borrow_mut().set_ready(stream, is_other_ready);
            continue;
        }
        let mut source = InstantStream {
            connection: &mut connection,
            streams: &streams,
            outbox: &mut outbox,
            addresses: &addresses,
            id: STREAM,
            is_whole: true,
        };
        let opened = exchange_opening::open(&story.core, &mut source, head.received.clone(), Moment::now());
        let is_all = match opened {
            Opened::Answered { persistent, client_closes } => {
                assert!(persistent && !client_closes);
                true
            }
            Opened::Begun(_, Step::Transmit(_)) => false,
            Opened::Begun(_, step) => panic!("it goes on as {:?}", step.state()),
        };
        return at_once(is_all, &outbox.framed);
    }
}

fn frame(frame_type: FrameType, flags: u8, stream: StreamId, payload: &[u8]) -> Vec<u8> {
    [&frame_head(frame_type, flags, stream, payload.len())[..], payload].concat()
}

/// GET, over HTTP in the clear, of a.test.
fn head(path: &str) -> Vec<u8> {
    let line = |index: u8, value: &str| [&[index, value.len() as u8][..], value.as_bytes()].concat();
    [vec![0x82, 0x86], line(1, "a.test"), line(4, path)].concat()
}

fn at_once(is_all: bool, framed: &[u8]) -> AtOnce {
    let (mut rest, mut block, mut body) = (framed, Vec::new(), Vec::new());
    while let Some((frame_head, behind)) = rest.split_first_chunk::<FRAME_HEAD_BYTES>() {
        let length = u32::from_be_bytes([0, frame_head[0], frame_head[1], frame_head[2]]) as usize;
        let (payload, behind) = behind.split_at(length);
        match frame_head[3] {
            kind if kind == FrameType::Headers as u8 => block.extend_from_slice(payload),
            kind if kind == FrameType::Data as u8 => {
                assert!(payload.iter().all(|&byte| byte == b'a'), "it is the body's");
                body.push((length, frame_head[4] == END_STREAM));
            }
            _ => {}
        }
        rest = behind;
    }
    let wide = ListLimits { list_bytes_max: 1 << 20, lines_max: 1000 };
    let mut head = String::new();
    let decoded = BlockDecoder::new().decode(&block, wide, &mut Vec::new(), |line, text| {
        let (name, value) = (&text[line.at..line.value_at()], &text[line.value_at()..line.end()]);
        head += &format!("{}: {}\n", String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        true
    });
    assert_eq!(decoded, Ok(None));
    AtOnce { is_all, head, body }
}

/// Each is asked for twice before, so that the core's own table has it.
fn warm(story: &Story, bytes: usize) {
    story.origin([fresh(60, &"a".repeat(bytes))]);
    for _ in 0..2 {
        assert_eq!(story.get("/page", &[]).status(), 200);
    }
}

#[test]
fn a_stored_answer_goes_at_once_in_as_many_frames_as_it_needs() {
    let story = Story::builtin();
    warm(&story, 40_000);
    let answered = ask(&story, "/page", 1 << 20, false);
    assert!(answered.is_all && answered.head.starts_with(":status: 200\n"), "{}", answered.head);
    assert!(answered.head.contains("content-length: 40000\n") && answered.head.contains("larder; hit; ttl="));
    assert_eq!(answered.body, [(16_375, false), (16_375, false), (7_250, true)]);
}

#[test]
fn what_the_window_does_not_let_through_goes_on_as_a_transaction() {
    let story = Story::builtin();
    warm(&story, 40_000);
    let begun = ask(&story, "/page", 20_000, false);
    assert!(!begun.is_all && begun.head.contains("content-length: 40000\n"));
    assert_eq!(begun.body, [(16_375, false), (3_625, false)]);
    let shut = ask(&story, "/page", 0, false);
    assert!(!shut.is_all && shut.head.contains(":status: 200\n") && shut.body.is_empty());
}

#[test]
fn several_frames_do_not_go_before_another_stream_that_waits() {
    let story = Story::builtin();
    warm(&story, 40_000);
    let behind = ask(&story, "/page", 1 << 20, true);
    assert!(!behind.is_all && behind.body.is_empty());
    let story = Story::builtin();
    warm(&story, 16_375);
    let one = ask(&story, "/page", 1 << 20, true);
    assert!(one.is_all && one.body == [(16_375, true)]);
}

#[test]
fn a_hit_under_a_program_goes_at_once_with_the_head_that_it_made() {
    let story = Story::vcl(
        "sub vcl_deliver { set resp.http.X-Own = \"Said\"; set resp.http.Connection = \"close, X-Gone\";
        set resp.http.X-Gone = \"1\"; unset resp.http.Via; }",
    );
    warm(&story, 20_000);
    let answered = ask(&story, "/page", 1 << 20, false);
    assert!(answered.is_all, "{}", answered.head);
    assert_eq!(answered.body, [(16_375, false), (3_625, true)]);
    for said in [":status: 200\n", "x-own: Said\n", "content-length: 20000\n", "accept-ranges: bytes\n", "x-varnish: "]
    {
        assert!(answered.head.contains(said), "{said}: {}", answered.head);
    }
    for kept_back in ["via", "connection", "x-gone"] {
        assert!(!answered.head.contains(&format!("{kept_back}: ")), "{kept_back}: {}", answered.head);
    }
}

#[test]
fn a_file_that_is_open_goes_at_once() {
    let folder = TestFolder::new("story-stream");
    folder.write("page.txt", &"a".repeat(20_000));
    let story = beneath(&folder);
    for _ in 0..2 {
        assert_eq!(story.get("/page.txt", &[]).status(), 200);
    }
    for _ in 0..2 {
        let answered = ask(&story, "/page.txt", 1 << 20, false);
        assert!(answered.is_all && answered.head.contains("content-type: text/plain\n"), "{}", answered.head);
        assert!(answered.head.contains("content-length: 20000\n") && answered.head.contains("date: "));
        assert_eq!(answered.body, [(16_375, false), (3_625, true)]);
    }
}
