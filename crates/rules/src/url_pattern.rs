//! Which URLs a dictionary is for (RFC 9842 §2.1.1): patterns of the URL Pattern Standard, as far as they are paths and queries with
//! `*` in them. Regular expressions the RFC forbids; names, groups and modifiers nobody needs here, and who sends them is not obeyed.

use crate::limits::{URL_PATTERN_BYTES_MAX, URL_PATTERN_STARS_MAX};

/// The URLs of one origin that match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlPattern {
    path: Glob,
    /// `None`: any query, and none.
    query: Option<Glob>,
}

/// Why a text is no pattern that is understood here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternFlaw {
    /// It is longer than [`URL_PATTERN_BYTES_MAX`], or has more than [`URL_PATTERN_STARS_MAX`] stars.
    TooLong,
    /// `:name`, `{…}`, `(…)`, and `?` or `+` behind a star.
    NotOnlyStars,
    /// It names a fragment, or has bytes that no URL has.
    NoPath,
    /// It is of another origin.
    Elsewhere,
}

impl std::fmt::Display for PatternFlaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PatternFlaw::TooLong => "it is too long, or has too many stars",
            PatternFlaw::NotOnlyStars => {
                "of URL patterns `*` alone is understood here, not `:name`, `{…}`, `(…)`, `+` or `*?`"
            }
            PatternFlaw::NoPath => "it begins with / and has no # or space",
            PatternFlaw::Elsewhere => "it is of another origin",
        })
    }
}

/// What a pattern is read against: the URL of the response that has it.
#[derive(Clone, Copy, Debug)]
pub struct PatternBase<'a> {
    /// `https://` and the authority.
    pub origin: &'a [u8],
    /// Beginning with a slash.
    pub path: &'a [u8],
}

impl UrlPattern {
    /// `written`: a path, from the root or from where the base is, or a whole URL of its origin.
    pub fn parse(written: &[u8], base: PatternBase<'_>) -> Result<UrlPattern, PatternFlaw> {
        if written.len() > URL_PATTERN_BYTES_MAX {
            return Err(PatternFlaw::TooLong);
        }
        let rooted = match written.strip_prefix(base.origin) {
            Some(path) if path.starts_with(b"/") => path.to_vec(),
            _ if written.starts_with(b"//") || names_scheme(written) => return Err(PatternFlaw::Elsewhere),
            _ if written.starts_with(b"/") => written.to_vec(),
            _ => {
                let folder = base.path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
                [&escaped(&base.path[..folder])[..], written].concat()
            }
        };
        let (path, query) = Reader { rest: &rooted }.read()?;
        let is_within = path.stars() + query.as_ref().map_or(0, Glob::stars) <= URL_PATTERN_STARS_MAX;
        if is_within { Ok(UrlPattern { path, query }) } else { Err(PatternFlaw::TooLong) }
    }

    pub fn matches(&self, path: &[u8], query: Option<&[u8]>) -> bool {
        self.path.matches(path) && self.query.as_ref().is_none_or(|glob| glob.matches(query.unwrap_or_default()))
    }

    /// Does it match what lies at more than one path?
    pub fn is_of_many_paths(&self) -> bool {
        self.path.stars() > 0
    }
}

/// The pattern of a path and nothing else. `None`: of one that is too long, or has bytes that no pattern can name.
pub fn pattern_of_path(path: &[u8]) -> Option<String> {
    let escaped = escaped(path);
    let is_plain =
        path.starts_with(b"/") && escaped.len() <= URL_PATTERN_BYTES_MAX && path.iter().all(u8::is_ascii_graphic);
    is_plain.then(|| String::from_utf8(escaped).ok()).flatten()
}

/// What patterns give a meaning to stands for itself behind a backslash.
fn escaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        if b"*+?:{}()\\#".contains(&byte) {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}

/// `https://…`, or `*://…`.
fn names_scheme(written: &[u8]) -> bool {
    let end = written.iter().position(|&byte| byte == b'/').unwrap_or(written.len());
    end > 0 && written[end - 1] == b':'
}

/// Texts with anything between them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Glob {
    /// One more than there are stars.
    texts: Vec<Vec<u8>>,
}

impl Glob {
    fn stars(&self) -> usize {
        self.texts.len() - 1
    }

    /// The first as early as it can be, and the last at the end.
    fn matches(&self, text: &[u8]) -> bool {
        let (Some((first, others)), Some(last)) = (self.texts.split_first(), self.texts.last()) else { return false };
        if others.is_empty() {
            return text == &first[..];
        }
        let between = text.strip_prefix(&first[..]).and_then(|rest| rest.strip_suffix(&last[..]));
        let Some(mut rest) = between else { return false };
        for wanted in &others[..others.len() - 1] {
            let found = match wanted.len() {
                0 => Some(0),
                length => rest.windows(length).position(|window| window == &wanted[..]),
            };
            let Some(at) = found else { return false };
            rest = &rest[at + wanted.len()..];
        }
        true
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn read(mut self) -> Result<(Glob, Option<Glob>), PatternFlaw> {
        let (path, has_query) = self.glob()?;
        let query = if has_query { Some(self.glob()?.0) } else { None };
        Ok((path, query))
    }

    /// Up to the end, or to the `?` before a query.
    fn glob(&mut self) -> Result<(Glob, bool), PatternFlaw> {
        let mut texts = vec![Vec::new()];
        while let Some((&byte, rest)) = self.rest.split_first() {
            self.rest = rest;
            let byte = match byte {
                b'*' if rest.first().is_some_and(|next| b"?+*".contains(next)) => {
                    return Err(PatternFlaw::NotOnlyStars);
                }
                b'*' => {
                    texts.push(Vec::new());
                    continue;
                }
                b'?' => return Ok((Glob { texts }, true)),
                b'+' | b':' | b'{' | b'}' | b'(' | b')' => return Err(PatternFlaw::NotOnlyStars),
                b'\\' => {
                    let (&escaped, rest) = rest.split_first().ok_or(PatternFlaw::NoPath)?;
                    self.rest = rest;
                    escaped
                }
                b'#' => return Err(PatternFlaw::NoPath),
                other => other,
            };
            if !byte.is_ascii_graphic() {
                return Err(PatternFlaw::NoPath);
            }
            texts.last_mut().expect("there is one always").push(byte);
        }
        Ok((Glob { texts }, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: PatternBase<'_> = PatternBase { origin: b"https://a.test", path: b"/static/js/app.1.js" };

    fn parse(written: &str) -> Result<UrlPattern, PatternFlaw> {
        UrlPattern::parse(written.as_bytes(), BASE)
    }

    #[test]
    fn a_pattern_matches_urls() {
        for (written, url, expect) in [
            ("/app.js", "/app.js", true),
            ("/app.js", "/app.js?v=2", true),
            ("/app.js", "/app.jsx", false),
            ("/app.js", "/static/app.js", false),
            ("/app*.js", "/app.js", true),
            ("/app*.js", "/app.3f2a.js?v=1", true),
            ("/app*.js", "/app/deep/er.js", true),
            ("/app*.js", "/app.js.map", false),
            ("/app*.js", "/ap.js", false),
            ("/a*b*c", "/a-b-b-c", true),
            ("/a*b*c", "/abc", true),
            ("/a*b*c", "/ac", false),
            ("/a*bb*bc", "/abbbc", true),
            ("/a*bb*bbc", "/abbbc", false),
            ("/*", "/", true),
            ("/ab*ba", "/aba", false),
            ("app.*.js", "/static/js/app.2.js", true),
            ("app.*.js", "/app.2.js", false),
            ("../app.js", "/static/app.js", false),
            ("https://a.test/x/*", "/x/y", true),
            ("/x?v=*", "/x?v=1", true),
            ("/x?v=*", "/x", false),
            ("/x?v=*", "/x?w=1", false),
            ("/x?", "/x", true),
            ("/x?", "/x?v", false),
            ("/x\\*", "/x*", true),
            ("/x\\*", "/xy", false),
            ("/x\\?v", "/x?v", false),
        ] {
            let (path, query) = url.split_once('?').map_or((url, None), |(path, query)| (path, Some(query)));
            let pattern = parse(written).unwrap();
            assert_eq!(pattern.matches(path.as_bytes(), query.map(str::as_bytes)), expect, "{written} {url}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (written, flaw) in [
            ("/:name", PatternFlaw::NotOnlyStars),
            ("/(\\d+)", PatternFlaw::NotOnlyStars),
            ("/{a}?", PatternFlaw::NotOnlyStars),
            ("/a*?", PatternFlaw::NotOnlyStars),
            ("/a*+", PatternFlaw::NotOnlyStars),
            ("/a**", PatternFlaw::NotOnlyStars),
            ("/a+", PatternFlaw::NotOnlyStars),
            ("/a#b", PatternFlaw::NoPath),
            ("/a b", PatternFlaw::NoPath),
            ("/\u{e9}", PatternFlaw::NoPath),
            ("/a\\", PatternFlaw::NoPath),
            ("//b.test/", PatternFlaw::Elsewhere),
            ("https://b.test/a", PatternFlaw::Elsewhere),
            ("https://a.test", PatternFlaw::Elsewhere),
            ("http://a.test/a", PatternFlaw::Elsewhere),
            ("*://a.test/a", PatternFlaw::Elsewhere),
        ] {
            assert_eq!(parse(written), Err(flaw), "{written}");
        }
        let stars = |count| format!("/{}", "*a".repeat(count));
        assert!(parse(&stars(URL_PATTERN_STARS_MAX)).is_ok());
        assert_eq!(parse(&stars(URL_PATTERN_STARS_MAX + 1)), Err(PatternFlaw::TooLong));
        let long = |length| format!("/{}", "a".repeat(length - 1));
        assert!(parse(&long(URL_PATTERN_BYTES_MAX)).is_ok());
        assert_eq!(parse(&long(URL_PATTERN_BYTES_MAX + 1)), Err(PatternFlaw::TooLong));
    }

    #[test]
    fn a_path_has_a_pattern_that_matches_it_and_nothing_else() {
        for path in ["/", "/app.js", "/a+b(1)/{x}:y", "/a*b", "/a\\b", "/%C3%A9/a~b;c=1,d"] {
            let written = pattern_of_path(path.as_bytes()).unwrap();
            let pattern = parse(&written).unwrap();
            assert!(pattern.matches(path.as_bytes(), None) && !pattern.is_of_many_paths(), "{path} {written}");
            assert!(!pattern.matches(format!("{path}x").as_bytes(), None), "{path}");
        }
        assert_eq!(pattern_of_path(b"/\xc3\xa9"), None);
        assert_eq!(pattern_of_path(b"*"), None);
        assert_eq!(pattern_of_path(&[&b"/"[..], &[b'*'; URL_PATTERN_BYTES_MAX]].concat()), None);
        assert!(parse("/a*").unwrap().is_of_many_paths());
        assert!(!parse("/a?*").unwrap().is_of_many_paths());
    }
}
