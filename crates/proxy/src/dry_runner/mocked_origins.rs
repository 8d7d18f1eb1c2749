//! The mocked origins of a dry run: what would be a connection to a backend ends here, and what is asked on it is written
//! down and answered from a list.
//!
//! The other end is a pair of sockets of this process that has no name and no address. All above it is the real fetch.

use std::hash::{Hash, Hasher};
use std::io;
use std::sync::Arc;

use message::{Method, Scheme, Status};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use wire::{
    BodyDecoder, Decoded, Persistence, read_request, write_field, write_head_end, write_number_field, write_status_line,
};

use crate::dry_runner::mocked_exchange::{AnswerParts, MockedAnswer, RanHead, Sent};
use crate::limits::{Limits, MOCKED_BODY_BYTES_MAX};
use crate::settings::{Greeting, OriginSettings, OriginUrl};

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    script: Mutex<Script>,
    /// Connections that nobody reads, until they are closed.
    #[cfg(test)]
    pub(super) resting: Mutex<Vec<std::os::unix::net::UnixStream>>,
}

#[derive(Debug, Default)]
struct Script {
    answers: Vec<MockedAnswer>,
    answered_count: usize,
    sent: Vec<Sent>,
}

/// One of them, by its backend's name.
#[derive(Clone, Debug)]
pub struct MockedOrigin {
    pub(super) stage: Arc<Stage>,
    backend: Arc<str>,
}

impl PartialEq for MockedOrigin {
    fn eq(&self, other: &MockedOrigin) -> bool {
        Arc::ptr_eq(&self.stage, &other.stage) && self.backend == other.backend
    }
}

impl Eq for MockedOrigin {}

impl Hash for MockedOrigin {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.backend.hash(state);
    }
}

impl Stage {
    /// From here on the backend is mocked. One that is none stays none.
    pub(crate) fn take_over(self: &Arc<Stage>, backend: &mut OriginSettings) {
        let backend_name: Arc<str> = backend.name.as_str().into();
        for url in &mut backend.urls {
            *url = OriginUrl::Mocked(MockedOrigin { stage: Arc::clone(self), backend: Arc::clone(&backend_name) });
        }
        backend.greeting = Greeting::default();
        // A test of failing answers is no reason to leave the next ones out.
        backend.ejection_failures = u32::MAX;
    }

    /// One after another; the last one again when they are used up.
    pub(crate) fn begin(&self, answers: Vec<MockedAnswer>) {
        *self.script.lock() = Script { answers, ..Script::default() };
    }

    pub(crate) fn take_sent(&self) -> Vec<Sent> {
        std::mem::take(&mut self.script.lock().sent)
    }

    fn next_answer(&self) -> MockedAnswer {
        let mut script = self.script.lock();
        let at = script.answered_count.min(script.answers.len().saturating_sub(1));
        script.answered_count += 1;
        script.answers.get(at).cloned().unwrap_or_default()
    }

    fn note(&self, sent: Sent) {
        self.script.lock().sent.push(sent);
    }
}

impl MockedOrigin {
    pub fn backend(&self) -> &str {
        &self.backend
    }

    /// A connection. One that is to fail is refused, as by a machine where nobody listens.
    pub(crate) fn open(&self) -> io::Result<UnixStream> {
        let answer = self.stage.next_answer();
        if answer == MockedAnswer::Refused {
            self.stage.note(Sent { backend: self.backend.to_string(), request: None, body: Vec::new() });
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (ours, theirs) = UnixStream::pair()?;
        let origin = self.clone();
        tokio::task::spawn_local(async move {
            // The client's end notices whatever goes wrong here.
            let _ = origin.converse(theirs, Some(answer)).await;
        });
        Ok(ours)
    }

    /// Without an answer the next one is given.
    pub(super) async fn converse(&self, mut stream: UnixStream, answer: Option<MockedAnswer>) -> io::Result<()> {
        let Some((request, method, body)) = read(&mut stream).await? else { return Ok(()) };
        self.stage.note(Sent { backend: self.backend.to_string(), request: Some(request), body });
        match answer.unwrap_or_else(|| self.stage.next_answer()) {
            // There is a connection already: it is closed.
            MockedAnswer::Refused => {}
            MockedAnswer::Given(answer) => stream.write_all(&render(&answer, method)).await?,
            #[cfg(test)]
            MockedAnswer::Wire(answer) => return self.go_on(stream, answer).await,
        }
        stream.shutdown().await
    }
}

/// As it goes over the wire. Nothing follows it on its connection.
fn render(answer: &AnswerParts, method: Method) -> Vec<u8> {
    let has = |wanted: &str| answer.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    let bodiless = matches!(answer.status, 100..200 | 204 | 304);
    let mut body = answer.body.clone();
    let mut out = Vec::new();
    write_status_line(&mut out, Status(answer.status), Some(answer.reason.as_bytes()));
    for (name, value) in &answer.fields {
        write_field(&mut out, name.as_bytes(), value.as_bytes());
    }
    let is_chunked = has("transfer-encoding").is_some();
    match has("content-length").and_then(|(_, length)| length.parse::<usize>().ok()) {
        Some(length) => body.resize(length.min(MOCKED_BODY_BYTES_MAX), b'x'),
        None if bodiless || is_chunked => {}
        None => write_number_field(&mut out, "Content-Length", body.len() as u64),
    }
    write_head_end(&mut out, Persistence::Close);
    if !bodiless && method != Method::Head {
        if is_chunked && !body.is_empty() {
            out.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
            body.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(&body);
        if is_chunked {
            out.extend_from_slice(b"0\r\n\r\n");
        }
    }
    out
}

/// A request and its body. `None` when the other end closed instead.
async fn read(stream: &mut UnixStream) -> io::Result<Option<(RanHead, Method, Vec<u8>)>> {
    let (mut received, mut spans) = (Vec::new(), Vec::new());
    let (head, method, decoder) = loop {
        if stream.read_buf(&mut received).await? == 0 {
            return Ok(None);
        }
        let request = read_request(&received, &mut spans, &Limits::default().request_head, Scheme::Http);
        if let Some(request) = request.map_err(|refusal| io::Error::other(refusal.token))? {
            let decoder = BodyDecoder::for_request(request.body, &Limits::default().chunked);
            let (head, method, head_bytes) =
                (RanHead::of_request(&request.request), request.request.method, request.head_bytes);
            received.drain(..head_bytes);
            break (head, method, decoder);
        }
    };
    let mut body = Collected::new(decoder);
    while !body.take(&mut received)? {
        if stream.read_buf(&mut received).await? == 0 {
            break;
        }
    }
    Ok(Some((head, method, body.bytes)))
}

/// A body on its way into memory.
pub(crate) struct Collected {
    decoder: BodyDecoder,
    pub(crate) bytes: Vec<u8>,
}

impl Collected {
    pub(crate) fn new(decoder: BodyDecoder) -> Collected {
        Collected { decoder, bytes: Vec::new() }
    }

    /// Takes what is there of it. True at its end.
    pub(crate) fn take(&mut self, received: &mut Vec<u8>) -> io::Result<bool> {
        let mut used = 0;
        let is_end = loop {
            match self.decoder.decode(&received[used..]).map_err(|refusal| io::Error::other(refusal.token))? {
                Decoded::Data { from, to } => {
                    self.bytes.extend_from_slice(&received[used + from..used + to]);
                    used += to;
                }
                Decoded::More { consumed } => {
                    used += consumed;
                    break false;
                }
                Decoded::End { consumed } => {
                    used += consumed;
                    break true;
                }
            }
        };
        received.drain(..used);
        Ok(is_end)
    }
}
