//! Connections that ask a little and are then held, as those of readers are: what each costs the server in memory, and
//! how a probe fares meanwhile.

use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Request;
use tokio::runtime::LocalRuntime;

use crate::matrix::direct_asking::{Asking, PlainStream};
use crate::matrix::plain_http2::{self, Http2Line, line_runtime};
use crate::matrix::planned_rows::PlannedRow;

/// The server is left alone for so long before its memory is read.
pub(crate) const SETTLE: Duration = Duration::from_millis(500);
/// After so many refusals no further connection is tried.
const REFUSALS_MAX: u64 = 50;

pub(crate) struct HeldConnections {
    held: HeldSockets,
    /// Those that were refused, or not answered as they should.
    pub(crate) failed: u64,
    pub(crate) sample: String,
}

/// By what is spoken on them.
enum HeldSockets {
    Http1 { streams: Vec<PlainStream>, request: String },
    Http2(Box<HeldLines>),
}

struct HeldLines {
    lines: Vec<Http2Line>,
    request: Request<()>,
    runtime: LocalRuntime,
}

impl HeldConnections {
    /// Opens them one after another, each answered before the next, so that nothing waits in a queue.
    pub(crate) fn open(row: &PlannedRow, asking: &Asking, stop: &AtomicBool) -> Result<HeldConnections, String> {
        let mut all = HeldConnections { held: HeldSockets::none(row, asking)?, failed: 0, sample: String::new() };
        for number in 1..=row.used.connections {
            if stop.load(Ordering::Relaxed) || all.failed >= REFUSALS_MAX {
                break;
            }
            if let Err(error) = all.held.open_one(row, asking) {
                all.failed += 1;
                all.sample = format!("connection {number}: {error}");
            }
        }
        Ok(all)
    }

    /// Those that the server has not closed.
    pub(crate) fn alive(&mut self) -> u64 {
        match &mut self.held {
            HeldSockets::Http2(held) => Http2Line::alive(&held.runtime, &mut held.lines),
            HeldSockets::Http1 { streams, .. } => {
                let is_alive = |stream: &mut PlainStream| {
                    let looked = stream.set_nonblocking().and_then(|()| stream.read(&mut [0; 1]));
                    matches!(looked, Err(error) if error.kind() == ErrorKind::WouldBlock)
                };
                streams.iter_mut().filter_map(|stream| is_alive(stream).then_some(())).count() as u64
            }
        }
    }
}

impl HeldSockets {
    fn none(row: &PlannedRow, asking: &Asking) -> Result<HeldSockets, String> {
        let path = row.paths().swap_remove(0);
        if asking.spoken.http2 {
            let request = plain_http2::request(asking, &path, &row.fields)?;
            let runtime = line_runtime().map_err(|error| error.to_string())?;
            return Ok(HeldSockets::Http2(Box::new(HeldLines { lines: Vec::new(), request, runtime })));
        }
        let fields: String = row.fields.iter().map(|field| format!("{field}\r\n")).collect();
        let host = asking.site()?.authority;
        Ok(HeldSockets::Http1 {
            streams: Vec::new(),
            request: format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"),
        })
    }

    fn open_one(&mut self, row: &PlannedRow, asking: &Asking) -> Result<(), String> {
        let size = row.used.size_bytes.unwrap_or(0);
        match self {
            HeldSockets::Http1 { streams, request } => {
                let opened = asking.connect().and_then(|mut stream| {
                    for _ in 0..row.requests_each {
                        stream.write_all(request.as_bytes())?;
                        read_answer(&mut stream, size)?;
                    }
                    Ok(stream)
                });
                streams.push(opened.map_err(|error| error.to_string())?);
            }
            HeldSockets::Http2(held) => {
                let mut line = Http2Line::open(&held.runtime, asking)?;
                for _ in 0..row.requests_each {
                    let got = line.fetch(&held.runtime, &held.request, asking.patience)?;
                    if (got.status, got.body.len() as u64) != (200, size) {
                        return Err(format!("status {}, {} bytes", got.status, got.body.len()));
                    }
                }
                held.lines.push(line);
            }
        }
        Ok(())
    }
}

/// A 200 with a body of the size that is known.
fn read_answer(stream: &mut PlainStream, size: u64) -> std::io::Result<()> {
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
