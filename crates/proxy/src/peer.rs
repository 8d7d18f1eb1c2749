//! Who is at the other end of a client connection.

use std::net::{IpAddr, SocketAddr};

/// The other end of a client connection. A UNIX socket's peer counts as loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer(pub(crate) IpAddr);

impl Peer {
    pub(crate) const UNIX: Peer = Peer(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    /// Somebody for whom a proxy speaks without saying who it is. It is not the proxy, whose rights it must not have.
    pub(crate) const UNNAMED: Peer = Peer(rules::forwarded::UNKNOWN_ADDRESS);

    pub(crate) fn of(address: SocketAddr) -> Peer {
        Peer(address.ip().to_canonical())
    }

    pub(crate) fn ip(self) -> IpAddr {
        self.0
    }

    /// As header fields name it.
    pub(crate) fn text(self) -> Box<[u8]> {
        let mut text = Vec::new();
        message::write_address(&mut text, self.0);
        text.into()
    }
}
