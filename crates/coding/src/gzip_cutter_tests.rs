//! Pieces that are cut out of gzips, joined to pages, and read by a decoder that knows nothing of it.

use proptest::prelude::*;

use super::*;
use crate::gzip_marks::CutBytes;
use crate::gzip_pieces::{GZIP_HEAD, page_end};
use crate::{Bounds, Coding, Decoder, Encoder};

fn gzip(text: &[u8], level: u8) -> Vec<u8> {
    let (mut encoder, mut out) = (Encoder::new(Coding::Gzip, level).unwrap(), Vec::new());
    encoder.encode(text, &mut out).unwrap();
    encoder.finish(&mut out).unwrap();
    out
}

fn plain(gzip: &[u8]) -> Result<Vec<u8>, Flaw> {
    let (mut decoder, mut out) = (Decoder::new(Coding::Gzip, Bounds::NONE)?, Vec::new());
    let mut taken = 0;
    loop {
        let step = decoder.decode(&gzip[taken..], 1 << 16, &mut out)?;
        taken += step.taken;
        if taken == gzip.len() && step.is_drained {
            return decoder.finish().map(|()| out);
        }
    }
}

/// The piece, given so many bytes at a time.
fn cut(gzip: &[u8], at_a_time: usize) -> Result<(Vec<u8>, Option<GzipMarks>), Flaw> {
    let (mut cutter, mut out) = (GzipCutter::default(), Vec::new());
    for bytes in gzip.chunks(at_a_time) {
        cutter.cut(bytes, &mut out)?;
    }
    cutter.finish().map(|marks| (out, marks))
}

/// The same by what was found before.
fn cut_by(marks: &GzipMarks, gzip: &[u8], at_a_time: usize) -> Vec<u8> {
    let (mut out, mut at) = (Vec::new(), 0);
    for bytes in gzip.chunks(at_a_time) {
        for cut in marks.cut(at, bytes) {
            match cut {
                CutBytes::Kept(range) => out.extend_from_slice(&bytes[range]),
                CutBytes::Changed(bytes) => out.extend(bytes),
            }
        }
        at += bytes.len() as u64;
    }
    out
}

/// A page of these, one behind the other.
fn page(pieces: &[(Vec<u8>, TextSum)]) -> Vec<u8> {
    let sum = pieces.iter().fold(TextSum::default(), |sum, (_, next)| sum.followed_by(*next));
    let pieces: Vec<u8> = pieces.iter().flat_map(|(piece, _)| piece.clone()).collect();
    [&GZIP_HEAD[..], &pieces, &page_end(sum)].concat()
}

fn texts() -> Vec<Vec<u8>> {
    let mut state = 7_u64;
    let noise = |length: usize, state: &mut u64| -> Vec<u8> {
        std::iter::repeat_with(|| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 56) as u8
        })
        .take(length)
        .collect()
    };
    let mut texts: Vec<Vec<u8>> = (0..40).map(|n| noise(n, &mut state)).collect();
    texts.extend((0..40).map(|length| (0..length).map(|n| b'a' + (n * 7 % 26) as u8).collect()));
    texts.push(b"again and again and again, ".repeat(4_000));
    texts.push(noise(150_000, &mut state));
    texts.push((0..90_000_u64).map(|n| b"etaoin shrdlu"[(n * n % 13) as usize]).collect());
    texts.push(vec![b'x'; 300_000]);
    texts
}

#[test]
fn pieces_of_any_gzip_are_joined() {
    for level in [0, 1, 6, 9] {
        let mut pieces = Vec::new();
        for text in texts() {
            let gzip = gzip(&text, level);
            let (piece, marks) = cut(&gzip, usize::MAX).unwrap();
            let marks = marks.unwrap();
            assert_eq!(marks.sum, TextSum::of(&text));
            for at_a_time in [1, 3, 1_000, usize::MAX] {
                assert!(cut_by(&marks, &gzip, at_a_time) == piece, "{} by {at_a_time}", text.len());
            }
            pieces.push((piece, marks.sum));
        }
        assert!(plain(&page(&pieces)).as_ref() == Ok(&texts().concat()), "level {level}");
    }
}

#[test]
fn it_is_the_same_however_it_comes() {
    for text in texts().iter().filter(|text| text.len() < 120_000) {
        let gzip = gzip(text, 6);
        let whole = cut(&gzip, usize::MAX);
        for at_a_time in [1, 2, 7, 1_000] {
            assert!(cut(&gzip, at_a_time) == whole, "{} by {at_a_time}", text.len());
        }
    }
}

#[test]
fn each_bit_at_which_a_text_can_end_is_filled_up() {
    let ends = |text: &[u8]| cut(&gzip(text, 6), usize::MAX).unwrap().1.unwrap().end_bit & 7;
    let mut seen: Vec<u64> = texts().iter().map(|text| ends(text)).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_head_may_say_more() {
    let gzip = gzip(b"hello", 6);
    for (flags, more) in [
        (FLAG_NAME, &b"name\0"[..]),
        (FLAG_COMMENT, b"\0"),
        (FLAG_EXTRA, b"\x03\0abc"),
        (FLAG_CRC, b"\x12\x34"),
        (FLAG_EXTRA | FLAG_NAME | FLAG_COMMENT | FLAG_CRC | 1, b"\0\0a\0b\0\x12\x34"),
    ] {
        let mut said = gzip[..10].to_vec();
        said[3] = flags;
        said.extend_from_slice(more);
        said.extend_from_slice(&gzip[10..]);
        for at_a_time in [1, usize::MAX] {
            let (piece, marks) = cut(&said, at_a_time).unwrap();
            let (bare, _) = cut(&gzip, usize::MAX).unwrap();
            assert_eq!((piece, marks.unwrap().head_bytes), (bare, 10 + more.len() as u64), "{flags}");
        }
    }
}

#[test]
fn what_is_none_is_a_flaw() {
    let gzip = gzip(b"hello hello hello", 6);
    assert_eq!(cut(b"<html>", 3), Err(Flaw::Corrupt));
    assert_eq!(cut(b"", 1), Ok((Vec::new(), None)));
    for length in 1..gzip.len() {
        assert_eq!(cut(&gzip[..length], usize::MAX), Err(Flaw::Truncated), "{length}");
    }
    assert_eq!(cut(&[&gzip[..], b"x"].concat(), usize::MAX), Err(Flaw::JunkBehind));
    let mut longer = gzip.clone();
    *longer.iter_mut().nth_back(3).unwrap() ^= 1;
    assert_eq!(cut(&longer, usize::MAX), Err(Flaw::Corrupt), "it is as long as it says");
}

proptest! {
    /// Whatever is damaged, nothing breaks; and what a decoder reads, so does this.
    #[test]
    fn damaged_ones_are_read_as_a_decoder_reads_them(
        text in proptest::collection::vec(0_u8..4, 0..400),
        level in 0_u8..10,
        at in 0_usize..500,
        bit in 0_u8..8,
        at_a_time in 1_usize..40,
    ) {
        let mut damaged = gzip(&text, level);
        let at = at % damaged.len();
        damaged[at] ^= 1 << bit;
        let found = cut(&damaged, at_a_time);
        match plain(&damaged) {
            Ok(text) => prop_assert_eq!(found.unwrap().1.map(|marks| marks.sum), Some(TextSum::of(&text))),
            Err(_) => if let Ok((piece, Some(marks))) = found {
                // Its checksum was not compared.
                prop_assert!(plain(&page(&[(piece, marks.sum)])).is_err());
            }
        }
    }
}
