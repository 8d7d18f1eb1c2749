//! Names of cookies, parameters and fields as an operator writes them: a `*` stands for any text.

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

    /// Does one of them match?
    #[inline]
    pub fn any(patterns: &[NamePattern], name: &[u8]) -> bool {
        patterns.iter().any(|pattern| pattern.is_match(name))
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
