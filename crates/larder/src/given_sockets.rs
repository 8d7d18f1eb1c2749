//! Sockets that the service manager has bound for larder (systemd's socket activation, sd_listen_fds(3)): they are as if a process
//! before this one had bound them.

use std::os::fd::OwnedFd;

use listenfd::ListenFd;
use proxy::settings::ListenAddress;
use supervisor::KeptSockets;

use crate::kept_listeners::name_of;
use crate::say::say;

/// Those that the environment names.
pub fn of_environment() -> KeptSockets {
    let (mut fds, mut kept) = (ListenFd::from_env(), KeptSockets::default());
    for at in 0..fds.len() {
        match taken(&mut fds, at) {
            Some((address, socket)) => {
                kept.keep(&name_of(&address), vec![socket]);
            }
            None => say!(
                "warning: socket {at} of the service manager is no listening stream socket over TCP or UNIX, and is left alone"
            ),
        }
    }
    kept
}

/// With where it is bound.
fn taken(fds: &mut ListenFd, at: usize) -> Option<(ListenAddress, OwnedFd)> {
    if let Ok(Some(listener)) = fds.take_tcp_listener(at) {
        return Some((ListenAddress::Tcp(listener.local_addr().ok()?), listener.into()));
    }
    let listener = fds.take_unix_listener(at).ok()??;
    let path = listener.local_addr().ok()?.as_pathname()?.to_owned();
    Some((ListenAddress::Unix(path), listener.into()))
}
