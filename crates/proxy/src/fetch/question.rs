//! A question of ours to an origin, about a request of a client's: whether it may come in. What comes is the answer to the question, and nobody
//! judges it here.

use std::time::Duration;

use crate::fetch::begin::Requester;
use crate::fetch::broken::Broken;
use crate::fetch::purpose::Purpose;
use crate::fetch::{Fetch, OriginReply};
use crate::transaction::synth::Synth;

/// An answer, and the fetch that its body belongs to.
pub(crate) struct Answered {
    pub(crate) fetch: Box<Fetch>,
    pub(crate) reply: OriginReply,
}

/// Asks. Dropped, the origin is told to stop. The error is the answer to who waits for it.
pub(crate) async fn ask(requester: &Requester<'_>, timeout: Duration) -> Result<Box<Answered>, Synth> {
    let mut fetch = Fetch::begin(requester, Purpose::Question)?;
    match tokio::time::timeout(timeout, fetch.ask()).await {
        Ok(Ok(reply)) => Ok(Box::new(Answered { fetch, reply })),
        Ok(Err(Broken::Origin(failure))) => Err(Synth::auth_failed(&failure.text)),
        Ok(Err(Broken::ClientLeft | Broken::ClientFault(_))) => Err(Synth::auth_failed("the question has no client")),
        Err(_) => {
            let what = format!("no answer within {} s (timeout of auth_request)", timeout.as_secs_f32());
            Err(Synth::auth_failed(&what))
        }
    }
}
