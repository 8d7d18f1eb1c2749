//! Records in the form in which they stand in the log, collected so that many are written at once.

use crate::log_tags::{BATCH, LogTag};

/// Whose transaction a record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSide {
    Client,
    Backend,
    None,
}

impl LogSide {
    /// In the word that names the transaction, whose number has 30 bits.
    fn bits(self) -> u32 {
        match self {
            LogSide::Client => 1 << 30,
            LogSide::Backend => 1 << 31,
            LogSide::None => 0,
        }
    }
}

const XID_BITS: u32 = (1 << 30) - 1;
const WORD_BYTES: usize = 4;
/// Tag and length, and the transaction.
const HEAD_BYTES: usize = 2 * WORD_BYTES;

/// Whole records, one behind the other.
#[derive(Debug, Default)]
pub struct LogPiece {
    bytes: Vec<u8>,
}

/// Where a batch began.
#[derive(Debug)]
#[must_use]
pub struct Batch {
    at: usize,
    transaction: u32,
}

impl LogPiece {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// A record that belongs to no batch.
    pub fn alone(&mut self, tag: LogTag, xid: u32, side: LogSide, text: &[u8]) {
        self.put(tag, xid & XID_BITS | side.bits(), text);
    }

    /// Records of one transaction, which readers see together.
    pub fn begin(&mut self, xid: u32, side: LogSide) -> Batch {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; HEAD_BYTES]);
        Batch { at, transaction: xid & XID_BITS | side.bits() }
    }

    /// A text without its NUL, which is added; or bytes as they are, where the tag is one of such.
    pub fn record(&mut self, batch: &Batch, tag: LogTag, text: &[u8]) {
        self.put(tag, batch.transaction, text);
    }

    /// One without records is none.
    pub fn end(&mut self, batch: Batch) {
        let bytes = self.bytes.len() - batch.at - HEAD_BYTES;
        if bytes == 0 {
            self.bytes.truncate(batch.at);
            return;
        }
        let head = &mut self.bytes[batch.at..batch.at + HEAD_BYTES];
        head[..WORD_BYTES].copy_from_slice(&(u32::from(BATCH) << 24).to_ne_bytes());
        head[WORD_BYTES..].copy_from_slice(&(bytes as u32).to_ne_bytes());
    }

    fn put(&mut self, tag: LogTag, transaction: u32, text: &[u8]) {
        let text = &text[..text.len().min(usize::from(u16::MAX) - 1)];
        let bytes = text.len() + usize::from(!tag.is_binary());
        let first = u32::from(tag.number()) << 24 | bytes as u32;
        let head = u64::from(first) | u64::from(transaction) << 32;
        // Words in the machine's order, one behind the other.
        let head = if cfg!(target_endian = "little") { head } else { head.rotate_left(32) };
        self.bytes.reserve(HEAD_BYTES + bytes + WORD_BYTES);
        self.bytes.extend_from_slice(&head.to_ne_bytes());
        self.bytes.extend_from_slice(text);
        let behind = bytes.next_multiple_of(WORD_BYTES) - text.len();
        self.bytes.extend_from_slice(&[0; WORD_BYTES][..behind]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(piece: &LogPiece) -> Vec<u32> {
        piece.bytes().chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
    }

    #[test]
    fn a_batch_says_how_long_it_is_and_an_empty_one_is_not_there() {
        let (begin, end) = (LogTag::named("Begin").unwrap(), LogTag::named("End").unwrap());
        let mut piece = LogPiece::default();
        let empty = piece.begin(7, LogSide::Client);
        piece.end(empty);
        assert!(piece.bytes().is_empty());
        let batch = piece.begin(1001, LogSide::Client);
        piece.record(&batch, begin, b"req 1000 rxreq");
        piece.record(&batch, end, b"");
        piece.end(batch);
        let words = words(&piece);
        assert_eq!((words[0], words[1]), (255 << 24, 4 * (2 + 4 + 2 + 1)));
        assert_eq!((words[2], words[3]), (u32::from(begin.number()) << 24 | 15, 1 << 30 | 1001));
        assert_eq!(&piece.bytes()[16..32], b"req 1000 rxreq\0\0");
        assert_eq!((words[8], words[9], words[10]), (u32::from(end.number()) << 24 | 1, 1 << 30 | 1001, 0));
    }

    #[test]
    fn bytes_are_as_many_as_there_are() {
        let mut piece = LogPiece::default();
        piece.alone(LogTag::named("H2RxHdr").unwrap(), 7, LogSide::Client, &[0, 0, 8, 6, 0, 0, 0, 0, 0]);
        assert_eq!(words(&piece)[0] & 0xffff, 9);
        assert_eq!(&piece.bytes()[8..], [0, 0, 8, 6, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_record_alone_is_nobody_s_or_a_backend_s() {
        let mut piece = LogPiece::default();
        piece.alone(LogTag::named("CLI").unwrap(), 0, LogSide::None, b"Rd ping");
        piece.alone(LogTag::named("End").unwrap(), 3, LogSide::Backend, b"");
        assert_eq!((words(&piece)[1], words(&piece)[5]), (0, 1 << 31 | 3));
    }
}
