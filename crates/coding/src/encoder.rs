//! A text into a coding, piece by piece.

use crate::brotli_stream::BrotliEncoder;
use crate::flaw::Flaw;
use crate::gzip::GzipEncoder;
use crate::known_codings::Coding;
use crate::zstd_stream::ZstdEncoder;

enum Codec {
    Gzip(GzipEncoder),
    Brotli(Box<BrotliEncoder>),
    Zstd(ZstdEncoder),
}

/// What a codec is to do with what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Keep what it likes for a better ratio.
    Open,
    /// Say all that it has: who reads along gets it now.
    Flushed,
    Finished,
}

/// Codes one text.
pub struct Encoder {
    codec: Codec,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.codec {
            Codec::Gzip(_) => "Encoder(gzip)",
            Codec::Brotli(_) => "Encoder(br)",
            Codec::Zstd(_) => "Encoder(zstd)",
        })
    }
}

impl Encoder {
    /// `level`: gzip 0 to 9, brotli 0 to 11, zstd 1 to 19; what is beyond is the nearest of these.
    pub fn new(coding: Coding, level: u8) -> Result<Encoder, Flaw> {
        let codec = match coding {
            Coding::Gzip => Codec::Gzip(GzipEncoder::new(level)),
            Coding::Brotli => Codec::Brotli(Box::new(BrotliEncoder::new(level))),
            Coding::Zstd => Codec::Zstd(ZstdEncoder::new(level)?),
        };
        Ok(Encoder { codec })
    }

    /// Takes all of a piece, and appends what is said of it so far.
    pub fn encode(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Flaw> {
        self.run(piece, Ending::Open, out)
    }

    /// Appends all that is kept: a reader can decode everything that was given.
    pub fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), Flaw> {
        self.run(&[], Ending::Flushed, out)
    }

    /// Ends the text. Nothing may follow.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), Flaw> {
        self.run(&[], Ending::Finished, out)
    }

    fn run(&mut self, piece: &[u8], ending: Ending, out: &mut Vec<u8>) -> Result<(), Flaw> {
        match &mut self.codec {
            Codec::Gzip(codec) => codec.run(piece, ending, out),
            Codec::Brotli(codec) => codec.run(piece, ending, out),
            Codec::Zstd(codec) => codec.run(piece, ending, out),
        }
    }
}
