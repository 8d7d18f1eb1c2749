//! The client's end of one exchange: what a transaction asks of its client, whatever protocol the client speaks.
//!
//! A closed enum and no trait object. An HTTP/1 exchange is one of many on its connection, which owns framing, pipelining and lingering.
//! A stream of HTTP/2 is one of many at a time. A page includes what it gets. A dry run happens in memory.

mod connection_tunnel;
pub(crate) mod dry_run;
pub(crate) mod http2_stream;
mod sending;
mod stream_sending;
mod stream_tunnel;

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use wire::Event;

use crate::connection::Connection;
use crate::downstream::dry_run::DryRun;
use crate::downstream::http2_stream::Http2Stream;
use crate::fetch::broken::Broken;
use crate::included::IncludedClient;
use crate::limits::Limits;
use crate::linger;
use crate::records::task_records::TaskRecords;
use crate::request_body::BodyRead;

/// The client of an exchange.
pub(crate) enum Downstream<'c> {
    Http1(&'c mut Connection),
    Http2(&'c mut Http2Stream),
    DryRun(&'c mut DryRun),
    /// A page that the answer is included in.
    Included(&'c mut IncludedClient),
}

impl Downstream<'_> {
    /// The same client, for somebody who is to have it for a while.
    pub(crate) fn reborrow(&mut self) -> Downstream<'_> {
        match self {
            Downstream::Http1(connection) => Downstream::Http1(connection),
            Downstream::Http2(stream) => Downstream::Http2(stream),
            Downstream::DryRun(run) => Downstream::DryRun(run),
            Downstream::Included(client) => Downstream::Included(client),
        }
    }
}

/// The request's body.
impl Downstream<'_> {
    /// Is some of the request's body still to be read?
    pub(crate) fn has_unread_body(&self) -> bool {
        match self {
            Downstream::Http1(connection) => connection.unread.is_some(),
            Downstream::Http2(stream) => stream.has_unread_body(),
            Downstream::DryRun(run) => run.has_unread_body(),
            Downstream::Included(_) => false,
        }
    }

    /// Is the whole body still there to be read?
    pub(crate) fn has_untouched_body(&self) -> bool {
        match self {
            Downstream::Http1(connection) => connection.unread.as_ref().is_some_and(|unread| unread.is_untouched()),
            Downstream::Http2(stream) => stream.has_untouched_body(),
            Downstream::DryRun(run) => run.has_untouched_body(),
            Downstream::Included(_) => false,
        }
    }

    /// The next bytes of the request's body.
    pub(crate) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyRead, Broken>> {
        match self {
            Downstream::Http1(connection) => connection.poll_body(cx),
            Downstream::Http2(stream) => stream.poll_body(cx),
            Downstream::DryRun(run) => Poll::Ready(run.next_of_body()),
            Downstream::Included(_) => Poll::Ready(Ok(BodyRead::End(None))),
        }
    }

    /// All of the request's body. `None`: it is longer, and what has been read of it is gone.
    pub(crate) async fn read_whole_body(&mut self, bytes_max: u64) -> Result<Option<Bytes>, Broken> {
        let mut body = BytesMut::new();
        loop {
            match poll_fn(|cx| self.poll_body(cx)).await? {
                BodyRead::Data(bytes) => {
                    body.extend_from_slice(&bytes);
                    if body.len() as u64 > bytes_max {
                        return Ok(None);
                    }
                }
                BodyRead::End(_) => return Ok(Some(body.freeze())),
            }
        }
    }

    /// Ready when the first bytes of the body are there. They stay, for `poll_body`.
    pub(crate) fn poll_body_begun(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        match self {
            Downstream::Http1(connection) => connection.poll_body_begun(cx),
            Downstream::Http2(stream) => stream.poll_body_begun(cx),
            Downstream::DryRun(_) | Downstream::Included(_) => Poll::Ready(Ok(())),
        }
    }

    /// Has the client begun to send the body, so that it waits for no 100?
    pub(crate) fn has_begun_body(&self) -> bool {
        match self {
            Downstream::Http1(connection) => !connection.pending.is_empty(),
            Downstream::Http2(stream) => stream.has_begun_body(),
            Downstream::DryRun(run) => run.has_unread_body(),
            Downstream::Included(_) => false,
        }
    }

    /// Who wants to know when all of the body has come.
    pub(crate) fn record_body(&mut self, records: &Rc<TaskRecords>) {
        match self {
            Downstream::Http1(connection) => {
                if let Some(unread) = &mut connection.unread {
                    unread.is_recorded_by(records);
                }
            }
            Downstream::Http2(stream) => stream.record_body(records),
            Downstream::DryRun(_) | Downstream::Included(_) => {}
        }
    }

    /// What came as the body is none: nothing that follows is a request.
    pub(crate) fn body_broke(&mut self) {
        match self {
            Downstream::Http1(connection) => connection.body_broke(),
            Downstream::Http2(stream) => stream.drop_body(),
            Downstream::DryRun(run) => run.drop_body(),
            Downstream::Included(_) => {}
        }
    }

    /// The rest of the body, which is none, is not looked at again.
    pub(crate) fn stop_reading(&mut self) {
        if let Downstream::Http1(connection) = self {
            connection.exchange(Event::ReadBroken);
        }
    }

    pub(crate) fn has_broken_body(&self) -> bool {
        matches!(self, Downstream::Http1(connection) if connection.has_broken_body())
    }

    /// Reads what is left of the body and throws it away. False: it is too long, or too late.
    pub(crate) async fn drain_body(&mut self, timeout_ms: u64, bytes_max: u64) -> bool {
        match self {
            Downstream::Http1(connection) => {
                let drained = linger::drain_within(connection, timeout_ms, bytes_max).await;
                connection.slot.set_deadline(u64::MAX);
                drained
            }
            Downstream::Http2(stream) => stream.drain_body(timeout_ms, bytes_max).await,
            Downstream::DryRun(run) => {
                run.drop_body();
                true
            }
            Downstream::Included(_) => true,
        }
    }
}

/// The answer.
impl Downstream<'_> {
    /// There will be no more of an answer.
    pub(crate) fn cut(&mut self) {
        match self {
            Downstream::Http1(connection) => connection.exchange(Event::AnswerCut),
            Downstream::Http2(stream) => stream.cut(),
            Downstream::DryRun(_) | Downstream::Included(_) => {}
        }
    }

    /// Has the client left, or must the exchange end? If not, the task is woken when there is news of that.
    pub(crate) fn has_left(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Downstream::Http1(connection) => connection.has_left(cx),
            Downstream::Http2(stream) => stream.has_left(cx),
            Downstream::DryRun(run) => run.has_left(),
            Downstream::Included(client) => client.has_left(cx),
        }
    }

    /// May bytes flow freely?
    pub(crate) fn can_tunnel(&self) -> bool {
        match self {
            Downstream::Http2(stream) => stream.wants_tunnel,
            Downstream::Http1(_) | Downstream::DryRun(_) => true,
            Downstream::Included(_) => false,
        }
    }

    /// Somebody else is waited for, who has limits of his own.
    pub(crate) fn set_no_deadline(&mut self) {
        if let Downstream::Http1(connection) = self {
            connection.slot.set_deadline(u64::MAX);
        }
    }

    /// How long the client may keep us waiting between two requests.
    pub(crate) fn idle_ms(&self, limits: &Limits) -> u64 {
        match self {
            Downstream::Http1(connection) => connection.idle_ms(limits),
            Downstream::Http2(_) | Downstream::DryRun(_) | Downstream::Included(_) => {
                limits.idle_timeout.as_millis() as u64
            }
        }
    }
}
