//! What the first fetch of each URL taught: how long the body is, and which bytes it has.
//!
//! One word for each request of the catalogue, length and checksum, shared by all threads without a lock: who is first
//! writes it, everybody after compares. Of bodies that come in one piece the bytes themselves are kept too, as far as
//! the limits go: to compare with them costs less than a checksum, and proves more. Only an answer that passed every
//! other check is learned.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::answer::{Answer, BodySeen};
use crate::error_kind::ErrorKind;
use crate::limits::{LEARNED_BODIES_MAX, LEARNED_BYTES_MAX};
use crate::workload::Checks;

#[derive(Debug)]
pub(crate) struct Learned {
    words: Box<[AtomicU64]>,
    /// Of the first requests.
    bodies: Box<[OnceLock<Box<[u8]>>]>,
    bytes_kept: AtomicUsize,
}

/// A word that was written.
const KNOWN: u64 = 1 << 63;
/// Of the length, above the 32 bits of the checksum.
pub(crate) const LENGTH_BITS: u64 = (1 << 31) - 1;

/// What a body is known by.
#[inline]
pub(crate) fn word_of(length: u64, checksum: u32) -> u64 {
    KNOWN | (length & LENGTH_BITS) << 32 | u64::from(checksum)
}

impl Learned {
    pub(crate) fn new(requests_count: usize) -> Learned {
        Learned {
            words: (0..requests_count).map(|_| AtomicU64::new(0)).collect(),
            bodies: (0..requests_count.min(LEARNED_BODIES_MAX)).map(|_| OnceLock::new()).collect(),
            bytes_kept: AtomicUsize::new(0),
        }
    }

    /// What the bodies are is known before the first fetch: length and CRC-32 of each request's.
    pub(crate) fn knowing(bodies: &[(u64, u32)]) -> Learned {
        let learned = Learned::new(bodies.len());
        for (word, &(length, checksum)) in learned.words.iter().zip(bodies) {
            word.store(word_of(length, checksum), Ordering::Relaxed);
        }
        learned
    }

    /// Is this the answer that is wanted? Learns it when it is the first one.
    #[inline]
    pub(crate) fn judge(&self, request: usize, answer: &Answer<'_>, checks: &Checks) -> Result<(), ErrorKind> {
        if !checks.status.accepts(answer.status) {
            return Err(ErrorKind::BadStatus);
        }
        if !checks.length && !checks.bytes {
            return Ok(());
        }
        let cell = &self.words[request];
        let known = match cell.load(Ordering::Relaxed) {
            0 => {
                let checksum = if checks.bytes { answer.body.checksum() } else { 0 };
                let word = word_of(answer.length, checksum);
                match cell.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => word,
                    Err(first) => first,
                }
            }
            known => known,
        };
        if known >> 32 & LENGTH_BITS != answer.length & LENGTH_BITS {
            return if checks.length { Err(ErrorKind::BadLength) } else { Ok(()) };
        }
        if !checks.bytes || self.has_bytes(request, known as u32, &answer.body) {
            return Ok(());
        }
        Err(ErrorKind::BadBytes)
    }

    #[inline]
    fn has_bytes(&self, request: usize, checksum: u32, body: &BodySeen<'_>) -> bool {
        let kept = self.bodies.get(request);
        match (body, kept.and_then(OnceLock::get)) {
            (BodySeen::Whole(bytes), Some(first)) => **bytes == **first,
            (BodySeen::Whole(bytes), None) => {
                let same = body.checksum() == checksum;
                if let (true, Some(room)) = (same, kept) {
                    self.keep(room, bytes);
                }
                same
            }
            (BodySeen::Summed(sum), _) => *sum == checksum,
        }
    }

    fn keep(&self, room: &OnceLock<Box<[u8]>>, bytes: &[u8]) {
        let before = self.bytes_kept.fetch_add(bytes.len(), Ordering::Relaxed);
        if before + bytes.len() > LEARNED_BYTES_MAX || room.set(bytes.into()).is_err() {
            self.bytes_kept.fetch_sub(bytes.len(), Ordering::Relaxed);
        }
    }

    /// Length and CRC-32 of every request's body; 0 and 0 of what was not fetched.
    pub(crate) fn bodies(&self) -> Vec<(u64, u32)> {
        let words = self.words.iter().map(|word| word.load(Ordering::Relaxed));
        words.map(|word| (word >> 32 & LENGTH_BITS, word as u32)).collect()
    }

    /// The length of the first answer, for messages.
    pub(crate) fn length(&self, request: usize) -> u64 {
        self.words[request].load(Ordering::Relaxed) >> 32 & LENGTH_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer_coding::SaidCoding;
    use crate::workload::StatusWanted;

    fn answer(status: u16, body: BodySeen<'_>, length: u64) -> Answer<'_> {
        Answer { status, length, body, persistent: true, coding: SaidCoding::None, head_bytes: 0, framing_bytes: 0 }
    }

    fn whole(body: &[u8]) -> Answer<'_> {
        answer(200, BodySeen::Whole(body), body.len() as u64)
    }

    fn summed(body: &[u8]) -> Answer<'static> {
        answer(200, BodySeen::Summed(crc32fast::hash(body)), body.len() as u64)
    }

    fn check(learned: &Learned, request: usize, answer: &Answer<'_>, expect: Result<(), ErrorKind>) {
        assert_eq!(learned.judge(request, answer, &Checks::ALL), expect, "{answer:?}");
    }

    #[test]
    fn the_first_good_answer_is_the_measure() {
        let learned = Learned::new(2);
        let (bad_length, bad_bytes) = (Err(ErrorKind::BadLength), Err(ErrorKind::BadBytes));
        check(&learned, 0, &answer(503, BodySeen::Whole(b"no"), 2), Err(ErrorKind::BadStatus));
        check(&learned, 0, &whole(b"0123456789"), Ok(()));
        check(&learned, 0, &whole(b"0123456789"), Ok(()));
        check(&learned, 0, &summed(b"0123456789"), Ok(()));
        check(&learned, 0, &whole(b"0123456789x"), bad_length);
        check(&learned, 0, &whole(b"0123456x89"), bad_bytes);
        check(&learned, 0, &summed(b"0123456x89"), bad_bytes);
        check(&learned, 0, &answer(503, BodySeen::Whole(b"0123456789"), 10), Err(ErrorKind::BadStatus));
        check(&learned, 1, &whole(b""), Ok(()));
        check(&learned, 1, &whole(b"x"), bad_length);
        assert_eq!(learned.length(0), 10);
        let lengths = Checks { status: StatusWanted::Exactly(404), length: true, bytes: false };
        assert_eq!(learned.judge(0, &answer(404, BodySeen::Summed(0), 10), &lengths), Ok(()));
        assert_eq!(learned.judge(0, &whole(b"0123456789"), &lengths), Err(ErrorKind::BadStatus));
    }

    #[test]
    fn what_came_in_parts_first_is_known_by_its_checksum() {
        let learned = Learned::new(1);
        check(&learned, 0, &summed(b"abc"), Ok(()));
        check(&learned, 0, &whole(b"abd"), Err(ErrorKind::BadBytes));
        assert_eq!(learned.bodies[0].get(), None, "only bytes that are known to be right are kept");
        check(&learned, 0, &whole(b"abc"), Ok(()));
        assert_eq!(learned.bodies[0].get().map(|body| &**body), Some(&b"abc"[..]));
        check(&learned, 0, &whole(b"abd"), Err(ErrorKind::BadBytes));
    }

    #[test]
    fn bodies_beyond_the_limit_are_not_kept() {
        let learned = Learned::new(3);
        let large = vec![7; LEARNED_BYTES_MAX - 1];
        for (request, body) in [(0, &large[..]), (1, b"ab"), (2, b"c")] {
            check(&learned, request, &whole(body), Ok(()));
            check(&learned, request, &whole(body), Ok(()));
        }
        let kept: Vec<bool> = learned.bodies.iter().map(|body| body.get().is_some()).collect();
        assert_eq!(kept, [true, false, true]);
        assert_eq!(learned.bytes_kept.load(Ordering::Relaxed), LEARNED_BYTES_MAX);
        check(&learned, 1, &whole(b"aB"), Err(ErrorKind::BadBytes));
    }
}
