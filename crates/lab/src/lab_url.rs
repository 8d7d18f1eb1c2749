//! The URLs that a load is made of: `http://HOST[:PORT][/PATH]`, the same with `https`, and `memcached://HOST[:PORT]`.
//!
//! Read strictly: a URL with a space or a control byte would change the request around it.

use std::fmt;

use crate::limits::URL_BYTES_MAX;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabUrl {
    pub scheme: Scheme,
    /// `host[:port]`, as it was written: what the Host field says.
    pub authority: String,
    /// Without the brackets of an IPv6 literal.
    pub host: String,
    pub port: u16,
    /// Path and query; begins with a slash.
    pub path: String,
}

/// In which protocol is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
    /// The classic text protocol.
    Memcached,
}

impl Scheme {
    const ALL: [Scheme; 3] = [Scheme::Http, Scheme::Https, Scheme::Memcached];

    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Memcached => "memcached",
        }
    }

    const fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
            Scheme::Memcached => 11_211,
        }
    }
}

impl fmt::Display for LabUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.scheme == Scheme::Memcached { "" } else { &*self.path };
        write!(f, "{}://{}{path}", self.scheme.name(), self.authority)
    }
}

impl LabUrl {
    pub fn parse(text: &str) -> Result<LabUrl, String> {
        check_bytes(text)?;
        let (scheme, rest) = match text.split_once("://") {
            Some((written, rest)) => match Scheme::ALL.into_iter().find(|it| it.name().eq_ignore_ascii_case(written)) {
                Some(scheme) => (scheme, rest),
                None => return Err(format!("`{written}` is not supported: http://HOST[:PORT]/PATH, or https")),
            },
            None => (Scheme::Http, text),
        };
        let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(authority_end);
        let (host, port) = split_authority(authority, scheme.port())?;
        if scheme == Scheme::Memcached && !matches!(path, "" | "/") {
            return Err("a memcached has no paths: memcached://HOST[:PORT]".to_owned());
        }
        let path = match path {
            "" => "/".to_owned(),
            query if query.starts_with('?') => format!("/{query}"),
            path => path.to_owned(),
        };
        Ok(LabUrl { scheme, authority: authority.to_owned(), host: host.to_owned(), port, path })
    }
}

/// No byte that would end a request line, or be read as something else than written.
pub(crate) fn check_bytes(text: &str) -> Result<(), String> {
    if text.len() > URL_BYTES_MAX {
        return Err(format!("a URL of {} bytes; {URL_BYTES_MAX} at most", text.len()));
    }
    match text.chars().find(|c| !c.is_ascii_graphic() || *c == '#') {
        Some(wrong) => Err(format!("{wrong:?} may not stand in a URL; write it as %XX")),
        None => Ok(()),
    }
}

fn split_authority(authority: &str, port_usual: u16) -> Result<(&str, u16), String> {
    let no_host = || "a URL needs a host: http://HOST[:PORT]/PATH".to_owned();
    if authority.contains('@') {
        return Err("a user name in a URL is not supported; use -H 'Authorization: …'".to_owned());
    }
    let (host, port) = match authority.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, port))) => (host, port),
        Some(None) => return Err(no_host()),
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => port_usual,
        Some(digits) => match digits.parse() {
            Ok(port) if port > 0 => port,
            _ => return Err(format!("`{digits}` is no port")),
        },
        None => return Err(no_host()),
    };
    if host.is_empty() { Err(no_host()) } else { Ok((host, port)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<(&str, u16, &str), &str>) {
        match (LabUrl::parse(text), expect) {
            (Ok(url), Ok(expected)) => assert_eq!((&*url.host, url.port, &*url.path), expected, "{text}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{text}: {message}"),
            (got, expected) => panic!("{text}: {got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn urls_are_read_strictly() {
        check("http://a/b?c=d", Ok(("a", 80, "/b?c=d")));
        check("HTTP://127.0.0.1:8080", Ok(("127.0.0.1", 8080, "/")));
        check("localhost:81/x", Ok(("localhost", 81, "/x")));
        check("http://a?q", Ok(("a", 80, "/?q")));
        check("http://[::1]:8080/x", Ok(("::1", 8080, "/x")));
        check("memcached://a", Ok(("a", 11_211, "/")));
        check("memcached://a:81/", Ok(("a", 81, "/")));
        check("memcached://a/b", Err("no paths"));
        assert_eq!(LabUrl::parse("memcached://a:81/").unwrap().to_string(), "memcached://a:81");
        assert_eq!(LabUrl::parse("a?b").unwrap().to_string(), "http://a/?b");
        check("http://[::1", Err("needs a host"));
        check("http:///x", Err("needs a host"));
        check("https://a/x", Ok(("a", 443, "/x")));
        check("HTTPS://a:8443", Ok(("a", 8443, "/")));
        assert_eq!(LabUrl::parse("https://a").unwrap().to_string(), "https://a/");
        check("gopher://a/", Err("`gopher` is not supported"));
        check("http://a:0/", Err("`0` is no port"));
        check("http://a:99999/", Err("no port"));
        check("http://u:p@a/", Err("user name"));
        check("http://a/b c", Err("' ' may not stand"));
        check("http://a/b#c", Err("'#' may not stand"));
        check("http://a/\r\nX: y", Err("may not stand"));
        check("http://a/é", Err("may not stand"));
    }
}
