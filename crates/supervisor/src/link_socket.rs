//! The link between a supervisor and a serving process: datagrams with sockets over a pair of `SOCK_SEQPACKET` sockets, so a word is
//! whole or not there.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::limits::{LINK_TIMEOUT, SOCKETS_PER_WORD_MAX, WORD_BYTES_MAX};
use crate::link_word::Datagram;

/// One end.
#[derive(Debug)]
pub struct LinkSocket(OwnedFd);

impl LinkSocket {
    /// Both ends. Who waits for a peer that takes nothing waits for [`LINK_TIMEOUT`] at most.
    pub fn pair() -> io::Result<(LinkSocket, LinkSocket)> {
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((LinkSocket::on(one)?, LinkSocket::on(other)?))
    }

    /// On an end that came from elsewhere.
    pub fn on(socket: OwnedFd) -> io::Result<LinkSocket> {
        set_socket_timeout(&socket, Timeout::Send, Some(LINK_TIMEOUT))?;
        Ok(LinkSocket(socket))
    }

    pub fn into_fd(self) -> OwnedFd {
        self.0
    }

    /// Says one. A peer that is gone is an error, never a signal.
    pub fn send(&self, datagram: &Datagram) -> io::Result<()> {
        self.send_with(datagram, SendFlags::NOSIGNAL)
    }

    /// The same, if there is room: else `WouldBlock`.
    pub fn send_now(&self, datagram: &Datagram) -> io::Result<()> {
        self.send_with(datagram, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
    }

    fn send_with(&self, datagram: &Datagram, flags: SendFlags) -> io::Result<()> {
        if datagram.text.len() > WORD_BYTES_MAX || datagram.sockets.len() > SOCKETS_PER_WORD_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a word is longer than the link takes"));
        }
        let sockets: Vec<BorrowedFd<'_>> = datagram.sockets.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_PER_WORD_MAX))];
        let mut with = SendAncillaryBuffer::new(&mut space);
        if !sockets.is_empty() && !with.push(SendAncillaryMessage::ScmRights(&sockets)) {
            return Err(io::Error::other("the sockets of a word do not fit"));
        }
        let bytes = [IoSlice::new(datagram.text.as_bytes())];
        loop {
            match sendmsg(&self.0, &bytes, &mut with, flags) {
                Err(rustix::io::Errno::INTR) => {}
                result => return result.map(|_| ()).map_err(io::Error::from),
            }
        }
    }

    /// Waits for the next. `None`: the other end is closed.
    pub fn receive(&self) -> io::Result<Option<Datagram>> {
        self.receive_with(RecvFlags::CMSG_CLOEXEC)
    }

    /// The next, if there is one: else `WouldBlock`.
    pub fn receive_now(&self) -> io::Result<Option<Datagram>> {
        self.receive_with(RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT)
    }

    fn receive_with(&self, flags: RecvFlags) -> io::Result<Option<Datagram>> {
        let mut bytes = [0; WORD_BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_PER_WORD_MAX))];
        let mut with = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            match recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut with, flags) {
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::CONNRESET) => return Ok(None),
                result => break result?,
            }
        };
        let mut sockets = Vec::new();
        for message in with.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                sockets.extend(fds);
            }
        }
        // No word is empty.
        if received.bytes == 0 {
            return Ok(None);
        }
        if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a word was cut: too long, or too few descriptors"));
        }
        let text = std::str::from_utf8(&bytes[..received.bytes]);
        let text = text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a word is no text"))?.to_owned();
        Ok(Some(Datagram { text, sockets }))
    }
}

impl AsFd for LinkSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn words_arrive_whole_with_their_sockets_and_a_closed_end_is_none() {
        let (one, other) = LinkSocket::pair().expect("a pair");
        let (mut kept, sent) = UnixStream::pair().expect("a pair");
        one.send(&Datagram { text: "keep x".into(), sockets: vec![sent.into()] }).expect("sent");
        one.send(&Datagram { text: "leaving".into(), sockets: Vec::new() }).expect("sent");
        let first = other.receive().expect("received").expect("a word");
        assert_eq!((first.text.as_str(), first.sockets.len()), ("keep x", 1));
        let mut arrived = UnixStream::from(first.sockets.into_iter().next().expect("one"));
        arrived.write_all(b"hello").expect("written");
        drop(arrived);
        let mut read = String::new();
        kept.read_to_string(&mut read).expect("read");
        assert_eq!(read, "hello");
        assert_eq!(other.receive_now().expect("received").expect("a word").text, "leaving");
        assert_eq!(other.receive_now().expect_err("nothing more").kind(), io::ErrorKind::WouldBlock);
        drop(one);
        assert!(other.receive().expect("an end").is_none());
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_is_said() {
        let (one, _other) = LinkSocket::pair().expect("a pair");
        let long = Datagram { text: "x".repeat(WORD_BYTES_MAX + 1), sockets: Vec::new() };
        assert_eq!(one.send(&long).expect_err("too long").kind(), io::ErrorKind::InvalidInput);
    }
}
