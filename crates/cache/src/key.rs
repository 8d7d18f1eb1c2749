//! Keyed digests: attackers choose URLs and header values, so every table here is keyed by SipHash-1-3 with a key
//! that is drawn at start, or once for all that a disk keeps (J17).
//!
//! A digest is 128 bits and stands for what it was made of; the bytes themselves are not kept.

use std::hash::{BuildHasher, Hasher, RandomState};

use siphasher::sip128::{Hasher128, SipHasher13};

/// The digest of whatever the policy says a response is found by. Packed, for a table of them with a word beside each would
/// lose a third of itself to the alignment of 128 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C, packed(8))]
pub struct Key(pub(crate) u128);

impl Key {
    /// Half of the digest, for tables beside the cache.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0 as u64
    }
}

/// The digest of a request's selecting values under one Vary specification: half of one is enough to tell the few variants of a
/// key apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Variant(pub u64);

impl Variant {
    /// A response without Vary.
    pub const PLAIN: Variant = Variant(0);

    /// Where a mark stands for requests of this variant: beside what is stored, which may outlive it.
    pub fn of_mark(self) -> Variant {
        Variant(self.0 ^ 0x6d61_726b_6d61_726b)
    }
}

/// From the system's randomness, which is what the standard library seeds its maps with.
pub(crate) fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Makes digests; a copy makes the same ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digester {
    keys: (u64, u64),
}

impl Digester {
    pub fn random() -> Digester {
        Digester { keys: (random_number(), random_number()) }
    }

    /// The keys that a disk was formatted with: what lies on it is found by no others.
    pub fn with_seed(seed: [u8; 16]) -> Digester {
        let seed = u128::from_le_bytes(seed);
        Digester { keys: (seed as u64, (seed >> 64) as u64) }
    }

    /// What makes another one that makes the same digests.
    pub fn seed(&self) -> [u8; 16] {
        (u128::from(self.keys.0) | u128::from(self.keys.1) << 64).to_le_bytes()
    }

    pub fn hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.keys.0, self.keys.1)
    }

    /// Each part is preceded by its length, so that no two lists of parts are one text. 28 ns for four parts of
    /// 40 bytes; gathering them first costs more than the short writes do.
    #[inline]
    pub fn key<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> Key {
        let mut hasher = self.hasher();
        for part in parts {
            hasher.write_u32(part.len() as u32);
            hasher.write(part);
        }
        Key(hasher.finish128().as_u128())
    }
}

/// Table hashing for what is a keyed digest already.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut low = [0; 8];
        let len = bytes.len().min(8);
        low[..len].copy_from_slice(&bytes[..len]);
        self.0 = u64::from_le_bytes(low);
    }

    #[inline]
    fn write_u64(&mut self, digest: u64) {
        self.0 = digest;
    }

    #[inline]
    fn write_u128(&mut self, digest: u128) {
        self.0 = digest as u64;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

pub(crate) type DigestBuild = std::hash::BuildHasherDefault<DigestHasher>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart_from_their_concatenation() {
        let digester = Digester::random();
        assert_eq!(Digester::with_seed(digester.seed()).key([&b"a"[..]]), digester.key([&b"a"[..]]));
        let key = |parts: &[&[u8]]| digester.key(parts.iter().copied());
        assert_eq!(key(&[b"a", b"b"]), key(&[b"a", b"b"]));
        for (one, other) in [(&[&b"ab"[..]][..], &[&b"a"[..], b"b"][..]), (&[b"", b"a"], &[b"a", b""]), (&[], &[b""])] {
            assert_ne!(key(one), key(other));
        }
        let long = vec![b'x'; 8000];
        assert_ne!(key(&[&long]), key(&[&long[1..]]));
        assert_ne!(key(&[b"a"]), Digester::random().key([&b"a"[..]]));
    }
}
