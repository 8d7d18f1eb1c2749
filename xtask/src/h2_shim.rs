//! A shim that asks larder over HTTP/2, by prior knowledge: each connection of a client is one of HTTP/2, each of its requests a stream, and
//! the answer goes back as HTTP/1.1, framed anew. By the crate `h2`, which larder does not use. What is about one connection of HTTP/1 ends
//! here.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, Version, header};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;

use crate::shim::{self, BEHIND};
use crate::text_client::{BodyLeft, BodyPart, TextClient, TextHead};

/// Turns in which the connection writes what it was given.
const TURNS_TO_ASK: usize = 4;
/// Of one connection alone (RFC 9113 §8.2.2), or said by pseudo-fields.
const LEFT_OUT: [&str; 6] = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "host"];

/// The shim, for as long as larder runs.
pub fn run() -> Result<(), String> {
    shim::serve(carry)
}

async fn carry(client: UnixStream) -> io::Result<()> {
    let server = UnixStream::connect(BEHIND).await?;
    let (requests, connection) = h2::client::handshake(server).await.map_err(io::Error::other)?;
    let (of_client, mut to_client) = client.into_split();
    let mut client = TextClient::new(of_client);
    let mut connection = pin!(connection);
    loop {
        let head = tokio::select! {
            head = client.head() => head?,
            // An answer is over: its client is told so, as by an end of HTTP/1.
            _ = &mut connection => return Ok(()),
        };
        let Some(head) = head else { return Ok(()) };
        let (ended, is_over) = {
            let mut exchange = pin!(exchange(&requests, &head, &mut client, &mut to_client));
            tokio::select! {
                ended = &mut exchange => (ended, false),
                // What has come is still handed on.
                _ = &mut connection => (exchange.await, true),
            }
        };
        ended?;
        if is_over || head.is_last() {
            return to_client.shutdown().await;
        }
    }
}

/// One request, and its answer. An error is the end of the client's connection.
async fn exchange(
    requests: &SendRequest<Bytes>,
    head: &TextHead,
    client: &mut TextClient,
    to_client: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let mut left = head.body()?;
    let has_body = left != BodyLeft::Length(0);
    let mut requests = requests.clone().ready().await.map_err(io::Error::other)?;
    let (response, stream) = requests.send_request(translate(head)?, !has_body).map_err(io::Error::other)?;
    // Only one thread looks at it.
    let is_whole = AtomicBool::new(!has_body);
    let up = async {
        if has_body {
            upload(client, &mut left, stream).await?;
            is_whole.store(true, Ordering::Relaxed);
        }
        // Who asks and leaves at once has asked: the frames of that go out meanwhile.
        for _ in 0..TURNS_TO_ASK {
            tokio::task::yield_now().await;
        }
        Err(client.left().await)
    };
    tokio::select! {
        // Where the answer comes first.
        biased;
        answered = answer(response, head, to_client) => answered?,
        gone = up => gone?,
    }
    // The rest of the body is no request.
    if is_whole.load(Ordering::Relaxed) { Ok(()) } else { Err(io::ErrorKind::ConnectionAborted.into()) }
}

fn translate(head: &TextHead) -> io::Result<Request<()>> {
    let mut request = Request::new(());
    *request.method_mut() = head.method.parse().map_err(io::Error::other)?;
    let host = head.field("host").and_then(|host| std::str::from_utf8(host).ok()).filter(|host| !host.is_empty());
    *request.uri_mut() = match (head.target.starts_with('/') || head.target == "*", host) {
        (true, Some(host)) => {
            let target: PathAndQuery = head.target.parse().map_err(io::Error::other)?;
            Uri::builder().scheme("http").authority(host).path_and_query(target).build().map_err(io::Error::other)?
        }
        _ => head.target.parse().map_err(io::Error::other)?,
    };
    // Only so may it come without a host.
    *request.version_mut() = if request.uri().authority().is_some() { Version::HTTP_2 } else { Version::HTTP_11 };
    let is_left_out = |name: &str| {
        LEFT_OUT.iter().any(|known| name.eq_ignore_ascii_case(known)) || head.has_token("connection", name)
    };
    let kept = head.fields.iter().filter(|(name, _)| !is_left_out(name));
    *request.headers_mut() =
        lines(kept.filter(|(name, value)| !name.eq_ignore_ascii_case("te") || value == b"trailers"))?;
    Ok(request)
}

fn lines<'f>(fields: impl Iterator<Item = &'f (String, Vec<u8>)>) -> io::Result<HeaderMap> {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(io::Error::other)?;
        map.append(name, HeaderValue::from_bytes(value).map_err(io::Error::other)?);
    }
    Ok(map)
}

/// Does not end where larder wants no more of it: its answer is what is waited for then.
async fn upload(client: &mut TextClient, left: &mut BodyLeft, mut stream: SendStream<Bytes>) -> io::Result<()> {
    loop {
        let (is_taken, is_last) = match client.part(left).await? {
            BodyPart::Data(bytes) => (send(&mut stream, bytes).await, false),
            BodyPart::End(trailers) if trailers.is_empty() => (stream.send_data(Bytes::new(), true).is_ok(), true),
            BodyPart::End(trailers) => (stream.send_trailers(lines(trailers.iter())?).is_ok(), true),
        };
        match (is_taken, is_last) {
            (true, true) => return Ok(()),
            (true, false) => {}
            (false, _) => std::future::pending::<()>().await,
        }
    }
}

/// False where the stream takes no more.
async fn send(stream: &mut SendStream<Bytes>, mut bytes: Bytes) -> bool {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let Some(Ok(room)) = poll_fn(|cx| stream.poll_capacity(cx)).await else { return false };
        if stream.send_data(bytes.split_to(room.min(bytes.len())), false).is_err() {
            return false;
        }
    }
    true
}

/// What comes first of an answer.
enum AnswerStart {
    Interim(Response<()>),
    Final(Response<RecvStream>),
}

fn poll_start(response: &mut ResponseFuture, cx: &mut Context<'_>) -> Poll<Result<AnswerStart, h2::Error>> {
    match response.poll_informational(cx) {
        Poll::Ready(Some(interim)) => Poll::Ready(interim.map(AnswerStart::Interim)),
        Poll::Ready(None) | Poll::Pending => pin!(response).poll(cx).map(|answer| answer.map(AnswerStart::Final)),
    }
}

async fn answer(mut response: ResponseFuture, asked: &TextHead, to_client: &mut OwnedWriteHalf) -> io::Result<()> {
    let answer = loop {
        match poll_fn(|cx| poll_start(&mut response, cx)).await.map_err(io::Error::other)? {
            AnswerStart::Interim(interim) => {
                to_client.write_all(&text(interim.status(), interim.headers(), b"\r\n")).await?;
            }
            AnswerStart::Final(answer) => break answer,
        }
    };
    let (head, mut body) = answer.into_parts();
    let has_none = asked.method == "HEAD" || matches!(head.status.as_u16(), 204 | 304);
    let is_chunked = !has_none && !head.headers.contains_key(header::CONTENT_LENGTH);
    let framing: &[u8] = if is_chunked { b"transfer-encoding: chunked\r\n\r\n" } else { b"\r\n" };
    to_client.write_all(&text(head.status, &head.headers, framing)).await?;
    while let Some(bytes) = body.data().await {
        let bytes = bytes.map_err(io::Error::other)?;
        if is_chunked && !bytes.is_empty() {
            to_client.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
            to_client.write_all(&bytes).await?;
            to_client.write_all(b"\r\n").await?;
        } else {
            to_client.write_all(&bytes).await?;
        }
        body.flow_control().release_capacity(bytes.len()).map_err(io::Error::other)?;
    }
    let trailers = body.trailers().await.map_err(io::Error::other)?;
    if is_chunked {
        let mut last = b"0\r\n".to_vec();
        write_lines(&trailers.unwrap_or_default(), &mut last);
        last.extend_from_slice(b"\r\n");
        to_client.write_all(&last).await?;
    }
    Ok(())
}

fn text(status: StatusCode, fields: &HeaderMap, end: &[u8]) -> Vec<u8> {
    let reason = status.canonical_reason().unwrap_or_default();
    let mut text = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    write_lines(fields, &mut text);
    text.extend_from_slice(end);
    text
}

fn write_lines(fields: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in fields {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: &str, fields: &[(&str, &str)], uri: &str, kept: &str) {
        let fields = fields.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
        let head = TextHead { method: "GET".to_owned(), target: target.to_owned(), is_current: true, fields };
        let request = translate(&head).expect("it can be asked");
        let mut lines = Vec::new();
        write_lines(request.headers(), &mut lines);
        assert_eq!((request.uri().to_string().as_str(), String::from_utf8_lossy(&lines).as_ref()), (uri, kept));
    }

    #[test]
    fn a_request_is_asked_without_what_is_about_its_connection() {
        let fields =
            [("Host", "a.test"), ("Connection", "X-Own, close"), ("X-Own", "1"), ("X-Two", "2"), ("TE", "gzip")];
        check("/a?b", &fields, "http://a.test/a?b", "x-two: 2\r\n");
        check("http://b.test/", &[("Host", "a.test"), ("TE", "trailers")], "http://b.test/", "te: trailers\r\n");
        check("/a", &[], "/a", "");
    }

    #[test]
    fn a_head_goes_back_as_text() {
        let mut fields = HeaderMap::new();
        fields.append("set-cookie", HeaderValue::from_static("a=b"));
        fields.append("set-cookie", HeaderValue::from_static("c=d"));
        let text = text(StatusCode::NOT_FOUND, &fields, b"\r\n");
        assert_eq!(
            String::from_utf8_lossy(&text),
            "HTTP/1.1 404 Not Found\r\nset-cookie: a=b\r\nset-cookie: c=d\r\n\r\n"
        );
    }
}
