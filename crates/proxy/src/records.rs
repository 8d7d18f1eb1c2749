//! What is recorded of sessions, requests and fetches while they run, as Varnish's log has it: who wants that log gives
//! the proxy a [`RecordSink`]. Without one nothing here is made, and a hit asks for it once.
//!
//! A transaction collects its records (`task_records.rs`) and hands them over as one piece when it ends. What a record says
//! follows the formats of vsl(7), and it stands in memory as in that log (`record_form.rs`), so that nobody writes it twice. Where records go,
//! which are heard there (`heard_kinds.rs`) and by which numbers, is the sink's business.

pub(crate) mod expiry_records;
pub(crate) mod fetch_records;
pub(crate) mod frame_records;
pub(crate) mod heard_kinds;
pub(crate) mod record_form;
pub(crate) mod record_kind;
pub(crate) mod record_outlet;
pub(crate) mod record_text;
pub(crate) mod request_records;
pub(crate) mod session_records;
pub(crate) mod task_records;

use std::sync::Arc;

pub use heard_kinds::HeardKinds;
pub use record_form::RecordView;
pub use record_kind::RecordKind;
use vcl::LogKind;

/// Whose transaction it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordSide {
    /// Sessions and requests.
    Client,
    /// Fetches.
    Backend,
    /// Nobody's, without a number: objects that leave.
    None,
}

/// Where records go. It must not block.
pub trait RecordSink: Send + Sync {
    /// Takes records of one transaction, in order; [`RecordView`] reads them.
    fn put(&self, records: &[u8]);

    /// Which kinds it hears: no others are put.
    fn heard(&self) -> Arc<HeardKinds>;

    /// What the store is called in records: kind and name.
    fn storage(&self) -> &str {
        "malloc s0"
    }
}

/// What a program says while it is loaded or discarded, where there is no transaction.
pub fn record_of_program(sink: &dyn RecordSink, kind: LogKind, text: &[u8]) {
    if let Some(kind) = RecordKind::of_program(kind) {
        record_of_nobody(sink, &sink.heard(), kind, || text.into());
    }
}

/// A record of no transaction.
pub(crate) fn record_of_nobody(
    sink: &dyn RecordSink,
    heard: &HeardKinds,
    kind: RecordKind,
    text: impl FnOnce() -> Vec<u8>,
) {
    if let Some(heard) = heard.as_heard(kind) {
        let mut record = Vec::new();
        let transaction = record_form::transaction_word(0, RecordSide::None);
        record_form::append(&mut record, transaction, (kind, heard), &text());
        sink.put(&record);
    }
}
