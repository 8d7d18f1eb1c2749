//! An origin that fails on demand: the path says how. It counts what it was asked, so that a count of the load
//! generator's can be held against one that it did not make.
//!
//! Written by hand over plain sockets: it shares no code with what it tests.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::answering_origin::{self, target_of};

pub struct FaultyOrigin {
    pub address: SocketAddr,
    asked: Arc<AtomicU64>,
}

/// In this answer of `/pause` the origin stops to think.
const PAUSE_AT: u64 = 20;
pub const PAUSE_MS: u64 = 400;

impl FaultyOrigin {
    /// On a free port, until the tests end.
    pub fn start() -> FaultyOrigin {
        let asked = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&asked);
        let address = answering_origin::start_with(move |stream, head| {
            let number = count.fetch_add(1, Ordering::SeqCst);
            let target = target_of(head);
            // As a proxy is asked.
            let path = target.strip_prefix("http://").map_or(target, |rest| &rest[rest.find('/').unwrap_or(0)..]);
            answer(stream, path, number, head.contains("Connection: close"))
        });
        FaultyOrigin { address, asked }
    }

    /// Requests it has read.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Answers as the path says. May the connection be used again?
fn answer(stream: &mut TcpStream, path: &str, number: u64, closes: bool) -> bool {
    let connection = if closes { "Connection: close\r\n" } else { "" };
    let ok = |body: &str| format!("HTTP/1.1 200 OK\r\n{connection}Content-Length: {}\r\n\r\n{body}", body.len());
    let (text, keeps) = match path {
        "/ok" => (ok("all is well"), true),
        "/says-close" => ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".to_owned(), true),
        "/truncated" => ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_owned(), false),
        "/chunk-lost" => ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n".to_owned(), false),
        "/too-long" => ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmore than that".to_owned(), true),
        "/other-length" => (ok(if number.is_multiple_of(2) { "four" } else { "three" }), true),
        "/other-bytes" => (ok(if number.is_multiple_of(2) { "this" } else { "that" }), true),
        "/busy" => ("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_owned(), true),
        "/rubbish" => ("this is no HTTP\r\n\r\n".to_owned(), false),
        "/closed" => (String::new(), false),
        "/reset" => {
            // Closing with no time to linger sends a reset.
            let _ = socket2::SockRef::from(&*stream).set_linger(Some(Duration::ZERO));
            (String::new(), false)
        }
        "/silent" => (String::new(), true),
        "/stalled" => ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_owned(), true),
        "/pause" => {
            if number == PAUSE_AT {
                std::thread::sleep(Duration::from_millis(PAUSE_MS));
            }
            (ok("here"), true)
        }
        _ => ("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n".to_owned(), true),
    };
    stream.write_all(text.as_bytes()).is_ok() && keeps && !closes
}
