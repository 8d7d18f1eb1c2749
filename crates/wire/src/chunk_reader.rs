//! The chunked transfer coding, read byte by byte (RFC 9112 §7.1).
//!
//! The part of the codec where smugglers live: each byte of a size line, an extension and a line end has exactly
//! one meaning in each state, or the body is refused. It counts what framing costs beside the data.

use message::Fields;

use crate::body_decoder::Decoded;
use crate::connection_options::is_token_byte;
use crate::head_lines::Side;
use crate::limits::{CHUNK_BYTES_MAX, CHUNK_SIZE_DIGITS_MAX};
use crate::trailer_section::TrailerSection;
use crate::{ChunkedLimits, Refusal, refusals};

/// Reads one chunked body.
#[derive(Debug)]
pub struct ChunkReader {
    side: Side,
    limits: ChunkedLimits,
    state: State,
    data_bytes: u64,
    overhead_bytes: u64,
    extension_bytes: u64,
    trailers: TrailerSection,
}

/// What the next byte belongs to. `size` is the size of the chunk whose first line is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size { size: u64, digits: u32 },
    Extension { size: u64, part: Part },
    SizeLineLf { size: u64 },
    Data { remaining: u64 },
    DataCr,
    DataLf,
    Trailers,
}

/// `chunk-ext = *( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )` (RFC 9112 §7.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Whitespace that only a semicolon may follow.
    BeforeSemicolon,
    BeforeName,
    Name,
    /// Whitespace after a name: an equals sign or a semicolon must follow.
    AfterName,
    BeforeValue,
    Token,
    Quoted,
    Escaped,
    AfterQuoted,
}

impl ChunkReader {
    pub(crate) fn new(side: Side, limits: ChunkedLimits) -> ChunkReader {
        ChunkReader {
            side,
            limits,
            state: State::Size { size: 0, digits: 0 },
            data_bytes: 0,
            overhead_bytes: 0,
            extension_bytes: 0,
            trailers: TrailerSection::default(),
        }
    }

    /// Loops over the framing at the front of the input until data, the end, or the end of the input.
    pub(crate) fn decode(&mut self, input: &[u8]) -> Result<Decoded, Refusal> {
        self.decode_as_request(input).map_err(|refusal| match self.side {
            Side::Request => refusal,
            Side::Response => refusal.of_origin(),
        })
    }

    pub(crate) fn take_trailers(&mut self) -> Option<Fields> {
        self.trailers.take()
    }

    fn decode_as_request(&mut self, input: &[u8]) -> Result<Decoded, Refusal> {
        let mut at = 0;
        while at < input.len() {
            match self.state {
                State::Data { remaining } => {
                    let take = usize::try_from(remaining).unwrap_or(usize::MAX).min(input.len() - at);
                    self.data_bytes += take as u64;
                    self.state = match remaining - take as u64 {
                        0 => State::DataCr,
                        remaining => State::Data { remaining },
                    };
                    return Ok(Decoded::Data { from: at, to: at + take });
                }
                State::Trailers => {
                    let (consumed, ended) = self.trailers.read(&input[at..], &self.limits)?;
                    at += consumed;
                    if ended {
                        return Ok(Decoded::End { consumed: at });
                    }
                }
                _ => {
                    self.take_framing_byte(input[at])?;
                    at += 1;
                }
            }
        }
        Ok(Decoded::More { consumed: at })
    }

    fn take_framing_byte(&mut self, byte: u8) -> Result<(), Refusal> {
        self.overhead_bytes += 1;
        let overhead_bytes_max = self
            .limits
            .overhead_bytes_free
            .saturating_add(self.data_bytes.saturating_mul(self.limits.overhead_per_data_byte));
        if self.overhead_bytes > overhead_bytes_max {
            return Err(refusals::CHUNK_OVERHEAD_TOO_LARGE);
        }
        self.state = match (self.state, byte) {
            (State::Size { size, digits }, _) => take_size_byte(size, digits, byte)?,
            (State::Extension { size, part }, _) => {
                self.extension_bytes += 1;
                if self.extension_bytes > self.limits.extension_bytes_max {
                    return Err(refusals::CHUNK_EXTENSIONS_TOO_LARGE);
                }
                take_extension_byte(size, part, byte)?
            }
            (State::SizeLineLf { size: 0 }, b'\n') => State::Trailers,
            (State::SizeLineLf { size }, b'\n') => State::Data { remaining: size },
            (State::SizeLineLf { .. }, _) => return Err(refusals::CHUNK_SIZE_INVALID),
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size { size: 0, digits: 0 },
            (State::DataCr | State::DataLf, _) => return Err(refusals::CHUNK_END_INVALID),
            (State::Data { .. } | State::Trailers, _) => unreachable!("not framing"),
        };
        Ok(())
    }
}

fn take_size_byte(size: u64, digits: u32, byte: u8) -> Result<State, Refusal> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        _ if digits == 0 => return Err(refusals::CHUNK_SIZE_INVALID),
        b'\r' => return Ok(State::SizeLineLf { size }),
        b';' => return Ok(State::Extension { size, part: Part::BeforeName }),
        b' ' | b'\t' => return Ok(State::Extension { size, part: Part::BeforeSemicolon }),
        _ => return Err(refusals::CHUNK_SIZE_INVALID),
    };
    // `size` is at most CHUNK_BYTES_MAX here, so this cannot overflow.
    let size = size * 16 + u64::from(digit);
    if size > CHUNK_BYTES_MAX || digits == CHUNK_SIZE_DIGITS_MAX {
        return Err(refusals::CHUNK_SIZE_TOO_LARGE);
    }
    Ok(State::Size { size, digits: digits + 1 })
}

fn take_extension_byte(size: u64, part: Part, byte: u8) -> Result<State, Refusal> {
    let blank = matches!(byte, b' ' | b'\t');
    let part = match (part, byte) {
        (Part::Name | Part::Token | Part::AfterQuoted, b'\r') => return Ok(State::SizeLineLf { size }),
        (Part::BeforeSemicolon | Part::Name | Part::AfterName | Part::Token | Part::AfterQuoted, b';') => {
            Part::BeforeName
        }
        (Part::BeforeSemicolon | Part::BeforeName | Part::AfterName | Part::BeforeValue, _) if blank => part,
        (Part::BeforeName | Part::Name, _) if is_token_byte(byte) => Part::Name,
        (Part::Name, _) if blank => Part::AfterName,
        (Part::Name | Part::AfterName, b'=') => Part::BeforeValue,
        (Part::BeforeValue, b'"') => Part::Quoted,
        (Part::BeforeValue | Part::Token, _) if is_token_byte(byte) => Part::Token,
        (Part::Token | Part::AfterQuoted, _) if blank => Part::BeforeSemicolon,
        (Part::Quoted, b'"') => Part::AfterQuoted,
        (Part::Quoted, b'\\') => Part::Escaped,
        (Part::Quoted | Part::Escaped, b'\t' | b' '..=b'~' | 0x80..) => Part::Quoted,
        _ => return Err(refusals::CHUNK_EXTENSION_INVALID),
    };
    Ok(State::Extension { size, part })
}
