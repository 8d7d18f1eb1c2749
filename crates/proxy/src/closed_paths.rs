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

    /// Is the path closed? So is one that means nothing, and one over which an expression reaches its limits: what is not known
    /// to be open is not.
    pub fn close(&self, path: &[u8]) -> bool {
        self.why_not(path).is_some()
    }

    /// Why nobody is answered for the path; `None` if it is open.
    pub(crate) fn why_not(&self, path: &[u8]) -> Option<WhyNot> {
        let Some(plain) = normalized(path) else { return Some(WhyNot::Meaningless) };
        let is_closed = self.0.iter().any(|pattern| is_match(pattern, path) || is_match(pattern, &plain));
        is_closed.then_some(WhyNot::Closed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhyNot {
    Closed,
    /// It cannot be decoded, or leads above the root.
    Meaningless,
}

fn is_match(pattern: &Pattern, path: &[u8]) -> bool {
    pattern.is_match(path).unwrap_or(true)
}

/// Every escape decoded once, empty and `.` segments left out, `..` followed.
fn normalized(path: &[u8]) -> Option<Vec<u8>> {
    let decoded = decoded(path)?;
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in decoded.split(|&b| b == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => drop(segments.pop()?),
            plain => segments.push(plain),
        }
    }
    let is_directory = matches!(decoded.rsplit(|&b| b == b'/').next(), Some(b"" | b"." | b".."));
    let mut out = vec![b'/'];
    out.extend_from_slice(&segments.join(&b'/'));
    if is_directory && !segments.is_empty() {
        out.push(b'/');
    }
    Some(out)
}

fn decoded(path: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(path.len());
    let mut bytes = path.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        out.push((digit()? << 4 | digit()?) as u8);
    }
    Some(out)
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
            "/a.PHP",
            "/a.php/b",
            "/a.ph%70",
            "/.git/config",
            "/a/.htaccess",
            "/%2egit",
            "/a/..",
            "/x.php%2f",
        ] {
            check(&patterns, path, path != "/a/..");
        }
        for path in ["/", "/configs", "/a/config", "/a.phps", "/.well-known/acme", "/index.html", "/%63onfigs"] {
            check(&patterns, path, false);
        }
    }

    #[test]
    fn what_cannot_be_read_is_closed() {
        for path in ["/%zz", "/%4", "/..", "/a/../../b", "/%2e%2e/a"] {
            check(&["^/never$"], path, true);
        }
        assert!(ClosedPaths::new(["(a"]).is_err());
    }
}
