//! The client of one exchange over HTTP/2: a stream of its connection.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};
use wire::Refusal;
use wire::http2::{ErrorCode, StreamId};

use crate::clock::deadline_now_ms;
use crate::core::Core;
use crate::fetch::broken::Broken;
use crate::http2_streams::{Came, Http2Streams};
use crate::records::task_records::TaskRecords;
use crate::request_body::BodyRead;
use crate::slots::Slot;
use crate::upload_pace::{PaceLimits, UploadPace};

/// One stream.
pub(crate) struct Http2Stream {
    pub(super) core: Rc<Core>,
    pub(super) streams: Rc<Http2Streams>,
    /// Of the connection: why it must end.
    pub(super) slot: Rc<Slot>,
    pub(super) id: StreamId,
    unread: StreamBody,
    /// It asks for a tunnel: what comes is no body.
    pub(super) wants_tunnel: bool,
    /// For when the client has kept us waiting for too long.
    pub(super) alarm: StreamAlarm,
}

/// What is known of the request's body.
struct StreamBody {
    /// Some of it is still to be read.
    is_unread: bool,
    taken_bytes: u64,
    pace: UploadPace,
    records: Option<Rc<TaskRecords>>,
}

/// Wakes a stream's task at a moment, if nothing else does before.
#[derive(Default)]
pub(super) struct StreamAlarm(Option<Pin<Box<Sleep>>>);

impl StreamAlarm {
    /// Has that moment come? In the milliseconds of `clock::deadline_now_ms`.
    pub(super) fn has_rung(&mut self, cx: &mut Context<'_>, at_ms: u64) -> bool {
        let left_ms = at_ms.saturating_sub(deadline_now_ms());
        if left_ms == 0 {
            return true;
        }
        let until = Instant::now() + Duration::from_millis(left_ms);
        match &mut self.0 {
            Some(sleep) => sleep.as_mut().reset(until),
            none => *none = Some(Box::pin(tokio::time::sleep_until(until))),
        }
        self.0.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready())
    }

    pub(super) fn off(&mut self) {
        self.0 = None;
    }
}

impl Http2Stream {
    pub(crate) fn new(
        core: &Rc<Core>,
        streams: &Rc<Http2Streams>,
        slot: &Rc<Slot>,
        id: StreamId,
        is_whole: bool,
    ) -> Self {
        Http2Stream {
            core: Rc::clone(core),
            streams: Rc::clone(streams),
            slot: Rc::clone(slot),
            id,
            unread: StreamBody { is_unread: !is_whole, taken_bytes: 0, pace: UploadPace::default(), records: None },
            wants_tunnel: false,
            alarm: StreamAlarm::default(),
        }
    }

    /// The same of an extended CONNECT.
    pub(crate) fn for_tunnel(core: &Rc<Core>, streams: &Rc<Http2Streams>, slot: &Rc<Slot>, id: StreamId) -> Self {
        let mut stream = Http2Stream::new(core, streams, slot, id, true);
        stream.wants_tunnel = true;
        stream
    }
}

/// The request's body.
impl Http2Stream {
    pub(super) fn has_unread_body(&self) -> bool {
        self.unread.is_unread
    }

    pub(super) fn has_untouched_body(&self) -> bool {
        self.unread.is_unread && self.unread.taken_bytes == 0
    }

    pub(super) fn has_begun_body(&self) -> bool {
        self.streams.has_come(self.id)
    }

    pub(super) fn record_body(&mut self, records: &Rc<TaskRecords>) {
        if self.unread.is_unread {
            self.unread.records = Some(Rc::clone(records));
        }
    }

    pub(super) fn drop_body(&mut self) {
        self.unread.is_unread = false;
    }

    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyRead, Broken>> {
        if !self.unread.is_unread {
            return Poll::Ready(Ok(BodyRead::End(None)));
        }
        match self.streams.read(self.id, Some(cx)) {
            Came::Data(bytes) => {
                self.unread.pace.go_on(deadline_now_ms());
                self.unread.taken_bytes += bytes.len() as u64;
                let bytes_max = self.core.site_ref().settings.limits.request_body_bytes_max;
                if self.unread.taken_bytes > bytes_max {
                    let (token, limit) = ("request-body-too-large", Some("limits.request_body_bytes_max"));
                    return Poll::Ready(Err(Broken::ClientFault(Refusal { status: 413, token, limit })));
                }
                Poll::Ready(Ok(BodyRead::Data(bytes)))
            }
            Came::End(trailers) => {
                self.alarm.off();
                self.unread.is_unread = false;
                if let Some(records) = self.unread.records.take() {
                    records.stamp("ReqBody");
                    // Its head need not have said how long it is.
                    records.count(|carried| carried.body_in = self.unread.taken_bytes);
                }
                Poll::Ready(Ok(BodyRead::End(trailers)))
            }
            Came::Gone => Poll::Ready(Err(Broken::ClientLeft)),
            Came::Nothing => self.wait_for_body(cx),
        }
    }

    pub(super) fn poll_body_begun(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        if self.has_begun_body() || !self.unread.is_unread {
            return Poll::Ready(Ok(()));
        }
        if !self.streams.is_there(self.id, cx) {
            return Poll::Ready(Err(Broken::ClientLeft));
        }
        self.wait_for_body(cx)
    }

    fn wait_for_body<T>(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, Broken>> {
        let limits = {
            let limits = &self.core.site_ref().settings.limits;
            PaceLimits {
                timeout_ms: limits.request_body_timeout.as_millis() as u64,
                rate_min: limits.request_body_rate_min,
            }
        };
        if self.slot.must_end() {
            return Poll::Ready(Err(Broken::ClientLeft));
        }
        let (now_ms, pace) = (deadline_now_ms(), &mut self.unread.pace);
        let until_ms = pace.wait(now_ms, self.unread.taken_bytes, limits);
        if self.alarm.has_rung(cx, until_ms) {
            return Poll::Ready(Err(Broken::ClientFault(self.unread.pace.refusal(deadline_now_ms(), limits))));
        }
        Poll::Pending
    }

    /// Reads what is left and throws it away. False: it is too long, or too late.
    pub(super) async fn drain_body(&mut self, timeout_ms: u64, bytes_max: u64) -> bool {
        let drain = poll_fn(|cx| {
            loop {
                match ready!(self.poll_body(cx)) {
                    Ok(BodyRead::End(_)) => return Poll::Ready(true),
                    Ok(BodyRead::Data(_)) if self.unread.taken_bytes > bytes_max => return Poll::Ready(false),
                    Ok(BodyRead::Data(_)) => {}
                    Err(_) => return Poll::Ready(false),
                }
            }
        });
        tokio::time::timeout(Duration::from_millis(timeout_ms), drain).await.unwrap_or(false)
    }
}

/// The answer.
impl Http2Stream {
    pub(super) fn has_left(&mut self, cx: &Context<'_>) -> bool {
        !self.streams.is_there(self.id, cx) || self.slot.must_end()
    }

    pub(super) fn cut(&mut self) {
        self.streams.reset(self.id, ErrorCode::InternalError);
    }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        self.streams.close(self.id);
    }
}
