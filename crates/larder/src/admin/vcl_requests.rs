//! What may be asked of the admin address about VCLs, their backends and bans: which request asks what, what is done, and the answer as JSON.
//!
//! Whether somebody may change anything is judged before, in `admin_request`. A body comes whole or not at all.

use std::path::PathBuf;

use message::{Method, Request};
use proxy::{BackendStatus, BanStatus, HealthOrder, ProbeStatus, Proxy, VclError, VclStatus};
use serde_json::{Value, json};

use super::history::AnnotationKind;
use crate::vcl_loading::{self, Ready};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VclRequest {
    /// `GET /vcl`
    List,
    /// `PUT /vcl/NAME[?from=PATH]`, with the text as the body
    Load { name: String, from: Option<String> },
    /// `POST /vcl/NAME/use`
    Use { name: String },
    /// `DELETE /vcl/NAME`, `DELETE /vcl-labels/LABEL`
    Discard { name: String },
    /// `PUT /vcl-labels/LABEL?vcl=NAME`
    Label { label: String, name: String },
    /// `GET /backends`
    Backends,
    /// `POST /backends/NAME/health?set=auto|healthy|sick`
    Health { backend: String, order: HealthOrder },
    /// `GET /bans`
    Bans,
    /// `POST /ban`, with the expression as the body
    Ban,
}

/// Why a request is none of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotVcl {
    /// Another part of the admin may know the path.
    Elsewhere,
    /// Status and sentence.
    Refused(u16, &'static str),
}

/// Status and body of an answer.
pub struct VclReply {
    pub status: u16,
    pub body: String,
}

impl VclRequest {
    pub fn of(request: &Request<'_>) -> Result<VclRequest, NotVcl> {
        use NotVcl::{Elsewhere, Refused};
        let path = std::str::from_utf8(request.path).map_err(|_| Elsewhere)?;
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let query = |key: &str| query_value(request.query, key);
        let method = request.method;
        let get = matches!(method, Method::Get | Method::Head);
        match segments[..] {
            ["vcl"] if get => Ok(VclRequest::List),
            ["vcl"] => Err(Refused(405, "this path takes GET")),
            ["vcl", name] if method == Method::Put => Ok(VclRequest::Load { name: name.into(), from: query("from") }),
            ["vcl", name] | ["vcl-labels", name] if method == Method::Delete => {
                Ok(VclRequest::Discard { name: name.into() })
            }
            ["vcl", _] => Err(Refused(405, "this path takes PUT or DELETE")),
            ["vcl", name, "use"] if method == Method::Post => Ok(VclRequest::Use { name: name.into() }),
            ["vcl", _, "use"] => Err(Refused(405, "this path takes POST")),
            ["vcl-labels", label] if method == Method::Put => {
                let name = query("vcl").ok_or(Refused(400, "write ?vcl=NAME"))?;
                Ok(VclRequest::Label { label: label.into(), name })
            }
            ["vcl-labels", _] => Err(Refused(405, "this path takes PUT or DELETE")),
            ["bans"] if get => Ok(VclRequest::Bans),
            ["bans"] => Err(Refused(405, "this path takes GET")),
            ["ban"] if method == Method::Post => Ok(VclRequest::Ban),
            ["ban"] => Err(Refused(405, "this path takes POST")),
            ["backends"] if get => Ok(VclRequest::Backends),
            ["backends"] => Err(Refused(405, "this path takes GET")),
            ["backends", backend, "health"] if method == Method::Post => {
                let written = query("set").unwrap_or_default();
                let order = HealthOrder::WORDS.iter().find(|(word, _)| *word == written).map(|(_, order)| *order);
                let order = order.ok_or(Refused(400, "write ?set=auto, ?set=healthy or ?set=sick"))?;
                Ok(VclRequest::Health { backend: backend.into(), order })
            }
            ["backends", _, "health"] => Err(Refused(405, "this path takes POST")),
            _ => Err(Elsewhere),
        }
    }

    /// Anybody who reaches the address may look.
    pub fn changes(&self) -> bool {
        !matches!(self, VclRequest::List | VclRequest::Backends | VclRequest::Bans)
    }

    /// What the history says of it once it is done.
    pub fn annotation(&self) -> Option<(AnnotationKind, String)> {
        match self {
            VclRequest::Use { name } => Some((AnnotationKind::Reload, format!("VCL {name}"))),
            VclRequest::Ban => Some((AnnotationKind::Purge, "by ban".to_owned())),
            VclRequest::Health { backend, .. } => Some((AnnotationKind::Order, format!("backend {backend}"))),
            _ => None,
        }
    }

    pub fn takes_body(&self) -> bool {
        matches!(self, VclRequest::Load { .. } | VclRequest::Ban)
    }

    /// Does what is asked. Loading may take a while: names are looked up.
    pub fn act(self, proxy: &Proxy, vcl_path: &[PathBuf], body: Vec<u8>) -> VclReply {
        let done = match self {
            VclRequest::List => return VclReply::good(json!({ "vcls": vcls_json(&proxy.vcls_status()) })),
            VclRequest::Backends => {
                let vcls = proxy.vcls_status();
                let backends: Vec<Value> = vcls
                    .iter()
                    .flat_map(|vcl| vcl.backends.iter().map(move |b| (vcl, b)))
                    .map(|(vcl, backend)| {
                        let mut row = backend_json(backend);
                        row["vcl"] = json!(vcl.name);
                        row["active"] = json!(vcl.is_active);
                        row
                    })
                    .collect();
                return VclReply::good(json!({ "backends": backends }));
            }
            VclRequest::Bans => {
                let bans: Vec<Value> = proxy.bans_status().iter().map(ban_json).collect();
                return VclReply::good(json!({ "bans": bans }));
            }
            VclRequest::Ban => ban(proxy, body.trim_ascii()),
            VclRequest::Load { name, from } => return load(proxy, vcl_path, &name, from, body),
            VclRequest::Use { name } => proxy.use_vcl(&name),
            VclRequest::Discard { name } => proxy.discard_vcl(&name),
            VclRequest::Label { label, name } => proxy.label_vcl(&label, &name),
            VclRequest::Health { backend, order } => proxy.order_backend_health(&backend, order),
        };
        match done {
            Ok(()) => VclReply::good(json!({ "ok": true })),
            Err(error) => VclReply::bad(&error),
        }
    }
}

/// A ban is answered when a crash cannot undo it. Called in a thread for blocking calls.
pub fn ban(proxy: &Proxy, expression: &[u8]) -> Result<(), VclError> {
    proxy.ban(expression)?;
    let settled = tokio::runtime::Handle::current().block_on(proxy.settled());
    settled.map_err(|why| VclError::Refused(format!("the ban is in force, but a crash may undo it: {why}")))
}

fn load(proxy: &Proxy, vcl_path: &[PathBuf], name: &str, from: Option<String>, text: Vec<u8>) -> VclReply {
    let from = from.unwrap_or_else(|| format!("{name}.vcl"));
    match vcl_loading::from_text(name, &from, text, (vcl_path, &proxy.origins_for_programs())) {
        Err(drawn) => VclReply::bad(&VclError::Refused(drawn)),
        Ok(Ready { program, warnings, summary, .. }) => match proxy.load_vcl(program) {
            Ok(()) => VclReply::good(json!({ "ok": true, "summary": summary, "warnings": warnings })),
            Err(error) => VclReply::bad(&error),
        },
    }
}

impl VclReply {
    pub fn good(body: Value) -> VclReply {
        VclReply { status: 200, body: format!("{body}\n") }
    }

    pub fn bad(error: &VclError) -> VclReply {
        let status = match error {
            VclError::Unknown(_) => 404,
            VclError::Conflict(_) => 409,
            VclError::Refused(_) => 422,
        };
        VclReply { status, body: format!("{}\n", json!({ "error": error.to_string() })) }
    }
}

/// All programs, for `/vcl` and `/status`.
pub fn vcls_json(vcls: &[VclStatus]) -> Value {
    let row = |vcl: &VclStatus| {
        json!({
            "name": vcl.name,
            "active": vcl.is_active,
            "warm": vcl.is_warm,
            "labels": vcl.labels,
            "under_way": vcl.under_way,
            "summary": vcl.summary,
            "backends": vcl.backends.iter().map(backend_json).collect::<Vec<_>>(),
        })
    };
    vcls.iter().map(row).collect()
}

fn ban_json(ban: &BanStatus) -> Value {
    json!({
        "expression": ban.expression,
        "age_ms": ban.age_ms,
        "needs_request": ban.needs_request,
        "soft": ban.is_soft,
        "tested": ban.tested,
        "matched": ban.matched,
        "done": ban.is_done,
    })
}

fn backend_json(backend: &BackendStatus) -> Value {
    let addresses: Vec<&str> = backend.origin.addresses.iter().map(|address| &*address.label).collect();
    json!({
        "name": &*backend.origin.name,
        "healthy": backend.healthy,
        "ordered": backend.ordered.word(),
        "changed_ms": backend.changed_ms,
        "probe": backend.probe.as_ref().map(probe_json),
        "connections": backend.origin.connections,
        "max_connections": backend.origin.connections_max,
        "queued": backend.origin.queued,
        "addresses": addresses,
    })
}

/// What probes have brought, of a backend or of an address of an origin.
pub fn probe_json(probe: &ProbeStatus) -> Value {
    json!({
        "good": probe.good,
        "threshold": probe.threshold,
        "window": probe.window,
        "count": probe.probes_count,
        "last": probe.last,
        "last_took_ms": probe.last_took_ms,
    })
}

/// The value of a key in a query, with `%XX` and `+` read.
pub fn query_value(query: Option<&[u8]>, key: &str) -> Option<String> {
    decoded(written_values(query, key).next()?)
}

/// All values of a key, in order. `None`: one of them cannot be read.
pub fn query_values(query: Option<&[u8]>, key: &str) -> Option<Vec<String>> {
    written_values(query, key).map(decoded).collect()
}

fn written_values<'a>(query: Option<&'a [u8]>, key: &str) -> impl Iterator<Item = &'a [u8]> {
    let pairs = query.unwrap_or_default().split(|b| *b == b'&');
    pairs.filter_map(move |pair| {
        let at = pair.iter().position(|b| *b == b'=')?;
        (&pair[..at] == key.as_bytes()).then(|| &pair[at + 1..])
    })
}

fn decoded(written: &[u8]) -> Option<String> {
    let mut value = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => value.push(b' '),
            b'%' => {
                let (digits, after) = rest.split_at_checked(2)?;
                value.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                rest = after;
            }
            byte => value.push(byte),
        }
    }
    String::from_utf8(value).ok()
}

#[cfg(test)]
mod tests {
    use message::Scheme;
    use wire::limits::HeadLimits;
    use wire::read_request;

    use super::*;

    fn check(line: &str, expect: Result<VclRequest, NotVcl>) {
        let head = format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut spans = Vec::new();
        let received = read_request(head.as_bytes(), &mut spans, &HeadLimits::REQUEST, Scheme::Http).unwrap().unwrap();
        assert_eq!(VclRequest::of(&received.request), expect, "{line}");
    }

    #[test]
    fn requests_say_what_they_want() {
        let name = || "boot".to_owned();
        check("GET /vcl", Ok(VclRequest::List));
        check("PUT /vcl/boot", Ok(VclRequest::Load { name: name(), from: None }));
        let from = Some("/etc/a b.vcl".to_owned());
        check("PUT /vcl/boot?x=1&from=/etc/a%20b.vcl", Ok(VclRequest::Load { name: name(), from }));
        check("POST /vcl/boot/use", Ok(VclRequest::Use { name: name() }));
        check("DELETE /vcl/boot", Ok(VclRequest::Discard { name: name() }));
        check("DELETE /vcl-labels/boot", Ok(VclRequest::Discard { name: name() }));
        check("PUT /vcl-labels/l?vcl=boot", Ok(VclRequest::Label { label: "l".to_owned(), name: name() }));
        check("GET /backends", Ok(VclRequest::Backends));
        check("GET /bans", Ok(VclRequest::Bans));
        check("POST /ban", Ok(VclRequest::Ban));
        let order = HealthOrder::Sick;
        check("POST /backends/boot/health?set=sick", Ok(VclRequest::Health { backend: name(), order }));
    }

    #[test]
    fn what_is_wrong_is_said() {
        check("GET /status", Err(NotVcl::Elsewhere));
        check("GET /vcl/boot/x/y", Err(NotVcl::Elsewhere));
        check("POST /vcl", Err(NotVcl::Refused(405, "this path takes GET")));
        check("GET /ban", Err(NotVcl::Refused(405, "this path takes POST")));
        check("GET /vcl/boot/use", Err(NotVcl::Refused(405, "this path takes POST")));
        check("PUT /vcl-labels/l", Err(NotVcl::Refused(400, "write ?vcl=NAME")));
        let words = "write ?set=auto, ?set=healthy or ?set=sick";
        check("POST /backends/b/health?set=well", Err(NotVcl::Refused(400, words)));
    }

    #[test]
    fn only_looking_is_free() {
        assert!(!VclRequest::List.changes() && !VclRequest::Backends.changes());
        assert!(VclRequest::Use { name: String::new() }.changes());
    }
}
