//! What the log says of an error of ours, and the number by which its answer and the log name it.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// Names one error in its answer and in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(u64);

impl RequestId {
    #[cfg(test)]
    pub(crate) fn of(number: u64) -> RequestId {
        RequestId(number)
    }

    /// Numbers of different processes differ by chance, those of one process always.
    pub(crate) fn next() -> RequestId {
        static FIRST: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one("request id"));
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // An odd factor maps different counts to different numbers.
        let count = COUNT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        RequestId(FIRST.wrapping_add(count))
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What the log says of an error beside its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorNote {
    pub id: RequestId,
    /// What failed, where, and which setting changes it; absent where the token says all there is.
    pub detail: Option<Arc<str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_numbers_are_the_same() {
        let mut ids: Vec<_> = (0..1_000).map(|_| RequestId::next().0).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 1_000);
    }
}
