//! `Listen` and `<VirtualHost>` of Apache: where larder listens, and which hosts are answered there. Routes know no listeners, so hosts of one
//! port alone are carried over, beside which another may lead to it.

use std::net::IpAddr;

use crate::import::apache_conf::name_of;
use crate::import::nginx_conf::Directive;

/// An address with a port; `host` is `None` for all addresses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostAddress {
    pub host: Option<IpAddr>,
    /// `None`: any.
    pub port: Option<u16>,
}

impl HostAddress {
    /// As `<VirtualHost>` has it. `None`: it is a name, or nothing that is known.
    pub fn read(written: &str) -> Option<HostAddress> {
        let (host, port) = match written.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                (host, if port == "*" { None } else { Some(port.parse().ok()?) })
            }
            _ => (written, None),
        };
        let host = match host {
            "*" | "_default_" => None,
            host => {
                let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
                Some(host.parse::<IpAddr>().ok()?).filter(|address| !address.is_unspecified())
            }
        };
        Some(HostAddress { host, port })
    }

    /// As `Listen` has it: `[HOST:]PORT [PROTOCOL]`.
    pub fn of_listen(listen: &Directive) -> Option<HostAddress> {
        let is_known = |protocol: &String| matches!(protocol.as_str(), "http" | "https");
        if listen.arguments.len() > 2 || !listen.arguments.iter().skip(1).all(is_known) {
            return None;
        }
        match listen.argument(0).parse::<u16>() {
            Ok(port) => Some(HostAddress { host: None, port: Some(port) }),
            Err(_) => HostAddress::read(listen.argument(0)).filter(|address| address.port.is_some()),
        }
    }

    /// For an `address` of larder's.
    pub fn text(&self, port: u16) -> String {
        match self.host {
            None => format!("*:{port}"),
            Some(IpAddr::V4(host)) => format!("{host}:{port}"),
            Some(IpAddr::V6(host)) => format!("[{host}]:{port}"),
        }
    }
}

/// The name that a `ServerName` says, which may say a scheme and a port as well. An alias is compared as it is written.
pub fn server_name(written: &str) -> &str {
    let name = written.split_once("://").map_or(written, |(_, name)| name);
    name.split_once(':').map_or(name, |(name, _)| name)
}

/// The names of a host, and whether it has others, which larder cannot tell.
pub fn names<'a>(all: impl Iterator<Item = &'a str>) -> (Vec<String>, bool) {
    let (mut names, mut has_others) = (Vec::new(), false);
    for written in all {
        let name = written.to_ascii_lowercase();
        let plain = name.strip_prefix("*.").unwrap_or(&name);
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        // Apache takes the last dot off what a client says, and finds no name that has one.
        match !plain.is_empty() && !plain.starts_with('.') && !plain.ends_with('.') && plain.bytes().all(is_name) {
            true if !names.contains(&name) => names.push(name),
            true => {}
            false => has_others = true,
        }
    }
    (names, has_others)
}

/// Is a name one of those that a known one stands for?
pub fn is_covered(name: &str, known: &str) -> bool {
    name == known || known.strip_prefix('*').is_some_and(|end| name.len() > end.len() && name.ends_with(end))
}

/// Is this a condition that nobody can decide here, with nothing in it but listeners? Then nobody listens there.
pub fn only_listens(directive: &Directive) -> bool {
    directive.children().iter().all(|child| name_of(child) == "listen")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    #[test]
    fn addresses_are_read() {
        let of = |text: &str| HostAddress::read(text).map(|address| (address.text(0), address.port));
        for (text, expect) in [
            ("*:80", Some(("*:0", Some(80)))),
            ("*", Some(("*:0", None))),
            ("_default_:443", Some(("*:0", Some(443)))),
            ("10.0.0.1:80", Some(("10.0.0.1:0", Some(80)))),
            ("[::1]:80", Some(("[::1]:0", Some(80)))),
            ("example.org:80", None),
        ] {
            assert_eq!(of(text), expect.map(|(text, port)| (text.to_owned(), port)), "{text}");
        }
        assert!(HostAddress::of_listen(&directive("Listen 443 https")).is_some());
        assert!(HostAddress::of_listen(&directive("Listen 127.0.0.1:80")).is_some());
        assert!(HostAddress::of_listen(&directive("Listen 80 ftp")).is_none());
    }

    #[test]
    fn names_are_told_or_not() {
        let all = ["Example.org", "a.test", "*.b.test"];
        assert_eq!(names(all.into_iter()), (vec!["example.org".into(), "a.test".into(), "*.b.test".into()], false));
        for other in ["www.*", "*", "c.test:80", "https://d.test", "e.test."] {
            assert_eq!(names([other].into_iter()), (Vec::new(), true), "{other}");
        }
        assert_eq!(["https://a.test:443", "b.test:80"].map(server_name), ["a.test", "b.test"]);
        assert!(
            is_covered("x.b.test", "*.b.test")
                && !is_covered("b.test", "*.b.test")
                && is_covered("*.x.b.test", "*.b.test")
        );
    }
}
