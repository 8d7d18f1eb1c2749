//! The client's body on its way to the origin, while the origin's answer is awaited. Chunked bodies are framed anew;
//! what cannot be framed is refused.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wire::{BodyFraming, RequestBody};

use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::origin::OriginConnection;
use crate::request_body::BodyRead;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UploadState {
    /// The client waits for a 100.
    AwaitsContinue,
    Reading,
    /// Everything is read; the last bytes are being written.
    Finishing,
    Done,
    /// The origin takes no more: its answer, or its end, is on the way.
    Broken,
}

pub(crate) struct Upload {
    state: UploadState,
    chunked: bool,
    queue: VecDeque<Bytes>,
    taken: bool,
}

impl Upload {
    pub(crate) fn begin(body: RequestBody, expects_continue: bool, client: &ClientLink<'_>) -> Upload {
        let has_begun = matches!(client, ClientLink::Attached(downstream) if downstream.has_begun_body());
        let state = match client {
            ClientLink::Attached(_) if body.follows() && expects_continue && !has_begun => UploadState::AwaitsContinue,
            ClientLink::Attached(_) if body.follows() => UploadState::Reading,
            _ => UploadState::Done,
        };
        Upload { state, chunked: body == RequestBody::Chunked, queue: VecDeque::new(), taken: false }
    }

    /// The client may send: true if it was waiting for that.
    pub(crate) fn release(&mut self) -> bool {
        let waited = self.state == UploadState::AwaitsContinue;
        if waited {
            self.state = UploadState::Reading;
        }
        waited
    }

    pub(crate) fn awaits_continue(&self) -> bool {
        self.state == UploadState::AwaitsContinue
    }

    /// Is it the client's turn, so that its deadlines count? While the origin takes nothing it is the origin's.
    pub(crate) fn is_reading(&self) -> bool {
        self.state == UploadState::Reading && self.queue.is_empty()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state == UploadState::Done
    }

    /// Was anything taken from the client that could not be sent again?
    pub(crate) fn has_taken(&self) -> bool {
        self.taken
    }

    /// Moves bytes up as far as both sides allow.
    pub(crate) fn poll(
        &mut self,
        client: &mut ClientLink<'_>,
        origin: &mut OriginConnection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Broken>> {
        loop {
            match self.state {
                UploadState::AwaitsContinue | UploadState::Done | UploadState::Broken => return Poll::Ready(Ok(())),
                UploadState::Reading | UploadState::Finishing => {}
            }
            ready!(self.poll_queue(origin, cx));
            if self.state == UploadState::Finishing {
                self.state = UploadState::Done;
                return Poll::Ready(Ok(()));
            }
            let ClientLink::Attached(downstream) = client else { return Poll::Ready(Ok(())) };
            match ready!(downstream.poll_body(cx)) {
                Ok(BodyRead::Data(data)) => {
                    self.taken = true;
                    self.push(data);
                }
                Ok(BodyRead::End(trailers)) => {
                    if self.chunked {
                        let trailers = trailers.as_ref().map(|trailers| trailers.view());
                        self.queue.extend(BodyFraming::Chunked.end(trailers).map(Bytes::from));
                    }
                    self.state = UploadState::Finishing;
                }
                Err(broken) => return Poll::Ready(Err(broken)),
            }
        }
    }

    fn push(&mut self, data: Bytes) {
        if !self.chunked {
            self.queue.push_back(data);
            return;
        }
        let framed = BodyFraming::Chunked.frame(data.len());
        self.queue.push_back(Bytes::copy_from_slice(framed.before()));
        self.queue.push_back(data);
        self.queue.push_back(Bytes::from_static(framed.after()));
    }

    fn poll_queue(&mut self, origin: &mut OriginConnection, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(first) = self.queue.front_mut() {
            match ready!(Pin::new(&mut origin.stream).poll_write(cx, first)) {
                Ok(written) if written > 0 => {
                    let _ = first.split_to(written);
                    if first.is_empty() {
                        self.queue.pop_front();
                    }
                }
                _ => {
                    self.state = UploadState::Broken;
                    self.queue.clear();
                    return Poll::Ready(());
                }
            }
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an upload has to write once these pieces were read.
    fn check(body: RequestBody, pieces: &[&'static str], expect: &str) {
        let mut upload = Upload::begin(body, false, &ClientLink::Detached(None));
        pieces.iter().for_each(|piece| upload.push(Bytes::from_static(piece.as_bytes())));
        assert_eq!(upload.queue.iter().flatten().copied().collect::<Vec<_>>(), expect.as_bytes(), "{body:?}");
    }

    #[test]
    fn a_chunked_body_is_framed_anew_and_any_other_goes_as_it_is() {
        check(RequestBody::Chunked, &["hello", " world, all"], "5\r\nhello\r\nb\r\n world, all\r\n");
        check(RequestBody::Length(5), &["he", "llo"], "hello");
    }

    #[test]
    fn whom_nobody_is_attached_to_has_nothing_to_send() {
        let mut upload = Upload::begin(RequestBody::Length(5), true, &ClientLink::Detached(None));
        assert!(upload.is_done() && !upload.awaits_continue() && !upload.release());
    }
}
