//! Scheme and authority in the one normal form that routing, the cache key and the forwarded Host all use:
//! host in lower case, without a trailing dot, the scheme's default port left out.

use std::borrow::Cow;

/// The scheme of the effective request URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub const fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }

    pub const fn text(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// Host and port of a request, normalised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority<'a> {
    /// Lower case; an IPv6 literal keeps its brackets. Empty only for an HTTP/1.0 request without Host.
    pub host: Cow<'a, [u8]>,
    /// `None` when it is the scheme's default or was not given.
    pub port: Option<u16>,
}

impl<'a> Authority<'a> {
    pub const EMPTY: Authority<'static> = Authority { host: Cow::Borrowed(b""), port: None };

    /// Reads `host[:port]` (RFC 9110 §4.2, RFC 3986 §3.2); `None` when it is not a valid, non-empty authority
    /// without user information.
    pub fn parse(text: &'a [u8], scheme: Scheme) -> Option<Authority<'a>> {
        Some(Authority::parse_as_given(text)?.under(scheme))
    }

    /// The same with the port as it was given, for who does not know the scheme yet.
    pub fn parse_as_given(text: &'a [u8]) -> Option<Authority<'a>> {
        // Nearly every host is in its normal form already, and then one look at each byte is enough.
        let plain_bytes = text.iter().take_while(|b| HOST_LETTERS[usize::from(**b)] == 0).count();
        let (host, rest) = text.split_at(plain_bytes);
        let (host, port, kinds) = match rest {
            [] => (host, None, 0),
            [b':', digits @ ..] => (host, parse_port(digits)?, 0),
            _ => {
                let (host, port) = split_port(text)?;
                (host, port, host.iter().fold(0, |kinds, &b| kinds | HOST_LETTERS[usize::from(b)]))
            }
        };
        let host = match host.strip_suffix(b".") {
            // One dot says that the name is complete. More would leave a name that is read otherwise the next time.
            Some(name) if name.ends_with(b".") || kinds & FOREIGN != 0 => return None,
            Some(name) => name,
            None => host,
        };
        if host.is_empty() || (kinds & FOREIGN != 0 && !is_ipv6_literal(host)) {
            return None;
        }
        let host = if kinds & CAPITAL != 0 { Cow::Owned(host.to_ascii_lowercase()) } else { Cow::Borrowed(host) };
        Some(Authority { host, port })
    }

    /// Leaves the port out where it is the scheme's default.
    pub fn under(self, scheme: Scheme) -> Authority<'a> {
        Authority { port: self.port.filter(|&port| port != scheme.default_port()), ..self }
    }

    /// Appends `host[:port]`.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.host.len() + PORT_BYTES_MAX);
        out.extend_from_slice(&self.host);
        if let Some(port) = self.port {
            out.push(b':');
            crate::write_decimal(out, u64::from(port));
        }
    }

    pub fn into_owned(self) -> Authority<'static> {
        Authority { host: Cow::Owned(self.host.into_owned()), port: self.port }
    }
}

/// `:65535`.
const PORT_BYTES_MAX: usize = 6;

/// Splits at the port's colon.
fn split_port(text: &[u8]) -> Option<(&[u8], Option<u16>)> {
    let host_end = if text.first() == Some(&b'[') {
        text.iter().position(|&b| b == b']')? + 1
    } else {
        text.iter().position(|&b| b == b':').unwrap_or(text.len())
    };
    let (host, rest) = text.split_at(host_end);
    match rest {
        [] => Some((host, None)),
        [b':', digits @ ..] => Some((host, parse_port(digits)?)),
        _ => None,
    }
}

/// What follows the colon. An empty port (`t:`) is allowed by RFC 3986 and means the default.
fn parse_port(digits: &[u8]) -> Option<Option<u16>> {
    if digits.is_empty() {
        return Some(None);
    }
    if digits.len() > 5 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let port = digits.iter().fold(0u32, |n, d| n * 10 + u32::from(d - b'0'));
    Some(Some(u16::try_from(port).ok().filter(|&p| p != 0)?))
}

/// Kinds of bytes in a host; 0 for what is in normal form.
const CAPITAL: u8 = 1;
const FOREIGN: u8 = 2;

/// reg-name (RFC 3986 §3.2.2). '%' is left out on purpose: two spellings of one host are two cache keys; and ',' because
/// a list is no host.
static HOST_LETTERS: [u8; 256] = {
    let mut kinds = [FOREIGN; 256];
    let mut b = 0;
    while b < 256 {
        match b as u8 {
            b'A'..=b'Z' => kinds[b] = CAPITAL,
            b'a'..=b'z' | b'0'..=b'9' => kinds[b] = 0,
            b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b';' | b'=' => {
                kinds[b] = 0
            }
            _ => {}
        }
        b += 1;
    }
    kinds
};

#[cold]
fn is_ipv6_literal(host: &[u8]) -> bool {
    let [b'[', inner @ .., b']'] = host else { return false };
    std::str::from_utf8(inner).is_ok_and(|text| text.parse::<std::net::Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<(&str, Option<u16>)>) {
        let got = Authority::parse(text.as_bytes(), Scheme::Http);
        let got = got.as_ref().map(|a| (std::str::from_utf8(&a.host).unwrap(), a.port));
        assert_eq!(got, expect, "{text:?}");
    }

    #[test]
    fn authorities_have_one_normal_form() {
        check("t.test", Some(("t.test", None)));
        check("T.Test.:80", Some(("t.test", None)));
        check("t.test:8080", Some(("t.test", Some(8080))));
        check("t:", Some(("t", None)));
        check("[::1]:81", Some(("[::1]", Some(81))));
        check("under_score.test", Some(("under_score.test", None)));
    }

    #[test]
    fn a_port_counts_where_it_is_not_the_default_of_the_scheme() {
        for (text, under_http, under_https) in
            [("t", None, None), ("t:80", None, Some(80)), ("t:443", Some(443), None), ("t:81", Some(81), Some(81))]
        {
            let given = Authority::parse_as_given(text.as_bytes()).expect("an authority");
            assert_eq!(given.clone().under(Scheme::Http).port, under_http, "{text}");
            assert_eq!(given.under(Scheme::Https).port, under_https, "{text}");
        }
    }

    #[test]
    fn what_is_no_authority_is_refused() {
        for text in [
            "",
            ".",
            "..",
            "a..",
            "[::1].",
            ":80",
            "u@t",
            "t/x",
            "t?x",
            "t#x",
            "a b",
            "a, b",
            "a,b",
            "t:8080:9090",
            "t:99999",
            "t:abc",
            "t:-1",
            "t:0",
            "[::1",
            "[zz]",
            "[::1]x",
            "t\0.evil",
            "caf\u{e9}",
            "a%2eb",
        ] {
            check(text, None);
        }
    }
}
