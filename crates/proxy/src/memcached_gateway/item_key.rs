//! Keys: what a client calls an item, and what memcached calls it.
//!
//! A key that memcached can hold is its own name. A longer one is stored under its SHA-256, and the item then begins
//! with the whole key, which is compared when it is read: two keys of one hash would be a miss and never a mix-up.

use sha2::{Digest, Sha256};
use smallvec::SmallVec;
use wire::limits::MEMCACHED_KEY_BYTES_MAX;
use wire::memcached::is_key_byte;

use crate::limits::MEMCACHED_LONG_KEY_BYTES_MAX;
use crate::memcached_gateway::gateway_settings::LongKeys;

/// Names of ours begin so, and no client's key may.
pub(crate) const RESERVED: &[u8] = b"larder:";
const LONG: &[u8] = b"larder:long:";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ItemKey {
    /// What memcached calls it.
    pub(crate) name: SmallVec<[u8; 128]>,
    /// The key, if that is not its name.
    long: Option<Box<[u8]>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoKey {
    Missing,
    /// Blanks, control characters, or a path that leads somewhere else.
    Forbidden,
    Reserved,
    TooLong,
}

impl ItemKey {
    /// Of the bytes that a client meant, all escapes taken.
    pub(crate) fn read(key: &[u8], is_path: bool, long: LongKeys) -> Result<ItemKey, NoKey> {
        if key.is_empty() {
            return Err(NoKey::Missing);
        }
        let is_elsewhere = |part: &[u8]| part == b"." || part == b"..";
        if !key.iter().all(|&b| is_key_byte(b)) || is_path && key.split(|&b| b == b'/').any(is_elsewhere) {
            return Err(NoKey::Forbidden);
        }
        if key.starts_with(RESERVED) {
            return Err(NoKey::Reserved);
        }
        if key.len() <= MEMCACHED_KEY_BYTES_MAX {
            return Ok(ItemKey { name: SmallVec::from_slice(key), long: None });
        }
        if long == LongKeys::Refuse || key.len() > MEMCACHED_LONG_KEY_BYTES_MAX {
            return Err(NoKey::TooLong);
        }
        let mut name = SmallVec::from_slice(LONG);
        for byte in Sha256::digest(key) {
            name.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
        }
        Ok(ItemKey { name, long: Some(key.into()) })
    }

    pub(crate) fn is_long(&self) -> bool {
        self.long.is_some()
    }

    /// What is stored for this value: before it the key that its name does not say, with its length.
    pub(crate) fn wrap(&self, value: &[u8]) -> Option<Vec<u8>> {
        let long = self.long.as_deref()?;
        Some([&(long.len() as u32).to_be_bytes()[..], long, value].concat())
    }

    /// Where the value begins in what is stored; `None` if that is another key's.
    pub(crate) fn unwrap(&self, stored: &[u8]) -> Option<usize> {
        let Some(long) = self.long.as_deref() else { return Some(0) };
        let rest = stored.strip_prefix(&(long.len() as u32).to_be_bytes()[..])?;
        rest.starts_with(long).then_some(4 + long.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &[u8], expect: Result<usize, NoKey>) {
        let got = ItemKey::read(key, true, LongKeys::Hash);
        assert_eq!(got.as_ref().map(|key| key.name.len()).map_err(|why| *why), expect, "{}", key.len());
        if let Ok(key) = got {
            assert!(wire::memcached::is_key(&key.name));
        }
    }

    #[test]
    fn keys_are_names_or_hashes_or_refused() {
        check(b"a", Ok(1));
        check("caf\u{e9}/%41".as_bytes(), Ok(9));
        check(&[b'k'; 250], Ok(250));
        check(&[b'k'; 251], Ok(LONG.len() + 64));
        check(&[b'k'; MEMCACHED_LONG_KEY_BYTES_MAX], Ok(LONG.len() + 64));
        check(&[b'k'; MEMCACHED_LONG_KEY_BYTES_MAX + 1], Err(NoKey::TooLong));
        check(b"", Err(NoKey::Missing));
        for key in [&b"a b"[..], b"a\r\nflush_all\r\n", b"\0", b"\t", b"a\x7f", b"..", b"a/../b", b"./a"] {
            check(key, Err(NoKey::Forbidden));
        }
        check(b"larder:long:0", Err(NoKey::Reserved));
        assert_eq!(ItemKey::read(&[b'k'; 251], true, LongKeys::Refuse), Err(NoKey::TooLong));
        assert!(ItemKey::read(b"a/../b", false, LongKeys::Hash).is_ok());
    }

    #[test]
    fn a_long_key_is_compared_whole() {
        let read = |last: u8| ItemKey::read(&[&[b'k'; 300][..], &[last]].concat(), true, LongKeys::Hash).unwrap();
        let (one, other) = (read(b'1'), read(b'2'));
        assert_ne!(one.name, other.name);
        let stored = one.wrap(b"value").unwrap();
        assert_eq!(one.unwrap(&stored).map(|at| &stored[at..]), Some(&b"value"[..]));
        assert_eq!(other.unwrap(&stored), None, "as if both had one hash");
        for cut in 0..stored.len() - b"value".len() {
            assert_eq!(one.unwrap(&stored[..cut]), None);
        }
        let short = ItemKey::read(b"k", true, LongKeys::Hash).unwrap();
        assert_eq!((short.wrap(b"value"), short.unwrap(b"value")), (None, Some(0)));
    }
}
