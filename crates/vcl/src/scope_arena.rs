//! Where the texts of a scope are made: bytes that only grow, under a limit, and are gone all at once.
//!
//! One for each core is enough for scopes that run without waiting. `reset` needs the arena alone, so no text of a scope
//! can outlive it.

use std::cell::Cell;

use bumpalo::Bump;

use crate::limits::SCOPE_BYTES_MAX;
use crate::plain_values::Fault;

/// The arena.
#[derive(Debug)]
pub struct Arena {
    bump: Bump,
    used_bytes: Cell<usize>,
    bytes_max: usize,
}

impl Default for Arena {
    fn default() -> Arena {
        Arena::new(SCOPE_BYTES_MAX)
    }
}

impl Arena {
    /// Room is taken as it is needed.
    pub fn new(bytes_max: usize) -> Arena {
        Arena { bump: Bump::new(), used_bytes: Cell::new(0), bytes_max }
    }

    /// Ends a scope. Room is kept for the next.
    pub fn reset(&mut self) {
        self.bump.reset();
        self.used_bytes.set(0);
    }

    pub fn used_bytes(&self) -> usize {
        self.used_bytes.get()
    }

    /// A copy of the bytes.
    #[inline]
    pub fn copy(&self, bytes: &[u8]) -> Result<&[u8], Fault> {
        self.take(bytes.len())?;
        self.bump.try_alloc_slice_copy(bytes).map(|made| &*made).map_err(|_| no_memory())
    }

    /// The parts one after another.
    #[inline]
    pub fn join(&self, parts: &[&[u8]]) -> Result<&[u8], Fault> {
        let total = parts.iter().map(|part| part.len()).sum();
        let made = self.zeroed(total)?;
        let mut at = 0;
        for part in parts {
            made[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        Ok(made)
    }

    /// Room for so many bytes, all zero, to be written to.
    #[inline]
    pub fn zeroed(&self, bytes: usize) -> Result<&mut [u8], Fault> {
        self.take(bytes)?;
        self.bump.try_alloc_slice_fill_copy(bytes, 0).map_err(|_| no_memory())
    }

    /// So many values.
    #[inline]
    pub fn filled<T>(&self, count: usize, with: impl FnMut(usize) -> T) -> Result<&mut [T], Fault> {
        const { assert!(!std::mem::needs_drop::<T>()) }
        self.take(count.saturating_mul(size_of::<T>()))?;
        self.bump.try_alloc_slice_fill_with(count, with).map_err(|_| no_memory())
    }

    /// Takes bytes that nobody writes to: all that are left, or all but so many.
    pub(crate) fn waste(&self, bytes: i64) {
        let used = self.used_bytes.get();
        let room = self.bytes_max.saturating_sub(used);
        let all_but = |left: i64| room.saturating_sub(usize::try_from(left.unsigned_abs() - 1).unwrap_or(usize::MAX));
        let wasted = usize::try_from(bytes).unwrap_or_else(|_| all_but(bytes));
        self.used_bytes.set(used + wasted.min(room));
    }

    #[inline]
    fn take(&self, bytes: usize) -> Result<(), Fault> {
        let used = self.used_bytes.get().saturating_add(bytes);
        if used > self.bytes_max {
            return Err(self.full());
        }
        self.used_bytes.set(used);
        Ok(())
    }

    #[cold]
    fn full(&self) -> Fault {
        Fault::of_room(format!(
            "the program made more than {} bytes of text for one step (SCOPE_BYTES_MAX)",
            self.bytes_max
        ))
    }
}

#[cold]
fn no_memory() -> Fault {
    Fault::of_room("there is no memory for the texts of the program")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_until_the_scope_ends_and_have_a_limit() {
        let mut arena = Arena::new(16);
        let first = arena.copy(b"abc").expect("there is room");
        let second = arena.join(&[b"d", b"", b"ef", b"ghijklmnop"]).expect("there is room to the last byte");
        assert_eq!((first, second), (b"abc".as_slice(), b"defghijklmnop".as_slice()));
        assert!(arena.copy(b"x").expect_err("it is full").reason().contains("SCOPE_BYTES_MAX"));
        assert!(arena.filled(usize::MAX, |_| 0u64).is_err());
        arena.reset();
        assert_eq!((arena.used_bytes(), arena.copy(b"x")), (0, Ok(b"x".as_slice())));
        arena.waste(5);
        assert_eq!(arena.used_bytes(), 6);
        arena.waste(-3);
        assert_eq!(arena.used_bytes(), 14);
        arena.waste(-1);
        assert!(arena.copy(b"x").expect_err("it is full").is_of_room());
    }
}
