//! What purges of tags have marked in its place, on its way out of the directory, the eviction and the index.
//!
//! Marking an object takes one write to it; taking it out takes locks, and looks at its neighbours in three tables. So an order marks, and
//! this is done behind it: a piece by the order itself, the rest piece by piece by whoever has time, and first of all by who needs room.
//! What a look-up meets before that it takes out itself. It knows no tags.

use std::collections::VecDeque;
use std::sync::Arc;

use store::sync::Mutex;
use store::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::object::Object;

#[derive(Debug, Default)]
pub(crate) struct PurgedObjects {
    pieces: Mutex<VecDeque<Vec<Arc<Object>>>>,
    /// How many are marked and may still be in their places.
    waiting: AtomicUsize,
}

impl PurgedObjects {
    /// Is nothing marked that a look-up could meet?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.load(Relaxed) == 0
    }

    /// Marks these. Returns how many could be served until now.
    pub fn withdraw(&self, piece: Vec<Arc<Object>>) -> usize {
        // First: who sees one that is marked takes it out.
        self.waiting.fetch_add(piece.len(), Relaxed);
        let hit = piece.iter().filter(|object| object.withdraw()).count();
        // With nothing written between, so that these come from memory side by side. After the marks: no encoding is kept of what is marked.
        piece.iter().filter_map(|object| object.encodings()).for_each(|encodings| encodings.withdraw_all());
        self.pieces.lock().push_back(piece);
        hit
    }

    /// The next to be taken out.
    pub fn next(&self) -> Option<Arc<Object>> {
        if self.is_empty() {
            return None;
        }
        let mut pieces = self.pieces.lock();
        loop {
            match pieces.front_mut()?.pop() {
                None => drop(pieces.pop_front()),
                next => return next,
            }
        }
    }

    /// One that was next is not in its place any more.
    pub fn note_taken_out(&self) {
        self.waiting.fetch_sub(1, Relaxed);
    }
}
