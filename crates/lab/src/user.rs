//! One user: it takes a start from the agenda, asks, reads the answer, and takes the next.
//!
//! A task of its own on its thread's runtime, with at most one connection, which it opens when there is something to
//! ask. It knows requests as bytes and answers as `answer` defines them; when to ask is the agenda's business,
//! what an answer is worth the desk's. Over HTTP/2 the same user has a `http2_conversation` on its connection.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Sleep;

use crate::agenda::{Next, Start};
use crate::answer::Fault;
use crate::answer_reader::AnswerReader;
use crate::client_thread::Desk;
use crate::dialling::dial;
use crate::error_kind::ErrorKind;
use crate::http2_conversation::Http2Conversation;
use crate::lab_clock::Nanos;
use crate::limits::{CLOSE_GRACE, CONNECT_PAUSE};
use crate::tally::{Life, Stamps};
use crate::tls_client;
use crate::transport::Transport;

/// A request whose outcome is not known yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) start: Start,
    pub(crate) sent: Nanos,
    pub(crate) first_byte: Option<Nanos>,
}

/// From the first start to the last.
pub(crate) async fn live(desk: Rc<Desk>, user: usize) {
    let _leaving = Leaving(&desk);
    // What was asked on a connection that the server then closed in good order is asked again on the next one.
    let mut asked = VecDeque::with_capacity(1);
    let tls = desk.tls_of_user();
    loop {
        if asked.is_empty() {
            match poll_fn(|cx| desk.poll_next(user, cx)).await {
                Next::Ask(start) => asked.push_back(Asked { start, sent: start.intended, first_byte: None }),
                Next::HangUp => continue,
                Next::Leave => break,
            }
        }
        let ended = match dial(&desk, user, tls.as_ref()).await {
            Ok(connection) => converse(&desk, user, connection, asked).await,
            Err(fault) => Err((fault, asked)),
        };
        asked = match ended {
            Ok(asked) => asked,
            Err((fault, mut asked)) => {
                asked.drain(..).for_each(|_| desk.note_failed(user, fault.kind, || fault.text.clone()));
                tokio::time::sleep(CONNECT_PAUSE).await;
                asked
            }
        };
    }
}

/// What is to be asked again, on the next connection; or why there was no conversation about it.
async fn converse(
    desk: &Desk,
    user: usize,
    connection: (Transport, Nanos),
    asked: VecDeque<Asked>,
) -> Result<VecDeque<Asked>, (Fault, VecDeque<Asked>)> {
    match &desk.http2 {
        None => {
            let mut conversation = Conversation::new(desk, user, connection.0, connection.1, asked);
            poll_fn(|cx| conversation.poll(cx)).await;
            Ok(std::mem::take(&mut conversation.asked))
        }
        Some(requests) => {
            let mut conversation = Http2Conversation::begin(desk, requests, user, connection, asked).await?;
            poll_fn(|cx| conversation.poll(cx)).await;
            Ok(std::mem::take(&mut conversation.asked))
        }
    }
}

/// However a user ends. The runtime keeps a panic to itself, and the others would wait for this one for ever.
struct Leaving<'d>(&'d Desk);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.leave(std::thread::panicking());
    }
}

/// One connection, from its first request to its end.
struct Conversation<'d> {
    desk: &'d Desk,
    user: usize,
    stream: Transport,
    phase: Phase,
    /// Oldest first; the answers come in this order.
    asked: VecDeque<Asked>,
    reader: AnswerReader,
    life: Life,
    /// What the socket did not take at once.
    unsent: Vec<u8>,
    deadline: Nanos,
    /// Set for some earlier deadline; looks again when it rings, so that no timer is touched for each request.
    alarm: Pin<Box<Sleep>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// More may be asked here.
    Asking,
    /// Nothing more is asked; what was asked is still answered.
    Finishing,
    /// The server said that it will close, and does …
    Closing,
    /// … or not yet: it has so much time as the alarm gives it.
    Lingering,
}

/// Does the conversation go on?
enum After {
    More,
    Over,
}

impl<'d> Conversation<'d> {
    fn new(desk: &'d Desk, user: usize, stream: Transport, begun: Nanos, asked: VecDeque<Asked>) -> Conversation<'d> {
        let alarm = Box::pin(tokio::time::sleep(desk.workload.timeout));
        let deadline = Nanos::now().after(desk.workload.timeout);
        let (reader, unsent) = (AnswerReader::of(&desk.catalogue), Vec::new());
        let (phase, life) = (Phase::Asking, Life { begun, first_byte: None, answers: 0 });
        let mut this = Conversation { desk, user, stream, phase, asked, reader, life, unsent, deadline, alarm };
        let now = Nanos::now();
        for index in 0..this.asked.len() {
            let start = this.asked[index].start;
            this.asked[index] = Asked { start, sent: now, first_byte: None };
            this.unsent.extend_from_slice(desk.catalogue.request(start.request));
            desk.note_sent(&start, now);
        }
        if desk.one_each() {
            this.phase = Phase::Finishing;
        }
        this
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Err(error) = self.ask(cx) {
                self.broke(ErrorKind::WriteError, &error.to_string());
                return Poll::Ready(());
            }
            if self.asked.is_empty() && self.phase == Phase::Finishing {
                return Poll::Ready(());
            }
            match self.read(cx) {
                Poll::Ready(After::More) => {}
                Poll::Ready(After::Over) => return Poll::Ready(()),
                Poll::Pending => return self.watch_deadline(cx),
            }
        }
    }

    /// Asks as much as the depth allows and the agenda gives, in one write.
    fn ask(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let desk = self.desk;
        let mut fresh = desk.outgoing.borrow_mut();
        fresh.clear();
        while self.phase == Phase::Asking && self.asked.len() < desk.depth() {
            match desk.poll_next(self.user, cx) {
                Poll::Ready(Next::Ask(start)) => {
                    let now = Nanos::now();
                    if self.asked.is_empty() {
                        self.deadline = now.after(desk.workload.timeout);
                    }
                    self.asked.push_back(Asked { start, sent: now, first_byte: None });
                    fresh.extend_from_slice(desk.catalogue.request(start.request));
                    desk.note_sent(&start, now);
                }
                Poll::Ready(Next::HangUp | Next::Leave) => self.phase = Phase::Finishing,
                Poll::Pending => break,
            }
        }
        if self.unsent.is_empty() {
            let written = self.stream.send(&fresh, cx)?;
            self.unsent.extend_from_slice(&fresh[written..]);
        } else {
            self.unsent.extend_from_slice(&fresh);
            let written = self.stream.send(&self.unsent, cx)?;
            self.unsent.drain(..written);
        }
        Ok(())
    }

    fn read(&mut self, cx: &mut Context<'_>) -> Poll<After> {
        let desk = self.desk;
        let mut scratch = desk.scratch.borrow_mut();
        let mut buffer = ReadBuf::new(&mut scratch);
        Poll::Ready(match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer)) {
            Ok(()) if buffer.filled().is_empty() => {
                self.closed(true);
                After::Over
            }
            Ok(()) => self.take(buffer.filled(), Nanos::now()),
            // TLS without its last word (RFC 8446 §6.1): somebody in between may have cut the connection.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.closed(false);
                After::Over
            }
            Err(error) => {
                let fault = tls_client::fault(&error).unwrap_or_else(|| {
                    let reset = error.kind() == io::ErrorKind::ConnectionReset;
                    Fault { kind: if reset { ErrorKind::ReadReset } else { ErrorKind::Other }, text: error.to_string() }
                });
                self.fail_all(&fault);
                After::Over
            }
        })
    }

    fn take(&mut self, bytes: &[u8], now: Nanos) -> After {
        let desk = self.desk;
        desk.note_received(bytes);
        self.life.first_byte.get_or_insert(now);
        self.deadline = now.after(desk.workload.timeout);
        let mut input = bytes;
        while !input.is_empty() {
            let Some(asked) = self.asked.front_mut() else {
                desk.note_unasked(input);
                return After::Over;
            };
            let request = asked.start.request;
            let first_byte = *asked.first_byte.get_or_insert(now);
            match self.reader.read(&mut input, &mut desk.memo.borrow_mut(), desk.reading(request)) {
                Ok(None) => {}
                Ok(Some(answer)) => {
                    let Asked { start, sent, .. } = *asked;
                    self.asked.pop_front();
                    if self.asked.is_empty() && !input.is_empty() {
                        desk.note_failed(self.user, ErrorKind::LongBody, || desk.overlong(start.request, input));
                        return After::Over;
                    }
                    let stamps = Stamps { intended: start.intended, sent, first_byte, last_byte: now };
                    desk.judge(self.user, start.request, &answer, &stamps);
                    self.life.answers += 1;
                    if !answer.persistent {
                        self.phase = Phase::Closing;
                        if !self.asked.is_empty() {
                            return After::Over;
                        }
                    }
                }
                Err(fault) => {
                    self.fail_all(&fault);
                    return After::Over;
                }
            }
        }
        After::More
    }

    /// The server has closed its side; `in_order`: and said so, where its protocol has a way to say it.
    fn closed(&mut self, in_order: bool) {
        let Some(&Asked { start, sent, first_byte }) = self.asked.front() else { return };
        match self.reader.end_of_input() {
            Ok(_) if !in_order => self.broke(ErrorKind::ShortBody, "cut off: no close_notify of TLS came"),
            Ok(answer) => {
                self.asked.pop_front();
                let now = Nanos::now();
                let first_byte = first_byte.unwrap_or(now);
                let stamps = Stamps { intended: start.intended, sent, first_byte, last_byte: now };
                self.desk.judge(self.user, start.request, &answer, &stamps);
                self.life.answers += 1;
            }
            Err(fault) => self.fail_all(&fault),
        }
    }

    /// The connection is of no more use.
    fn broke(&mut self, kind: ErrorKind, text: &str) {
        self.fail_all(&Fault { kind, text: text.to_owned() });
    }

    fn fail_all(&mut self, fault: &Fault) {
        let desk = self.desk;
        for asked in self.asked.drain(..) {
            desk.note_failed(self.user, fault.kind, || {
                format!("{}: {}", desk.catalogue.path(asked.start.request), fault.text)
            });
        }
    }

    /// All is answered. The server is given a moment, so that it and not we hold the port of a closed connection.
    fn watch_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.phase == Phase::Closing {
            self.phase = Phase::Lingering;
            self.alarm.as_mut().set(tokio::time::sleep(CLOSE_GRACE));
        }
        ready!(self.alarm.as_mut().poll(cx));
        self.desk.note_left_open();
        Poll::Ready(())
    }

    fn watch_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.asked.is_empty() {
            match self.phase {
                Phase::Asking => return Poll::Pending,
                Phase::Closing | Phase::Lingering => return self.watch_close(cx),
                Phase::Finishing => {}
            }
        }
        loop {
            ready!(self.alarm.as_mut().poll(cx));
            let now = Nanos::now();
            if now >= self.deadline {
                let kind = if self.reader.has_begun() { ErrorKind::IdleTimeout } else { ErrorKind::FirstByteTimeout };
                self.broke(kind, &format!("after {:?}", self.desk.workload.timeout));
                return Poll::Ready(());
            }
            self.alarm.as_mut().set(tokio::time::sleep(now.until(self.deadline)));
        }
    }
}

/// However it ends, also when the run is over in the middle of it.
impl Drop for Conversation<'_> {
    fn drop(&mut self) {
        self.stream.say_goodbye();
        self.desk.note_connection_end(&self.life);
    }
}
