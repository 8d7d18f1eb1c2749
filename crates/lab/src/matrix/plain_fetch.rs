//! One request, one answer, nothing shared with the load: how the lab looks at a page, and asks the origin what it saw.
//!
//! It frames answers of HTTP/1.1 by itself, so that a mistake of the load's reader cannot hide from it.

use std::io::{self, ErrorKind, Read, Write};

use crate::answer_coding::SaidCoding;
use crate::limits::PLAIN_FETCH_BYTES_MAX;
use crate::matrix::direct_asking::Asking;
use crate::matrix::plain_http2;

pub(crate) struct Fetched {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// What the body is said to be in.
    pub(crate) coding: SaidCoding,
}

pub(crate) fn fetch(asking: &Asking, target: &str, fields: &[String]) -> Result<Fetched, String> {
    match asking.spoken.http2 {
        true => plain_http2::fetch(asking, target, fields),
        false => fetch_http1(asking, target, fields),
    }
}

fn fetch_http1(asking: &Asking, target: &str, fields: &[String]) -> Result<Fetched, String> {
    let host = asking.site()?.authority;
    let (raw, is_whole) = exchange(asking, &host, target, fields).map_err(|error| error.to_string())?;
    let head_end = raw.windows(4).position(|four| four == b"\r\n\r\n").ok_or("no whole head came")?;
    let head = String::from_utf8_lossy(&raw[..head_end]).into_owned();
    let status = head.split_whitespace().nth(1).and_then(|word| word.parse().ok()).ok_or("no status line came")?;
    let field = |name: &str| {
        let mut lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    };
    let rest = &raw[head_end + 4..];
    let is_chunked = field("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
    let body = if is_chunked { dechunk(rest)? } else { rest.to_vec() };
    match field("content-length").map(|length| length.parse::<usize>()) {
        Some(Ok(length)) if !is_chunked && length != body.len() => {
            Err(format!("{} bytes came of the {length} that were announced", body.len()))
        }
        None if !is_chunked && !is_whole => {
            Err("TLS ended without a close_notify, in a body without a length".to_owned())
        }
        _ => {
            let coding =
                field("content-encoding").map_or(SaidCoding::None, |value| SaidCoding::None.and(value.as_bytes()));
            Ok(Fetched { status, body, coding })
        }
    }
}

/// All that came, and whether its end was said: TLS has a word for it, which servers whose bodies have a length may leave out.
fn exchange(asking: &Asking, host: &str, target: &str, fields: &[String]) -> io::Result<(Vec<u8>, bool)> {
    let mut stream = asking.connect()?;
    let mut request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    fields.iter().for_each(|field| request.push_str(&format!("{field}\r\n")));
    request.push_str("\r\n");
    stream.write_all(request.as_bytes())?;
    let mut raw = Vec::new();
    match stream.take(PLAIN_FETCH_BYTES_MAX).read_to_end(&mut raw) {
        Ok(_) => Ok((raw, true)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok((raw, false)),
        Err(error) => Err(error),
    }
}

fn dechunk(mut rest: &[u8]) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    loop {
        let line_end = rest.windows(2).position(|two| two == b"\r\n").ok_or("a chunk without its size")?;
        let line = String::from_utf8_lossy(&rest[..line_end]).into_owned();
        let size = line.split(';').next().unwrap_or_default().trim().to_owned();
        let size = usize::from_str_radix(&size, 16).map_err(|_| format!("`{size}` is no size of a chunk"))?;
        if size == 0 {
            return Ok(body);
        }
        let from_here = &rest[line_end + 2..];
        let chunk = from_here.get(..size).ok_or("a chunk that breaks off")?;
        body.extend_from_slice(chunk);
        rest = from_here[size..].get(2..).ok_or("a chunk without its end")?;
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;

    fn check(answer: &'static str, expect: Result<(u16, &str), &str>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1_000];
            let _ = stream.read(&mut request);
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let got = fetch(&Asking::clear(address, Duration::from_secs(5)), "/", &[]);
        server.join().unwrap();
        match (got, expect) {
            (Ok(got), Ok((status, body))) => assert_eq!((got.status, got.body.as_slice()), (status, body.as_bytes())),
            (Err(error), Err(part)) => assert!(error.contains(part), "{answer}: {error}"),
            (got, expect) => panic!("{answer}: {:?} instead of {expect:?}", got.map(|got| got.status)),
        }
    }

    #[test]
    fn answers_are_framed() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", Ok((200, "abc")));
        check(
            "HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n",
            Ok((404, "abc")),
        );
        check("HTTP/1.0 200 OK\r\n\r\nabc", Ok((200, "abc")));
        check("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", Err("3 bytes came of the 4"));
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nab", Err("breaks off"));
        let endless = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab";
        check(endless, Err("breaks off"));
        check("hello", Err("no whole head"));
    }
}
