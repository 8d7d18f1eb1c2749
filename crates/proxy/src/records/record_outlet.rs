//! A core's way to the sink of records: what is heard there, and the memory in which transactions collect what they record.

use std::cell::RefCell;
use std::sync::Arc;

use crate::limits::{RECORD_BUFFERS_KEPT_MAX, TASK_RECORDS_BYTES_MAX};
use crate::records::heard_kinds::HeardAs;
use crate::records::{HeardKinds, RecordKind, RecordSink};

pub(crate) struct RecordOutlet {
    sink: Arc<dyn RecordSink>,
    heard: Arc<HeardKinds>,
    /// Of transactions that are over, empty.
    buffers: RefCell<Vec<Vec<u8>>>,
}

/// What a hit records, and a little more.
const BUFFER_BYTES: usize = 2 << 10;

impl RecordOutlet {
    pub(crate) fn to(sink: Arc<dyn RecordSink>) -> RecordOutlet {
        RecordOutlet { heard: sink.heard(), sink, buffers: RefCell::default() }
    }

    #[inline(always)]
    pub(crate) fn as_heard(&self, kind: RecordKind) -> Option<HeardAs> {
        self.heard.as_heard(kind)
    }

    /// What the store is called.
    pub(crate) fn storage(&self) -> &str {
        self.sink.storage()
    }

    /// Hands records of one transaction over. The buffer is empty then.
    pub(crate) fn put(&self, records: &mut Vec<u8>) {
        if !records.is_empty() {
            self.sink.put(records);
            records.clear();
        }
    }

    /// Where a transaction may collect its records.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        self.buffers.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES))
    }

    /// It is over.
    pub(crate) fn take_back(&self, buffer: Vec<u8>) {
        let mut buffers = self.buffers.borrow_mut();
        if buffers.len() < RECORD_BUFFERS_KEPT_MAX && buffer.capacity() <= 2 * TASK_RECORDS_BYTES_MAX {
            buffers.push(buffer);
        }
    }
}
