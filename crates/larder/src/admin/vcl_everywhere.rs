//! Bans, and with `[fleet] vcl = true` what is done about VCLs, ordered at one node and carried out by all.

use fleet::Acknowledge;
use fleet::limits::ORDER_BYTES_MAX;
use proxy::{Proxy, ToldInvalidation, VclError};
use serde_json::{Value, json};

use super::fleet_door::FleetDoor;
use super::told_order;
use super::vcl_order;
use super::vcl_requests::{VclReply, VclRequest};

/// What is asked of all nodes.
pub enum OrderForAll {
    Ban(Vec<u8>),
    /// As it stands in the log.
    Vcl(String),
}

impl FleetDoor {
    /// `None`: it is for this node alone.
    pub fn takes(&self, request: &VclRequest, body: &[u8]) -> Option<OrderForAll> {
        match request {
            VclRequest::Ban => Some(OrderForAll::Ban(body.trim_ascii().to_vec())),
            other if self.carries_vcl => vcl_order::text_of(other, body).map(OrderForAll::Vcl),
            _ => None,
        }
    }
}

pub async fn order(proxy: &Proxy, fleet: &FleetDoor, order: OrderForAll) -> VclReply {
    match order {
        OrderForAll::Ban(expression) => ban(proxy, fleet, expression).await,
        OrderForAll::Vcl(text) => vcl(fleet, text).await,
    }
}

/// It is answered when that is acknowledged as `[fleet] acknowledge` says, and a crash of this node cannot undo it here.
async fn ban(proxy: &Proxy, fleet: &FleetDoor, expression: Vec<u8>) -> VclReply {
    if let Err(why) = proxy.understands_ban(&expression) {
        return VclReply::bad(&VclError::Refused(why));
    }
    let unfinished = |what: String, why: String| {
        let error = format!("the ban is in force, but {what}: {why}");
        VclReply { status: 503, body: format!("{}\n", json!({ "error": error })) }
    };
    let text = told_order::text_of(&ToldInvalidation::Ban(expression));
    if let Err(why) = fleet.ordered(text).await {
        return unfinished(format!("not acknowledged as {}", fleet.acknowledge.word()), why);
    }
    match proxy.settled().await {
        Ok(()) => VclReply::good(json!({ "ok": true })),
        Err(why) => unfinished("a crash may undo it".to_owned(), why),
    }
}

/// What this node says of it, and which nodes could not do it. It waits for all of them, whatever is configured: who uses a VCL wants to know where it runs.
async fn vcl(fleet: &FleetDoor, text: String) -> VclReply {
    if text.len() > ORDER_BYTES_MAX {
        let why =
            format!("a VCL goes through the log of the fleet with {} KiB at most; [fleet] vcl", ORDER_BYTES_MAX >> 10);
        return VclReply::bad(&VclError::Refused(why));
    }
    let ordered = fleet.fleet.order(text, Acknowledge::Applied).await;
    let failed = |why: &str| VclReply { status: 503, body: format!("{}\n", json!({ "error": why })) };
    let told = match &ordered.told {
        Ok(told) => told,
        Err(why) => return failed(why),
    };
    let Some(mut reply) = vcl_order::reply_of(told) else { return failed("this node has carried out another order") };
    let complaints: Vec<Value> = fleet
        .fleet
        .status()
        .nodes
        .into_iter()
        .filter(|node| !node.complaint.is_empty())
        .map(|node| json!({ "node": node.name, "complaint": node.complaint }))
        .collect();
    let mut body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    body["acknowledged"] = ordered.acknowledged.word().into();
    body["lapsed"] = ordered.lapsed.into();
    body["complaints"] = complaints.into();
    if let (200, Some(why)) = (reply.status, ordered.why_less) {
        reply.status = 503;
        body["error"] = format!("it is done here, and not acknowledged as applied: {why}").into();
    }
    VclReply { body: format!("{body}\n"), ..reply }
}
