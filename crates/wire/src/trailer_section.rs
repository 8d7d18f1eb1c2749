//! The trailer section of a chunked body (RFC 9112 §7.1.2): collected, checked line by line, and filtered.
//!
//! The last part of `chunk_reader`'s work. Trailers are never merged into the head; which of them may be passed
//! on at all is decided here, by a list that is closed for the names larder knows.

use message::{FieldName, Fields, is_lookalike, reads_as};

use crate::connection_options::is_token;
use crate::{ChunkedLimits, Refusal, refusals};

#[derive(Debug, Default)]
pub(crate) struct TrailerSection {
    /// The line being read, without its CR LF. Allocated only when there is a trailer.
    line: Vec<u8>,
    after_cr: bool,
    section_bytes: usize,
    fields_count: usize,
    fields: Option<Fields>,
}

impl TrailerSection {
    /// Consumes up to the end of the section; says how much, and whether it has ended.
    pub fn read(&mut self, input: &[u8], limits: &ChunkedLimits) -> Result<(usize, bool), Refusal> {
        for (at, &byte) in input.iter().enumerate() {
            match byte {
                b'\n' if self.after_cr && self.line.is_empty() => return Ok((at + 1, true)),
                b'\n' if self.after_cr => self.end_line(limits)?,
                _ if self.after_cr => return Err(refusals::TRAILER_INVALID),
                b'\r' => self.after_cr = true,
                b'\t' | b' '..=b'~' | 0x80.. => self.line.push(byte),
                _ => return Err(refusals::TRAILER_INVALID),
            }
            self.section_bytes += 1;
            if self.section_bytes > limits.trailer_bytes_max {
                return Err(refusals::TRAILERS_TOO_LARGE);
            }
        }
        Ok((input.len(), false))
    }

    /// What may be passed on; `None` when there is nothing.
    pub fn take(&mut self) -> Option<Fields> {
        self.fields.take()
    }

    fn end_line(&mut self, limits: &ChunkedLimits) -> Result<(), Refusal> {
        self.after_cr = false;
        self.fields_count += 1;
        if self.fields_count > limits.trailer_fields_max {
            return Err(refusals::TRAILERS_TOO_MANY);
        }
        let colon = self.line.iter().position(|&b| b == b':').ok_or(refusals::TRAILER_INVALID)?;
        let (name, value) = (&self.line[..colon], self.line[colon + 1..].trim_ascii());
        if !is_token(name) {
            return Err(refusals::TRAILER_INVALID); // a folded line and a space before the colon among them
        }
        if may_trail(name) {
            self.fields.get_or_insert_default().push_named(name, value);
        }
        self.line.clear();
        Ok(())
    }
}

/// RFC 9110 §6.5.1: nothing that frames, routes, authenticates, modifies the request, controls a cache, or says how to
/// read the content. Of the names that larder reads only those defined for trailers pass.
pub(crate) fn may_trail(name: &[u8]) -> bool {
    match FieldName::classify(name) {
        FieldName::Etag | FieldName::ContentMd5 | FieldName::ContentDigest => true,
        FieldName::Other => {
            const NEVER: [&str; 6] =
                ["www-authenticate", "client-cert", "client-cert-chain", "true-client-ip", "x-client-ip", "proxy"];
            !is_lookalike(name) && !NEVER.iter().any(|never| reads_as(name, never))
        }
        _ => false,
    }
}
