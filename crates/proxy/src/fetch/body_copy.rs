//! A copy of a client's body on its way to the origin, for somebody who wants all of it and nothing else.

use bytes::{Bytes, BytesMut};
use tokio::sync::oneshot;

/// What has been copied. Dropped before its end, nobody gets anything.
#[derive(Debug)]
pub(crate) struct BodyCopy {
    bytes: BytesMut,
    to: oneshot::Sender<Bytes>,
}

impl BodyCopy {
    pub(crate) fn new() -> (BodyCopy, oneshot::Receiver<Bytes>) {
        let (to, whole) = oneshot::channel();
        (BodyCopy { bytes: BytesMut::new(), to }, whole)
    }

    pub(crate) fn push(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(data);
    }

    /// That was all of it.
    pub(crate) fn end(self) {
        // Whoever wanted it may be gone.
        let _ = self.to.send(self.bytes.freeze());
    }
}
