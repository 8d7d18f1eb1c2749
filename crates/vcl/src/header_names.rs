//! The name of a header as a program has it: prepared when the program is loaded, so that a host compares no more than
//! it must.

use std::sync::atomic::{AtomicU32, Ordering};

/// A header's name.
#[derive(Debug)]
pub struct HeaderName {
    written: Box<[u8]>,
    lower: Box<[u8]>,
    number: AtomicU32,
}

const NO_NUMBER: u32 = u32::MAX;

impl HeaderName {
    pub fn new(written: &[u8]) -> HeaderName {
        let lower = written.to_ascii_lowercase().into();
        HeaderName { written: written.into(), lower, number: AtomicU32::new(NO_NUMBER) }
    }

    /// As the program spells it, which is how a header that it sets is sent.
    pub fn written(&self) -> &[u8] {
        &self.written
    }

    /// In small letters.
    pub fn lower(&self) -> &[u8] {
        &self.lower
    }

    /// Whether this is the name, in whatever letters.
    pub fn is(&self, name: &[u8]) -> bool {
        self.lower.eq_ignore_ascii_case(name)
    }

    /// A number of the host's own for the name in small letters, which is asked for once.
    #[inline]
    pub fn number(&self, of: impl FnOnce(&[u8]) -> u16) -> u16 {
        let known = self.number.load(Ordering::Relaxed);
        if known != NO_NUMBER {
            return known as u16;
        }
        let number = of(&self.lower);
        self.number.store(u32::from(number), Ordering::Relaxed);
        number
    }
}

/// A name by which something is written: it lives as long as the scope.
#[derive(Clone, Copy, Debug)]
pub enum KeptName<'a> {
    /// The program's own.
    Known(&'a HeaderName),
    /// Made while it ran.
    Made(&'a [u8]),
}

impl<'a> KeptName<'a> {
    pub fn written(self) -> &'a [u8] {
        match self {
            KeptName::Known(name) => name.written(),
            KeptName::Made(written) => written,
        }
    }

    /// Whether this is the name, in whatever letters.
    pub fn is(self, name: &[u8]) -> bool {
        self.written().eq_ignore_ascii_case(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_in_any_letters_and_numbered_once() {
        let name = HeaderName::new(b"X-Cache");
        assert!(name.is(b"x-cACHE") && !name.is(b"x-cache2"));
        assert_eq!((name.written(), name.lower()), (b"X-Cache".as_slice(), b"x-cache".as_slice()));
        assert_eq!(name.number(|lower| lower.len() as u16), 7);
        assert_eq!(name.number(|_| 0), 7);
    }
}
