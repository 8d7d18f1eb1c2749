//! Which of the nodes this one is.

use std::collections::HashMap;
use std::net::IpAddr;

use parking_lot::Mutex;

use super::machine_address::{OwnAddress, is_of_this_machine};
use crate::limits::FLEET_ADDRESSES_KNOWN_MAX;
use crate::origin::DialAddress;

/// Says of an address whether it is this node's.
#[derive(Debug)]
pub(super) struct OwnAddresses {
    said: OwnAddress,
    /// Whether it is one of this machine's, of those that were asked for.
    known: Mutex<HashMap<IpAddr, bool>>,
}

impl OwnAddresses {
    pub(super) fn new(said: OwnAddress) -> OwnAddresses {
        OwnAddresses { said, known: Mutex::default() }
    }

    pub(super) fn are(&self, place: &DialAddress) -> bool {
        let (DialAddress::Tcp(at) | DialAddress::Http2(at) | DialAddress::Tls(at, _)) = place else { return false };
        match &self.said {
            OwnAddress::At(own) => own == at,
            OwnAddress::OnPorts(ports) => ports.contains(&at.port()) && self.is_of_machine(at.ip()),
        }
    }

    fn is_of_machine(&self, ip: IpAddr) -> bool {
        let mut known = self.known.lock();
        if known.len() >= FLEET_ADDRESSES_KNOWN_MAX {
            known.clear();
        }
        *known.entry(ip).or_insert_with(|| is_of_this_machine(ip))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_own_by_what_is_said_or_by_machine_and_port() {
        let place = |text: &str| DialAddress::Tcp(text.parse().unwrap());
        let said = OwnAddresses::new(OwnAddress::At("192.0.2.1:80".parse().unwrap()));
        assert!(said.are(&place("192.0.2.1:80")) && said.are(&DialAddress::Http2("192.0.2.1:80".parse().unwrap())));
        assert!(!said.are(&place("192.0.2.1:81")) && !said.are(&place("127.0.0.1:80")));
        let found = OwnAddresses::new(OwnAddress::OnPorts(vec![8080, 8081]));
        assert!(found.are(&place("127.0.0.1:8081")));
        assert!(!found.are(&place("127.0.0.1:8082")) && !found.are(&place("192.0.2.1:8080")));
        assert!(!found.are(&DialAddress::Unix("/run/x".into())));
    }
}
