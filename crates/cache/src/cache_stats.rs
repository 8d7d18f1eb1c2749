//! Figures of the cache: what it counts, and what it says of itself.

use store::sync::atomic::AtomicU64;

/// Figures since the start, and of this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    pub memory_bytes_max: u64,
    /// Objects, index, bodies under way, and what others charged to the account.
    pub memory_bytes: u64,
    /// Of these, what only its last readers keep.
    pub leaving_bytes: u64,
    /// What bodies take that lie in the page file.
    pub file_memory_bytes: u64,
    pub objects: u64,
    pub keys: u64,
    pub evictions: u64,
    /// Objects dropped by purges and unsafe methods.
    pub invalidated: u64,
    /// Objects dropped because the lifetimes that a program gave them were over.
    pub expired: u64,
    /// Objects dropped by bans.
    pub banned: u64,
    /// Tests of stored objects against bans, because somebody asked for the object.
    pub ban_tests: u64,
    /// Those of the lurker, in the background.
    pub ban_tests_behind: u64,
    /// Tags of stored objects, each object's counted.
    pub tags: u64,
    /// Bans that are listed.
    pub bans: u64,
    /// Bans that left before everything was tested, because there were too many; see `limits::BANS_MAX`.
    pub bans_overflowed: u64,
    pub landed: u64,
    pub refreshed: u64,
    /// Requests that followed somebody else's fetch.
    pub coalesced: u64,
    pub overflowed: u64,
    /// Objects that came back from a disk.
    pub recalled: u64,
    /// Encodings of stored responses that were made and kept.
    pub encodings_made: u64,
    /// Those that came back from a disk.
    pub encodings_recalled: u64,
    /// Those of them that are told by what differs from a dictionary.
    pub deltas_made: u64,
    /// Texts that are known as dictionaries, stored or kept beside the store.
    pub dictionaries: u64,
    /// What those take that are kept beside the store.
    pub dictionary_bytes: u64,
    /// Texts that were kept and went because there was no room, or because they were old.
    pub dictionaries_given_up: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub evictions: AtomicU64,
    pub invalidated: AtomicU64,
    pub expired: AtomicU64,
    pub banned: AtomicU64,
    pub ban_tests: AtomicU64,
    pub ban_tests_behind: AtomicU64,
    pub landed: AtomicU64,
    pub refreshed: AtomicU64,
    pub coalesced: AtomicU64,
    pub overflowed: AtomicU64,
    pub recalled: AtomicU64,
    pub encodings_made: AtomicU64,
    pub encodings_recalled: AtomicU64,
    pub deltas_made: AtomicU64,
}
