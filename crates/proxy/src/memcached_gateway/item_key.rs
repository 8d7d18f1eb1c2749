//! Keys: what a client calls an item, and what memcached calls it.
//!
//! A key that memcached can hold is its own name, blanks and control characters among its bytes only where they are sent
//! as base64. A longer one is stored under its SHA-256, and the item then begins
//! with the whole key, which is compared when it is read: two keys of one hash would be a miss and never a mix-up.

use sha2::{Digest, Sha256};
use smallvec::SmallVec;
use wire::limits::MEMCACHED_KEY_BYTES_MAX;
use wire::memcached::{are_key_bytes, is_meta_key};

use crate::limits::MEMCACHED_LONG_KEY_BYTES_MAX;
use crate::memcached_gateway::gateway_settings::{BinaryKeys, LongKeys};

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

/// Which keys there are on a route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyRules {
    pub(crate) is_path: bool,
    pub(crate) long: LongKeys,
    pub(crate) binary: BinaryKeys,
}

/// Does an item of this name begin with its key?
pub(crate) fn is_name_of_long_key(name: &[u8]) -> bool {
    name.starts_with(LONG)
}

impl ItemKey {
    /// Of the bytes that a client meant, all escapes taken.
    pub(crate) fn read(key: &[u8], rules: KeyRules) -> Result<ItemKey, NoKey> {
        let KeyRules { is_path, long, binary } = rules;
        if key.is_empty() {
            return Err(NoKey::Missing);
        }
        let is_elsewhere = |part: &[u8]| part == b"." || part == b"..";
        let is_binary = !are_key_bytes(key);
        if is_binary && binary == BinaryKeys::Refuse || is_path && key.split(|&b| b == b'/').any(is_elsewhere) {
            return Err(NoKey::Forbidden);
        }
        if key.starts_with(RESERVED) {
            return Err(NoKey::Reserved);
        }
        let fits = if is_binary { is_meta_key(key) } else { key.len() <= MEMCACHED_KEY_BYTES_MAX };
        if fits {
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

    /// Has it bytes that are sent as base64?
    pub(crate) fn is_binary(&self) -> bool {
        !are_key_bytes(&self.name)
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

    const RULES: KeyRules = KeyRules { is_path: true, long: LongKeys::Hash, binary: BinaryKeys::Refuse };

    fn check(key: &[u8], expect: Result<usize, NoKey>) {
        let got = ItemKey::read(key, RULES);
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
        let refusing = KeyRules { long: LongKeys::Refuse, ..RULES };
        assert_eq!(ItemKey::read(&[b'k'; 251], refusing), Err(NoKey::TooLong));
        assert!(ItemKey::read(b"a/../b", KeyRules { is_path: false, ..RULES }).is_ok());
    }

    #[test]
    fn any_byte_is_of_a_key_where_it_may_be_sent_as_base64() {
        let rules = KeyRules { binary: BinaryKeys::Base64, ..RULES };
        let name = |key: &[u8]| ItemKey::read(key, rules).map(|key| (key.name.to_vec(), key.is_long()));
        for key in [&b"a b"[..], b"a\r\nflush_all\r\n", b"\0", &[b' '; 186]] {
            assert_eq!(name(key), Ok((key.to_vec(), false)));
        }
        // One more byte, and its base64 is longer than a key.
        assert_eq!(name(&[b' '; 187]).map(|(name, is_long)| (name.len(), is_long)), Ok((LONG.len() + 64, true)));
        assert_eq!(name(b"a/../b c"), Err(NoKey::Forbidden));
    }

    #[test]
    fn a_long_key_is_compared_whole() {
        let read = |last: u8| ItemKey::read(&[&[b'k'; 300][..], &[last]].concat(), RULES).unwrap();
        let (one, other) = (read(b'1'), read(b'2'));
        assert_ne!(one.name, other.name);
        let stored = one.wrap(b"value").unwrap();
        assert_eq!(one.unwrap(&stored).map(|at| &stored[at..]), Some(&b"value"[..]));
        assert_eq!(other.unwrap(&stored), None, "as if both had one hash");
        for cut in 0..stored.len() - b"value".len() {
            assert_eq!(one.unwrap(&stored[..cut]), None);
        }
        let short = ItemKey::read(b"k", RULES).unwrap();
        assert_eq!((short.wrap(b"value"), short.unwrap(b"value")), (None, Some(0)));
    }
}
