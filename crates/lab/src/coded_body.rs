//! Bodies out of their content coding, by the codecs' own crates: nothing of what the proxy does with them is used here, so that
//! its mistakes show. What ends too early, goes on behind its end, or becomes longer than it may, is refused.

use std::io::Read;

use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};

use crate::answer_coding::ContentCoding;
use crate::limits::{DECODE_STEP_BYTES, ZSTD_WINDOW_LOG_MAX};

/// All of it, `bytes_max` at most; or what is wrong with it.
pub(crate) fn decode(coding: ContentCoding, coded: &[u8], bytes_max: u64) -> Result<Vec<u8>, String> {
    let text = match coding {
        ContentCoding::Gzip => gunzip(coded, bytes_max),
        ContentCoding::Brotli => unbrotli(coded, bytes_max),
        ContentCoding::Zstd => unzstd(coded, bytes_max),
    };
    let text = text.map_err(|what| format!("it is no {}: {what}", coding.name()))?;
    match text.len() as u64 > bytes_max {
        true => Err(format!("its {} becomes more than the {bytes_max} bytes of the page", coding.name())),
        false => Ok(text),
    }
}

/// One member (RFC 1952): browsers read no second one.
fn gunzip(coded: &[u8], bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut decoder = flate2::bufread::GzDecoder::new(coded);
    let text = read(&mut decoder, bytes_max)?;
    match decoder.into_inner().len() {
        left if left > 0 && text.len() as u64 <= bytes_max => Err(format!("{left} bytes lie behind its end")),
        _ => Ok(text),
    }
}

/// With a window as large as a content coding may have (RFC 9659).
fn unzstd(coded: &[u8], bytes_max: u64) -> Result<Vec<u8>, String> {
    if coded.is_empty() {
        return Err("it is empty".to_owned());
    }
    let mut decoder = zstd::stream::read::Decoder::with_buffer(coded).map_err(|error| error.to_string())?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(|error| error.to_string())?;
    read(&mut decoder, bytes_max)
}

fn read(decoder: &mut dyn Read, bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    decoder.take(bytes_max.saturating_add(1)).read_to_end(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn unbrotli(coded: &[u8], bytes_max: u64) -> Result<Vec<u8>, String> {
    let alloc = StandardAlloc::default;
    let mut state = BrotliState::new_strict(alloc(), alloc(), alloc());
    let (mut left, mut taken, mut text) = (coded.len(), 0, Vec::new());
    loop {
        let begin = text.len();
        text.resize(begin + DECODE_STEP_BYTES, 0);
        let (mut room, mut made, mut all) = (DECODE_STEP_BYTES, 0, 0);
        let result = BrotliDecompressStream(
            &mut left,
            &mut taken,
            coded,
            &mut room,
            &mut made,
            &mut text[begin..],
            &mut all,
            &mut state,
        );
        text.truncate(begin + made);
        match result {
            _ if text.len() as u64 > bytes_max => return Ok(text),
            BrotliResult::ResultSuccess if left > 0 => return Err(format!("{left} bytes lie behind its end")),
            BrotliResult::ResultSuccess => return Ok(text),
            BrotliResult::NeedsMoreOutput => {}
            BrotliResult::NeedsMoreInput => return Err("it ends too early".to_owned()),
            BrotliResult::ResultFailure => return Err("it is corrupt".to_owned()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use super::*;

    /// By the codecs' own encoders.
    pub(crate) fn encode(coding: ContentCoding, text: &[u8], level: u32) -> Vec<u8> {
        match coding {
            ContentCoding::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            ContentCoding::Brotli => {
                let mut out = Vec::new();
                let mut encoder = brotli::CompressorWriter::new(&mut out, 4096, level, 22);
                encoder.write_all(text).unwrap();
                drop(encoder);
                out
            }
            ContentCoding::Zstd => zstd::bulk::compress(text, level as i32).unwrap(),
        }
    }

    #[test]
    fn a_coding_is_undone_to_its_last_byte_and_no_further() {
        let text = b"what is said again and again is short ".repeat(50);
        for coding in ContentCoding::ALL {
            let coded = encode(coding, &text, 5);
            let bytes_max = text.len() as u64;
            assert_eq!(decode(coding, &coded, bytes_max).unwrap(), text, "{coding:?}");
            assert!(decode(coding, &coded, bytes_max - 1).unwrap_err().contains("more than"), "{coding:?}");
            for (wrong, what) in [
                (coded[..coded.len() - 1].to_vec(), "cut"),
                ([&coded[..], b"x"].concat(), "too long"),
                (Vec::new(), "empty"),
                (text.clone(), "not coded"),
            ] {
                assert!(decode(coding, &wrong, bytes_max).is_err(), "{coding:?}: {what}");
            }
        }
    }

    #[test]
    fn what_becomes_endless_ends_at_the_bound() {
        let bomb = vec![0; 64 << 20];
        for coding in ContentCoding::ALL {
            let level = if coding == ContentCoding::Brotli { 2 } else { 1 };
            assert!(decode(coding, &encode(coding, &bomb, level), 1_000).unwrap_err().contains("more than the 1000"));
        }
    }
}
