//! Traces: how an exchange is known to whoever asked for it and to the origins that are asked for it (W3C Trace Context), and which
//! exchanges are told of.
//!
//! A request that waits for something has its place in a trace from when it becomes a transaction (`transaction/opening.rs`), since its
//! origins are told of it. Without `[traces]` there is nothing of this: fields that a client sends go on as others do.
//! A hit that is answered at once has its place only when it is over and told of. Spans are written by the core that the exchange ended on
//! (`otlp_spans.rs`) and put into its queue (`span_queue.rs`); who exports them is the program's business.

pub(crate) mod exchange_trace;
pub(crate) mod otlp_spans;
pub(crate) mod query_redaction;
pub(crate) mod span_outbox;
pub(crate) mod span_queue;
pub(crate) mod trace_ids;
pub(crate) mod trace_parent;
pub(crate) mod trace_settings;
pub(crate) mod try_span;
