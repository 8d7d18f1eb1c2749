//! `POST /reload`: has larder read its config again, as HUP does, and answers with what came of it.
//!
//! Whether somebody may order that is judged before, in `admin_request`; the main thread obeys.

use message::{Method, Request};
use serde_json::{Value, json};

use super::vcl_requests::{NotVcl, VclReply};
use crate::reload_board::{NoReload, ReloadBoard, ReloadOutcome};

/// Does the request ask for a reload?
pub fn is_asked_by(request: &Request<'_>) -> Result<(), NotVcl> {
    match (request.path, request.method) {
        (b"/reload", Method::Post) => Ok(()),
        (b"/reload", _) => Err(NotVcl::Refused(405, "this path takes POST")),
        _ => Err(NotVcl::Elsewhere),
    }
}

pub async fn act(reloads: &ReloadBoard) -> VclReply {
    let (status, told) = match reloads.order().await {
        Ok(outcome @ ReloadOutcome::Taken { .. }) => (200, outcome_json(&outcome)),
        Ok(ReloadOutcome::Refused { why, .. }) => {
            let between = if why.contains('\n') { '\n' } else { ' ' };
            let sentence = format!("not reloaded, the old config stays:{between}{why}");
            (422, json!({ "outcome": "refused", "error": sentence }))
        }
        Err(NoReload::Unheard) => (409, json!({ "error": "this larder has nothing that is read again" })),
        Err(NoReload::Crowded) => (503, json!({ "error": "other reloads wait already: ask again in a moment" })),
        Err(NoReload::Ended) => (503, json!({ "error": "larder is ending" })),
    };
    VclReply { status, body: format!("{told}\n") }
}

/// What came of a reload, as everybody may read it.
pub fn outcome_json(outcome: &ReloadOutcome) -> Value {
    match outcome {
        ReloadOutcome::Taken { changed, warnings } => {
            json!({ "outcome": "taken", "changed": changed, "warnings": warnings })
        }
        ReloadOutcome::Refused { place, .. } => json!({ "outcome": "refused", "error": place }),
    }
}
