//! One HTTP/2 connection of a user, from its first request to its end.
//!
//! A user has as many requests under way as it would have with pipelining, each in a stream of its own, so answers come
//! in any order and one that fails fails alone. All else is as in `user`: what to ask, and when, the agenda says; what
//! the server left undone when it ended the connection in good order is asked again on the next one.

use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use tokio::time::Sleep;

use crate::agenda::Next;
use crate::answer::Fault;
use crate::client_thread::Desk;
use crate::error_kind::ErrorKind;
use crate::http2_answer::{Http2AnswerReader, StreamProgress, fault, was_left_undone};
use crate::http2_requests::Http2Requests;
use crate::lab_clock::Nanos;
use crate::limits::{ANSWER_HEAD_BYTES_MAX, HTTP2_WINDOW_BYTES};
use crate::metered_transport::{ConnectionMeter, MeteredTransport};
use crate::stream_bells::StreamBells;
use crate::tally::{Life, Stamps};
use crate::transport::Transport;
use crate::user::Asked;

pub(crate) struct Http2Conversation<'d> {
    desk: &'d Desk,
    requests: &'d Http2Requests,
    user: usize,
    connection: Connection<MeteredTransport<'d>, Bytes>,
    /// `None` when nothing more is asked here.
    sender: Option<SendRequest<Bytes>>,
    /// Has it something to read or to write? It has at first.
    is_connection_due: bool,
    /// Streams that the server allows, as far as is known.
    allowed: usize,
    meter: Rc<ConnectionMeter>,
    /// To be asked before the agenda is; after the end, what is to be asked on another connection.
    pub(crate) asked: VecDeque<Asked>,
    /// By the number of a bell; the last bell is the connection's.
    streams: Vec<Option<OpenStream>>,
    free: Vec<usize>,
    bells: StreamBells,
    rung: Vec<usize>,
    life: Life,
    /// Set for some earlier deadline; looks again when it rings.
    alarm: Pin<Box<Sleep>>,
}

/// A request and what has come of its answer.
struct OpenStream {
    asked: Asked,
    reader: Http2AnswerReader,
    deadline: Nanos,
}

impl<'d> Http2Conversation<'d> {
    /// `asked` is asked first.
    pub(crate) async fn begin(
        desk: &'d Desk,
        requests: &'d Http2Requests,
        user: usize,
        (transport, begun): (Transport, Nanos),
        asked: VecDeque<Asked>,
    ) -> Result<Http2Conversation<'d>, (Fault, VecDeque<Asked>)> {
        let (transport, meter) = MeteredTransport::new(transport, desk);
        let life = Life { begun, first_byte: None, answers: 0 };
        let handshake = Builder::new()
            .initial_window_size(HTTP2_WINDOW_BYTES)
            .initial_connection_window_size(HTTP2_WINDOW_BYTES)
            .max_header_list_size(ANSWER_HEAD_BYTES_MAX as u32)
            .enable_push(false)
            .handshake(transport);
        let (sender, connection) = match handshake.await {
            Ok(both) => both,
            Err(error) => {
                desk.note_connection_end(&life);
                return Err((fault(&error, false, None), asked));
            }
        };
        let depth = desk.depth();
        Ok(Http2Conversation {
            desk,
            requests,
            user,
            connection,
            sender: Some(sender),
            is_connection_due: true,
            allowed: depth,
            meter,
            asked,
            streams: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            bells: StreamBells::new(depth + 1),
            rung: Vec::with_capacity(depth + 1),
            life,
            alarm: Box::pin(tokio::time::sleep(desk.workload.timeout)),
        })
    }

    /// Until the connection is of no more use.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.bells.begin();
        loop {
            self.is_connection_due |= self.read_rung();
            self.is_connection_due |= self.ask(cx);
            if self.sender.is_none() && self.is_idle() {
                // Lets the connection say goodbye; whether that arrives is of no interest.
                let _ = self.poll_connection();
                return Poll::Ready(());
            }
            if std::mem::take(&mut self.is_connection_due) {
                if self.poll_connection().is_ready() {
                    return Poll::Ready(());
                }
            } else if self.bells.rest(cx.waker()) {
                return self.watch_deadlines(cx);
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.free.len() == self.streams.len()
    }

    fn bell_of_connection(&self) -> usize {
        self.streams.len()
    }

    /// Reads and writes frames; ready when the connection has ended, and all that was asked on it found its outcome.
    fn poll_connection(&mut self) -> Poll<()> {
        let bell = self.bells.bell(self.bell_of_connection()).clone();
        let ended = ready!(Pin::new(&mut self.connection).poll(&mut Context::from_waker(&bell)));
        self.sender = None;
        // What came before the end counts.
        let _ = self.read_rung();
        for number in 0..self.streams.len() {
            self.read(number);
            if let Some(stream) = self.streams[number].take() {
                self.free.push(number);
                let begun = stream.reader.has_begun();
                let fault = match &ended {
                    Err(error) => self.fault(error, begun),
                    Ok(()) => Fault { kind: ErrorKind::NoAnswer, text: "the connection was closed".to_owned() },
                };
                self.fail(stream.asked, &fault);
            }
        }
        Poll::Ready(())
    }

    /// Reads on where something came; says whether the connection has something to do.
    fn read_rung(&mut self) -> bool {
        let mut rung = std::mem::take(&mut self.rung);
        self.bells.take(&mut rung);
        let mut has_connection_rung = false;
        for number in rung.drain(..) {
            match number == self.bell_of_connection() {
                true => has_connection_rung = true,
                false => self.read(number),
            }
        }
        self.rung = rung;
        has_connection_rung
    }

    fn read(&mut self, number: usize) {
        let desk = self.desk;
        let Some(stream) = &mut self.streams[number] else { return };
        let mut cx = Context::from_waker(self.bells.bell(number));
        let Poll::Ready(progress) = stream.reader.poll(desk.reading(stream.asked.start.request), &mut cx) else {
            return;
        };
        let now = self.meter.last_received.get();
        match progress {
            Ok(StreamProgress::Some) => {
                stream.asked.first_byte.get_or_insert(now);
                stream.deadline = now.after(desk.workload.timeout);
            }
            Ok(StreamProgress::Whole) => {
                let Some(stream) = self.close(number) else { return };
                let Asked { start, sent, first_byte } = stream.asked;
                let first_byte = first_byte.unwrap_or(now);
                self.life.first_byte.get_or_insert(first_byte);
                self.life.answers += 1;
                desk.note_head(|| stream.reader.head_text());
                let stamps = Stamps { intended: start.intended, sent, first_byte, last_byte: now };
                if let Some(answer) = stream.reader.answer() {
                    desk.judge(self.user, start.request, &answer, &stamps);
                }
            }
            Err(error) => {
                let begun = stream.reader.has_begun();
                let Some(stream) = self.close(number) else { return };
                // Where nothing was answered there is no order in the end, and asking again might never end.
                match was_left_undone(&error) && self.life.answers > 0 {
                    true => self.asked.push_back(stream.asked),
                    false => self.fail(stream.asked, &self.fault(&error, begun)),
                }
                if error.is_go_away() {
                    self.sender = None;
                }
            }
        }
    }

    fn close(&mut self, number: usize) -> Option<OpenStream> {
        let stream = self.streams[number].take()?;
        self.free.push(number);
        Some(stream)
    }

    /// Asks as much as the streams allow and the agenda gives; says whether that was anything.
    fn ask(&mut self, cx: &mut Context<'_>) -> bool {
        let desk = self.desk;
        let mut has_asked = false;
        while !self.free.is_empty() {
            let bell = self.bells.bell(self.bell_of_connection());
            let Some(sender) = &mut self.sender else { break };
            // One until the server has said it: what is beyond its limit, it refuses.
            let has_settings = self.meter.frames.borrow().has_settings;
            self.allowed = if has_settings { sender.current_max_send_streams() } else { 1 };
            if self.streams.len() - self.free.len() >= self.allowed {
                break;
            }
            match sender.poll_ready(&mut Context::from_waker(bell)) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => {
                    // It has ended, or will: whoever is under way hears why.
                    self.sender = None;
                    break;
                }
                Poll::Pending => break,
            }
            let next = match self.asked.pop_front() {
                Some(asked) => Next::Ask(asked.start),
                None if desk.one_each() => Next::HangUp,
                None => match desk.poll_next(self.user, cx) {
                    Poll::Ready(next) => next,
                    Poll::Pending => break,
                },
            };
            match next {
                Next::Ask(start) => {
                    has_asked = true;
                    self.send(Asked { start, sent: Nanos::now(), first_byte: None });
                }
                Next::HangUp | Next::Leave => self.sender = None,
            }
        }
        has_asked
    }

    fn send(&mut self, asked: Asked) {
        let (request, body) = self.requests.make(asked.start.request);
        let Some(sender) = &mut self.sender else { return self.asked.push_back(asked) };
        let sent = sender.send_request(request, body.is_empty()).and_then(|(response, mut stream)| {
            if !body.is_empty() {
                stream.send_data(body, true)?;
            }
            Ok(response)
        });
        self.desk.note_sent(&asked.start, asked.sent);
        match (sent, self.free.pop()) {
            (Ok(response), Some(number)) => {
                let deadline = asked.sent.after(self.desk.workload.timeout);
                let reader = Http2AnswerReader::Head(response);
                self.streams[number] = Some(OpenStream { asked, reader, deadline });
                // Registers the stream's bell.
                self.read(number);
            }
            (Ok(_), None) => unreachable!("asked only while a stream is free"),
            (Err(error), number) => {
                self.free.extend(number);
                self.fail(asked, &self.fault(&error, false));
                self.sender = None;
            }
        }
    }

    fn fault(&self, error: &h2::Error, begun: bool) -> Fault {
        match self.meter.tls_fault.borrow().as_ref().filter(|_| error.is_io()) {
            Some(fault) => fault.clone(),
            None => fault(error, begun, self.meter.frames.borrow().goaway),
        }
    }

    fn fail(&self, asked: Asked, fault: &Fault) {
        let desk = self.desk;
        desk.note_failed(self.user, fault.kind, || {
            format!("{}: {}", desk.catalogue.path(asked.start.request), fault.text)
        });
    }

    /// A stream on which nothing came for so long fails, and all of them on a connection on which nothing came.
    fn watch_deadlines(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.is_idle() {
                return Poll::Pending;
            }
            ready!(self.alarm.as_mut().poll(cx));
            let (now, timeout) = (Nanos::now(), self.desk.workload.timeout);
            let (received, mut next) = (self.meter.last_received.get(), now.after(timeout));
            let is_late = |stream: &OpenStream| now >= stream.deadline;
            let is_dead = self.streams.iter().flatten().any(|it| is_late(it) && received.after(timeout) <= it.deadline);
            for number in 0..self.streams.len() {
                let Some(stream) = &self.streams[number] else { continue };
                if !is_late(stream) && !is_dead {
                    next = next.min(stream.deadline);
                    continue;
                }
                let begun = stream.reader.has_begun();
                let kind = if begun { ErrorKind::IdleTimeout } else { ErrorKind::FirstByteTimeout };
                if let Some(stream) = self.close(number) {
                    self.fail(stream.asked, &Fault { kind, text: format!("after {timeout:?}") });
                    // There is room for another request.
                    cx.waker().wake_by_ref();
                }
            }
            if is_dead {
                return Poll::Ready(());
            }
            self.alarm.as_mut().set(tokio::time::sleep(now.until(next)));
        }
    }
}

/// However it ends, also when the run is over in the middle of it.
impl Drop for Http2Conversation<'_> {
    fn drop(&mut self) {
        let allowed = (self.life.answers > 0).then_some(self.allowed);
        self.desk.note_http2(&self.meter.frames.borrow(), allowed);
        self.desk.note_connection_end(&self.life);
    }
}
