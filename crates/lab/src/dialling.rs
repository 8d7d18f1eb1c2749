//! A connection to the target, from the source address of its user, with TLS on it if that is spoken; or why there is none.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;
use tokio::net::{TcpSocket, TcpStream, UnixStream};

use crate::answer::Fault;
use crate::client_thread::Desk;
use crate::error_kind::ErrorKind;
use crate::lab_clock::Nanos;
use crate::limits::{CONNECT_PAUSE, PORT_TRIES_MAX};
use crate::read_ahead::ReadAhead;
use crate::tls_client::UserTls;
use crate::transport::Transport;

/// The connection, and when it was begun.
pub(crate) async fn dial(desk: &Desk, user: usize, tls: Option<&UserTls>) -> Result<(Transport, Nanos), Fault> {
    let (workload, begun) = (&desk.workload, Nanos::now());
    let late = |kind| Fault { kind, text: format!("after {:?}", workload.timeout) };
    let stream = match tokio::time::timeout(workload.timeout, connect(desk, user)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(Fault { kind: connect_error(&error), text: error.to_string() }),
        Err(_) => return Err(late(ErrorKind::ConnTimeout)),
    };
    // Refused only for a socket that is already dead, which the first write then says.
    let _ = stream.set_nodelay(true);
    let connected = Nanos::now();
    let stream = ReadAhead::new(stream, desk.read_pool.clone());
    desk.note_connected(begun, connected);
    let transport = match tls {
        None => Transport::Plain(stream),
        Some(tls) => {
            let secured = tokio::time::timeout(workload.timeout, tls.begin(stream)).await;
            let (stream, handshake) = secured.map_err(|_| late(ErrorKind::TlsTimeout))??;
            desk.note_handshake(&handshake, begun, connected);
            Transport::Tls(Box::new(stream))
        }
    };
    desk.note_connection();
    Ok((transport, begun))
}

async fn connect(desk: &Desk, user: usize) -> io::Result<TcpStream> {
    if let Some(path) = &desk.workload.unix {
        return connect_unix(path).await;
    }
    let address = desk.workload.address;
    let Some(source) = desk.source(user) else { return TcpStream::connect(address).await };
    let mut refusal = io::Error::from(Errno::ADDRNOTAVAIL);
    for _ in 0..PORT_TRIES_MAX {
        match connect_from(desk.take_port(source), address).await {
            Err(error) if connect_error(&error) == ErrorKind::AddrUnavail => refusal = error,
            done => return done,
        }
    }
    Err(refusal)
}

async fn connect_from(source: SocketAddr, target: SocketAddr) -> io::Result<TcpStream> {
    let socket = if source.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // So that a port can be had again whose last connection still lingers, as it can without a source.
    socket.set_reuseaddr(true)?;
    socket.bind(source)?;
    socket.connect(target).await
}

/// A UNIX socket behind the type for TCP's: both are stream sockets to everything that is done with one here, and so
/// the way over TCP pays nothing for the choice.
async fn connect_unix(path: &Path) -> io::Result<TcpStream> {
    loop {
        match UnixStream::connect(path).await {
            Ok(stream) => return TcpStream::from_std(std::net::TcpStream::from(OwnedFd::from(stream.into_std()?))),
            // Its queue is full; there is no waiting for room in it. The caller's time-out ends this.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => tokio::time::sleep(CONNECT_PAUSE).await,
            Err(error) => return Err(error),
        }
    }
}

fn connect_error(error: &io::Error) -> ErrorKind {
    match (error.raw_os_error().map(Errno::from_raw_os_error), error.kind()) {
        (Some(Errno::MFILE | Errno::NFILE), _) => ErrorKind::FdUnavail,
        // The one when connecting, the other when binding to a source.
        (Some(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE), _) => ErrorKind::AddrUnavail,
        (_, io::ErrorKind::ConnectionRefused) => ErrorKind::ConnRefused,
        (_, io::ErrorKind::ConnectionReset) => ErrorKind::ConnReset,
        (_, io::ErrorKind::TimedOut) => ErrorKind::ConnTimeout,
        _ => ErrorKind::Other,
    }
}
