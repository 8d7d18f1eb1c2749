//! Who asks, and where, before anything is known of what is asked.

use std::sync::Arc;

use tls::Session;

use crate::peer::Peer;
use crate::settings::ListenMode;
use crate::tls_facts::TlsFacts;
use crate::tls_socket::TlsSocket;

/// The other end of a client's connection, and the listener that it came to.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'c> {
    pub(crate) peer: Peer,
    pub(crate) mode: ListenMode,
    /// Where it speaks TLS with us.
    pub(crate) tls: Option<&'c TlsSocket>,
}

impl<'c> Asker<'c> {
    /// A proxy is asked, not a server.
    pub(crate) fn asks_proxy(&self) -> bool {
        self.mode == ListenMode::Forward
    }

    pub(crate) fn session(&self) -> Option<&'c Session> {
        self.tls.map(TlsSocket::session)
    }

    /// What it asks may be somebody else's, sent again: nothing but what is stored answers it.
    #[inline]
    pub(crate) fn is_early(&self) -> bool {
        self.tls.is_some_and(TlsSocket::is_early)
    }

    /// What the log says of it.
    #[inline]
    pub(crate) fn tls_facts(&self) -> Option<Arc<TlsFacts>> {
        self.tls.and_then(|tls| tls.facts().cloned())
    }

    /// Nobody between the client and us can read or change what is said.
    pub(crate) fn is_secure(&self) -> bool {
        self.tls.is_some()
    }
}
