//! Who is at both ends of a client's connection, as programs and records name them.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;

use vcl::UnixPeer;
use wire::proxy_triples::ProxyTriples;

use crate::peer::Peer;
use crate::socket::Socket;
use crate::tls_facts;

/// The ends of a client's connection, for `client.ip` and its like. A UNIX socket has no address: 0.0.0.0, port 0.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionAddresses {
    /// Who asks, and whom: by a PROXY header, else the ends of the connection.
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    /// The other end of the connection, and ours.
    pub(crate) remote: SocketAddr,
    pub(crate) local: SocketAddr,
    /// Who speaks to us, as X-Forwarded-For names it.
    pub(crate) peer: Box<[u8]>,
    /// Who is at the other end of a UNIX socket, and where ours lies.
    pub(crate) unix_peer: Option<UnixPeer>,
    pub(crate) unix_path: Option<PathBuf>,
    /// What is known of the client's TLS: of ours, or of a proxy's by its header.
    pub(crate) said: Option<Rc<ProxyTriples>>,
    /// A PROXY header said who asks.
    pub(crate) is_by_header: bool,
    /// How long the connection may be idle, if a program set it.
    pub(crate) idle_s: Rc<Cell<Option<f64>>>,
    /// The session's number in records; 0 where there are none.
    pub(crate) session_xid: u64,
    /// The socket's number in this process.
    pub(crate) descriptor: i32,
}

impl ConnectionAddresses {
    /// Where there is no socket: as if from the client's address to port 80 of this machine.
    pub(crate) fn without_socket(client: IpAddr, peer: Peer) -> ConnectionAddresses {
        let server = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 80);
        let client = SocketAddr::new(client, 50_000);
        ConnectionAddresses {
            client,
            server,
            remote: client,
            local: server,
            peer: peer.text(),
            unix_peer: None,
            unix_path: None,
            said: None,
            is_by_header: false,
            session_xid: 0,
            idle_s: Rc::default(),
            descriptor: -1,
        }
    }

    /// Without a PROXY header. Of TLS nothing is said before its handshake is over.
    pub(crate) fn of(socket: &Socket, peer: Box<[u8]>) -> ConnectionAddresses {
        let (remote, local) = socket.addresses();
        let (unix_peer, descriptor) = (socket.unix_peer(), socket.descriptor());
        ConnectionAddresses {
            client: remote,
            server: local,
            remote,
            local,
            peer,
            unix_peer,
            unix_path: socket.unix_path(),
            said: socket
                .tls()
                .filter(|tls| tls.facts().is_some())
                .map(|tls| Rc::new(tls_facts::triples(tls.session()))),
            is_by_header: false,
            session_xid: 0,
            descriptor,
            idle_s: Rc::default(),
        }
    }
}
