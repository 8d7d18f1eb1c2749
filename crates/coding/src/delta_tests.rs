//! Texts as what differs from a dictionary, read by decoders that are given the dictionary by themselves.

use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use zstd::stream::raw::{Decoder, Operation};

use crate::limits::DICTIONARY_BYTES_MAX;
use crate::{Coding, DictionarySource, Encoder, Flaw};

/// Not the hash of anything: whoever makes the delta is told it.
const HASH: [u8; 32] = *b"what the dictionary is named by!";
const HEADERS: [(Coding, &[u8]); 2] =
    [(Coding::Brotli, b"\xffDCB"), (Coding::Zstd, b"\x5e\x2a\x4d\x18\x20\x00\x00\x00")];

/// A script of so many bytes, of which no line is like another.
fn script(bytes: usize, seed: u32) -> Vec<u8> {
    let (mut text, mut seed) = (Vec::new(), seed);
    while text.len() < bytes {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let line = format!("export function f{:x}(a) {{ return g{:x}(a + {}); }}\n", seed >> 7, seed >> 12, seed >> 3);
        text.extend_from_slice(line.as_bytes());
    }
    text.truncate(bytes);
    text
}

/// The same with a line in its middle changed.
fn changed(script: &[u8]) -> Vec<u8> {
    let (front, back) = script.split_at(script.len() / 2);
    [front, b"console.log('another line');\n", back].concat()
}

fn encoder(coding: Coding, level: u8, length: Option<u64>, dictionary: &[u8]) -> Encoder {
    let dictionary = dictionary.to_vec();
    Encoder::delta(coding, level, length, DictionarySource::new(HASH, move || Ok(dictionary))).unwrap()
}

fn delta(coding: Coding, level: u8, text: &[u8], dictionary: &[u8]) -> Vec<u8> {
    let (mut out, mut encoder) = (Vec::new(), encoder(coding, level, Some(text.len() as u64), dictionary));
    text.chunks(10_000).for_each(|piece| encoder.encode(piece, &mut out).unwrap());
    encoder.finish(&mut out).unwrap();
    out
}

/// Whatever it says: more than it may be is a fault of the test.
fn read(coding: Coding, delta: &[u8], dictionary: &[u8]) -> Vec<u8> {
    let (_, magic) = HEADERS.into_iter().find(|(known, _)| *known == coding).unwrap();
    let stream = delta.strip_prefix(magic).and_then(|rest| rest.strip_prefix(&HASH)).expect("it has a header");
    let mut text = vec![0; 20 << 20];
    let length = match coding {
        Coding::Brotli => {
            let alloc = StandardAlloc::default;
            let mut state =
                BrotliState::new_with_custom_dictionary(alloc(), alloc(), alloc(), dictionary.to_vec().into());
            let (mut left, mut taken, mut room, mut made, mut total) = (stream.len(), 0, text.len(), 0, 0);
            let read = BrotliDecompressStream(
                &mut left, &mut taken, stream, &mut room, &mut made, &mut text, &mut total, &mut state,
            );
            assert!(matches!(read, BrotliResult::ResultSuccess), "{read:?} after {made}");
            made
        }
        _ => {
            let mut decoder = Decoder::with_dictionary(dictionary).unwrap();
            let (mut taken, mut made) = (0, 0);
            loop {
                let step = decoder.run_on_buffers(&stream[taken..], &mut text[made..]).unwrap();
                (taken, made) = (taken + step.bytes_read, made + step.bytes_written);
                if step.remaining == 0 {
                    break;
                }
                assert!(step.bytes_read + step.bytes_written > 0, "it ended too early");
            }
            assert_eq!(taken, stream.len());
            made
        }
    };
    text.truncate(length);
    text
}

#[test]
fn a_text_comes_back_by_its_dictionary() {
    for (coding, magic) in HEADERS {
        for bytes in [0, 1, 300, 70_000, 300_000] {
            let dictionary = script(bytes, 1);
            for text in [dictionary.clone(), changed(&dictionary), script(bytes, 7), Vec::new()] {
                for level in [1, 4, 9, 11] {
                    let delta = delta(coding, level, &text, &dictionary);
                    assert!(delta.starts_with(magic) && delta[magic.len()..].starts_with(&HASH));
                    assert!(read(coding, &delta, &dictionary) == text, "{coding:?} {bytes} {level}");
                }
            }
        }
    }
}

#[test]
fn what_was_said_before_is_not_said_again() {
    let dictionary = script(270_000, 1);
    let text = changed(&dictionary);
    for (coding, level) in [(Coding::Brotli, 5), (Coding::Brotli, 9), (Coding::Zstd, 6), (Coding::Zstd, 12)] {
        let delta = delta(coding, level, &text, &dictionary).len();
        assert!(delta < 500, "{coding:?} {level}: {delta} bytes");
    }
}

#[test]
fn the_longest_dictionary_reaches_to_the_end_of_the_text() {
    let dictionary = script(DICTIONARY_BYTES_MAX, 3);
    let text = &changed(&dictionary)[..DICTIONARY_BYTES_MAX - (64 << 10)];
    for (coding, level) in [(Coding::Brotli, 5), (Coding::Zstd, 6)] {
        let delta = delta(coding, level, text, &dictionary);
        assert!(delta.len() < 20_000, "{coding:?}: {} bytes", delta.len());
        assert!(read(coding, &delta, &dictionary) == text, "{coding:?}");
    }
}

#[test]
fn who_reads_along_gets_what_was_flushed() {
    let dictionary = script(5_000, 1);
    for (coding, _) in HEADERS {
        let (mut out, mut encoder) = (Vec::new(), encoder(coding, 5, None, &dictionary));
        encoder.flush(&mut out).unwrap();
        let header = out.len();
        encoder.encode(&dictionary[..3_000], &mut out).unwrap();
        encoder.flush(&mut out).unwrap();
        assert!(header >= 36 && out.len() > header, "{coding:?}");
        encoder.finish(&mut out).unwrap();
        assert!(read(coding, &out, &dictionary) == dictionary[..3_000], "{coding:?}");
    }
}

#[test]
fn what_is_no_dictionary_makes_no_delta() {
    let run = |coding, load: Result<Vec<u8>, Flaw>| {
        let mut encoder = Encoder::delta(coding, 5, None, DictionarySource::new(HASH, move || load))?;
        let (mut first, mut again) = (Vec::new(), Vec::new());
        let flaw = encoder.encode(b"a text", &mut first);
        assert!(flaw.is_ok() || first.is_empty() && encoder.encode(b"on", &mut again) == Err(Flaw::Unready));
        flaw
    };
    let of_zstd = [&b"\x37\xa4\x30\xec"[..], &[0; 60]].concat();
    for (coding, _) in HEADERS {
        assert_eq!(run(coding, Err(Flaw::Truncated)), Err(Flaw::Truncated));
        assert_eq!(run(coding, Ok(of_zstd.clone())), Err(Flaw::Unready));
        assert_eq!(run(coding, Ok(vec![b'x'; DICTIONARY_BYTES_MAX + 1])), Err(Flaw::Unready));
        assert_eq!(run(coding, Ok(vec![b'x'; DICTIONARY_BYTES_MAX])), Ok(()));
    }
    assert_eq!(run(Coding::Gzip, Ok(Vec::new())), Err(Flaw::Unready));
}
