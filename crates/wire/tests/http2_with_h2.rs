//! The machine of an HTTP/2 connection in conversation with a client that others wrote (the crate `h2`).
//!
//! The server here is the loop that a proxy has around the machine, in small: it reads, hands in, answers by path, and writes
//! what may be written. `/echo` gives the request's body back, `/fields` the fields, `/bytes/N` so many bytes.

use std::collections::HashMap;

use bytes::Bytes;
use h2::client::{self, ResponseFuture, SendRequest};
use http::{Request, Response};
use message::{FieldName, Scheme, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use wire::http2::hpack::{write_fields, write_known_field, write_known_number, write_status};
use wire::http2::{ConnectionEvent, ErrorCode, HeadArena, Http2Connection, Http2Options, Received, StreamId};
use wire::limits::FRAME_PAYLOAD_BYTES_MIN;
use wire::{ChunkedLimits, HeadLimits};

const OPTIONS: Http2Options<'static> = Http2Options {
    head_limits: &HeadLimits::REQUEST,
    trailer_limits: &ChunkedLimits::DEFAULT,
    scheme: Scheme::Https,
    believes_scheme: false,
    streams_max: 100,
    extended_connect: false,
    peer_frame_bytes_min: FRAME_PAYLOAD_BYTES_MIN,
};

/// What one stream has been asked and is answered.
#[derive(Default)]
struct Answer {
    path: String,
    fields: Vec<u8>,
    body: Vec<u8>,
    trailers: Option<Vec<u8>>,
    head_is_sent: bool,
    is_due: bool,
}

struct Server {
    io: DuplexStream,
    connection: Http2Connection,
    arena: HeadArena,
    answers: HashMap<StreamId, Answer>,
    /// What was told of each stream that ended before its time.
    ended: Vec<ErrorCode>,
    /// It leaves when so many requests have come.
    leaves_after: Option<usize>,
    options: Http2Options<'static>,
}

impl Server {
    fn over(io: DuplexStream, options: Http2Options<'static>) -> Server {
        let connection = Http2Connection::of_client(&options);
        let (arena, answers) = (HeadArena::default(), HashMap::new());
        Server { io, connection, arena, answers, ended: Vec::new(), leaves_after: None, options }
    }

    async fn serve(mut self) -> Server {
        let (mut kept, mut room) = (Vec::new(), vec![0; 16 << 10]);
        loop {
            self.write().await;
            if self.connection.has_left() {
                return self;
            }
            let bytes = self.io.read(&mut room).await.unwrap_or(0);
            if bytes == 0 {
                return self;
            }
            kept.extend_from_slice(&room[..bytes]);
            let mut consumed = 0;
            while self.take_event(&kept, &mut consumed) {}
            kept.drain(..consumed);
        }
    }

    fn take_event(&mut self, input: &[u8], consumed: &mut usize) -> bool {
        let unread = &input[*consumed..];
        let received =
            self.connection.receive(unread, &mut self.arena, &self.options, 0).expect("a client that behaves");
        let Received { consumed: bytes, event } = received;
        *consumed += bytes;
        let mut released = None;
        match event {
            None => return false,
            Some(ConnectionEvent::Request { stream, head, is_whole }) => {
                let request = &head.received.request;
                let mut answer =
                    Answer { path: String::from_utf8_lossy(request.path).into_owned(), ..Answer::default() };
                for field in request.fields.iter() {
                    let line = [field.name_text, b": ", field.value, b"\n"].concat();
                    answer.fields.extend_from_slice(&line);
                }
                answer.is_due = is_whole;
                self.answers.insert(stream, answer);
            }
            Some(ConnectionEvent::Data { stream, range, is_last }) => {
                let answer = self.answers.get_mut(&stream).expect("it was asked");
                released = Some((stream, range.len()));
                answer.body.extend_from_slice(&unread[range]);
                answer.is_due = is_last;
            }
            Some(ConnectionEvent::Trailers { stream, fields }) => {
                let mut block = Vec::new();
                write_fields(fields, &mut block);
                let answer = self.answers.get_mut(&stream).expect("it was asked");
                (answer.trailers, answer.is_due) = (Some(block), true);
            }
            Some(ConnectionEvent::StreamEnded { stream, code, .. }) => {
                self.answers.remove(&stream);
                self.ended.push(code);
            }
            Some(ConnectionEvent::Refused { stream, refusal, .. }) => {
                let answer = Answer { path: format!("/refused/{}", refusal.status), is_due: true, ..Answer::default() };
                self.answers.insert(stream, answer);
            }
            Some(ConnectionEvent::Response { .. }) => unreachable!("we are the server"),
            Some(ConnectionEvent::WindowOpened { .. } | ConnectionEvent::GoneAway { .. }) => {}
        }
        if let Some((stream, bytes)) = released {
            self.connection.release(stream, bytes);
        }
        let due: Vec<StreamId> = self.answers.iter().filter(|(_, it)| it.is_due).map(|(id, _)| *id).collect();
        due.into_iter().for_each(|stream| self.prepare(stream));
        true
    }

    fn prepare(&mut self, stream: StreamId) {
        let answer = self.answers.get_mut(&stream).expect("it is due");
        answer.is_due = false;
        if let Some(count) = answer.path.strip_prefix("/bytes/") {
            answer.body = (0..count.parse().expect("a number")).map(|n: usize| n as u8).collect();
        }
        if answer.path == "/fields" {
            answer.body = std::mem::take(&mut answer.fields);
        }
        self.connection.set_ready(stream, true);
        if self.leaves_after == Some(stream.0 as usize / 2 + 1) {
            self.connection.announce_leaving();
            self.connection.leave();
        }
    }

    async fn write(&mut self) {
        loop {
            let control = self.connection.control().to_vec();
            self.connection.control_written(control.len());
            let mut out = control;
            let answers = &self.answers;
            // A head needs no window, and neither has what follows the last byte.
            let next = self.connection.next_to_write(|id| answers[&id].head_is_sent && !answers[&id].body.is_empty());
            let Some(stream) = next else {
                self.io.write_all(&out).await.ok();
                return;
            };
            self.write_some(stream, &mut out);
            if self.io.write_all(&out).await.is_err() {
                return;
            }
        }
    }

    /// The head, or one frame of the body, or the trailers.
    fn write_some(&mut self, stream: StreamId, out: &mut Vec<u8>) {
        let answer = self.answers.get_mut(&stream).expect("it is ready");
        let block = match (answer.head_is_sent, &mut answer.trailers) {
            (false, _) => Some(head_of(answer)),
            (true, Some(trailers)) if answer.body.is_empty() => Some(std::mem::take(trailers)),
            _ => None,
        };
        if let Some(block) = block {
            let ends_stream = answer.body.is_empty() && (answer.head_is_sent || answer.trailers.is_none());
            answer.head_is_sent = true;
            let mut at = 0;
            for frame in self.connection.head_frames(stream, block.len(), ends_stream).expect("it is open") {
                out.extend_from_slice(frame.bytes());
                out.extend_from_slice(&block[at..at + frame.block_bytes]);
                at += frame.block_bytes;
            }
            return;
        }
        let bytes = self.connection.sendable(stream).min(answer.body.len());
        let ends_stream = bytes == answer.body.len() && answer.trailers.is_none();
        out.extend_from_slice(&self.connection.data_frame(stream, bytes, ends_stream).expect("it may be sent"));
        out.extend(answer.body.drain(..bytes));
    }
}

fn head_of(answer: &Answer) -> Vec<u8> {
    let mut block = Vec::new();
    let status = answer.path.strip_prefix("/refused/").map_or(200, |status| status.parse().expect("a number"));
    write_status(Status(status), &mut block);
    write_known_field(FieldName::SetCookie, b"a=b", &mut block);
    write_known_number(FieldName::ContentLength, answer.body.len() as u64, &mut block);
    if answer.path == "/large-head" {
        write_known_field(FieldName::Via, &[b'~'; 40_000], &mut block);
    }
    block
}

async fn client_of(build: &client::Builder) -> (SendRequest<Bytes>, tokio::task::JoinHandle<Server>) {
    client_and(build, OPTIONS, None).await
}

async fn client_and(
    build: &client::Builder,
    options: Http2Options<'static>,
    leaves_after: Option<usize>,
) -> (SendRequest<Bytes>, tokio::task::JoinHandle<Server>) {
    let (near, far) = tokio::io::duplex(32 << 10);
    let server = Server { leaves_after, ..Server::over(far, options) };
    let server = tokio::spawn(server.serve());
    let (asks, connection) = build.handshake(near).await.expect("a greeting");
    tokio::spawn(connection);
    (asks.ready().await.expect("it is open"), server)
}

fn request(method: &str, path: &str) -> Request<()> {
    Request::builder().method(method).uri(format!("https://t.test{path}")).body(()).expect("a request")
}

/// The whole body, each piece of it given back.
async fn body_of(response: Response<h2::RecvStream>) -> (Vec<u8>, Option<http::HeaderMap>) {
    let (mut body, mut all) = (response.into_body(), Vec::new());
    while let Some(piece) = body.data().await {
        let piece = piece.expect("a whole body");
        body.flow_control().release_capacity(piece.len()).expect("it was taken");
        all.extend_from_slice(&piece);
    }
    (all, body.trailers().await.expect("in good order"))
}

async fn get(asks: &mut SendRequest<Bytes>, request: Request<()>) -> ResponseFuture {
    *asks = asks.clone().ready().await.expect("it is open");
    asks.send_request(request, true).expect("it may be asked").0
}

/// Sends so many bytes as the windows allow.
async fn send_body(mut stream: h2::SendStream<Bytes>, mut body: Bytes, trailers: Option<http::HeaderMap>) {
    while !body.is_empty() {
        stream.reserve_capacity(body.len());
        let room = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
        let room = room.expect("it is open").expect("it is open").min(body.len());
        let is_last = room == body.len() && trailers.is_none();
        stream.send_data(body.split_to(room), is_last).expect("there is room");
    }
    if let Some(trailers) = trailers {
        stream.send_trailers(trailers).expect("it is open");
    }
}

#[tokio::test]
async fn a_hundred_streams_with_bodies_both_ways() {
    let (mut asks, _server) = client_of(&client::Builder::new()).await;
    let mut asked = Vec::new();
    for n in 0..100 {
        asks = asks.ready().await.expect("it is open");
        let (response, stream) = asks.send_request(request("POST", "/echo"), false).expect("it may be asked");
        let body = Bytes::from(vec![n as u8; 1_000 * n]);
        asked.push((n, tokio::spawn(response)));
        match body.is_empty() {
            true => drop({
                let mut stream = stream;
                stream.send_data(Bytes::new(), true)
            }),
            false => drop(tokio::spawn(send_body(stream, body, None))),
        }
    }
    for (n, response) in asked {
        let response = response.await.expect("no panic").expect("an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(body_of(response).await.0, vec![n as u8; 1_000 * n]);
    }
}

#[tokio::test]
async fn a_window_of_one_byte_is_honoured() {
    let (mut asks, _server) = client_of(client::Builder::new().initial_window_size(1)).await;
    let response = get(&mut asks, request("GET", "/bytes/300")).await.await.expect("an answer");
    let body = body_of(response).await.0;
    assert_eq!(body, (0..300).map(|n| n as u8).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_large_upload_keeps_flowing() {
    let (mut asks, _server) = client_of(&client::Builder::new()).await;
    let (response, stream) = asks.send_request(request("POST", "/echo"), false).expect("it may be asked");
    let body = Bytes::from((0..8_000_000u32).map(|n| n as u8).collect::<Vec<_>>());
    let sent = tokio::spawn(send_body(stream, body.clone(), None));
    assert_eq!(body_of(response.await.expect("an answer")).await.0, body);
    sent.await.expect("all is sent");
}

#[tokio::test]
async fn trailers_go_both_ways() {
    let (mut asks, _server) = client_of(&client::Builder::new()).await;
    let (response, stream) = asks.send_request(request("POST", "/echo"), false).expect("it may be asked");
    let trailers: http::HeaderMap = [("x-sum".parse().unwrap(), "17".parse().unwrap())].into_iter().collect();
    send_body(stream, Bytes::from_static(b"pie"), Some(trailers.clone())).await;
    assert_eq!(body_of(response.await.expect("an answer")).await, (b"pie".to_vec(), Some(trailers)));
}

#[tokio::test]
async fn resets_end_their_streams_and_no_others() {
    let (mut asks, server) = client_of(client::Builder::new().initial_window_size(100)).await;
    let kept = get(&mut asks, request("GET", "/bytes/1000")).await;
    for _ in 0..20 {
        asks = asks.ready().await.expect("it is open");
        let (response, mut stream) = asks.send_request(request("POST", "/echo"), false).expect("it may be asked");
        stream.send_data(Bytes::from_static(b"half a pie"), false).expect("there is room");
        tokio::task::yield_now().await;
        stream.send_reset(h2::Reason::CANCEL);
        drop(response);
    }
    assert_eq!(body_of(kept.await.expect("an answer")).await.0.len(), 1000);
    drop(asks);
    let ended = server.await.expect("no panic").ended;
    assert!(ended.len() >= 19 && ended.iter().all(|code| *code == ErrorCode::Cancel), "{ended:?}");
}

#[tokio::test]
async fn heads_larger_than_a_frame_arrive() {
    let (mut asks, _server) = client_of(client::Builder::new().max_header_list_size(1 << 20)).await;
    let response = get(&mut asks, request("GET", "/large-head")).await.await.expect("an answer");
    assert_eq!(response.headers()["via"].len(), 40_000);
    let mut large = request("GET", "/fields");
    large.headers_mut().insert("x-large", "~".repeat(8_000).parse().unwrap());
    large.headers_mut().insert("x-larger", "~".repeat(8_100).parse().unwrap());
    large.headers_mut().insert("x-largest", "!".repeat(8_100).parse().unwrap());
    let response = get(&mut asks, large).await.await.expect("an answer");
    assert!(body_of(response).await.0.len() > 24_000);
    let mut too_large = request("GET", "/fields");
    too_large.headers_mut().insert("x-large", "a".repeat(9_000).parse().unwrap());
    assert_eq!(get(&mut asks, too_large).await.await.expect("an answer").status(), 431);
}

#[tokio::test]
async fn fields_arrive_whatever_the_tables_hold() {
    for table_bytes in [0, 100, 4096] {
        let (mut asks, _server) = client_of(client::Builder::new().header_table_size(table_bytes)).await;
        for n in 0..1_000u32 {
            let mut asked = request("GET", "/fields");
            let number = n.wrapping_mul(2_654_435_761) >> 16;
            asked.headers_mut().insert("x-number", number.to_string().parse().unwrap());
            asked.headers_mut().insert("x-few", (number % 7).to_string().parse().unwrap());
            asked.headers_mut().insert("cookie", "~".repeat(number as usize % 300).parse().unwrap());
            let response = get(&mut asks, asked).await.await.expect("an answer");
            let lines = String::from_utf8(body_of(response).await.0).expect("text");
            let expect = format!(
                "host: t.test\nx-number: {number}\nx-few: {}\ncookie: {}\n",
                number % 7,
                "~".repeat(number as usize % 300)
            );
            assert_eq!(lines, expect);
        }
    }
}

#[tokio::test]
async fn who_leaves_answers_what_has_come() {
    let (mut asks, server) = client_and(&client::Builder::new(), OPTIONS, Some(3)).await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(get(&mut asks, request("GET", "/bytes/50000")).await);
    }
    for answer in answers {
        assert_eq!(body_of(answer.await.expect("an answer")).await.0.len(), 50_000);
    }
    assert!(server.await.expect("no panic").connection.has_left());
}

/// RFC 8441.
#[tokio::test]
async fn a_websocket_is_asked_for_by_extended_connect() {
    let options = Http2Options { extended_connect: true, ..OPTIONS };
    let (mut asks, _server) = client_and(&client::Builder::new(), options, None).await;
    // The settings have come when anything has been answered.
    assert_eq!(get(&mut asks, request("GET", "/bytes/1")).await.await.expect("an answer").status(), 200);
    assert!(asks.is_extended_connect_protocol_enabled());
    let mut connect = request("CONNECT", "/echo");
    connect.extensions_mut().insert(h2::ext::Protocol::from_static("websocket"));
    let (response, stream) = asks.send_request(connect, false).expect("it may be asked");
    send_body(stream, Bytes::from_static(b"frames of another kind"), None).await;
    let response = response.await.expect("an answer");
    assert_eq!(body_of(response).await.0, b"frames of another kind");
}
