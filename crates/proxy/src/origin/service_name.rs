//! Names of services (RFC 2782): `_http._tcp.shop.internal` stands for servers that SRV records name, with their ports, weights and priorities. No
//! host is called like that, so that a URL with such a name says by itself what is looked up.

use std::net::IpAddr;

use crate::settings::UrlShare;

/// An address that a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundAddress {
    pub ip: IpAddr,
    /// What an SRV record says of it.
    pub service: Option<ServicePart>,
}

/// What an SRV record says of a server, beside its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServicePart {
    pub port: u16,
    pub weight: u16,
    /// Another record has a better priority.
    pub is_backup: bool,
}

impl From<IpAddr> for FoundAddress {
    fn from(ip: IpAddr) -> FoundAddress {
        FoundAddress { ip, service: None }
    }
}

impl ServicePart {
    /// What it gets, where the URL says nothing of its own.
    pub fn share(self, of_url: UrlShare) -> UrlShare {
        // 0 is for records of which there is one only: "no need for any weight".
        UrlShare { weight: u32::from(self.weight).max(1), is_backup: self.is_backup || of_url.is_backup }
    }
}

/// The domain whose service it is, which a certificate is for; `None`: it is the name of a host.
pub fn domain_of(name: &str) -> Option<&str> {
    let (service, rest) = name.split_once('.')?;
    let (protocol, domain) = rest.split_once('.')?;
    let is_service = service.len() > 1 && service.starts_with('_') && protocol.eq_ignore_ascii_case("_tcp");
    (is_service && !domain.is_empty()).then_some(domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_told_by_its_underscores() {
        let check = |name: &str, expect: Option<&str>| assert_eq!(domain_of(name), expect, "{name}");
        check("_http._tcp.shop.internal", Some("shop.internal"));
        check("_a._TCP.b", Some("b"));
        for host in ["shop.internal", "_http._udp.shop.internal", "_._tcp.a", "_http._tcp.", "_http._tcp", "10.0.0.1"] {
            check(host, None);
        }
    }

    #[test]
    fn a_record_weighs_something_and_a_worse_priority_stands_in() {
        let part = |weight, is_backup| ServicePart { port: 80, weight, is_backup };
        let share = |weight, is_backup| UrlShare { weight, is_backup };
        assert_eq!(part(0, false).share(UrlShare::default()), share(1, false));
        assert_eq!(part(7, true).share(UrlShare::default()), share(7, true));
        assert_eq!(part(7, false).share(share(3, true)), share(7, true));
    }
}
