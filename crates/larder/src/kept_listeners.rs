//! Listening sockets that outlive this process: what processes before it, or the service manager, have bound is taken, and what it binds
//! itself is given to its supervisor.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use proxy::SocketKeeper;
use proxy::settings::ListenAddress;
use supervisor::{KeptSockets, ServingLink};

use crate::addresses::show_listen;
use crate::say::say;

/// See the module.
pub struct KeptListeners {
    given: Mutex<KeptSockets>,
    /// `None`: without a supervisor.
    link: Option<Arc<ServingLink>>,
}

/// What an address is called between processes.
pub fn name_of(address: &ListenAddress) -> String {
    match address {
        ListenAddress::Tcp(address) => format!("tcp {address}"),
        ListenAddress::Unix(path) => {
            let whole = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            format!("unix {}", whole.display())
        }
    }
}

impl KeptListeners {
    pub fn new(given: KeptSockets, link: Option<Arc<ServingLink>>) -> KeptListeners {
        KeptListeners { given: Mutex::new(given), link }
    }

    /// Closes what nobody has taken: no plan names those addresses any more. Returns what they are called.
    pub fn release_unclaimed(&self) -> Vec<String> {
        let mut given = self.given.lock();
        let names: Vec<String> = given.names().map(str::to_owned).collect();
        for name in &names {
            drop(given.take(name));
            self.link.iter().for_each(|link| drop(link.release(name)));
        }
        names
    }
}

impl SocketKeeper for KeptListeners {
    fn take(&self, address: &ListenAddress) -> Vec<OwnedFd> {
        self.given.lock().take(&name_of(address))
    }

    fn keep(&self, address: &ListenAddress, sockets: &[OwnedFd]) {
        if let Some(link) = &self.link
            && let Err(error) = link.keep(&name_of(address), sockets)
        {
            let shown = show_listen(address);
            say!(
                "warning: {shown} is not kept beyond this process: {error}; an upgrade would refuse connections for a moment"
            );
        }
    }

    fn release(&self, address: &ListenAddress) {
        // A supervisor that is gone keeps nothing.
        self.link.iter().for_each(|link| drop(link.release(&name_of(address))));
    }
}
