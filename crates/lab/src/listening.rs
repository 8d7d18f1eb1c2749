//! The listening sockets of the lab's own servers: one for each thread, all at one address.
//!
//! With several threads the kernel shares the connections out (SO_REUSEPORT). That option would also let a second
//! server of ours take an address that is in use, so the address is bound without it first.

use std::io;
use std::net::{SocketAddr, TcpListener};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

use crate::limits::LISTEN_QUEUE;

/// `threads` non-blocking listeners, and where they listen. Port 0 picks one.
pub(crate) fn listeners(address: SocketAddr, threads: usize) -> io::Result<(SocketAddr, Vec<TcpListener>)> {
    let first = listener(address, false)?;
    let address = first.local_addr()?;
    if threads <= 1 {
        return Ok((address, vec![first]));
    }
    drop(first);
    let all: io::Result<Vec<_>> = (0..threads).map(|_| listener(address, true)).collect();
    Ok((address, all?))
}

fn listener(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if shared {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    bind(&socket, &address)?;
    listen(&socket, LISTEN_QUEUE)?;
    Ok(TcpListener::from(socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_in_use_is_refused_whatever_the_threads() {
        let (address, held) = listeners("127.0.0.1:0".parse().unwrap(), 2).unwrap();
        assert_eq!(held.len(), 2);
        for threads in [1, 2] {
            let error = listeners(address, threads).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse, "{threads}");
        }
        drop(held);
        assert_eq!(listeners(address, 1).unwrap().0, address);
    }
}
