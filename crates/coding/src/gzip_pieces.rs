//! A text into one gzip, of which pieces can be taken that mean something by themselves: each begins behind an end of all that was
//! remembered and ends at a byte. Joined between [`GZIP_HEAD`] and [`page_end`] pieces are a gzip of their texts.

use std::ops::Range;

use crate::codec_step::Ending;
use crate::flaw::Flaw;
use crate::gzip::GzipEncoder;
use crate::text_sum::TextSum;

/// What a gzip begins with: no name, no time, of no system in particular.
pub const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// A block of no text that is the last, as it stands behind pieces that are joined …
const LAST_BLOCK: [u8; 5] = [0x01, 0x00, 0x00, 0xff, 0xff];
/// … and how long a block may be that is not compressed (RFC 1951 §3.2.4).
const STORED_BYTES_MAX: usize = 0xffff;

/// Where a piece lies in the gzip, and what it is the text of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GzipPiece {
    pub coded: Range<u64>,
    pub sum: TextSum,
}

/// Codes one text.
pub struct PieceEncoder {
    codec: GzipEncoder,
    /// Nothing is remembered of what is behind us.
    is_apart: bool,
}

impl PieceEncoder {
    /// `level`: 0 to 9.
    pub fn new(level: u8) -> PieceEncoder {
        PieceEncoder { codec: GzipEncoder::new(level, None), is_apart: false }
    }

    /// The next bytes of the text, as a piece. `out` is all of the gzip so far.
    pub fn piece(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<GzipPiece, Flaw> {
        if !self.is_apart {
            self.codec.run(&[], Ending::Apart, out)?;
        }
        let start = out.len() as u64;
        self.codec.run(text, Ending::Flushed, out)?;
        self.is_apart = false;
        Ok(GzipPiece { coded: start..out.len() as u64, sum: TextSum::of(text) })
    }

    /// The same where nobody will ask for it by itself.
    pub fn between(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), Flaw> {
        if text.is_empty() {
            return Ok(());
        }
        self.is_apart = false;
        self.codec.run(text, Ending::Open, out)
    }

    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), Flaw> {
        self.codec.run(&[], Ending::Finished, out)
    }
}

/// The end of a gzip of joined pieces, whose texts have this sum.
pub fn page_end(sum: TextSum) -> [u8; 13] {
    let mut end = [0; 13];
    end[..5].copy_from_slice(&LAST_BLOCK);
    end[5..].copy_from_slice(&sum.end_of_gzip());
    end
}

/// A text as a piece that is not compressed: the head of each of its blocks, and how much of the text it stands before.
pub fn stored_blocks(length: usize) -> impl Iterator<Item = ([u8; 5], Range<usize>)> {
    (0..length).step_by(STORED_BYTES_MAX).map(move |from| {
        let to = length.min(from + STORED_BYTES_MAX);
        let [low, high] = ((to - from) as u16).to_le_bytes();
        ([0, low, high, !low, !high], from..to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bounds, Coding, Decoder};

    fn plain(gzip: &[u8]) -> Vec<u8> {
        let (mut decoder, mut out) = (Decoder::new(Coding::Gzip, Bounds::NONE).unwrap(), Vec::new());
        let step = decoder.decode(gzip, 1 << 20, &mut out).unwrap();
        assert!(step.taken == gzip.len() && step.is_drained);
        decoder.finish().unwrap();
        out
    }

    #[test]
    fn the_whole_is_a_gzip_and_so_is_what_is_joined_of_its_pieces() {
        let texts: [&[u8]; 5] = [b"one, two, one, two", b"<tag/>", b"one, two", b"", b"one, two again"];
        let (mut encoder, mut whole, mut pieces) = (PieceEncoder::new(6), Vec::new(), Vec::new());
        for (at, text) in texts.into_iter().enumerate() {
            match at % 2 {
                0 => pieces.push(encoder.piece(text, &mut whole).unwrap()),
                _ => encoder.between(text, &mut whole).unwrap(),
            }
        }
        encoder.finish(&mut whole).unwrap();
        assert_eq!(plain(&whole), texts.concat());
        for order in [&[0, 1, 2][..], &[2, 0], &[1, 1, 1], &[]] {
            let (mut joined, mut sum, mut text) = (GZIP_HEAD.to_vec(), TextSum::default(), Vec::new());
            for &nth in order {
                let piece: &GzipPiece = &pieces[nth];
                joined.extend_from_slice(&whole[piece.coded.start as usize..piece.coded.end as usize]);
                sum = sum.followed_by(piece.sum);
                text.extend_from_slice(texts[2 * nth]);
            }
            joined.extend_from_slice(&page_end(sum));
            assert_eq!(plain(&joined), text, "{order:?}");
        }
    }

    #[test]
    fn a_text_that_is_not_compressed_is_a_piece() {
        for length in [0, 1, 65_535, 65_536, 200_000] {
            let text: Vec<u8> = (0..length).map(|n: usize| (n % 253) as u8).collect();
            let mut joined = GZIP_HEAD.to_vec();
            for (head, range) in stored_blocks(text.len()) {
                joined.extend_from_slice(&head);
                joined.extend_from_slice(&text[range]);
            }
            joined.extend_from_slice(&page_end(TextSum::of(&text)));
            assert_eq!(plain(&joined), text, "{length}");
        }
    }
}
