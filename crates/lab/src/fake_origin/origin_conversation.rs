//! One connection of the origin over HTTP/1: requests are read, each is answered as its plan says, until somebody closes.
//!
//! A task on its thread's runtime. It knows the order of the steps; what an answer is stands in `origin_reply`, how
//! it is sent in `origin_delivery`.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::ready;

use message::{Method, Version};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{sleep, timeout};
use wire::{BodyDecoder, ChunkedLimits, Decoded, HeadLimits, RequestBody, may_end_now, read_request};

use crate::fake_origin::origin_delivery::{Delivered, Ended, deliver, send, wait_for_stall};
use crate::fake_origin::origin_desk::{OriginDesk, Wanted};
use crate::fake_origin::origin_log::LogLine;
use crate::fake_origin::origin_plan::{Ending, Protocol};
use crate::fake_origin::origin_reply::{Asked, Conditions, Reply};
use crate::fake_origin::origin_socket::OriginSocket;
use crate::lab_clock::Nanos;
use crate::limits::ORIGIN_IDLE;

pub(crate) struct Conversation {
    desk: Rc<OriginDesk>,
    socket: OriginSocket,
    number: u64,
    /// What came and was not read yet.
    inbox: Vec<u8>,
}

/// What is to be done about a request, with nothing of it borrowed.
struct Task {
    asked: Asked,
    wanted: Wanted,
    head_bytes: usize,
    body: RequestBody,
    expects_continue: bool,
    /// Of its text in the log.
    method: String,
    target: String,
}

/// What the front of the inbox is.
enum Front {
    Task(Task),
    /// Not all of a head.
    Part,
    Rubbish(String),
}

/// What becomes of the connection.
enum Next {
    Go,
    Close,
    Fail(Ending),
    /// The client may still be sending.
    Linger,
}

impl Conversation {
    /// `inbox`: what was read of it already.
    pub(crate) fn new(desk: Rc<OriginDesk>, socket: OriginSocket, inbox: Vec<u8>, number: u64) -> Conversation {
        Conversation { desk, socket, number, inbox }
    }

    pub(crate) async fn live(mut self) {
        // Bytes of a head whose end was not there.
        let mut looked_at = 0;
        loop {
            let worth = looked_at == 0 || may_end_now(&self.inbox, looked_at, &HeadLimits::REQUEST);
            let front = if worth && !self.inbox.is_empty() { self.read_front() } else { Front::Part };
            let next = match front {
                Front::Part => {
                    looked_at = self.inbox.len();
                    match self.receive().await {
                        true => continue,
                        false => return self.socket.close().await,
                    }
                }
                Front::Task(task) => self.answer(task).await,
                Front::Rubbish(sentence) => self.refuse(&sentence).await,
            };
            looked_at = 0;
            match next {
                Next::Go => {}
                Next::Close if self.inbox.is_empty() => return self.socket.close().await,
                Next::Close | Next::Linger => return self.socket.linger().await,
                Next::Fail(ending) => return self.socket.end_by_fault(ending).await,
            }
        }
    }

    /// More into the inbox. False: nothing more will come, or not for long.
    async fn receive(&mut self) -> bool {
        let Conversation { desk, socket, inbox, .. } = self;
        let reading = poll_fn(|cx| {
            let mut scratch = desk.scratch.borrow_mut();
            let mut room = ReadBuf::new(&mut scratch);
            let outcome = ready!(Pin::new(&mut *socket).poll_read(cx, &mut room));
            inbox.extend_from_slice(room.filled());
            outcome.map(|()| room.filled().len()).into()
        });
        matches!(timeout(ORIGIN_IDLE, reading).await, Ok(Ok(1..)))
    }

    fn read_front(&self) -> Front {
        let (mut spans, desk) = (self.desk.spans.borrow_mut(), &*self.desk);
        let received = match read_request(&self.inbox, &mut spans, &HeadLimits::REQUEST, self.socket.scheme()) {
            Ok(Some(received)) => received,
            Ok(None) => return Front::Part,
            Err(refusal) => return Front::Rubbish(refusal.token.to_owned()),
        };
        let request = &received.request;
        if request.method == Method::Connect {
            return Front::Rubbish("an origin opens no tunnels".to_owned());
        }
        let asked = Asked {
            method: request.method,
            version: request.version,
            persistent: received.persistent,
            conditions: Conditions::of_view(request.fields),
        };
        let mut target = Vec::with_capacity(64);
        request.write_target(&mut target);
        let wanted = desk.wanted(&target, request.path, request.query.unwrap_or_default(), Protocol::Http1);
        let text = |bytes: &[u8]| match desk.log.borrow().is_on() {
            true => String::from_utf8_lossy(bytes).into_owned(),
            false => String::new(),
        };
        Front::Task(Task {
            asked,
            wanted,
            head_bytes: received.head_bytes,
            body: received.body,
            expects_continue: received.expects_continue,
            method: text(request.method_text),
            target: text(&target),
        })
    }

    async fn answer(&mut self, task: Task) -> Next {
        let received = Nanos::now();
        self.take(task.head_bytes);
        let prepared = match &task.wanted {
            Wanted::Answer(prepared) => Rc::clone(prepared),
            Wanted::Count => return self.tell_count(task).await,
            Wanted::Refuse(sentence) => {
                self.desk.shared.requests.fetch_add(1, Ordering::Relaxed);
                return self.refuse(sentence).await;
            }
        };
        self.desk.shared.requests.fetch_add(1, Ordering::Relaxed);
        let plan = &prepared.plan;
        if !plan.answers_first && !self.drain(task.body, task.expects_continue).await {
            return Next::Close;
        }
        let delay = self.desk.draw_delay(plan);
        if !delay.is_zero() {
            sleep(delay).await;
        }
        wait_for_stall(&self.desk).await;
        let Asked { method, version, persistent, conditions } = &task.asked;
        let is_plain = (*method, *version) == (Method::Get, Version::Http11) && *persistent && conditions.is_none();
        let (status, delivered, closes) = match &prepared.plain {
            Some(plain) if is_plain => {
                let answered = if self.desk.log.borrow().is_on() { Nanos::now() } else { received };
                let outcome = send(&mut self.socket, [&plain.head, &self.desk.date_and_end(), &plain.body]).await;
                let ended = outcome.map_or(Ended::Gone, |()| Ended::Whole);
                (plain.status, Delivered { ended, body_bytes: plain.body.len() as u64, answered }, false)
            }
            _ => {
                let reply = Reply::new(plan, &task.asked, &self.desk.draw(plan));
                (reply.status, deliver(&mut self.socket, &self.desk, &reply).await, reply.closes)
            }
        };
        self.note(&task, received, status, &delivered);
        match delivered.ended {
            Ended::Gone | Ended::Undone => Next::Close,
            Ended::Faulty(ending) => Next::Fail(ending),
            Ended::Whole if plan.answers_first && !self.drain(task.body, false).await => Next::Close,
            Ended::Whole if closes => Next::Close,
            Ended::Whole => Next::Go,
        }
    }

    fn note(&self, task: &Task, received: Nanos, status: u16, delivered: &Delivered) {
        self.desk.note(&LogLine {
            received,
            answered: delivered.answered,
            connection: self.number,
            method: &task.method,
            target: &task.target,
            status,
            body_bytes: delivered.body_bytes,
            ending: delivered.ended.name(),
        });
    }

    fn take(&mut self, bytes: usize) {
        self.inbox.drain(..bytes);
    }

    /// Reads the body of a request and forgets it. False: it did not come, or not as it should.
    async fn drain(&mut self, body: RequestBody, expects_continue: bool) -> bool {
        if matches!(body, RequestBody::None) {
            return true;
        }
        if expects_continue && send(&mut self.socket, [b"HTTP/1.1 100 Continue\r\n\r\n", &[], &[]]).await.is_err() {
            return false;
        }
        let mut decoder = BodyDecoder::for_request(body, &ChunkedLimits::DEFAULT);
        loop {
            match decoder.decode(&self.inbox) {
                Ok(Decoded::Data { to, .. }) => self.take(to),
                Ok(Decoded::End { consumed }) => {
                    self.take(consumed);
                    return true;
                }
                Ok(Decoded::More { consumed }) => {
                    self.take(consumed);
                    if !self.receive().await {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
    }

    /// How many requests there were; this one is none of them.
    async fn tell_count(&mut self, task: Task) -> Next {
        let count = format!("{}\n", self.desk.shared.requests.load(Ordering::Relaxed));
        let is_head = task.asked.method == Method::Head;
        let answered = self.say("200 OK", &count, !task.asked.persistent, is_head).await;
        match answered && self.drain(task.body, false).await && task.asked.persistent {
            true => Next::Go,
            false => Next::Close,
        }
    }

    async fn refuse(&mut self, sentence: &str) -> Next {
        self.say("400 Bad Request", &format!("{sentence}\n"), true, false).await;
        Next::Linger
    }

    /// A short text of our own.
    async fn say(&mut self, status: &str, text: &str, closes: bool, is_head: bool) -> bool {
        let connection = if closes { "Connection: close\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nCache-Control: no-store\r\n{connection}Content-Length: {}\r\n",
            text.len()
        );
        let body = if is_head { "" } else { text };
        send(&mut self.socket, [head.as_bytes(), &self.desk.date_and_end(), body.as_bytes()]).await.is_ok()
    }
}
