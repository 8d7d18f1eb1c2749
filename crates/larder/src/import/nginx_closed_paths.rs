//! Which paths a location's route does not answer, beside those that another route does: what leads out of the location to others, and
//! files that others keep people from and that would answer as an index.

use std::path::Path;

use proxy::settings::ClosedPaths;

use crate::import::nginx_found::{AnsweredBy, FoundLocation};
use crate::import::nginx_guards;
use crate::import::nginx_order::{Kind, Matcher};
use crate::import::nginx_rulings::CaseOf;

/// `/api/../x`: whoever is asked for the path as it was sent would be asked for what nginx looks for elsewhere. `None`: all that is asked
/// later is answered alike.
pub fn leading_out(found: &[FoundLocation<'_>], at: usize, runs_scripts: bool) -> Option<String> {
    let own = &found[at];
    let is_otherwise = |other: &FoundLocation<'_>| {
        let runs_any = runs_scripts && matches!(other.answer, AnsweredBy::Scripts(_));
        !other.treats_alike(own) || runs_any
    };
    let is_all = own.spot.kind == Kind::Exact || own.spot.path.as_deref() == Some("/");
    if is_all || !(runs_scripts || own.answer.is_for_all_spellings()) || !found[at + 1..].iter().any(is_otherwise) {
        return None;
    }
    Some(match &own.spot.matcher {
        Matcher::Path(_) => format!("^(?!{})", own.spot.pattern_with_folder().trim_start_matches('^')),
        Matcher::Pattern(pattern) => unmatched(pattern),
    })
}

/// All that a pattern does not match.
pub fn unmatched(pattern: &str) -> String {
    format!("^(?!(?s:.*?)(?:{pattern}))")
}

/// An index of a location's folder is asked for by its own path, too, and nginx looks there who may come in and who answers: is it, for all whom
/// this location lets in, the file that would be shown here, or the script?
///
/// `is_known`: the folder is one of the location's. Of a regex nobody may know one; it is looked for guards alone then.
pub fn is_seen_by_all(found: &[FoundLocation<'_>], at: usize, (path, is_known): (&str, bool), prefix: &Path) -> bool {
    let Some(owner) = found.iter().position(|other| other.spot.matches(path)) else { return true };
    let (own, other) = (&found[at], &found[owner]);
    let is_guarded_alike = nginx_guards::are_guarded_like(&own.access, &other.access);
    if !is_known {
        return other.answer != AnsweredBy::Closed && is_guarded_alike;
    }
    let is_ruled = |by: &FoundLocation<'_>| !by.rulings.cases.is_empty() || by.rulings.only_methods.is_some();
    let names_script = path.ends_with(".php");
    let is_script = names_script && matches!(other.answer, AnsweredBy::Scripts(_) | AnsweredBy::Script(_));
    // Who runs scripts shows no other files, though they are of the same root.
    let shows_it = names_script || !matches!(other.answer, AnsweredBy::Scripts(_));
    let is_same_file = shows_it && other.answers_like(own) && other.level.root(prefix) == own.level.root(prefix);
    owner == at && !own.rulings.cases.iter().any(|case| is_about(case, path))
        || owner != at && (is_script || is_same_file && !is_ruled(other)) && is_guarded_alike
}

/// Does nginx ask this for a file that it has found for another path: an index, or what `try_files` ends with?
pub fn is_about(case: &CaseOf, path: &str) -> bool {
    !case.is_as_asked && case.pattern.as_deref().is_some_and(|pattern| matches(pattern, path))
}

/// The same where it asks for more than a path, too.
pub fn may_be_about(case: &CaseOf, path: &str) -> bool {
    is_about(case, path) || !case.is_as_asked && case.pattern.is_none()
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

pub fn matches(pattern: &str, path: &str) -> bool {
    ClosedPaths::new([pattern]).map_or(true, |closed| closed.close(path.as_bytes()))
}
