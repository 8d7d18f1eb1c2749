//! Answers of HTTP/1 read off a connection, as far as they come: also of one that breaks off it is known how much of its body came.

use std::io::{self, ErrorKind, Read};

const BUFFER_BYTES: usize = 16 << 10;

pub struct AnswerReader<S> {
    socket: S,
    buffer: Vec<u8>,
    at: usize,
    pub bytes_received: u64,
}

/// An answer whose head came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerSeen {
    pub status: u16,
    pub body_bytes: u64,
    pub is_whole: bool,
    /// Nothing follows it.
    pub is_last: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    Bodiless,
    Length(u64),
    Chunks,
    ToTheEnd,
}

impl<S: Read> AnswerReader<S> {
    pub fn new(socket: S) -> AnswerReader<S> {
        AnswerReader { socket, buffer: Vec::new(), at: 0, bytes_received: 0 }
    }

    /// The next final answer. `None`: the connection ended before its head had come.
    pub fn answer(&mut self, method: &str) -> io::Result<Option<AnswerSeen>> {
        loop {
            let Some(start) = self.line()? else { return Ok(None) };
            let status: u16 = start.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
            let (mut framing, mut is_last) = (Framing::ToTheEnd, start.starts_with("HTTP/1.0"));
            loop {
                let Some(line) = self.line()? else { return Ok(None) };
                let Some((name, value)) = line.split_once(':') else { break };
                let value = value.trim().to_ascii_lowercase();
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => framing = Framing::Length(value.parse().map_err(io::Error::other)?),
                    "transfer-encoding" => framing = Framing::Chunks,
                    "connection" if value == "keep-alive" => is_last = false,
                    "connection" => is_last |= value.split(',').any(|word| word.trim() == "close"),
                    _ => {}
                }
            }
            if (100..200).contains(&status) {
                continue;
            }
            if method == "HEAD" || matches!(status, 204 | 304) {
                framing = Framing::Bodiless;
            }
            let (body_bytes, is_whole) = self.body(framing)?;
            is_last |= framing == Framing::ToTheEnd || !is_whole;
            return Ok(Some(AnswerSeen { status, body_bytes, is_whole, is_last }));
        }
    }

    /// Reads until the other side has closed.
    pub fn end(&mut self) -> io::Result<u64> {
        let mut left_over = self.take(u64::MAX)?.0;
        left_over += (self.buffer.len() - self.at) as u64;
        Ok(left_over)
    }

    fn body(&mut self, framing: Framing) -> io::Result<(u64, bool)> {
        match framing {
            Framing::Bodiless => Ok((0, true)),
            Framing::Length(length) => {
                let (taken, _) = self.take(length)?;
                Ok((taken, taken == length))
            }
            Framing::ToTheEnd => Ok((self.take(u64::MAX)?.0, true)),
            Framing::Chunks => self.chunks(),
        }
    }

    fn chunks(&mut self) -> io::Result<(u64, bool)> {
        let mut body_bytes = 0;
        loop {
            let Some(line) = self.line()? else { return Ok((body_bytes, false)) };
            let digits = line.split(';').next().unwrap_or_default();
            let length = u64::from_str_radix(digits, 16).map_err(io::Error::other)?;
            if length == 0 {
                // Trailers, and an empty line.
                while let Some(line) = self.line()? {
                    if line.is_empty() {
                        return Ok((body_bytes, true));
                    }
                }
                return Ok((body_bytes, false));
            }
            let (taken, _) = self.take(length)?;
            body_bytes += taken;
            if taken < length || self.line()?.is_none() {
                return Ok((body_bytes, false));
            }
        }
    }

    /// Reads past so many bytes. Fewer: it is the end.
    fn take(&mut self, bytes: u64) -> io::Result<(u64, bool)> {
        let mut left = bytes;
        loop {
            let here = u64::min(left, (self.buffer.len() - self.at) as u64);
            self.at += here as usize;
            left -= here;
            if left == 0 {
                return Ok((bytes, true));
            }
            if !self.fill()? {
                return Ok((bytes - left, false));
            }
        }
    }

    /// Without its end. `None`: the connection ended before that.
    fn line(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(end) = self.buffer[self.at..].iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&self.buffer[self.at..self.at + end]).trim_end().to_owned();
                self.at += end + 1;
                return Ok(Some(line));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// False at the end, however it came.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let had = self.buffer.len();
        self.buffer.resize(had + BUFFER_BYTES, 0);
        let read = self.socket.read(&mut self.buffer[had..]);
        let got = *read.as_ref().unwrap_or(&0);
        self.buffer.truncate(had + got);
        self.bytes_received += got as u64;
        match read {
            Ok(got) => Ok(got > 0),
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, method: &str) -> Vec<(u16, u64, bool)> {
        let mut reader = AnswerReader::new(text.as_bytes());
        let mut seen = Vec::new();
        while let Some(answer) = reader.answer(method).expect("it can be read") {
            seen.push((answer.status, answer.body_bytes, answer.is_whole));
        }
        seen
    }

    #[test]
    fn answers_are_read_one_behind_the_other() {
        let text = "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 304 Not Modified\r\n\r\n\
                    HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\nabcd";
        assert_eq!(read(text, "GET"), [(200, 3, true), (304, 0, true), (200, 2, true), (200, 4, true)]);
        assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "HEAD"), [(200, 0, true)]);
    }

    #[test]
    fn what_breaks_off_is_counted_as_far_as_it_came() {
        assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\nabc", "GET"), [(200, 3, false)]);
        assert_eq!(read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "GET"), [(200, 2, false)]);
        assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Le", "GET"), []);
    }
}
