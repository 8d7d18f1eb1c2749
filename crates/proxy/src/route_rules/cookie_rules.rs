//! Which cookies of a request make a difference, and which send it past the store.

use message::FieldName;
use message::FieldsView;

use crate::route_rules::known_names;
use crate::route_rules::name_patterns::{self, NamePattern};

/// What becomes of cookies where something is only read.
#[derive(Clone, Debug, Default)]
pub struct CookieRules {
    /// A request with one of these goes past the store, with all its cookies.
    pub bypass: Vec<NamePattern>,
    /// These are taken out.
    pub stripped: Vec<NamePattern>,
    /// Where responses are stored all but these are taken out; a stored one is for who has the same of them. `None`: all stay.
    pub kept: Option<Vec<NamePattern>>,
}

/// What the cookies of a request matter for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CookieUse {
    /// Cookies by which visits are counted make no difference.
    pub(crate) ignores_tracking: bool,
    /// The response may be stored.
    pub(crate) is_stored: bool,
}

/// What the rules make of a request's cookies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CookieVerdict {
    AsTheyAre,
    Bypass,
    /// What is left was written, sorted by name where it is part of the selection; nothing: there is no Cookie.
    Cut,
}

impl CookieRules {
    /// These and what was said before: each name that is listed in either. What is kept now is not taken out by a `*` of before.
    pub fn beside(self, before: CookieRules) -> CookieRules {
        let takes_all = |name: &NamePattern| self.kept.is_some() && name.is_any();
        let stripped_before = before.stripped.into_iter().filter(|name| !takes_all(name));
        CookieRules {
            stripped: stripped_before.chain(self.stripped.iter().cloned()).collect(),
            bypass: before.bypass.into_iter().chain(self.bypass).collect(),
            kept: name_patterns::of_both(before.kept, self.kept),
        }
    }

    /// May a request with cookies become another one?
    pub fn acts(&self) -> bool {
        !self.bypass.is_empty() || !self.stripped.is_empty() || self.kept.is_some()
    }

    /// Is what is left of the cookies part of what selects a response?
    pub(crate) fn select(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| !kept.is_empty())
    }

    /// Where nothing is stored no cookie has to be left out for others: what is kept has no say then.
    pub(crate) fn judge(&self, fields: FieldsView<'_>, read: CookieUse, out: &mut Vec<u8>) -> CookieVerdict {
        if !self.bypass.is_empty() && crumbs(fields).any(|crumb| NamePattern::any(&self.bypass, name_of(crumb))) {
            return CookieVerdict::Bypass;
        }
        out.clear();
        let mut is_cut = false;
        for crumb in crumbs(fields) {
            if self.cuts(name_of(crumb), read) {
                is_cut = true;
                continue;
            }
            if !out.is_empty() {
                out.extend_from_slice(b"; ");
            }
            out.extend_from_slice(crumb);
        }
        if self.select() && read.is_stored {
            sort(out);
            is_cut = true;
        }
        if is_cut { CookieVerdict::Cut } else { CookieVerdict::AsTheyAre }
    }

    /// The names of those for which a request goes past the store.
    pub(crate) fn bypassing<'a>(&self, fields: FieldsView<'a>) -> Vec<&'a [u8]> {
        names(fields).into_iter().filter(|name| NamePattern::any(&self.bypass, name)).collect()
    }

    fn cuts(&self, name: &[u8], read: CookieUse) -> bool {
        NamePattern::any(&self.stripped, name)
            || read.is_stored && self.kept.as_ref().is_some_and(|kept| !NamePattern::any(kept, name))
            || read.ignores_tracking && known_names::COOKIES.hold(name)
    }
}

/// The same cookies in another order select the same.
fn sort(cookies: &mut Vec<u8>) {
    let mut all: Vec<&[u8]> = cookies.split(|&byte| byte == b';').map(<[u8]>::trim_ascii).collect();
    if !all.is_sorted() {
        all.sort_unstable();
        *cookies = all.join(&b"; "[..]);
    }
}

/// Each cookie of a request: `name=value` (RFC 6265 §4.2.1).
fn crumbs<'a>(fields: FieldsView<'a>) -> impl Iterator<Item = &'a [u8]> {
    let lines = fields.get_all(FieldName::Cookie).flat_map(|line| line.split(|&byte| byte == b';'));
    lines.map(<[u8]>::trim_ascii).filter(|crumb| !crumb.is_empty())
}

fn name_of(crumb: &[u8]) -> &[u8] {
    crumb.split(|&byte| byte == b'=').next().unwrap_or_default().trim_ascii()
}

/// The names of a request's cookies.
pub(crate) fn names(fields: FieldsView<'_>) -> Vec<&[u8]> {
    crumbs(fields).map(name_of).collect()
}

/// The same to be shown: what has no name is a value (RFC 6265bis §5.6), and is not.
pub(crate) fn shown_names(fields: FieldsView<'_>) -> Vec<&[u8]> {
    crumbs(fields).map(|crumb| if crumb.contains(&b'=') { name_of(crumb) } else { b"one without a name" }).collect()
}

/// The value of a cookie, if the request has it.
pub(crate) fn value_of<'a>(fields: FieldsView<'a>, name: &[u8]) -> Option<&'a [u8]> {
    let crumb = crumbs(fields).find(|crumb| name_of(crumb) == name)?;
    crumb.iter().position(|&byte| byte == b'=').map(|at| crumb[at + 1..].trim_ascii())
}

#[cfg(test)]
mod tests {
    use message::Fields;

    use super::*;

    fn patterns(names: &[&str]) -> Vec<NamePattern> {
        names.iter().map(|name| NamePattern::new(name)).collect()
    }

    fn check(rules: &CookieRules, lines: &[&str], expect: (CookieVerdict, &str)) {
        check_read(rules, lines, true, expect);
    }

    fn check_read(rules: &CookieRules, lines: &[&str], is_stored: bool, expect: (CookieVerdict, &str)) {
        let mut fields = Fields::default();
        lines.iter().for_each(|line| fields.push(FieldName::Cookie, line));
        let mut out = Vec::new();
        let verdict = rules.judge(fields.view(), CookieUse { ignores_tracking: true, is_stored }, &mut out);
        let left = if verdict == CookieVerdict::Cut { String::from_utf8(out).unwrap() } else { String::new() };
        assert_eq!((verdict, &*left), expect, "{lines:?}");
    }

    #[test]
    fn some_go_past_the_store_with_all_that_they_have() {
        let rules =
            CookieRules { bypass: patterns(&["logged_in_*"]), kept: Some(Vec::new()), ..CookieRules::default() };
        check(&rules, &["a=1; logged_in_7=x"], (CookieVerdict::Bypass, ""));
        check(&rules, &["a=1", "logged_in_=x"], (CookieVerdict::Bypass, ""));
        check(&rules, &["a=logged_in_7"], (CookieVerdict::Cut, ""));
    }

    #[test]
    fn what_is_taken_out_is_gone_and_the_rest_stays() {
        let rules = CookieRules { stripped: patterns(&["x"]), ..CookieRules::default() };
        check(&rules, &["_ga=1; a=2;x=3 ; b"], (CookieVerdict::Cut, "a=2; b"));
        check(&rules, &["a=2; b"], (CookieVerdict::AsTheyAre, ""));
        check(&rules, &["_gid=1; _fbp=2"], (CookieVerdict::Cut, ""));
    }

    #[test]
    fn what_is_kept_is_the_same_in_any_order() {
        let rules = CookieRules { kept: Some(patterns(&["lang", "cur"])), ..CookieRules::default() };
        for line in ["lang=de; a=1; cur=eur", "cur=eur; lang=de"] {
            check(&rules, &[line], (CookieVerdict::Cut, "cur=eur; lang=de"));
        }
    }

    #[test]
    fn what_is_not_stored_has_all_cookies_that_nobody_takes_out() {
        let rules = CookieRules { kept: Some(patterns(&["b"])), stripped: patterns(&["x"]), ..CookieRules::default() };
        check_read(&rules, &["b=1; a=2"], false, (CookieVerdict::AsTheyAre, ""));
        check_read(&rules, &["b=1; a=2; x=3; _ga=4"], false, (CookieVerdict::Cut, "b=1; a=2"));
        check_read(&rules, &["b=1; a=2"], true, (CookieVerdict::Cut, "b=1"));
    }
}
