//! The body of an origin's answer, pulled piece by piece; at its end what it came by serves the next request.

use cache::Failure;
use message::Fields;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use wire::ResponseBody;

use crate::core::Core;
use crate::fetch::failed;
use crate::fetch::timeouts::Timeout;
use crate::fetch::whole_time::WholeLeft;
use crate::filter_work::FilterWork;
use crate::in_time::in_time;
use crate::limits::{GIVEN_UP_BYTES_MAX, GIVEN_UP_WAIT};
use crate::origin::OriginFailure;
use crate::records::fetch_records::{self, GivenBack};
use crate::records::task_records::TaskRecords;
use crate::upstream::{BodyFault, OriginPiece, Rest, Silence, Upstream};

/// A body that has begun to arrive, and that nobody pulls yet.
pub(crate) struct Arriving {
    pub(crate) upstream: Upstream,
    pub(crate) framing: ResponseBody,
    /// Another request may follow on the connection after a clean end.
    pub(crate) persistent: bool,
    /// What the policy wants it to go through.
    pub(crate) filters: Option<FilterWork>,
}

pub(crate) struct OriginBody {
    pub(super) core: Rc<Core>,
    /// As long as it has not ended.
    pub(super) upstream: Option<Upstream>,
    pub(super) framing: ResponseBody,
    pub(super) persistent: bool,
    /// What stands behind it, once it has ended.
    pub(super) trailers: Option<Fields>,
    pub(super) origin: Arc<str>,
    pub(super) shows_address: bool,
    pub(super) timeout: Timeout,
    pub(super) silence: Silence,
    /// Until when it has to be over, if that is said.
    pub(super) whole: Option<Box<WholeLeft>>,
    /// Of the fetch, if anybody wants them.
    pub(super) records: Option<Rc<TaskRecords>>,
    /// What is done to the body is recorded before that its connection was given back, as in Varnish.
    pub(super) end: RecordedEnd,
}

/// The record of a body's end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RecordedEnd {
    /// It is made at the end of what comes from the origin …
    AtOnce,
    /// … or when somebody says so, …
    Later,
    /// … which is still to come.
    Due(GivenBack),
}

impl Arriving {
    /// If it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        match self.framing {
            ResponseBody::Length(_) if self.filters.as_ref().is_some_and(|work| !work.keeps_length()) => None,
            ResponseBody::Length(length) => Some(length),
            ResponseBody::None => Some(0),
            ResponseBody::Chunked | ResponseBody::UntilClose | ResponseBody::Tunnel => None,
        }
    }
}

impl OriginBody {
    pub(crate) fn framing(&self) -> ResponseBody {
        self.framing
    }

    /// Nobody wants more of it, or it has no body. The connection serves the next request once the rest was read and thrown
    /// away, if that is little and comes soon; otherwise the origin is told to stop.
    pub(crate) fn finish(mut self) {
        let mut left = GIVEN_UP_BYTES_MAX;
        match self.skip_rest(&mut left) {
            Rest::Skipped => self.release(),
            Rest::TooMuch => {
                self.persistent = false;
                self.release();
            }
            Rest::OnItsWay => {
                // The fetch is over for its records.
                if let (Some(records), Some(upstream)) = (self.records.take(), &self.upstream) {
                    fetch_records::closed(&records, &self.origin, GivenBack::of(upstream, false));
                    fetch_records::body_ended(&records);
                }
                tokio::task::spawn_local(self.finish_later(left));
            }
        }
    }

    async fn finish_later(mut self, mut left: usize) {
        let skipping = poll_fn(|cx| {
            loop {
                match self.skip_rest(&mut left) {
                    Rest::Skipped => return Poll::Ready(true),
                    Rest::TooMuch => return Poll::Ready(false),
                    Rest::OnItsWay => {}
                }
                let Some(upstream) = &self.upstream else { return Poll::Ready(false) };
                if ready!(upstream.poll_readable(cx)).is_err() {
                    return Poll::Ready(false);
                }
            }
        });
        self.persistent = in_time(GIVEN_UP_WAIT, pin!(skipping)).await.unwrap_or(false);
        self.release();
    }

    fn skip_rest(&mut self, left: &mut usize) -> Rest {
        match &mut self.upstream {
            Some(upstream) if self.persistent => upstream.skip_rest(&self.core, left),
            _ => Rest::TooMuch,
        }
    }

    /// The next piece. After `End` or an error it must not be asked again.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<OriginPiece, Failure>> {
        self.poll_piece(cx, None)
    }

    /// The same of a body that is kept, of which `block_bytes_left` more come before the next block begins.
    pub(crate) fn poll_next_kept(
        &mut self,
        cx: &mut Context<'_>,
        block_bytes_left: usize,
    ) -> Poll<Result<OriginPiece, Failure>> {
        self.poll_piece(cx, Some(block_bytes_left))
    }

    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        block_bytes_left: Option<usize>,
    ) -> Poll<Result<OriginPiece, Failure>> {
        let Some(upstream) = &mut self.upstream else {
            return Poll::Ready(Ok(OriginPiece::End(self.trailers.take())));
        };
        if let Some(Poll::Ready(whole)) = self.whole.as_mut().map(|whole| whole.poll_over(cx)) {
            // That may be the client's doing, who takes it slowly.
            return Poll::Ready(Err(self.refuse(|origin, _| failed::too_long(origin, whole))));
        }
        let pulled = match upstream.poll_piece(&self.core, cx, block_bytes_left, &mut self.silence) {
            Poll::Ready(pulled) => pulled,
            Poll::Pending => return self.poll_silence(cx),
        };
        match pulled {
            Ok(OriginPiece::End(trailers)) => {
                self.release();
                Poll::Ready(Ok(OriginPiece::End(trailers)))
            }
            Ok(OriginPiece::Data(bytes)) => {
                self.took(bytes.len());
                Poll::Ready(Ok(OriginPiece::Data(bytes)))
            }
            Ok(OriginPiece::InBlock(bytes)) => {
                self.took(bytes.len());
                Poll::Ready(Ok(OriginPiece::InBlock(bytes)))
            }
            Err(fault) => Poll::Ready(Err(self.broke(fault))),
        }
    }

    /// Nothing is there: for how long?
    fn poll_silence<T>(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, Failure>> {
        let timeout = self.timeout;
        let silence = self.silence.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout.after)));
        ready!(silence.as_mut().poll(cx));
        Poll::Ready(Err(self.fail(OriginFailure::Truncated, |o, l| failed::stalled(o, l, timeout))))
    }

    /// So many bytes of it were pulled. With the last ones it is whole: its connection may serve the next request, even while
    /// our client still takes this one.
    fn took(&mut self, bytes: usize) {
        if let Some(records) = &self.records {
            records.count(|carried| carried.body_in += bytes as u64);
        }
        if let Some(upstream) = &mut self.upstream
            && upstream.is_at_end()
        {
            self.trailers = upstream.take_trailers();
            self.release();
        }
    }

    fn release(&mut self) {
        let Some(upstream) = self.upstream.take() else { return };
        let is_kept = self.persistent && upstream.is_clean();
        let is_later = matches!(self.end, RecordedEnd::Later);
        self.end = RecordedEnd::Due(GivenBack::of(&upstream, is_kept));
        if !is_later {
            self.record_end();
        }
        if is_kept {
            upstream.into_pool(&self.core.handle());
        }
    }

    /// What was done to the body is recorded: now its end is.
    pub(super) fn record_end(&mut self) {
        if let (Some(records), RecordedEnd::Due(end)) = (&self.records, self.end) {
            fetch_records::closed(records, &self.origin, end);
            fetch_records::body_ended(records);
        }
        self.end = RecordedEnd::AtOnce;
    }

    fn broke(&mut self, fault: BodyFault) -> Failure {
        match fault {
            BodyFault::Truncated => self.fail(OriginFailure::Truncated, failed::truncated),
            BodyFault::Garbled(refusal) => {
                self.fail(OriginFailure::Protocol, |o, l| failed::garbled_body(o, l, &refusal))
            }
        }
    }

    fn fail(&mut self, kind: OriginFailure, failure: impl FnOnce(&str, &str) -> Failure) -> Failure {
        if let Some(upstream) = &self.upstream {
            upstream.failed(&self.core.handle(), kind);
        }
        self.refuse(failure)
    }

    /// What came is not what its head says: nobody can use it. The connection is closed, which tells the origin to stop.
    pub(super) fn refuse(&mut self, failure: impl FnOnce(&str, &str) -> Failure) -> Failure {
        let label = match self.upstream.take() {
            Some(upstream) => {
                if let Some(records) = &self.records {
                    fetch_records::closed(records, &self.origin, GivenBack::of(&upstream, false));
                }
                if self.shows_address { Arc::clone(upstream.label()) } else { Arc::from("its address") }
            }
            None => {
                self.record_end();
                Arc::from("closed")
            }
        };
        let failure = failure(&self.origin, &label);
        if let Some(records) = &self.records {
            fetch_records::failed(records, &self.origin, &failure);
        }
        failure
    }
}

/// Given up on the way: whoever it was for has left. Here nobody can wait for the rest.
impl Drop for OriginBody {
    fn drop(&mut self) {
        self.record_end();
        if self.upstream.is_some()
            && matches!(self.skip_rest(&mut { GIVEN_UP_BYTES_MAX }), Rest::Skipped)
            && let Some(upstream) = self.upstream.take()
        {
            upstream.into_pool(&self.core.handle());
        }
    }
}
