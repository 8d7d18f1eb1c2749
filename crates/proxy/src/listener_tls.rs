//! TLS of a listener, which may change while it listens: a reload, or a certificate that was renewed, puts other settings in.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tls::{Certificate, ServerTls, Session};

/// What clients of a listener are shown and asked. Clones are the same one.
#[derive(Clone)]
pub struct ListenerTls(Arc<ArcSwap<ServerTls>>);

impl ListenerTls {
    pub fn new(tls: ServerTls) -> ListenerTls {
        ListenerTls(Arc::new(ArcSwap::from_pointee(tls)))
    }

    /// From here on handshakes go by these; sessions that have begun go on as they are.
    pub fn replace(&self, tls: ServerTls) {
        self.0.store(Arc::new(tls));
    }

    /// The same, with those of another one.
    pub(crate) fn take_over(&self, other: &ListenerTls) {
        self.0.store(other.0.load_full());
    }

    /// Are clients asked who they are?
    pub(crate) fn asks_clients(&self) -> bool {
        self.0.load().asks_clients()
    }

    /// What clients are shown at this moment.
    pub fn certificates(&self) -> Vec<Certificate> {
        self.0.load().certificates().to_vec()
    }

    pub(crate) fn begin(&self) -> Session {
        self.0.load().begin()
    }
}

impl fmt::Debug for ListenerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ListenerTls")
    }
}

/// A listener stays the same one when other certificates are shown there.
impl PartialEq for ListenerTls {
    fn eq(&self, _: &ListenerTls) -> bool {
        true
    }
}

impl Eq for ListenerTls {}
