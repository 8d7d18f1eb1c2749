//! What one request and its answer of 6 KiB cost on a warm connection: our machine, or the server of the crate `h2`.
//!
//! `http2_cost ours|h2 COUNT` answers COUNT requests with the same bytes in memory. The difference between two counts under
//! `valgrind --tool=callgrind` is the cost: the beginning and the client, which is `h2`'s, fall out of it.

use std::io::IoSlice;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use message::{FieldName, Fields, Scheme, Status};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use wire::http2::hpack::{write_fields, write_known_field, write_known_number, write_status};
use wire::http2::{ConnectionEvent, HeadArena, Http2Connection, Http2Options, PREFACE};
use wire::limits::FRAME_PAYLOAD_BYTES_MIN;
use wire::{ChunkedLimits, HeadLimits};

const BODY_BYTES: usize = 6 << 10;

const FIELDS: [(&str, &str); 12] = [
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("accept-language", "en-GB,en;q=0.7,de;q=0.3"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("referer", "https://www.example.org/articles/"),
    ("cookie", "consent=yes; _ga=GA1.2.1234567890.1700000000; theme=dark"),
    ("upgrade-insecure-requests", "1"),
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-user", "?1"),
    ("priority", "u=0, i"),
];

const STORED: [(&str, &str); 8] = [
    ("content-type", "text/html; charset=utf-8"),
    ("cache-control", "public, max-age=600"),
    ("etag", "\"5f3a-6b1c2d3e4f5a6\""),
    ("last-modified", "Tue, 25 Nov 2025 10:00:00 GMT"),
    ("vary", "accept-encoding"),
    ("content-encoding", "gzip"),
    ("server", "origin/1.2"),
    ("x-frame-options", "SAMEORIGIN"),
];

const DATE: &str = "Tue, 25 Nov 2025 10:40:26 GMT";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, side, count] = &arguments[..] else { panic!("http2_cost ours|h2 COUNT") };
    let count = count.parse().expect("a number");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let blocks = runtime.block_on(header_blocks());
    let written = match side.as_str() {
        "ours" => answer_by_ours(&blocks, count),
        _ => runtime.block_on(answer_by_h2(&blocks, count)),
    };
    println!("{written} bytes were written");
}

/// The blocks of the first request of a client and of a later one, for which its table is warm.
async fn header_blocks() -> [Vec<u8>; 2] {
    let (near, mut far) = tokio::io::duplex(64 << 10);
    let (mut asks, connection) = h2::client::handshake(near).await.expect("a greeting");
    tokio::spawn(connection);
    let mut asked = Vec::new();
    for n in 0..3 {
        let mut request = Request::get(format!("https://www.example.org/articles/{n}/an-article?page=2"));
        for (name, value) in FIELDS {
            request = request.header(name, value);
        }
        asked.push(asks.send_request(request.body(()).expect("a request"), true).expect("it is open"));
    }
    let mut bytes = vec![0; 16 << 10];
    tokio::task::yield_now().await;
    let length = far.read(&mut bytes).await.expect("frames");
    let (mut rest, mut blocks) = (&bytes[PREFACE.len()..length], Vec::new());
    while let [a, b, c, kind, _, _, _, _, _, behind @ ..] = rest {
        let (payload, next) = behind.split_at(u32::from_be_bytes([0, *a, *b, *c]) as usize);
        if *kind == 1 {
            blocks.push(payload.to_vec());
        }
        rest = next;
    }
    [blocks.swap_remove(0), blocks.swap_remove(1)]
}

fn greeting() -> Vec<u8> {
    [PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat()
}

/// What the client sends for its request of this number: it gives the window back, and asks.
fn asking(blocks: &[Vec<u8>; 2], number: u32) -> Vec<u8> {
    let block = &blocks[usize::from(number > 0)];
    let mut bytes = vec![0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, (BODY_BYTES >> 8) as u8, BODY_BYTES as u8];
    bytes.extend_from_slice(&(block.len() as u32).to_be_bytes()[1..]);
    bytes.extend_from_slice(&[1, 5]);
    bytes.extend_from_slice(&(number * 2 + 1).to_be_bytes());
    bytes.extend_from_slice(block);
    bytes
}

fn answer_by_ours(blocks: &[Vec<u8>; 2], count: u32) -> usize {
    let options = Http2Options {
        head_limits: &HeadLimits::REQUEST,
        trailer_limits: &ChunkedLimits::DEFAULT,
        scheme: Scheme::Https,
        believes_scheme: false,
        streams_max: 100,
        extended_connect: false,
        peer_frame_bytes_min: FRAME_PAYLOAD_BYTES_MIN,
    };
    let mut stored = Vec::new();
    write_status(Status(200), &mut stored);
    let mut fields = Fields::default();
    STORED.iter().for_each(|(name, value)| fields.push_named(name.as_bytes(), value.as_bytes()));
    write_fields(fields.view(), &mut stored);
    write_known_number(FieldName::ContentLength, BODY_BYTES as u64, &mut stored);
    let (body, mut connection, mut arena) =
        (vec![b'x'; BODY_BYTES], Http2Connection::of_client(&options), HeadArena::default());
    let (mut written, mut tail, mut input) = (0, Vec::new(), greeting());
    for number in 0..count {
        input.extend_from_slice(&asking(blocks, number));
        let mut consumed = 0;
        loop {
            let received = connection.receive(&input[consumed..], &mut arena, &options, 0).expect("a good client");
            consumed += received.consumed;
            let Some(event) = received.event else { break };
            let ConnectionEvent::Request { stream, head, .. } = event else { continue };
            assert_eq!(head.received.request.fields.count(), FIELDS.len() + 1);
            tail.clear();
            write_known_field(FieldName::Date, DATE.as_bytes(), &mut tail);
            write_known_number(FieldName::Age, u64::from(number % 600), &mut tail);
            let block_bytes = stored.len() + tail.len();
            let first = connection.head_frames(stream, block_bytes, false).and_then(|mut frames| frames.next());
            let (first, data) = first.zip(connection.data_frame(stream, BODY_BYTES, true)).expect("it may be sent");
            let pieces = [first.bytes(), &stored, &tail, &data, &body].map(IoSlice::new);
            written += std::hint::black_box(pieces).iter().map(|piece| piece.len()).sum::<usize>();
        }
        connection.control_written(usize::MAX);
        input.clear();
    }
    written
}

/// A socket in memory: each time that all is read the next request is there.
struct Socket {
    blocks: [Vec<u8>; 2],
    unread: Vec<u8>,
    number: u32,
    count: u32,
    written: Arc<Mutex<usize>>,
    answered: Arc<Mutex<u32>>,
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let socket = self.get_mut();
        if socket.unread.is_empty() {
            if *socket.answered.lock().expect("one thread") < socket.number {
                return Poll::Pending;
            }
            if socket.number == socket.count {
                return Poll::Ready(Ok(()));
            }
            socket.unread = asking(&socket.blocks, socket.number);
            socket.number += 1;
        }
        let bytes = socket.unread.len().min(room.remaining());
        room.put_slice(&socket.unread[..bytes]);
        socket.unread.drain(..bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        *self.written.lock().expect("one thread") += bytes.len();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let bytes = pieces.iter().map(|piece| piece.len()).sum();
        *self.written.lock().expect("one thread") += bytes;
        Poll::Ready(Ok(bytes))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

async fn answer_by_h2(blocks: &[Vec<u8>; 2], count: u32) -> usize {
    let (written, answered) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let socket = Socket {
        blocks: blocks.clone(),
        unread: greeting(),
        number: 0,
        count,
        written: written.clone(),
        answered: answered.clone(),
    };
    let mut connection = h2::server::handshake(socket).await.expect("a greeting");
    let body = Bytes::from(vec![b'x'; BODY_BYTES]);
    let mut stored = HeaderMap::new();
    for (name, value) in STORED {
        stored.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    stored.insert("content-length", BODY_BYTES.into());
    while let Some(asked) = connection.accept().await {
        let (request, mut respond) = asked.expect("a good client");
        assert_eq!(request.headers().len(), FIELDS.len());
        let mut response = Response::new(());
        *response.headers_mut() = stored.clone();
        response.headers_mut().insert(http::header::DATE, HeaderValue::from_static(DATE));
        let mut number = answered.lock().expect("one thread");
        response.headers_mut().insert(http::header::AGE, (*number % 600).into());
        let mut stream = respond.send_response(response, false).expect("it is open");
        stream.send_data(body.clone(), true).expect("it is open");
        *number += 1;
    }
    drop(connection);
    Arc::into_inner(written).and_then(|written| written.into_inner().ok()).expect("nobody else counts")
}
