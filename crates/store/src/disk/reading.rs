//! Reads as futures: first without waiting, then by a reader's thread. They can be polled under any runtime, and dropped.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::disk_digest::ShortName;
use super::disk_queue::QuestionQueue;
use super::one_disk::OneDisk;
use super::promise::{Awaited, promise};
use super::refused::Lost;
use super::stored::{Patience, ReadOutcome, Stored, open};
use crate::Blocks;
use crate::sync::atomic::Ordering::Relaxed;

/// A record that the index knows of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    pub(super) disk: usize,
    pub(super) name: ShortName,
}

impl Candidate {
    /// As much of its member as the index knows.
    pub fn member(self) -> u32 {
        self.name.member
    }
}

type ReadCall<T> = dyn Fn(Patience) -> ReadOutcome<T> + Send + Sync;
/// What only a reader's thread is asked.
type AskReaders<T> = dyn Fn() -> ReadOutcome<T> + Send + Sync;

/// A read under way: the record, a block of its body, or the whole body, or why it cannot be had.
pub struct Reading<T> {
    disk: Arc<OneDisk>,
    /// A record, not a part of one.
    is_record: bool,
    state: ReadingState<T>,
}

enum ReadingState<T> {
    New {
        ask: Arc<ReadCall<T>>,
        queue: Arc<QuestionQueue>,
    },
    Asked(Awaited<Result<T, Lost>>),
    /// Answered, or there never was anything to ask.
    Over(Option<Lost>),
}

impl<T: Send + 'static> Reading<T> {
    fn new(disk: &Arc<OneDisk>, queue: &Arc<QuestionQueue>, ask: Arc<ReadCall<T>>) -> Reading<T> {
        Reading { disk: Arc::clone(disk), is_record: false, state: ReadingState::New { ask, queue: Arc::clone(queue) } }
    }

    /// One that a reader's thread does, however much of it is at hand.
    pub(super) fn behind(disk: &Arc<OneDisk>, queue: &Arc<QuestionQueue>, ask: Arc<AskReaders<T>>) -> Reading<T> {
        let ask = move |patience| match patience {
            Patience::AtHand => ReadOutcome::NotAtHand,
            Patience::Waits => ask(),
        };
        Reading::new(disk, queue, Arc::new(ask))
    }

    fn begin(&mut self, ask: Arc<ReadCall<T>>, queue: &QuestionQueue) -> Option<Result<T, Lost>> {
        match ask(Patience::AtHand) {
            ReadOutcome::Read(value) => {
                self.disk.counters.hits_at_hand.fetch_add(1, Relaxed);
                return Some(Ok(value));
            }
            ReadOutcome::Lost(lost) => return Some(Err(lost)),
            ReadOutcome::NotAtHand => {}
        }
        let (promise, awaited) = promise();
        let question = move || {
            // Who asked has left: then nobody needs the disk to move.
            if promise.is_moot() {
                return;
            }
            match ask(Patience::Waits) {
                ReadOutcome::Read(value) => promise.keep(Ok(value)),
                ReadOutcome::Lost(lost) => promise.keep(Err(lost)),
                ReadOutcome::NotAtHand => unreachable!("who waits gets an answer"),
            }
        };
        match queue.ask(Box::new(question)) {
            Ok(()) => {
                self.state = ReadingState::Asked(awaited);
                None
            }
            Err(lost) => Some(Err(lost)),
        }
    }

    fn count(&self, result: &Result<T, Lost>) {
        let counters = &self.disk.counters;
        let counter = match result {
            Ok(_) if self.is_record => &counters.hits,
            Ok(_) => &counters.blocks_read,
            Err(Lost::Gone) => &counters.lost_gone,
            Err(Lost::Busy) => &counters.lost_busy,
            Err(Lost::Failed) => &counters.lost_failed,
            // Counted where it was found.
            Err(Lost::Damaged) => return,
        };
        counter.fetch_add(1, Relaxed);
    }
}

impl<T: Send + 'static> Future for Reading<T> {
    type Output = Result<T, Lost>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, Lost>> {
        let this = &mut *self;
        if let ReadingState::New { .. } = &this.state {
            let ReadingState::New { ask, queue } = std::mem::replace(&mut this.state, ReadingState::Over(None)) else {
                unreachable!("it was new a moment ago")
            };
            if let Some(result) = this.begin(ask, &queue) {
                this.count(&result);
                return Poll::Ready(result);
            }
        }
        let result = match &mut this.state {
            ReadingState::Asked(awaited) => match Pin::new(awaited).poll(cx) {
                Poll::Pending => return Poll::Pending,
                // The reader ended without an answer.
                Poll::Ready(answer) => answer.unwrap_or(Err(Lost::Failed)),
            },
            ReadingState::Over(lost) => Err(lost.unwrap_or(Lost::Gone)),
            ReadingState::New { .. } => unreachable!("it was begun"),
        };
        this.state = ReadingState::Over(None);
        this.count(&result);
        Poll::Ready(result)
    }
}

impl<T> Unpin for Reading<T> {}

/// Opens a record: its head, and a small body with it.
pub(super) fn open_record(disk: &Arc<OneDisk>, queue: &Arc<QuestionQueue>, name: ShortName) -> Reading<Stored> {
    let (asked, lane) = (Arc::clone(disk), Arc::clone(queue));
    let ask = move |patience| match open(&asked, name, patience) {
        ReadOutcome::Read(stored) => ReadOutcome::Read(stored.with_readers(&lane)),
        other => other,
    };
    Reading { is_record: true, ..Reading::new(disk, queue, Arc::new(ask)) }
}

impl Stored {
    /// The nth block of the body.
    pub fn read(&self, block: u64) -> Reading<Bytes> {
        self.reading(move |stored, patience| stored.read_now(block, patience))
    }

    /// The whole body, to be kept in memory.
    pub fn read_all(&self) -> Reading<Blocks> {
        self.reading(|stored, patience| stored.read_all_now(patience))
    }

    /// Asks a reader's thread about it.
    pub(super) fn asking_readers<T: Send + 'static>(
        &self,
        ask: impl Fn() -> ReadOutcome<T> + Send + Sync + 'static,
    ) -> Reading<T> {
        match self.readers() {
            Some(queue) => Reading::behind(self.disk(), queue, Arc::new(ask)),
            None => self.lost(),
        }
    }

    fn lost<T>(&self) -> Reading<T> {
        let (disk, state) = (Arc::clone(self.disk()), ReadingState::Over(Some(Lost::Failed)));
        Reading { disk, is_record: false, state }
    }

    fn reading<T: Send + 'static>(
        &self,
        read: impl Fn(&Stored, Patience) -> ReadOutcome<T> + Send + Sync + 'static,
    ) -> Reading<T> {
        let stored = self.clone();
        match self.readers() {
            Some(queue) => Reading::new(self.disk(), queue, Arc::new(move |patience| read(&stored, patience))),
            None => self.lost(),
        }
    }
}
