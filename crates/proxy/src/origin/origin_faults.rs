//! What goes wrong with an origin, counted by its kind.

use std::sync::atomic::{AtomicU64, Ordering};

use super::origin_error::OriginErrorKind;

/// Kinds of failures, each with the word by which operators know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginFault {
    /// Its name has no address.
    Resolve,
    /// It refused, or the network did.
    Connect,
    ConnectTimeout,
    Tls,
    /// We had no descriptor, port or memory left.
    Exhausted,
    /// All connections were in use, and the queue was full or too slow.
    Busy,
    /// Every address was left out or taken out.
    AllOut,
    /// No answer began in time, or the connection ended before one.
    FirstByte,
    /// The answer was not HTTP.
    Protocol,
    /// The answer ended before its end.
    Truncated,
    /// The answer had one of the statuses of `retry_on`.
    Status,
}

impl OriginFault {
    pub const ALL: [(&'static str, OriginFault); 11] = [
        ("resolve", OriginFault::Resolve),
        ("connect", OriginFault::Connect),
        ("connect-timeout", OriginFault::ConnectTimeout),
        ("tls", OriginFault::Tls),
        ("exhausted", OriginFault::Exhausted),
        ("busy", OriginFault::Busy),
        ("all-out", OriginFault::AllOut),
        ("first-byte", OriginFault::FirstByte),
        ("protocol", OriginFault::Protocol),
        ("truncated", OriginFault::Truncated),
        ("status", OriginFault::Status),
    ];

    /// What an error is counted as; `None`: it is about the request.
    pub fn of(kind: &OriginErrorKind) -> Option<OriginFault> {
        Some(match kind {
            OriginErrorKind::Resolve { .. } | OriginErrorKind::Forbidden => OriginFault::Resolve,
            OriginErrorKind::Connect { .. } => OriginFault::Connect,
            OriginErrorKind::ConnectTimeout { .. } => OriginFault::ConnectTimeout,
            OriginErrorKind::Tls { .. } => OriginFault::Tls,
            OriginErrorKind::Exhausted { .. } => OriginFault::Exhausted,
            OriginErrorKind::QueueFull { .. } | OriginErrorKind::QueueTimeout { .. } => OriginFault::Busy,
            OriginErrorKind::AllOut => OriginFault::AllOut,
            OriginErrorKind::Nowhere | OriginErrorKind::Http2Only => return None,
        })
    }
}

/// How often each of them happened, since the origin was first configured.
#[derive(Debug, Default)]
pub struct FaultCounts([AtomicU64; OriginFault::ALL.len()]);

impl FaultCounts {
    pub fn add(&self, fault: OriginFault) {
        self.0[fault as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// In the order of [`OriginFault::ALL`].
    pub fn read(&self) -> [u64; OriginFault::ALL.len()] {
        self.0.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_in_the_order_of_their_words() {
        assert!(OriginFault::ALL.iter().enumerate().all(|(at, (_, fault))| *fault as usize == at));
    }

    #[test]
    fn each_kind_has_a_count_of_its_own() {
        let counts = FaultCounts::default();
        counts.add(OriginFault::Busy);
        counts.add(OriginFault::Status);
        counts.add(OriginFault::Status);
        assert_eq!(counts.read(), [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2]);
    }
}
