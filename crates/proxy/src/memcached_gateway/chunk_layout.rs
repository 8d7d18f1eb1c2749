//! How a value that is larger than an item lies in memcached: a manifest at the key, and chunks under names of their own.
//!
//! | item | name | what is in it |
//! |---|---|---|
//! | manifest | the key | `larder:chunks:1 `, generation, length, count, length of a chunk, CRC-32 of it all: hexadecimal, of fixed widths |
//! | chunk | `larder:chunk:` and a hash of generation and key, `:`, its number | generation, number, CRC-32, bytes |
//!
//! Every write draws a generation that nobody can guess, and its chunks have names of their own: two writers never mix,
//! and who reads goes on reading what it began with. What is not as the manifest says is not there. Pure.

use std::hash::{BuildHasher, RandomState};

use crc32fast::Hasher;
use sha2::{Digest, Sha256};

use crate::limits::MEMCACHED_CHUNKS_MAX;

/// What a manifest begins with. A value that begins so is stored in a chunk, so that nobody takes it for one.
const MAGIC: &[u8] = b"larder:chunks:1 ";
pub(crate) const MANIFEST_BYTES: usize = MAGIC.len() + 32 + 16 + 8 + 8 + 8 + 5;
const NAME: &str = "larder:chunk:";
/// Generation, number and checksum before a chunk's bytes.
pub(crate) const CHUNK_HEAD_BYTES: usize = 16 + 4 + 4;
/// Chunks live longer than their manifest by so much: who has begun to read comes to the end.
const CHUNK_SPARE_SECONDS: i64 = 60;
/// memcached takes an expiry beyond 30 days for a time since 1970.
const RELATIVE_SECONDS_MAX: i64 = 60 * 60 * 24 * 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(pub(crate) [u8; 16]);

impl Generation {
    /// From the secret that the standard library draws for its tables, which differs with each.
    pub(crate) fn draw() -> Generation {
        let half = |salt: u64| RandomState::new().hash_one(salt).to_be_bytes();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&half(0));
        bytes[8..].copy_from_slice(&half(1));
        Generation(bytes)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) generation: Generation,
    pub(crate) value_bytes: u64,
    pub(crate) count: u32,
    /// Of every chunk but the last.
    pub(crate) chunk_bytes: u32,
    pub(crate) checksum: u32,
}

/// Would a value be taken for a manifest?
pub(crate) fn looks_like_manifest(value: &[u8]) -> bool {
    value.starts_with(MAGIC)
}

impl Manifest {
    pub(crate) fn write(&self) -> Vec<u8> {
        let Manifest { generation, value_bytes, count, chunk_bytes, checksum } = self;
        let generation = u128::from_be_bytes(generation.0);
        let text = format!("{generation:032x} {value_bytes:016x} {count:08x} {chunk_bytes:08x} {checksum:08x}\n");
        [MAGIC, text.as_bytes()].concat()
    }

    /// `None`: a value like others. One that a manifest's words begin and that makes no sense is none either.
    pub(crate) fn read(value: &[u8]) -> Option<Manifest> {
        let text = value.strip_prefix(MAGIC).filter(|_| value.len() == MANIFEST_BYTES)?.strip_suffix(b"\n")?;
        let mut words = text.split(|&b| b == b' ');
        let mut number = |digits: usize| {
            let word = words.next().filter(|word| word.len() == digits && word.iter().all(u8::is_ascii_hexdigit))?;
            u128::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
        };
        let manifest = Manifest {
            generation: Generation(number(32)?.to_be_bytes()),
            value_bytes: number(16)? as u64,
            count: number(8)? as u32,
            chunk_bytes: number(8)? as u32,
            checksum: number(8)? as u32,
        };
        let fits = manifest.chunk_bytes > 0
            && manifest.count <= MEMCACHED_CHUNKS_MAX
            && manifest.value_bytes.div_ceil(u64::from(manifest.chunk_bytes)) == u64::from(manifest.count);
        (words.next().is_none() && fits && manifest.count > 0).then_some(manifest)
    }

    /// What chunk `number` has.
    pub(crate) fn length_of(&self, number: u32) -> usize {
        let begins = u64::from(number) * u64::from(self.chunk_bytes);
        (self.value_bytes - begins).min(u64::from(self.chunk_bytes)) as usize
    }
}

/// The names of one generation's chunks.
#[derive(Clone, Debug)]
pub(crate) struct ChunkNames {
    pub(crate) generation: Generation,
    stem: String,
}

impl ChunkNames {
    /// `key` is what memcached calls the manifest: the same generation at another key is another's.
    pub(crate) fn new(generation: Generation, key: &[u8]) -> ChunkNames {
        let digest = Sha256::new().chain_update(generation.0).chain_update(key).finalize();
        let half = digest[..16].iter().fold(0, |all, &byte| all << 8 | u128::from(byte));
        ChunkNames { generation, stem: format!("{NAME}{half:032x}:") }
    }

    pub(crate) fn of(&self, number: u32) -> Vec<u8> {
        format!("{}{number}", self.stem).into_bytes()
    }

    /// Fills in what stands before a chunk's bytes, which `chunk` has room for.
    pub(crate) fn seal(&self, number: u32, chunk: &mut [u8]) -> Hasher {
        let (head, bytes) = chunk.split_at_mut(CHUNK_HEAD_BYTES);
        let mut checksum = Hasher::new();
        checksum.update(bytes);
        head[..16].copy_from_slice(&self.generation.0);
        head[16..20].copy_from_slice(&number.to_be_bytes());
        head[20..].copy_from_slice(&checksum.clone().finalize().to_be_bytes());
        checksum
    }

    /// The checksum of a chunk's bytes, if it is this one and whole.
    pub(crate) fn check(&self, number: u32, length: usize, chunk: &[u8]) -> Option<Hasher> {
        let (head, bytes) = chunk.split_at_checked(CHUNK_HEAD_BYTES)?;
        let mut checksum = Hasher::new();
        checksum.update(bytes);
        let is_ours = head[..16] == self.generation.0
            && head[16..20] == number.to_be_bytes()
            && bytes.len() == length
            && head[20..] == checksum.clone().finalize().to_be_bytes();
        is_ours.then_some(checksum)
    }
}

/// How long the chunks of a manifest with this expiry live.
pub(crate) fn chunk_exptime(exptime: i64, now_s: i64) -> i64 {
    match exptime {
        ..=0 => exptime,
        _ if exptime > RELATIVE_SECONDS_MAX => exptime.saturating_add(CHUNK_SPARE_SECONDS),
        _ if exptime + CHUNK_SPARE_SECONDS <= RELATIVE_SECONDS_MAX => exptime + CHUNK_SPARE_SECONDS,
        _ => now_s + exptime + CHUNK_SPARE_SECONDS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let generation = Generation(*b"0123456789abcdef");
        Manifest { generation, value_bytes: 2_500, count: 3, chunk_bytes: 1_000, checksum: 0xdead_beef }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written_and_nothing_else_is_one() {
        let written = manifest().write();
        assert_eq!(written.len(), MANIFEST_BYTES);
        assert_eq!(Manifest::read(&written), Some(manifest()));
        assert!(looks_like_manifest(&written));
        for cut in 0..written.len() {
            assert_eq!(Manifest::read(&written[..cut]), None, "cut at {cut}");
        }
        assert_eq!(Manifest::read(&[&written[..], b"x"].concat()), None);
        for (count, chunk_bytes, value_bytes) in
            [(2, 1_000, 2_500), (4, 1_000, 2_500), (3, 0, 2_500), (0, 1_000, 0), (u32::MAX, 1, u64::from(u32::MAX))]
        {
            let wrong = Manifest { count, chunk_bytes, value_bytes, ..manifest() };
            assert_eq!(Manifest::read(&wrong.write()), None, "{wrong:?}");
        }
        for at in MAGIC.len()..written.len() {
            let mut wrong = written.clone();
            wrong[at] = b'+';
            assert_eq!(Manifest::read(&wrong), None, "a sign at {at}");
        }
    }

    #[test]
    fn a_chunk_is_told_from_every_other() {
        let names = ChunkNames::new(manifest().generation, b"key");
        let mut chunk = [&[0; CHUNK_HEAD_BYTES][..], b"bytes"].concat();
        names.seal(1, &mut chunk);
        let check = |names: &ChunkNames, number, length, chunk: &[u8]| names.check(number, length, chunk).is_some();
        assert!(check(&names, 1, 5, &chunk));
        assert!(!check(&names, 2, 5, &chunk) && !check(&names, 1, 4, &chunk) && !check(&names, 1, 5, b"short"));
        assert!(!check(&ChunkNames::new(Generation([0; 16]), b"key"), 1, 5, &chunk));
        for at in 0..chunk.len() {
            let mut wrong = chunk.clone();
            wrong[at] ^= 1;
            assert!(!check(&names, 1, 5, &wrong), "another byte at {at}");
        }
        assert_ne!(names.of(1), names.of(2));
        assert_ne!(names.of(1), ChunkNames::new(manifest().generation, b"other").of(1));
        assert!(wire::memcached::is_key(&names.of(u32::MAX)));
        assert_ne!(Generation::draw(), Generation::draw());
    }

    #[test]
    fn chunks_outlive_their_manifest() {
        let now_s = 1_700_000_000;
        for (exptime, expect) in [
            (0, 0),
            (-1, -1),
            (10, 70),
            (RELATIVE_SECONDS_MAX - 60, RELATIVE_SECONDS_MAX),
            (RELATIVE_SECONDS_MAX, now_s + RELATIVE_SECONDS_MAX + 60),
            (now_s + 5, now_s + 65),
        ] {
            assert_eq!(chunk_exptime(exptime, now_s), expect, "{exptime}");
        }
    }

    #[test]
    fn the_last_chunk_has_what_is_left() {
        assert_eq!([0, 1, 2].map(|number| manifest().length_of(number)), [1_000, 1_000, 500]);
    }
}
