//! Failed: what went wrong with an origin, in words that name the origin, the phase, and the setting that changes it.

use std::sync::Arc;
use std::time::Duration;

use cache::Failure;
use wire::Refusal;
use wire::http2::ErrorCode;

use crate::fetch::timeouts::{self, Timeout};
use crate::filter_chain::FilterFault;
use crate::origin::{Origin, OriginError};
use crate::static_files::finding::NotShown;
use crate::upstream::Upstream;

/// The token of a 5xx answer in whose place something stale may be served.
pub(crate) const SERVER_ERROR: &str = "origin-server-error";
/// How long a failure that answers all who wait answers others too: so that they do not queue up for the same time-out,
/// and an origin that keeps breaking off is not asked once for each client.
const REMEMBER_MS: u64 = 1_000;

/// No connection.
pub(crate) fn unconnected(error: &OriginError, timeout: Timeout) -> Failure {
    let remember_ms = if error.status() == 503 { 0 } else { REMEMBER_MS };
    let text = error.to_string().replace(timeouts::CONNECT, timeout.setting);
    Failure { status: error.status(), token: error.token(), text: text.into(), remember_ms }
}

fn says(origin: &Origin, upstream: &Upstream, what: &str) -> Arc<str> {
    match origin.shows_address() {
        true => format!("origin \"{}\" ({}): {what}", origin.name, upstream.label()).into(),
        false => format!("destination \"{}\": {what}", origin.name).into(),
    }
}

/// No answer in time.
pub(crate) fn silent(origin: &Origin, upstream: &Upstream, timeout: Timeout) -> Failure {
    let what = format!("no answer within {} s ({})", timeout.after.as_secs_f32(), timeout.setting);
    let text = says(origin, upstream, &what);
    Failure { status: 504, token: "origin-first-byte-timeout", text, remember_ms: REMEMBER_MS }
}

/// The connection ended before an answer.
pub(crate) fn hung_up(origin: &Origin, upstream: &Upstream) -> Failure {
    let text = says(origin, upstream, "closed the connection without an answer");
    Failure { status: 502, token: "origin-closed", text, remember_ms: REMEMBER_MS }
}

/// It ended the stream before an answer.
pub(crate) fn reset(origin: &Origin, upstream: &Upstream, code: ErrorCode) -> Failure {
    let text = says(origin, upstream, &format!("ended the stream without an answer ({code:?})"));
    Failure { status: 502, token: "origin-stream-reset", text, remember_ms: REMEMBER_MS }
}

/// It did not work on the request, and not when it was asked again.
pub(crate) fn unprocessed(origin: &Origin, upstream: &Upstream) -> Failure {
    let text =
        says(origin, upstream, "did not take the request (HTTP/2: REFUSED_STREAM or GOAWAY; FastCGI: OVERLOADED)");
    Failure { status: 502, token: "origin-refused-stream", text, remember_ms: REMEMBER_MS }
}

/// It wants HTTP/1.1, and does not get it.
pub(crate) fn wants_http1(origin: &Origin, upstream: &Upstream) -> Failure {
    let text = says(origin, upstream, "wants this request over HTTP/1.1 (origin.urls: https:// or http://)");
    Failure { status: 502, token: "origin-wants-http1", text, remember_ms: 0 }
}

/// Something of the request is none of HTTP/2. That is about this request alone.
pub(crate) fn unsendable(origin: &Origin, refusal: &Refusal) -> Failure {
    let text = format!("origin \"{}\": the request cannot be sent over HTTP/2: {}", origin.name, refusal.token);
    Failure { status: 502, token: "request-not-http2", text: text.into(), remember_ms: 0 }
}

/// There is no script to be asked, or none that may be.
pub(crate) fn without_script(origin: &Origin, why: NotShown) -> Failure {
    let said = match why {
        NotShown::Absent => "neither the path nor `fallback` of its [[route]] is a script",
        NotShown::NoRoot => "the directory of its [[route]] cannot be opened (root)",
        NotShown::Exhausted => "too many files are open (limits.open_files_max, limits.connections_max)",
        _ => "the script may not be run: it leads out of the root, or cannot be looked at",
    };
    let status = match why {
        NotShown::Absent => 404,
        NotShown::NoRoot | NotShown::Failed => 500,
        NotShown::Exhausted => 503,
        _ => 403,
    };
    let text = format!("origin \"{}\": {said}", origin.name).into();
    Failure { status, token: "script-absent", text, remember_ms: 0 }
}

/// What came was no HTTP.
pub(crate) fn garbled(origin: &Origin, upstream: &Upstream, refusal: &Refusal) -> Failure {
    let reason = refusal.token.replace('-', " ");
    let what = match refusal.limit {
        Some(limit) => format!("its answer was refused: {reason} ({limit})"),
        None => format!("its answer was refused: {reason}"),
    };
    Failure { status: 502, token: refusal.token, text: says(origin, upstream, &what), remember_ms: REMEMBER_MS }
}

/// Interim responses without end.
pub(crate) fn never_final(origin: &Origin, upstream: &Upstream) -> Failure {
    let text = says(origin, upstream, "only interim answers (limits.interim_responses_max)");
    Failure { status: 502, token: "origin-interim-flood", text, remember_ms: REMEMBER_MS }
}

/// A 5xx in whose place something stale may be served.
pub(crate) fn server_error(origin: &Origin, status: u16) -> Failure {
    let text = format!("origin \"{}\": answered {status}", origin.name).into();
    Failure { status, token: SERVER_ERROR, text, remember_ms: 0 }
}

/// Another node of the fleet, the owner, says that the origin failed it.
pub(crate) fn by_owner(nodes: &Origin, upstream: &Upstream, status: u16) -> Failure {
    let text = says(nodes, upstream, &format!("the origin that it asked failed it: {status}"));
    Failure { status, token: "owner-origin-failed", text, remember_ms: REMEMBER_MS }
}

/// The next proxy wants name and password, or others.
pub(crate) fn login_refused(origin: &Origin) -> Failure {
    let text = format!("\"{}\": wants name and password, or others (forward.parent.login_file)", origin.name).into();
    Failure { status: 502, token: "forward-parent-login", text, remember_ms: 0 }
}

/// A body that broke off.
pub(crate) fn truncated(origin: &str, label: &str) -> Failure {
    let text = format!("origin \"{origin}\" ({label}): the body ended before its end").into();
    Failure { status: 502, token: "origin-body-truncated", text, remember_ms: REMEMBER_MS }
}

/// A body that stopped moving.
pub(crate) fn stalled(origin: &str, label: &str, timeout: Timeout) -> Failure {
    let (secs, setting) = (timeout.after.as_secs_f32(), timeout.setting);
    let text = format!("origin \"{origin}\" ({label}): no byte of the body for {secs} s ({setting})");
    Failure { status: 504, token: "origin-between-bytes-timeout", text: text.into(), remember_ms: REMEMBER_MS }
}

/// An answer that is not over in the time that its route gives it.
pub(crate) fn too_long(origin: &str, whole: Duration) -> Failure {
    let secs = whole.as_secs_f32();
    let text =
        format!("origin \"{origin}\": the answer was not over within {secs} s (timeouts.whole of the [[route]])");
    Failure { status: 504, token: "origin-whole-timeout", text: text.into(), remember_ms: REMEMBER_MS }
}

/// A body that is not framed as it should be.
pub(crate) fn garbled_body(origin: &str, label: &str, refusal: &Refusal) -> Failure {
    let text = format!("origin \"{origin}\" ({label}): its body was refused: {}", refusal.token).into();
    Failure { status: 502, token: refusal.token, text, remember_ms: REMEMBER_MS }
}

/// A body that is not in the coding that its head names.
pub(crate) fn unfilterable(origin: &str, label: &str, fault: &FilterFault) -> Failure {
    let text = format!("origin \"{origin}\" ({label}): {fault}").into();
    Failure { status: 502, token: "origin-body-coding", text, remember_ms: REMEMBER_MS }
}

/// A body for which there are no filters.
pub(crate) fn without_filters(origin: &Origin, why: &str) -> Failure {
    let text = format!("origin \"{}\": its body cannot be filtered: {why}", origin.name).into();
    Failure { status: 502, token: "origin-body-coding", text, remember_ms: 0 }
}

/// A 304 that is not about what we hold, to a request without conditions. Not remembered: the origin is well, and knows
/// another answer.
pub(crate) fn unasked_304(origin: &Origin) -> Failure {
    let text = format!("origin \"{}\": answered 304 to a request without conditions", origin.name).into();
    Failure { status: 502, token: "origin-304-unasked", text, remember_ms: 0 }
}

/// A 2xx to a CONNECT that a program did not pipe.
pub(crate) fn unasked_tunnel(origin: &Origin) -> Failure {
    let text =
        format!("origin \"{}\": opened a tunnel for a CONNECT that is not piped (return (pipe))", origin.name).into();
    Failure { status: 502, token: "origin-tunnel-unasked", text, remember_ms: 0 }
}
