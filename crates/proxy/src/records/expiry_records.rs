//! Objects that leave, as Varnish's log has them: nobody's transaction, and masked unless somebody asks for it.

use std::sync::Arc;

use cache::{Object, RemovalCause, RemovalListener};

use crate::clock::{Clock, Moment};
use crate::records::request_records::stored_xid;
use crate::records::{RecordKind, RecordSide, RecordSink, append};

pub(crate) struct ExpiryRecords(pub(crate) Arc<dyn RecordSink>);

impl RemovalListener for ExpiryRecords {
    fn removed(&self, object: &Object, why: RemovalCause) {
        if !self.0.wants(RecordKind::ExpKill) {
            return;
        }
        let xid = stored_xid(object.fields());
        let text = match why {
            RemovalCause::Evicted => format!("LRU x={xid}"),
            RemovalCause::Over => {
                let left_s = object.lifetimes(Clock::read().at(Moment::now()).into()).ttl_ms as f64 / 1_000.0;
                format!("EXP_Expired x={xid} t={left_s:.0}")
            }
        };
        let mut record = Vec::new();
        append(&mut record, RecordKind::ExpKill, &[text.as_bytes()]);
        self.0.put(0, RecordSide::None, &record);
    }
}
