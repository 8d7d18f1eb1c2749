//! The numbers of the cache. Those an operator may change are the defaults of `CacheSettings`.

use store::limits::BLOCK_BYTES;

pub const MEMORY_BYTES_MAX: usize = 256 << 20;
pub const OBJECT_BYTES_MAX: u64 = 64 << 20;

/// An object larger than this part (1/4) of the memory is passed through a window instead of being kept.
pub const OBJECT_SHARE_SHIFT: u32 = 2;

/// Variants kept under one key (J10); the oldest goes.
pub const VARIANTS_MAX: usize = 128;

/// A body in blocks is promoted to the page file when it has been sent so many times, by its bytes. A copy there costs some three
/// times of what `sendfile` saves a hit.
pub const PROMOTED_AFTER_TIMES_SENT: u64 = 3;
/// What is copied of it before others on the core have their turn: some 40 microseconds.
pub const PROMOTION_STEP_BYTES: u64 = 2 * BLOCK_BYTES as u64;
/// Bodies that are being promoted stand twice: this part (1/64) of the memory at most, or one.
pub const PROMOTIONS_SHARE_SHIFT: u32 = 6;

/// Different Vary specifications under one key; the oldest goes with its variants.
pub const SPECS_MAX: usize = 4;

/// Stored parts (206) of one variant; the oldest goes.
pub const PARTS_MAX: usize = 32;

/// Parts are copied together up to this length: some 2 ms of the core that fetched the last of them.
pub const PARTS_JOIN_BYTES_MAX: u64 = 8 << 20;
/// Of two parts that are copied together the longer is at most so many times as long as the shorter: else many small
/// parts behind a large one would cost a large copy each. So no byte is copied more than five times, counted together.
pub const PARTS_JOIN_RATIO: u64 = 4;

/// Flights of one key that others can find and join; further ones fetch for themselves.
pub const FLIGHTS_LISTED_MAX: usize = 64;

/// What a body that is not kept may have between its writer and its slowest reader.
pub const WINDOW_BYTES_MAX: usize = 256 * 1024;

/// What the pieces at both ends of a window hold beside themselves, on its account: they are parts of blocks, or were read
/// with others.
pub const WINDOW_ENDS_BYTES: usize = BLOCK_BYTES;

/// All windows together take this part (1/8) of the memory at most before each of them may hold one block only.
pub const WINDOWS_SHARE_SHIFT: u32 = 3;

/// A reader of what is kept is handed about this much at once.
pub const READ_BYTES_MAX: usize = 256 * 1024;
/// A reader of a window is handed less: what it was handed counts as read, and nobody else holds it any more.
pub const WINDOW_READ_BYTES_MAX: usize = BLOCK_BYTES;

/// Vary specifications that all objects share; further ones stand alone, which costs a hit a cache miss or two.
pub const SPECS_SHARED_MAX: usize = 256;

/// Slots of the table of cache groups, made when the first group is seen (512 KiB). Groups of one slot are invalidated
/// together.
#[cfg(not(feature = "shuttle"))]
pub const GROUP_SLOTS: usize = 64 * 1024;
#[cfg(feature = "shuttle")]
pub const GROUP_SLOTS: usize = 8;

/// Tags of one response; one with more is not stored.
pub const TAGS_MAX: usize = 1_024;
/// Shards of the index of tags: a power of two.
#[cfg(not(feature = "shuttle"))]
pub const TAG_SHARDS: usize = 64;
#[cfg(feature = "shuttle")]
pub const TAG_SHARDS: usize = 2;
/// A purge of a tag marks what carries it in pieces of about so many.
pub const PURGED_PIECE: usize = 64;
/// Of what a purge of tags has marked so much is taken out before it returns: no more, because it costs a hundred times what marking does.
pub const PURGED_OUT_AT_ONCE: usize = 64;
/// What the index keeps for a tag of an object, where nothing else carries it.
pub const TAG_BYTES: usize = 160;

/// Bans in force. Past it the oldest leaves; it counts then as one that hits all that it was not tested against, so that
/// more goes than was asked, never less.
#[cfg(not(feature = "shuttle"))]
pub const BANS_MAX: usize = 4_096;
#[cfg(feature = "shuttle")]
pub const BANS_MAX: usize = 4;

/// Objects that the lurker or the reaper looks at while it holds a shard: about so many.
pub const WALK_OBJECTS_MAX: usize = 128;

/// Shards of the directory: a power of two.
#[cfg(not(feature = "shuttle"))]
pub const SHARDS: usize = 256;
#[cfg(feature = "shuttle")]
pub const SHARDS: usize = 2;

/// Places of a shard that remember the last invalidation of keys without an entry; a few keys share one (128 KiB in
/// all shards).
pub const FLOORS: usize = 64;

/// How long a failure before a head waits for a second one to confirm it, in milliseconds: twice the default of
/// first_byte_timeout, which the second one may take.
pub const FAILURE_CONFIRMABLE_MS: u64 = 120_000;

/// Keys of a shard that hold nothing but a hit-for-miss mark or a remembered failure (16,384 in all shards).
pub const NOTES_MAX: usize = 64;

/// What an object costs beside itself: its bucket in the directory with the empty ones beside it, a node in the eviction's
/// arena, links in its wheel, and a ghost after it; and what an allocator rounds up.
pub const OBJECT_INDEX_BYTES: usize = 192;
/// A ghost in its queue and its table.
pub const GHOST_BYTES: usize = 56;

/// What a key costs of which more is known than one object: fetches, variants, what failed.
pub const ENTRY_BYTES: usize = 256;

/// Entries of a hot table, one for each core: 32 bytes each.
pub const HOT_ENTRIES: usize = 32 * 1024;
/// Entries that share one place of the table.
pub const HOT_WAYS: usize = 4;

/// `obj.hits` counts exactly up to here.
pub const HITS_EXACT_MAX: u16 = 255;

/// Records of a key on a disk that a miss opens, at most, to find its variant.
pub const DISK_CANDIDATES_MAX: usize = 4;

/// Records of a key on a disk from which on no encoding is added: a disk keeps 64 of a key, and variants go first.
pub const DISK_ENCODINGS_BELOW: usize = 32;

/// How long what is stale is worth its place on a disk because the origin may confirm it: a week.
pub const DISK_VALIDATABLE_MS: u64 = 7 * 24 * 3_600 * 1_000;

/// A response that expired keeps its place in memory for this part (1/4) of the time for which it was fresh …
pub const STANDBY_PART: u64 = 4;
/// … and at least so long: what is fresh for
/// seconds is asked for again in seconds only where it is popular.
pub const STANDBY_MS_MIN: u64 = 60_000;

/// Bans, tags and groups that the disks were told of and that nobody has waited for yet; older ones are waited for by nobody.
pub const DISK_TOLD_MAX: usize = 1_024;

/// Digests that are remembered of what was fetched once, 8 MiB, for disks that admit what is fetched twice.
pub const DISK_SEEN_MAX: usize = 1 << 20;

/// Places in the fleet's log beside numbers of our own that are remembered: 64 KiB. Older ones are thinned out.
pub const LOG_MARKS_MAX: usize = 4_096;

/// Questions to the shared tier for one request: what lies under a name, what lies under its variant's, and each once more behind something
/// outdated.
pub const SHARED_QUESTIONS_MAX: usize = 4;

/// Slices that wait for their disk take this part (1/4) of the memory at most before further ones are fetched later.
pub const FOR_DISK_SHARE_SHIFT: u32 = 2;
/// Slices that wait for their disk and are found by who asks: as many as its queue holds of the smallest.
pub const UNWRITTEN_SLICES_MAX: usize = 1024;

/// What of a slice comes at once.
pub const SLICE_STEP_BYTES: usize = 4 * BLOCK_BYTES;

/// Responses that an eviction passes over, while it makes room once, because their encodings were used or went instead of them.
pub const SPARED_MAX: usize = 64;

/// What differs from dictionaries is kept of one response for so many of them.
pub const DELTAS_MAX: usize = 16;

/// Texts that are known as dictionaries, stored or not; the oldest is forgotten. What it costs to know one: its name twice, and what it is
/// for.
pub const DICTIONARIES_MAX: usize = 4_096;
pub const DICTIONARY_NOTE_BYTES: usize = 512;
/// URL patterns for which the same text of one origin is a dictionary; the oldest goes.
pub const DICTIONARY_USES_MAX: usize = 4;

const _: () = assert!(GROUP_SLOTS.is_power_of_two() && GROUP_SLOTS <= u32::MAX as usize);
const _: () = assert!(TAG_SHARDS.is_power_of_two() && TAG_SHARDS > 1);
const _: () = assert!(SHARDS.is_power_of_two() && (SHARDS >= 64 || cfg!(feature = "shuttle")));
const _: () = assert!(HOT_ENTRIES.is_power_of_two() && HOT_ENTRIES.is_multiple_of(HOT_WAYS));
const _: () = assert!(WINDOW_BYTES_MAX >= BLOCK_BYTES && READ_BYTES_MAX >= BLOCK_BYTES);
