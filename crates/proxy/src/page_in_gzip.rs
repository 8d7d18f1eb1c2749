//! What a page in gzip is besides its pieces: its head, the sum of its texts, and its end.

use std::collections::VecDeque;

use bytes::Bytes;
use coding::{GZIP_HEAD, TextSum, page_end, stored_blocks};

/// Of a page that is put together.
#[derive(Debug, Default)]
pub(crate) struct PageInGzip {
    sum: TextSum,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    #[default]
    Unbegun,
    Begun,
    /// It is a part of another page, which has the head and the end.
    OfAnother,
    Ended,
}

impl PageInGzip {
    /// It is a piece of another page.
    pub(crate) fn becomes_piece(&mut self) {
        self.progress = Progress::OfAnother;
    }

    /// Its head, before everything else. True: it was put into the queue.
    pub(crate) fn begin(&mut self, queue: &mut VecDeque<Bytes>) -> bool {
        let is_unbegun = self.progress == Progress::Unbegun;
        if is_unbegun {
            self.progress = Progress::Begun;
            queue.push_back(Bytes::from_static(&GZIP_HEAD));
        }
        is_unbegun
    }

    /// Its end, behind everything else. True: it was put into the queue.
    pub(crate) fn end(&mut self, queue: &mut VecDeque<Bytes>) -> bool {
        let is_open = self.progress == Progress::Begun;
        if is_open {
            self.progress = Progress::Ended;
            queue.push_back(Bytes::copy_from_slice(&page_end(self.sum)));
        }
        is_open
    }

    /// A piece goes out whose text has this sum.
    pub(crate) fn add(&mut self, sum: TextSum) {
        self.sum = self.sum.followed_by(sum);
    }

    /// Of all that went out.
    pub(crate) fn sum(&self) -> TextSum {
        self.sum
    }
}

/// A text as blocks that are not compressed.
pub(crate) fn push_stored(queue: &mut VecDeque<Bytes>, text: &Bytes) {
    for (head, range) in stored_blocks(text.len()) {
        queue.push_back(Bytes::copy_from_slice(&head));
        queue.push_back(text.slice(range));
    }
}
