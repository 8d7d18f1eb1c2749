//! Who asks, and where, before anything is known of what is asked.

use tls::Session;

use crate::peer::Peer;
use crate::settings::ListenMode;

/// The other end of a client's connection, and the listener that it came to.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'c> {
    pub(crate) peer: Peer,
    pub(crate) mode: ListenMode,
    /// Where it speaks TLS with us.
    pub(crate) tls: Option<&'c Session>,
}

impl Asker<'_> {
    /// A proxy is asked, not a server.
    pub(crate) fn asks_proxy(&self) -> bool {
        self.mode == ListenMode::Forward
    }

    /// Nobody between the client and us can read or change what is said.
    pub(crate) fn is_secure(&self) -> bool {
        self.tls.is_some()
    }
}
