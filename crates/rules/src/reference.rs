//! A URI reference from a field, resolved against the request's own URI (RFC 3986 §5), as far as it stays on the
//! same origin: only there may one answer touch what is stored for another URI.

use message::{Authority, Request};

/// Path and query of a resource on the origin of the request it was resolved against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub path: Vec<u8>,
    pub query: Option<Vec<u8>>,
}

impl Location {
    /// `None` when it is on another origin (RFC 9111 §4.4) or is no reference. The fragment is dropped.
    pub fn resolve(request: &Request<'_>, reference: &[u8]) -> Option<Location> {
        if !reference.iter().all(|b| b.is_ascii_graphic() || *b >= 0x80) {
            return None;
        }
        let reference = until(reference, b'#').0;
        let (hierarchy, query) = until(reference, b'?');
        let query = query.map(<[u8]>::to_vec);
        let after_scheme = match scheme(hierarchy) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(request.scheme.text().as_bytes()) => {
                // A scheme is followed by an authority, or it is not one of ours.
                rest.strip_prefix(b"//").map(|_| rest)?
            }
            Some(_) => return None,
            None => hierarchy,
        };
        if let Some(rest) = after_scheme.strip_prefix(b"//") {
            let path_at = rest.iter().position(|&b| b == b'/').unwrap_or(rest.len());
            let (authority, path) = rest.split_at(path_at);
            let same = Authority::parse(authority, request.scheme).is_some_and(|given| given == request.authority);
            let path = if path.is_empty() { &b"/"[..] } else { path };
            return same.then(|| Location { path: without_dots(path), query });
        }
        Some(match after_scheme {
            [] => Location { path: request.path.to_vec(), query: query.or_else(|| request.query.map(<[u8]>::to_vec)) },
            [b'/', ..] => Location { path: without_dots(after_scheme), query },
            relative => {
                let base_end = request.path.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
                let merged = [&request.path[..base_end], relative].concat();
                Location { path: without_dots(&merged), query }
            }
        })
    }
}

/// What is before the first such byte, and what is behind it.
fn until(text: &[u8], mark: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|&b| b == mark) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// RFC 3986 §3.1: letters, digits, `+-.`, then a colon, before any slash.
fn scheme(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (scheme, rest) = until(text, b':');
    let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b));
    Some((scheme, rest?)).filter(|_| is_scheme)
}

/// RFC 3986 §5.2.4: `.` and `..` segments removed.
fn without_dots(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut segments = path.split(|&b| b == b'/').peekable();
    // The empty one before the leading slash.
    segments.next();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            b"." | b".." => {
                if segment == b".." {
                    kept.pop();
                }
                if last {
                    kept.push(b"");
                }
            }
            _ => kept.push(segment),
        }
    }
    let mut out = Vec::with_capacity(path.len());
    for segment in &kept {
        out.push(b'/');
        out.extend_from_slice(segment);
    }
    if out.is_empty() {
        out.push(b'/');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::request;

    fn check(reference: &str, expect: Option<&str>) {
        let none = message::Fields::default();
        let got = Location::resolve(&request("GET /b/c/d;p?q", &none), reference.as_bytes()).map(|location| {
            let query = location.query.map(|query| format!("?{}", String::from_utf8_lossy(&query)));
            String::from_utf8_lossy(&location.path).into_owned() + &query.unwrap_or_default()
        });
        assert_eq!(got.as_deref(), expect, "{reference:?}");
    }

    /// RFC 3986 §5.4, as far as it ends on the same origin.
    #[test]
    fn references_are_resolved() {
        check("g", Some("/b/c/g"));
        check("./g", Some("/b/c/g"));
        check("g/", Some("/b/c/g/"));
        check("/g", Some("/g"));
        check("?y", Some("/b/c/d;p?y"));
        check("g?y", Some("/b/c/g?y"));
        check("#s", Some("/b/c/d;p?q"));
        check("g#s", Some("/b/c/g"));
        check(";x", Some("/b/c/;x"));
        check("", Some("/b/c/d;p?q"));
        check(".", Some("/b/c/"));
        check("..", Some("/b/"));
        check("../g", Some("/b/g"));
        check("../../g", Some("/g"));
        check("../../../../g", Some("/g"));
        check("/./g", Some("/g"));
        check("/../g", Some("/g"));
        check("g.", Some("/b/c/g."));
        check("g/./h", Some("/b/c/g/h"));
        check("g/../h", Some("/b/c/h"));
        check("g?y/../x", Some("/b/c/g?y/../x"));
        check("/a//b", Some("/a//b"));
        check("?", Some("/b/c/d;p?"));
        check("/\u{80}", Some("/\u{80}"));
        check("1a:g", Some("/b/c/1a:g"));
        check(":g", Some("/b/c/:g"));
        check("a*b:g", Some("/b/c/a*b:g"));
        check("http://t.test/g", Some("/g"));
        check("HTTP://T.TEST:80/g?y#s", Some("/g?y"));
        check("http://t.test", Some("/"));
        check("http://t.test?y", Some("/?y"));
        check("//t.test/g", Some("/g"));
    }

    /// RFC 9111 §4.4: "different origins" are left alone.
    #[test]
    fn other_origins_and_junk_are_none() {
        for reference in [
            "http://other.test/g",
            "//other.test/g",
            "https://t.test/g",
            "http://t.test:81/g",
            "http://u@t.test/g",
            "http:g",
            "mailto:a@t.test",
            "/a b",
            "/a\u{7f}",
            "http://",
        ] {
            check(reference, None);
        }
    }
}
