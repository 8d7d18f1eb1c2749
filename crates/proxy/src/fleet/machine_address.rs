//! What may be said of which node this one is, and how it is found out.

use std::net::{IpAddr, SocketAddr, UdpSocket};

/// Which of the nodes this one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnAddress {
    At(SocketAddr),
    /// The one that is an address of this machine, with one of these ports.
    OnPorts(Vec<u16>),
}

/// Is it an address of this machine? Only to such a one a socket can be bound.
pub fn is_of_this_machine(ip: IpAddr) -> bool {
    UdpSocket::bind(SocketAddr::new(ip, 0)).is_ok()
}
