//! The first bytes of a connection, where they say what it is before any request can be read: a PROXY header, or HTTP/2 without TLS.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use wire::http2::PREFACE;

use crate::connection::Connection;
use crate::records::session_records::SessionEnd;
use crate::slots::Phase;

impl Connection {
    /// Reads once, in the clear, behind what is pending. False: nothing comes, or not in time.
    pub(crate) async fn read_first_bytes(&mut self) -> bool {
        let core = Rc::clone(&self.core);
        poll_fn(|cx| {
            let mut scratch = core.scratch.borrow_mut();
            match self.socket.poll_read_clear(cx, &mut scratch) {
                Poll::Ready(Ok(read)) if read > 0 => {
                    core.counters.bytes_in.add(read as u64);
                    self.pending.extend_from_slice(&scratch[..read]);
                    Poll::Ready(true)
                }
                Poll::Ready(_) => Poll::Ready(false),
                Poll::Pending if self.slot.must_end() => {
                    self.closes(SessionEnd::Timeout);
                    Poll::Ready(false)
                }
                Poll::Pending => {
                    self.slot.park(cx.waker());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Does the client speak HTTP/2 without having agreed upon it (RFC 9113 §3.3)? What was read to know it stays pending.
    pub(crate) async fn has_prior_knowledge(&mut self) -> bool {
        self.slot.phase.set(Phase::Reading);
        loop {
            let known = self.pending.len().min(PREFACE.len());
            if self.pending[..known] != PREFACE[..known] {
                self.slot.phase.set(Phase::Waiting);
                return false;
            }
            if known == PREFACE.len() {
                return true;
            }
            if !self.read_first_bytes().await {
                return false;
            }
        }
    }
}
