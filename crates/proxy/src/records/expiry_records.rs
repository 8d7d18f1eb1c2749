//! Objects that leave, as Varnish's log has them: nobody's transaction, and masked unless somebody asks for it.

use std::sync::Arc;

use cache::{Object, RemovalCause, RemovalListener};

use crate::clock::{Clock, Moment};
use crate::records::request_records::stored_xid;
use crate::records::{HeardKinds, RecordKind, RecordSink, record_of_nobody};

pub(crate) struct ExpiryRecords {
    sink: Arc<dyn RecordSink>,
    heard: Arc<HeardKinds>,
}

impl ExpiryRecords {
    pub(crate) fn to(sink: &Arc<dyn RecordSink>) -> ExpiryRecords {
        ExpiryRecords { sink: Arc::clone(sink), heard: sink.heard() }
    }
}

impl RemovalListener for ExpiryRecords {
    fn removed(&self, object: &Object, why: RemovalCause) {
        record_of_nobody(&*self.sink, &self.heard, RecordKind::ExpKill, || {
            let xid = stored_xid(object.fields());
            match why {
                RemovalCause::Evicted => format!("LRU x={xid}"),
                RemovalCause::Over => {
                    let left_s = object.lifetimes(Clock::read().at(Moment::now()).into()).ttl_ms as f64 / 1_000.0;
                    format!("EXP_Expired x={xid} t={left_s:.0}")
                }
            }
            .into_bytes()
        });
    }
}
