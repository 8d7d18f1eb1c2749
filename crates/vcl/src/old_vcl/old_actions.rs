//! What subroutines of old returned, and with what those of today return instead.

use crate::subroutines::Method;

/// What stands for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// These statements, of which the last returns.
    By(&'static [&'static str]),
    /// These, and it is worth knowing why.
    With(&'static [&'static str], &'static str),
    Gone(&'static str),
}

pub fn returned(method: Method, action: &str) -> Returned {
    use Returned::{By, Gone, With};
    match (method, action) {
        (Method::Recv, "lookup" | "hash") => By(&["return (hash);"]),
        (Method::Recv | Method::Hit | Method::Miss, "pass") => By(&["return (pass);"]),
        (Method::Recv | Method::Pipe, "pipe") => By(&["return (pipe);"]),
        (Method::Hash, "hash" | "lookup") => By(&["return (lookup);"]),
        (Method::Pass, "pass" | "fetch") | (Method::Miss, "fetch") => By(&["return (fetch);"]),
        (Method::Hit | Method::Deliver | Method::Synth | Method::BackendResponse | Method::BackendError, "deliver") => {
            By(&["return (deliver);"])
        }
        (Method::Hit, "fetch") => With(
            &["set req.hash_always_miss = true;", "return (restart);"],
            "a hit is fetched anew by a restart that does not look into the cache; vcl_recv runs again",
        ),
        (Method::BackendResponse, "insert" | "fetch") => By(&["return (deliver);"]),
        (Method::BackendResponse, "pass" | "hit_for_pass") => With(
            &["set beresp.uncacheable = true;", "return (deliver);"],
            "while beresp.ttl lasts, requests for this are fetched side by side, and one that is cacheable ends that",
        ),
        (Method::BackendResponse | Method::BackendError, "restart") => {
            With(&["return (retry);"], "a retry runs vcl_backend_fetch again, not vcl_recv; it counts in bereq.retries")
        }
        (Method::Recv | Method::Pass | Method::Hit | Method::Miss | Method::Deliver | Method::Synth, "restart") => {
            By(&["return (restart);"])
        }
        (Method::Recv | Method::Pipe | Method::Pass | Method::Hit | Method::Miss | Method::Deliver, "error") => {
            By(&["return (synth(503));"])
        }
        (Method::BackendResponse, "error") => By(&["return (error(503));"]),
        (Method::Init | Method::Fini, "ok") => By(&["return (ok);"]),
        (_, "keep" | "discard") => Gone("objects are kept and dropped without asking"),
        _ => Gone("this subroutine does not return so any more"),
    }
}

/// The words that were statements by themselves in VCL 1 and 2.
pub fn is_action(word: &str) -> bool {
    const ACTIONS: [&str; 12] = [
        "deliver",
        "discard",
        "error",
        "fetch",
        "hash",
        "hit_for_pass",
        "insert",
        "keep",
        "lookup",
        "pass",
        "pipe",
        "restart",
    ];
    ACTIONS.contains(&word)
}

/// The subroutines of today that do what one of old did. None: there is no such moment any more.
pub fn methods(old_name: &str) -> Option<Vec<Method>> {
    let old_name = old_name.to_ascii_lowercase();
    match old_name.as_str() {
        "vcl_fetch" => Some(vec![Method::BackendResponse]),
        "vcl_error" => Some(vec![Method::Synth, Method::BackendError]),
        "vcl_timeout" | "vcl_discard" | "vcl_prefetch" => Some(Vec::new()),
        _ => Method::by_name(&old_name).map(|method| vec![method]),
    }
}
