//! Whether a client may be led somewhere: by name and port before anything is looked up, by address when the answer is
//! there. The rules are the operator's, the order is ours: what is denied is denied, whatever else allows it.

use std::net::IpAddr;

use crate::forward::public_addresses::is_public;
use crate::settings::{Destination, ForwardSettings, Whither};

/// Why a client is not led there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhyDenied {
    /// The port of an http URL.
    Port,
    /// The port of a CONNECT.
    ConnectPort,
    /// A number that is no address in full: some resolvers take `127.1` or `0x7f000001` for one.
    NumericName,
    Denied,
    NotAmongOnly,
    NotPublic,
}

impl WhyDenied {
    pub(crate) const fn token(self) -> &'static str {
        match self {
            WhyDenied::Port => "forward-port-refused",
            WhyDenied::ConnectPort => "connect-port-refused",
            WhyDenied::NumericName => "forward-name-numeric",
            WhyDenied::Denied | WhyDenied::NotAmongOnly => "forward-destination-refused",
            WhyDenied::NotPublic => "forward-address-refused",
        }
    }

    pub(crate) const fn text(self) -> &'static str {
        match self {
            WhyDenied::Port => "This port is not asked here (forward.ports).",
            WhyDenied::ConnectPort => "No tunnel leads to this port (forward.connect_ports).",
            WhyDenied::NumericName => "An address has to be written in full, as four decimal numbers or in brackets.",
            WhyDenied::Denied => "This destination is denied (forward.deny_destinations).",
            WhyDenied::NotAmongOnly => {
                "This destination is not among those that are allowed (forward.only_destinations)."
            }
            WhyDenied::NotPublic => {
                "This destination has no public address: it belongs to this machine or to a network of its own \
                 (forward.allow_destinations)."
            }
        }
    }
}

/// What is asked for: a host as an authority has it, an IPv6 address in brackets, and its port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) host: &'a [u8],
    pub(crate) port: u16,
    pub(crate) by_connect: bool,
}

impl Asked<'_> {
    /// The host, where it is an address.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        let text = std::str::from_utf8(self.host).ok()?;
        match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            Some(bare) => bare.parse().ok().map(IpAddr::V6),
            None => text.parse().ok().map(IpAddr::V4),
        }
    }
}

/// As far as it can be told from what was asked. An address in it is judged as one that was looked up.
pub(crate) fn judge(settings: &ForwardSettings, asked: &Asked<'_>) -> Result<(), WhyDenied> {
    let (ports, why) = match asked.by_connect {
        true => (&settings.connect_ports, WhyDenied::ConnectPort),
        false => (&settings.ports, WhyDenied::Port),
    };
    if !ports.iter().any(|range| range.contains(&asked.port)) {
        return Err(why);
    }
    let address = asked.address();
    if address.is_none() && ends_in_number(asked.host) {
        return Err(WhyDenied::NumericName);
    }
    let is_named = |list: &[Destination]| is_named(list, asked.host, asked.port);
    if is_named(&settings.deny_destinations) {
        return Err(WhyDenied::Denied);
    }
    if let Some(address) = address {
        // Whether it is this machine's own is asked of the kernel when it is dialled, not for every request.
        return judge_address(settings, asked.host, asked.port, address, |_| false);
    }
    // A network among them may still have the address that the name stands for, if it is us who look it up.
    let looks_up = settings.parents.is_empty();
    let may_be_among = |list: &[Destination]| {
        is_named(list) || (looks_up && list.iter().any(|one| matches!(one.whither, Whither::Network(_))))
    };
    match &settings.only_destinations {
        Some(only) if !may_be_among(only) => Err(WhyDenied::NotAmongOnly),
        _ => Ok(()),
    }
}

/// Of an address that a host stands for, before it is connected to. A public address that is ours is as closed as a
/// private one.
pub(crate) fn judge_address(
    settings: &ForwardSettings,
    host: &[u8],
    port: u16,
    address: IpAddr,
    is_ours: impl FnOnce(IpAddr) -> bool,
) -> Result<(), WhyDenied> {
    let is_meant = |list: &[Destination]| {
        list.iter().any(|one| names(one, host, port) || (has_address(one, address) && fits(one, port)))
    };
    if is_meant(&settings.deny_destinations) {
        return Err(WhyDenied::Denied);
    }
    if settings.only_destinations.as_ref().is_some_and(|only| !is_meant(only)) {
        return Err(WhyDenied::NotAmongOnly);
    }
    match is_meant(&settings.allow_destinations) || (is_public(address) && !is_ours(address)) {
        true => Ok(()),
        false => Err(WhyDenied::NotPublic),
    }
}

/// Is the host among these by its name?
pub(crate) fn is_named(list: &[Destination], host: &[u8], port: u16) -> bool {
    list.iter().any(|one| names(one, host, port))
}

/// Is the host meant by its name?
fn names(destination: &Destination, host: &[u8], port: u16) -> bool {
    let named = match &destination.whither {
        Whither::Anywhere => true,
        Whither::Name(name) => host == name.as_bytes(),
        Whither::Below(domain) => match host.strip_suffix(domain.as_bytes()) {
            Some(rest) => rest.is_empty() || rest.ends_with(b"."),
            None => false,
        },
        Whither::Network(_) => false,
    };
    named && fits(destination, port)
}

fn has_address(destination: &Destination, address: IpAddr) -> bool {
    matches!(&destination.whither, Whither::Network(network) if network.contains(address))
}

fn fits(destination: &Destination, port: u16) -> bool {
    destination.port.is_none_or(|only| only == port)
}

/// Is the last label a number, decimal or hexadecimal? No domain is called so, and what some take for an address is.
fn ends_in_number(host: &[u8]) -> bool {
    let last = host.rsplit(|&b| b == b'.').next().unwrap_or(host);
    match last {
        [b'0', b'x' | b'X', digits @ ..] => digits.iter().all(u8::is_ascii_hexdigit),
        [_, ..] => last.iter().all(u8::is_ascii_digit),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{OriginUrl, ParentSettings};

    fn settings() -> ForwardSettings {
        let list = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<Destination>>();
        ForwardSettings {
            allow_destinations: list(&["intranet.test", "127.0.0.0/8:8080", "fd00:1::/32"]),
            deny_destinations: list(&[".ads.test", "198.51.100.0/24", "9.9.9.9:53"]),
            ..ForwardSettings::default()
        }
    }

    fn check_of(settings: &ForwardSettings, target: &str, expect: Result<(), WhyDenied>) {
        let (by_connect, target) = match target.strip_prefix("CONNECT ") {
            Some(target) => (true, target),
            None => (false, target),
        };
        let (host, port) = target.rsplit_once(':').unwrap();
        let asked = Asked { host: host.as_bytes(), port: port.parse().unwrap(), by_connect };
        assert_eq!(judge(settings, &asked), expect, "{target}");
    }

    fn check(target: &str, expect: Result<(), WhyDenied>) {
        check_of(&settings(), target, expect);
    }

    #[test]
    fn ports_come_first() {
        check("example.org:80", Ok(()));
        check("example.org:25", Err(WhyDenied::Port));
        check("CONNECT example.org:443", Ok(()));
        check("CONNECT example.org:25", Err(WhyDenied::ConnectPort));
        check("CONNECT example.org:80", Err(WhyDenied::ConnectPort));
    }

    #[test]
    fn an_address_is_judged_at_once() {
        check("1.1.1.1:80", Ok(()));
        check("10.0.0.1:80", Err(WhyDenied::NotPublic));
        check("127.0.0.1:80", Err(WhyDenied::NotPublic));
        check("127.0.0.1:8080", Ok(()));
        check("[::ffff:127.0.0.1]:8080", Ok(()));
        check("[::ffff:10.0.0.1]:8080", Err(WhyDenied::NotPublic));
        check("[::1]:80", Err(WhyDenied::NotPublic));
        check("[fd00:1::5]:80", Ok(()));
        check("198.51.100.7:80", Err(WhyDenied::Denied));
        check("9.9.9.9:80", Ok(()));
    }

    #[test]
    fn numbers_that_are_no_address_are_none() {
        for host in ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "1.2.3.4.5", "a.0x1"] {
            check(&format!("{host}:80"), Err(WhyDenied::NumericName));
        }
        check("a1:80", Ok(()));
    }

    #[test]
    fn a_name_is_denied_with_what_is_below_it() {
        check("ads.test:80", Err(WhyDenied::Denied));
        check("x.y.ads.test:80", Err(WhyDenied::Denied));
        check("noads.test:80", Ok(()));
    }

    #[test]
    fn what_a_name_stands_for_is_judged_too() {
        let of = |host: &str, ip: &str, ours: bool| {
            judge_address(&settings(), host.as_bytes(), 80, ip.parse().unwrap(), |_| ours)
        };
        let address = |host: &str, ip: &str| of(host, ip, false);
        assert_eq!(address("example.org", "93.184.216.34"), Ok(()));
        assert_eq!(of("example.org", "93.184.216.34", true), Err(WhyDenied::NotPublic));
        assert_eq!(of("intranet.test", "93.184.216.34", true), Ok(()));
        assert_eq!(address("example.org", "192.168.1.1"), Err(WhyDenied::NotPublic));
        assert_eq!(address("intranet.test", "192.168.1.1"), Ok(()));
        assert_eq!(address("intranet.test", "198.51.100.1"), Err(WhyDenied::Denied));
    }

    #[test]
    fn with_only_some_destinations_there_are_no_others() {
        let only = vec![".example.org".parse().unwrap(), "192.0.2.0/24".parse().unwrap()];
        let settings = ForwardSettings {
            only_destinations: Some(only),
            allow_destinations: vec!["192.0.2.0/24".parse().unwrap()],
            ..ForwardSettings::default()
        };
        check_of(&settings, "www.example.org:80", Ok(()));
        check_of(&settings, "192.0.2.1:80", Ok(()));
        check_of(&settings, "1.1.1.1:80", Err(WhyDenied::NotAmongOnly));
        // What it stands for decides.
        check_of(&settings, "example.com:80", Ok(()));
        let url = OriginUrl::Unix("/run/p".into());
        let parent = ParentSettings { url, weight: 1, login_file: None, login: None };
        let with_parent = ForwardSettings { parents: vec![parent], ..settings.clone() };
        check_of(&with_parent, "example.com:80", Err(WhyDenied::NotAmongOnly));
        check_of(&with_parent, "www.example.org:80", Ok(()));
        let found = judge_address(&settings, b"example.com", 80, "1.1.1.1".parse().unwrap(), |_| false);
        assert_eq!(found, Err(WhyDenied::NotAmongOnly));
    }
}
