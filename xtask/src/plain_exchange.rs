//! HTTP/1.1 messages read off a socket, as simply as that can be: a start line, its fields, a body that Content-Length,
//! chunks or the end delimits. Used on both sides of the program under test, which it does not trust to frame well.

use std::io::{self, BufRead, Read};

/// No message of a scenario is longer.
const BODY_BYTES_MAX: u64 = 1 << 20;
const HEAD_LINES_MAX: usize = 200;

pub struct Message {
    pub start: String,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// What a body has when nothing says how long it is: a request none, an answer all until the end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unframed {
    Empty,
    UntilEnd,
}

impl Message {
    /// None when the other side closed before the first byte.
    pub fn read(from: &mut impl BufRead, unframed: Unframed, has_body: bool) -> io::Result<Option<Message>> {
        let mut start = String::new();
        if from.read_line(&mut start)? == 0 {
            return Ok(None);
        }
        let mut message = Message { start: start.trim_end().to_string(), fields: Vec::new(), body: Vec::new() };
        for _ in 0..HEAD_LINES_MAX {
            let mut line = String::new();
            from.read_line(&mut line)?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            let (name, value) =
                line.split_once(':').ok_or_else(|| io::Error::other(format!("'{line}' is no field")))?;
            message.fields.push((name.to_string(), value.trim().to_string()));
        }
        if has_body && !message.has_no_body_by_status() {
            message.read_body(from, unframed)?;
        }
        Ok(Some(message))
    }

    fn read_body(&mut self, from: &mut impl BufRead, unframed: Unframed) -> io::Result<()> {
        if self.field("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            return self.read_chunks(from);
        }
        let length = self.field("content-length").map(|value| value.parse().map_err(io::Error::other)).transpose()?;
        let length = match length {
            Some(length) => length,
            None if unframed == Unframed::Empty => 0,
            None => return from.take(BODY_BYTES_MAX).read_to_end(&mut self.body).map(|_| ()),
        };
        let read = from.take(u64::min(length, BODY_BYTES_MAX)).read_to_end(&mut self.body)?;
        if read as u64 == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn read_chunks(&mut self, from: &mut impl BufRead) -> io::Result<()> {
        loop {
            let mut line = String::new();
            from.read_line(&mut line)?;
            let digits = line.trim_end().split(';').next().unwrap_or_default();
            let length = u64::from_str_radix(digits, 16).map_err(io::Error::other)?;
            let before = self.body.len() as u64;
            from.take(u64::min(length, BODY_BYTES_MAX)).read_to_end(&mut self.body)?;
            from.read_line(&mut line)?;
            match length {
                0 => return Ok(()),
                length if self.body.len() as u64 - before == length => {}
                _ => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    /// The first line with that name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The second word of the start line: of an answer its status, of a request its target.
    pub fn second_word(&self) -> &str {
        self.start.split(' ').nth(1).unwrap_or_default()
    }

    /// Whether nothing can follow this answer to such a request.
    pub fn ends_connection(&self, method: &str) -> bool {
        let closes = self
            .field("connection")
            .is_some_and(|value| value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close")));
        let framed = self.field("content-length").is_some() || self.field("transfer-encoding").is_some();
        closes || !(framed || method == "HEAD" || self.has_no_body_by_status())
    }

    fn has_no_body_by_status(&self) -> bool {
        self.start.starts_with("HTTP/")
            && (self.second_word().starts_with('1') || matches!(self.second_word(), "204" | "304"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, unframed: Unframed, body: &str) {
        let message = Message::read(&mut text.as_bytes(), unframed, true).expect("readable").expect("not empty");
        assert_eq!(String::from_utf8_lossy(&message.body), body, "{text}");
    }

    #[test]
    fn bodies_end_where_the_head_says() {
        check("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcdef", Unframed::Empty, "abc");
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n",
            Unframed::UntilEnd,
            "abc",
        );
        check("HTTP/1.1 200 OK\r\n\r\nabc", Unframed::UntilEnd, "abc");
        check("GET / HTTP/1.1\r\n\r\nGET", Unframed::Empty, "");
        check("HTTP/1.1 204 No Content\r\nA: b\r\n\r\nx", Unframed::UntilEnd, "");
    }
}
