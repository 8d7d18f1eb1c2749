//! A request's body that nobody asked for, in place of varnishd: it is read and thrown away before the answer goes out, so
//! that the answer says whether the connection carries another request. `larder serve` answers first.
//!
//! That is done once the answer is decided: a program that sends the request elsewhere instead has its body still.

use wire::RequestBody;

use crate::clock::Moment;
use crate::downstream::Downstream;
use crate::records::request_records;
use crate::transaction::Transaction;
use crate::vcl_story::receiving;

/// Reads what is left of the body, for `timeout_idle` and up to `limits.linger_bytes_max`. What is later or longer ends the
/// connection behind the answer.
pub(super) async fn settle(tx: &mut Transaction, downstream: &mut Downstream<'_>) {
    let limits = &tx.site.settings.limits;
    let bytes_max = limits.linger_bytes_max;
    let timeout_ms = downstream.idle_ms(limits);
    let Some(state) = tx.policy.program() else { return };
    // What an origin answered while it read the body is not held up.
    if !downstream.has_untouched_body() || !tx.persistent || !tx.site.settings.as_varnishd {
        return;
    }
    let awaits_continue = state.awaits_continue.get();
    let records = state.records.clone();
    if let Some(records) = &records {
        request_records::body_begins(records);
        if awaits_continue {
            request_records::continued(records);
        }
    }
    let is_too_long = matches!(tx.body, RequestBody::Length(length) if length > bytes_max);
    let may_come = !is_too_long && (!awaits_continue || receiving::send_continue(tx, downstream).await);
    tx.persistent = may_come && downstream.drain_body(timeout_ms, bytes_max).await;
    if let Some(records) = &records {
        records.stamp_at("ReqBody", Moment::now());
    }
}
