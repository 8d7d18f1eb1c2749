//! What a program hashes, part behind part, as the key of a response is made of it.

use cache::{Cache, Key};
use sha2::{Digest, Sha256};

use crate::core::Core;

/// Bytes that the parts usually have together. More of them are on the heap.
const BYTES_USUAL: usize = 192;

pub(crate) struct HashedParts {
    usual: [u8; BYTES_USUAL],
    usual_count: usize,
    /// All of them, once there are too many.
    all: Vec<u8>,
    /// Of the statement that has not ended.
    open_count: u32,
}

impl HashedParts {
    #[inline]
    pub(crate) fn new() -> HashedParts {
        HashedParts { usual: [0; BYTES_USUAL], usual_count: 0, all: Vec::new(), open_count: 0 }
    }

    /// Adds a part of what a statement hashes. Absent is not empty: it counts as a NUL.
    #[inline]
    pub(crate) fn add(&mut self, part: Option<&[u8]>) {
        let part = part.unwrap_or(b"\0");
        self.open_count += part.len() as u32;
        self.push(part);
    }

    /// The statement is over: `ab` and `c` of two of them are not `a` and `bc`.
    #[inline]
    pub(crate) fn end(&mut self) {
        let length = std::mem::take(&mut self.open_count);
        self.push(&length.to_le_bytes());
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        let end = self.usual_count + bytes.len();
        match self.usual.get_mut(self.usual_count..end) {
            Some(room) if self.all.is_empty() => {
                room.copy_from_slice(bytes);
                self.usual_count = end;
            }
            _ => self.push_beyond(bytes),
        }
    }

    #[cold]
    fn push_beyond(&mut self, bytes: &[u8]) {
        if self.all.is_empty() {
            self.all.extend_from_slice(&self.usual[..self.usual_count]);
        }
        self.all.extend_from_slice(bytes);
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        if self.all.is_empty() { &self.usual[..self.usual_count] } else { &self.all }
    }

    /// What `req.hash` and `bereq.hash` are, and the shard director chooses by, as Varnish has it: SHA-256 of what each
    /// statement hashes and a NUL behind it.
    pub(crate) fn sha256(&self) -> [u8; 32] {
        let (mut rest, mut statements) = (self.bytes(), Vec::new());
        while let Some((before, length)) = rest.split_last_chunk() {
            let (earlier, statement) = before.split_at(before.len() - u32::from_le_bytes(*length) as usize);
            statements.push(statement);
            rest = earlier;
        }
        let digest = statements
            .iter()
            .rev()
            .fold(Sha256::new(), |digest, statement| digest.chain_update(statement).chain_update(b"\0"));
        digest.finalize().into()
    }

    #[inline]
    pub(crate) fn key(&self, core: &Core) -> Key {
        key_of_hashed(&core.shared.cache, self.bytes())
    }
}

/// The key of all parts together, as `HashedParts::bytes` has them.
#[inline]
pub(crate) fn key_of_hashed(cache: &Cache, parts: &[u8]) -> Key {
    cache.key([&b"vcl"[..], parts])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(statements: &[&[Option<&[u8]>]]) -> HashedParts {
        let mut hashed = HashedParts::new();
        for statement in statements {
            statement.iter().for_each(|part| hashed.add(*part));
            hashed.end();
        }
        hashed
    }

    #[test]
    fn statements_are_kept_apart_and_their_parts_are_not() {
        let of = |statements: &[&[Option<&[u8]>]]| of(statements).bytes().to_vec();
        assert_eq!(of(&[&[Some(b"ab"), Some(b"c")]]), b"abc\x03\0\0\0");
        assert_eq!(of(&[&[Some(b"ab"), Some(b"c")]]), of(&[&[Some(b"a"), Some(b"bc")]]));
        assert_ne!(of(&[&[Some(b"ab")], &[Some(b"c")]]), of(&[&[Some(b"a")], &[Some(b"bc")]]));
        assert_ne!(of(&[&[None]]), of(&[&[Some(b"")]]));
        let long = [b'x'; BYTES_USUAL];
        for count in [BYTES_USUAL - 5, BYTES_USUAL - 4, BYTES_USUAL - 3, BYTES_USUAL] {
            let expect = [&long[..count], &(count as u32).to_le_bytes(), b"yz", &2u32.to_le_bytes()].concat();
            assert_eq!(of(&[&[Some(&long[..count])], &[Some(b"y"), Some(b"z")]]), expect, "{count}");
        }
    }

    /// The digests are those of `printf … | sha256sum`.
    #[test]
    fn the_digest_is_that_of_the_statements_with_a_nul_behind_each() {
        let digest = |hashed: &HashedParts| hashed.sha256().map(|byte| format!("{byte:02x}")).concat();
        let usual = of(&[&[Some(b"/")], &[Some(b"local"), Some(b"host")]]);
        assert_eq!(digest(&usual), "de4d1fd3244ab4ab7b6a4ce4c8db131920ce24064e428c13c0a5a1bb9fa422ed");
        assert_eq!(
            digest(&of(&[&[None, Some(b"x")]])),
            "0561374e75d21135ef4df8565a9e09c93257944df311c37bd6c2a6e9f6fbf0ad"
        );
        assert_eq!(digest(&HashedParts::new()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
