//! Traces: how an exchange is known to whoever asked for it and to the origins that are asked for it (W3C Trace Context), and which
//! exchanges are told of.
//!
//! A request that waits for something has its place in a trace from when it becomes a transaction (`transaction/opening.rs`), since its
//! origins are told of it. Without `[traces]` there is nothing of this: fields that a client sends go on as others do.

pub(crate) mod exchange_trace;
pub(crate) mod trace_ids;
pub(crate) mod trace_parent;
pub(crate) mod trace_settings;
