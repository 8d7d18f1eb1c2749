//! One kept connection of `cargo xtask memory`: answers come in one after the other and are compared where they lie in its
//! buffer, which is as large as it ever gets from the start. It does not know what is asked for.

use std::io::{self, ErrorKind, Read};

/// Also the longest head.
const BUFFER_BYTES: usize = 64 << 10;

pub struct Line<S> {
    pub socket: S,
    bytes: Box<[u8]>,
    /// What has come and was not looked at yet.
    from: usize,
    to: usize,
}

impl<S: Read> Line<S> {
    pub fn new(socket: S) -> Line<S> {
        Line { socket, bytes: vec![0; BUFFER_BYTES].into(), from: 0, to: 0 }
    }

    /// The status of the next answer, and the length of the body that is to be taken next.
    pub fn head(&mut self) -> io::Result<(u16, usize)> {
        let mut searched = 0;
        let head_bytes = loop {
            let here = &self.bytes[self.from..self.to];
            match end_of_head(&here[searched..]) {
                Some(end) => break searched + end,
                None => searched = here.len().saturating_sub(3),
            }
            self.more()?;
        };
        let head = &self.bytes[self.from..self.from + head_bytes];
        self.from += head_bytes;
        status_and_length(head).ok_or(ErrorKind::InvalidData.into())
    }

    /// Takes a body piece by piece.
    pub fn body(&mut self, length: usize, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            if self.from == self.to {
                self.more()?;
            }
            let piece = left.min(self.to - self.from);
            take(&self.bytes[self.from..self.from + piece]);
            self.from += piece;
            left -= piece;
        }
        Ok(())
    }

    /// Takes a body and says whether it was this one.
    pub fn body_is(&mut self, length: usize, expected: &[u8]) -> io::Result<bool> {
        let (mut is_right, mut at) = (length == expected.len(), 0);
        self.body(length, |piece| {
            is_right = is_right && expected[at..at + piece.len()] == *piece;
            at += piece.len();
        })?;
        Ok(is_right)
    }

    fn more(&mut self) -> io::Result<()> {
        if self.from > 0 && (self.from == self.to || self.to == self.bytes.len()) {
            self.bytes.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        if self.to == self.bytes.len() {
            return Err(ErrorKind::InvalidData.into());
        }
        match self.socket.read(&mut self.bytes[self.to..])? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            read => {
                self.to += read;
                Ok(())
            }
        }
    }
}

/// Where the first head in these bytes ends.
pub fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

/// `None` where either is missing.
pub fn status_and_length(head: &[u8]) -> Option<(u16, usize)> {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.trim().parse::<usize>().ok();
    let status = u16::try_from(number(head.get(9..12)?)?).ok()?;
    let length = head.split(|&byte| byte == b'\n').find_map(|line| {
        let (name, value) = line.split_at_checked("content-length:".len())?;
        name.eq_ignore_ascii_case(b"content-length:").then_some(value)
    });
    Some((status, number(length?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives so many bytes at a time.
    struct Drips<'a>(&'a [u8], usize);

    impl Read for Drips<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(into.len());
            self.0.read(&mut into[..most])
        }
    }

    fn check(bytes_at_once: usize) {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n\
            HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabxHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\n\r\n";
        let mut line = Line::new(Drips(bytes, bytes_at_once));
        for (status, length, is_right) in [(200, 3, true), (503, 0, false), (200, 3, false), (200, 2, false)] {
            assert_eq!(line.head().unwrap(), (status, length));
            assert_eq!(line.body_is(length, b"abc").unwrap(), is_right);
        }
        assert_eq!(line.head().unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(line.head().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn answers_follow_one_another_on_a_connection_however_they_come() {
        check(1);
        check(7);
        check(1_000);
    }

    #[test]
    fn a_body_may_be_larger_than_the_buffer_and_a_head_may_not() {
        let expected = vec![7; 3 * BUFFER_BYTES + 5];
        let answer =
            [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", expected.len()).as_bytes(), &expected].concat();
        let mut line = Line::new(&answer[..]);
        let (_, length) = line.head().unwrap();
        assert!(line.body_is(length, &expected).unwrap());
        let endless = vec![b'a'; 2 * BUFFER_BYTES];
        assert_eq!(Line::new(&endless[..]).head().unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
