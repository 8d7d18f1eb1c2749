//! What a FastCGI program says beside its answer: a line of our own log, bounded for each request.

use std::sync::Arc;

use crate::limits::FASTCGI_ERROR_BYTES_MAX;
use crate::stderr_line::complain;

/// As much of it as is told, and how much there was. It is told when the exchange is over, however that ended.
#[derive(Debug)]
pub(super) struct ErrorStream {
    origin: Arc<str>,
    text: Vec<u8>,
    bytes: usize,
}

impl ErrorStream {
    pub(super) fn of(origin: &Arc<str>) -> ErrorStream {
        ErrorStream { origin: Arc::clone(origin), text: Vec::new(), bytes: 0 }
    }

    pub(super) fn take(&mut self, said: &[u8]) {
        self.bytes += said.len();
        let room = FASTCGI_ERROR_BYTES_MAX - self.text.len();
        self.text.extend_from_slice(&said[..said.len().min(room)]);
    }

    /// One line, whatever was in it: nothing that a program prints may look like a line of ours.
    fn line(&mut self) -> Option<String> {
        let text = std::mem::take(&mut self.text);
        let text = String::from_utf8_lossy(&text);
        let said = text.trim();
        if said.is_empty() {
            return None;
        }
        let said: String = said.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        let left = self.bytes.saturating_sub(FASTCGI_ERROR_BYTES_MAX);
        let more = if left > 0 { format!(" ({left} bytes more)") } else { String::new() };
        Some(format!("origin \"{}\" says: {said}{more}", self.origin))
    }
}

impl Drop for ErrorStream {
    fn drop(&mut self) {
        if let Some(line) = self.line() {
            complain(format_args!("{line}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(said: &[&[u8]], expect: Option<&str>) {
        let mut errors = ErrorStream::of(&"php".into());
        said.iter().for_each(|piece| errors.take(piece));
        assert_eq!(errors.line().as_deref(), expect);
        assert_eq!(errors.line(), None, "it is told once");
    }

    #[test]
    fn what_is_said_is_one_line_and_not_too_long() {
        check(&[], None);
        check(&[b"\n", b" "], None);
        check(&[b"PHP message: no", b"thing\n"], Some("origin \"php\" says: PHP message: nothing"));
        check(&[b"a\nlarder: b\x1b[2J\xff"], Some("origin \"php\" says: a larder: b [2J\u{fffd}"));
        let long = vec![b'x'; FASTCGI_ERROR_BYTES_MAX + 10];
        let expect = format!("origin \"php\" says: {} (10 bytes more)", "x".repeat(FASTCGI_ERROR_BYTES_MAX));
        check(&[&long], Some(&expect));
        check(&[&long[..9], &long[9..]], Some(&expect));
    }
}
