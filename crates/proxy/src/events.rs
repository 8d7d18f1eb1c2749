//! One event for every exchange that is over: what was asked, how it was answered and why, whom an origin's part of it was asked of, and
//! how long each phase took.
//!
//! The event is borrowed from what the story has at its end (`transaction/log.rs`), built in or under a program alike. The access log
//! writes its line from it; whoever reads along ([`EventReader`]) gets those that its query matches, as lines of JSON. While nobody
//! reads along it costs a load. A core never waits for a reader: what a reader does not take is counted, and lost.

pub(crate) mod event_fields;
pub(crate) mod event_json;
pub(crate) mod event_outbox;
pub(crate) mod event_query;
pub(crate) mod event_readers;
pub(crate) mod exchange_event;
pub(crate) mod origin_try;
mod query_completion;
mod query_text;

pub use event_fields::{EVENT_FIELDS, EventField, FieldKind, FieldValue};
pub use event_json::EVENT_VERSION;
pub use event_query::EventQuery;
pub use event_readers::{EventPiece, EventReader, TooManyReaders};
pub use query_completion::QueryContinuation;
pub use query_text::QueryError;
