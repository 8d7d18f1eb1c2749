//! Accept: one listening socket per core and address, connections handed to the core that has fewest.
//!
//! `SO_REUSEPORT` spreads by hash, which at 16 connections gives the busiest of 8 listeners twice its share; so a
//! busier core hands a fresh connection on before its first byte is read. Listeners know nothing of HTTP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::net::{SocketAddrAny, SocketFlags, acceptfrom_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::accepted::{Accepted, Listener};
use crate::clock::Moment;
use crate::core::Core;
use crate::http1_serving;
use crate::mailbox::Message;
use crate::peer::Peer;
use crate::route_rules::rate_table::client_network;
use crate::settings::{ListenAddress, ListenMode, ListenerSettings};
use crate::stderr_line::complain;

/// Connections the kernel may keep for us between two accepts.
const BACKLOG: i32 = 4096;
/// Bytes of an answer that the kernel may hold unsent for one connection.
pub(crate) const UNSENT_BYTES_MAX: u32 = 256 << 10;
/// After the descriptor limit was met: how long until the next try.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// Binds an address for `cores` cores. Says what could not be bound and why.
pub(crate) fn bind(settings: &ListenerSettings, cores: usize) -> Result<(ListenAddress, Vec<OwnedFd>), String> {
    let failed = |address: &dyn std::fmt::Display, error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => format!("cannot listen on {address}: the address is in use"),
        io::ErrorKind::PermissionDenied if matches!(settings.address, ListenAddress::Tcp(_)) => format!(
            "cannot listen on {address}: a port below 1024 needs a right that this user has not (CAP_NET_BIND_SERVICE)"
        ),
        _ => format!("cannot listen on {address}: {error}"),
    };
    match &settings.address {
        ListenAddress::Tcp(address) => {
            let bound = claim(*address).map_err(|e| failed(address, e))?;
            let sockets = (0..cores).map(|_| bind_tcp(bound)).collect::<io::Result<_>>();
            Ok((ListenAddress::Tcp(bound), sockets.map_err(|e| failed(address, e))?))
        }
        ListenAddress::Unix(path) => {
            let socket = bind_unix(path).map_err(|e| failed(&format_args!("unix:{}", path.display()), e))?;
            Ok((settings.address.clone(), vec![socket]))
        }
    }
}

/// With `SO_REUSEPORT` a second program on our address would go unnoticed, so a plain bind comes first; it also
/// picks the port when it is 0.
fn claim(address: SocketAddr) -> io::Result<SocketAddr> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(1)?;
    socket.local_addr()?.as_socket().ok_or_else(|| io::Error::other("not an internet address"))
}

fn bind_tcp(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    // Accepted sockets inherit these two, which saves two system calls a connection.
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_notsent_lowat(UNSENT_BYTES_MAX)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// One that somebody else has bound is as if it had been bound here.
pub(crate) fn make_ready(socket: &OwnedFd, is_unix: bool) -> io::Result<()> {
    let socket = socket2::SockRef::from(socket);
    socket.set_nonblocking(true)?;
    if !is_unix {
        socket.set_tcp_nodelay(true)?;
        socket.set_tcp_notsent_lowat(UNSENT_BYTES_MAX)?;
        socket.listen(BACKLOG)?;
    }
    Ok(())
}

/// Where it listens, for settings that it was bound by.
pub(crate) fn address_of(socket: &OwnedFd, settings: &ListenerSettings) -> ListenAddress {
    let local = socket2::SockRef::from(socket).local_addr().ok().and_then(|address| address.as_socket());
    local.map_or_else(|| settings.address.clone(), ListenAddress::Tcp)
}

fn bind_unix(path: &Path) -> io::Result<OwnedFd> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    match std::fs::symlink_metadata(path) {
        // A socket that nobody answers on: left by a process that was killed.
        Ok(found) if std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()) => std::fs::remove_file(path)?,
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the path exists and is no socket")),
        Err(_) => {}
    }
    let listener = std::os::unix::net::UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener.into())
}

/// Accepts until the listener is told to close; then empties the accept queue, or what waits there is reset.
pub(crate) async fn run(core: Rc<Core>, listener: Listener) {
    let unix_path = match &listener.settings.address {
        ListenAddress::Unix(path) => Some(path.clone()),
        ListenAddress::Tcp(_) => None,
    };
    // The deprecation is about types whose descriptor may change or be closed behind the registration; an OwnedFd's
    // cannot, and the replacement is unsafe to call.
    #[allow(deprecated, reason = "sound for OwnedFd")]
    let registered = AsyncFd::with_interest(listener.socket, Interest::READABLE);
    let socket = match registered {
        Ok(socket) => socket,
        Err(error) => {
            // Other cores may accept there, or a reload have it tried again.
            let core = core.index;
            return complain(format_args!(
                "error: worker {core} accepts nothing on an address: {error} (sysctl fs.epoll.max_user_watches)"
            ));
        }
    };
    let (is_unix, proxy_protocol) = (unix_path.is_some(), listener.settings.proxy_protocol);
    let h2c = listener.settings.h2c && listener.settings.tls.is_none();
    let (mode, name, tls) = (listener.settings.mode, listener.settings.name.clone(), listener.settings.tls.clone());
    let arrived = |socket, peer| Accepted {
        socket,
        is_unix,
        peer,
        proxy_protocol,
        mode,
        name: name.clone(),
        tls: tls.clone(),
        h2c,
        permit: None,
    };
    let mut closing = core.listener_closing(&listener.settings);
    loop {
        let full = core.shared.connections_open() >= core.site().settings.limits.connections_max;
        let wait = async {
            if full {
                core.slots.end_oldest_idle();
                tokio::time::sleep(EXHAUSTED_PAUSE).await;
                return Ok(None);
            }
            socket.async_io(Interest::READABLE, |socket| accept(socket.as_fd())).await.map(Some)
        };
        let accepted = tokio::select! {
            biased;
            accepted = wait => accepted,
            () = &mut closing => break,
        };
        match accepted {
            Ok(None) => {}
            Ok(Some((fd, peer))) => place(&core, arrived(fd, peer)),
            Err(error) => pause_after(&core, &error).await,
        }
    }
    if core.shared.is_handed_over() {
        // Who waits there is the next process's.
        return;
    }
    while let Ok((fd, peer)) = accept(socket.get_ref().as_fd()) {
        place(&core, arrived(fd, peer));
    }
    if let Some(path) = unix_path {
        remove_socket(&core, &path);
    }
}

/// The path of a UNIX listener goes with it, unless a reload has opened it again.
fn remove_socket(core: &Core, path: &PathBuf) {
    let kept = !core.draining()
        && core.site().settings.listeners.iter().any(|l| l.address == ListenAddress::Unix(path.clone()));
    if !kept && let Err(error) = std::fs::remove_file(path) {
        complain(format_args!("the socket {} could not be removed: {error}", path.display()));
    }
}

pub(crate) fn accept(listener: impl AsFd) -> io::Result<(OwnedFd, Peer)> {
    let (socket, address) = acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
    let peer = address.and_then(|any: SocketAddrAny| SocketAddr::try_from(any).ok()).map_or(Peer::UNIX, Peer::of);
    Ok((socket, peer))
}

/// Out of descriptors or memory: a pause, so that those inside are served and nothing spins.
async fn pause_after(core: &Core, error: &io::Error) {
    use rustix::io::Errno;
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
            if core.shared.descriptors_notice.lock().take(Moment::now().millis()) {
                complain(format_args!("{}", out_of_descriptors(error)));
            }
            core.counters.connections_refused.add(1);
            core.slots.end_oldest_idle();
            tokio::time::sleep(EXHAUSTED_PAUSE).await;
        }
        // The client was gone before we took it (ECONNABORTED and the network's own errors).
        _ => tokio::task::yield_now().await,
    }
}

/// What the operator can do about it.
fn out_of_descriptors(error: &io::Error) -> String {
    use rustix::io::Errno;
    let setting = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE) => "LimitNOFILE= of a unit, ulimit -n, or a smaller limits.connections_max",
        Some(Errno::NFILE) => "sysctl fs.file-max, for all programs of the machine",
        _ => "the kernel has no memory for sockets",
    };
    format!("new connections wait, and the longest idle ones end for them: {error} ({setting})")
}

/// How many connections who this is from may have, if that is limited, and as whom they are counted.
fn connections_limit(core: &Core, accepted: &Accepted) -> Option<(IpAddr, usize)> {
    let site = core.site_ref();
    let forward_max = site.settings.forward.client_connections_max;
    if accepted.mode == ListenMode::Forward && forward_max > 0 {
        return Some((client_network(accepted.peer.ip()), forward_max));
    }
    let per_client_max = site.settings.limits.connections_per_client_max;
    (per_client_max > 0).then_some((accepted.peer.ip(), per_client_max))
}

/// Keeps the connection here, or hands it to the core with the fewest.
fn place(core: &Rc<Core>, mut accepted: Accepted) {
    core.counters.connections_accepted.add(1);
    if core.lacks_memory() {
        core.counters.connections_refused.add(1);
        core.counters.connections_refused_memory.add(1);
        core.slots.end_oldest_idle();
        return;
    }
    if let Some((client, per_client_max)) = connections_limit(core, &accepted) {
        let Some(permit) = core.shared.client_permits.take(client, per_client_max) else {
            core.counters.connections_refused.add(1);
            return;
        };
        accepted.permit = Some(Box::new(permit));
    }
    let loads = &core.shared.loads;
    let here = loads[core.index].load(Ordering::Relaxed);
    let (least, load) = loads
        .iter()
        .map(|load| load.load(Ordering::Relaxed))
        .enumerate()
        .min_by_key(|&(_, load)| load)
        .expect("there is at least one core");
    // A difference of one is not worth waking another core for.
    if load + 1 < here {
        loads[least].fetch_add(1, Ordering::Relaxed);
        core.shared.mailboxes[least].post(Message::Connection(accepted));
    } else {
        loads[core.index].fetch_add(1, Ordering::Relaxed);
        http1_serving::spawn(core, accepted);
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn who_is_out_of_descriptors_is_told_whose_they_are() {
        for (errno, setting) in
            [(Errno::MFILE, "LimitNOFILE="), (Errno::NFILE, "fs.file-max"), (Errno::NOBUFS, "memory")]
        {
            let line = out_of_descriptors(&errno.into());
            assert!(line.contains(setting), "{line}");
        }
    }
}
