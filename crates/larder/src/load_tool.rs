//! The load tool's command line: `larder bench` and `larder lab`. The load itself, and the matrix of a lab, are `crates/lab`.

mod bench;
mod bench_dialects;
mod bench_flags;
mod bench_job;
mod bench_memcached;
mod bench_screen;
mod bench_show;
mod bench_sources;
mod bench_tls;
mod bench_words;
mod lab_command;
mod lab_compare;
mod lab_origin;
mod lab_run;
mod lab_simulate;
mod simulation;

pub use bench::bench;
pub use bench_flags::BenchFlags;
pub use bench_words::translate;
pub use lab_command::{LabCommand, lab};
