use message::Scheme;

use super::*;
use crate::http2::HeadFrame;
use crate::http2::frame::{ACK, END_HEADERS, END_STREAM, FrameHead, FrameType, PADDED, PRIORITY_GIVEN, frame_head};
use crate::limits::*;

pub(super) const OPTIONS: ServerOptions<'static> = ServerOptions {
    head_limits: &HeadLimits::REQUEST,
    trailer_limits: &ChunkedLimits::DEFAULT,
    scheme: Scheme::Https,
    streams_max: 100,
    extended_connect: false,
};

type Frames = Vec<Vec<u8>>;

/// A client in memory: what it sends, and what it hears.
struct Client {
    connection: ServerConnection,
    arena: HeadArena,
    now_ms: u64,
    /// What the machine has not consumed.
    kept: Vec<u8>,
    /// What it said, in order.
    heard: Vec<String>,
    /// Bodies are released as they come.
    reads_bodies: bool,
}

impl Client {
    /// Greetings have been exchanged.
    fn new() -> Client {
        let mut client = Client::silent();
        client.send(&[PREFACE, &frame(FrameType::Settings, 0, 0, &[])].concat());
        client.connection.control_written(usize::MAX);
        client.heard.clear();
        client
    }

    fn silent() -> Client {
        Client {
            connection: ServerConnection::new(&OPTIONS),
            arena: HeadArena::default(),
            now_ms: 0,
            kept: Vec::new(),
            heard: Vec::new(),
            reads_bodies: true,
        }
    }

    /// Sends bytes, and hears what comes of them and of what was kept.
    fn send(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        loop {
            let received = self.connection.receive(&self.kept, &mut self.arena, &OPTIONS, self.now_ms);
            let (consumed, told, taken) = match received {
                Ok(Received { consumed, event: Some(event) }) => {
                    let taken = match &event {
                        ConnectionEvent::Data { stream, range, .. } => Some((*stream, range.len())),
                        _ => None,
                    };
                    (consumed, told(&event), taken)
                }
                Ok(Received { consumed, event: None }) => {
                    self.kept.drain(..consumed);
                    return;
                }
                Err(error) => {
                    self.heard.push(format!("error {:?} {}", error.code, error.token));
                    self.kept.clear();
                    return;
                }
            };
            self.heard.push(told);
            self.kept.drain(..consumed);
            if let (Some((stream, bytes)), true) = (taken, self.reads_bodies) {
                self.connection.release(stream, bytes);
            }
        }
    }

    /// What the machine wants written, a word each.
    fn control(&mut self) -> Vec<String> {
        let control = self.connection.control().to_vec();
        self.connection.control_written(control.len());
        let (mut rest, mut frames) = (&control[..], Vec::new());
        while let Some(head) = FrameHead::read(rest) {
            let (payload, behind) = rest[9..].split_at(head.payload_bytes);
            let number = |at: usize| u32::from_be_bytes(*payload[at..].first_chunk::<4>().expect("four bytes"));
            let stream = head.stream.0;
            frames.push(match head.frame_type {
                FrameType::RstStream => format!("RST {stream} {:?}", ErrorCode::of_number(number(0))),
                FrameType::GoAway => {
                    let debug = String::from_utf8_lossy(&payload[8..]);
                    format!("GOAWAY {} {:?} {debug}", number(0), ErrorCode::of_number(number(4)))
                }
                FrameType::WindowUpdate => format!("WINDOW {stream} {}", number(0)),
                FrameType::Ping => format!("PING {} {}", head.flags, String::from_utf8_lossy(payload)),
                FrameType::Settings => format!("SETTINGS {} {}", head.flags, payload.len()),
                other => format!("{other:?}"),
            });
            rest = behind;
        }
        assert!(rest.is_empty(), "whole frames are queued");
        frames
    }
}

fn told(event: &ConnectionEvent<'_>) -> String {
    match event {
        ConnectionEvent::Request { stream, head, is_whole } => {
            let request = &head.received.request;
            let target = [request.method_text, b" ", request.path].concat();
            let end = if *is_whole { " whole" } else { "" };
            format!("request {} {}{end}", stream.0, String::from_utf8_lossy(&target))
        }
        ConnectionEvent::Refused { stream, refusal, .. } => format!("refused {} {}", stream.0, refusal.token),
        ConnectionEvent::Data { stream, range, is_last } => {
            format!("data {} {}{}", stream.0, range.len(), if *is_last { " last" } else { "" })
        }
        ConnectionEvent::Trailers { stream, fields } => format!("trailers {} {}", stream.0, fields.count()),
        ConnectionEvent::StreamEnded { stream, code, token } => format!("ended {} {code:?} {token}", stream.0),
        ConnectionEvent::WindowOpened { stream } => format!("window {}", stream.map_or(0, |stream| stream.0)),
        ConnectionEvent::GoneAway { code } => format!("gone {code:?}"),
    }
}

fn frame(frame_type: FrameType, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&frame_head(frame_type, flags, StreamId(stream), payload.len())[..], payload].concat()
}

/// `:method: GET`, `:scheme: https`, `:path: /`, `:authority: t`.
const GET: &[u8] = &[0x82, 0x87, 0x84, 0x01, 1, b't'];
const POST: &[u8] = &[0x83, 0x87, 0x84, 0x01, 1, b't'];

fn with_length(length: &str) -> Vec<u8> {
    [POST, &[0x0f, 0x0d, length.len() as u8], length.as_bytes()].concat()
}

fn get(stream: u32) -> Vec<u8> {
    frame(FrameType::Headers, END_HEADERS | END_STREAM, stream, GET)
}

fn post(stream: u32) -> Vec<u8> {
    frame(FrameType::Headers, END_HEADERS, stream, POST)
}

fn data(stream: u32, flags: u8, bytes: usize) -> Vec<u8> {
    frame(FrameType::Data, flags, stream, &vec![b'x'; bytes])
}

fn window_update(stream: u32, by: u32) -> Vec<u8> {
    frame(FrameType::WindowUpdate, 0, stream, &by.to_be_bytes())
}

fn rst(stream: u32) -> Vec<u8> {
    frame(FrameType::RstStream, 0, stream, &8u32.to_be_bytes())
}

fn setting(number: u16, value: u32) -> Vec<u8> {
    frame(FrameType::Settings, 0, 0, &[&number.to_be_bytes()[..], &value.to_be_bytes()].concat())
}

/// Frames of one connection: what is told, and then what is queued. The same comes of them a byte at a time, but for the
/// pieces in which DATA comes.
fn check(frames: &[Vec<u8>], expect: &[&str]) {
    let mut client = Client::new();
    client.send(&frames.concat());
    let mut heard = client.heard.clone();
    heard.extend(client.control());
    assert_eq!(heard, expect);
    let mut slow = Client::new();
    frames.concat().iter().for_each(|byte| slow.send(&[*byte]));
    let without_data = |heard: &[String]| -> Vec<String> {
        heard.iter().filter(|line| !line.starts_with("data") || line.ends_with("last")).cloned().collect()
    };
    let ends = |line: &String| if line.starts_with("data") { "last".to_string() } else { line.clone() };
    let (fast, slow): (Vec<_>, Vec<_>) =
        (without_data(&client.heard).iter().map(ends).collect(), without_data(&slow.heard).iter().map(ends).collect());
    assert_eq!(fast, slow);
}

fn check_error(frames: &[Vec<u8>], code: ErrorCode, token: &str) {
    let mut client = Client::new();
    client.send(&frames.concat());
    assert_eq!(client.heard.last(), Some(&format!("error {code:?} {token}")));
    let goaway = client.control().pop().expect("it is said");
    assert!(goaway.starts_with("GOAWAY") && goaway.ends_with(&format!("{code:?} {token}")), "{goaway}");
    client.send(&get(1001));
    assert_eq!(client.heard.last(), Some(&format!("error {code:?} {token}")), "it is final");
}

#[test]
fn a_greeting_is_exchanged() {
    let mut client = Client::silent();
    assert_eq!(client.control(), ["SETTINGS 0 18", "WINDOW 0 983041"]);
    for piece in PREFACE.chunks(5) {
        client.send(piece);
    }
    client.send(&[setting(3, 5), frame(FrameType::Settings, ACK, 0, &[]), get(1)].concat());
    assert_eq!(
        (client.heard.join(", "), client.control().join(", ")),
        ("request 1 GET / whole".into(), "SETTINGS 1 0".into())
    );
}

/// bad-inputs G01.
#[test]
fn what_is_no_greeting_is_refused() {
    for (bytes, token) in [
        (b"GET / HTTP/1.1\r\n".to_vec(), "preface-invalid"),
        (b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n".to_vec(), "preface-invalid"),
        ([PREFACE, &get(1)].concat(), "settings-missing"),
        ([PREFACE, &frame(FrameType::Settings, ACK, 0, &[])].concat(), "settings-missing"),
    ] {
        let mut client = Client::silent();
        client.send(&bytes);
        assert_eq!(client.heard, [format!("error ProtocolError {token}")]);
    }
}

#[test]
fn bodies_come_in_place_and_end() {
    check(
        &[post(1), data(1, 0, 300), data(1, END_STREAM, 5), get(3), post(5), data(5, END_STREAM, 0)],
        &[
            "request 1 POST /",
            "data 1 300",
            "data 1 5 last",
            "request 3 GET / whole",
            "request 5 POST /",
            "data 5 0 last",
        ],
    );
    let trailers = frame(FrameType::Headers, END_HEADERS | END_STREAM, 1, b"\0\x01x\x01y");
    check(&[post(1), data(1, 0, 1), trailers], &["request 1 POST /", "data 1 1", "trailers 1 1"]);
}

/// bad-inputs G12: padding is no data, and given back.
#[test]
fn padding_is_neither_told_nor_kept() {
    let mut padded = vec![3];
    padded.extend(b"abcde\0\0\0");
    check(&[post(1), frame(FrameType::Data, PADDED | END_STREAM, 1, &padded)], &["request 1 POST /", "data 1 5 last"]);
    let head = [&[2][..], GET, &[0, 0]].concat();
    check(&[frame(FrameType::Headers, PADDED | END_HEADERS | END_STREAM, 1, &head)], &["request 1 GET / whole"]);
    let all = frame(FrameType::Data, PADDED, 1, &[&[255][..], &[0; 255]].concat());
    let frames: Vec<_> = std::iter::once(post(1)).chain(std::iter::repeat_n(all, 90)).collect();
    let mut client = Client::new();
    client.send(&frames.concat());
    assert_eq!(client.heard, ["request 1 POST /"]);
    assert_eq!(
        client.connection.streams.get_mut(StreamId(1)).expect("it is open").receive_window.spend(65_535 - 90 * 256),
        Ok(())
    );
}

/// bad-inputs G02, G03, G07, G10 to G12, G14, G15: a connection that is wrong ends, and says why.
#[test]
fn mistakes_of_the_connection_end_it() {
    use ErrorCode::*;
    let rows: Vec<(Frames, ErrorCode, &str)> = vec![
        (vec![get(2)], ProtocolError, "stream-number-even"),
        (vec![get(0)], ProtocolError, "frame-on-wrong-stream"),
        (vec![get(5), get(3)], ProtocolError, "stream-number-not-ascending"),
        (vec![data(1, 0, 1)], ProtocolError, "data-on-idle-stream"),
        (vec![get(5), data(6, 0, 1)], ProtocolError, "data-on-idle-stream"),
        (vec![window_update(1, 1)], ProtocolError, "window-update-on-idle-stream"),
        (vec![rst(1)], ProtocolError, "reset-on-idle-stream"),
        (vec![data(1, 0, 16_385)], FrameSizeError, "frame-too-large"),
        (vec![frame(FrameType::Ping, 0, 0, &[0; 6])], FrameSizeError, "frame-size-wrong"),
        (vec![window_update(0, 0)], ProtocolError, "window-update-of-nothing"),
        (vec![window_update(0, u32::MAX >> 1)], FlowControlError, "connection-window-overflow"),
        (vec![frame(FrameType::Priority, 0, 1, &[0, 0, 0, 1, 0])], ProtocolError, "priority-on-itself"),
        (
            vec![frame(FrameType::Headers, END_HEADERS | PRIORITY_GIVEN, 3, &[0, 0, 0, 3, 0, 0x82])],
            ProtocolError,
            "priority-on-itself",
        ),
        (vec![frame(FrameType::Headers, END_HEADERS | PRIORITY_GIVEN, 3, &[0; 4])], FrameSizeError, "frame-size-wrong"),
        (
            vec![frame(FrameType::Headers, END_HEADERS | PRIORITY_GIVEN | PADDED, 3, &[3, 0, 0, 0, 0, 0, 0])],
            FrameSizeError,
            "frame-size-wrong",
        ),
        (vec![frame(FrameType::Headers, END_HEADERS | PADDED, 3, &[7, 0x82])], ProtocolError, "padding-too-long"),
        (vec![post(1), frame(FrameType::Data, PADDED, 1, &[9; 9])], ProtocolError, "padding-too-long"),
        (vec![frame(FrameType::Continuation, 0, 1, &[])], ProtocolError, "continuation-without-headers"),
        (vec![frame(FrameType::Headers, 0, 1, GET), get(3)], ProtocolError, "header-block-interrupted"),
        (
            vec![frame(FrameType::Headers, 0, 1, GET), frame(FrameType::Unknown, 0, 0, &[])],
            ProtocolError,
            "header-block-interrupted",
        ),
        (
            vec![frame(FrameType::Headers, 0, 1, GET), frame(FrameType::Continuation, END_HEADERS, 3, &[])],
            ProtocolError,
            "header-block-interrupted",
        ),
        (vec![frame(FrameType::PushPromise, 0, 1, &[0; 4])], ProtocolError, "push-by-client"),
        (vec![frame(FrameType::Headers, END_HEADERS, 1, &[0x80])], CompressionError, "hpack-index-unknown"),
        (vec![setting(2, 2)], ProtocolError, "setting-enable-push"),
        (vec![frame(FrameType::PriorityUpdate, 0, 0, &[0, 0, 0, 2])], ProtocolError, "priority-update-on-wrong-stream"),
    ];
    for (frames, code, token) in rows {
        check_error(&frames, code, token);
    }
}

/// bad-inputs G04, G08, G09, G16, G23, G24, G42: a stream that is wrong ends alone.
#[test]
fn mistakes_of_a_stream_end_that_stream() {
    let trailers = |flags| frame(FrameType::Headers, END_HEADERS | flags, 1, b"\0\x01x\x01y");
    let in_trailers = frame(FrameType::Headers, END_HEADERS | END_STREAM, 1, &[0x84]);
    let post_of = |length: &str| frame(FrameType::Headers, END_HEADERS, 1, &with_length(length));
    let whole_of = |length: &str| frame(FrameType::Headers, END_HEADERS | END_STREAM, 1, &with_length(length));
    const TOLD_POST: &str = "request 1 POST /";
    let rows: Vec<(Frames, &[&str], &str, &str)> = vec![
        (vec![get(1), data(1, 0, 3)], &["request 1 GET / whole"], "StreamClosed", "data-behind-end"),
        (vec![get(1), trailers(END_STREAM)], &["request 1 GET / whole"], "StreamClosed", "headers-behind-end"),
        (vec![get(1), window_update(1, 0)], &["request 1 GET / whole"], "ProtocolError", "window-update-of-nothing"),
        (
            vec![get(1), window_update(1, u32::MAX >> 1)],
            &["request 1 GET / whole"],
            "FlowControlError",
            "stream-window-overflow",
        ),
        (vec![frame(FrameType::Headers, END_HEADERS, 1, &GET[..2])], &[], "ProtocolError", "pseudo-field-missing"),
        (vec![post(1), trailers(0)], &[TOLD_POST], "ProtocolError", "trailers-without-end"),
        (vec![post(1), in_trailers], &[TOLD_POST], "ProtocolError", "trailer-invalid"),
        (vec![post_of("1"), data(1, END_STREAM, 22)], &[TOLD_POST], "ProtocolError", "content-length-untrue"),
        (
            vec![post_of("300"), data(1, 0, 300), data(1, 0, 1)],
            &[TOLD_POST, "data 1 300"],
            "ProtocolError",
            "content-length-untrue",
        ),
        (vec![post_of("5"), data(1, END_STREAM, 4)], &[TOLD_POST], "ProtocolError", "content-length-untrue"),
        (vec![post_of("5"), data(1, END_STREAM, 0)], &[TOLD_POST], "ProtocolError", "content-length-untrue"),
        (vec![post_of("5"), trailers(END_STREAM)], &[TOLD_POST], "ProtocolError", "content-length-untrue"),
        (vec![whole_of("5")], &[], "ProtocolError", "content-length-untrue"),
    ];
    for (mut frames, before, code, token) in rows {
        frames.push(get(3));
        let ended = format!("ended 1 {code} {token}");
        let reset = format!("RST 1 {code}");
        let mut expect = before.to_vec();
        expect.extend([ended.as_str(), "request 3 GET / whole", reset.as_str()]);
        check(&frames, &expect);
    }
}

#[test]
fn frames_that_were_on_their_way_to_a_stream_that_we_reset_are_ignored() {
    let mut client = Client::new();
    client.send(&post(1));
    client.connection.reset(StreamId(1), ErrorCode::Cancel);
    let trailers = frame(FrameType::Headers, END_HEADERS | END_STREAM, 1, b"\x40\x01x\x01y");
    client.send(&[data(1, 0, 300), window_update(1, 5), trailers, rst(1), get(3)].concat());
    assert_eq!(client.heard, ["request 1 POST /", "request 3 GET / whole"]);
    client.send(&frame(FrameType::Headers, END_HEADERS | END_STREAM, 5, &[GET, &[0xbe]].concat()));
    assert_eq!(client.heard.last().map(String::as_str), Some("request 5 GET / whole"), "the table has followed");
    assert_eq!(client.control(), ["RST 1 Cancel"]);
}

#[test]
fn frames_on_a_stream_that_ended_in_good_order_end_the_connection() {
    let mut client = Client::new();
    client.send(&get(1));
    assert!(client.connection.head_frames(StreamId(1), 5, true).is_some());
    assert_eq!(client.connection.streams_count(), 0);
    client.send(&data(1, 0, 1));
    assert_eq!(client.heard[1..], ["error StreamClosed frame-on-closed-stream"]);
}

/// RFC 9113 §4.3; bad-inputs G29, G30.
#[test]
fn a_head_may_come_in_pieces_but_not_in_endless_ones() {
    let pieces = |end| {
        vec![
            frame(FrameType::Headers, END_STREAM, 1, &GET[..2]),
            frame(FrameType::Continuation, 0, 1, &[]),
            frame(FrameType::Continuation, 0, 1, &GET[2..5]),
            frame(FrameType::Continuation, end, 1, &GET[5..]),
        ]
    };
    check(&[pieces(END_HEADERS), vec![get(3)]].concat(), &["request 1 GET / whole", "request 3 GET / whole"]);
    for payload in [vec![0u8; 4096], vec![]] {
        let mut frames = pieces(0);
        frames.extend(vec![frame(FrameType::Continuation, 0, 1, &payload); 1000]);
        check_error(&frames, ErrorCode::EnhanceYourCalm, "header-block-too-large");
    }
}

/// bad-inputs G31: 431 is answered, and the connection lives.
#[test]
fn a_head_over_the_limits_is_refused_and_the_connection_goes_on() {
    let bomb = [GET, &[0x40, 1, b'a', 100], &[b'v'; 100], &[0xbe; 16_000]].concat();
    let (first, rest) = bomb.split_at(16_000);
    check(
        &[
            frame(FrameType::Headers, END_STREAM, 1, first),
            frame(FrameType::Continuation, END_HEADERS, 1, rest),
            frame(FrameType::Headers, END_HEADERS | END_STREAM, 3, &[GET, &[0xbe]].concat()),
        ],
        &["refused 1 request-fields-too-many", "request 3 GET / whole"],
    );
}

/// bad-inputs G41.
#[test]
fn streams_over_the_limit_are_refused_and_may_come_again() {
    let mut client = Client::new();
    (0..102).for_each(|n| client.send(&get(n * 2 + 1)));
    assert_eq!(
        (client.heard.len(), client.control()),
        (100, vec!["RST 201 RefusedStream".into(), "RST 203 RefusedStream".into()])
    );
    assert!(client.connection.head_frames(StreamId(7), 9, true).is_some());
    client.send(&get(205));
    assert_eq!(client.heard.last().map(String::as_str), Some("request 205 GET / whole"));
}

/// bad-inputs G13, G27, G28, G35, G36, with V6: each budget ends the connection.
#[test]
fn floods_end_the_connection() {
    let calm = |frames: &dyn Fn(u32) -> Vec<u8>, before: Vec<u8>, token: &str| {
        let mut client = Client::new();
        client.send(&before);
        for n in 0..10_000 {
            client.send(&frames(n));
            client.connection.control_written(usize::MAX);
            if client.heard.last().is_some_and(|line| line.starts_with("error")) {
                break;
            }
            assert!(client.connection.heap_bytes() < 64 << 10);
        }
        assert_eq!(client.heard.last(), Some(&format!("error EnhanceYourCalm {token}")));
    };
    let odd = |n: u32| n * 2 + 1;
    calm(&|n| [get(odd(n)), rst(odd(n))].concat(), vec![], "flood-of-resets");
    calm(&|n| [get(odd(n)), data(odd(n), 0, 1)].concat(), vec![], "flood-of-stream-errors");
    calm(&|n| [get(odd(n)), window_update(odd(n), 0)].concat(), vec![], "flood-of-stream-errors");
    calm(&|n| [get(odd(n)), window_update(odd(n), u32::MAX >> 1)].concat(), vec![], "flood-of-stream-errors");
    calm(&|n| frame(FrameType::Headers, END_HEADERS, odd(n), &[0x82]), vec![], "flood-of-stream-errors");
    calm(&|n| get(odd(n)), vec![], "flood-of-stream-errors");
    calm(&|_| frame(FrameType::Ping, 0, 0, &[0; 8]), vec![], "flood-of-pings");
    calm(&|_| frame(FrameType::Settings, 0, 0, &[]), vec![], "flood-of-settings");
    calm(&|_| frame(FrameType::Priority, 0, 1, &[0; 5]), vec![], "flood-of-priorities");
    calm(&|_| frame(FrameType::PriorityUpdate, 0, 0, &[0, 0, 0, 1]), vec![], "flood-of-priorities");
    calm(&|_| window_update(0, 1), vec![], "flood-of-window-updates");
    calm(&|_| data(1, 0, 0), post(1), "flood-of-small-data");
    calm(&|_| data(1, 0, 1), post(1), "flood-of-small-data");
    calm(&|_| frame(FrameType::Unknown, 0xff, 7, &[1, 2, 3]), vec![], "flood-of-ignored-frames");
    let in_pieces = |n| {
        [frame(FrameType::Headers, END_STREAM, odd(n), GET), frame(FrameType::Continuation, END_HEADERS, odd(n), &[])]
    };
    calm(&|n| [in_pieces(n).concat(), rst(odd(n))].concat(), vec![], "flood-of-continuations");
}

#[test]
fn a_busy_client_is_no_flood() {
    let mut client = Client::new();
    for n in 0..5_000 {
        let stream = StreamId(n * 2 + 1);
        client.send(&get(stream.0));
        assert!(client.connection.head_frames(stream, 30, false).is_some());
        assert!(client.connection.data_frame(stream, 10_000, true).is_some());
        client.send(&window_update(0, 10_000));
    }
    client.send(&post(20_001));
    for _ in 0..20_000 {
        client.send(&data(20_001, 0, 1_000));
    }
    assert!(!client.heard.iter().any(|line| line.starts_with("error")));
}

#[test]
fn a_peer_that_reads_nothing_is_cut_off() {
    let mut client = Client::new();
    client.send(&post(1));
    for n in 0..1_000_000 {
        client.send(&data(1, 0, 16_000));
        if client.heard.last().is_some_and(|line| line.starts_with("error")) {
            assert_eq!(client.heard.last().map(String::as_str), Some("error EnhanceYourCalm control-frames-unread"));
            assert!(n > 100 && client.connection.heap_bytes() < 64 << 10);
            return;
        }
    }
    panic!("it was never cut off");
}

#[test]
fn what_is_not_read_stops_its_sender() {
    let mut client = Client { reads_bodies: false, ..Client::new() };
    client.send(&post(1));
    (0..4).for_each(|_| client.send(&data(1, 0, 16_000)));
    assert_eq!(client.control(), Vec::<String>::new());
    client.send(&data(1, 0, 1_536));
    assert_eq!(client.heard.last().map(String::as_str), Some("ended 1 FlowControlError stream-window-exceeded"));
    let mut reader = Client { reads_bodies: false, ..Client::new() };
    reader.send(&post(1));
    (0..4).for_each(|_| reader.send(&data(1, 0, 16_000)));
    reader.connection.release(StreamId(1), 32_000);
    assert_eq!(reader.control(), Vec::<String>::new(), "late");
    reader.connection.release(StreamId(1), 32_000);
    assert_eq!(reader.control(), ["WINDOW 1 129535"], "once, and the window has grown");
}

/// bad-inputs G38.
#[test]
fn windows_bound_what_is_sent_and_may_become_negative() {
    let mut client = Client::new();
    client.send(&[setting(4, 20_000), get(1)].concat());
    let (connection, stream) = (&mut client.connection, StreamId(1));
    assert_eq!(connection.sendable(stream), DATA_PAYLOAD_BYTES_MAX);
    assert!(connection.data_frame(stream, DATA_PAYLOAD_BYTES_MAX, false).is_some());
    assert_eq!(connection.sendable(stream), 20_000 - DATA_PAYLOAD_BYTES_MAX);
    assert_eq!(connection.data_frame(stream, 5_000, false), None, "more than may be sent");
    client.send(&setting(4, 1));
    assert_eq!(client.connection.sendable(stream), 0);
    client.send(&window_update(1, (DATA_PAYLOAD_BYTES_MAX - 1) as u32));
    assert_eq!(client.connection.sendable(stream), 0);
    client.send(&window_update(1, 3));
    assert_eq!(client.connection.sendable(stream), 3);
    client.send(&setting(4, 11));
    assert_eq!(client.connection.sendable(stream), 13);
    assert_eq!(
        client.connection.data_frame(stream, 13, true).map(|head| head[..5].to_vec()),
        Some(vec![0, 0, 13, 0, 1])
    );
    assert_eq!((client.connection.may_send(stream), client.connection.streams_count()), (false, 0));
    assert_eq!(client.heard.last().map(String::as_str), Some("window 0"));
}

#[test]
fn a_large_head_is_cut_into_frames_and_a_size_update_goes_first() {
    let mut client = Client::new();
    client.send(&[setting(1, 0), get(1), get(3)].concat());
    let frames: Vec<_> = client.connection.head_frames(StreamId(1), 40_000, true).expect("it is open").collect();
    let shape = |frame: &HeadFrame| (frame.bytes()[3..5].to_vec(), frame.bytes().len(), frame.block_bytes);
    let shapes: Vec<_> = frames.iter().map(shape).collect();
    assert_eq!(shapes, [(vec![1, 1], 10, 16_383), (vec![9, 0], 9, 16_384), (vec![9, 4], 9, 7_233)]);
    assert_eq!(frames[0].bytes()[..3], [0, 0x40, 0]);
    let next: Vec<_> = client.connection.head_frames(StreamId(3), 10, false).expect("it is open").collect();
    assert_eq!(next.iter().map(shape).collect::<Vec<_>>(), [(vec![1, 4], 9, 10)], "the update is said once");
}

/// RFC 9218 §10.
#[test]
fn the_most_urgent_writes_first_and_incremental_ones_in_turn() {
    let with = |priority: &str| [GET, b"\0\x08priority", &[priority.len() as u8], priority.as_bytes()].concat();
    let mut client = Client::new();
    client.send(&frame(FrameType::PriorityUpdate, 0, 0, b"\0\0\0\x0bu=0"));
    for (stream, priority) in [(1, "u=5"), (3, "u=2, i"), (5, "u=2, i"), (7, "u=2, i"), (9, "u=7"), (11, "u=7")] {
        client.send(&frame(FrameType::Headers, END_HEADERS | END_STREAM, stream, &with(priority)));
        client.connection.set_ready(StreamId(stream), true);
    }
    let mut order = Vec::new();
    let mut write = |client: &mut Client, is_done: bool| {
        let stream = client.connection.next_to_write(|_| true).expect("one is ready");
        client.connection.set_ready(stream, !is_done);
        order.push(stream.0);
    };
    write(&mut client, true);
    (0..4).for_each(|_| write(&mut client, false));
    (0..3).for_each(|_| write(&mut client, true));
    client.send(&frame(FrameType::PriorityUpdate, 0, 0, b"\0\0\0\x09u=1"));
    (0..2).for_each(|_| write(&mut client, true));
    assert_eq!(order, [11, 3, 5, 7, 3, 5, 7, 3, 9, 1]);
    assert_eq!(client.connection.next_to_write(|_| true), None);
}

/// RFC 9113 §6.8; bad-inputs G40.
#[test]
fn leaving_takes_two_steps() {
    let mut client = Client::new();
    client.send(&get(1));
    client.connection.announce_leaving();
    client.send(&get(3));
    client.connection.leave();
    client.send(
        &[get(5), data(5, END_STREAM, 300), window_update(5, 1), frame(FrameType::Ping, 0, 0, b"12345678")].concat(),
    );
    assert_eq!(client.heard, ["request 1 GET / whole", "request 3 GET / whole"]);
    assert_eq!(client.control(), ["GOAWAY 2147483647 NoError ", "GOAWAY 3 NoError ", "PING 1 12345678"]);
    assert!(!client.connection.has_left());
    for stream in [1, 3] {
        assert!(client.connection.head_frames(StreamId(stream), 9, true).is_some());
    }
    assert!(client.connection.has_left());
    client.send(&frame(FrameType::GoAway, 0, 0, b"\0\0\0\0\0\0\0\0some words"));
    assert_eq!(client.heard.last().map(String::as_str), Some("gone NoError"));
}

#[test]
fn an_answer_may_end_before_the_request_does() {
    let mut client = Client::new();
    client.send(&post(1));
    assert!(client.connection.head_frames(StreamId(1), 9, true).is_some());
    assert!(client.connection.awaits_body(StreamId(1)) && !client.connection.may_send(StreamId(1)));
    client.connection.reset(StreamId(1), ErrorCode::NoError);
    assert_eq!((client.control(), client.connection.streams_count()), (vec!["RST 1 NoError".to_string()], 0));
}

#[test]
fn an_idle_connection_holds_next_to_nothing() {
    let mut client = Client::new();
    for n in 0..50 {
        client.send(&get(n * 2 + 1));
    }
    for n in 0..50 {
        assert!(client.connection.head_frames(StreamId(n * 2 + 1), 9, true).is_some());
    }
    client.connection.shrink();
    assert!(client.connection.is_idle());
    assert_eq!(client.connection.heap_bytes(), 0);
}
