//! The reader of one connection's HTTP/1.x answers: bytes in, whole answers out, or what is wrong with them.
//!
//! The lab's own, so that a server built on our codec is not judged by that same codec. It knows no socket, and not
//! which answer would be the right one. A body that came at once is handed on where it lies; one that comes in parts
//! is summed on the way, or kept where its bytes are wanted. Nothing else is allocated, unless a head comes in parts.

use crate::answer::{Answer, BodySeen, Fault, Reading};
use crate::answer_chunks::{ChunkReader, Piece};
use crate::error_kind::ErrorKind;
use crate::limits::{ANSWER_HEAD_BYTES_MAX, CODED_BODY_BYTES_MAX, INTERIM_ANSWERS_MAX};
use crate::received_head::{AnswerHead, BodyEnd, HeadMemo, VERSION_1};

#[derive(Debug, Default)]
pub(crate) struct HttpAnswerReader {
    state: State,
    interim_count: u8,
    /// The bytes of a body that comes in parts, where they are wanted and as far as they are few enough.
    kept: Vec<u8>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Before,
    /// The beginning of a head that comes in parts.
    Head(Vec<u8>),
    Body(Body),
}

#[derive(Debug)]
struct Body {
    head: AnswerHead,
    rest: Rest,
    length: u64,
    checksum: crc32fast::Hasher,
}

/// What is still to come of a body.
#[derive(Debug)]
enum Rest {
    Length(u64),
    Chunks(ChunkReader),
    /// All until the connection ends.
    All,
}

impl HttpAnswerReader {
    /// Reads on, and takes what it read from the front of `input`: all of it, or as far as an answer ends.
    #[inline]
    pub(crate) fn read<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
        memo: &mut HeadMemo,
        reading: Reading<'_>,
    ) -> Result<Option<Answer<'a>>, Fault> {
        loop {
            if let State::Body(body) = &mut self.state {
                let answer = body.read(input, reading, &mut self.kept)?;
                if answer.is_some() {
                    self.state = State::Before;
                }
                return Ok(answer.map(|answer| answer.with_bytes(&self.kept)));
            }
            let Some(head) = self.read_head(input, memo, reading.asked.starts_with(b"HEAD "))? else { return Ok(None) };
            if head.status < 200 {
                self.interim_count += 1;
                if usize::from(self.interim_count) > INTERIM_ANSWERS_MAX {
                    let what = format!("more than {INTERIM_ANSWERS_MAX} interim answers to one request");
                    return Err(Fault::protocol(&what, b""));
                }
                continue;
            }
            self.interim_count = 0;
            if let BodyEnd::Length(length) = head.body
                && length <= input.len() as u64
            {
                let (body, rest) = input.split_at(length as usize);
                *input = rest;
                return Ok(Some(head.answer(length, BodySeen::Whole(body), 0)));
            }
            self.kept.clear();
            self.state = State::Body(Body::new(head));
        }
    }

    /// The server has closed: was that the end of the answer?
    pub(crate) fn end_of_input(&mut self) -> Result<Answer<'_>, Fault> {
        let fault = |kind, text| Err(Fault { kind, text });
        match std::mem::take(&mut self.state) {
            State::Before => fault(ErrorKind::NoAnswer, "closed before the first byte of an answer".to_owned()),
            State::Head(head) => fault(ErrorKind::NoAnswer, format!("closed after {} bytes of a head", head.len())),
            State::Body(body) => match body.rest {
                Rest::All => Ok(body.summed().with_bytes(&self.kept)),
                Rest::Length(left) => {
                    let text = format!("{} bytes of a body of {}", body.length, body.length + left);
                    fault(ErrorKind::ShortBody, text)
                }
                Rest::Chunks(_) => {
                    let text = format!("{} bytes of a chunked body without its last chunk", body.length);
                    fault(ErrorKind::ShortBody, text)
                }
            },
        }
    }

    /// Has anything of the answer come?
    pub(crate) fn has_begun(&self) -> bool {
        !matches!(self.state, State::Before) || self.interim_count > 0
    }

    #[inline]
    fn read_head(
        &mut self,
        input: &mut &[u8],
        memo: &mut HeadMemo,
        bodiless: bool,
    ) -> Result<Option<AnswerHead>, Fault> {
        let State::Head(held) = &mut self.state else {
            if input.is_empty() {
                return Ok(None);
            }
            let head = memo.read(input, bodiless)?;
            match &head {
                Some(head) => *input = &input[head.head_bytes..],
                None => self.state = State::Head(std::mem::take(input).to_vec()),
            }
            return Ok(head);
        };
        let held_before = held.len();
        held.extend_from_slice(input);
        // Nothing new can be said before a line ends, unless it is that this is no HTTP, or too much of it.
        let may_tell = input.contains(&b'\n') || held_before < VERSION_1.len() || held.len() >= ANSWER_HEAD_BYTES_MAX;
        let head = if may_tell { memo.read(held, bodiless)? } else { None };
        match &head {
            // An earlier call found no end in what was held, so the end lies in what came now.
            Some(head) => {
                *input = &input[head.head_bytes - held_before..];
                self.state = State::Before;
            }
            None => *input = &[],
        }
        Ok(head)
    }
}

impl AnswerHead {
    #[inline]
    fn answer<'i>(&self, length: u64, body: BodySeen<'i>, framing_bytes: u64) -> Answer<'i> {
        let AnswerHead { status, persistent, coding, .. } = *self;
        Answer { status, length, body, persistent, coding, head_bytes: self.head_bytes as u64, framing_bytes }
    }
}

impl Body {
    fn new(head: AnswerHead) -> Body {
        let rest = match head.body {
            BodyEnd::Length(length) => Rest::Length(length),
            BodyEnd::Chunked => Rest::Chunks(ChunkReader::default()),
            BodyEnd::WithConnection => Rest::All,
        };
        Body { head, rest, length: 0, checksum: crc32fast::Hasher::new() }
    }

    fn read(
        &mut self,
        input: &mut &[u8],
        reading: Reading<'_>,
        kept: &mut Vec<u8>,
    ) -> Result<Option<Answer<'static>>, Fault> {
        loop {
            let (data, over) = match &mut self.rest {
                Rest::Length(left) => {
                    let length = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                    let (data, rest) = input.split_at(length);
                    *input = rest;
                    *left -= length as u64;
                    (data, *left == 0)
                }
                Rest::All => (std::mem::take(input), false),
                Rest::Chunks(chunks) => match chunks.next(input)? {
                    Piece::Data(data) => (data, false),
                    Piece::More => (&[][..], false),
                    Piece::Over => (&[][..], true),
                },
            };
            self.length += data.len() as u64;
            if reading.sums {
                self.checksum.update(data);
            }
            if reading.keeps && self.length <= CODED_BODY_BYTES_MAX {
                kept.extend_from_slice(data);
            }
            if over {
                return Ok(Some(self.summed()));
            }
            if input.is_empty() {
                return Ok(None);
            }
        }
    }

    fn summed(&self) -> Answer<'static> {
        let framing_bytes = match &self.rest {
            Rest::Chunks(chunks) => chunks.framing_bytes(),
            Rest::Length(_) | Rest::All => 0,
        };
        self.head.answer(self.length, BodySeen::Summed(self.checksum.clone().finalize()), framing_bytes)
    }
}

#[cfg(test)]
#[path = "http_answer_tests.rs"]
mod tests;
