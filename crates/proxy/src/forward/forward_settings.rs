//! What an operator may decide about the forward proxy. What ships is for this machine's own use, and leads to public
//! addresses alone.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use base64::Engine;
use message::{Authority, Scheme};

use crate::limits::CREDENTIALS_BYTES_MAX;
use crate::settings::{Network, OriginUrl};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardSettings {
    /// Who may use it at all; a UNIX socket counts as loopback.
    pub allow_clients: Vec<Network>,
    /// Addresses that are not public and are opened all the same, by name or by network.
    pub allow_destinations: Vec<Destination>,
    /// Closed, whatever else opens them.
    pub deny_destinations: Vec<Destination>,
    /// If there is such a list, nothing else is led to.
    pub only_destinations: Option<Vec<Destination>>,
    /// Ports of http URLs.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Ports that tunnels lead to.
    pub connect_ports: Vec<RangeInclusive<u16>>,
    /// If there is one, only its users may come: Basic authentication, by bcrypt.
    pub password_file: Option<PathBuf>,
    /// Proxies that are asked in place of the destinations.
    pub parents: Vec<ParentSettings>,
    pub balance: ParentBalance,
    /// By name: these are asked themselves.
    pub always_direct: Vec<Destination>,
    /// Without a parent that answers, nobody is asked.
    pub never_direct: bool,
    /// Connections of one client; 0: no limit but that of all listeners.
    pub client_connections_max: usize,
    /// Requests of one client a second; 0: no limit.
    pub client_requests_per_second_max: u32,
    /// What users are told they are asked for.
    pub realm: String,
}

impl Default for ForwardSettings {
    fn default() -> ForwardSettings {
        ForwardSettings {
            allow_clients: vec![Network::v4([127, 0, 0, 0], 8), Network::v6_loopback()],
            allow_destinations: Vec::new(),
            deny_destinations: Vec::new(),
            only_destinations: None,
            ports: vec![80..=80, 443..=443, 1025..=u16::MAX],
            connect_ports: vec![443..=443],
            password_file: None,
            parents: Vec::new(),
            balance: ParentBalance::RoundRobin,
            always_direct: Vec::new(),
            never_direct: false,
            client_connections_max: 0,
            client_requests_per_second_max: 0,
            realm: "larder".to_owned(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentSettings {
    pub url: OriginUrl,
    /// One of twice the weight gets twice the requests.
    pub weight: u32,
    /// The file with name and password for it …
    pub login_file: Option<PathBuf>,
    /// … and what stands in there.
    pub login: Option<ParentLogin>,
}

/// Name and password for another proxy (RFC 7617). Nothing shows the password.
#[derive(Clone, PartialEq, Eq)]
pub struct ParentLogin(String);

impl ParentLogin {
    /// From `NAME:PASSWORD`.
    pub fn of(written: &str) -> Option<ParentLogin> {
        let (name, _) = written.split_once(':')?;
        let is_login = !name.is_empty() && written.len() <= CREDENTIALS_BYTES_MAX / 2;
        if !is_login || written.chars().any(char::is_control) {
            return None;
        }
        Some(ParentLogin(format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(written))))
    }

    /// The value of Proxy-Authorization.
    pub(crate) fn credentials(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl std::fmt::Debug for ParentLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ParentLogin(…)")
    }
}

/// Which parent is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentBalance {
    /// One after the other.
    RoundRobin,
    /// The same for the same URL.
    Hash,
}

/// Where a client wants to be led, as a rule says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    pub whither: Whither,
    /// `None`: any.
    pub port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whither {
    Anywhere,
    /// This host, as an authority has it.
    Name(String),
    /// This domain and everything below it.
    Below(String),
    /// What has an address in it.
    Network(Network),
}

impl FromStr for Destination {
    type Err = ();

    /// `example.org`, `.example.org`, `10.0.0.0/8`, `fc00::/7`, each with `:PORT` behind it if need be (an IPv6 network is
    /// in brackets then), or `:PORT` alone.
    fn from_str(text: &str) -> Result<Destination, ()> {
        if let Ok(network) = text.parse() {
            return Ok(Destination { whither: Whither::Network(network), port: None });
        }
        let (who, port) = match text.rsplit_once(':') {
            Some((who, port)) if !port.ends_with(']') => (who, Some(read_port(port)?)),
            _ => (text, None),
        };
        let bare = who.strip_prefix('[').and_then(|who| who.strip_suffix(']')).unwrap_or(who);
        let whither = if who.is_empty() && port.is_some() {
            Whither::Anywhere
        } else if let Ok(network) = bare.parse() {
            Whither::Network(network)
        } else if let Some(domain) = who.strip_prefix('.') {
            Whither::Below(read_name(domain)?)
        } else {
            Whither::Name(read_name(who)?)
        };
        Ok(Destination { whither, port })
    }
}

fn read_port(text: &str) -> Result<u16, ()> {
    text.parse().ok().filter(|&port| port > 0).ok_or(())
}

fn read_name(text: &str) -> Result<String, ()> {
    let authority = Authority::parse(text.as_bytes(), Scheme::Http).ok_or(())?;
    let is_name = authority.port.is_none() && !text.contains([':', '[', '*', '/']) && !text.starts_with('.');
    String::from_utf8(authority.host.into_owned()).ok().filter(|_| is_name).ok_or(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, whither: Whither, port: Option<u16>) {
        assert_eq!(text.parse(), Ok(Destination { whither, port }), "{text}");
    }

    #[test]
    fn a_destination_is_a_name_a_domain_a_network_or_a_port() {
        check("Example.org", Whither::Name("example.org".to_owned()), None);
        check("example.org:8080", Whither::Name("example.org".to_owned()), Some(8080));
        check(".example.org", Whither::Below("example.org".to_owned()), None);
        check(".example.org:443", Whither::Below("example.org".to_owned()), Some(443));
        check("10.0.0.0/8", Whither::Network("10.0.0.0/8".parse().unwrap()), None);
        check("127.0.0.1:8080", Whither::Network("127.0.0.1".parse().unwrap()), Some(8080));
        check("fc00::/7", Whither::Network("fc00::/7".parse().unwrap()), None);
        check("[fc00::/7]:443", Whither::Network("fc00::/7".parse().unwrap()), Some(443));
        check("[::1]", Whither::Network("::1".parse().unwrap()), None);
        check(":25", Whither::Anywhere, Some(25));
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for text in
            ["", ":", ".", "a b", "*.example.org", "http://a.test", "a.test/x", "a.test:0", "a.test:x", "..a", "[::1"]
        {
            assert_eq!(text.parse::<Destination>(), Err(()), "{text}");
        }
    }
}
