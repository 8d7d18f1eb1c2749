//! Listening sockets that outlive this process: what processes before it, or the service manager, have bound is taken, and what it binds
//! itself is given to its supervisor.

use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
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

/// A port that is picked has no name by which the next process could know it.
fn outlives_no_process(address: &ListenAddress) -> bool {
    matches!(address, ListenAddress::Tcp(address) if address.port() == 0)
}

/// A socket whose path is gone: nobody could connect to it.
fn is_unreachable(address: &ListenAddress) -> bool {
    let ListenAddress::Unix(path) = address else { return false };
    !std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
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
        if outlives_no_process(address) {
            return Vec::new();
        }
        let taken = self.given.lock().take(&name_of(address));
        if !taken.is_empty() && is_unreachable(address) {
            self.release(address);
            return Vec::new();
        }
        taken
    }

    fn keep(&self, address: &ListenAddress, sockets: &[&OwnedFd]) {
        if let Some(link) = &self.link
            && !outlives_no_process(address)
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
