//! What a client's frames do to its connection: each row of the bad inputs of group G that concerns frames.

use proptest::prelude::*;

use super::*;
use crate::HeadLimits;
use crate::http2::client_in_memory::*;
use crate::http2::frame::PRIORITY_GIVEN;
use crate::limits::CONNECTION_WINDOW_BYTES;

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
    assert_eq!(in_pieces_of_one(&client.heard), in_pieces_of_one(&slow.heard));
}

fn check_error(frames: &[Vec<u8>], code: ErrorCode, token: &'static str) {
    let mut client = Client::new();
    client.send(&frames.concat());
    assert_eq!(client.heard.last(), Some(&format!("error {code:?} {token}")));
    let goaway = client.control().pop().expect("it is said");
    assert!(goaway.starts_with("GOAWAY") && goaway.ends_with(&format!("{code:?} {token}")), "{goaway}");
    let again = client.connection.receive(&get(1001), &mut client.arena, &OPTIONS, 0);
    assert_eq!(again.map(|_| ()), Err(ConnectionError { code, token }), "it is final");
}

#[test]
fn a_greeting_is_exchanged() {
    let mut client = Client::silent();
    assert_eq!(client.control(), ["SETTINGS 0 18"]);
    for piece in PREFACE.chunks(5) {
        client.send(piece);
    }
    client.send(&[setting(3, 5), frame(FrameType::Settings, ACK, 0, &[]), get(1)].concat());
    assert_eq!(
        (client.heard.join(", "), client.control().join(", ")),
        ("request 1 GET / whole".into(), "SETTINGS 1 0".into())
    );
    client.send(&[post(3), data(3, 0, 1), data(3, 0, 1)].concat());
    assert_eq!(client.control(), ["WINDOW 0 983041"], "once, when there is something to send");
}

#[test]
fn where_heads_are_read_leniently_settings_may_be_left_out() {
    let limits = HeadLimits { lenient: true, ..HeadLimits::REQUEST };
    let options = Http2Options { head_limits: &limits, ..OPTIONS };
    let (mut connection, mut arena) = (Http2Connection::of_client(&options), HeadArena::default());
    let bytes = [PREFACE, &get(1)].concat();
    let received = connection.receive(&bytes, &mut arena, &options, 0).expect("it is taken");
    assert_eq!((received.consumed, received.event.is_some()), (bytes.len(), true));
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
    // More than the window of a stream, and all of it padding.
    let all = frame(FrameType::Data, PADDED, 1, &[&[255][..], &[0; 255]].concat());
    let frames: Vec<_> = std::iter::once(post(1)).chain(std::iter::repeat_n(all, 400)).collect();
    let mut client = Client { reads_bodies: false, ..Client::new() };
    client.send(&frames.concat());
    assert_eq!(
        (client.heard.join(", "), client.control().len()),
        ("request 1 POST /".into(), 3),
        "the stream's is given back"
    );
}

/// bad-inputs G02, G03, G07, G10 to G12, G14, G15: a connection that is wrong ends, and says why.
#[test]
fn mistakes_of_the_connection_end_it() {
    use ErrorCode::*;
    let rows: Vec<(Frames, ErrorCode, &'static str)> = vec![
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
        (vec![frame(FrameType::PushPromise, 0, 1, &[0; 4])], ProtocolError, "push-unasked"),
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
fn what_is_thrown_away_is_given_back_to_the_connection() {
    let mut client = Client { reads_bodies: false, ..Client::new() };
    // Four times the window of the connection, half of it in frames of which a part came before the reset.
    for n in 0..4 * CONNECTION_WINDOW_BYTES as u32 / 32_000 {
        let stream = n * 2 + 1;
        client.send(&post(stream));
        let whole = data(stream, 0, 16_000);
        client.send(&whole[..10]);
        client.connection.release(StreamId(stream), 1);
        client.connection.reset(StreamId(stream), ErrorCode::Cancel);
        client.send(&[&whole[10..], &whole].concat());
    }
    assert!(client.heard.iter().all(|line| line.starts_with("request") || line.ends_with(" 1")));
    assert!(client.control().iter().any(|line| line.starts_with("WINDOW 0")));
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
    let bomb = [GET, &[0x40, 1, b'a', 100], &[b'v'; 100], &[0xbe; 3_000]].concat();
    let (first, rest) = bomb.split_at(2_000);
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
    let bomb = [b"\x40\x01a\x01b".as_slice(), &[0xbe; 600]].concat();
    calm(&|n| frame(FrameType::Headers, END_HEADERS | END_STREAM, odd(n), &bomb), vec![], "flood-of-header-lines");
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

/// Frames that mean something more often than not: few streams, heads that are valid, any flags.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        3 => Just(GET.to_vec()),
        2 => Just(vec![0x88]),
        1 => Just(vec![0x88, 0x0f, 0x0d, 1, b'6']),
        2 => Just(b"\x40\x01x\x01y".to_vec()),
        2 => Just([GET, &[0xbe]].concat()),
        2 => prop::collection::vec(any::<u8>(), 0..12),
        1 => Just(vec![0, 0, 0, 1]),
        1 => Just(vec![b'x'; 400]),
    ];
    let flags = prop_oneof![Just(END_HEADERS), Just(END_HEADERS | END_STREAM), any::<u8>()];
    (0u8..12, flags, 0u32..9, payload).prop_map(|(number, flags, stream, payload)| {
        let mut bytes = frame(FrameType::Data, flags, stream, &payload);
        bytes[3] = number;
        bytes
    })
}

/// A client, or an origin that was asked for four things.
fn any_peer(is_origin: bool) -> Client {
    if !is_origin {
        return Client::new();
    }
    let mut origin = Client::origin();
    for _ in 0..4 {
        assert!(origin.connection.open_stream(message::Method::Get, 9, true, &OPTIONS).is_some());
    }
    origin
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// V9: what comes of bytes does not depend on how they are cut.
    #[test]
    fn the_same_comes_of_the_same_bytes_however_they_are_cut(
        frames in prop::collection::vec(any_frame(), 1..12),
        cuts in prop::collection::vec(1usize..40, 1..60),
        is_origin in any::<bool>(),
    ) {
        let bytes = frames.concat();
        let (mut whole, mut cut) = (any_peer(is_origin), any_peer(is_origin));
        whole.send(&bytes);
        let (mut rest, mut cuts) = (&bytes[..], cuts.into_iter().cycle());
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(cuts.next().unwrap_or(1).min(rest.len()));
            cut.send(piece);
            rest = behind;
        }
        prop_assert_eq!(in_pieces_of_one(&whole.heard), in_pieces_of_one(&cut.heard));
        prop_assert_eq!(whole.control(), cut.control());
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), is_origin in any::<bool>()) {
        let mut client = any_peer(is_origin);
        client.send(&bytes);
        prop_assert!(client.connection.heap_bytes() < 16 << 10);
    }
}

/// Pieces of a body that follow each other become one.
fn in_pieces_of_one(heard: &[String]) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    let mut body: Option<(String, usize, bool)> = None;
    for line in heard.iter().map(Some).chain([None]) {
        let words: Vec<&str> = line.map_or(vec![], |line| line.split(' ').collect());
        if let ["data", stream, bytes, ..] = words[..] {
            let (_, sum, is_last) = body.get_or_insert_with(|| (stream.to_string(), 0, false));
            *sum += bytes.parse::<usize>().expect("a number");
            *is_last |= words.len() == 4;
            if !*is_last {
                continue;
            }
        }
        if let Some((stream, sum, is_last)) = body.take() {
            joined.push(format!("data {stream} {sum} {is_last}"));
        }
        joined.extend(line.filter(|line| !line.starts_with("data")).cloned());
    }
    joined
}
