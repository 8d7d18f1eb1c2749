//! How much memory a cache needs: somebody's trace of requests, through the policies by which larder's memory evicts, at
//! several sizes. No socket and no store; `store::replay` says who would have been there.

pub mod curve_plot;
pub mod miss_curves;
pub mod trace_file;
