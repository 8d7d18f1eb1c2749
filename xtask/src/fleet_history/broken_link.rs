//! What stands between a node and the server of the log: a TCP proxy that copies bytes, until it is told to cut, to hold or to delay them.
//!
//! What is held is sent when the link is open again, also to somebody who has given up long ago, as a network does. A link that is cut
//! drops it, closes its connections and refuses new ones.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::ports;

/// How often who waits looks whether the link has changed.
const LOOK_EVERY: Duration = Duration::from_millis(4);
const BUFFER_BYTES: usize = 16 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkCondition {
    Open,
    Cut,
    /// Nothing arrives that goes this way, or that way.
    Frozen {
        to_log: bool,
        from_log: bool,
    },
    /// What arrives, either way, arrives so much later.
    Delayed(Duration),
}

/// It ends when it is dropped.
pub struct BrokenLink {
    pub port: u16,
    wire: Arc<LinkWire>,
}

/// What the threads of a link share.
struct LinkWire {
    condition: Mutex<LinkCondition>,
    /// How often it was cut: connections of before are closed.
    cuts: AtomicU64,
    is_over: AtomicBool,
    log_port: u16,
}

/// One way of one connection.
struct LinkWay {
    from: TcpStream,
    to: TcpStream,
    is_to_log: bool,
    cuts: u64,
}

impl BrokenLink {
    pub fn start(log_port: u16) -> Result<BrokenLink, String> {
        let (condition, cuts, is_over) = (Mutex::new(LinkCondition::Open), AtomicU64::new(0), AtomicBool::new(false));
        let wire = Arc::new(LinkWire { condition, cuts, is_over, log_port });
        let port = ports::free()?;
        let listener = listen(port).map_err(|error| format!("a link, at port {port}: {error}"))?;
        let accepting = Arc::clone(&wire);
        thread::spawn(move || accept(&accepting, port, Some(listener)));
        Ok(BrokenLink { port, wire })
    }

    pub fn set(&self, condition: LinkCondition) {
        *self.wire.condition.lock().expect("nobody panicked") = condition;
        if condition == LinkCondition::Cut {
            self.wire.cuts.fetch_add(1, SeqCst);
        }
    }
}

impl Drop for BrokenLink {
    fn drop(&mut self) {
        self.wire.is_over.store(true, SeqCst);
        self.wire.cuts.fetch_add(1, SeqCst);
    }
}

fn listen(port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Listens whenever the link is not cut.
fn accept(wire: &Arc<LinkWire>, port: u16, mut listener: Option<TcpListener>) {
    while !wire.is_over.load(SeqCst) {
        match wire.condition() {
            LinkCondition::Cut => listener = None,
            _ if listener.is_none() => listener = listen(port).ok(),
            _ => {}
        }
        match listener.as_ref().map(TcpListener::accept) {
            // Where the log is not there, who has connected is closed again.
            Some(Ok((node, _))) => drop(wire.connect(node)),
            _ => thread::sleep(LOOK_EVERY),
        }
    }
}

impl LinkWire {
    fn condition(&self) -> LinkCondition {
        *self.condition.lock().expect("nobody panicked")
    }

    fn connect(self: &Arc<Self>, node: TcpStream) -> io::Result<()> {
        let cuts = self.cuts.load(SeqCst);
        let log = TcpStream::connect((Ipv4Addr::LOCALHOST, self.log_port))?;
        for socket in [&node, &log] {
            socket.set_nonblocking(false)?;
            socket.set_nodelay(true)?;
            socket.set_read_timeout(Some(LOOK_EVERY))?;
        }
        let to_log = LinkWay { from: node.try_clone()?, to: log.try_clone()?, is_to_log: true, cuts };
        for way in [to_log, LinkWay { from: log, to: node, is_to_log: false, cuts }] {
            let wire = Arc::clone(self);
            thread::spawn(move || wire.copy(way));
        }
        Ok(())
    }

    fn copy(&self, mut way: LinkWay) {
        let mut buffer = vec![0; BUFFER_BYTES];
        while self.cuts.load(SeqCst) == way.cuts {
            let length = match way.from.read(&mut buffer) {
                Ok(length) => length,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
                Err(_) => 0,
            };
            // The end of a connection is held and delayed as bytes are.
            let arrives = self.hold(&way);
            if !arrives || length == 0 || way.to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        for socket in [&way.from, &way.to] {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Until it may go on. False if the connection is cut meanwhile.
    fn hold(&self, way: &LinkWay) -> bool {
        if let LinkCondition::Delayed(time) = self.condition() {
            thread::sleep(time);
        }
        let is_held = || match self.condition() {
            LinkCondition::Frozen { to_log, from_log } => {
                if way.is_to_log {
                    to_log
                } else {
                    from_log
                }
            }
            _ => false,
        };
        while is_held() && self.cuts.load(SeqCst) == way.cuts {
            thread::sleep(LOOK_EVERY);
        }
        self.cuts.load(SeqCst) == way.cuts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a word through the link to somebody who sends back what comes, and says what came within a moment.
    fn echoed(client: &mut TcpStream, word: &str) -> io::Result<String> {
        client.set_read_timeout(Some(Duration::from_millis(200)))?;
        client.write_all(word.as_bytes())?;
        let mut buffer = [0; 64];
        let length = client.read(&mut buffer)?;
        Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }

    fn link_to_echo() -> BrokenLink {
        let echo = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = echo.local_addr().expect("its address").port();
        thread::spawn(move || {
            for socket in echo.incoming().flatten() {
                thread::spawn(move || io::copy(&mut socket.try_clone().expect("a socket"), &mut &socket));
            }
        });
        BrokenLink::start(port).expect("a link")
    }

    #[test]
    fn an_open_link_copies_and_a_frozen_one_holds_until_it_is_open() {
        for (to_log, from_log) in [(true, true), (true, false), (false, true)] {
            let link = link_to_echo();
            let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, link.port)).expect("connected");
            assert_eq!(echoed(&mut client, "one").expect("open"), "one");
            link.set(LinkCondition::Frozen { to_log, from_log });
            assert!(echoed(&mut client, "two").is_err(), "frozen {to_log} {from_log}");
            link.set(LinkCondition::Open);
            let mut held = [0; 3];
            client.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
            client.read_exact(&mut held).expect("what was held");
            assert_eq!(&held, b"two");
        }
    }

    #[test]
    fn a_cut_link_closes_refuses_and_comes_back() {
        let link = link_to_echo();
        let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, link.port));
        let mut client = connect().expect("connected");
        assert_eq!(echoed(&mut client, "one").expect("open"), "one");
        link.set(LinkCondition::Cut);
        while connect().is_ok() {
            thread::sleep(LOOK_EVERY);
        }
        assert!(!echoed(&mut client, "two").is_ok_and(|word| !word.is_empty()));
        link.set(LinkCondition::Open);
        let mut client = loop {
            match connect() {
                Ok(client) => break client,
                Err(_) => thread::sleep(LOOK_EVERY),
            }
        };
        assert_eq!(echoed(&mut client, "three").expect("open again"), "three");
    }

    #[test]
    fn a_delayed_link_brings_everything_later() {
        let link = link_to_echo();
        link.set(LinkCondition::Delayed(Duration::from_millis(150)));
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, link.port)).expect("connected");
        assert!(echoed(&mut client, "one").is_err(), "it takes twice that time");
        let mut late = [0; 3];
        client.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
        client.read_exact(&mut late).expect("late");
        assert_eq!(&late, b"one");
    }
}
