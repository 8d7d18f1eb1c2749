//! Who keeps listening sockets beyond the process that has bound them, so that the next one goes on where it was and nobody who connects in
//! between is refused.

use std::os::fd::OwnedFd;

use crate::settings::ListenAddress;

/// See the module. What it is told it cannot do it says itself: here nothing depends on it.
pub trait SocketKeeper: Send + Sync {
    /// The sockets that are kept for an address and that this process has not had yet: bound, and listened on.
    fn take(&self, address: &ListenAddress) -> Vec<OwnedFd>;

    /// Has them kept.
    fn keep(&self, address: &ListenAddress, sockets: &[&OwnedFd]);

    /// The address is listened on no longer.
    fn release(&self, address: &ListenAddress);
}

/// Nobody: an address is this process's alone.
pub struct NoKeeper;

impl SocketKeeper for NoKeeper {
    fn take(&self, _: &ListenAddress) -> Vec<OwnedFd> {
        Vec::new()
    }

    fn keep(&self, _: &ListenAddress, _: &[&OwnedFd]) {}

    fn release(&self, _: &ListenAddress) {}
}
