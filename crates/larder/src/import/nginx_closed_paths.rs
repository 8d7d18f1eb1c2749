//! Which paths a location's route does not answer, beside those that another route does: what leads out of the location to others, and
//! files that others keep people from and that would answer as an index.

use crate::import::nginx_guards;
use crate::import::nginx_order::{Kind, Matcher};
use crate::import::nginx_tree::{AnsweredBy, FoundLocation};

/// `/api/../x`: whoever is asked for the path as it was sent would be asked for what nginx looks for elsewhere. `None`: all that is asked
/// later is answered alike.
pub fn leading_out(found: &[FoundLocation<'_>], at: usize) -> Option<String> {
    let own = &found[at];
    let is_otherwise = |other: &FoundLocation<'_>| other.answer.key() != own.answer.key() || other.access != own.access;
    let is_all = own.spot.kind == Kind::Exact || own.spot.path.as_deref() == Some("/");
    if is_all || !own.answer.asks_others() || !found[at + 1..].iter().any(is_otherwise) {
        return None;
    }
    Some(match &own.spot.matcher {
        Matcher::Path(_) => format!("^(?!{})", own.spot.pattern_with_folder().trim_start_matches('^')),
        Matcher::Pattern(pattern) => format!("^(?!(?s:.*?)(?:{pattern}))"),
    })
}

/// An index of a location's folder is asked for by its own path, too, and nginx looks there who may come in: is it for all whom this location
/// lets in?
pub fn is_seen_by_all(found: &[FoundLocation<'_>], at: usize, path: &str) -> bool {
    found[..at].iter().find(|other| other.spot.matches(path)).is_none_or(|other| {
        other.answer != AnsweredBy::Closed && nginx_guards::are_guarded_like(&found[at].access, &other.access)
    })
}

/// The patterns of locations that keep people from files of a directory, whose index would be shown by its own path.
pub fn kept_from(found: &[FoundLocation<'_>], at: usize) -> impl Iterator<Item = String> {
    let own = &found[at];
    let is_root = matches!(own.answer, AnsweredBy::Files | AnsweredBy::Scripts(_));
    let guards = move |other: &&FoundLocation<'_>| {
        let is_closed = other.answer == AnsweredBy::Closed;
        let is_more = !nginx_guards::are_guarded_like(&own.access, &other.access);
        // A directory is led to a location by its own name.
        let is_of_files = other.spot.path.as_deref().is_none_or(|path| !path.ends_with('/'));
        (is_closed || is_more) && is_of_files
    };
    found[..at].iter().filter(move |_| is_root).filter(guards).map(|other| other.spot.pattern())
}
