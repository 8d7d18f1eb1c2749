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

    /// By its letters, as cookies and parameters are told apart.
    #[inline]
    pub fn is_match(&self, name: &[u8]) -> bool {
        let [first, middle @ .., last] = &*self.parts else { return *name == *self.parts[0] };
        let Some(mut rest) = name.strip_prefix(&**first) else { return false };
        for part in middle {
            match find(rest, part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }

    /// Does one of them match?
    #[inline]
    pub fn any(patterns: &[NamePattern], name: &[u8]) -> bool {
        patterns.iter().any(|pattern| pattern.is_match(name))
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() { Some(0) } else { text.windows(part.len()).position(|window| window == part) }
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
}
