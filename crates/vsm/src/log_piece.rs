//! Records in the form in which they stand in the log, collected so that many are written at once.
//!
//! Records of one transaction are a batch, with a head of its own: readers see them together.

use crate::log_tags::{BATCH, LogTag};

/// Of the word that names a transaction: its number. The two above say whether it is a client's or a backend's.
const XID_BITS: u32 = (1 << 30) - 1;
const WORD_BYTES: usize = 4;
/// Tag and length, and the transaction; of a batch its bytes.
const HEAD_BYTES: usize = 2 * WORD_BYTES;

/// Whole records and batches, one behind the other.
#[derive(Debug, Default)]
pub struct LogPiece {
    bytes: Vec<u8>,
}

impl LogPiece {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// A record of no transaction.
    pub fn alone(&mut self, tag: LogTag, text: &[u8]) {
        append_record(&mut self.bytes, tag, 0, text);
    }

    /// Whole records, all of one transaction or all of none. No records are no batch.
    pub fn records(&mut self, records: &[u8]) {
        let Some((head, _)) = records.split_first_chunk::<HEAD_BYTES>() else { return };
        if second_word(head) & XID_BITS != 0 {
            let (first, second) = ((u32::from(BATCH) << 24).to_ne_bytes(), (records.len() as u32).to_ne_bytes());
            self.bytes.extend_from_slice(&first);
            self.bytes.extend_from_slice(&second);
        }
        self.bytes.extend_from_slice(records);
    }

    /// One batch after the other, or record where it is in none.
    pub fn units(&self) -> impl Iterator<Item = LogUnit<'_>> {
        self.units_from(0)
    }

    /// The same from where one begins.
    pub(crate) fn units_from(&self, begin: usize) -> impl Iterator<Item = LogUnit<'_>> {
        let mut rest = &self.bytes[begin..];
        std::iter::from_fn(move || {
            let unit = LogUnit::first(rest)?;
            rest = &rest[unit.bytes.len()..];
            Some(unit)
        })
    }
}

/// A batch, or a record that is in none.
#[derive(Clone, Copy, Debug)]
pub struct LogUnit<'p> {
    /// With the batch's head.
    pub bytes: &'p [u8],
    pub records: &'p [u8],
}

impl LogUnit<'_> {
    fn first(bytes: &[u8]) -> Option<LogUnit<'_>> {
        let head = bytes.first_chunk::<HEAD_BYTES>()?;
        let first = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
        let (records_at, length) = match first >> 24 {
            tag if tag == u32::from(BATCH) => (HEAD_BYTES, second_word(head) as usize),
            _ => (0, HEAD_BYTES + ((first & u32::from(u16::MAX)) as usize).next_multiple_of(WORD_BYTES)),
        };
        let bytes = bytes.get(..records_at + length)?;
        Some(LogUnit { bytes, records: &bytes[records_at..] })
    }
}

fn second_word(head: &[u8; HEAD_BYTES]) -> u32 {
    u32::from_ne_bytes([head[4], head[5], head[6], head[7]])
}

/// A record behind others: a text without its NUL, which is added, or bytes as they are, where the tag is one of such.
pub fn append_record(to: &mut Vec<u8>, tag: LogTag, transaction: u32, text: &[u8]) {
    let text = &text[..text.len().min(usize::from(u16::MAX) - 1)];
    let bytes = text.len() + usize::from(!tag.is_binary());
    to.extend_from_slice(&(u32::from(tag.number()) << 24 | bytes as u32).to_ne_bytes());
    to.extend_from_slice(&transaction.to_ne_bytes());
    to.extend_from_slice(text);
    let behind = bytes.next_multiple_of(WORD_BYTES) - text.len();
    to.extend_from_slice(&[0; WORD_BYTES][..behind]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: u32 = 1 << 30;

    fn words(piece: &LogPiece) -> Vec<u32> {
        piece.bytes().chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
    }

    #[test]
    fn a_batch_says_how_long_it_is_and_an_empty_one_is_not_there() {
        let (begin, end) = (LogTag::named("Begin").unwrap(), LogTag::named("End").unwrap());
        let (mut piece, mut records) = (LogPiece::default(), Vec::new());
        piece.records(&records);
        assert!(piece.bytes().is_empty());
        append_record(&mut records, begin, CLIENT | 1001, b"req 1000 rxreq");
        append_record(&mut records, end, CLIENT | 1001, b"");
        piece.records(&records);
        let words = words(&piece);
        assert_eq!((words[0], words[1]), (255 << 24, 4 * (2 + 4 + 2 + 1)));
        assert_eq!((words[2], words[3]), (u32::from(begin.number()) << 24 | 15, CLIENT | 1001));
        assert_eq!(&piece.bytes()[16..32], b"req 1000 rxreq\0\0");
        assert_eq!((words[8], words[9], words[10]), (u32::from(end.number()) << 24 | 1, CLIENT | 1001, 0));
    }

    #[test]
    fn bytes_are_as_many_as_there_are() {
        let mut piece = LogPiece::default();
        piece.alone(LogTag::named("H2RxHdr").unwrap(), &[0, 0, 8, 6, 0, 0, 0, 0, 0]);
        assert_eq!(words(&piece)[0] & 0xffff, 9);
        assert_eq!(&piece.bytes()[8..], [0, 0, 8, 6, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_piece_falls_into_batches_and_records_of_nobody() {
        let (mut piece, mut records) = (LogPiece::default(), Vec::new());
        append_record(&mut records, LogTag::named("Begin").unwrap(), CLIENT | 7, b"sess 0 HTTP/1");
        append_record(&mut records, LogTag::named("End").unwrap(), CLIENT | 7, b"");
        piece.alone(LogTag::named("CLI").unwrap(), b"Rd ping");
        piece.records(&records);
        let mut of_nobody = Vec::new();
        append_record(&mut of_nobody, LogTag::named("ExpKill").unwrap(), 0, b"LRU x=5");
        piece.records(&of_nobody);
        let units: Vec<LogUnit<'_>> = piece.units().collect();
        assert_eq!(units.iter().map(|unit| unit.bytes.len()).sum::<usize>(), piece.bytes().len());
        let lengths: Vec<(usize, usize)> = units.iter().map(|unit| (unit.bytes.len(), unit.records.len())).collect();
        assert_eq!(lengths, [(16, 16), (8 + records.len(), records.len()), (16, 16)]);
        assert_eq!((units[1].records, units[2].records), (&records[..], &of_nobody[..]));
    }
}
