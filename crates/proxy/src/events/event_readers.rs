//! Who reads along, and what waits for each of them.
//!
//! A core hands over pieces of whole lines and goes on. What a reader has not taken when its room is full is lost and counted, as is
//! what is beyond the number of events a second that it asked for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::events::event_query::EventQuery;
use crate::limits::{EVENT_READERS_MAX, EVENTS_WAITING_BYTES_MAX};

/// All who read along.
#[derive(Debug, Default)]
pub(crate) struct EventReaders {
    /// There is one, or spans are made of what is over. Looked at by every exchange.
    any: AtomicBool,
    makes_spans: AtomicBool,
    list: ArcSwap<Vec<Arc<Inbox>>>,
    changes: Mutex<()>,
}

/// There are as many readers as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyReaders;

/// What one reader wants, and what waits for it.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) query: EventQuery,
    /// Of each core.
    pub(crate) per_second_max: u32,
    waiting: Mutex<WaitingLines>,
    /// Events that met the query and were not handed over.
    lost: AtomicU64,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct WaitingLines {
    pieces: VecDeque<Vec<u8>>,
    bytes: usize,
}

/// Somebody who reads along, until it is dropped.
#[derive(Debug)]
pub struct EventReader {
    readers: Arc<EventReaders>,
    inbox: Arc<Inbox>,
}

/// What a reader gets at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventPiece {
    /// Lines of JSON, each ended by a line feed.
    pub lines: Vec<u8>,
    /// Events since the last piece that met the query and are in none.
    pub lost: u64,
}

impl EventReaders {
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Spans are made of exchanges, or no more.
    pub(crate) fn set_makes_spans(&self, makes_spans: bool) {
        let _changes = self.changes.lock();
        self.makes_spans.store(makes_spans, Ordering::Relaxed);
        self.any.store(makes_spans || self.count() > 0, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        self.list.load().len() as u64
    }

    pub(crate) fn list(&self) -> arc_swap::Guard<Arc<Vec<Arc<Inbox>>>> {
        self.list.load()
    }

    /// One more. `per_second_max`: of each core.
    pub(crate) fn add(
        self: &Arc<EventReaders>,
        query: EventQuery,
        per_second_max: u32,
    ) -> Result<EventReader, TooManyReaders> {
        let inbox = Arc::new(Inbox {
            query,
            per_second_max,
            waiting: Mutex::default(),
            lost: AtomicU64::new(0),
            arrived: Notify::new(),
        });
        let _changes = self.changes.lock();
        let mut list = Vec::clone(&self.list.load());
        if list.len() >= EVENT_READERS_MAX {
            return Err(TooManyReaders);
        }
        list.push(Arc::clone(&inbox));
        self.set(list);
        Ok(EventReader { readers: Arc::clone(self), inbox })
    }

    fn set(&self, list: Vec<Arc<Inbox>>) {
        let any = !list.is_empty() || self.makes_spans.load(Ordering::Relaxed);
        self.list.store(Arc::new(list));
        self.any.store(any, Ordering::Relaxed);
    }
}

impl Inbox {
    /// Whole lines, `count` of them; false when there was no room for them. Never waits for the reader.
    pub(crate) fn put(&self, lines: Vec<u8>, count: u64) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.bytes + lines.len() > EVENTS_WAITING_BYTES_MAX {
            drop(waiting);
            self.lose(count);
            return false;
        }
        waiting.bytes += lines.len();
        waiting.pieces.push_back(lines);
        drop(waiting);
        self.arrived.notify_one();
        true
    }

    pub(crate) fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
    }
}

impl EventReader {
    /// What has come since the last time, as soon as something has.
    pub async fn next(&mut self) -> EventPiece {
        loop {
            let arrived = self.inbox.arrived.notified();
            let lines = {
                let mut waiting = self.inbox.waiting.lock();
                waiting.bytes = 0;
                std::mem::take(&mut waiting.pieces).into_iter().reduce(|mut all, piece| {
                    all.extend_from_slice(&piece);
                    all
                })
            };
            if let Some(lines) = lines {
                return EventPiece { lines, lost: self.inbox.lost.swap(0, Ordering::Relaxed) };
            }
            arrived.await;
        }
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        let _changes = self.readers.changes.lock();
        let mut list = Vec::clone(&self.readers.list.load());
        list.retain(|inbox| !Arc::ptr_eq(inbox, &self.inbox));
        self.readers.set(list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_does_not_fit_is_lost_and_told_with_what_comes_next() {
        let readers = Arc::new(EventReaders::default());
        assert!(!readers.any());
        let mut reader = readers.add(EventQuery::default(), 10).unwrap();
        assert!(readers.any());
        let inbox = Arc::clone(&readers.list()[0]);
        assert!(inbox.put(vec![b'a'; EVENTS_WAITING_BYTES_MAX - 1], 7));
        assert!(!inbox.put(b"bb".to_vec(), 3));
        assert!(inbox.put(b"c".to_vec(), 1));
        let piece = reader.next().await;
        assert_eq!((piece.lines.len(), piece.lines.last(), piece.lost), (EVENTS_WAITING_BYTES_MAX, Some(&b'c'), 3));
        assert!(inbox.put(b"d\n".to_vec(), 1));
        assert_eq!(reader.next().await, EventPiece { lines: b"d\n".to_vec(), lost: 0 });
    }

    #[test]
    fn there_is_an_end_to_readers_and_those_who_leave_make_room() {
        let readers = Arc::new(EventReaders::default());
        let mut all: Vec<EventReader> =
            (0..EVENT_READERS_MAX).map(|_| readers.add(EventQuery::default(), 1).unwrap()).collect();
        assert_eq!(readers.add(EventQuery::default(), 1).unwrap_err(), TooManyReaders);
        all.pop();
        all.push(readers.add(EventQuery::default(), 1).unwrap());
        drop(all);
        assert!(!readers.any() && readers.list().is_empty());
    }
}
