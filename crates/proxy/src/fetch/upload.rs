//! The client's body on its way to the origin, while the origin's answer is awaited. Chunked bodies are framed anew;
//! what cannot be framed is refused.

use std::task::{Context, Poll, ready};

use wire::RequestBody;

use crate::fetch::body_copy::BodyCopy;
use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::request_body::BodyRead;
use crate::upstream::Upstream;

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

impl UploadState {
    fn at_first(body: RequestBody, expects_continue: bool, client: &ClientLink<'_>) -> UploadState {
        let has_begun = matches!(client, ClientLink::Attached(downstream) if downstream.has_begun_body());
        match client {
            ClientLink::Attached(_) if body.follows() && expects_continue && !has_begun => UploadState::AwaitsContinue,
            ClientLink::Attached(_) if body.follows() => UploadState::Reading,
            _ => UploadState::Done,
        }
    }
}

pub(crate) struct Upload {
    state: UploadState,
    taken: bool,
    taken_bytes: u64,
    copy: Option<BodyCopy>,
    hands_on_trailers: bool,
}

impl Upload {
    pub(crate) fn begin(
        (body, expects_continue): (RequestBody, bool),
        (copy, hands_on_trailers): (Option<BodyCopy>, bool),
        client: &ClientLink<'_>,
        upstream: &mut Upstream,
    ) -> Upload {
        upstream.begin_upload(body);
        let state = UploadState::at_first(body, expects_continue, client);
        Upload { state, taken: false, taken_bytes: 0, copy, hands_on_trailers }
    }

    /// For whoever sends it again.
    pub(crate) fn take_copy(&mut self) -> Option<BodyCopy> {
        self.copy.take()
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
    pub(crate) fn is_reading(&self, upstream: &Upstream) -> bool {
        self.state == UploadState::Reading && !upstream.holds_upload()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state == UploadState::Done
    }

    /// Was anything taken from the client that could not be sent again?
    pub(crate) fn has_taken(&self) -> bool {
        self.taken
    }

    /// So far.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// Moves bytes up as far as both sides allow.
    pub(crate) fn poll(
        &mut self,
        client: &mut ClientLink<'_>,
        upstream: &mut Upstream,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Broken>> {
        loop {
            let taken = match self.state {
                UploadState::AwaitsContinue | UploadState::Done | UploadState::Broken => return Poll::Ready(Ok(())),
                UploadState::Reading => ready!(upstream.poll_takes_upload(cx)),
                UploadState::Finishing => ready!(upstream.poll_uploaded(cx)),
            };
            if taken.is_err() {
                upstream.drop_upload();
                self.state = UploadState::Broken;
                return Poll::Ready(Ok(()));
            }
            if self.state == UploadState::Finishing {
                self.state = UploadState::Done;
                return Poll::Ready(Ok(()));
            }
            let ClientLink::Attached(downstream) = client else { return Poll::Ready(Ok(())) };
            match ready!(downstream.poll_body(cx)) {
                Ok(BodyRead::Data(data)) => {
                    self.taken = true;
                    self.taken_bytes += data.len() as u64;
                    if let Some(copy) = &mut self.copy {
                        copy.push(&data);
                    }
                    upstream.upload(data);
                }
                Ok(BodyRead::End(trailers)) => {
                    if let Some(copy) = self.copy.take() {
                        copy.end();
                    }
                    upstream.end_upload(trailers.as_ref().filter(|_| self.hands_on_trailers));
                    self.state = UploadState::Finishing;
                }
                Err(broken) => return Poll::Ready(Err(broken)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_nobody_is_attached_to_has_nothing_to_send() {
        let state = UploadState::at_first(RequestBody::Length(5), true, &ClientLink::Detached(None));
        let mut upload = Upload { state, taken: false, taken_bytes: 0, copy: None, hands_on_trailers: true };
        assert!(upload.is_done() && !upload.awaits_continue() && !upload.release());
    }
}
