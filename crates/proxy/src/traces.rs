//! Traces: how an exchange is known to whoever asked for it and to the origins that are asked for it (W3C Trace Context), and which
//! exchanges are told of.
//!
//! A request that waits for something has its place in a trace from when it becomes a transaction (`transaction/opening.rs`), since its
//! origins are told of it. Without `[traces]` there is nothing of this: fields that a client sends go on as others do.
//! A hit that is answered at once has its place only when it is over and told of. Spans, and a log record where that is wanted, are written by
//! the core that the exchange ended on (`otlp_spans.rs`, `otlp_logs.rs`) and put into its queue (`export_queue.rs`); who exports them is the
//! program's business.

pub(crate) mod exchange_trace;
pub(crate) mod export_outbox;
pub(crate) mod export_queue;
pub(crate) mod otlp_attributes;
pub(crate) mod otlp_logs;
pub(crate) mod otlp_spans;
pub(crate) mod query_redaction;
pub(crate) mod trace_ids;
pub(crate) mod trace_parent;
pub(crate) mod trace_settings;
pub(crate) mod try_span;
