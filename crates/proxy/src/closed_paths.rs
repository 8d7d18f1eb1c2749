//! Paths of a route that nobody is answered for, by regular expressions, as another server's configuration guards them. They are held
//! against the path as nginx would see it, decoded, with one slash for many and without dots, and as it was sent: no other
//! spelling is a way round them.

use vcl::Pattern;

/// The expressions of a route, in the syntax of PCRE2.
#[derive(Debug)]
pub struct ClosedPaths(Vec<Pattern>);

impl ClosedPaths {
    /// The error names the expression that is none.
    pub fn new<'a>(written: impl IntoIterator<Item = &'a str>) -> Result<ClosedPaths, String> {
        let patterns = written.into_iter().map(|text| Pattern::checked(text.as_bytes()));
        let patterns = patterns.collect::<Result<Vec<_>, _>>()?;
        patterns.iter().for_each(Pattern::prepare);
        Ok(ClosedPaths(patterns))
    }

    /// Is the path closed in any of its meanings? So is one that has none.
    pub fn close(&self, path: &[u8]) -> bool {
        meanings(path).is_none_or(|meanings| meanings.iter().any(|meaning| self.match_as_it_is(meaning)))
    }

    /// The same of one spelling. An expression that reaches its limits matches: what is not known to be open is not.
    pub(crate) fn match_as_it_is(&self, path: &[u8]) -> bool {
        self.closing(path).is_some()
    }

    /// The first expression that closes this spelling.
    pub(crate) fn closing(&self, path: &[u8]) -> Option<&Pattern> {
        self.0.iter().find(|pattern| pattern.is_match(path).unwrap_or(true))
    }
}

/// Has the path one meaning alone, as it stands? Then there is nothing to decode and no dot to follow.
#[inline]
pub(crate) fn means_itself(path: &[u8]) -> bool {
    path.starts_with(b"/") && !path.contains(&b'%') && !path.windows(2).any(|two| matches!(two, b"//" | b"/."))
}

/// What a path may mean to those who are asked for it: as it was sent, decoded before its dots are followed and after. `None` where
/// it cannot be decoded, leads above the root, or has a NUL, behind which programs written in C see nothing.
pub(crate) fn meanings(path: &[u8]) -> Option<[Vec<u8>; 4]> {
    let decoded_first = without_dots(&decoded(path)?)?;
    let segments: Option<Vec<Vec<u8>>> = path.split(|&b| b == b'/').map(decoded).collect();
    let mut dots_first: Vec<Vec<u8>> = Vec::new();
    for segment in segments? {
        match &segment[..] {
            b"" | b"." => {}
            b".." => drop(dots_first.pop()?),
            _ => dots_first.push(segment),
        }
    }
    let mut by_segments = vec![b'/'];
    by_segments.extend_from_slice(&dots_first.join(&b'/'));
    if decoded_first.ends_with(b"/") && !dots_first.is_empty() {
        by_segments.push(b'/');
    }
    let by_empty_segments = with_empty_segments(&decoded(path)?);
    Some([path.to_vec(), decoded_first, by_segments, by_empty_segments])
}

/// As RFC 3986 §5.2.4 and browsers read it: an empty segment is one, which a `..` behind it takes away. Those that are left are one slash.
fn with_empty_segments(path: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in path.strip_prefix(b"/").unwrap_or(path).split(|&b| b == b'/') {
        match segment {
            b"." => {}
            b".." => drop(segments.pop()),
            plain => segments.push(plain),
        }
    }
    let is_directory = matches!(path.rsplit(|&b| b == b'/').next(), Some(b"" | b"." | b".."));
    segments.retain(|segment| !segment.is_empty());
    let mut out = vec![b'/'];
    out.extend_from_slice(&segments.join(&b'/'));
    if is_directory && !segments.is_empty() {
        out.push(b'/');
    }
    out
}

/// Does a path lead above its root in one of its meanings? What an origin makes of that is unknown, so none is asked. Escapes that are
/// none stand for themselves.
pub(crate) fn leads_above_root(path: &[u8]) -> bool {
    let mut depth = 0usize;
    let may = path.windows(2).any(|pair| pair == b".." || pair[0] == b'%');
    may && (without_dots(&leniently_decoded(path)).is_none()
        || path.split(|&b| b == b'/').any(|segment| match &leniently_decoded(segment)[..] {
            b"" | b"." => false,
            b".." => depth.checked_sub(1).map(|left| depth = left).is_none(),
            _ => {
                depth += 1;
                false
            }
        }))
}

/// Is there a segment of dots alone, however it is spelt?
pub(crate) fn has_dot_segments(path: &[u8]) -> bool {
    leniently_decoded(path).split(|&b| b == b'/').any(|segment| matches!(segment, b"." | b".."))
}

/// Empty and `.` segments left out, `..` followed.
fn without_dots(path: &[u8]) -> Option<Vec<u8>> {
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in path.split(|&b| b == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => drop(segments.pop()?),
            plain => segments.push(plain),
        }
    }
    let is_directory = matches!(path.rsplit(|&b| b == b'/').next(), Some(b"" | b"." | b".."));
    let mut out = vec![b'/'];
    out.extend_from_slice(&segments.join(&b'/'));
    if is_directory && !segments.is_empty() {
        out.push(b'/');
    }
    Some(out)
}

/// `None` where an escape is none, or a NUL.
fn decoded(path: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(path.len());
    let mut bytes = path.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        match (digit()? << 4 | digit()?) as u8 {
            0 => return None,
            byte => out.push(byte),
        }
    }
    Some(out)
}

fn leniently_decoded(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&first, behind)) = rest.split_first() {
        let escaped = rest.get(..3).filter(|_| first == b'%').and_then(decoded);
        out.push(escaped.as_ref().map_or(first, |byte| byte[0]));
        rest = if escaped.is_some() { &rest[3..] } else { behind };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(patterns: &[&str], path: &str, expect: bool) {
        let closed = ClosedPaths::new(patterns.iter().copied()).unwrap();
        assert_eq!(closed.close(path.as_bytes()), expect, "{patterns:?} {path}");
    }

    #[test]
    fn no_spelling_is_a_way_round() {
        let patterns = [r"^/(?:config|data)(?:$|/)", r"(?i)\.php(?:$|/)", r"/\.(?!well-known)"];
        for path in [
            "/config/config.php",
            "/config",
            "/%63onfig/x",
            "//config/x",
            "/a/../config/x",
            "/a/%2e%2e/config/x",
            "/./data/",
            "/config%2Fx",
            "/config//../config/x",
            "/a/..//config",
            "/a.PHP",
            "/a.php/b",
            "/a.ph%70",
            "/.git/config",
            "/a/.htaccess",
            "/%2egit",
            "/x.php%2f",
            "/x%2fy/../config/secret.txt",
        ] {
            check(&patterns, path, true);
        }
        for path in ["/", "/configs", "/a/config", "/a.phps", "/.well-known/acme", "/index.html", "/%63onfigs"] {
            check(&patterns, path, false);
        }
    }

    #[test]
    fn what_leads_above_its_root_is_known_in_every_spelling() {
        for path in ["/..", "/../x", "/%2e%2e/x", "/a/../../b", "/.%2E/", "/a/..%2f..%2fb", "//../x", "/%zz/../../x"] {
            assert!(leads_above_root(path.as_bytes()), "{path}");
        }
        for path in ["/", "/a/../b", "/a/..", "/..a/b", "/a..", "/static/..%2faccount", "/%zz", "/...", "/..;/x", "*"] {
            assert!(!leads_above_root(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_closed() {
        for path in ["/%zz", "/%4", "/..", "/a/../../b", "/%2e%2e/a", "/a.php%00", "/a.php%00.html", "/x%2500/%00"] {
            check(&["^/never$"], path, true);
        }
        assert!(ClosedPaths::new(["(a"]).is_err());
    }
}
