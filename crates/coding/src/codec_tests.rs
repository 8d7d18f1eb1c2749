//! What every codec must do, asserted of all of them alike: texts come back, damage is seen, bounds hold.

use proptest::prelude::*;

use crate::limits::{DECODED_FREE_BYTES, DECODED_RATIO_MAX};
use crate::{Bounds, Coding, Decoder, Encoder, Flaw};

fn coded(coding: Coding, level: u8, pieces: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(coding, level).unwrap();
    pieces.iter().for_each(|piece| encoder.encode(piece, &mut out).unwrap());
    encoder.finish(&mut out).unwrap();
    out
}

/// Decodes pieces of the input of so many bytes, by steps of at most so many.
fn decoded(coding: Coding, input: &[u8], (piece, room): (usize, usize), bounds: Bounds) -> Result<Vec<u8>, Flaw> {
    let (mut decoder, mut out) = (Decoder::new(coding, bounds)?, Vec::new());
    for mut piece in input.chunks(piece) {
        loop {
            let before = out.len();
            let step = decoder.decode(piece, room, &mut out)?;
            assert!(out.len() - before <= room, "{coding:?}");
            piece = &piece[step.taken..];
            if step.is_drained {
                assert!(piece.is_empty(), "{coding:?}: drained with input left");
                break;
            }
        }
    }
    decoder.finish().map(|()| out)
}

fn whole(coding: Coding, input: &[u8]) -> Result<Vec<u8>, Flaw> {
    decoded(coding, input, (usize::MAX >> 1, 1 << 16), Bounds::default())
}

/// A page whose words come again, as pages' words do.
fn page(bytes: usize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut seed = 1_u32;
    while text.len() < bytes {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.extend_from_slice(format!("<li class=\"item-{}\">word{}</li>\n", seed >> 30, seed >> 22).as_bytes());
    }
    text.truncate(bytes);
    text
}

#[test]
fn every_coding_gives_back_what_it_was_given() {
    for coding in Coding::ALL {
        for bytes in [0, 1, 300, 70_000, 300_000] {
            for level in [0, 1, 5, 9, 22] {
                let text = page(bytes);
                let halves = text.split_at(bytes / 3);
                let short = coded(coding, level, &[halves.0, halves.1]);
                assert_eq!(whole(coding, &short).as_ref(), Ok(&text), "{coding:?} {bytes} {level}");
                assert!(bytes < 1_000 || level == 0 || short.len() < bytes / 3, "{coding:?} {level} {}", short.len());
            }
        }
    }
}

#[test]
fn a_text_may_come_byte_by_byte_and_leave_so() {
    for coding in Coding::ALL {
        let text = page(5_000);
        let short = coded(coding, 5, &[&text]);
        for course in [(1, 1), (1, 4_096), (7, 3), (4_096, 1)] {
            assert_eq!(decoded(coding, &short, course, Bounds::default()).as_ref(), Ok(&text), "{coding:?} {course:?}");
        }
    }
}

#[test]
fn who_reads_along_gets_what_was_flushed() {
    for coding in Coding::ALL {
        let text = page(2_000);
        let mut encoder = Encoder::new(coding, 5).unwrap();
        let mut decoder = Decoder::new(coding, Bounds::default()).unwrap();
        let mut plain = Vec::new();
        for piece in text.chunks(700) {
            let mut out = Vec::new();
            encoder.encode(piece, &mut out).unwrap();
            encoder.flush(&mut out).unwrap();
            decoder.decode(&out, 1 << 16, &mut plain).unwrap();
            assert!(plain.ends_with(piece), "{coding:?}");
        }
        assert_eq!(decoder.finish(), Err(Flaw::Truncated), "{coding:?}");
    }
}

#[test]
fn nothing_at_all_is_an_empty_text_and_half_of_one_is_none() {
    for coding in Coding::ALL {
        assert_eq!(whole(coding, b""), Ok(Vec::new()), "{coding:?}");
        let short = coded(coding, 5, &[&page(3_000)]);
        for end in 1..short.len() {
            assert_eq!(whole(coding, &short[..end]), Err(Flaw::Truncated), "{coding:?} {end}");
        }
    }
}

#[test]
fn what_was_damaged_is_never_taken_for_the_text() {
    for coding in [Coding::Gzip, Coding::Zstd] {
        let text = page(3_000);
        let mut encoder_says = coded(coding, 5, &[&text]);
        let last = encoder_says.len() - 5;
        encoder_says[last] ^= 1;
        match coding {
            // Its sum of the text does not hold.
            Coding::Gzip => assert_eq!(whole(coding, &encoder_says), Err(Flaw::Corrupt)),
            // It has none here; what it says of itself may still be read.
            _ => assert_ne!(whole(coding, &encoder_says).as_ref(), Ok(&text)),
        }
    }
    for coding in Coding::ALL {
        assert_eq!(whole(coding, b"<html>this is no coding at all</html>"), Err(Flaw::Corrupt), "{coding:?}");
    }
}

#[test]
fn gzip_and_zstd_go_on_with_the_next_text_and_nothing_else_follows() {
    for coding in Coding::ALL {
        let mut twice = coded(coding, 5, &[b"one, "]);
        twice.extend(coded(coding, 5, &[b"two"]));
        let mut junk = coded(coding, 5, &[b"one"]);
        junk.extend(b"\0\0junk");
        for course in [(1, 1), (1 << 20, 1 << 16)] {
            let twice = decoded(coding, &twice, course, Bounds::default());
            let junk = decoded(coding, &junk, course, Bounds::default());
            match coding {
                Coding::Brotli => {
                    assert_eq!((twice, junk), (Err(Flaw::JunkBehind), Err(Flaw::JunkBehind)), "{course:?}")
                }
                Coding::Gzip => assert_eq!((twice, junk), (Ok(b"one, two".to_vec()), Err(Flaw::JunkBehind))),
                Coding::Zstd => assert_eq!((twice, junk), (Ok(b"one, two".to_vec()), Err(Flaw::Corrupt))),
            }
        }
    }
}

#[test]
fn where_one_text_is_wanted_a_second_is_junk() {
    let one = Bounds { is_one_text: true, ..Bounds::USUAL };
    for coding in Coding::ALL {
        let mut twice = coded(coding, 5, &[b"one"]);
        assert_eq!(decoded(coding, &twice, (1, 1), one), Ok(b"one".to_vec()), "{coding:?}");
        twice.extend(coded(coding, 5, &[b"two"]));
        for course in [(1, 1), (1 << 20, 1 << 16)] {
            assert_eq!(decoded(coding, &twice, course, one), Err(Flaw::JunkBehind), "{coding:?}");
        }
    }
}

#[test]
fn a_bomb_ends_at_its_bounds() {
    let zeros = vec![0; 1 << 20];
    for coding in Coding::ALL {
        let mut bomb = Vec::new();
        let mut encoder = Encoder::new(coding, 6).unwrap();
        (0..64).for_each(|_| encoder.encode(&zeros, &mut bomb).unwrap());
        encoder.finish(&mut bomb).unwrap();
        assert!(64 << 20 > bomb.len() as u64 * DECODED_RATIO_MAX, "{coding:?}: {}", bomb.len());
        assert_eq!(whole(coding, &bomb), Err(Flaw::TooDense), "{coding:?}");
        let bounds = Bounds { bytes_max: 3 << 20, ..Bounds::default() };
        assert_eq!(decoded(coding, &bomb, (100, 4_096), bounds), Err(Flaw::TooLong), "{coding:?}");
        // What is dense and no larger than is free is a page like others.
        let small = coded(coding, 6, &vec![&zeros[..]; (DECODED_FREE_BYTES >> 20) as usize]);
        assert_eq!(whole(coding, &small).map(|text| text.len() as u64), Ok(DECODED_FREE_BYTES), "{coding:?}");
    }
}

#[test]
fn zstd_with_a_larger_window_than_http_has_is_refused() {
    // A frame header that asks for a window of 16 MiB (RFC 8878 §3.1.1.1): 2^(10 + 14).
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 14 << 3, 0x01, 0x00, 0x00];
    assert_eq!(whole(Coding::Zstd, &frame), Err(Flaw::Corrupt));
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 13 << 3, 0x01, 0x00, 0x00];
    assert_eq!(whole(Coding::Zstd, &frame), Ok(Vec::new()));
}

#[test]
fn what_others_have_coded_is_read() {
    // By Python's gzip, with a name and an extra field; by the brotli and zstd programs.
    let gzip = b"\x1f\x8b\x08\x0c\x00\x00\x00\x00\x00\x03\x04\x00ab\x00\x00name\x00\xcbH\xcd\xc9\xc9\x07\x00\x86\xa6\x106\x05\x00\x00\x00";
    assert_eq!(whole(Coding::Gzip, gzip), Ok(b"hello".to_vec()));
    assert_eq!(whole(Coding::Brotli, b"\x0b\x02\x80hello\x03"), Ok(b"hello".to_vec()));
    let zstd = b"\x28\xb5\x2f\xfd\x04\x58\x29\x00\x00hello\xa3\x6d\x9f\x88";
    assert_eq!(whole(Coding::Zstd, zstd), Ok(b"hello".to_vec()));
}

proptest! {
    #[test]
    fn any_text_comes_back_in_any_pieces(
        text in proptest::collection::vec(any::<u8>(), 0..3_000),
        at in 0_usize..3_000,
        piece in 1_usize..500,
        room in 1_usize..500,
        coding in proptest::sample::select(Coding::ALL.to_vec()),
        level in 0_u8..12,
    ) {
        let (first, second) = text.split_at(at.min(text.len()));
        let short = coded(coding, level, &[first, second]);
        prop_assert_eq!(decoded(coding, &short, (piece, room), Bounds::default()), Ok(text));
    }

    #[test]
    fn no_bytes_make_a_decoder_panic_or_write_more_than_it_may(
        junk in proptest::collection::vec(any::<u8>(), 0..600),
        keep in 0_usize..60,
        coding in proptest::sample::select(Coding::ALL.to_vec()),
    ) {
        let mut input = coded(coding, 3, &[&page(400)]);
        input.truncate(keep);
        input.extend(junk);
        let bounds = Bounds { bytes_max: 1 << 16, ..Bounds::default() };
        if let Ok(text) = decoded(coding, &input, (50, 1 << 12), bounds) {
            prop_assert!(text.len() <= 1 << 16);
        }
    }
}

#[test]
fn what_does_not_begin_like_a_gzip_may_be_taken_for_a_text() {
    let read = |may_be_plain: bool, pieces: &[&[u8]]| {
        let mut decoder = Decoder::new(Coding::Gzip, Bounds { may_be_plain, ..Bounds::USUAL }).unwrap();
        let mut text = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            loop {
                let step = decoder.decode(rest, 4, &mut text)?;
                rest = &rest[step.taken..];
                if step.is_drained {
                    break;
                }
            }
        }
        decoder.finish().map(|()| text)
    };
    assert_eq!(read(true, &[b"only ", b"said to be gzip"]).as_deref(), Ok(&b"only said to be gzip"[..]));
    assert_eq!(read(true, &[b"\x1f\x8b\x08 is not enough"]), Err(Flaw::Corrupt));
    assert_eq!(read(false, &[b"only said"]), Err(Flaw::Corrupt));
    assert_eq!(read(true, &[]).as_deref(), Ok(&b""[..]));
}
