//! `POST /upgrade`: has another process of the program as it lies on the disk now take over, and answers with what came of it.
//!
//! Whether somebody may order that is judged before, in `admin_request`; the supervisor obeys.

use message::{Method, Request};
use serde_json::json;

use super::vcl_requests::{NotVcl, VclReply};
use crate::upgrade_board::{NoUpgrade, UpgradeBoard, UpgradeOutcome};

/// Does the request ask for an upgrade?
pub fn is_asked_by(request: &Request<'_>) -> Result<(), NotVcl> {
    match (request.path, request.method) {
        (b"/upgrade", Method::Post) => Ok(()),
        (b"/upgrade", _) => Err(NotVcl::Refused(405, "this path takes POST")),
        _ => Err(NotVcl::Elsewhere),
    }
}

pub async fn act(upgrades: &UpgradeBoard) -> VclReply {
    let (status, told) = match upgrades.order().await {
        Ok(UpgradeOutcome::Succeeded { process }) => (200, json!({ "outcome": "upgraded", "process": process })),
        Ok(UpgradeOutcome::Refused { why }) => (
            422,
            json!({ "outcome": "refused", "error": format!("not upgraded, the process that serves goes on: {why}") }),
        ),
        Err(NoUpgrade::Alone) => (
            409,
            json!({ "error": "this larder has no supervisor that could start another one (--no-supervisor): restart it" }),
        ),
        Err(NoUpgrade::Crowded) => (503, json!({ "error": "others wait for an upgrade already" })),
        Err(NoUpgrade::Ended) => (503, json!({ "error": "larder is ending" })),
    };
    VclReply { status, body: format!("{told}\n") }
}
