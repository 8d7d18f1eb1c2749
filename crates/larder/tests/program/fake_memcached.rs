//! A memcached that says what a test wants: a thread for each connection reads command lines and answers each by a
//! function of the line. It shares no code with larder's own reader and writer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// What is done about a command.
pub enum Deed {
    /// These pieces, each in a write of its own; empty: nothing is said.
    Say(Vec<Vec<u8>>),
    /// The same, and then the end of the connection is waited for.
    SayLast(Vec<Vec<u8>>),
}

type Mind = dyn Fn(&str) -> Deed + Send + Sync;

pub struct FakeMemcached {
    pub address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    lines: Mutex<Vec<String>>,
    connections: AtomicUsize,
    /// Those whose other side has ended them.
    ended: AtomicUsize,
}

impl FakeMemcached {
    pub fn start(mind: impl Fn(&str) -> Deed + Send + Sync + 'static) -> FakeMemcached {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (seen, mind): (Arc<Seen>, Arc<Mind>) = (Arc::default(), Arc::new(mind));
        let at_home = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, mind) = (Arc::clone(&at_home), Arc::clone(&mind));
                seen.connections.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    converse(stream, &seen, &*mind);
                    seen.ended.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        FakeMemcached { address, seen }
    }

    /// Every command line so far.
    pub fn lines(&self) -> Vec<String> {
        self.seen.lines.lock().clone()
    }

    pub fn connections_count(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    pub fn ended_count(&self) -> usize {
        self.seen.ended.load(Ordering::SeqCst)
    }
}

fn converse(stream: TcpStream, seen: &Seen, mind: &Mind) {
    let Ok(mut writer) = stream.try_clone() else { return };
    // A piece is a packet, so that what is read differs with the cut.
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if !matches!(reader.read_line(&mut line), Ok(read) if read > 0) {
            return;
        }
        seen.lines.lock().push(line.trim_end().to_owned());
        // Before the value is read: a mind that waits is a peer that reads no further.
        let deed = mind(line.trim_end());
        // `ms KEY BYTES …` has its value behind it.
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["ms", _, length, ..] = words[..] {
            let mut value = vec![0; length.parse::<usize>().unwrap_or(0) + 2];
            if reader.read_exact(&mut value).is_err() {
                return;
            }
        }
        let (pieces, is_last) = match deed {
            Deed::Say(pieces) => (pieces, false),
            Deed::SayLast(pieces) => (pieces, true),
        };
        for piece in pieces {
            if writer.write_all(&piece).is_err() {
                return;
            }
        }
        if is_last {
            let mut rest = Vec::new();
            let _ = reader.read_to_end(&mut rest);
            return;
        }
    }
}
