//! `GET /fleet`: how the fleet stands, as this node has heard.

use fleet::{Acknowledge, Fleet, FleetStatus, NodeStatus};
use message::{Method, Request};
use serde_json::{Value, json};

use super::vcl_requests::{NotVcl, VclReply};

/// `Ok`: that is what is asked for.
pub fn is_asked_by(request: &Request<'_>) -> Result<(), NotVcl> {
    match (request.path, request.method) {
        (b"/fleet", Method::Get | Method::Head) => Ok(()),
        (b"/fleet", _) => Err(NotVcl::Refused(405, "this path takes GET")),
        _ => Err(NotVcl::Elsewhere),
    }
}

pub fn act(fleet: Option<&Fleet>) -> VclReply {
    match fleet {
        Some(fleet) => VclReply { status: 200, body: format!("{}\n", status_json(&fleet.status())) },
        None => {
            let why = "this larder belongs to no fleet: [fleet] of larder.toml has no `log`";
            VclReply { status: 404, body: format!("{}\n", json!({ "error": why })) }
        }
    }
}

pub fn status_json(status: &FleetStatus) -> Value {
    let counts = &status.counts;
    let acknowledged: serde_json::Map<String, Value> = Acknowledge::ALL
        .into_iter()
        .map(|kind| (kind.word().to_owned(), json!(counts.acknowledged[kind as usize])))
        .collect();
    json!({
        "node": status.node,
        "lease_ms": status.lease_ms,
        "number": status.number,
        "log": status.trouble.as_deref().unwrap_or("ok"),
        "backlog": status.backlog,
        "acknowledged": acknowledged,
        "fell_short": counts.fell_short,
        "told": counts.told,
        "lost": counts.lost,
        "applied": counts.applied,
        "condemned": counts.condemned,
        "nodes": status.nodes.iter().map(node_json).collect::<Vec<_>>(),
    })
}

fn node_json(node: &NodeStatus) -> Value {
    json!({
        "name": node.name,
        "run": node.run,
        "this": node.is_this,
        "version": node.version,
        "number": node.number,
        "lag": node.lag,
        "silent_ms": node.silent_ms,
        "lease_ms": node.lease_ms,
        "lapsed": node.has_lapsed,
        "requests": node.figures.requests,
        "hits": node.figures.hits,
        "complaint": node.complaint,
    })
}

#[cfg(test)]
mod tests {
    use message::Scheme;
    use wire::limits::HeadLimits;
    use wire::read_request;

    use super::*;

    #[test]
    fn a_larder_without_a_fleet_says_so() {
        let reply = act(None);
        assert_eq!(reply.status, 404);
        assert!(reply.body.contains("[fleet]"), "{}", reply.body);
    }

    #[test]
    fn it_is_read_and_not_written() {
        let asked = |line: &str| {
            let (mut spans, head) = (Vec::new(), format!("{line} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
            let read = read_request(head.as_bytes(), &mut spans, &HeadLimits::REQUEST, Scheme::Http);
            is_asked_by(&read.unwrap().unwrap().request)
        };
        assert_eq!((asked("GET /fleet"), asked("HEAD /fleet")), (Ok(()), Ok(())));
        assert!(matches!(asked("POST /fleet"), Err(NotVcl::Refused(405, _))));
        assert_eq!(asked("GET /fleets"), Err(NotVcl::Elsewhere));
    }
}
