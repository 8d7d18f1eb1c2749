//! A request as records: what begins it, the variables that describe it, and its body in pieces (FastCGI 1.0 §3.4, §5.1, §5.2).

use crate::fastcgi::record_head::{RECORD_CONTENT_BYTES_MAX, RECORD_HEAD_BYTES, RecordType, record_head};

/// The role of a program that answers.
const RESPONDER: u8 = 1;
/// FCGI_KEEP_CONN.
const KEEPS_CONNECTION: u8 = 1;

/// Lengths below this take one byte, others four (§3.4).
const SHORT_LENGTH_MAX: usize = 127;

/// An empty record of the request's body: it ends there.
pub const STDIN_END: [u8; RECORD_HEAD_BYTES] = [1, RecordType::Stdin as u8, 0, 1, 0, 0, 0, 0];

/// Writes the head of a request: its beginning, then variable after variable, and its end.
#[derive(Debug)]
pub struct RequestWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Where the record that is being written begins.
    record_at: usize,
}

/// Where a variable lies that is being written.
#[derive(Clone, Copy, Debug)]
struct VariableAt {
    begins: usize,
    /// The byte that says how long its value is.
    value_length: usize,
    value: usize,
}

impl<'a> RequestWriter<'a> {
    /// `keeps_connection`: the application is asked not to close it behind the answer.
    pub fn begin(out: &'a mut Vec<u8>, keeps_connection: bool) -> RequestWriter<'a> {
        out.extend_from_slice(&record_head(RecordType::BeginRequest, 8));
        let flags = if keeps_connection { KEEPS_CONNECTION } else { 0 };
        out.extend_from_slice(&[0, RESPONDER, flags, 0, 0, 0, 0, 0]);
        let record_at = out.len();
        out.extend_from_slice(&record_head(RecordType::Params, 0));
        RequestWriter { out, record_at }
    }

    /// A variable whose value is these parts, one behind the other.
    pub fn variable<'v>(&mut self, name: &[u8], value: impl Iterator<Item = &'v [u8]>) {
        let at = self.begin_variable(name.len());
        self.out.extend_from_slice(name);
        self.end_variable(at, value);
    }

    /// The variable of a field (RFC 3875 §4.1.18), whose values are made one. False, and nothing is written: the name of the field may not
    /// become that of a variable, see [`is_variable_field`].
    pub fn field<'v>(&mut self, name: &[u8], value: impl Iterator<Item = &'v [u8]>) -> bool {
        if !is_variable_field(name) {
            return false;
        }
        const PREFIX: &[u8] = b"HTTP_";
        let at = self.begin_variable(PREFIX.len() + name.len());
        self.out.extend_from_slice(PREFIX);
        self.out.extend(name.iter().map(|byte| if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() }));
        self.end_variable(at, value);
        true
    }

    /// The body follows, by [`stdin_head`] and [`STDIN_END`].
    pub fn end(mut self) {
        self.end_record();
        self.out.extend_from_slice(&record_head(RecordType::Params, 0));
    }

    /// Writes the length of its name, and room for that of its value: one byte, as most are short.
    #[inline]
    fn begin_variable(&mut self, name_bytes: usize) -> VariableAt {
        let begins = self.out.len();
        match name_bytes <= SHORT_LENGTH_MAX {
            true => self.out.extend_from_slice(&[name_bytes as u8, 0]),
            false => {
                self.out.extend_from_slice(&long_length(name_bytes));
                self.out.push(0);
            }
        }
        VariableAt { begins, value_length: self.out.len() - 1, value: self.out.len() + name_bytes }
    }

    #[inline]
    fn end_variable<'v>(&mut self, at: VariableAt, value: impl Iterator<Item = &'v [u8]>) {
        value.for_each(|part| self.out.extend_from_slice(part));
        let value_bytes = self.out.len() - at.value;
        match value_bytes <= SHORT_LENGTH_MAX {
            true => self.out[at.value_length] = value_bytes as u8,
            false => {
                self.out.splice(at.value_length..=at.value_length, long_length(value_bytes));
            }
        }
        if self.content_bytes() > RECORD_CONTENT_BYTES_MAX {
            self.move_to_next_record(at.begins);
        }
    }

    /// No application that is in use reads a variable that begins in one record and ends in the next. So that is done only with one that
    /// fits into none.
    #[cold]
    fn move_to_next_record(&mut self, variable_at: usize) {
        let content_bytes = variable_at - self.record_at - RECORD_HEAD_BYTES;
        if content_bytes > 0 {
            self.write_record_head(content_bytes);
            self.out.splice(variable_at..variable_at, record_head(RecordType::Params, 0));
            self.record_at = variable_at;
        }
        while self.content_bytes() > RECORD_CONTENT_BYTES_MAX {
            self.split_record();
        }
    }

    /// What is too much for one record goes on in the next.
    fn split_record(&mut self) {
        let end = self.record_at + RECORD_HEAD_BYTES + RECORD_CONTENT_BYTES_MAX;
        self.out.splice(end..end, record_head(RecordType::Params, 0));
        self.write_record_head(RECORD_CONTENT_BYTES_MAX);
        self.record_at = end;
    }

    fn content_bytes(&self) -> usize {
        self.out.len() - self.record_at - RECORD_HEAD_BYTES
    }

    /// An empty record would be the end of all variables.
    fn end_record(&mut self) {
        match self.content_bytes() {
            0 => self.out.truncate(self.record_at),
            content_bytes => self.write_record_head(content_bytes),
        }
    }

    fn write_record_head(&mut self, content_bytes: usize) {
        let head = record_head(RecordType::Params, content_bytes);
        self.out[self.record_at..][..RECORD_HEAD_BYTES].copy_from_slice(&head);
    }
}

/// A length in four bytes.
fn long_length(length: usize) -> [u8; 4] {
    (length as u32 | 1 << 31).to_be_bytes()
}

/// The head of a piece of the request's body, of at most [`RECORD_CONTENT_BYTES_MAX`] bytes and not empty.
pub fn stdin_head(bytes: usize) -> [u8; RECORD_HEAD_BYTES] {
    record_head(RecordType::Stdin, bytes)
}

/// May a field of this name become a variable? Not one that would be another's once its hyphens are underscores, or whose length and type are
/// variables of their own; nor `Proxy`: programs take `HTTP_PROXY` for the proxy by which they are to ask others ("httpoxy").
pub fn is_variable_field(name: &[u8]) -> bool {
    const NEVER: [&[u8]; 3] = [b"proxy", b"content-length", b"content-type"];
    !name.is_empty()
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        && !NEVER.iter().any(|never| name.eq_ignore_ascii_case(never))
}

#[cfg(test)]
#[path = "fastcgi_request_tests.rs"]
mod tests;
