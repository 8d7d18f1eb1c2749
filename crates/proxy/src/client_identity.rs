//! Who sent a request, as far as we believe it.

use std::net::IpAddr;

use rules::forwarded::UNKNOWN_ADDRESS;

use crate::network::Network;
use crate::peer::Peer;

/// Who sent the request, as far as we believe it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientIdentity {
    /// The address at the other end of the connection, or what its PROXY header says.
    pub(crate) peer: Peer,
    /// The same, or what a trusted proxy says in X-Forwarded-For or Forwarded.
    pub(crate) ip: IpAddr,
    /// Nobody else may stand behind `ip`.
    pub(crate) is_vouched_for: bool,
    /// The peer is one of `trusted_proxies`: its X-Forwarded-* are kept and added to.
    pub(crate) peer_is_trusted: bool,
    /// It has shown name and password, and they are right.
    pub(crate) is_user: bool,
    /// The peer is another node of the fleet, which has proven that: it speaks for its client.
    pub(crate) is_node: bool,
}

impl ClientIdentity {
    /// Whoever holds the connection.
    pub(crate) fn of_peer(peer: Peer) -> ClientIdentity {
        let (ip, is_vouched_for) = (peer.ip(), true);
        ClientIdentity { peer, ip, is_vouched_for, peer_is_trusted: false, is_user: false, is_node: false }
    }

    /// Is the client one of those whom a list lets in? Whom nobody vouches for is only where everybody is.
    pub(crate) fn is_among(&self, networks: &[Network]) -> bool {
        is_in(networks, if self.is_vouched_for { self.ip } else { UNKNOWN_ADDRESS })
    }

    /// The same for a list on which other proxies stand, of which each speaks for clients of its own.
    pub(crate) fn is_among_proxies(&self, networks: &[Network]) -> bool {
        // What a trusted proxy says of somebody is not what it is itself.
        is_in(networks, if self.peer_is_trusted && !self.is_vouched_for { UNKNOWN_ADDRESS } else { self.ip })
    }

    /// Would `trusted_proxies` tell who it is?
    pub(crate) fn is_hidden(&self) -> bool {
        !self.is_vouched_for || self.ip == UNKNOWN_ADDRESS
    }
}

pub(crate) fn is_in(networks: &[Network], ip: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(ip))
}
