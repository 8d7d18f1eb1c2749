//! What the first fetch of each URL taught: how long the body is, and its checksum.
//!
//! One word for each request of the catalogue, shared by all threads without a lock: who is first writes it, everybody
//! after compares. Only an answer that passed every other check is learned.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error_kind::ErrorKind;
use crate::http_answer::Answer;
use crate::workload::Checks;

#[derive(Debug)]
pub(crate) struct Learned {
    words: Box<[AtomicU64]>,
}

/// A word that was written.
const KNOWN: u64 = 1 << 63;
/// Of the length, above the 32 bits of the checksum.
const LENGTH_BITS: u64 = (1 << 31) - 1;

impl Learned {
    pub(crate) fn new(requests_count: usize) -> Learned {
        Learned { words: (0..requests_count).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Is this the answer that is wanted? Learns it when it is the first one.
    #[inline]
    pub(crate) fn judge(&self, request: usize, answer: &Answer, checks: &Checks) -> Result<(), ErrorKind> {
        if !checks.status.accepts(answer.status) {
            return Err(ErrorKind::BadStatus);
        }
        if !checks.length && !checks.bytes {
            return Ok(());
        }
        let word = KNOWN | (answer.length & LENGTH_BITS) << 32 | u64::from(answer.checksum);
        let cell = &self.words[request];
        let known = match cell.load(Ordering::Relaxed) {
            0 => match cell.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => word,
                Err(first) => first,
            },
            known => known,
        };
        match known ^ word {
            0 => Ok(()),
            difference if difference >> 32 != 0 => {
                if checks.length {
                    Err(ErrorKind::BadLength)
                } else {
                    Ok(())
                }
            }
            _ if checks.bytes => Err(ErrorKind::BadBytes),
            _ => Ok(()),
        }
    }

    /// The length of the first answer, for messages.
    pub(crate) fn length(&self, request: usize) -> u64 {
        self.words[request].load(Ordering::Relaxed) >> 32 & LENGTH_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::StatusWanted;

    #[test]
    fn the_first_good_answer_is_the_measure() {
        let learned = Learned::new(2);
        let answer = |status, length, checksum| Answer { status, length, checksum, persistent: true };
        let check = |request, answer: &Answer, expect| {
            assert_eq!(learned.judge(request, answer, &Checks::ALL), expect, "{answer:?}");
        };
        check(0, &answer(503, 3, 9), Err(ErrorKind::BadStatus));
        check(0, &answer(200, 10, 7), Ok(()));
        check(0, &answer(200, 10, 7), Ok(()));
        check(0, &answer(200, 11, 7), Err(ErrorKind::BadLength));
        check(0, &answer(200, 10, 8), Err(ErrorKind::BadBytes));
        check(0, &answer(503, 10, 7), Err(ErrorKind::BadStatus));
        check(1, &answer(200, 0, 0), Ok(()));
        check(1, &answer(200, 1, 0), Err(ErrorKind::BadLength));
        assert_eq!(learned.length(0), 10);
        let lengths = Checks { status: StatusWanted::Exactly(404), length: true, bytes: false };
        assert_eq!(learned.judge(0, &answer(404, 10, 8), &lengths), Ok(()));
        assert_eq!(learned.judge(0, &answer(200, 10, 7), &lengths), Err(ErrorKind::BadStatus));
    }
}
