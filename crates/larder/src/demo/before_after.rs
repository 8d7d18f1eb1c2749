//! The demo's measurement: the same pages asked of the origin and of larder, by a few clients at once.
//!
//! A client of its own, as small as can be: one request at a time on a kept connection, answers with a length.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};

use lab::lab_report::grouped;
use proxy::Moment;
use proxy::settings::ListenAddress;
use serde::Serialize;

use crate::limits;
use crate::quantities::show_micros;

/// How one side did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Side {
    pub requests: usize,
    pub failed: usize,
    pub requests_per_second: u64,
    pub median_micros: u64,
    pub p99_micros: u64,
    /// How often the origin had to answer.
    pub origin_requests: u64,
}

/// Asks for the paths in turn until `requests` were sent by all clients together.
pub fn measure(address: &ListenAddress, paths: &[&'static str], requests: usize) -> Side {
    let next = AtomicUsize::new(0);
    let begin = Moment::now();
    let results: Vec<Vec<Option<u64>>> = std::thread::scope(|scope| {
        let clients: Vec<_> =
            (0..limits::DEMO_CLIENTS).map(|_| scope.spawn(|| ask_in_turn(address, paths, &next, requests))).collect();
        clients.into_iter().map(|client| client.join().unwrap_or_default()).collect()
    });
    let micros = begin.micros_until(Moment::now()).max(1);
    summarise(results.into_iter().flatten().collect(), micros)
}

/// One client's share: the microseconds of each answer, `None` for one that failed.
fn ask_in_turn(address: &ListenAddress, paths: &[&str], next: &AtomicUsize, requests: usize) -> Vec<Option<u64>> {
    // The Host that a browser sends: what was measured is then already there for it.
    let host = match address {
        ListenAddress::Tcp(address) => address.to_string(),
        ListenAddress::Unix(_) => "localhost".to_owned(),
    };
    let mut connection = None;
    let mut times = Vec::new();
    loop {
        let turn = next.fetch_add(1, Ordering::Relaxed);
        if turn >= requests {
            return times;
        }
        let begin = Moment::now();
        let asked = match connection.take() {
            Some(kept) => ask(kept, &host, paths[turn % paths.len()]),
            None => connect(address).and_then(|fresh| ask(fresh, &host, paths[turn % paths.len()])),
        };
        times.push(asked.as_ref().ok().map(|_| begin.micros_until(Moment::now())));
        connection = asked.ok();
    }
}

trait Connection: Read + Write {}
impl<T: Read + Write> Connection for T {}

fn connect(address: &ListenAddress) -> io::Result<Box<dyn Connection>> {
    let patience = Some(limits::DEMO_ANSWER_TIMEOUT);
    match address {
        ListenAddress::Tcp(address) => {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(patience)?;
            Ok(Box::new(stream))
        }
        ListenAddress::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(patience)?;
            Ok(Box::new(stream))
        }
    }
}

/// Sends a request and reads the whole answer. Gives the connection back when all was well.
fn ask(mut connection: Box<dyn Connection>, host: &str, path: &str) -> io::Result<Box<dyn Connection>> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: larder-demo\r\n\r\n");
    connection.write_all(request.as_bytes())?;
    let mut answer = Vec::with_capacity(8 << 10);
    let mut buffer = [0; 8 << 10];
    loop {
        if let Some(whole) = whole_bytes(&answer)? {
            return if answer.len() == whole {
                Ok(connection)
            } else {
                Err(io::Error::other("bytes after the answer"))
            };
        }
        match connection.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => answer.extend_from_slice(&buffer[..n]),
        }
    }
}

/// How long the answer is, once it is all there. Only a 200 with Content-Length counts.
fn whole_bytes(answer: &[u8]) -> io::Result<Option<usize>> {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(&answer[..end]);
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(io::Error::other("not a 200"));
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let whole = end + 4 + length.ok_or_else(|| io::Error::other("no length"))?;
    Ok((answer.len() >= whole).then_some(whole))
}

fn summarise(results: Vec<Option<u64>>, elapsed_micros: u64) -> Side {
    let mut times: Vec<u64> = results.iter().flatten().copied().collect();
    times.sort_unstable();
    let at = |percent: usize| match times.len() {
        0 => 0,
        n => times[(n * percent).div_ceil(100).clamp(1, n) - 1],
    };
    Side {
        requests: results.len(),
        failed: results.len() - times.len(),
        requests_per_second: (times.len() as u64).saturating_mul(1_000_000) / elapsed_micros,
        median_micros: at(50),
        p99_micros: at(99),
        origin_requests: 0,
    }
}

/// The table that the demo prints.
pub fn table(before: &Side, after: &Side) -> String {
    let mut out = format!("  {:<26}{:>12}{:>12}{:>12}{:>16}\n", "", "requests/s", "median", "99 %", "origin asked");
    for (name, side) in [("straight to the origin", before), ("through larder", after)] {
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "  {name:<26}{:>12}{:>12}{:>12}{:>16}",
            grouped(side.requests_per_second),
            show_micros(side.median_micros),
            show_micros(side.p99_micros),
            format!("{} of {}", grouped(side.origin_requests), grouped(side.requests as u64)),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_last_byte_is_there() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";
        assert_eq!(whole_bytes(answer).unwrap(), Some(answer.len()));
        for cut in 0..answer.len() {
            assert_eq!(whole_bytes(&answer[..cut]).unwrap(), None, "{cut}");
        }
        assert!(whole_bytes(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n").is_err());
        assert!(whole_bytes(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn a_side_is_summed_up() {
        let results = (1..=99).map(Some).chain([None]).collect();
        let side = summarise(results, 1_000_000);
        assert_eq!((side.requests, side.failed, side.requests_per_second), (100, 1, 99));
        assert_eq!((side.median_micros, side.p99_micros), (50, 99));
        assert_eq!(summarise(Vec::new(), 1), Side::default());
    }

    #[test]
    fn the_table_has_a_row_a_side() {
        let before = Side {
            requests: 400,
            requests_per_second: 251,
            median_micros: 31_900,
            p99_micros: 33_400,
            origin_requests: 400,
            failed: 0,
        };
        let after = Side {
            requests_per_second: 48_120,
            median_micros: 140,
            p99_micros: 610,
            origin_requests: 7,
            ..before.clone()
        };
        assert_eq!(
            table(&before, &after),
            "                              requests/s      median        99 %    origin asked\n  \
             straight to the origin             251     31.9 ms     33.4 ms      400 of 400\n  \
             through larder                  48,120      140 µs      610 µs        7 of 400\n"
        );
    }
}
