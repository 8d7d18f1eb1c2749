//! What an origin may answer: heads, interim ones, bodies, trailers; and what ends a stream or the connection.

use super::*;
use crate::http2::ErrorCode;
use crate::http2::client_in_memory::*;
use crate::http2::frame::{END_HEADERS, END_STREAM, FrameType};

/// Lines as a block of literals, each name and value as it stands.
fn block_of(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in lines {
        block.push(0);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

fn head(flags: u8, lines: &[(&str, &str)]) -> Vec<u8> {
    frame(FrameType::Headers, END_HEADERS | flags, 1, &block_of(lines))
}

/// The first request of a connection is by this method; what is heard of these frames, and then what is queued.
fn check(method: Method, frames: &[Vec<u8>], expect: &[&str]) {
    let mut origin = Client::origin();
    assert!(origin.connection.open_stream(method, 9, true, &OPTIONS).is_some());
    origin.send(&frames.concat());
    let mut heard = origin.heard.clone();
    heard.extend(origin.control());
    assert_eq!(heard, expect);
}

const OK: &[(&str, &str)] = &[(":status", "200")];

#[test]
fn a_response_may_have_interim_ones_before_it_and_trailers_behind() {
    let early = head(0, &[(":status", "103"), ("link", "</a>")]);
    let trailers = head(END_STREAM, &[("x", "y")]);
    check(
        Method::Get,
        &[early.clone(), early, head(0, OK), data(1, 0, 300), trailers],
        &["response 1 103", "response 1 103", "response 1 200", "data 1 300", "trailers 1 1"],
    );
    check(Method::Get, &[head(END_STREAM, OK)], &["response 1 200 whole"]);
    let with_length = head(0, &[(":status", "200"), ("content-length", "5")]);
    check(Method::Get, &[with_length.clone(), data(1, END_STREAM, 5)], &["response 1 200", "data 1 5 last"]);
    check(Method::Head, &[head(END_STREAM, &[(":status", "200"), ("content-length", "5")])], &["response 1 200 whole"]);
    check(Method::Head, &[with_length, data(1, END_STREAM, 0)], &["response 1 200", "data 1 0 last"]);
}

#[test]
fn what_is_no_response_ends_its_stream() {
    for (lines, token) in [
        (&[][..], "pseudo-field-missing"),
        (&[("x", "y")], "pseudo-field-missing"),
        (&[(":status", "20")], "status-line-invalid"),
        (&[(":status", "099")], "status-line-invalid"),
        (&[(":status", "2000")], "status-line-invalid"),
        (&[(":status", "101")], "switching-unasked"),
        (&[(":status", "200"), (":status", "200")], "pseudo-field-repeated"),
        (&[("x", "y"), (":status", "200")], "pseudo-field-repeated"),
        (&[(":status", "200"), (":path", "/")], "pseudo-field-unknown"),
        (&[(":status", "200"), ("X", "y")], "field-name-invalid"),
        (&[(":status", "200"), ("x", "y\nz")], "field-value-invalid"),
        (&[(":status", "200"), ("x", " y")], "field-value-invalid"),
        (&[(":status", "200"), ("transfer-encoding", "chunked")], "connection-field-in-http2"),
        (&[(":status", "200"), ("connection", "close")], "connection-field-in-http2"),
        (&[(":status", "200"), ("content-length", "5"), ("content-length", "5")], "content-length-repeated"),
    ] {
        let ended = format!("ended 1 ProtocolError {token}");
        check(Method::Get, &[head(0, lines)], &[&ended, "RST 1 ProtocolError"]);
    }
    let untrue = &["response 1 200", "ended 1 ProtocolError content-length-untrue", "RST 1 ProtocolError"];
    let with_length = head(0, &[(":status", "200"), ("content-length", "5")]);
    check(Method::Get, &[with_length.clone(), data(1, 0, 6)], untrue);
    check(Method::Get, &[with_length.clone(), data(1, END_STREAM, 4)], untrue);
    check(Method::Head, &[with_length, data(1, 0, 5)], untrue);
    let ended = |token: &str| format!("ended 1 ProtocolError {token}");
    check(Method::Get, &[data(1, 0, 5)], &[&ended("data-before-response"), "RST 1 ProtocolError"]);
    let interim = head(END_STREAM, &[(":status", "103")]);
    check(Method::Get, &[interim], &[&ended("status-line-invalid"), "RST 1 ProtocolError"]);
}

#[test]
fn what_nobody_asked_for_ends_the_connection() {
    let error = |token: &str| format!("error ProtocolError {token}");
    let unasked = frame(FrameType::Headers, END_HEADERS, 3, &block_of(OK));
    for (frames, token) in [
        (unasked, "response-unasked"),
        (frame(FrameType::Headers, END_HEADERS, 2, &block_of(OK)), "stream-number-even"),
        (frame(FrameType::PushPromise, 0, 1, &[0, 0, 0, 2]), "push-unasked"),
        (setting(2, 1), "setting-enable-push"),
        (frame(FrameType::PriorityUpdate, 0, 0, &[0, 0, 0, 1]), "priority-update-on-wrong-stream"),
    ] {
        let mut origin = Client::origin();
        assert!(origin.connection.open_stream(Method::Get, 9, true, &OPTIONS).is_some());
        origin.send(&frames);
        assert_eq!(origin.heard, [error(token)]);
    }
}

#[test]
fn as_many_streams_are_opened_as_the_origin_allows() {
    let mut origin = Client::origin();
    origin.send(&setting(3, 2));
    let open = |origin: &mut Client| {
        origin.connection.open_stream(Method::Get, 9, true, &OPTIONS).map(|(stream, frames)| (stream.0, frames.count()))
    };
    assert_eq!((open(&mut origin), open(&mut origin), open(&mut origin)), (Some((1, 1)), Some((3, 1)), None));
    origin.send(&head(END_STREAM, OK));
    assert_eq!((open(&mut origin), open(&mut origin)), (Some((5, 1)), None));
}

/// RFC 9113 §6.8 and §8.7.
#[test]
fn what_an_origin_that_leaves_has_not_worked_on_may_be_asked_again() {
    let mut origin = Client::origin();
    for _ in 0..3 {
        assert!(origin.connection.open_stream(Method::Get, 9, true, &OPTIONS).is_some());
    }
    origin.send(&frame(FrameType::GoAway, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]));
    assert_eq!((origin.heard.join(", "), origin.connection.streams_count()), ("gone NoError".into(), 2));
    assert!(!origin.connection.may_open(&OPTIONS) && !origin.connection.may_send(StreamId(5)));
    let refused = frame(FrameType::RstStream, 0, 3, &[0, 0, 0, 7]);
    origin.send(&[head(END_STREAM, OK), refused].concat());
    assert_eq!(origin.heard[1..], ["response 1 200 whole", "ended 3 RefusedStream reset-by-peer"]);
    assert!(ErrorCode::RefusedStream.says_unprocessed() && !ErrorCode::Cancel.says_unprocessed());
}
