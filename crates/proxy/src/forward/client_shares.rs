//! How much of a forward proxy one client may take: connections at once, and requests a second. A client is an IPv4
//! address, or an IPv6 network of 64 bits, of which everybody has as many addresses as they like.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use parking_lot::Mutex;

use crate::limits::CLIENT_SHARES_MAX;

/// Whose share it is.
pub(crate) fn client_network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
    }
}

/// The requests of all clients, over all cores. Hashed with a random key: clients choose these.
#[derive(Default)]
pub(crate) struct RequestShares(Mutex<HashMap<IpAddr, Share>>);

/// A second's worth of requests, which fills again as time goes by.
#[derive(Clone, Copy)]
struct Share {
    /// In thousandths of a request.
    left_milli: u64,
    at_ms: u64,
}

impl RequestShares {
    /// Takes one request from the client's share; false when there is none left.
    pub(crate) fn take(&self, ip: IpAddr, per_second_max: u32, now_ms: u64) -> bool {
        let full_milli = u64::from(per_second_max) * 1_000;
        let mut shares = self.0.lock();
        if shares.len() >= CLIENT_SHARES_MAX {
            // Who asked nothing for a second has a whole share again, known or not.
            shares.retain(|_, share| now_ms < share.at_ms.saturating_add(1_000));
        }
        let share = shares.entry(client_network(ip)).or_insert(Share { left_milli: full_milli, at_ms: now_ms });
        let filled_milli = now_ms.saturating_sub(share.at_ms).saturating_mul(u64::from(per_second_max));
        share.left_milli = share.left_milli.saturating_add(filled_milli).min(full_milli);
        share.at_ms = share.at_ms.max(now_ms);
        match share.left_milli.checked_sub(1_000) {
            Some(left_milli) => {
                share.left_milli = left_milli;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_address_or_a_network_of_ipv6() {
        let network = |text: &str| client_network(text.parse().unwrap()).to_string();
        assert_eq!(network("192.0.2.7"), "192.0.2.7");
        assert_eq!(network("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }

    fn take(shares: &RequestShares, ip: &str, now_ms: u64) -> bool {
        shares.take(ip.parse().unwrap(), 2, now_ms)
    }

    #[test]
    fn a_share_is_used_up_and_fills_again() {
        let shares = RequestShares::default();
        assert_eq!([0, 0, 0].map(|at| take(&shares, "192.0.2.1", at)), [true, true, false]);
        assert!(take(&shares, "192.0.2.2", 0), "another has its own");
        assert_eq!([499, 500, 501].map(|at| take(&shares, "192.0.2.1", at)), [false, true, false]);
        assert_eq!([9_000, 9_000, 9_000].map(|at| take(&shares, "192.0.2.1", at)), [true, true, false]);
        // The clock of another core may be behind.
        assert!(!take(&shares, "192.0.2.1", 8_000));
    }

    #[test]
    fn the_addresses_of_one_network_share() {
        let shares = RequestShares::default();
        assert!(take(&shares, "2001:db8::1", 0) && take(&shares, "2001:db8::2", 0));
        assert!(!take(&shares, "2001:db8::3", 0));
    }

    #[test]
    fn those_who_left_make_room() {
        let shares = RequestShares::default();
        for n in 0..CLIENT_SHARES_MAX as u32 {
            shares.take(IpAddr::from((0x0a00_0000 + n).to_be_bytes()), 2, 0);
        }
        take(&shares, "192.0.2.1", 5_000);
        assert_eq!(shares.0.lock().len(), 1);
    }
}
