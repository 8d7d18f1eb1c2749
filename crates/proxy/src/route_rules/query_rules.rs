//! What of a query makes a difference. The rest is cut off before anybody else sees the request: it is in no key, and no origin is asked for it.

use smallvec::SmallVec;

use crate::route_rules::known_names;
use crate::route_rules::name_patterns::{self, NamePattern};

/// So many parameters are sorted without memory of their own.
const PARAMETERS_USUAL: usize = 16;

/// What becomes of queries.
#[derive(Clone, Debug, Default)]
pub struct QueryRules {
    /// A request with one of these parameters goes past the store.
    pub bypass: Vec<NamePattern>,
    /// Parameters that make no difference.
    pub ignored: Vec<NamePattern>,
    /// Parameters that make one; no others do. `None`: all.
    pub kept: Option<Vec<NamePattern>>,
    /// Parameters in another order make none. Those of one name stay in theirs.
    pub sorts: bool,
}

impl QueryRules {
    /// These and what was said before: each name that is listed in either.
    pub fn beside(self, before: QueryRules) -> QueryRules {
        QueryRules {
            bypass: before.bypass.into_iter().chain(self.bypass).collect(),
            ignored: before.ignored.into_iter().chain(self.ignored).collect(),
            kept: name_patterns::of_both(before.kept, self.kept),
            sorts: before.sorts || self.sorts,
        }
    }

    /// Does a query have a parameter that leads past the store?
    pub(crate) fn bypasses(&self, query: &[u8]) -> bool {
        !self.bypass.is_empty()
            && query.split(|&byte| byte == b'&').any(|pair| NamePattern::any(&self.bypass, name_of(&pair)))
    }

    /// The names of those that do.
    pub(crate) fn bypassing<'a>(&self, query: &'a [u8]) -> Vec<&'a [u8]> {
        let names = query.split(|&byte| byte == b'&').map(|pair| name_of(&pair));
        names.filter(|name| NamePattern::any(&self.bypass, name)).collect()
    }

    /// May a query become another one?
    pub fn acts(&self) -> bool {
        !self.ignored.is_empty() || self.kept.is_some() || self.sorts
    }

    /// Writes what is left of a query. False: it is as it was, and what was written means nothing. `ignores_tracking`: parameters by which visits
    /// are counted make no difference either.
    pub(crate) fn cut(&self, query: &[u8], ignores_tracking: bool, out: &mut Vec<u8>) -> bool {
        let mut left: SmallVec<[&[u8]; PARAMETERS_USUAL]> = SmallVec::new();
        left.extend(query.split(|&byte| byte == b'&').filter(|pair| !self.cuts(name_of(pair), ignores_tracking)));
        if self.sorts {
            left.sort_by_key(name_of);
        }
        out.clear();
        for (at, pair) in left.iter().enumerate() {
            if at > 0 {
                out.push(b'&');
            }
            out.extend_from_slice(pair);
        }
        // A `?` with nothing left behind it is no query.
        left.is_empty() || *out != query
    }

    fn cuts(&self, name: &[u8], ignores_tracking: bool) -> bool {
        NamePattern::any(&self.ignored, name)
            || self.kept.as_ref().is_some_and(|kept| !NamePattern::any(kept, name))
            || ignores_tracking && known_names::PARAMETERS.hold(name)
    }
}

fn name_of<'a>(pair: &&'a [u8]) -> &'a [u8] {
    pair.split(|&byte| byte == b'=').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(names: &[&str]) -> Vec<NamePattern> {
        names.iter().map(|name| NamePattern::new(name)).collect()
    }

    fn check(rules: &QueryRules, query: &str, expect: Option<&str>) {
        let mut out = Vec::new();
        let got = rules.cut(query.as_bytes(), false, &mut out).then(|| String::from_utf8(out).unwrap());
        assert_eq!(got.as_deref(), expect, "{query}");
    }

    #[test]
    fn what_is_ignored_leaves_the_query() {
        let rules = QueryRules { ignored: patterns(&["utm_*", "gclid"]), ..QueryRules::default() };
        check(&rules, "a=1&utm_source=x&b=2", Some("a=1&b=2"));
        check(&rules, "gclid=1", Some(""));
        check(&rules, "gclids=1&autm_x=2", None);
        check(&rules, "a=1&a=2&&", None);
    }

    #[test]
    fn what_is_not_kept_leaves_it_and_the_rest_is_sorted() {
        let rules = QueryRules { kept: Some(patterns(&["id", "page"])), sorts: true, ..QueryRules::default() };
        check(&rules, "page=2&x=1&id=7", Some("id=7&page=2"));
        check(&rules, "id=2&id=1", None);
        check(&rules, "x", Some(""));
        // With nothing behind the question mark it is the same page as without one.
        check(&rules, "", Some(""));
        check(&QueryRules { ignored: patterns(&["a"]), ..QueryRules::default() }, "", None);
    }

    #[test]
    fn a_parameter_leads_past_the_store_wherever_it_stands() {
        let rules = QueryRules { bypass: patterns(&["rest_route", "wc-*"]), ..QueryRules::default() };
        for (query, expect) in [
            ("rest_route=/a", true),
            ("a=1&wc-ajax=x", true),
            ("rest_route", true),
            ("a=rest_route", false),
            ("rest_routes=1", false),
            ("", false),
        ] {
            assert_eq!(rules.bypasses(query.as_bytes()), expect, "{query}");
        }
        assert!(!QueryRules::default().bypasses(b"rest_route=1"));
    }

    #[test]
    fn visits_are_counted_by_names_that_are_known() {
        let (rules, mut out) = (QueryRules::default(), Vec::new());
        assert!(rules.cut(b"utm_source=a&fbclid=b&id=1", true, &mut out));
        assert_eq!(out, b"id=1");
        assert!(!rules.cut(b"utm_source=a", false, &mut out));
    }
}
