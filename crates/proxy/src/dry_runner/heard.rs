//! What is heard of one request: what its programs did, how long things live, how it ended.

use std::sync::Arc;

use vcl::source_files::Span;
use vcl::subroutines::Method as Subroutine;
use vcl::{Loaded, LogKind};

use crate::access_log::CacheVerdict;
use crate::dry_runner::mocked_exchange::RanHead;
use crate::policy_columns::Life;

/// What happens inside a subroutine, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Statement(Span),
    /// Of the `if` that began last.
    Condition {
        at: Span,
        holds: bool,
    },
    Set {
        name: String,
        before: Option<String>,
        after: String,
    },
    /// One more line of a field.
    Added {
        name: String,
        line: String,
    },
    /// It was there.
    Unset {
        name: String,
        before: String,
    },
    RolledBack(&'static str),
    Hashed(Option<String>),
    Body(String),
    Banned {
        expression: String,
        refused: Option<String>,
    },
    Purged {
        tag: Option<String>,
        is_soft: bool,
        count: u64,
    },
    Logged(LogKind, String),
}

/// A built-in subroutine that ran.
#[derive(Clone, Debug)]
pub struct Ran {
    pub method: Subroutine,
    /// Of which program.
    pub loaded: Arc<Loaded>,
    /// As VCL writes it.
    pub verdict: String,
    /// For the refresh of something stale, which the client does not wait for.
    pub is_background: bool,
    pub events: Vec<Event>,
    /// `req` at its end, or `bereq` on the origin's side.
    pub request: RanHead,
    /// `resp` or `beresp`, where there is one.
    pub response: Option<RanHead>,
}

/// How long what a fetch brought lives.
#[derive(Clone, Debug)]
pub struct GivenLife {
    pub life: Life,
    pub is_background: bool,
}

/// How the request ended, as the access log has it.
#[derive(Clone, Copy, Debug)]
pub struct Closed {
    pub status: u16,
    pub verdict: CacheVerdict,
    pub why: &'static str,
}
