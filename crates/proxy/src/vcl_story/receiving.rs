//! The step Receive of a program: requests with a body, and restarts. A body that vcl_recv is going to ask for is read first, whole, up to
//! what the program says it wants, so that it can be sent again by restarts and retries.

use message::Status;
use wire::RequestBody;

use crate::answer_head::AnswerHead;
use crate::clock::Moment;
use crate::downstream::Downstream;
use crate::fetch::broken::Broken;
use crate::records::request_records;
use crate::send_outcome::End;
use crate::transaction::synth::Synth;
use crate::transaction::{Step, Transaction};
use crate::vcl_story::client_state::BodyWasRead;
use crate::vcl_story::{body_forecast, client_steps};

pub(crate) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>) -> Step {
    if downstream.has_broken_body() {
        // Begun anew: as Varnish does it, that is too late for an answer.
        return unanswered(downstream, "request-body-gone");
    }
    if tx.expects_continue && tx.site.settings.as_varnishd {
        tx.expects_continue = false;
        // Who has begun to send does not wait.
        if let Some(state) = tx.policy.program() {
            state.awaits_continue.set(!downstream.has_begun_body());
        }
    }
    if let Some(bytes_max) = body_wanted(tx, downstream)
        && let Err(step) = keep_body(tx, downstream, bytes_max).await
    {
        return step;
    }
    let step = client_steps::recv(tx);
    let says_continue = tx.policy.program().is_some_and(|state| state.continue_is_due.take());
    if says_continue && !send_continue(tx, downstream).await {
        return Step::client_left(downstream);
    }
    step
}

/// How much of the body vcl_recv will ask for, if it will.
fn body_wanted(tx: &mut Transaction, downstream: &Downstream<'_>) -> Option<u64> {
    let state = tx.policy.program()?;
    if !downstream.has_untouched_body() || state.body.is_some() {
        return None;
    }
    body_forecast::forecast_body(tx)
}

/// Reads the body for the program. The error is where the request goes instead.
async fn keep_body(tx: &mut Transaction, downstream: &mut Downstream<'_>, bytes_max: u64) -> Result<(), Step> {
    let is_varnishd_s = tx.site.settings.as_varnishd;
    let is_too_long = matches!(tx.body, RequestBody::Length(length) if length > bytes_max);
    if is_too_long && !is_varnishd_s {
        // It goes by as it comes, and the program hears that it is not there.
        return Ok(());
    }
    let waits = awaits_continue(tx) || (tx.expects_continue && !downstream.has_begun_body());
    if waits && !is_too_long && !send_continue(tx, downstream).await {
        return Err(Step::client_left(downstream));
    }
    let read = if is_too_long { Ok(None) } else { downstream.read_whole_body(bytes_max).await };
    let why = match read {
        Ok(Some(body)) => {
            tx.expects_continue = false;
            if let Some(state) = tx.policy.program_mut() {
                state.body_was_read.set(Some(BodyWasRead { by: Moment::now(), continued: waits }));
                state.body = Some(body);
            }
            return Ok(());
        }
        Ok(None) if !is_varnishd_s => return Err(Step::Synth(Synth::body_not_kept(bytes_max))),
        Ok(None) => "request-body-not-kept",
        Err(Broken::ClientFault(refusal)) if !is_varnishd_s => {
            downstream.body_broke();
            tx.persistent = false;
            return Err(Step::Synth(Synth::refused(&refusal)));
        }
        Err(Broken::ClientFault(refusal)) => refusal.token,
        Err(Broken::ClientLeft | Broken::Origin(_)) => {
            if let Some(records) = tx.policy.records() {
                request_records::body_broke_off(records, tx.body);
            }
            return Err(Step::client_left(downstream));
        }
    };
    // In place of varnishd the program hears that there is no body, and whatever it says then, there is no answer.
    downstream.body_broke();
    client_steps::recv(tx);
    Err(unanswered(downstream, why))
}

fn awaits_continue(tx: &Transaction) -> bool {
    tx.policy.program().is_some_and(|state| state.awaits_continue.get())
}

/// 100 to whoever waits for it. False: the client left.
pub(crate) async fn send_continue(tx: &mut Transaction, downstream: &mut Downstream<'_>) -> bool {
    tx.expects_continue = false;
    if let Some(state) = tx.policy.program() {
        state.awaits_continue.set(false);
    }
    downstream.send_interim(tx.head.version, AnswerHead::new(Status(100))).await
}

fn unanswered(downstream: &mut Downstream<'_>, why: &'static str) -> Step {
    downstream.cut();
    Step::Log(End::Unanswered(why))
}
