//! A behaviour file's client as a shim hears it that does not carry its bytes as they are: heads and bodies of HTTP/1.1 requests, and
//! whether it has left.

use std::io::{self, ErrorKind};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::unix::OwnedReadHalf;

/// Also what is taken of a client while it waits for its answer.
const HEAD_BYTES_MAX: usize = 1 << 20;

/// What a client sends.
pub struct TextClient {
    socket: OwnedReadHalf,
    bytes: BytesMut,
}

/// A request's head.
pub struct TextHead {
    pub method: String,
    pub target: String,
    /// It speaks HTTP/1.1.
    pub is_current: bool,
    pub fields: Vec<(String, Vec<u8>)>,
}

/// What is still to come of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLeft {
    Length(usize),
    /// The next chunk's line comes next.
    Chunks,
    /// So many bytes of a chunk, and the end of its line.
    Chunk(usize),
}

/// A part of a request's body.
#[derive(Debug, PartialEq, Eq)]
pub enum BodyPart {
    Data(Bytes),
    End(Vec<(String, Vec<u8>)>),
}

impl TextHead {
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_slice())
    }

    /// Does one of its lines of this name have this member?
    pub fn has_token(&self, name: &str, token: &str) -> bool {
        let lines = self.fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let mut members = lines.flat_map(|(_, value)| value.split(|&byte| byte == b','));
        members.any(|member| member.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    }

    /// Does nothing follow it on its connection?
    pub fn is_last(&self) -> bool {
        self.has_token("connection", "close") || !self.is_current && !self.has_token("connection", "keep-alive")
    }

    pub fn body(&self) -> io::Result<BodyLeft> {
        if self.has_token("transfer-encoding", "chunked") {
            return Ok(BodyLeft::Chunks);
        }
        let said = self.field("content-length").map(|value| String::from_utf8_lossy(value).into_owned());
        Ok(BodyLeft::Length(said.map_or(Ok(0), |value| value.parse().map_err(io::Error::other))?))
    }
}

impl TextClient {
    pub fn new(socket: OwnedReadHalf) -> TextClient {
        TextClient { socket, bytes: BytesMut::new() }
    }

    /// The next head; `None` where the client ends instead.
    pub async fn head(&mut self) -> io::Result<Option<TextHead>> {
        loop {
            let end = self.bytes.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let head = self.bytes.split_to(end + 4);
                return parse(&head).map(Some).ok_or_else(|| ErrorKind::InvalidData.into());
            }
            if self.bytes.len() > HEAD_BYTES_MAX || !self.read().await? {
                return Ok(None);
            }
        }
    }

    /// The next part of a body.
    pub async fn part(&mut self, left: &mut BodyLeft) -> io::Result<BodyPart> {
        loop {
            if let Some(part) = next_part(&mut self.bytes, left)? {
                return Ok(part);
            }
            if !self.read().await? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Waits until the client has closed both ways; what it asks meanwhile stays.
    pub async fn left(&mut self) -> io::Error {
        while self.bytes.len() < HEAD_BYTES_MAX {
            match self.read().await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return error,
            }
        }
        match self.socket.ready(Interest::READABLE | Interest::WRITABLE).await {
            Ok(ready) if !ready.is_write_closed() => std::future::pending().await,
            Ok(_) => ErrorKind::BrokenPipe.into(),
            Err(error) => error,
        }
    }

    /// False at the end.
    async fn read(&mut self) -> io::Result<bool> {
        self.bytes.reserve(1 << 10);
        Ok(self.socket.read_buf(&mut self.bytes).await? > 0)
    }
}

fn parse(head: &[u8]) -> Option<TextHead> {
    let mut lines = head.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let start = String::from_utf8(lines.next()?.to_vec()).ok()?;
    let [method, target, version] = start.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let fields = lines.filter(|line| !line.is_empty()).map(field).collect::<Option<_>>()?;
    Some(TextHead { method: method.to_owned(), target: target.to_owned(), is_current: version == "HTTP/1.1", fields })
}

fn field(line: &[u8]) -> Option<(String, Vec<u8>)> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let name = String::from_utf8(line[..colon].to_vec()).ok()?;
    Some((name, line[colon + 1..].trim_ascii().to_vec()))
}

/// What can be told from the bytes that are there; `None` where more are needed.
fn next_part(bytes: &mut BytesMut, left: &mut BodyLeft) -> io::Result<Option<BodyPart>> {
    match *left {
        BodyLeft::Length(0) => Ok(Some(BodyPart::End(Vec::new()))),
        BodyLeft::Length(_) | BodyLeft::Chunk(_) if bytes.is_empty() => Ok(None),
        BodyLeft::Length(length) => {
            let data = bytes.split_to(length.min(bytes.len())).freeze();
            *left = BodyLeft::Length(length - data.len());
            Ok(Some(BodyPart::Data(data)))
        }
        BodyLeft::Chunk(0) if bytes.len() < 2 => Ok(None),
        BodyLeft::Chunk(0) => {
            bytes.advance(2);
            *left = BodyLeft::Chunks;
            next_part(bytes, left)
        }
        BodyLeft::Chunk(length) => {
            let data = bytes.split_to(length.min(bytes.len())).freeze();
            *left = BodyLeft::Chunk(length - data.len());
            Ok(Some(BodyPart::Data(data)))
        }
        BodyLeft::Chunks => next_chunk(bytes, left),
    }
}

fn next_chunk(bytes: &mut BytesMut, left: &mut BodyLeft) -> io::Result<Option<BodyPart>> {
    let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
    let line = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let digits = line.split(';').next().unwrap_or_default().trim();
    let length = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
    if length > 0 {
        bytes.advance(end + 2);
        *left = BodyLeft::Chunk(length);
        return next_part(bytes, left);
    }
    // The last chunk's line, trailers, an empty line.
    let Some(last) = bytes[end..].windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let behind = bytes.split_to(end + last + 4);
    let lines = behind[end + 2..].split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let trailers = lines.map(field).collect::<Option<_>>().ok_or(ErrorKind::InvalidData)?;
    *left = BodyLeft::Length(0);
    Ok(Some(BodyPart::End(trailers)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole body of what comes in pieces of this size, and its trailers.
    fn body(text: &str, mut left: BodyLeft, at_once: usize) -> String {
        let (mut bytes, mut told) = (BytesMut::new(), String::new());
        let mut pieces = text.as_bytes().chunks(at_once);
        loop {
            match next_part(&mut bytes, &mut left).expect("it is framed well") {
                None => bytes.extend_from_slice(pieces.next().expect("it ends")),
                Some(BodyPart::Data(data)) => told += &String::from_utf8_lossy(&data),
                Some(BodyPart::End(trailers)) => return format!("{told} {}", trailers.len()),
            }
        }
    }

    #[test]
    fn bodies_end_where_they_say_however_they_come() {
        for at_once in [1, 3, 100] {
            assert_eq!(body("abcdef", BodyLeft::Length(3), at_once), "abc 0");
            assert_eq!(body("2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n", BodyLeft::Chunks, at_once), "abc 0");
            assert_eq!(body("a\r\n0123456789\r\n0\r\nA: b\r\nC: d\r\n\r\n", BodyLeft::Chunks, at_once), "0123456789 2");
        }
        assert!(next_part(&mut BytesMut::from("x\r\n"), &mut { BodyLeft::Chunks }).is_err());
    }

    #[test]
    fn a_head_says_what_follows_it() {
        let head = parse(b"POST /a HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\nContent-Length: 7\r\n\r\n")
            .expect("it is one");
        assert_eq!((head.method.as_str(), head.target.as_str(), head.is_last()), ("POST", "/a", true));
        assert_eq!(head.body().expect("a number"), BodyLeft::Length(7));
        let old = parse(b"GET / HTTP/1.0\r\n\r\n").expect("it is one");
        assert!(old.is_last() && old.body().expect("none") == BodyLeft::Length(0));
        assert!(parse(b"GET /\r\n\r\n").is_none());
    }
}
