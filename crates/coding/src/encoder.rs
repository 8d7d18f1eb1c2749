//! A text into a coding, piece by piece.

use crate::brotli_stream::BrotliEncoder;
use crate::codec_step::Ending;
use crate::delta_encoder::{DeltaEncoder, DictionarySource};
use crate::flaw::Flaw;
use crate::gzip::GzipEncoder;
use crate::known_codings::Coding;
use crate::zstd_stream::ZstdEncoder;

enum EncoderOf {
    Gzip(GzipEncoder),
    Brotli(Box<BrotliEncoder>),
    Zstd(ZstdEncoder),
    Delta(DeltaEncoder),
}

/// Codes one text.
pub struct Encoder {
    codec: EncoderOf,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match &self.codec {
            EncoderOf::Gzip(_) => "gzip",
            EncoderOf::Brotli(_) => "br",
            EncoderOf::Zstd(_) => "zstd",
            EncoderOf::Delta(codec) => codec.name(),
        };
        write!(f, "Encoder({name})")
    }
}

impl Encoder {
    /// `level`: gzip 0 to 9, brotli 0 to 11, zstd 1 to 19; what is beyond is the nearest of these.
    pub fn new(coding: Coding, level: u8) -> Result<Encoder, Flaw> {
        Encoder::for_text(coding, level, None)
    }

    /// The same for a text of so many bytes, if that is known: it takes no more memory than such a text needs
    /// ([`encoder_bytes`](crate::encoder_bytes)). A longer one is coded as well, and not quite as short.
    pub fn for_text(coding: Coding, level: u8, length: Option<u64>) -> Result<Encoder, Flaw> {
        let codec = match coding {
            Coding::Gzip => EncoderOf::Gzip(GzipEncoder::new(level, length)),
            Coding::Brotli => EncoderOf::Brotli(Box::new(BrotliEncoder::new(level, length))),
            Coding::Zstd => EncoderOf::Zstd(ZstdEncoder::new(level, length)?),
        };
        Ok(Encoder { codec })
    }

    /// As what differs from a dictionary (RFC 9842): in brotli that is `dcb`, in zstd `dcz`, and in gzip there is no such thing.
    /// `length`: of the text, if it is known.
    ///
    /// The dictionary is loaded with the first piece, whose error is [`Flaw::Unready`] for what [is none](crate::may_be_dictionary).
    pub fn delta(coding: Coding, level: u8, length: Option<u64>, source: DictionarySource) -> Result<Encoder, Flaw> {
        Ok(Encoder { codec: EncoderOf::Delta(DeltaEncoder::new(coding, level, length, source)?) })
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
            EncoderOf::Gzip(codec) => codec.run(piece, ending, out),
            EncoderOf::Brotli(codec) => codec.run(piece, ending, out),
            EncoderOf::Zstd(codec) => codec.run(piece, ending, out),
            EncoderOf::Delta(codec) => codec.run(piece, ending, out),
        }
    }
}
