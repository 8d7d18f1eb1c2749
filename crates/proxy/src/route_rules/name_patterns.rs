//! Names of cookies, parameters, fields and sites as an operator writes them: a `*` stands for any text, of a site for what hosts are made of.

/// A name, or names that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    /// What stands between the stars.
    parts: Box<[Box<[u8]>]>,
}

impl NamePattern {
    pub fn new(written: &str) -> NamePattern {
        NamePattern { parts: written.split('*').map(|part| part.as_bytes().into()).collect() }
    }

    /// What stands between the stars, the first at the beginning and the last at the end.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(|part| &**part)
    }

    /// By its letters, as cookies and parameters are told apart.
    #[inline]
    pub fn is_match(&self, name: &[u8]) -> bool {
        self.is_match_by(name, |text, part| text == part)
    }

    /// Letters are alike whether they are large or small, as in names of fields.
    #[inline]
    pub fn is_match_of_field(&self, name: &[u8]) -> bool {
        self.is_match_by(name, <[u8]>::eq_ignore_ascii_case)
    }

    /// A site, as `https://app.example:8080`. A star stands for letters, digits, dashes and dots: not for what begins a port, a path, a query or
    /// a fragment, behind which somebody else's host may end as ours does.
    pub(crate) fn is_match_of_site(&self, site: &[u8]) -> bool {
        // The parts lie in the site one behind the other, and what is in none of them is the stars'.
        let others =
            |text: &[u8]| text.iter().filter(|byte| !byte.is_ascii_alphanumeric() && !b"-.".contains(byte)).count();
        self.is_match(site) && others(site) == self.parts().map(others).sum()
    }

    /// `is_same` is asked about texts of equal length.
    #[inline]
    fn is_match_by(&self, name: &[u8], is_same: impl Fn(&[u8], &[u8]) -> bool) -> bool {
        let [first, middle @ .., last] = &*self.parts else {
            return name.len() == self.parts[0].len() && is_same(name, &self.parts[0]);
        };
        if name.len() < first.len() || !is_same(&name[..first.len()], first) {
            return false;
        }
        let mut rest = &name[first.len()..];
        for part in middle.iter().filter(|part| !part.is_empty()) {
            match rest.windows(part.len()).position(|window| is_same(window, part)) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.len() >= last.len() && is_same(&rest[rest.len() - last.len()..], last)
    }

    /// Is it every name?
    pub(crate) fn is_any(&self) -> bool {
        self.parts.iter().all(|part| part.is_empty()) && self.parts.len() > 1
    }

    /// Does one of them match?
    #[inline]
    pub fn any(patterns: &[NamePattern], name: &[u8]) -> bool {
        patterns.iter().any(|pattern| pattern.is_match(name))
    }
}

/// The names of two lists, of which either may be missing.
pub(crate) fn of_both(one: Option<Vec<NamePattern>>, other: Option<Vec<NamePattern>>) -> Option<Vec<NamePattern>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.into_iter().chain(other).collect()),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, yes, no) in [
            ("utm_*", &["utm_", "utm_source"][..], &["utm", "xutm_a"][..]),
            ("*session*", &["session", "PHPsessionid", "a_session"], &["sess", "Session"]),
            ("a*b*c", &["abc", "axbxc", "abbc", "abcbc"], &["ab", "acb", "abcx"]),
            ("sid", &["sid"], &["sid2", "si", "SID"]),
            ("*", &["", "x"], &[]),
            ("a*a", &["aa", "aba"], &["a"]),
        ] {
            let made = NamePattern::new(pattern);
            yes.iter().for_each(|name| assert!(made.is_match(name.as_bytes()), "{pattern} {name}"));
            no.iter().for_each(|name| assert!(!made.is_match(name.as_bytes()), "{pattern} {name}"));
        }
    }

    #[test]
    fn a_star_of_a_site_stands_for_what_hosts_are_made_of() {
        for (pattern, yes, no) in [
            (
                "https://*.example",
                &["https://a.example", "https://a-1.b.example"][..],
                &[
                    "https://evil.com/.example",
                    "https://evil.com#.example",
                    "https://evil.com?.example",
                    "https://evil.com .example",
                    "https://evil.com:1.example",
                    "https://a@b.example",
                    "https://a.example:8080",
                    "http://a.example",
                ][..],
            ),
            (
                "https://*.example:*",
                &["https://a.example:8080"],
                &["https://a.example", "https://a.example:1/", "https://a:1.example:2"],
            ),
            ("http://localhost:*", &["http://localhost:3000"], &["http://localhost", "http://localhost:1:2"]),
            ("https://a.example", &["https://a.example"], &["https://b.example", "https://a.example/"]),
        ] {
            let made = NamePattern::new(pattern);
            yes.iter().for_each(|site| assert!(made.is_match_of_site(site.as_bytes()), "{pattern} {site}"));
            no.iter().for_each(|site| assert!(!made.is_match_of_site(site.as_bytes()), "{pattern} {site}"));
        }
    }

    #[test]
    fn names_of_fields_are_alike_in_large_and_small_letters() {
        for (pattern, yes, no) in [
            ("x-*-debug", &["X-App-Debug", "x--debug", "X-a-DEBUG-debug"][..], &["X-Debug", "X-App-Debugs"][..]),
            ("*cookie*", &["Set-Cookie", "COOKIE2"], &["Cook-ie"]),
            ("Server", &["server", "SERVER"], &["Servers", "serve"]),
        ] {
            let made = NamePattern::new(pattern);
            yes.iter().for_each(|name| assert!(made.is_match_of_field(name.as_bytes()), "{pattern} {name}"));
            no.iter().for_each(|name| assert!(!made.is_match_of_field(name.as_bytes()), "{pattern} {name}"));
        }
    }
}
