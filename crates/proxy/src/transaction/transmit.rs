//! Transmit: hands the answer to the client, and writes down how it went.

use message::{FieldName, Status};
use wire::Content;

use crate::answer_head::AnswerHead;
use crate::disks;
use crate::downstream::Downstream;
use crate::outgoing::{Outgoing, OutgoingHead};
use crate::records::request_records;
use crate::transaction::{Step, Transaction};

/// In it an operator is told why the answer is as it is.
const EXPLANATION: &[u8] = b"larder-explain";

pub(crate) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>, outgoing: Outgoing) -> Step {
    // The answer may say that its program has invalidated something: first the disks must know of that. Where they fail, the log says so,
    // and the answer goes out all the same.
    if tx.policy.has_invalidated() {
        disks::settled(&tx.core.shared).await;
    }
    let mut outgoing = outgoing;
    if downstream.takes_for_tunnel(&outgoing) {
        let status = Status(502);
        (tx.outcome.status, tx.outcome.why) = (status.0, "no-tunnel");
        outgoing = Outgoing::without_body(AnswerHead::new(status), Content::Length(0));
    }
    // What a page includes goes at the pace of the page.
    if let Some(pace) = tx.site.rules_of(tx.routed).and_then(|rules| rules.bandwidth)
        && tx.place_in_page.level == 0
        && !outgoing.body.is_empty()
    {
        outgoing.body = outgoing.body.paced(pace);
    }
    say_why(tx, &mut outgoing);
    let sent = downstream.send(outgoing, tx.head.version, tx.persistent).await;
    tx.persistent = sent.persistent;
    tx.outcome.body_bytes = sent.body_bytes;
    if let Some(records) = tx.policy.records() {
        request_records::sent(records, tx.head.version, (sent.head_bytes, sent.body_bytes), tx.persistent);
    }
    Step::Log(sent.end)
}

/// To who may know it: what became of the request, and what was to be expected. A cache on the way to the operator keeps it for nobody else.
fn say_why(tx: &Transaction, outgoing: &mut Outgoing) {
    let (Some(explained), OutgoingHead::Whole { head, .. }) = (&tx.explained, &mut outgoing.head) else { return };
    let why = if tx.outcome.why.is_empty() { String::new() } else { format!(", why={}", tx.outcome.why) };
    let value = format!("class={}{why}, {explained}", tx.outcome.verdict.token());
    head.fields.push_named(EXPLANATION, value.as_bytes());
    head.fields.push(FieldName::CacheControl, "private");
}
