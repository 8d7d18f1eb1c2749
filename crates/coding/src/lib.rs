//! Content codings over bytes: texts into gzip, brotli and zstd and out of them, piece by piece, with bounds.
//!
//! ```
//! use coding::{Bounds, Coding, Decoder, Encoder};
//!
//! let text = b"what is said again and again and again is short ".repeat(40);
//! let mut coded = Vec::new();
//! let mut encoder = Encoder::new(Coding::Gzip, 6).unwrap();
//! encoder.encode(&text, &mut coded).unwrap();
//! encoder.finish(&mut coded).unwrap();
//! assert!(coded.len() < 150);
//!
//! let mut plain = Vec::new();
//! let mut decoder = Decoder::new(Coding::Gzip, Bounds::default()).unwrap();
//! let step = decoder.decode(&coded, 1 << 20, &mut plain).unwrap();
//! assert!(step.taken == coded.len() && step.is_drained);
//! decoder.finish().unwrap();
//! assert_eq!(plain, text);
//! ```

mod brotli_stream;
mod codec_step;
#[cfg(test)]
mod codec_tests;
mod coder_memory;
mod decoder;
mod deflate_codes;
mod delta_encoder;
#[cfg(test)]
mod delta_tests;
mod encoder;
mod flaw;
mod gzip;
mod gzip_cutter;
mod gzip_marks;
mod gzip_pieces;
mod known_codings;
pub mod limits;
mod text_sum;
mod zstd_stream;

pub use coder_memory::{decoder_bytes, encoder_bytes};
pub use decoder::{Bounds, Decoded, Decoder};
pub use delta_encoder::{DictionaryHash, DictionarySource, may_be_dictionary};
pub use encoder::Encoder;
pub use flaw::Flaw;
pub use gzip_cutter::GzipCutter;
pub use gzip_marks::{CutBytes, GzipMarks};
pub use gzip_pieces::{GZIP_HEAD, GzipPiece, PieceEncoder, page_end, stored_blocks};
pub use known_codings::Coding;
pub use text_sum::TextSum;
