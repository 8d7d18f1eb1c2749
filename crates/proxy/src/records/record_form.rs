//! How records stand in memory: as in Varnish's log, so that a sink copies many at once and looks at none.
//!
//! ```text
//! number of its kind << 24 | bytes of the text with its NUL; transaction; the text in whole words
//! ```
//!
//! A word has 32 bits in the machine's order. What is bytes and no text has no NUL.

use crate::records::heard_kinds::HeardAs;
use crate::records::{RecordKind, RecordSide};

const WORD_BYTES: usize = 4;
/// Before the text.
const HEAD_BYTES: usize = 2 * WORD_BYTES;

/// The word that names a transaction, whose number has 30 bits.
pub(crate) fn transaction_word(xid: u64, side: RecordSide) -> u32 {
    const XID_BITS: u32 = (1 << 30) - 1;
    let side = match side {
        RecordSide::Client => 1 << 30,
        RecordSide::Backend => 1 << 31,
        RecordSide::None => 0,
    };
    xid as u32 & XID_BITS | side
}

/// A record, without the NUL of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordView<'r> {
    /// Of its kind.
    pub number: u8,
    pub transaction: u32,
    /// With the NUL, where it is a text.
    pub bytes: &'r [u8],
}

impl<'r> RecordView<'r> {
    /// The first of whole records, and the others.
    #[inline]
    pub fn split_first(records: &'r [u8]) -> Option<(RecordView<'r>, &'r [u8])> {
        let (head, behind) = records.split_first_chunk::<HEAD_BYTES>()?;
        let first = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
        let transaction = u32::from_ne_bytes([head[4], head[5], head[6], head[7]]);
        let bytes = (first & u32::from(u16::MAX)) as usize;
        let behind_at = bytes.next_multiple_of(WORD_BYTES).min(behind.len());
        let (number, bytes) = ((first >> 24) as u8, behind.get(..bytes)?);
        Some((RecordView { number, transaction, bytes }, &behind[behind_at..]))
    }

    /// Of a text.
    pub fn text(&self) -> &'r [u8] {
        self.bytes.strip_suffix(b"\0").unwrap_or(self.bytes)
    }
}

/// Appends a record of this kind.
pub(crate) fn append(to: &mut Vec<u8>, transaction: u32, (kind, heard): (RecordKind, HeardAs), text: &[u8]) {
    let record_at = open(to, transaction);
    to.extend_from_slice(text);
    close(to, record_at, (kind, heard));
}

/// The longest text that [`append_word`] takes.
pub(crate) const WORD_TEXT_MAX: usize = 15;

/// The same of a short text without control bytes, in one piece.
#[inline(always)]
pub(crate) fn append_word(to: &mut Vec<u8>, transaction: u32, heard: HeardAs, text: &[u8]) {
    let mut record = [0; HEAD_BYTES + WORD_TEXT_MAX + 1];
    record[..WORD_BYTES].copy_from_slice(&heard.first_word(text.len() + 1).to_ne_bytes());
    record[WORD_BYTES..HEAD_BYTES].copy_from_slice(&transaction.to_ne_bytes());
    record[HEAD_BYTES..HEAD_BYTES + text.len()].copy_from_slice(text);
    to.extend_from_slice(&record[..HEAD_BYTES + (text.len() + 1).next_multiple_of(WORD_BYTES)]);
}

/// Begins a record, whose text follows; [`close`] wants to know where.
#[inline(always)]
pub(crate) fn open(to: &mut Vec<u8>, transaction: u32) -> usize {
    let record_at = to.len();
    let mut head = [0; HEAD_BYTES];
    head[WORD_BYTES..].copy_from_slice(&transaction.to_ne_bytes());
    to.extend_from_slice(&head);
    record_at
}

/// Says what the record is that begins at `record_at`, and how long it has become. A control byte in a text is escaped as in the access
/// log: a line of the log is one line, whatever a program was given to write.
#[inline]
pub(crate) fn close(to: &mut Vec<u8>, record_at: usize, (kind, heard): (RecordKind, HeardAs)) {
    let text_at = record_at + HEAD_BYTES;
    if !kind.is_binary() && may_have_control(&to[record_at..]) {
        escape_controls(to, text_at);
    }
    if to.len() - text_at > heard.text_bytes_max() {
        to.truncate(text_at + heard.text_bytes_max());
    }
    let bytes = to.len() - text_at + usize::from(!kind.is_binary());
    to.extend_from_slice(&[0; WORD_BYTES]);
    to.truncate(text_at + bytes.next_multiple_of(WORD_BYTES));
    to[record_at..record_at + WORD_BYTES].copy_from_slice(&heard.first_word(bytes).to_ne_bytes());
}

#[cold]
fn escape_controls(to: &mut Vec<u8>, text_at: usize) {
    let text = to.split_off(text_at);
    for &byte in &text {
        match is_control(byte) {
            true => to.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
            false => to.push(byte),
        }
    }
}

/// Is a byte of the text below a blank, or DEL? Others may be taken for one: tabs, and some beyond ASCII. Eight bytes at a time, the last
/// eight once more: every field that comes in or goes out is looked through. A text of fewer has the head in front of it.
#[inline]
fn may_have_control(record: &[u8]) -> bool {
    let (eights, rest) = record[HEAD_BYTES..].as_chunks::<8>();
    let of_head = if eights.is_empty() { u64::MAX >> (8 * rest.len()) } else { 0 };
    let last =
        record.last_chunk::<8>().map_or(LETTERS, |last| u64::from_le_bytes(*last) & !of_head | LETTERS & of_head);
    let (mut printable, mut deleted) = suspicion(last);
    for eight in eights {
        let (more_printable, more_deleted) = suspicion(u64::from_le_bytes(*eight));
        printable &= more_printable;
        deleted |= more_deleted;
    }
    printable & LETTER_BITS != LETTER_BITS || deleted & HIGH_BITS != 0
}

const ONES: u64 = u64::MAX / 0xff;
const LETTERS: u64 = ONES * 0x61;
const LETTER_BITS: u64 = ONES * 0x40;
const HIGH_BITS: u64 = ONES * 0x80;

/// The bit 0x40 of each byte that may be no control byte, and the bit 0x80 of each that may be DEL.
#[inline(always)]
fn suspicion(eight: u64) -> (u64, u64) {
    (eight | (eight << 1), (eight & !HIGH_BITS) + ONES)
}

fn is_control(byte: u8) -> bool {
    (byte < b' ') & (byte != b'\t') | (byte == 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::RECORD_BYTES_MAX;
    use crate::records::HeardKinds;

    /// A client's, of transaction 7.
    fn appended(to: &mut Vec<u8>, kind: RecordKind, text: &[u8]) {
        let heard = HeardKinds::all().as_heard(kind).expect("all are heard");
        append(to, transaction_word(7, RecordSide::Client), (kind, heard), text);
    }

    fn first_of(records: &[u8]) -> RecordView<'_> {
        RecordView::split_first(records).expect("a record").0
    }

    #[test]
    fn a_record_is_one_line() {
        let mut bytes = Vec::new();
        appended(&mut bytes, RecordKind::VclLog, b"a\r\n- ReqURL /forged\x1b\tb\xc3\xa9\x7f");
        assert_eq!(first_of(&bytes).text(), b"a\\x0d\\x0a- ReqURL /forged\\x1b\tb\xc3\xa9\\x7f");
    }

    #[test]
    fn a_control_byte_is_found_wherever_it_stands() {
        for byte in 0..=u8::MAX {
            for (length, at) in (1..20).flat_map(|length| (0..length).map(move |at| (length, at))) {
                let mut text = vec![b'a'; length];
                text[at] = byte;
                let mut bytes = Vec::new();
                appended(&mut bytes, RecordKind::VclLog, &text);
                let is_escaped = first_of(&bytes).text() != text;
                assert_eq!(is_escaped, is_control(byte), "{byte:#x} at {at} of {length}");
            }
        }
        // What stands in the head is no text.
        assert!(!may_have_control(&[0; HEAD_BYTES]));
        assert!(!may_have_control(b"\x01\x7f\0\0\0\0\0\0abc"));
    }

    #[test]
    fn a_word_is_a_record_as_any_other() {
        let heard = HeardKinds::all().as_heard(RecordKind::VclCall).expect("all are heard");
        for length in 0..=WORD_TEXT_MAX {
            let (text, mut bytes, mut word) = (vec![b'A'; length], Vec::new(), Vec::new());
            appended(&mut bytes, RecordKind::VclCall, &text);
            append_word(&mut word, transaction_word(7, RecordSide::Client), heard, &text);
            assert_eq!(word, bytes);
        }
    }

    #[test]
    fn frames_stay_as_they_are() {
        let mut bytes = Vec::new();
        appended(&mut bytes, RecordKind::H2TxHdr, b"\0\0\x08\x06");
        assert_eq!((first_of(&bytes).bytes, bytes.len()), (&b"\0\0\x08\x06"[..], 12));
    }

    #[test]
    fn records_are_read_as_they_were_written_and_long_ones_are_cut() {
        let mut bytes = Vec::new();
        appended(&mut bytes, RecordKind::ReqUrl, b"/a?b");
        appended(&mut bytes, RecordKind::End, b"");
        appended(&mut bytes, RecordKind::VclLog, &[b'x'; 70_000]);
        let (mut seen, mut rest) = (Vec::new(), &bytes[..]);
        while let Some((record, behind)) = RecordView::split_first(rest) {
            assert_eq!(record.transaction, 1 << 30 | 7);
            seen.push((record.number, record.text()));
            rest = behind;
        }
        let number = |kind: RecordKind| kind as u8 + 1;
        assert_eq!(seen[0], (number(RecordKind::ReqUrl), &b"/a?b"[..]));
        assert_eq!(seen[1], (number(RecordKind::End), &b""[..]));
        assert_eq!((seen[2].0, seen[2].1.len()), (number(RecordKind::VclLog), RECORD_BYTES_MAX));
        assert_eq!((seen.len(), rest.len()), (3, 0));
        assert_eq!(bytes[..4], ((u32::from(number(RecordKind::ReqUrl)) << 24) | 5).to_ne_bytes());
        assert_eq!(bytes[8..16], *b"/a?b\0\0\0\0");
    }

    #[test]
    fn half_a_record_is_none() {
        let mut bytes = Vec::new();
        appended(&mut bytes, RecordKind::ReqUrl, b"/abcdefgh");
        assert_eq!(RecordView::split_first(&bytes[..7]), None);
        assert_eq!(RecordView::split_first(&bytes[..13]), None);
    }
}
