//! Varnish's shared memory: what `varnishstat` and the other tools of Varnish 7 read of a running server.
//!
//! It is a folder of files that the tools map: an index in text that names segments, and the segments, of which a class of
//! counters is two: what the counters mean, and their values; the log is one. Everything is written with ordinary writes, which a map of the same
//! file sees at once; nothing here maps memory. What is counted, and by whom, this crate does not know.

pub mod counter_class;
pub mod limits;
pub mod log_piece;
pub mod log_segment;
pub mod log_tags;
pub mod segment_set;
pub mod vsm_folder;

pub use counter_class::{Counter, CounterClass, CounterSegment, Format, Kind, Level, Meaning};
pub use log_piece::{Batch, LogPiece, LogSide};
pub use log_segment::LogSegment;
pub use log_tags::{LogMask, LogTag};
pub use segment_set::{Segment, SegmentSet};
pub use vsm_folder::VsmFolder;
