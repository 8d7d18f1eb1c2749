//! What a shell may offer where a field of the log, or a query, is typed.

use std::ffi::OsStr;

use clap_complete::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use proxy::events::{EVENT_FIELDS, EventQuery};

/// The name of a field.
pub fn field() -> ArgValueCandidates {
    ArgValueCandidates::new(|| EVENT_FIELDS.iter().map(|field| candidate(field.name, field.says)).collect())
}

/// A query, or the beginning of one.
pub fn query() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let continuations = typed.to_str().map(EventQuery::continuations).unwrap_or_default();
        continuations.iter().map(|found| candidate(&found.text, found.says)).collect()
    })
}

fn candidate(text: &str, says: &'static str) -> CompletionCandidate {
    CompletionCandidate::new(text).help((!says.is_empty()).then(|| says.into()))
}
