//! The null server: one prebuilt answer, written to whatever is readable.
//!
//! What it does for an answer is what no server can leave out, one read and one write, so it is the floor under every
//! server of a run and the ceiling of the client that measures them. It parses nothing: several requests in one
//! segment get one answer, and half a request gets a whole one. All that it looks for is the wish to close.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send, sockopt};

use crate::constructed_body::append_constructed;
use crate::fake_origin::{Asked, Drawn, PLAIN_GET, Plan, Reply};
use crate::lab_clock::wall_seconds;
use crate::limits::{NULL_BODY_BYTES_MAX, NULL_EVENTS_MAX, SCRATCH_BYTES, STOP_LOOK};
use crate::listening::listeners;
use crate::usual_fields::append_date;

/// Serves from threads of its own until it is dropped.
#[derive(Debug)]
pub struct NullServer {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl NullServer {
    /// Answers with the body of `/f<size>.html`, and with the fields that the fake origin would give it.
    pub fn start(address: SocketAddr, size: u64, threads: usize) -> io::Result<NullServer> {
        if size > NULL_BODY_BYTES_MAX {
            return Err(io::Error::other(format!("a body of {size} bytes; {NULL_BODY_BYTES_MAX} is the most")));
        }
        let answers = Arc::new(Answers::new(size));
        let (address, listeners) = listeners(address, threads)?;
        let mut server = NullServer { address, stop: Arc::default(), threads: Vec::new() };
        for (thread, listener) in listeners.into_iter().enumerate() {
            let mut desk = NullThread::new(listener, Arc::clone(&answers), Arc::clone(&server.stop))?;
            let builder = std::thread::Builder::new().name(format!("null-{thread}"));
            server.threads.push(builder.spawn(move || desk.work())?);
        }
        Ok(server)
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Answers {
    keeping: Vec<u8>,
    closing: Vec<u8>,
}

impl Answers {
    fn new(size: u64) -> Answers {
        let plan = Plan::read(&format!("/f{size}.html"), "", 0).expect("the size was looked at");
        let answer = |persistent| {
            let drawn = Drawn { size, rule: plan.rule, error: None, faults: plan.faults };
            let reply = Reply::new(&plan, &Asked { persistent, ..PLAIN_GET }, &drawn);
            let mut out = reply.head;
            append_date(&mut out, wall_seconds());
            out.extend_from_slice(b"\r\n");
            append_constructed(&mut out, reply.rule, reply.from, reply.to);
            out
        };
        Answers { keeping: answer(true), closing: answer(false) }
    }
}

struct Connection {
    socket: OwnedFd,
    /// Bytes of the answer under way that are sent; 0: none is under way.
    sent: usize,
    closes: bool,
}

struct NullThread {
    poll: OwnedFd,
    listener: TcpListener,
    answers: Arc<Answers>,
    stop: Arc<AtomicBool>,
    /// By descriptor.
    connections: Vec<Option<Connection>>,
    scratch: Box<[u8]>,
    /// No descriptor was left: connections wait until one ends.
    starved: bool,
}

/// The listener's mark among the events; no descriptor has this number.
const LISTENER: u64 = u64::MAX;

impl NullThread {
    fn new(listener: TcpListener, answers: Arc<Answers>, stop: Arc<AtomicBool>) -> io::Result<NullThread> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        // Edges only, so that a listener that nobody can accept from does not wake us again and again.
        epoll::add(
            &poll,
            &listener,
            epoll::EventData::new_u64(LISTENER),
            epoll::EventFlags::IN | epoll::EventFlags::ET,
        )?;
        let scratch = vec![0; SCRATCH_BYTES].into_boxed_slice();
        Ok(NullThread { poll, listener, answers, stop, connections: Vec::new(), scratch, starved: false })
    }

    fn work(&mut self) {
        let look = Timespec { tv_sec: 0, tv_nsec: STOP_LOOK.subsec_nanos().into() };
        let mut events = Vec::with_capacity(NULL_EVENTS_MAX);
        while !self.stop.load(Ordering::Relaxed) {
            match epoll::wait(&self.poll, spare_capacity(&mut events), Some(&look)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => panic!("cannot wait for events: {error}"),
            }
            for event in events.drain(..) {
                match { event.data }.u64() {
                    LISTENER => self.accept(),
                    descriptor => self.serve(descriptor as usize),
                }
            }
        }
    }

    fn accept(&mut self) {
        use epoll::EventFlags;
        loop {
            let socket = match accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => socket,
                Err(Errno::CONNABORTED | Errno::INTR) => continue,
                Err(error) => return self.starved = matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM),
            };
            let descriptor = socket.as_raw_fd() as usize;
            let wanted = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            let known = sockopt::set_tcp_nodelay(&socket, true)
                .and_then(|()| epoll::add(&self.poll, &socket, epoll::EventData::new_u64(descriptor as u64), wanted));
            if known.is_err() {
                continue;
            }
            if self.connections.len() <= descriptor {
                self.connections.resize_with(descriptor + 1, || None);
            }
            self.connections[descriptor] = Some(Connection { socket, sent: 0, closes: false });
        }
    }

    #[inline]
    fn serve(&mut self, descriptor: usize) {
        let Some(Some(connection)) = self.connections.get_mut(descriptor) else { return };
        if !connection.answer(&self.answers, &mut self.scratch) {
            self.connections[descriptor] = None;
            if std::mem::take(&mut self.starved) {
                self.accept();
            }
        }
    }
}

impl Connection {
    /// Goes on as far as the socket allows. Does the connection live on?
    #[inline]
    fn answer(&mut self, answers: &Answers, scratch: &mut [u8]) -> bool {
        loop {
            let was_under_way = self.sent > 0;
            if !was_under_way {
                match recv(&self.socket, &mut *scratch, RecvFlags::empty()) {
                    Ok((0, _)) => return false,
                    Ok((count, _)) => self.closes = wants_close(&scratch[..count]),
                    Err(error) => return error == Errno::AGAIN || error == Errno::INTR,
                }
            }
            let answer = if self.closes { &answers.closing } else { &answers.keeping };
            match send(&self.socket, &answer[self.sent..], SendFlags::NOSIGNAL) {
                Ok(count) => self.sent += count,
                Err(error) => return error == Errno::AGAIN || error == Errno::INTR,
            }
            if self.sent == answer.len() {
                self.sent = 0;
                // What came while a long answer was written caused no further edge.
                if self.closes || !was_under_way {
                    return !self.closes;
                }
            }
        }
    }
}

/// As people and tools write it; `HTTP/1.0` always wants it, or ab would wait for ever.
#[inline]
fn wants_close(request: &[u8]) -> bool {
    let line = |line: &[u8]| line.starts_with(b"Connection: close") || line.ends_with(b"HTTP/1.0\r");
    request.split(|&b| b == b'\n').any(line)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;
    use crate::constructed_body::body_rule;

    fn check(size: u64, request: &str, requests: usize, closes: bool) {
        let server = NullServer::start("127.0.0.1:0".parse().unwrap(), size, 2).unwrap();
        let mut body = Vec::new();
        append_constructed(&mut body, body_rule(&format!("/f{size}.html")), 0, size);
        let mut client = TcpStream::connect(server.address).unwrap();
        for _ in 0..requests {
            client.write_all(request.as_bytes()).unwrap();
            let mut got = vec![0; Answers::new(size).keeping.len() + if closes { 19 } else { 0 }];
            client.read_exact(&mut got).unwrap();
            assert!(got.starts_with(b"HTTP/1.1 200 OK\r\n") && got.ends_with(&body), "{request:?}");
        }
        if closes {
            assert_eq!(client.read(&mut [0]).unwrap(), 0);
        }
    }

    #[test]
    fn every_request_gets_the_same_bytes() {
        check(100, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n", 3, false);
        check(0, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 3, false);
        check(20_000_000, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 2, false);
        check(100, "GET /x HTTP/1.1\r\nConnection: close\r\n\r\n", 1, true);
        check(9_000_000, "GET /x HTTP/1.0\r\n\r\n", 1, true);
    }
}
