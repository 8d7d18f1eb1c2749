//! One client connection that plays a script: writes bytes, pauses, half-closes or resets, and keeps every byte it
//! gets. It never blocks and never sleeps; the lane drives it. It knows nothing of HTTP.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use crate::notation::{Script, Step};

/// How the other side ended the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Fin,
    Reset,
    /// The script did it.
    Ours,
}

#[derive(Debug)]
pub struct Client {
    stream: Option<TcpStream>,
    script: Script,
    /// Bytes of the script's first step that are written.
    written: usize,
    pub received: Vec<u8>,
    pub end: Option<End>,
    /// Takes nothing from its socket: a reader that stalls.
    pub deaf: bool,
}

impl Client {
    pub fn connect(address: SocketAddr, script: Script) -> std::io::Result<Client> {
        Client::over(TcpStream::connect(address)?, script)
    }

    /// Connects from another address of this machine.
    pub fn connect_from(local: SocketAddr, address: SocketAddr, script: Script) -> std::io::Result<Client> {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.bind(&local.into())?;
        socket.connect(&address.into())?;
        Client::over(socket.into(), script)
    }

    fn over(stream: TcpStream, script: Script) -> std::io::Result<Client> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Client { stream: Some(stream), script, written: 0, received: Vec::new(), end: None, deaf: false })
    }

    /// Adds to the script.
    pub fn say(&mut self, more: Script) {
        self.script.extend(more);
    }

    /// The socket to poll, and whether there is something to write; `None` when nothing can happen any more.
    pub fn watch(&self) -> Option<(BorrowedFd<'_>, bool)> {
        let stream = self.stream.as_ref().filter(|_| self.end.is_none())?;
        Some((stream.as_fd(), matches!(self.script.front(), Some(Step::Bytes(_)))))
    }

    /// Reads and writes what is possible now. Returns whether anything moved.
    pub fn turn(&mut self) -> bool {
        let wrote = self.write();
        let read = !self.deaf && self.read();
        wrote || read
    }

    /// Everything is at rest: a pause of the script is over.
    pub fn on_still(&mut self) -> bool {
        if self.script.front() != Some(&Step::Wait) {
            return false;
        }
        self.script.pop_front();
        self.write();
        true
    }

    fn write(&mut self) -> bool {
        let mut moved = false;
        while let (Some(stream), Some(step)) = (&mut self.stream, self.script.front()) {
            match step {
                Step::Wait => return moved,
                Step::Eof => {
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                }
                Step::Reset => {
                    reset(stream);
                    self.stream = None;
                    self.end = Some(End::Ours);
                }
                Step::Bytes(bytes) => match stream.write(&bytes[self.written..]) {
                    Ok(len) if self.written + len < bytes.len() => {
                        self.written += len;
                        moved = true;
                        continue;
                    }
                    Ok(_) => self.written = 0,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return moved,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    // The other side has closed: what is left of the script cannot be said. The end itself is read.
                    Err(_) => {
                        self.script.clear();
                        self.written = 0;
                        return true;
                    }
                },
            }
            self.script.pop_front();
            moved = true;
        }
        moved
    }

    fn read(&mut self) -> bool {
        let Some(stream) = self.stream.as_mut().filter(|_| self.end.is_none()) else { return false };
        let before = self.received.len();
        self.end = read_all(stream, &mut self.received);
        self.end.is_some() || self.received.len() > before
    }

    /// Closes; unread bytes make it a reset.
    pub fn close(&mut self) {
        self.stream = None;
        self.end.get_or_insert(End::Ours);
    }
}

/// Reads until the socket is empty or ended.
pub fn read_all(stream: &mut TcpStream, into: &mut Vec<u8>) -> Option<End> {
    let mut buffer = [0u8; 64 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Some(End::Fin),
            Ok(len) => into.extend_from_slice(&buffer[..len]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Some(End::Reset),
        }
    }
}

/// Makes the coming close send a RST.
pub fn reset(stream: &TcpStream) {
    let _ = rustix::net::sockopt::set_socket_linger(stream, Some(std::time::Duration::ZERO));
}
