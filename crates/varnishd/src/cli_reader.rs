//! From bytes to commands: lines, and what follows `<< WORD` up to a line that is `WORD`. What comes in pieces is kept,
//! up to a limit that depends on whether who speaks has shown the secret.

use crate::cli_words::words;
use crate::limits::{HERE_DOCUMENT_BYTES_MAX, LINE_BYTES_MAX, STRANGER_LINE_BYTES_MAX};

/// What the bytes so far come to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The words of a command, the first one its name.
    Command(Vec<Vec<u8>>),
    /// A line that is no command, with the reason. The next one is read.
    Nonsense(&'static str),
    /// Nobody reads on: what is too long, and how long it may be.
    TooLong(&'static str, usize),
    /// Nobody reads on: this is no text. Behind the bytes of another protocol, TLS above all, may stand lines that look like
    /// commands.
    NoText,
    /// The next bytes decide.
    More,
}

#[derive(Default)]
pub(crate) struct CliReader {
    buffer: Vec<u8>,
    /// Where the next line begins, and up to where no end of it was found.
    begin: usize,
    searched: usize,
    here: Option<HereDocument>,
    pub(crate) is_known: bool,
}

struct HereDocument {
    words: Vec<Vec<u8>>,
    end: Vec<u8>,
    text: Vec<u8>,
}

impl CliReader {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next command, if it is there whole.
    pub(crate) fn next(&mut self) -> Heard {
        loop {
            let line_bytes_max = if self.is_known { LINE_BYTES_MAX } else { STRANGER_LINE_BYTES_MAX };
            let Some(at) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') else {
                // What was read goes all at once: many short lines are not moved forward one by one.
                self.buffer.drain(..self.begin);
                self.begin = 0;
                self.searched = self.buffer.len();
                let is_too_long = self.buffer.len() > line_bytes_max;
                if self.here.is_none() && !is_text(&self.buffer) {
                    return Heard::NoText;
                }
                return if is_too_long { Heard::TooLong("line", line_bytes_max) } else { Heard::More };
            };
            let end = self.searched + at + 1;
            let line = self.buffer[self.begin..end].to_vec();
            (self.begin, self.searched) = (end, end);
            if line.len() > line_bytes_max {
                return Heard::TooLong("line", line_bytes_max);
            }
            if let Some(heard) = self.line(line) {
                return heard;
            }
        }
    }

    /// `None`: the line was one of a text, or empty.
    fn line(&mut self, line: Vec<u8>) -> Option<Heard> {
        if let Some(here) = &mut self.here {
            if line[..line.len() - 1] != here.end[..] {
                here.text.extend_from_slice(&line);
                let is_too_long = here.text.len() > HERE_DOCUMENT_BYTES_MAX;
                return is_too_long.then_some(Heard::TooLong("text", HERE_DOCUMENT_BYTES_MAX));
            }
            let HereDocument { mut words, text, .. } = self.here.take()?;
            words.push(text);
            return Some(Heard::Command(words));
        }
        if !is_text(&line) {
            return Some(Heard::NoText);
        }
        let mut words = match words(&line) {
            Err(why) => return Some(Heard::Nonsense(why)),
            Ok(words) if words.is_empty() => return None,
            Ok(words) => words,
        };
        // Strangers have nothing to say that needs one.
        if self.is_known && words.len() > 2 && words[words.len() - 2] == b"<<" {
            let end = words.pop()?;
            words.pop();
            self.here = Some(HereDocument { words, end, text: Vec::new() });
            return None;
        }
        Some(Heard::Command(words))
    }
}

/// Control characters that are no blanks stand in no command: words have escapes for them.
fn is_text(line: &[u8]) -> bool {
    !line.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&[u8]], expect: &[Heard]) {
        let mut reader = CliReader { is_known: true, ..CliReader::default() };
        let mut got = Vec::new();
        for piece in pieces {
            reader.push(piece);
            loop {
                match reader.next() {
                    Heard::More => break,
                    heard => got.push(heard),
                }
            }
        }
        assert_eq!(got, expect, "{pieces:?}");
    }

    fn command(words: &[&str]) -> Heard {
        Heard::Command(words.iter().map(|word| word.as_bytes().to_vec()).collect())
    }

    #[test]
    fn commands_are_lines_in_whatever_pieces() {
        check(&[b"pi", b"ng\n\n", b"\r\nstatus\nqu"], &[command(&["ping"]), command(&["status"])]);
        check(&[b"a \"b\nping\n"], &[Heard::Nonsense("Missing '\"'"), command(&["ping"])]);
        check(&[b"\xff\xfe\n"], &[Heard::Command(vec![vec![0xff, 0xfe]])]);
    }

    #[test]
    fn a_text_may_follow_up_to_its_word() {
        let text = b"vcl.inline a << EOF\nvcl 4.1;\n\nEOF x\nEOF\nping\n";
        let expect = [command(&["vcl.inline", "a", "vcl 4.1;\n\nEOF x\n"]), command(&["ping"])];
        check(&[text], &expect);
        let singly: Vec<&[u8]> = text.chunks(1).collect();
        check(&singly, &expect);
    }

    /// A ClientHello may hold a name with a line end in it.
    #[test]
    fn what_is_no_text_is_not_searched_for_commands() {
        check(&[b"\x16\x03\x01\x02\x00\nstop\n"], &[Heard::NoText, command(&["stop"])]);
        let mut reader = CliReader { is_known: true, ..CliReader::default() };
        reader.push(b"\x16");
        assert_eq!(reader.next(), Heard::NoText);
        check(&[b"vcl.inline a << E\n\x01\nE\n"], &[command(&["vcl.inline", "a", "\x01\n"])]);
    }

    #[test]
    fn what_is_too_long_ends() {
        let mut reader = CliReader::default();
        reader.push(&vec![b'a'; STRANGER_LINE_BYTES_MAX + 1]);
        assert_eq!(reader.next(), Heard::TooLong("line", STRANGER_LINE_BYTES_MAX));
        let mut reader = CliReader { is_known: true, ..CliReader::default() };
        reader.push(b"vcl.inline a << E\n");
        assert_eq!(reader.next(), Heard::More);
        reader.push(&b"aaaaaaaaaaaaaaa\n".repeat(HERE_DOCUMENT_BYTES_MAX / 16 + 1));
        assert_eq!(reader.next(), Heard::TooLong("text", HERE_DOCUMENT_BYTES_MAX));
    }

    #[test]
    fn strangers_begin_no_texts() {
        let mut reader = CliReader::default();
        reader.push(b"auth << EOF\n");
        assert_eq!(reader.next(), command(&["auth", "<<", "EOF"]));
    }
}
