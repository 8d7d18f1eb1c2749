//! The machine of an HTTP/2 connection to an origin, in conversation with a server that others wrote (the crate `h2`).

use bytes::Bytes;
use message::{FieldName, Fields, Method, Scheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wire::http2::hpack::PseudoFields;
use wire::http2::{ConnectionEvent, HeadArena, Http2Connection, Http2Options, Received, write_request_block};
use wire::limits::FRAME_PAYLOAD_BYTES_MIN;
use wire::{ChunkedLimits, HeadLimits};

const OPTIONS: Http2Options<'static> = Http2Options {
    head_limits: &HeadLimits::RESPONSE,
    trailer_limits: &ChunkedLimits::DEFAULT,
    scheme: Scheme::Https,
    believes_scheme: false,
    streams_max: 100,
    extended_connect: false,
    peer_frame_bytes_min: FRAME_PAYLOAD_BYTES_MIN,
};

/// Echoes the path, the fields and the body of each request, and ends with a trailer.
async fn echo(io: tokio::io::DuplexStream) {
    let mut connection = h2::server::Builder::new().initial_window_size(3_000).handshake(io).await.expect("a greeting");
    while let Some(asked) = connection.accept().await {
        let (request, mut respond) = asked.expect("a good client");
        tokio::spawn(async move {
            let (head, mut body) = request.into_parts();
            let mut text = format!("{} {} {:?} ", head.method, head.uri, head.headers.get("cookie")).into_bytes();
            while let Some(piece) = body.data().await {
                let piece = piece.expect("a whole body");
                body.flow_control().release_capacity(piece.len()).expect("it was taken");
                text.extend_from_slice(&piece);
            }
            let answer = http::Response::builder().header("x-own", "~").body(()).expect("a head");
            let mut stream = respond.send_response(answer, false).expect("it is open");
            stream.send_data(Bytes::from(text), false).expect("it is open");
            stream
                .send_trailers([("x-end".parse().unwrap(), "1".parse().unwrap())].into_iter().collect())
                .expect("open");
        });
    }
}

fn head_of(number: u32) -> Vec<u8> {
    let mut fields = Fields::default();
    fields.push(FieldName::Host, "T.test");
    fields.push(FieldName::Cookie, format!("n={number}"));
    fields.push(FieldName::Connection, "close");
    let path = format!("/{number}?a");
    let line = PseudoFields {
        method: b"POST",
        target: Some((Scheme::Https, path.as_bytes())),
        authority: Some(b"t.test:8443"),
        protocol: None,
    };
    let mut block = Vec::new();
    write_request_block(&line, fields.view(), &mut block).expect("nothing is wrong with it");
    block
}

#[tokio::test]
async fn fifty_requests_with_bodies_are_answered() {
    const COUNT: u32 = 50;
    const BODY_BYTES: usize = 20_000;
    let (mut near, far) = tokio::io::duplex(64 << 10);
    tokio::spawn(echo(far));
    let (mut connection, mut arena) = (Http2Connection::to_origin(&OPTIONS), HeadArena::default());
    let (mut kept, mut room) = (Vec::new(), vec![0; 16 << 10]);
    // As long as the origin has said nothing, one request is all that may be sent.
    assert_eq!(connection.streams_max(&OPTIONS), 1);
    near.write_all(connection.control()).await.expect("it is open");
    connection.control_written(usize::MAX);
    while !connection.has_spoken() {
        let bytes = near.read(&mut room).await.expect("it is open");
        kept.extend_from_slice(&room[..bytes]);
        let received = connection.receive(&kept, &mut arena, &OPTIONS, 0).expect("a good origin");
        let consumed = received.consumed;
        kept.drain(..consumed);
    }
    assert_eq!(connection.streams_max(&OPTIONS), 100);
    let (mut out, mut asked) = (Vec::new(), Vec::new());
    for number in 0..COUNT {
        let block = head_of(number);
        let (stream, frames) = connection.open_stream(Method::Post, block.len(), false, &OPTIONS).expect("it is open");
        for frame in frames {
            out.extend_from_slice(frame.bytes());
        }
        out.extend_from_slice(&block);
        asked.push((stream, BODY_BYTES, Vec::new(), false));
    }
    while !asked.iter().all(|(.., is_answered)| *is_answered) {
        out.extend_from_slice(connection.control());
        connection.control_written(usize::MAX);
        for (stream, left, ..) in asked.iter_mut().filter(|(_, left, ..)| *left > 0) {
            while let bytes @ 1.. = connection.sendable(*stream).min(*left) {
                out.extend_from_slice(&connection.data_frame(*stream, bytes, bytes == *left).expect("it may be sent"));
                out.resize(out.len() + bytes, b'x');
                *left -= bytes;
            }
        }
        near.write_all(&std::mem::take(&mut out)).await.expect("it is open");
        let bytes = near.read(&mut room).await.expect("it is open");
        kept.extend_from_slice(&room[..bytes]);
        let mut at = 0;
        loop {
            let received = connection.receive(&kept[at..], &mut arena, &OPTIONS, 0).expect("a good origin");
            let Received { consumed, event } = received;
            let unread = &kept[at..];
            at += consumed;
            match event {
                None => break,
                Some(ConnectionEvent::Response { head, .. }) => {
                    assert_eq!((head.response.status.0, head.response.fields.count()), (200, 1));
                }
                Some(ConnectionEvent::Data { stream, range, .. }) => {
                    let answer = asked.iter_mut().find(|(id, ..)| *id == stream).expect("it was asked");
                    answer.2.extend_from_slice(&unread[range.clone()]);
                    connection.release(stream, range.len());
                }
                Some(ConnectionEvent::Trailers { stream, fields }) => {
                    assert_eq!(fields.get_all_named(b"x-end").next(), Some(&b"1"[..]));
                    asked.iter_mut().find(|(id, ..)| *id == stream).expect("it was asked").3 = true;
                }
                Some(ConnectionEvent::WindowOpened { .. }) => {}
                Some(other) => panic!("{other:?}"),
            }
        }
        kept.drain(..at);
    }
    for (number, (.., answer, _)) in asked.iter().enumerate() {
        let expect = format!("POST https://t.test:8443/{number}?a Some(\"n={number}\") {}", "x".repeat(BODY_BYTES));
        assert!(answer == expect.as_bytes(), "request {number}");
    }
    assert_eq!(connection.streams_count(), 0);
}
