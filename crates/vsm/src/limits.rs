//! The numbers of the shared memory.

/// Files are whole pages, because they are mapped.
pub const PAGE_BYTES: u64 = 4096;

/// Segments of one index. A site has one for each backend and a handful beside them.
pub const SEGMENTS_MAX: usize = 10_000;

/// Lines about segments that came and went, after which an index is written anew.
pub const INDEX_LINES_SPENT_MAX: usize = 1_000;

/// What a segment is called. The tools take any length; a line of an index should be readable.
pub const NAME_BYTES_MAX: usize = 256;

/// A log as small as Varnish takes one (`vsl_space`).
pub const LOG_BYTES_MIN: u64 = 1 << 20;
