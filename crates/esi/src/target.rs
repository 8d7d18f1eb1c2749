//! Where an include leads.

/// The address of what is included, as far as its text says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Of another site, or the same; none where the text has a path alone.
    pub host: Option<Vec<u8>>,
    /// With the query.
    pub path: Vec<u8>,
}

const HTTP: &[u8] = b"http://";
pub(crate) const HTTPS: &[u8] = b"https://";

/// Why an include leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetFault {
    /// A scheme without a host or a path behind it.
    Invalid,
    /// A blank, a control or another byte that no URL holds.
    IllegalByte,
}

impl Target {
    /// Of a `src`, in a text that is at `base`: a path with its query. What XML writes as an entity is what it stands for.
    pub fn of(src: &[u8], base: &[u8]) -> Result<Target, TargetFault> {
        let (host, path) = match src.strip_prefix(HTTP).or_else(|| src.strip_prefix(HTTPS)) {
            None => (None, src),
            Some(behind) => {
                let slash = behind.iter().position(|byte| *byte == b'/').ok_or(TargetFault::Invalid)?;
                if slash == 0 {
                    return Err(TargetFault::Invalid);
                }
                (Some(behind[..slash].to_vec()), &behind[slash..])
            }
        };
        let path = unescaped(path);
        let path = if path.starts_with(b"/") { path } else { [folder(base), &path].concat() };
        let is_illegal = |byte: &u8| byte.is_ascii_control() || *byte == b' ' || *byte == b'#';
        if path.iter().chain(host.iter().flatten()).any(is_illegal) {
            return Err(TargetFault::IllegalByte);
        }
        Ok(Target { host, path })
    }
}

/// Up to the last slash of a path, that slash included.
fn folder(base: &[u8]) -> &[u8] {
    let path = base.split(|byte| *byte == b'?').next().unwrap_or_default();
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => &path[..=slash],
        None => b"/",
    }
}

const ENTITIES: [(&[u8], u8); 5] =
    [(b"&apos;", b'\''), (b"&quot;", b'"'), (b"&lt;", b'<'), (b"&gt;", b'>'), (b"&amp;", b'&')];

/// With entities of XML as what they stand for.
pub(crate) fn unescaped(mut text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    while let [first, rest @ ..] = text {
        let entity = ENTITIES.iter().find_map(|(name, byte)| Some((*byte, text.strip_prefix(*name)?)));
        let (byte, rest) = entity.unwrap_or((*first, rest));
        out.push(byte);
        text = rest;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(src: &str, expect: Result<(Option<&str>, &str), TargetFault>) {
        let target = Target::of(src.as_bytes(), b"/a/b/page?x=/y/");
        let expect = expect.map(|(host, path)| (host.map(|host| host.as_bytes().to_vec()), path.as_bytes().to_vec()));
        assert_eq!(target.map(|target| (target.host, target.path)), expect, "{src}");
    }

    #[test]
    fn a_target_is_a_path_or_a_url() {
        check("/c?d=e", Ok((None, "/c?d=e")));
        check("http://www.example.org/c", Ok((Some("www.example.org"), "/c")));
        check("https://www.example.org:8443/c/", Ok((Some("www.example.org:8443"), "/c/")));
        check("http://www.example.org", Err(TargetFault::Invalid));
        check("http:///c", Err(TargetFault::Invalid));
    }

    #[test]
    fn what_does_not_begin_at_the_root_begins_where_the_text_is() {
        check("c", Ok((None, "/a/b/c")));
        check("../c", Ok((None, "/a/b/../c")));
        check("", Ok((None, "/a/b/")));
        assert_eq!(Target::of(b"c", b"*").unwrap().path, b"/c");
    }

    #[test]
    fn entities_are_what_they_stand_for() {
        check("/c?a=1&amp;b=&quot;2&quot;&amp;c&lt;&gt;&apos;&nbsp;&", Ok((None, "/c?a=1&b=\"2\"&c<>'&nbsp;&")));
        check("/&amp;lt;", Ok((None, "/&lt;")));
    }

    #[test]
    fn nothing_of_a_target_ends_a_line() {
        for src in ["/a\r\nX: y", "/a b", "/a\0", "http://a\n/b", "/a#b"] {
            check(src, Err(TargetFault::IllegalByte));
        }
    }
}
