//! From the path of a request to the name of a file beneath a root: split at slashes first, each segment decoded once,
//! so that no spelling of a slash or of `..` becomes one afterwards. Pure; it knows no file system.

/// A path that may name something beneath a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilePath {
    /// Decoded segments joined by slashes, none before the first; empty: the root itself.
    pub(crate) relative: Vec<u8>,
    /// It ends in a slash.
    pub(crate) is_directory: bool,
}

/// Why a path names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPath {
    /// A broken escape, a NUL, or more `..` than there are segments before them.
    Malformed,
    /// No file can have that name, or none that is shown.
    Hidden,
}

/// RFC 8615: made to be asked for, dot or not.
const WELL_KNOWN: &[u8] = b".well-known";

impl FilePath {
    pub(crate) fn read(path: &[u8], shows_dotfiles: bool) -> Result<FilePath, NoPath> {
        let path = path.strip_prefix(b"/").ok_or(NoPath::Malformed)?;
        let mut segments: Vec<Vec<u8>> = Vec::new();
        let mut is_directory = true;
        for written in path.split(|&b| b == b'/') {
            let segment = decoded(written)?;
            is_directory = matches!(&segment[..], b"" | b"." | b"..");
            match &segment[..] {
                b"" | b"." => {}
                b".." => drop(segments.pop().ok_or(NoPath::Malformed)?),
                _ => segments.push(segment),
            }
        }
        let is_hidden = |(at, segment): (usize, &Vec<u8>)| {
            let is_dotfile = segment[0] == b'.' && !(at == 0 && segment == WELL_KNOWN);
            segment.contains(&b'/') || is_dotfile && !shows_dotfiles
        };
        if segments.iter().enumerate().any(is_hidden) {
            return Err(NoPath::Hidden);
        }
        Ok(FilePath { relative: segments.join(&b'/'), is_directory: is_directory || segments.is_empty() })
    }

    /// The one spelling under which it is kept, and to which a redirect leads. Begins with exactly one slash, so that it
    /// never names another host.
    pub(crate) fn canonical(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.relative.len() + 2);
        out.push(b'/');
        for &byte in &self.relative {
            if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
                out.push(byte);
            } else {
                out.extend_from_slice(format!("%{byte:02X}").as_bytes());
            }
        }
        if self.is_directory && !self.relative.is_empty() {
            out.push(b'/');
        }
        out
    }

    /// A file in this directory.
    pub(crate) fn child(&self, name: &str) -> Vec<u8> {
        match self.relative.is_empty() {
            true => name.as_bytes().to_vec(),
            false => [&self.relative, &b"/"[..], name.as_bytes()].concat(),
        }
    }
}

/// Decoded once: what comes out is not looked at for escapes again.
fn decoded(segment: &[u8]) -> Result<Vec<u8>, NoPath> {
    let mut out = Vec::with_capacity(segment.len());
    let mut bytes = segment.iter().copied();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || bytes.next().and_then(|b| char::from(b).to_digit(16));
                let (high, low) = (digit().ok_or(NoPath::Malformed)?, digit().ok_or(NoPath::Malformed)?);
                (high << 4 | low) as u8
            }
            plain => plain,
        };
        if byte == 0 {
            return Err(NoPath::Malformed);
        }
        out.push(byte);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expect: Result<(&str, &str), NoPath>) {
        let got = FilePath::read(path.as_bytes(), false);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let got = got.map(|path| (text(path.relative.clone()), text(path.canonical())));
        assert_eq!(got, expect.map(|(relative, canonical)| (relative.to_owned(), canonical.to_owned())), "{path}");
    }

    #[test]
    fn a_path_is_decoded_once_and_has_one_spelling() {
        check("/", Ok(("", "/")));
        check("/a.html", Ok(("a.html", "/a.html")));
        check("/a/b/", Ok(("a/b", "/a/b/")));
        check("//a///b", Ok(("a/b", "/a/b")));
        check("/a/./b/.", Ok(("a/b", "/a/b/")));
        check("/%61%20b", Ok(("a b", "/a%20b")));
        check("/%2561", Ok(("%61", "/%2561")));
        check("/a/../b", Ok(("b", "/b")));
        check("/a/%2e%2E/b", Ok(("b", "/b")));
        check("/a/..", Ok(("", "/")));
        check("//evil.test/..", Ok(("", "/")));
        check("/a\u{e9}", Ok(("a\u{e9}", "/a%C3%A9")));
        check("/..%5c..%5cetc", Err(NoPath::Hidden));
        check("/a%5c..", Ok(("a\\..", "/a%5C..")));
    }

    #[test]
    fn nothing_leads_out_of_the_root() {
        for path in ["/..", "/../etc/passwd", "/a/../../etc/passwd", "/%2e%2e/x", "/.%2e/x", "/a/%2e./%2e%2e/x"] {
            check(path, Err(NoPath::Malformed));
        }
        for path in ["/%2e%2e%2fetc/passwd", "/..%2f..%2fetc", "/a%2fb", "/..;/x", "/....//x", "/%252e%252e/x"] {
            let expect = FilePath::read(path.as_bytes(), true);
            match path {
                // Not dots any more, but a file's name that nobody has.
                "/%252e%252e/x" => check(path, Ok(("%2e%2e/x", "/%252e%252e/x"))),
                "/..;/x" | "/....//x" => {
                    check(path, Err(NoPath::Hidden));
                    assert!(expect.is_ok_and(|path| !path.relative.split(|&b| b == b'/').any(|s| s == b"..")));
                }
                _ => check(path, Err(NoPath::Hidden)),
            }
        }
    }

    #[test]
    fn broken_escapes_and_nul_are_malformed() {
        for path in ["/%", "/%4", "/%zz", "/a%00", "/file.txt%00.html", "*", "/%+1"] {
            check(path, Err(NoPath::Malformed));
        }
    }

    #[test]
    fn dotfiles_are_hidden_but_where_they_are_meant_to_be_asked_for() {
        for path in
            ["/.git/config", "/a/.htpasswd", "/%2ehtpasswd", "/a/.well-known/x", "/.well-known/.x", "/.wellknown"]
        {
            check(path, Err(NoPath::Hidden));
            assert!(FilePath::read(path.as_bytes(), true).is_ok(), "{path}");
        }
        check("/.well-known/acme", Ok((".well-known/acme", "/.well-known/acme")));
    }
}
