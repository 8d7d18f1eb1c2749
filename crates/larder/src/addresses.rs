//! Addresses as operators write them: where to listen, what to stand in front of, where to answer questions.
//!
//! Flags and larder.toml read the same forms. It resolves no names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use message::{Authority, Scheme};
use proxy::settings::{ListenAddress, OriginUrl};

/// Where the admin address is, if anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminAddress {
    Off,
    At(ListenAddress),
}

pub const LISTEN_FORM: &str = "an address with a port, such as 127.0.0.1:8080 or [::]:80, or unix:/run/larder.sock";
pub const ORIGIN_FORM: &str = "an origin is http://HOST[:PORT], https://HOST[:PORT], h2://HOST[:PORT] or unix:/PATH";

/// Has lines where this machine speaks IPv6.
const IPV6_ADDRESSES: &str = "/proc/net/if_inet6";

/// The address that stands for all of this machine: a socket of IPv6 takes what comes by IPv4, too.
pub fn every_address() -> IpAddr {
    let speaks_ipv6 = std::fs::read(IPV6_ADDRESSES).is_ok_and(|lines| !lines.is_empty());
    if speaks_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

/// `IP:PORT`, `localhost:PORT`, `*:PORT` (every address) or `unix:PATH`.
pub fn parse_listen(text: &str) -> Result<ListenAddress, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return match path {
            "" => Err("a path must follow unix:".to_owned()),
            path => Ok(ListenAddress::Unix(PathBuf::from(path))),
        };
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(ListenAddress::Tcp(address));
    }
    if let Some(why) = port_out_of_range(text) {
        return Err(why);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let port: Option<u16> = port.parse().ok();
    match (host, port) {
        ("localhost", Some(port)) => Ok(ListenAddress::Tcp((Ipv4Addr::LOCALHOST, port).into())),
        ("*", Some(port)) => Ok(ListenAddress::Tcp((every_address(), port).into())),
        ("", Some(port)) => Err(format!("say which address: 127.0.0.1:{port} for this machine only, *:{port} for all")),
        _ if text.parse::<IpAddr>().is_ok() => Err(format!("the port is missing; {LISTEN_FORM}")),
        _ => Err(format!("expected {LISTEN_FORM}")),
    }
}

pub fn parse_admin(text: &str) -> Result<AdminAddress, String> {
    match text {
        "off" => Ok(AdminAddress::Off),
        _ => parse_listen(text).map(AdminAddress::At),
    }
}

/// The URL that somebody meant who left the scheme out, or said a port alone. `None`: nobody knows.
pub fn meant_origin(text: &str) -> Option<String> {
    if text.contains("://") {
        return parse_origin(text).is_ok().then(|| text.to_owned());
    }
    if port_out_of_range(text).is_some() {
        return None;
    }
    let url = match is_port(text) {
        true => format!("http://127.0.0.1:{}", text.trim_start_matches(':')),
        false => format!("http://{text}"),
    };
    parse_origin(&url).is_ok().then_some(url)
}

/// What is to be said of a number in a port's place that is none.
fn port_out_of_range(text: &str) -> Option<String> {
    let port = text.rsplit(':').next().unwrap_or(text);
    let digits = port.strip_prefix('-').unwrap_or(port);
    // An address without brackets has colons, too.
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) && text.parse::<IpAddr>().is_err();
    (is_number && port.parse::<u16>().is_err()).then(|| format!("{port} is no port: 1 to 65535"))
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':').unwrap_or(text).parse::<u16>().is_ok_and(|port| port > 0)
}

/// Why an address without a scheme is no origin.
fn without_scheme(text: &str) -> String {
    match meant_origin(text) {
        Some(url) if is_port(text) => format!("where is it? write {url} for this machine"),
        Some(url) => format!("the scheme is missing: write {url}"),
        None => ORIGIN_FORM.to_owned(),
    }
}

/// `http://host[:port]`, `https://host[:port]`, `h2://host[:port]` or `unix:/path`.
pub fn parse_origin(text: &str) -> Result<OriginUrl, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return match path {
            "" => Err("a path must follow unix:".to_owned()),
            path => Ok(OriginUrl::Unix(PathBuf::from(path))),
        };
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(match port_out_of_range(text) {
            Some(why) => why,
            None => without_scheme(text),
        });
    };
    let lower = scheme.to_ascii_lowercase();
    let scheme = match lower.as_str() {
        "http" | "h2" => Scheme::Http,
        "https" => Scheme::Https,
        "fastcgi" | "fcgi" | "fpm" => {
            return Err(format!(
                "an origin that speaks FastCGI has fastcgi = \"{}\" in place of urls: docs/php.md",
                rest.trim_end_matches('/')
            ));
        }
        _ => return Err(format!("`{scheme}://` is no scheme larder speaks; {ORIGIN_FORM}")),
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', '?', '#']) {
        return Err("an origin URL has no path: what the client asked for is forwarded as it is".to_owned());
    }
    if authority.contains('@') {
        return Err("an origin URL has no user name or password".to_owned());
    }
    if let Some(why) = port_out_of_range(authority).filter(|_| authority.contains(':')) {
        return Err(why);
    }
    let authority = Authority::parse(authority.as_bytes(), scheme).ok_or("the host or the port is not valid")?;
    let host = std::str::from_utf8(&authority.host).map_err(|_| "the host is not valid")?;
    let (host, port) = (host.to_owned(), authority.port.unwrap_or(scheme.default_port()));
    Ok(match scheme {
        Scheme::Http if lower == "h2" => OriginUrl::Http2 { host, port },
        Scheme::Http => OriginUrl::Tcp { host, port },
        Scheme::Https => OriginUrl::Tls { host, port },
    })
}

pub const FASTCGI_FORM: &str = "an application is unix:/PATH or HOST:PORT";

/// `unix:/path`, or `host:port`: there is no port that it would be without one.
pub fn parse_fastcgi(text: &str) -> Result<OriginUrl, String> {
    if text.starts_with("unix:") {
        return parse_origin(text);
    }
    if text.starts_with('/') {
        return Err(format!("the socket of a path is written unix:{text}"));
    }
    if let Some((scheme, rest)) = text.split_once("://")
        && ["fastcgi", "fcgi", "tcp"].contains(&scheme.to_ascii_lowercase().as_str())
    {
        return Err(format!("{FASTCGI_FORM}: write {}, without {scheme}://", rest.trim_end_matches('/')));
    }
    if text.contains('/') {
        return Err(FASTCGI_FORM.to_owned());
    }
    if let Some(why) = port_out_of_range(text) {
        return Err(why);
    }
    let authority = Authority::parse(text.as_bytes(), Scheme::Http).ok_or("the host or the port is not valid")?;
    let has_port =
        text.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()) && !port.is_empty());
    let host = std::str::from_utf8(&authority.host).map_err(|_| "the host is not valid")?;
    match has_port && !host.is_empty() {
        true => {
            Ok(OriginUrl::Tcp { host: host.to_owned(), port: authority.port.unwrap_or(Scheme::Http.default_port()) })
        }
        false => Err(format!("the port is missing; {FASTCGI_FORM}")),
    }
}

/// As [`parse_fastcgi`] reads it.
pub fn show_fastcgi(url: &OriginUrl) -> String {
    match url {
        OriginUrl::Tcp { host, port } => format!("{host}:{port}"),
        other => show_origin(other),
    }
}

/// As `--ports-file` and the start-up lines say it.
pub fn show_listen(address: &ListenAddress) -> String {
    match address {
        ListenAddress::Tcp(address) => address.to_string(),
        ListenAddress::Unix(path) => format!("unix:{}", path.display()),
    }
}

pub fn show_origin(url: &OriginUrl) -> String {
    let at = |scheme: &str| format!("{scheme}://{}", url.authority().unwrap_or_default());
    match url {
        OriginUrl::Tcp { .. } => at("http"),
        OriginUrl::Tls { .. } => at("https"),
        OriginUrl::Http2 { .. } => at("h2"),
        OriginUrl::Unix(path) => format!("unix:{}", path.display()),
        OriginUrl::Mocked(origin) => format!("mocked:{}", origin.backend()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T>(got: Result<T, String>, show: impl Fn(&T) -> String, text: &str, expect: Result<&str, &str>) {
        match (got, expect) {
            (Ok(value), Ok(expected)) => assert_eq!(show(&value), expected, "{text}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{text}: {message}"),
            (got, expected) => panic!("{text}: {:?} instead of {expected:?}", got.map(|v| show(&v))),
        }
    }

    #[test]
    fn listening_addresses_say_where() {
        for (text, expect) in [
            ("127.0.0.1:8080", Ok("127.0.0.1:8080")),
            ("127.0.0.1:0", Ok("127.0.0.1:0")),
            ("[::1]:80", Ok("[::1]:80")),
            ("localhost:81", Ok("127.0.0.1:81")),
            ("unix:/run/l.sock", Ok("unix:/run/l.sock")),
            ("unix:", Err("a path must follow")),
            (":8080", Err("127.0.0.1:8080 for this machine")),
            ("8080", Err("127.0.0.1:8080 for this machine")),
            ("127.0.0.1", Err("the port is missing")),
            ("example.org:80", Err("expected an address with a port")),
            ("127.0.0.1:99999", Err("99999 is no port: 1 to 65535")),
            ("*:-1", Err("-1 is no port")),
            ("99999", Err("99999 is no port")),
            ("::1", Err("the port is missing")),
        ] {
            check(parse_listen(text), show_listen, text, expect);
        }
        let every = SocketAddr::new(every_address(), 80).to_string();
        check(parse_listen("*:80"), show_listen, "*:80", Ok(&every));
    }

    #[test]
    fn applications_are_asked_at_a_socket_or_a_port() {
        for (text, expect) in [
            ("unix:/run/php/php-fpm.sock", Ok("unix:/run/php/php-fpm.sock")),
            ("127.0.0.1:9000", Ok("127.0.0.1:9000")),
            ("Php:80", Ok("php:80")),
            ("[::1]:9000", Ok("[::1]:9000")),
            ("unix:", Err("a path must follow")),
            ("php", Err("the port is missing")),
            ("[::1]", Err("the port is missing")),
            ("/run/php.sock", Err("is written unix:/run/php.sock")),
            ("run/php.sock", Err("unix:/PATH or HOST:PORT")),
            ("http://php:9000", Err("unix:/PATH or HOST:PORT")),
            ("php:99999", Err("99999 is no port")),
            ("u@php:9000", Err("not valid")),
            (":9000", Err("not valid")),
        ] {
            check(parse_fastcgi(text), show_fastcgi, text, expect);
        }
    }

    #[test]
    fn origins_say_how_they_are_spoken_to() {
        for (text, expect) in [
            ("http://127.0.0.1:3000", Ok("http://127.0.0.1:3000")),
            ("http://Example.org/", Ok("http://example.org")),
            ("http://[::1]:81", Ok("http://[::1]:81")),
            ("unix:/run/app.sock", Ok("unix:/run/app.sock")),
            ("https://example.org", Ok("https://example.org")),
            ("HTTPS://example.org:443/", Ok("https://example.org")),
            ("https://[::1]:8443", Ok("https://[::1]:8443")),
            ("h2://Example.org", Ok("h2://example.org")),
            ("h2://[::1]:81/", Ok("h2://[::1]:81")),
            ("ftp://example.org", Err("no scheme larder speaks")),
            ("example.org:3000", Err("write http://example.org:3000")),
            ("http://example.org/app", Err("no path")),
            ("http://u:p@example.org", Err("no user name")),
            ("http://", Err("not valid")),
            ("http://a:99999", Err("99999 is no port: 1 to 65535")),
            ("http://a:-1", Err("-1 is no port")),
            ("a:99999", Err("99999 is no port")),
            ("", Err("an origin is http://")),
            ("3000", Err("write http://127.0.0.1:3000 for")),
            (":3000", Err("write http://127.0.0.1:3000 for")),
            ("localhost", Err("write http://localhost")),
        ] {
            check(parse_origin(text), show_origin, text, expect);
        }
    }
}
