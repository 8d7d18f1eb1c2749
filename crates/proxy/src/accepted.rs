//! Sockets on their way to the core that serves them: bound ones, and connections.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::client_permits::ClientPermit;
use crate::listener_tls::ListenerTls;
use crate::peer::Peer;
use crate::settings::{ListenMode, ListenerSettings};

/// A bound socket and what it was bound for.
pub(crate) struct Listener {
    pub(crate) settings: ListenerSettings,
    pub(crate) socket: OwnedFd,
}

/// A connection of which nothing has been read.
pub(crate) struct Accepted {
    pub(crate) socket: OwnedFd,
    pub(crate) is_unix: bool,
    pub(crate) peer: Peer,
    pub(crate) proxy_protocol: bool,
    pub(crate) mode: ListenMode,
    /// Of the listener.
    pub(crate) name: Option<Arc<str>>,
    /// Clients may speak HTTP/2 at once.
    pub(crate) h2c: bool,
    /// Where TLS is spoken.
    pub(crate) tls: Option<ListenerTls>,
    /// Its permit, one of those of its client, where these are limited.
    pub(crate) permit: Option<Box<ClientPermit>>,
}
