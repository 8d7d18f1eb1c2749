//! The chunked body of an answer (RFC 9112 §7.1): where its data lies among what frames it.
//!
//! Byte by byte for what frames, at one stroke for data, so that it does not matter where reads end. Trailers are
//! checked to be fields, and dropped.

use crate::answer::Fault;
use crate::limits::CHUNK_FRAMING_BYTES_MAX;
use crate::received_head::{is_text_byte, is_token_byte};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChunkReader {
    at: At,
    /// Of the size that is being read, then of the data that is still to come.
    size: u64,
    size_digits: u8,
    /// Extensions of one chunk, or the trailers.
    bytes_in_part: u32,
    framing_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Size,
    /// White space between a size and its extensions.
    BeforeExtension,
    Extension,
    SizeLineFeed,
    Data,
    DataReturn,
    DataLineFeed,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLineFeed,
    LastLineFeed,
    Over,
}

/// What comes next in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'i> {
    Data(&'i [u8]),
    /// The input is used up.
    More,
    Over,
}

impl ChunkReader {
    /// Takes the next piece from the front of `input`.
    pub(crate) fn next<'i>(&mut self, input: &mut &'i [u8]) -> Result<Piece<'i>, Fault> {
        loop {
            if self.at == At::Data {
                let length = usize::try_from(self.size).map_or(input.len(), |size| size.min(input.len()));
                if length == 0 {
                    return Ok(Piece::More);
                }
                let (data, rest) = input.split_at(length);
                *input = rest;
                self.size -= length as u64;
                if self.size == 0 {
                    self.at = At::DataReturn;
                }
                return Ok(Piece::Data(data));
            }
            let Some((&byte, rest)) = input.split_first() else { return Ok(Piece::More) };
            self.at = self.step(byte).map_err(|what| Fault::protocol(what, input))?;
            self.framing_bytes += 1;
            *input = rest;
            if self.at == At::Over {
                return Ok(Piece::Over);
            }
        }
    }

    pub(crate) fn framing_bytes(&self) -> u64 {
        self.framing_bytes
    }

    /// One byte of framing. The words are what is wrong with it.
    fn step(&mut self, byte: u8) -> Result<At, &'static str> {
        match (self.at, byte) {
            (At::Size, _) if byte.is_ascii_hexdigit() => self.take_digit(byte),
            (At::Size, _) if self.size_digits == 0 => Err("a chunk size that is no hexadecimal number"),
            (At::Size | At::BeforeExtension, b';') => self.within(At::Extension),
            (At::Size | At::BeforeExtension, b' ' | b'\t') => self.within(At::BeforeExtension),
            (At::Size | At::Extension, b'\r') => Ok(At::SizeLineFeed),
            (At::Size, _) => Err("a chunk size that is no hexadecimal number"),
            (At::BeforeExtension, _) => Err("white space behind a chunk size"),
            (At::Extension, _) if is_text_byte(byte) => self.within(At::Extension),
            (At::Extension, _) => Err("a control byte in a chunk extension"),
            (At::SizeLineFeed, b'\n') => {
                self.bytes_in_part = 0;
                self.size_digits = 0;
                Ok(if self.size == 0 { At::TrailerStart } else { At::Data })
            }
            (At::DataReturn, b'\r') => Ok(At::DataLineFeed),
            (At::DataLineFeed, b'\n') => Ok(At::Size),
            (At::DataReturn | At::DataLineFeed, _) => Err("a chunk longer than its size"),
            (At::TrailerStart, b'\r') => Ok(At::LastLineFeed),
            (At::TrailerStart, b' ' | b'\t') => Err("a folded line among the trailers"),
            (At::TrailerStart | At::TrailerName, _) if is_token_byte(byte) => self.within(At::TrailerName),
            (At::TrailerName, b':') => self.within(At::TrailerValue),
            (At::TrailerStart | At::TrailerName, _) => Err("a trailer that is no field"),
            (At::TrailerValue, b'\r') => Ok(At::TrailerLineFeed),
            (At::TrailerValue, _) if is_text_byte(byte) => self.within(At::TrailerValue),
            (At::TrailerValue, _) => Err("a control byte in a trailer"),
            (At::TrailerLineFeed, b'\n') => self.within(At::TrailerStart),
            (At::LastLineFeed, b'\n') => Ok(At::Over),
            (At::SizeLineFeed | At::TrailerLineFeed | At::LastLineFeed, _) => Err("a CR without its LF"),
            (At::Data | At::Over, _) => unreachable!("no framing here"),
        }
    }

    fn take_digit(&mut self, byte: u8) -> Result<At, &'static str> {
        let digit = (byte as char).to_digit(16).expect("it was found to be one");
        self.size = if self.size_digits == 0 { 0 } else { self.size };
        // 15 digits stay below 2⁶⁰, so that lengths can be added up.
        self.size_digits += 1;
        if self.size_digits > 15 {
            return Err("a chunk size of more than 15 digits");
        }
        self.size = self.size << 4 | u64::from(digit);
        Ok(At::Size)
    }

    fn within(&mut self, at: At) -> Result<At, &'static str> {
        self.bytes_in_part += 1;
        if self.bytes_in_part > CHUNK_FRAMING_BYTES_MAX {
            return Err("too many bytes of chunk extensions or trailers");
        }
        Ok(at)
    }
}
