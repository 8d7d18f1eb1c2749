//! The numbers of traces and spans, and the dice that they are thrown with.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// Of a trace; not all of it is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceId(u128);

/// Of a span; not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanId(u64);

impl TraceId {
    /// From 32 lowercase hex digits.
    pub(crate) fn parse(digits: &[u8]) -> Option<TraceId> {
        let (high, low) = digits.split_at_checked(16)?;
        let number = u128::from(hex(high)?) << 64 | u128::from(hex(low)?);
        (number != 0).then_some(TraceId(number))
    }

    pub(crate) fn digits(self) -> [u8; 32] {
        digits_of(self.0)
    }
}

impl SpanId {
    /// From 16 lowercase hex digits.
    pub(crate) fn parse(digits: &[u8]) -> Option<SpanId> {
        hex(digits).filter(|number| *number != 0).map(SpanId)
    }

    pub(crate) fn digits(self) -> [u8; 16] {
        digits_of(self.0.into())
    }
}

fn hex(digits: &[u8]) -> Option<u64> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(u64::from(byte - b'0')),
        b'a'..=b'f' => Some(u64::from(byte - b'a') + 10),
        _ => None,
    };
    (digits.len() == 16).then(|| digits.iter().try_fold(0, |number, &byte| Some(number << 4 | digit(byte)?)))?
}

fn digits_of<const DIGITS: usize>(number: u128) -> [u8; DIGITS] {
    std::array::from_fn(|at| b"0123456789abcdef"[(number >> (4 * (DIGITS - 1 - at)) & 15) as usize])
}

/// A core's own dice: the numbers of a counter, hashed under a key that nobody knows.
#[derive(Debug, Default)]
pub(crate) struct TraceDice {
    key: RandomState,
    thrown: Cell<u64>,
}

impl TraceDice {
    fn throw(&self) -> u64 {
        self.thrown.set(self.thrown.get().wrapping_add(1));
        self.key.hash_one(self.thrown.get())
    }

    fn throw_above_zero(&self) -> u64 {
        // One in 2^64 throws is a zero, and the next one is none.
        std::iter::repeat_with(|| self.throw()).find(|number| *number != 0).unwrap_or(1)
    }

    pub(crate) fn trace(&self) -> TraceId {
        TraceId(u128::from(self.throw()) << 64 | u128::from(self.throw_above_zero()))
    }

    pub(crate) fn span(&self) -> SpanId {
        SpanId(self.throw_above_zero())
    }

    /// Is this one of so many millionths?
    pub(crate) fn takes(&self, millionths: u64) -> bool {
        self.throw() % 1_000_000 < millionths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_they_are_read() {
        let (trace, span) = (b"0af7651916cd43dd8448eb211c80319c", b"00f067aa0ba902b7");
        assert_eq!(TraceId::parse(trace).map(TraceId::digits).as_ref(), Some(trace));
        assert_eq!(SpanId::parse(span).map(SpanId::digits).as_ref(), Some(span));
        for wrong in [&b"0AF7651916CD43DD8448EB211C80319C"[..], &[b'0'; 32], &[b'1'; 31], &[b'1'; 33], b"", &[b'g'; 32]]
        {
            assert_eq!(TraceId::parse(wrong), None);
        }
        for wrong in [&b"00F067AA0BA902B7"[..], &[b'0'; 16], &[b'1'; 15], &[b'1'; 17], b""] {
            assert_eq!(SpanId::parse(wrong), None);
        }
    }

    #[test]
    fn no_number_comes_twice_and_a_share_is_one() {
        let (dice, others) = (TraceDice::default(), TraceDice::default());
        let mut spans: Vec<_> = (0..1_000).flat_map(|_| [dice.span().0, others.span().0]).collect();
        spans.sort_unstable();
        spans.dedup();
        assert_eq!(spans.len(), 2_000);
        let taken = (0..100_000).filter(|_| dice.takes(100_000)).count();
        assert!((9_000..11_000).contains(&taken), "{taken}");
        assert!(!(0..1_000).any(|_| dice.takes(0)) && (0..1_000).all(|_| dice.takes(1_000_000)));
    }
}
