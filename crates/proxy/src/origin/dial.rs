//! Opens a connection to one address. One attempt, one deadline; whose turn it is and what a failure means for the
//! address is decided by the callers.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::net::{TcpStream, UnixStream};

use super::limits::UNIX_BACKLOG_PAUSE;
use super::origin_error::OriginErrorKind;
use crate::in_time::in_time;
use crate::settings::MockedOrigin;
use crate::socket::Socket;

/// Where a connection can be opened to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DialAddress {
    Tcp(SocketAddr),
    /// HTTP/2 at once.
    Http2(SocketAddr),
    /// With TLS, to the server of this name.
    Tls(SocketAddr, Arc<str>),
    Unix(PathBuf),
    /// A dry run's.
    Mocked(MockedOrigin),
}

impl fmt::Display for DialAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DialAddress::Tcp(address) | DialAddress::Http2(address) | DialAddress::Tls(address, _) => {
                write!(f, "{address}")
            }
            // A socket without a file, in the kernel's name space: its name begins with a zero byte.
            DialAddress::Unix(path) => match path.as_os_str().as_encoded_bytes() {
                [0, name @ ..] => write!(f, "unix:@{}", String::from_utf8_lossy(name)),
                _ => write!(f, "unix:{}", path.display()),
            },
            DialAddress::Mocked(origin) => write!(f, "mocked:{}", origin.backend()),
        }
    }
}

/// Connects, and does with the fresh connection what belongs to opening it, all within `timeout`.
pub async fn dial<F, R>(
    place: &DialAddress,
    timeout: Duration,
    then: impl FnOnce(Socket) -> F,
) -> Result<R, OriginErrorKind>
where
    F: Future<Output = Result<R, OriginErrorKind>>,
{
    let connected = async { then(connect(place).await.map_err(failed)?).await };
    in_time(timeout, pin!(connected)).await.unwrap_or(Err(OriginErrorKind::ConnectTimeout { after: timeout }))
}

/// Why the system does not connect us.
pub fn failed(why: io::Error) -> OriginErrorKind {
    if is_ours(&why) { OriginErrorKind::Exhausted { why } } else { OriginErrorKind::Connect { why } }
}

async fn connect(place: &DialAddress) -> io::Result<Socket> {
    match place {
        DialAddress::Tcp(address) | DialAddress::Http2(address) | DialAddress::Tls(address, _) => {
            let stream = TcpStream::connect(address).await?;
            // Once here, never on reuse: a request is written whole, so Nagle's delay could only hold back its tail.
            stream.set_nodelay(true)?;
            Ok(stream.into())
        }
        DialAddress::Mocked(origin) => Ok(origin.open()?.into()),
        DialAddress::Unix(path) => loop {
            match connect_unix(path) {
                Ok(stream) => return Ok(stream.into()),
                // unix(7): EAGAIN says that the backlog is full. TCP would wait; so do we, within the same deadline.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => tokio::time::sleep(UNIX_BACKLOG_PAUSE).await,
                Err(e) => return Err(e),
            }
        },
    }
}

/// Nobody is on the way to such a socket: it is connected at once, or not at all.
fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    let address = match path.as_os_str().as_encoded_bytes() {
        [0, name @ ..] => SocketAddrUnix::new_abstract_name(name),
        _ => SocketAddrUnix::new(path),
    }?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &address)?;
    UnixStream::from_std(socket.into())
}

/// Did we fail for want of something that no other address would give us either?
fn is_ours(error: &io::Error) -> bool {
    let Some(code) = error.raw_os_error() else { return false };
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::ADDRNOTAVAIL, Errno::AGAIN]
        .iter()
        .any(|errno| errno.raw_os_error() == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(errno: Errno, ours: bool) {
        assert_eq!(is_ours(&io::Error::from_raw_os_error(errno.raw_os_error())), ours, "{errno}");
    }

    #[test]
    fn want_of_ports_and_descriptors_is_not_the_origins_fault() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL, Errno::NOBUFS] {
            check(errno, true);
        }
        for errno in [Errno::CONNREFUSED, Errno::HOSTUNREACH, Errno::NETUNREACH, Errno::CONNRESET, Errno::NOENT] {
            check(errno, false);
        }
    }
}
