//! One stream of the origin: a request of HTTP/2, answered as its plan says.
//!
//! A task of its own. What an answer is stands in `origin_reply`, how its body flows in `body_blocks`; what ends the
//! connection is told to who serves that.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::{DATE, EXPECT, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, RANGE};
use http::{Request, Response, StatusCode};
use message::{Method, Version};
use tokio::time::{sleep, timeout};

use crate::fake_origin::body_blocks::BodyBlocks;
use crate::fake_origin::origin_delivery::{Delivered, Ended, wait_for_stall};
use crate::fake_origin::origin_desk::{OriginDesk, Wanted};
use crate::fake_origin::origin_log::LogLine;
use crate::fake_origin::origin_plan::{Ending, GoAway, Place, Plan, Protocol};
use crate::fake_origin::origin_reply::{Asked, Conditions, Drawn, Reply};
use crate::fake_origin::prepared_answers::Prepared;
use crate::lab_clock::Nanos;
use crate::limits::{ORIGIN_IDLE, ORIGIN_WRITE_PATIENCE};

pub(crate) struct OriginStream {
    desk: Rc<OriginDesk>,
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    connection: u64,
    received: Nanos,
    task: StreamTask,
}

/// What is to be done about a request.
enum StreamTask {
    Answer(Rc<Prepared>, Drawn),
    Count,
    /// With a sentence.
    Refuse(String),
}

/// What becomes of the connection, and of the stream once all that it has said is sent. A stream that is dropped before its end
/// says that it was reset: where that would be wrong it is handed over.
pub(crate) enum StreamEnd {
    Done,
    GoAway,
    Reset(SendResponse<Bytes>),
    /// The connection is cut.
    Cut(SendResponse<Bytes>),
}

impl OriginStream {
    pub(crate) fn read(
        desk: Rc<OriginDesk>,
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
        connection: u64,
    ) -> OriginStream {
        let received = Nanos::now();
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let task = match desk.wanted(target(&request).as_bytes(), path.as_bytes(), query.as_bytes(), Protocol::Http2) {
            _ if request.method() == http::Method::CONNECT => {
                StreamTask::Refuse("an origin opens no tunnels".to_owned())
            }
            Wanted::Count => StreamTask::Count,
            Wanted::Refuse(sentence) => StreamTask::Refuse(sentence),
            Wanted::Answer(prepared) => {
                let drawn = desk.draw(&prepared.plan);
                match drawn.faults.starve && request.body().is_end_stream() {
                    true => StreamTask::Refuse("`starve` is about a body, and this request has none".to_owned()),
                    false => StreamTask::Answer(prepared, drawn),
                }
            }
        };
        if !matches!(task, StreamTask::Count) {
            desk.shared.requests.fetch_add(1, Ordering::Relaxed);
        }
        OriginStream { desk, request, respond, connection, received, task }
    }

    /// Is it what ends the connection?
    pub(crate) fn goaway(&self) -> Option<GoAway> {
        match &self.task {
            StreamTask::Answer(_, drawn) => drawn.faults.goaway,
            StreamTask::Count | StreamTask::Refuse(_) => None,
        }
    }

    /// Nothing is answered.
    pub(crate) fn left_undone(self) -> (Request<RecvStream>, SendResponse<Bytes>) {
        self.note(0, &nothing(Ended::Undone));
        (self.request, self.respond)
    }

    pub(crate) async fn live(mut self) -> StreamEnd {
        let (prepared, drawn) = match &self.task {
            StreamTask::Answer(prepared, drawn) => (Rc::clone(prepared), *drawn),
            StreamTask::Count => {
                let count = format!("{}\n", self.desk.shared.requests.load(Ordering::Relaxed));
                return self.say(StatusCode::OK, count).await;
            }
            StreamTask::Refuse(sentence) => {
                let sentence = format!("{sentence}\n");
                return self.say(StatusCode::BAD_REQUEST, sentence).await;
            }
        };
        if drawn.faults.refuse {
            self.note(0, &nothing(Ended::Undone));
            self.respond.send_reset(Reason::REFUSED_STREAM);
            return StreamEnd::Done;
        }
        if drawn.faults.starve {
            // The body is held, and nothing of it said to have been taken.
            let _ = timeout(ORIGIN_IDLE, poll_fn(|cx| self.respond.poll_reset(cx))).await;
            self.note(0, &nothing(Ended::Gone));
            return StreamEnd::Done;
        }
        self.answer(&prepared.plan, &drawn).await
    }

    async fn answer(mut self, plan: &Plan, drawn: &Drawn) -> StreamEnd {
        if !plan.answers_first && !self.drain().await {
            return StreamEnd::Done;
        }
        let delay = self.desk.draw_delay(plan);
        if !delay.is_zero() {
            sleep(delay).await;
        }
        wait_for_stall(&self.desk).await;
        let reply = Reply::new(plan, &asked(&self.request), drawn);
        let delivered = self.deliver(&reply).await;
        self.note(reply.status, &delivered);
        if plan.answers_first {
            self.drain().await;
        }
        match delivered.ended {
            Ended::Faulty(Ending::Reset) => StreamEnd::Reset(self.respond),
            Ended::Faulty(Ending::Cut) => StreamEnd::Cut(self.respond),
            Ended::Whole if plan.closes || drawn.faults.goaway == Some(GoAway::After) => StreamEnd::GoAway,
            Ended::Faulty(Ending::Stop) | Ended::Whole | Ended::Gone | Ended::Undone => StreamEnd::Done,
        }
    }

    /// Reads the body of a request and forgets it. False: it did not come.
    async fn drain(&mut self) -> bool {
        let invites = self.request.headers().get(EXPECT).is_some_and(|value| value == "100-continue");
        if invites && !self.request.body().is_end_stream() {
            let mut invitation = Response::new(());
            *invitation.status_mut() = StatusCode::CONTINUE;
            if self.respond.send_informational(invitation).is_err() {
                return false;
            }
        }
        let body = self.request.body_mut();
        loop {
            match timeout(ORIGIN_IDLE, body.data()).await {
                Ok(None) => return true,
                Ok(Some(Ok(data))) if body.flow_control().release_capacity(data.len()).is_ok() => {}
                Ok(Some(_)) | Err(_) => return false,
            }
        }
    }

    /// Sends it, but for a reset and the end of a connection. A stream that stops is held until the client has had enough.
    async fn deliver(&mut self, reply: &Reply) -> Delivered {
        let ending = reply.faults.ending;
        if let Some((ending, Place::Head)) = ending {
            if ending == Ending::Stop {
                let _ = timeout(ORIGIN_IDLE, poll_fn(|cx| self.respond.poll_reset(cx))).await;
            }
            return nothing(Ended::Faulty(ending));
        }
        let (body, mut delivered) = (BodyBlocks::of(reply), nothing(Ended::Gone));
        let ends_at_once = body.is_empty() && ending.is_none();
        let head = self.head(reply);
        let Ok(mut stream) = self.respond.send_response(head, ends_at_once) else { return delivered };
        if send_body(&mut stream, &self.desk, body, &mut delivered).await.is_none() {
            return delivered;
        }
        if let Some((Ending::Stop, _)) = ending {
            let _ = timeout(ORIGIN_IDLE, poll_fn(|cx| stream.poll_reset(cx))).await;
        }
        delivered.ended = ending.map_or(Ended::Whole, |(ending, _)| Ended::Faulty(ending));
        delivered
    }

    fn head(&self, reply: &Reply) -> Response<()> {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(reply.status).expect("plans have statuses that there are");
        let fields = response.headers_mut();
        for (name, value) in reply.fields() {
            let name = HeaderName::from_bytes(name).expect("the names are ours");
            fields.append(name, HeaderValue::from_bytes(value).expect("plans have no other values"));
        }
        fields.insert(DATE, self.date());
        response
    }

    fn date(&self) -> HeaderValue {
        let line = self.desk.date_and_end();
        let value = line.strip_prefix(b"Date: ").unwrap_or(&line).trim_ascii();
        HeaderValue::from_bytes(value).expect("a date is text")
    }

    /// A short text of our own.
    async fn say(mut self, status: StatusCode, text: String) -> StreamEnd {
        let head = Response::builder()
            .status(status)
            .header("content-type", "text/plain")
            .header("cache-control", "no-store")
            .header("content-length", text.len())
            .header(DATE, self.date())
            .body(())
            .expect("a good head");
        let is_head = self.request.method() == http::Method::HEAD;
        // Refused only by a client that has left.
        if let Ok(mut stream) = self.respond.send_response(head, is_head)
            && !is_head
        {
            let _ = send_within_window(&mut stream, text.into(), true).await;
        }
        self.drain().await;
        StreamEnd::Done
    }

    fn note(&self, status: u16, delivered: &Delivered) {
        self.desk.note(&LogLine {
            received: self.received,
            answered: delivered.answered,
            connection: self.connection,
            method: self.request.method().as_str(),
            target: target(&self.request),
            status,
            body_bytes: delivered.body_bytes,
            ending: delivered.ended.name(),
        });
    }
}

fn target(request: &Request<RecvStream>) -> &str {
    request.uri().path_and_query().map_or("*", |target| target.as_str())
}

/// As HTTP/1.1 would have it: what differs is left out of the head.
fn asked(request: &Request<RecvStream>) -> Asked {
    let value = |name| request.headers().get(name).map(HeaderValue::as_bytes);
    Asked {
        method: Method::classify(request.method().as_str().as_bytes()),
        version: Version::Http11,
        persistent: true,
        conditions: Conditions::of([IF_NONE_MATCH, IF_MODIFIED_SINCE, RANGE, IF_RANGE].map(value)),
    }
}

fn nothing(ended: Ended) -> Delivered {
    Delivered { ended, body_bytes: 0, answered: Nanos::now() }
}

/// None: the client has left, or takes nothing.
async fn send_body(
    stream: &mut SendStream<Bytes>,
    desk: &OriginDesk,
    mut body: BodyBlocks<'_>,
    delivered: &mut Delivered,
) -> Option<()> {
    while let Some(length) = body.due(desk).await {
        let mut block = Vec::with_capacity(length as usize);
        body.append(length, &mut block);
        delivered.answered = Nanos::now();
        send_within_window(stream, block.into(), body.is_whole()).await?;
        delivered.body_bytes = body.sent;
    }
    Some(())
}

/// As the client's window allows. `ends`: the stream ends with it.
async fn send_within_window(stream: &mut SendStream<Bytes>, mut data: Bytes, ends: bool) -> Option<()> {
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        while stream.capacity() == 0 {
            let more = timeout(ORIGIN_WRITE_PATIENCE, poll_fn(|cx| stream.poll_capacity(cx)));
            more.await.ok()??.ok()?;
        }
        let piece = data.split_to(stream.capacity().min(data.len()));
        let is_last = ends && data.is_empty();
        stream.send_data(piece, is_last).ok()?;
    }
    Some(())
}
