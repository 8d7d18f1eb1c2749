//! What an HTTP/2 connection has framed and its socket has not taken yet. Where records are wanted, each frame is recorded as it goes.

use std::io::IoSlice;
use std::task::{Context, Poll};

use crate::connection::Connection;
use crate::records::frame_records::FrameRecords;
use crate::records::session_records::SessionRecords;

/// One connection's.
pub(crate) struct Http2Outbox {
    pub(crate) framed: Vec<u8>,
    /// Where records are wanted.
    frames: Option<Box<FrameRecords>>,
    /// With the socket.
    written_bytes: u64,
}

impl Http2Outbox {
    pub(crate) fn new(is_recorded: bool) -> Http2Outbox {
        Http2Outbox { framed: Vec::new(), frames: is_recorded.then(|| Box::new(FrameRecords::new())), written_bytes: 0 }
    }

    /// Of what is recorded where records are wanted.
    pub(crate) fn record(&mut self, connection: &Connection, note: impl FnOnce(&mut FrameRecords, &SessionRecords)) {
        if let (Some(frames), Some(session)) = (&mut self.frames, connection.session()) {
            note(frames, session);
        }
    }

    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// One write of what is framed. False: the socket takes nothing now.
    pub(crate) fn poll_write(&mut self, connection: &mut Connection, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        match connection.socket.poll_write(cx, &[IoSlice::new(&self.framed)]) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(_)) => Poll::Ready(Err(())),
            Poll::Ready(Ok(written)) => {
                self.note_written(connection, written);
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Writes what the socket takes without waiting. Whatever stands in the way meets the next write, too.
    pub(crate) fn try_write(&mut self, connection: &mut Connection) {
        if let Ok(written) = connection.socket.try_write(&[IoSlice::new(&self.framed)]) {
            self.note_written(connection, written);
        }
    }

    fn note_written(&mut self, connection: &Connection, written: usize) {
        let framed = std::mem::take(&mut self.framed);
        self.record(connection, |frames, session| frames.went(session, &framed[..written]));
        self.framed = framed;
        self.framed.drain(..written);
        self.written_bytes += written as u64;
        connection.core.counters.bytes_out.add(written as u64);
    }
}
