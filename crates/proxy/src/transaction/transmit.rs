//! Transmit: hands the answer to the client, and writes down how it went.

use crate::disks;
use crate::downstream::Downstream;
use crate::outgoing::Outgoing;
use crate::records::request_records;
use crate::transaction::{Step, Transaction};

pub(crate) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>, outgoing: Outgoing) -> Step {
    // What a program invalidated and says to have invalidated. If that is not for good the log has it: the answer is made.
    if tx.policy.has_invalidated() {
        disks::settled(&tx.core.shared).await;
    }
    let sent = downstream.send(outgoing, tx.head.version, tx.persistent).await;
    tx.persistent = sent.persistent;
    tx.outcome.body_bytes = sent.body_bytes;
    if let Some(records) = tx.policy.records() {
        request_records::sent(
            records,
            tx.head.version,
            (sent.head_bytes, sent.body_bytes - sent.framing_bytes),
            tx.persistent,
        );
    }
    Step::Log(sent.end)
}
