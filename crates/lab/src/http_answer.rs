//! The reader of one connection's answers: bytes in, whole answers out, or what is wrong with them.
//!
//! This is the seam between users and protocols: `user` knows requests only as bytes to send, and answers only as
//! [`Answer`] or [`Fault`]. Framing is `wire`'s, as strict as it is for an origin; nothing of a body is kept, only its
//! length and checksum. It knows no socket, and not which answer would be the right one.

use message::{FieldSpan, Method};
use wire::{BodyDecoder, ChunkedLimits, Decoded, HeadLimits, ResponseBody, read_response};

use crate::error_kind::ErrorKind;

/// A whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Of the body, without its framing.
    pub(crate) length: u64,
    /// CRC-32 of the body.
    pub(crate) checksum: u32,
    /// May the connection be used again?
    pub(crate) persistent: bool,
}

/// Why there will be no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: ErrorKind,
    pub(crate) text: String,
}

#[derive(Debug, Default)]
pub(crate) struct AnswerReader {
    state: State,
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
    decoder: BodyDecoder,
    checksum: crc32fast::Hasher,
    answer: Answer,
}

/// What a head says.
struct HeadRead {
    status: u16,
    body: ResponseBody,
    persistent: bool,
    bytes: usize,
}

impl AnswerReader {
    /// Reads on, and takes what it read from the front of `input`: all of it, or as far as an answer ends.
    #[inline]
    pub(crate) fn read(&mut self, input: &mut &[u8], spans: &mut Vec<FieldSpan>) -> Result<Option<Answer>, Fault> {
        loop {
            let body = match &mut self.state {
                State::Body(body) => body,
                State::Before | State::Head(_) => match self.read_head(input, spans)? {
                    None => return Ok(None),
                    Some(head) if (100..200).contains(&head.status) => continue,
                    Some(head) => {
                        self.state = State::Body(Body::new(&head));
                        continue;
                    }
                },
            };
            match body.decoder.decode(input).map_err(|refusal| Fault::protocol(refusal.token))? {
                Decoded::Data { from, to } => {
                    body.checksum.update(&input[from..to]);
                    body.answer.length += (to - from) as u64;
                    *input = &input[to..];
                }
                Decoded::More { consumed } => {
                    *input = &input[consumed..];
                    return Ok(None);
                }
                Decoded::End { consumed } => {
                    *input = &input[consumed..];
                    return Ok(Some(self.complete()));
                }
            }
        }
    }

    /// The server has closed: was that the end of the answer?
    pub(crate) fn end_of_input(&mut self) -> Result<Answer, Fault> {
        let fault = |kind, text| Err(Fault { kind, text });
        match &self.state {
            State::Before => fault(ErrorKind::NoAnswer, "closed before the first byte of an answer".to_owned()),
            State::Head(head) => fault(ErrorKind::NoAnswer, format!("closed after {} bytes of a head", head.len())),
            State::Body(body) => match body.decoder.end_of_input() {
                Ok(()) => Ok(self.complete()),
                Err(truncated) => {
                    let got = body.answer.length;
                    let text = match truncated.missing_bytes {
                        Some(missing) => format!("{got} bytes of a body of {}", got + missing),
                        None => format!("{got} bytes of a chunked body without its last chunk"),
                    };
                    fault(ErrorKind::ShortBody, text)
                }
            },
        }
    }

    /// Has anything of the answer come?
    pub(crate) fn has_begun(&self) -> bool {
        !matches!(self.state, State::Before)
    }

    fn read_head(&mut self, input: &mut &[u8], spans: &mut Vec<FieldSpan>) -> Result<Option<HeadRead>, Fault> {
        match &mut self.state {
            State::Head(held) => {
                let held_before = held.len();
                held.extend_from_slice(input);
                let Some(head) = parse(held, spans)? else {
                    *input = &[];
                    return Ok(None);
                };
                // An earlier call found no end in what was held, so the end lies in what came now.
                *input = &input[head.bytes - held_before..];
                self.state = State::Before;
                Ok(Some(head))
            }
            _ if input.is_empty() => Ok(None),
            _ => {
                let head = parse(input, spans)?;
                match &head {
                    Some(head) => *input = &input[head.bytes..],
                    None => self.state = State::Head(std::mem::take(input).to_vec()),
                }
                Ok(head)
            }
        }
    }

    fn complete(&mut self) -> Answer {
        match std::mem::take(&mut self.state) {
            State::Body(body) => Answer { checksum: body.checksum.finalize(), ..body.answer },
            State::Before | State::Head(_) => unreachable!("only a body ends"),
        }
    }
}

impl Body {
    fn new(head: &HeadRead) -> Body {
        Body {
            decoder: BodyDecoder::for_response(head.body, &ChunkedLimits::DEFAULT),
            checksum: crc32fast::Hasher::new(),
            answer: Answer { status: head.status, length: 0, checksum: 0, persistent: head.persistent },
        }
    }
}

impl Fault {
    fn protocol(token: &str) -> Fault {
        Fault { kind: ErrorKind::ProtocolError, text: token.to_owned() }
    }
}

#[inline]
fn parse(bytes: &[u8], spans: &mut Vec<FieldSpan>) -> Result<Option<HeadRead>, Fault> {
    match read_response(bytes, spans, &HeadLimits::RESPONSE, Method::Get, false) {
        Ok(None) => Ok(None),
        Ok(Some(head)) => Ok(Some(HeadRead {
            status: head.response.status.0,
            body: head.body,
            persistent: head.persistent,
            bytes: head.head_bytes,
        })),
        Err(refusal) => Err(Fault::protocol(refusal.token)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of the bytes when they arrive in two parts and the connection then closes, wherever it is split.
    fn check(text: &str, expect: &[Result<(u16, u64, bool), ErrorKind>]) {
        for split in 0..=text.len() {
            let (mut reader, mut spans, mut got) = (AnswerReader::default(), Vec::new(), Vec::new());
            'parts: for part in [&text.as_bytes()[..split], &text.as_bytes()[split..]] {
                let mut input = part;
                while !input.is_empty() {
                    match reader.read(&mut input, &mut spans) {
                        Ok(None) => assert!(input.is_empty()),
                        Ok(Some(answer)) => got.push(Ok(answer)),
                        Err(fault) => {
                            got.push(Err(fault.kind));
                            reader = AnswerReader::default();
                            break 'parts;
                        }
                    }
                }
            }
            if reader.has_begun() {
                got.push(reader.end_of_input().map_err(|fault| fault.kind));
            }
            let got: Vec<_> = got.into_iter().map(|r| r.map(|a| (a.status, a.length, a.persistent))).collect();
            assert_eq!(got, expect, "{text:?} split at {split}");
        }
    }

    #[test]
    fn answers_are_framed_strictly() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", &[Ok((200, 3, true))]);
        check(
            "HTTP/1.1 204 No\r\n\r\nHTTP/1.1 404 N\r\nContent-Length: 0\r\n\r\n",
            &[Ok((204, 0, true)), Ok((404, 0, true))],
        );
        check("HTTP/1.1 103 E\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", &[Ok((200, 1, true))]);
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", &[Ok((200, 3, true))]);
        check("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na", &[Ok((200, 1, false))]);
        check("HTTP/1.1 200 OK\r\n\r\nabc", &[Ok((200, 3, false))]);
        check("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", &[Err(ErrorKind::ShortBody)]);
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", &[Err(ErrorKind::ShortBody)]);
        check("HTTP/1.1 200 OK\r\nContent-", &[Err(ErrorKind::NoAnswer)]);
        check("hello\r\n\r\n", &[Err(ErrorKind::ProtocolError)]);
        let both = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n";
        check(both, &[Err(ErrorKind::ProtocolError)]);
    }

    #[test]
    fn the_checksum_does_not_depend_on_the_framing() {
        let checksum = |text: &str| {
            let (mut input, mut spans) = (text.as_bytes(), Vec::new());
            AnswerReader::default().read(&mut input, &mut spans).unwrap().unwrap().checksum
        };
        let plain = checksum("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789");
        // The check value of CRC-32.
        assert_eq!(plain, 0xCBF4_3926);
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n1234\r\n5\r\n56789\r\n0\r\n\r\n";
        assert_eq!(checksum(chunked), plain);
    }
}
