//! What can be asked of a memcached: each key's `get` and, behind all of those, each key's `set`.
//!
//! Keys and values follow by rule from a key's number, so every run knows what every other has stored: a value that
//! is read is compared byte by byte, whoever wrote it. The `set` of a key lies here as it is sent, its value in it.

use crate::catalogue::{Catalogue, CatalogueError, Order};
use crate::constructed_body::{append_constructed, body_rule};
use crate::limits::{MEMCACHED_BYTES_MAX, MEMCACHED_KEY_BYTES_MAX, MEMCACHED_KEYS_MAX, MEMCACHED_VALUE_BYTES_MAX};

/// What is kept in the memcached that is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemcachedItems {
    pub keys: usize,
    pub key_bytes: usize,
    pub value_bytes: usize,
}

/// Of a catalogue whose requests are `get`s and `set`s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values {
    /// The `set` of a `get` is so many requests behind it.
    gets: usize,
    value_bytes: usize,
}

impl MemcachedItems {
    /// A `get` for each key, and then a `set` for each.
    pub fn catalogue(&self) -> Result<Catalogue, CatalogueError> {
        self.build(true)
    }

    /// Only the `set`s: asked once in turn, all keys are there.
    pub fn preload(&self) -> Result<Catalogue, CatalogueError> {
        self.build(false)
    }

    /// Random keys, with so many `set`s among all requests.
    pub fn order(set_share: f64) -> Order {
        Order::Halves { second_per_million: (set_share.clamp(0.0, 1.0) * 1e6).round() as u32 }
    }

    fn build(&self, with_gets: bool) -> Result<Catalogue, CatalogueError> {
        self.check().map_err(|what| CatalogueError { line: 0, what })?;
        let gets = if with_gets { self.keys } else { 0 };
        let mut catalogue = Catalogue::of_values(Values { gets, value_bytes: self.value_bytes });
        let mut request = Vec::new();
        for number in 0..gets {
            let key = self.key(number);
            request.clear();
            request.extend_from_slice(format!("get {key}\r\n").as_bytes());
            catalogue.add_raw(&request, 4, key.len());
        }
        for number in 0..self.keys {
            let key = self.key(number);
            request.clear();
            request.extend_from_slice(format!("set {key} 0 0 {}\r\n", self.value_bytes).as_bytes());
            append_constructed(&mut request, body_rule(&key), 0, self.value_bytes as u64);
            request.extend_from_slice(b"\r\n");
            catalogue.add_raw(&request, 4, key.len());
        }
        Ok(catalogue)
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let digits = self.keys.saturating_sub(1).max(1).ilog10() as usize + 1;
        let bytes = self.keys.saturating_mul(2 * self.key_bytes + self.value_bytes);
        if self.keys == 0 || self.keys > MEMCACHED_KEYS_MAX {
            return Err(format!("1 to {MEMCACHED_KEYS_MAX} keys, not {}", self.keys));
        }
        if self.key_bytes > MEMCACHED_KEY_BYTES_MAX {
            return Err(format!("a key has {MEMCACHED_KEY_BYTES_MAX} bytes at most, not {}", self.key_bytes));
        }
        if self.key_bytes < digits {
            return Err(format!("{} keys cannot be told apart in {} bytes", self.keys, self.key_bytes));
        }
        if self.value_bytes > MEMCACHED_VALUE_BYTES_MAX {
            return Err(format!("a value has {MEMCACHED_VALUE_BYTES_MAX} bytes at most, not {}", self.value_bytes));
        }
        if bytes > MEMCACHED_BYTES_MAX {
            return Err(format!("{bytes} bytes of keys and values; this tool holds {MEMCACHED_BYTES_MAX} at most"));
        }
        Ok(())
    }

    /// Random letters, which the number makes unique: where digits end, a letter stands.
    pub(crate) fn key(&self, number: usize) -> String {
        let mut key = number.to_string();
        let mut dice = fastrand::Rng::with_seed(number as u64);
        while key.len() < self.key_bytes {
            key.push(dice.alphabetic());
        }
        key
    }
}

impl Values {
    /// Which request stores what this one gets, and where the value lies in its bytes; nothing for a `set`.
    #[inline]
    pub(crate) fn setter(&self, request: usize) -> Option<usize> {
        (request < self.gets).then_some(request + self.gets)
    }

    #[inline]
    pub(crate) fn value<'b>(&self, set: &'b [u8]) -> &'b [u8] {
        let end = set.len() - b"\r\n".len();
        &set[end - self.value_bytes..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_get_knows_the_value_that_its_set_stores() {
        let items = MemcachedItems { keys: 11, key_bytes: 8, value_bytes: 70 };
        let catalogue = items.catalogue().unwrap();
        assert_eq!(catalogue.len(), 22);
        let mut keys = std::collections::BTreeSet::new();
        for number in 0..11 {
            let key = catalogue.path(number);
            assert_eq!((key.len(), key), (8, catalogue.path(number + 11)));
            assert_eq!(catalogue.request(number), format!("get {key}\r\n").as_bytes());
            let value = catalogue.value(number).unwrap();
            let set = [format!("set {key} 0 0 70\r\n").as_bytes(), value, b"\r\n"].concat();
            assert_eq!(catalogue.request(number + 11), set);
            assert_eq!((value.len(), catalogue.value(number + 11)), (70, None));
            keys.insert(key);
        }
        assert_eq!(keys.len(), 11);
        let preload = items.preload().unwrap();
        assert_eq!((preload.len(), preload.request(3), preload.value(3)), (11, catalogue.request(14), None));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let check = |keys, key_bytes, value_bytes, part: &str| {
            let error = MemcachedItems { keys, key_bytes, value_bytes }.catalogue().unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        };
        check(0, 10, 10, "1 to");
        check(11, 1, 10, "cannot be told apart");
        check(1, 251, 10, "250 bytes at most");
        check(1, 10, 2 << 20, "a value has");
        check(10_000_000, 200, 1 << 20, "holds 1073741824 at most");
        assert!(MemcachedItems { keys: 10, key_bytes: 1, value_bytes: 0 }.catalogue().is_ok());
    }
}
