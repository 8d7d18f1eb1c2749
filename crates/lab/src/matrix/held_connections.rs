//! Connections that ask a little and are then held, as those of readers are: what each costs the server in memory, and
//! how a probe fares meanwhile.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::matrix::planned_rows::PlannedRow;

/// The server is left alone for so long before its memory is read.
pub(crate) const SETTLE: Duration = Duration::from_millis(500);
/// After so many refusals no further connection is tried.
const REFUSALS_MAX: u64 = 50;

pub(crate) struct HeldConnections {
    streams: Vec<TcpStream>,
    /// Those that were refused, or not answered as they should.
    pub(crate) failed: u64,
    pub(crate) sample: String,
}

impl HeldConnections {
    /// Opens them one after another, each answered before the next, so that nothing waits in a queue.
    pub(crate) fn open(row: &PlannedRow, address: SocketAddr, stop: &AtomicBool) -> HeldConnections {
        let mut held = HeldConnections { streams: Vec::new(), failed: 0, sample: String::new() };
        let path = row.paths().swap_remove(0);
        let fields: String = row.fields.iter().map(|field| format!("{field}\r\n")).collect();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{fields}\r\n");
        let size = row.used.size_bytes.unwrap_or(0);
        for _ in 0..row.used.connections {
            if stop.load(Ordering::Relaxed) || held.failed >= REFUSALS_MAX {
                break;
            }
            let opened = TcpStream::connect_timeout(&address, row.timeout).and_then(|mut stream| {
                stream.set_read_timeout(Some(row.timeout))?;
                for _ in 0..row.requests_each {
                    stream.write_all(request.as_bytes())?;
                    read_answer(&mut stream, size)?;
                }
                Ok(stream)
            });
            match opened {
                Ok(stream) => held.streams.push(stream),
                Err(error) => {
                    held.failed += 1;
                    held.sample = format!("connection {}: {error}", held.streams.len() + 1);
                }
            }
        }
        held
    }

    /// Those that the server has not closed.
    pub(crate) fn alive(&mut self) -> u64 {
        let is_alive = |stream: &mut TcpStream| {
            let looked = stream.set_nonblocking(true).and_then(|()| stream.read(&mut [0; 1]));
            matches!(looked, Err(error) if error.kind() == ErrorKind::WouldBlock)
        };
        self.streams.iter_mut().filter_map(|stream| is_alive(stream).then_some(())).count() as u64
    }
}

/// A 200 with a body of the size that is known.
fn read_answer(stream: &mut TcpStream, size: u64) -> std::io::Result<()> {
    let refuse = |what: String| Err(std::io::Error::new(ErrorKind::InvalidData, what));
    let (mut answer, mut piece) = (Vec::new(), [0; 8_192]);
    loop {
        let head_end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(head_end) = head_end
            && answer.len() as u64 >= head_end as u64 + 4 + size
        {
            break;
        }
        match stream.read(&mut piece)? {
            0 => return refuse(format!("closed after {} bytes", answer.len())),
            bytes => answer.extend_from_slice(&piece[..bytes]),
        }
    }
    match answer.get(9..12) {
        Some(b"200") => Ok(()),
        other => refuse(format!("status {}", String::from_utf8_lossy(other.unwrap_or_default()))),
    }
}
