//! Who is at the other end of a client connection.

use std::net::{IpAddr, SocketAddr};

/// The other end of a client connection. A UNIX socket's peer counts as loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    ip: IpAddr,
    /// 0 where it has none, or where that is not known.
    pub(crate) port: u16,
}

impl Peer {
    pub(crate) const UNIX: Peer = Peer { ip: IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), port: 0 };

    /// Somebody for whom a proxy speaks without saying who it is. It is not the proxy, whose rights it must not have.
    pub(crate) const UNNAMED: Peer = Peer { ip: rules::forwarded::UNKNOWN_ADDRESS, port: 0 };

    pub(crate) fn of(address: SocketAddr) -> Peer {
        Peer { ip: address.ip().to_canonical(), port: address.port() }
    }

    pub(crate) fn ip(self) -> IpAddr {
        self.ip
    }

    /// As header fields name it.
    pub(crate) fn text(self) -> Box<[u8]> {
        let mut text = Vec::new();
        message::write_address(&mut text, self.ip);
        text.into()
    }
}
