//! The body of a flight: kept from byte 0 while it may be stored, a window when it may not.
//!
//! Readers go by position and get pieces by reference count; nobody copies to read.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use smallvec::SmallVec;
use store::Growing;

use crate::limits::{READ_BYTES_MAX, WINDOW_READ_BYTES_MAX};
use crate::object::Object;

/// What a reader is handed at once.
pub type Pieces = SmallVec<[Bytes; 4]>;

#[derive(Debug)]
pub(crate) enum FlightBody {
    /// It may be stored: all of it is there.
    Growing(Growing),
    /// It will not be stored: what the slowest reader has passed is gone.
    Window(Window),
    /// It is stored.
    Landed(Arc<Object>),
}

impl FlightBody {
    /// The position behind the last byte.
    pub fn end(&self) -> u64 {
        match self {
            FlightBody::Growing(growing) => growing.len(),
            FlightBody::Window(window) => window.end,
            FlightBody::Landed(object) => object.body().len(),
        }
    }

    /// About as much from a position on as a reader is handed at once; nothing when it stands at the end.
    pub fn read(&self, from: u64) -> Pieces {
        let mut pieces = Pieces::new();
        match self {
            FlightBody::Growing(growing) => growing.read(from, READ_BYTES_MAX, |piece| pieces.push(piece)),
            FlightBody::Window(window) => window.read(from, &mut pieces),
            // Its readers take the object along and read from that.
            FlightBody::Landed(_) => {}
        }
        pieces
    }

    /// Gives up keeping it.
    pub fn open_window(&mut self) {
        if let FlightBody::Growing(growing) = self {
            let end = growing.len();
            let pieces = std::mem::take(growing).into_pieces().collect();
            *self = FlightBody::Window(Window { pieces, base: 0, end });
        }
    }
}

/// A stretch of a body between its slowest reader and its writer.
#[derive(Debug)]
pub(crate) struct Window {
    pieces: VecDeque<Bytes>,
    base: u64,
    end: u64,
}

impl Window {
    pub fn append(&mut self, piece: Bytes) {
        self.end += piece.len() as u64;
        self.pieces.push_back(piece);
    }

    pub fn base(&self) -> u64 {
        self.base
    }

    pub fn held_bytes(&self) -> usize {
        (self.end - self.base) as usize
    }

    /// Lets go of everything before `floor`.
    pub fn trim(&mut self, floor: u64) {
        let floor = floor.min(self.end);
        while self.base < floor {
            let piece = self.pieces.front_mut().expect("the pieces reach from the base to the end");
            let passed = floor - self.base;
            if passed < piece.len() as u64 {
                *piece = piece.slice(passed as usize..);
                self.base = floor;
            } else {
                self.base += piece.len() as u64;
                self.pieces.pop_front();
            }
        }
    }

    fn read(&self, from: u64, pieces: &mut Pieces) {
        assert!(from >= self.base, "no reader stands before the window");
        let mut skip = from - self.base;
        let mut left = WINDOW_READ_BYTES_MAX;
        for piece in &self.pieces {
            if left == 0 {
                return;
            }
            if skip >= piece.len() as u64 {
                skip -= piece.len() as u64;
                continue;
            }
            let part = piece.slice(std::mem::take(&mut skip) as usize..);
            left = left.saturating_sub(part.len());
            pieces.push(part);
        }
    }
}
