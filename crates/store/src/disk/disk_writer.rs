//! Storing from the caller's side: a body on its way to the disk, and what becomes of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::disk_command::{Body, Command, Rest};
use super::disk_digest::Digest;
use super::disk_queue::CommandQueue;
use super::head_record::RecordFacts;
use super::limits::EXTENT_BYTES_MAX;
use super::one_disk::OneDisk;
use super::promise::{Awaited, promise};
use super::refused::{NotDurable, Refused};

/// A body that comes bit by bit. Dropped before its end it leaves nothing behind.
pub struct Writer {
    disk: Arc<OneDisk>,
    queue: Arc<CommandQueue>,
    digest: Digest,
    sequence: u64,
    bytes: u64,
    bytes_max: u64,
    pieces: Vec<Bytes>,
    pieces_bytes: usize,
    /// Some of it is with the log, which must hear the end.
    is_sent: bool,
    refused: Option<Refused>,
}

impl Writer {
    pub(super) fn new(
        disk: &Arc<OneDisk>,
        queue: &Arc<CommandQueue>,
        digest: Digest,
        sequence: u64,
        bytes_max: u64,
    ) -> Writer {
        Writer {
            disk: Arc::clone(disk),
            queue: Arc::clone(queue),
            digest,
            sequence,
            bytes: 0,
            bytes_max,
            pieces: Vec::new(),
            pieces_bytes: 0,
            is_sent: false,
            refused: None,
        }
    }

    /// What a refresh names the body by.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Appends to the body. Once refused, always refused: the body will not be stored.
    pub fn append(&mut self, bytes: Bytes) -> Result<(), Refused> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        self.bytes += bytes.len() as u64;
        if self.bytes > self.bytes_max {
            return Err(self.refuse(Refused::TooLarge));
        }
        self.pieces_bytes += bytes.len();
        self.pieces.push(bytes);
        while self.pieces_bytes > EXTENT_BYTES_MAX {
            let pieces = self.cut_extent();
            let command = Command::Extent { digest: self.digest, sequence: self.sequence, pieces };
            if let Err(refused) = self.queue.offer(command, EXTENT_BYTES_MAX) {
                return Err(self.refuse(refused));
            }
            self.is_sent = true;
        }
        Ok(())
    }

    /// The first pieces, exactly one extent of them.
    fn cut_extent(&mut self) -> Vec<Bytes> {
        let (mut extent, mut left) = (Vec::new(), EXTENT_BYTES_MAX);
        let mut whole = 0;
        for piece in &mut self.pieces {
            if piece.len() > left {
                extent.push(piece.split_to(left));
                break;
            }
            left -= piece.len();
            extent.push(piece.clone());
            whole += 1;
            if left == 0 {
                break;
            }
        }
        self.pieces.drain(..whole);
        self.pieces_bytes -= EXTENT_BYTES_MAX;
        extent
    }

    fn refuse(&mut self, refused: Refused) -> Refused {
        self.disk.count_refusal(refused);
        self.refused = Some(refused);
        self.pieces = Vec::new();
        refused
    }

    /// The body is whole, and this is what it is found with.
    pub fn finish(mut self, head: Bytes, facts: RecordFacts) -> Placing {
        if let Some(refused) = self.refused {
            return Placing::refused(self.sequence, refused);
        }
        let (done, awaited) = promise();
        let queued = self.pieces_bytes + head.len();
        let body = Body { bytes: self.bytes, rest: Rest::Pieces(std::mem::take(&mut self.pieces)) };
        let command = Command::Finish { digest: self.digest, sequence: self.sequence, body, head, facts, done };
        match self.queue.offer(command, queued) {
            Ok(()) => {
                self.is_sent = false;
                Placing { sequence: self.sequence, state: Ok(awaited) }
            }
            Err(refused) => Placing::refused(self.sequence, self.refuse(refused)),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // If the queue has no room even for this the disk has been dropped, and forgets its drafts.
        if self.is_sent {
            let _ = self.queue.insist(Command::GiveUp { sequence: self.sequence });
        }
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Writer { digest, sequence, bytes, refused, .. } = self;
        write!(f, "Writer {{ {digest:?}, sequence {sequence}, {bytes} bytes, {refused:?} }}")
    }
}

/// A record on its way: ready when it can be found, or will not be. It says nothing about a loss of power.
pub struct Placing {
    sequence: u64,
    state: Result<Awaited<Result<(), Refused>>, Refused>,
}

impl Placing {
    pub(super) fn new(sequence: u64, awaited: Awaited<Result<(), Refused>>) -> Placing {
        Placing { sequence, state: Ok(awaited) }
    }

    pub(super) fn refused(sequence: u64, refused: Refused) -> Placing {
        Placing { sequence, state: Err(refused) }
    }

    /// What a refresh names the body by.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl Future for Placing {
    type Output = Result<(), Refused>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        match &mut self.state {
            Err(refused) => Poll::Ready(Err(*refused)),
            Ok(awaited) => Pin::new(awaited).poll(cx).map(|answer| answer.unwrap_or(Err(Refused::Down))),
        }
    }
}

/// An invalidation on its way to all disks that must remember it: ready when each of them would after a crash.
pub struct Acknowledged {
    waiting: Vec<Awaited<Result<(), NotDurable>>>,
    failed: Option<NotDurable>,
}

impl Acknowledged {
    pub(super) fn new(waiting: Vec<Awaited<Result<(), NotDurable>>>, failed: Option<NotDurable>) -> Acknowledged {
        Acknowledged { waiting, failed }
    }
}

impl Future for Acknowledged {
    type Output = Result<(), NotDurable>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), NotDurable>> {
        let this = &mut *self;
        while let Some(first) = this.waiting.last_mut() {
            match Pin::new(first).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(()))) => {}
                Poll::Ready(Some(Err(why))) => this.failed = Some(why),
                Poll::Ready(None) => this.failed = Some(NotDurable("the disk's writer has ended".into())),
            }
            this.waiting.pop();
        }
        Poll::Ready(this.failed.take().map_or(Ok(()), Err))
    }
}
