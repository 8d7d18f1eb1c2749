//! The log: a ring of words in a segment, which `varnishlog` and the others follow as it grows.
//!
//! ```text
//! "VSLHEAD1", words of an eighth: i64, eighth that is written: u32, 4 bytes of nothing, where the first record of each of the
//! 8 eighths begins: i64, -1 if nowhere; then the words, of 32 bits
//! record: tag << 24 | bytes of the text with its NUL; transaction; the text in whole words
//! ```
//!
//! Behind the newest record stands an end mark, and the mark of the way back where the ring was too short for the next one.
//! Readers look at a record's first word and believe the rest when it is no mark: so the first word is written last. What a
//! record means, and who writes it, this file does not know.

use std::io;

use crate::limits::LOG_BYTES_MIN;
use crate::log_piece::LogPiece;
use crate::segment_set::{Segment, SegmentSet};

/// Readers find it as long as this lives.
#[derive(Debug)]
pub struct LogSegment {
    segment: Segment,
    /// Of an eighth.
    eighth_words: u64,
    /// Where the end mark is.
    next: u64,
    /// Counted on without end; what is left of it by eight is its place.
    eighth: u32,
}

const CLASS: &str = "Log";
const MARKER: &[u8; 8] = b"VSLHEAD1";
const EIGHTHS: u32 = 8;
const EIGHTH_AT: u64 = 16;
const PLACES_AT: u64 = 24;
const HEAD_BYTES: u64 = PLACES_AT + EIGHTHS as u64 * 8;
const WORD_BYTES: u64 = 4;
const NOWHERE: i64 = -1;
const END_MARK: u32 = 254 << 24 | 0x45_4545;
const WRAP_MARK: u32 = 254 << 24 | 0x57_5757;

impl LogSegment {
    /// An empty log of so many bytes, or of the fewest that make sense.
    pub fn create(set: &SegmentSet, bytes: u64) -> io::Result<LogSegment> {
        let words = (bytes.max(LOG_BYTES_MIN) - HEAD_BYTES) / WORD_BYTES;
        let eighth_words = words / u64::from(EIGHTHS);
        let mut head = Vec::with_capacity(HEAD_BYTES as usize + 4);
        head.extend_from_slice(MARKER);
        head.extend_from_slice(&eighth_words.to_ne_bytes());
        head.extend_from_slice(&[0; 8]);
        (0..EIGHTHS).for_each(|at| head.extend_from_slice(&if at == 0 { 0 } else { NOWHERE }.to_ne_bytes()));
        head.extend_from_slice(&END_MARK.to_ne_bytes());
        let bytes = HEAD_BYTES + eighth_words * u64::from(EIGHTHS) * WORD_BYTES;
        let segment = set.add_sparse(CLASS, "", &head, bytes)?;
        Ok(LogSegment { segment, eighth_words, next: 0, eighth: 0 })
    }

    /// Writes what was collected, much of it at once: what cannot be written is left out, and the error is about the first of it.
    pub fn append(&mut self, piece: &LogPiece) -> io::Result<()> {
        let (mut written, mut rest) = (Ok(()), piece.bytes());
        while !rest.is_empty() {
            let (now, behind) = rest.split_at(self.fitting(piece, rest));
            written = written.and(self.append_records(now));
            rest = behind;
        }
        written
    }

    /// Bytes of whole units that are written at once: half an eighth, or the only one.
    fn fitting(&self, piece: &LogPiece, rest: &[u8]) -> usize {
        let bytes_max = self.eighth_bytes() / 2;
        if rest.len() <= bytes_max {
            return rest.len();
        }
        let begin = piece.bytes().len() - rest.len();
        let mut at = begin;
        for unit in piece.units_from(begin) {
            if at > begin && at + unit.bytes.len() - begin > bytes_max {
                break;
            }
            at += unit.bytes.len();
        }
        // What is no unit is written as it is.
        if at > begin { at - begin } else { rest.len() }
    }

    fn eighth_bytes(&self) -> usize {
        (self.eighth_words * WORD_BYTES) as usize
    }

    /// Whole records.
    fn append_records(&mut self, records: &[u8]) -> io::Result<()> {
        let words = records.len() as u64 / WORD_BYTES;
        if words == 0 {
            return Ok(());
        }
        if records.len() > self.eighth_bytes() {
            return Err(io::Error::other("more records at once than an eighth of the log holds"));
        }
        // Room for the mark behind it, too.
        if self.next + words >= self.eighth_words * u64::from(EIGHTHS) {
            self.wrap()?;
        }
        let begin = self.next;
        let (first, rest) = records.split_at(WORD_BYTES as usize);
        self.write_words(begin + words, &END_MARK.to_ne_bytes())?;
        self.write_words(begin + 1, rest)?;
        self.advance(begin + words)?;
        self.write_words(begin, first)
    }

    /// The end mark is there now: says where new eighths begin.
    fn advance(&mut self, next: u64) -> io::Result<()> {
        self.next = next;
        let before = self.eighth;
        while next / self.eighth_words > u64::from(self.eighth % EIGHTHS) {
            self.eighth = self.eighth.wrapping_add(1);
            let place = PLACES_AT + u64::from(self.eighth % EIGHTHS) * 8;
            self.segment.write_at(place, &(next as i64).to_ne_bytes())?;
        }
        if self.eighth != before { self.show_eighth() } else { Ok(()) }
    }

    /// Back to the first word.
    fn wrap(&mut self) -> io::Result<()> {
        self.eighth = self.eighth.wrapping_add(EIGHTHS - self.eighth % EIGHTHS);
        self.write_words(0, &END_MARK.to_ne_bytes())?;
        self.write_words(self.next, &WRAP_MARK.to_ne_bytes())?;
        self.next = 0;
        self.show_eighth()
    }

    /// After what is in it: readers that see it look at the places.
    fn show_eighth(&self) -> io::Result<()> {
        self.segment.write_at(EIGHTH_AT, &self.eighth.to_ne_bytes())
    }

    fn write_words(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.segment.write_at(HEAD_BYTES + at * WORD_BYTES, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_tags::LogTag;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("larder-vsl-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    /// In front of a record's text.
    const RECORD_HEAD_WORDS: u64 = 2;

    /// A record that belongs to no transaction, and what the log says to it.
    fn append(log: &mut LogSegment, tag: &str, text: &[u8]) -> io::Result<()> {
        let mut piece = LogPiece::default();
        piece.alone(LogTag::named(tag).unwrap(), text);
        log.append(&piece)
    }

    fn file_of(folder: &Path) -> Vec<u8> {
        let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        fs::read(files.find(|path| path.to_string_lossy().contains("_.Log.")).unwrap()).unwrap()
    }

    fn word(file: &[u8], at: u64) -> u32 {
        let at = (HEAD_BYTES + at * WORD_BYTES) as usize;
        u32::from_ne_bytes(file[at..at + 4].try_into().unwrap())
    }

    fn place(file: &[u8], eighth: u64) -> i64 {
        let at = (PLACES_AT + eighth * 8) as usize;
        i64::from_ne_bytes(file[at..at + 8].try_into().unwrap())
    }

    /// From a word on: tag, transaction and text, and the word where it ends.
    fn records(file: &[u8], mut at: u64) -> (Vec<(u8, u32, String)>, u64) {
        let mut found = Vec::new();
        while word(file, at) != END_MARK {
            let first = word(file, at);
            let bytes = u64::from(first & 0xffff);
            let text = (HEAD_BYTES + (at + 2) * WORD_BYTES) as usize;
            let text = String::from_utf8(file[text..text + bytes as usize - 1].to_vec()).unwrap();
            found.push(((first >> 24) as u8, word(file, at + 1), text));
            at += RECORD_HEAD_WORDS + bytes.div_ceil(WORD_BYTES);
        }
        (found, at)
    }

    #[test]
    fn records_stand_one_behind_the_other_with_a_mark_at_the_end() {
        let folder = folder("plain");
        let set = SegmentSet::create(&folder, 7, 1).unwrap();
        let mut log = LogSegment::create(&set, 1 << 20).unwrap();
        assert_eq!(records(&file_of(&folder), 0), (vec![], 0));
        append(&mut log, "CLI", b"Rd start").unwrap();
        append(&mut log, "End", b"").unwrap();
        let file = file_of(&folder);
        assert_eq!(&file[..8], MARKER);
        let end = LogTag::named("End").unwrap().number();
        let expect = vec![(3, 0, "Rd start".to_string()), (end, 0, String::new())];
        assert_eq!(records(&file, 0), (expect, 8));
        assert_eq!((0..8).map(|at| place(&file, at)).collect::<Vec<_>>(), [0, -1, -1, -1, -1, -1, -1, -1]);
        let index = fs::read_to_string(folder.join("_.index")).unwrap();
        assert!(
            index.lines().nth(1).unwrap().ends_with(&format!(" 0 {} Log ", HEAD_BYTES + log.eighth_words * 32)),
            "{index}"
        );
        drop((log, set));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_ring_begins_anew_and_each_eighth_says_where_its_records_begin() {
        let folder = folder("wrap");
        let set = SegmentSet::create(&folder, 7, 1).unwrap();
        let mut log = LogSegment::create(&set, 1 << 20).unwrap();
        let text = vec![b'a'; 16_383];
        while log.eighth < EIGHTHS {
            append(&mut log, "Debug", &text).unwrap();
            let file = file_of(&folder);
            let eighth = u64::from(log.eighth % EIGHTHS);
            assert_eq!(place(&file, eighth) as u64 / log.eighth_words, eighth);
            let (found, end) = records(&file, place(&file, eighth) as u64);
            assert_eq!(end, log.next);
            assert!(found.iter().all(|record| record.2.len() == text.len()));
        }
        let file = file_of(&folder);
        assert_eq!(records(&file, 0).0.len(), 1);
        // What was the newest record before stands in front of the way back.
        let marks = (0..log.eighth_words * 8).filter(|at| word(&file, *at) == WRAP_MARK).count();
        assert_eq!(marks, 1);
        assert_eq!(u32::from_ne_bytes(file[16..20].try_into().unwrap()), 8);
        drop((log, set));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_long_piece_is_written_in_several_steps_and_none_breaks_a_batch() {
        let folder = folder("long");
        let set = SegmentSet::create(&folder, 7, 1).unwrap();
        let mut log = LogSegment::create(&set, 1 << 20).unwrap();
        let mut piece = LogPiece::default();
        let text = vec![b'a'; 16_383];
        (0..20).for_each(|_| piece.alone(LogTag::named("Debug").unwrap(), &text));
        assert!(piece.bytes().len() > 2 * log.eighth_bytes());
        let step = log.fitting(&piece, piece.bytes());
        assert!(step > 0 && step <= log.eighth_bytes() / 2 && step.is_multiple_of(16_384 + 8), "{step}");
        log.append(&piece).unwrap();
        assert_eq!(records(&file_of(&folder), 0).0.len(), 20);
        drop((log, set));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn more_than_an_eighth_at_once_is_refused_and_changes_nothing() {
        let folder = folder("much");
        let set = SegmentSet::create(&folder, 7, 1).unwrap();
        let mut log = LogSegment::create(&set, 1 << 20).unwrap();
        let much = vec![1; log.eighth_bytes() + WORD_BYTES as usize];
        assert!(log.append_records(&much).is_err());
        assert_eq!(records(&file_of(&folder), 0), (vec![], 0));
        drop((log, set));
        fs::remove_dir_all(&folder).unwrap();
    }
}
