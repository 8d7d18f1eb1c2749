//! Where a body's data lies in the bytes that arrive, and where the body ends.
//!
//! One decoder for requests and responses, made from the framing decision. It keeps no data and copies none: it
//! points into the caller's input. Trailers are all that it collects.

use message::Fields;

use crate::chunk_reader::ChunkReader;
use crate::framing::{RequestBody, ResponseBody};
use crate::head_lines::Side;
use crate::{ChunkedLimits, Refusal};

/// The reading end of one body.
#[derive(Debug)]
pub enum BodyDecoder {
    /// Nothing more belongs to this body.
    Ended {
        trailers: Option<Fields>,
    },
    Length {
        remaining: u64,
    },
    Chunked(Box<ChunkReader>),
    /// All that comes until the connection closes: a response, or a tunnel.
    UntilClose,
}

/// What the front of the input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// `input[from..to]` is body, and `to` bytes are consumed. Never empty.
    Data { from: usize, to: usize },
    /// All of the input is consumed and more is needed.
    More { consumed: usize },
    /// The body is complete; what follows `consumed` belongs to the next message.
    End { consumed: usize },
}

/// The connection ended before the body did (RFC 9112 §8): it must not be taken for a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// Bytes that are missing, where the length is known.
    pub missing_bytes: Option<u64>,
}

impl BodyDecoder {
    pub fn for_request(body: RequestBody, limits: &ChunkedLimits) -> BodyDecoder {
        match body {
            RequestBody::None => BodyDecoder::Ended { trailers: None },
            RequestBody::Length(length) => BodyDecoder::of_length(length),
            RequestBody::Chunked => BodyDecoder::Chunked(Box::new(ChunkReader::new(Side::Request, *limits))),
        }
    }

    /// The bytes of a tunnel are passed on as they come.
    pub fn for_response(body: ResponseBody, limits: &ChunkedLimits) -> BodyDecoder {
        match body {
            ResponseBody::None => BodyDecoder::Ended { trailers: None },
            ResponseBody::Length(length) => BodyDecoder::of_length(length),
            ResponseBody::Chunked => BodyDecoder::Chunked(Box::new(ChunkReader::new(Side::Response, *limits))),
            ResponseBody::UntilClose | ResponseBody::Tunnel => BodyDecoder::UntilClose,
        }
    }

    fn of_length(length: u64) -> BodyDecoder {
        match length {
            0 => BodyDecoder::Ended { trailers: None },
            remaining => BodyDecoder::Length { remaining },
        }
    }

    /// Looks at the front of the input. Call it again with what was not consumed, until it says `More` or `End`.
    /// After a refusal the decoder must not be asked again.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, Refusal> {
        match self {
            BodyDecoder::Ended { .. } => Ok(Decoded::End { consumed: 0 }),
            _ if input.is_empty() => Ok(Decoded::More { consumed: 0 }),
            BodyDecoder::UntilClose => Ok(Decoded::Data { from: 0, to: input.len() }),
            BodyDecoder::Length { remaining } => {
                let take = usize::try_from(*remaining).unwrap_or(usize::MAX).min(input.len());
                *remaining -= take as u64;
                if *remaining == 0 {
                    *self = BodyDecoder::Ended { trailers: None };
                }
                Ok(Decoded::Data { from: 0, to: take })
            }
            BodyDecoder::Chunked(reader) => {
                let decoded = reader.decode(input)?;
                if let Decoded::End { .. } = decoded {
                    *self = BodyDecoder::Ended { trailers: reader.take_trailers() };
                }
                Ok(decoded)
            }
        }
    }

    /// The peer has closed its side: was the body whole?
    pub fn end_of_input(&self) -> Result<(), Truncated> {
        match self {
            BodyDecoder::Ended { .. } | BodyDecoder::UntilClose => Ok(()),
            BodyDecoder::Length { remaining } => Err(Truncated { missing_bytes: Some(*remaining) }),
            BodyDecoder::Chunked(_) => Err(Truncated { missing_bytes: None }),
        }
    }

    /// The trailer fields that may be passed on (RFC 9110 §6.5.1), after the end.
    pub fn trailers(&mut self) -> Option<Fields> {
        match self {
            BodyDecoder::Ended { trailers } => trailers.take(),
            _ => None,
        }
    }

    pub fn is_end(&self) -> bool {
        matches!(self, BodyDecoder::Ended { .. })
    }

    /// How much is still to come, where that is known.
    pub fn remaining(&self) -> Option<u64> {
        match self {
            BodyDecoder::Ended { .. } => Some(0),
            BodyDecoder::Length { remaining } => Some(*remaining),
            BodyDecoder::Chunked(_) | BodyDecoder::UntilClose => None,
        }
    }
}

#[cfg(test)]
#[path = "body_decoder_tests.rs"]
mod tests;
