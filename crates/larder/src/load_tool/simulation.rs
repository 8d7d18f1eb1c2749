//! How much memory a cache needs: a trace of requests, somebody's or a made one, through the policies by which larder's memory
//! evicts, at several sizes. No socket and no store; `store::replay` says who would have been there.

pub mod curve_plot;
#[cfg(test)]
mod eviction_tests;
pub mod fleet_replay;
pub mod fleet_table;
pub mod made_trace;
pub mod miss_curves;
pub mod trace_file;
mod web_sizes;
pub mod what_if;
