//! Varnish's shared memory: what `varnishstat` and the other tools of Varnish 7 read of a running server.
//!
//! It is a folder of files that the tools map: an index in text that names segments, and the segments, of which a class of
//! counters is two: what the counters mean, and their values; the log is one. Everything is written with ordinary writes, which a map of the same
//! file sees at once; nothing here maps memory. What is counted, and by whom, this crate does not know.
//!
//! ```
//! use vsm::{Counter, CounterClass, Meaning, VsmFolder};
//!
//! let path = std::env::temp_dir().join(format!("larder-vsm-example-{}", std::process::id()));
//! let folder = VsmFolder::take(&path, 1_767_268_800).unwrap();
//! folder.management.add("Arg", "-T", b"127.0.0.1 6082\n\0").unwrap();
//! let class = CounterClass {
//!     name: "main",
//!     meaning: "What the server does",
//!     order: 10,
//!     counters: vec![Counter::total("client_req", "Requests read"), Counter::gauge("n_object", "Objects stored")],
//! };
//! let meaning = Meaning::publish(&folder.work, &class, 1).unwrap();
//! let counters = meaning.counters(&folder.work, "MAIN").unwrap();
//! counters.show(&[1_000, 12]).unwrap();
//! // `varnishstat -n PATH -1` prints MAIN.client_req and MAIN.n_object now.
//! assert!(path.join("_.vsm_child/_.index").exists());
//! # drop((counters, meaning, folder));
//! # std::fs::remove_dir_all(path).unwrap();
//! ```

pub mod counter_class;
pub mod limits;
pub mod log_piece;
pub mod log_segment;
pub mod log_tags;
pub mod segment_set;
pub mod vsm_folder;

pub use counter_class::{Counter, CounterClass, CounterSegment, Format, Kind, Level, Meaning};
pub use log_piece::{LogPiece, LogUnit, append_record};
pub use log_segment::LogSegment;
pub use log_tags::{LogMask, LogTag};
pub use segment_set::{Segment, SegmentSet};
pub use vsm_folder::VsmFolder;
