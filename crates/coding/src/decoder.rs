//! A text out of its coding, piece by piece. What one step makes is bounded by who asks, what all of them make by [`Bounds`].

use crate::brotli_stream::BrotliDecoder;
use crate::codec_step::{CodecStep, Progress};
use crate::flaw::Flaw;
use crate::gzip::GzipDecoder;
use crate::gzip_pieces::GZIP_HEAD;
use crate::known_codings::Coding;
use crate::limits::{DECODED_FREE_BYTES, DECODED_RATIO_MAX};
use crate::zstd_stream::ZstdDecoder;

/// What may come of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of the whole text.
    pub bytes_max: u64,
    /// So many for each coded byte, once there are more than `free_bytes`.
    pub ratio_max: u64,
    pub free_bytes: u64,
    /// Nothing follows the first text, where the coding is a sequence of them.
    pub is_one_text: bool,
    /// What does not begin like a gzip is a text, and goes by as it is.
    pub may_be_plain: bool,
}

impl Bounds {
    /// For a text that nobody is given.
    pub const NONE: Bounds = Bounds {
        bytes_max: u64::MAX,
        ratio_max: u64::MAX,
        free_bytes: u64::MAX,
        is_one_text: false,
        may_be_plain: false,
    };

    /// Against bombs.
    pub const USUAL: Bounds = Bounds { ratio_max: DECODED_RATIO_MAX, free_bytes: DECODED_FREE_BYTES, ..Bounds::NONE };
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds::USUAL
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// So much of the input was used.
    pub taken: usize,
    /// Nothing more comes without more input. Otherwise the step ended because it had made enough.
    pub is_drained: bool,
}

enum DecoderOf {
    Gzip(GzipDecoder),
    Brotli(Box<BrotliDecoder>),
    Zstd(ZstdDecoder),
    /// It is none.
    Plain,
}

/// Decodes one text.
pub struct Decoder {
    codec: DecoderOf,
    bounds: Bounds,
    taken: u64,
    made: u64,
    progress: Progress,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Decoder({} → {} bytes, {:?})", self.taken, self.made, self.progress)
    }
}

impl Decoder {
    pub fn new(coding: Coding, bounds: Bounds) -> Result<Decoder, Flaw> {
        let codec = match coding {
            Coding::Gzip => DecoderOf::Gzip(GzipDecoder::new()),
            Coding::Brotli => DecoderOf::Brotli(Box::new(BrotliDecoder::new())),
            Coding::Zstd => DecoderOf::Zstd(ZstdDecoder::new()?),
        };
        Ok(Decoder { codec, bounds, taken: 0, made: 0, progress: Progress::Going })
    }

    /// Appends what the input says to `out`, `bytes_max` bytes at most. Ask again with what was not taken, until a step takes all and
    /// is drained.
    pub fn decode(&mut self, input: &[u8], bytes_max: usize, out: &mut Vec<u8>) -> Result<Decoded, Flaw> {
        let begin = out.len();
        out.resize(begin + bytes_max, 0);
        let result = self.decode_into(input, &mut out[begin..]);
        out.truncate(begin + result.as_ref().map_or(0, |(_, made)| *made));
        result.map(|(decoded, _)| decoded)
    }

    fn decode_into(&mut self, input: &[u8], room: &mut [u8]) -> Result<(Decoded, usize), Flaw> {
        let (mut taken, mut made) = (0, 0);
        if self.is_none_of_gzip(input) {
            self.codec = DecoderOf::Plain;
        }
        loop {
            if self.progress == Progress::Ended {
                if taken == input.len() {
                    return Ok((Decoded { taken, is_drained: true }, made));
                }
                self.begin_next()?;
            }
            let step = self.step(&input[taken..], &mut room[made..])?;
            (taken, made) = (taken + step.taken, made + step.made);
            (self.taken, self.made) = (self.taken + step.taken as u64, self.made + step.made as u64);
            self.progress = step.progress;
            self.check_bounds()?;
            if step.progress == Progress::Ended {
                continue;
            }
            if made == room.len() || taken == input.len() {
                return Ok((Decoded { taken, is_drained: made < room.len() }, made));
            }
            if step.taken == 0 && step.made == 0 {
                return Err(Flaw::Corrupt);
            }
        }
    }

    /// Is it seen by its first byte that a text that may be plain is so?
    fn is_none_of_gzip(&self, input: &[u8]) -> bool {
        let begins_otherwise = || input.first().is_some_and(|first| *first != GZIP_HEAD[0]);
        self.bounds.may_be_plain && self.taken == 0 && matches!(self.codec, DecoderOf::Gzip(_)) && begins_otherwise()
    }

    /// gzip and zstd are sequences of texts (RFC 1952 §2.2, RFC 8878 §3).
    fn begin_next(&mut self) -> Result<(), Flaw> {
        match &mut self.codec {
            _ if self.bounds.is_one_text => return Err(Flaw::JunkBehind),
            DecoderOf::Gzip(codec) => *codec = GzipDecoder::behind_another(),
            // The context begins anew by itself.
            DecoderOf::Zstd(_) => {}
            DecoderOf::Brotli(_) | DecoderOf::Plain => return Err(Flaw::JunkBehind),
        }
        Ok(())
    }

    fn step(&mut self, input: &[u8], room: &mut [u8]) -> Result<CodecStep, Flaw> {
        match &mut self.codec {
            DecoderOf::Gzip(codec) => codec.decode(input, room),
            DecoderOf::Brotli(codec) => codec.decode(input, room),
            DecoderOf::Zstd(codec) => codec.decode(input, room),
            DecoderOf::Plain => {
                let length = input.len().min(room.len());
                room[..length].copy_from_slice(&input[..length]);
                Ok(CodecStep { taken: length, made: length, progress: Progress::Going })
            }
        }
    }

    fn check_bounds(&self) -> Result<(), Flaw> {
        if self.made > self.bounds.bytes_max {
            return Err(Flaw::TooLong);
        }
        let is_dense = self.made > self.bounds.free_bytes && self.made / self.bounds.ratio_max > self.taken;
        if is_dense { Err(Flaw::TooDense) } else { Ok(()) }
    }

    /// All that there was has been given: was it all? Nothing at all is an empty text.
    pub fn finish(&self) -> Result<(), Flaw> {
        match self.progress {
            Progress::Ended => Ok(()),
            Progress::Going if matches!(self.codec, DecoderOf::Plain) => Ok(()),
            Progress::Going if self.taken == 0 => Ok(()),
            Progress::Going => Err(Flaw::Truncated),
        }
    }
}
