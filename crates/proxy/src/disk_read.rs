//! A body that is sent from a disk's file with `sendfile`: it is looked whether the kernel has the next stretch in memory, and if not
//! a reader's thread brings it, so that the core does not wait for the disk.
//!
//! Between `hit`, which borrows the body, and `transmit`, which sends it.

use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use cache::{BodyOnDisk, LeasedBody, Lost};
use tokio::time::{error::Elapsed, timeout};

use crate::held_body::{DISK_PIECE_BYTES_MAX, Pages};
use crate::limits::DISK_LOOK_STEP_BYTES;

type Bringing = Pin<Box<dyn Future<Output = Result<Result<(), Lost>, Elapsed>>>>;

pub(crate) struct DiskRead {
    leased: LeasedBody,
    /// How long a disk may take for a stretch: `limits.disk_read_timeout`.
    patience: Duration,
    /// The kernel has it in memory, or had it when it was asked.
    at_hand: Range<u64>,
    bringing: Option<(Bringing, Range<u64>)>,
}

impl Clone for DiskRead {
    fn clone(&self) -> DiskRead {
        DiskRead::new(self.leased.clone(), self.patience)
    }
}

impl DiskRead {
    pub(crate) fn new(leased: LeasedBody, patience: Duration) -> DiskRead {
        DiskRead { leased, patience, at_hand: 0..0, bringing: None }
    }

    pub(crate) fn is_of(&self, body: &Arc<BodyOnDisk>) -> bool {
        self.leased.is_of(body)
    }

    /// Ready when the byte at a position can be sent, and what is behind it up to the end of a piece. The error is a token.
    pub(crate) fn poll_at_hand(&mut self, cx: &mut Context<'_>, from: u64, to: u64) -> Poll<Result<(), &'static str>> {
        if !self.leased.is_trusted() {
            return Poll::Ready(Err("disk-lost"));
        }
        while !self.at_hand.contains(&from) {
            let Some((bringing, range)) = &mut self.bringing else {
                let range = from..to.min(from + DISK_PIECE_BYTES_MAX);
                match self.leased.is_at_hand(range.start, range.end, DISK_LOOK_STEP_BYTES) {
                    true => self.at_hand = range,
                    false => {
                        let bringing = timeout(self.patience, self.leased.bring(range.start, range.end));
                        self.bringing = Some((Box::pin(bringing), range));
                    }
                }
                continue;
            };
            let (brought, range) = (ready!(bringing.as_mut().poll(cx)), range.clone());
            self.bringing = None;
            match brought {
                Ok(Ok(())) => self.at_hand = range,
                Ok(Err(_)) => return Poll::Ready(Err("disk-lost")),
                Err(_) => return Poll::Ready(Err("disk-slow")),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Where the byte at a position lies, and how much from there on may be sent at once.
    pub(crate) fn pages_at(&self, from: u64) -> Pages<'_> {
        let place = self.leased.place_at(from);
        let piece_bytes_max = place.len.min(self.at_hand.end.saturating_sub(from)).min(DISK_PIECE_BYTES_MAX);
        // What lies in front of it may lie anywhere.
        Pages { file: self.leased.file(), offset: place.offset.wrapping_sub(from), piece_bytes_max }
    }

    /// A `sendfile` failed. That may have been the client's end of it; a disk says so itself.
    pub(crate) fn failed(&self, error: &io::Error) {
        if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) {
            self.leased.failed(error);
        }
    }
}
