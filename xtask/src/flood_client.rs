//! A client of HTTP/2 in the clear that asks for one page after the other, takes the time of each answer and compares its body: the
//! one that must not notice what others do to the server. Frames are written and read here as plainly as can be; nothing of
//! larder's codec is known.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::project::Stopwatch;

/// What a connection begins with: a window that no page fills.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

const PATIENCE: Duration = Duration::from_secs(10);
const LAST_STREAM: u32 = 1 << 30;

/// A frame by its type, its flags and its stream.
pub fn push_frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// A header block: its lines as literals that enter no table. No text is longer than 126 bytes.
pub fn block(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in lines {
        out.push(0);
        for text in [name, value] {
            assert!(text.len() < 127, "{text} needs a longer length");
            out.push(text.len() as u8);
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

/// The block of a GET.
pub fn get(path: &str) -> Vec<u8> {
    block(&[(":method", "GET"), (":scheme", "http"), (":authority", "site.test"), (":path", path)])
}

pub struct FloodClient {
    stream: TcpStream,
    next: u32,
}

impl FloodClient {
    pub fn connect(port: u16) -> io::Result<FloodClient> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut out = PREFACE.to_vec();
        push_frame(&mut out, SETTINGS, 0, 0, &[0, 4, 0, 16, 0, 0]);
        stream.write_all(&out)?;
        Ok(FloodClient { stream, next: 1 })
    }

    /// Its body, and the milliseconds until all of it was here.
    pub fn ask(&mut self, path: &str) -> io::Result<(Vec<u8>, f64)> {
        let (stream, watch) = (self.next, Stopwatch::start());
        self.next += 2;
        let mut out = Vec::new();
        push_frame(&mut out, HEADERS, END_STREAM | END_HEADERS, stream, &get(path));
        self.stream.write_all(&out)?;
        let mut body = Vec::new();
        loop {
            let (kind, flags, of, payload) = self.read_frame()?;
            let mut out = Vec::new();
            match kind {
                SETTINGS if flags & ACK == 0 => push_frame(&mut out, SETTINGS, ACK, 0, &[]),
                PING if flags & ACK == 0 => push_frame(&mut out, PING, ACK, 0, &payload),
                GOAWAY => return Err(io::Error::other("the good client got GOAWAY")),
                RST_STREAM if of == stream => return Err(io::Error::other("the good client's stream was reset")),
                DATA => {
                    body.extend_from_slice(&payload);
                    if !payload.is_empty() {
                        for window in [0, of] {
                            push_frame(&mut out, WINDOW_UPDATE, 0, window, &(payload.len() as u32).to_be_bytes());
                        }
                    }
                }
                _ => {}
            }
            self.stream.write_all(&out)?;
            if of == stream && kind <= HEADERS && flags & END_STREAM != 0 {
                return Ok((body, watch.seconds() * 1_000.0));
            }
        }
    }

    /// Servers bound how much one connection may ask for; this one counts as far as numbers go.
    pub fn may_ask(&self) -> bool {
        self.next < LAST_STREAM
    }

    fn read_frame(&mut self) -> io::Result<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload)?;
        Ok((head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & (u32::MAX >> 1), payload))
    }
}
