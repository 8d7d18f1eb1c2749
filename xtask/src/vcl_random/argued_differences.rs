//! The closed list of what may differ, xtask/vcl-random/argued.toml: each entry says which place, with which values and
//! under which conditions, and why; what no entry fits must not differ.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use serde::Deserialize;

use super::answer_comparison::Difference;
use super::replayed_case::Case;
use crate::project::Project;

const FILE: &str = "xtask/vcl-random/argued.toml";

pub struct ArguedDifferences {
    entries: Vec<Entry>,
    matched: Vec<AtomicU64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    argued: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// As `Place` is written: `status`, `field age`, `origin count`.
    place: String,
    /// What they say, with stars for any text.
    larder: String,
    varnish: String,
    /// Words that the program must have, with stars; and the request, which is written as `GET /a, X-A: 1`.
    program: Option<String>,
    request: Option<String>,
    /// The request's method is one of these.
    #[serde(default)]
    methods: Vec<String>,
    /// And what Varnish's origin was asked because of it: a pass is told from a miss so.
    asked: Option<String>,
    /// The status of larder's answer.
    status: Option<String>,
    /// What else then differs because of it, and is not looked at.
    covers: Option<Covers>,
    /// Where in the documents it is argued.
    reason: String,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Covers {
    /// In the same request.
    Request,
    /// In that one, and in all that come after it: what is stored is no longer the same.
    Case,
}

impl ArguedDifferences {
    pub fn read(project: &Project) -> Result<ArguedDifferences, String> {
        ArguedDifferences::of(&project.read(FILE)?).map_err(|why| format!("{FILE}: {why}"))
    }

    fn of(text: &str) -> Result<ArguedDifferences, String> {
        let List { argued: entries } = toml::from_str(text).map_err(|error| error.to_string())?;
        if let Some(bare) = entries.iter().find(|entry| !entry.reason.contains("docs/")) {
            return Err(format!("'{}' has a reason that points to no document", bare.name()));
        }
        let matched = entries.iter().map(|_| AtomicU64::new(0)).collect();
        Ok(ArguedDifferences { entries, matched })
    }

    /// The first difference that no entry fits or covers.
    pub fn unlisted(&self, case: &Case, differences: &[Difference]) -> Option<Difference> {
        let (mut covered, mut end) = (Vec::new(), usize::MAX);
        let mut left = Vec::new();
        for difference in differences {
            if difference.step >= end {
                break;
            }
            match self.entry(case, difference).map(|entry| self.entries[entry].covers) {
                None => left.push(difference),
                Some(None) => {}
                Some(Some(Covers::Request)) => covered.push(difference.step),
                Some(Some(Covers::Case)) => end = difference.step,
            }
        }
        left.into_iter().find(|left| left.step < end && !covered.contains(&left.step)).cloned()
    }

    pub fn reason(&self, case: &Case, difference: &Difference) -> Option<&str> {
        self.entry(case, difference).map(|entry| self.entries[entry].reason.as_str())
    }

    /// Entries that fitted nothing.
    pub fn unused(&self) -> impl Iterator<Item = String> {
        let pairs = self.entries.iter().zip(&self.matched);
        pairs.filter(|(_, matched)| matched.load(SeqCst) == 0).map(|(entry, _)| entry.name())
    }

    fn entry(&self, case: &Case, difference: &Difference) -> Option<usize> {
        let found = self.entries.iter().position(|entry| entry.fits(case, difference))?;
        self.matched[found].fetch_add(1, SeqCst);
        Some(found)
    }
}

impl Entry {
    fn name(&self) -> String {
        format!("{}: larder '{}', Varnish '{}'", self.place, self.larder, self.varnish)
    }

    fn fits(&self, case: &Case, difference: &Difference) -> bool {
        let has = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|wanted| is_like(wanted, text));
        let request = case.requests.get(difference.step);
        let has_method = |method: &str| self.methods.iter().any(|known| known == method);
        let request_line = request.map(|request| request.short()).unwrap_or_default();
        self.place == difference.place.to_string()
            && is_like(&self.larder, &difference.larder)
            && is_like(&self.varnish, &difference.varnish)
            && has(&self.program, &case.vcl)
            && has(&self.request, &request_line)
            && (self.methods.is_empty() || request.is_some_and(|request| has_method(request.method())))
            && has(&self.asked, &difference.asked)
            && has(&self.status, &difference.status)
    }
}

/// Whether the text is the pattern, in which a star stands for any text.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match text.find(piece) {
            Some(at) => text = &text[at + piece.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vcl_random::answer_comparison::Place;

    const LIST: &str = "[[argued]]\nplace = 'status'\nlarder = '50*'\nvarnish = '200'\nrequest = 'POST *'\ncovers = 'case'\n\
        reason = 'docs/vcl.md'\n[[argued]]\nplace = 'reason'\nlarder = '*'\nvarnish = 'Ok'\nreason = 'docs/vcl.md'\n";

    fn check(method: &str, differences: &[(usize, Place, &str, &str)], unlisted: Option<usize>) {
        let requests = format!("vcl = ''\n[[request]]\nline = '{method} /'\n[[request]]\nline = 'GET /'\n");
        let case = Case::read(&requests).expect("a case");
        let difference = |(step, place, larder, varnish): &(usize, Place, &str, &str)| Difference {
            step: *step,
            place: place.clone(),
            larder: larder.to_string(),
            varnish: varnish.to_string(),
            asked: String::new(),
            status: String::new(),
        };
        let differences: Vec<Difference> = differences.iter().map(difference).collect();
        let list = ArguedDifferences::of(LIST).expect("a list");
        assert_eq!(list.unlisted(&case, &differences), unlisted.map(|which| differences[which].clone()));
    }

    #[test]
    fn only_what_is_argued_may_differ() {
        check("GET", &[(0, Place::Reason, "x", "Ok")], None);
        check("GET", &[(0, Place::Reason, "x", "OK")], Some(0));
        check("GET", &[(0, Place::Status, "503", "200")], Some(0));
        check("POST", &[(0, Place::Status, "503", "200"), (1, Place::Body, "a", "b")], None);
        check("POST", &[(0, Place::Body, "a", "b"), (0, Place::Status, "503", "200")], None);
        check("POST", &[(0, Place::Body, "a", "b"), (1, Place::Status, "503", "200")], Some(0));
    }

    #[test]
    fn stars_stand_for_any_text() {
        assert!(is_like("a*c*", "abcd") && is_like("*", "") && is_like("a", "a") && is_like("*b*d", "abcd"));
        assert!(!is_like("a*c", "abcd") && !is_like("a", "ab") && !is_like("*bb*", "abc"));
    }
}
