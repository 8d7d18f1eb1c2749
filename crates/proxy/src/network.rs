//! An address prefix: whose requests are meant.

/// An address prefix in CIDR form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    pub address: std::net::IpAddr,
    pub prefix_bits: u8,
}

impl Network {
    /// The machine itself.
    pub const LOOPBACK: [Network; 2] = [Network::v4([127, 0, 0, 0], 8), Network::v6_loopback()];

    pub const fn v4(octets: [u8; 4], prefix_bits: u8) -> Network {
        let [a, b, c, d] = octets;
        Network { address: std::net::IpAddr::V4(std::net::Ipv4Addr::new(a, b, c, d)), prefix_bits }
    }

    pub const fn v6_loopback() -> Network {
        Network { address: std::net::IpAddr::V6(std::net::Ipv6Addr::LOCALHOST), prefix_bits: 128 }
    }

    /// Is the address inside? An IPv4-mapped IPv6 address counts as the IPv4 address it stands for.
    pub fn contains(&self, address: std::net::IpAddr) -> bool {
        use std::net::IpAddr::{V4, V6};
        match (self.address, address.to_canonical()) {
            (V4(net), V4(ip)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix_bits)).unwrap_or(0);
                net.to_bits() & mask == ip.to_bits() & mask
            }
            (V6(net), V6(ip)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix_bits)).unwrap_or(0);
                net.to_bits() & mask == ip.to_bits() & mask
            }
            _ => false,
        }
    }

    /// The same addresses, said by the first of them: `10.0.0.0/8` of `10.0.0.1/8`.
    pub fn from_its_first(self) -> Network {
        use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
        let address = match self.address {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix_bits)).unwrap_or(0);
                Ipv4Addr::from_bits(ip.to_bits() & mask).into()
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix_bits)).unwrap_or(0);
                Ipv6Addr::from_bits(ip.to_bits() & mask).into()
            }
        };
        Network { address, ..self }
    }
}

/// As it is read: a single address without a prefix.
impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bits_max = if self.address.is_ipv4() { 32 } else { 128 };
        match self.prefix_bits == bits_max {
            true => write!(f, "{}", self.address),
            false => write!(f, "{}/{}", self.address, self.prefix_bits),
        }
    }
}

impl std::str::FromStr for Network {
    type Err = ();

    /// `10.0.0.0/8`, or a bare address.
    fn from_str(text: &str) -> Result<Network, ()> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: std::net::IpAddr = address.parse().map_err(|_| ())?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match prefix {
            Some(text) => text.parse().ok().filter(|&bits| bits <= bits_max).ok_or(())?,
            None => bits_max,
        };
        Ok(Network { address, prefix_bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(network: &str, address: &str, inside: bool) {
        let network: Network = network.parse().unwrap();
        assert_eq!(network.contains(address.parse().unwrap()), inside, "{address} in {network:?}");
    }

    #[test]
    fn networks_contain_their_addresses() {
        check("10.0.0.0/8", "10.1.2.3", true);
        check("10.0.0.0/8", "11.1.2.3", false);
        check("0.0.0.0/0", "192.0.2.1", true);
        check("127.0.0.1", "127.0.0.2", false);
        check("127.0.0.0/8", "::ffff:127.0.0.9", true);
        check("fc00::/7", "fd12::1", true);
        check("::1", "::1", true);
        check("::/0", "192.0.2.1", false);
    }

    #[test]
    fn a_network_is_told_by_its_first_address() {
        for (written, first) in [
            ("10.0.0.1/8", "10.0.0.0/8"),
            ("192.0.2.7/32", "192.0.2.7"),
            ("192.0.2.7/0", "0.0.0.0/0"),
            ("2001:db8::1/32", "2001:db8::/32"),
            ("::1/128", "::1"),
            ("10.0.0.0/8", "10.0.0.0/8"),
        ] {
            let network: Network = written.parse().unwrap();
            assert_eq!(network.from_its_first().to_string(), first, "{written}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in ["", "10.0.0.0/33", "10.0.0.0/", "x", "::1/129", "10.0.0/8"] {
            assert_eq!(text.parse::<Network>(), Err(()), "{text}");
        }
    }
}
