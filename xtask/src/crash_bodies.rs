//! The bodies of `cargo xtask crash`: what the origin sends for a key's version, and what an answer brought, out of its content coding.
//! That is undone by the codecs' own crates.

use std::io::Read;

use crate::dice::Dice;
use crate::plain_exchange::Message;

const BODY_BYTES_MAX: u64 = 120_000;
const WORDS: [&str; 8] = ["again ", "and ", "page ", "<p>", "crash ", "kept ", "text ", "</p>\n"];

/// Every second key is a page that larder compresses.
pub fn is_text(key: usize) -> bool {
    key.is_multiple_of(2)
}

/// What the origin sends for a key's version: others of the same length have other bytes.
pub fn body_of(key: usize, version: u64) -> Vec<u8> {
    let mut dice = Dice::of((key as u64) << 32 | version);
    if is_text(key) {
        let words = 300 + dice.below(700);
        return (0..words).flat_map(|_| WORDS[dice.below(8) as usize].bytes()).collect();
    }
    let length = if dice.below(4) == 0 { dice.below(BODY_BYTES_MAX) } else { dice.below(4_000) };
    (0..length.div_ceil(8)).flat_map(|_| dice.next().to_le_bytes()).take(length as usize).collect()
}

/// The body of an answer as it was before its coding.
pub fn undone(answer: &Message) -> Result<Vec<u8>, String> {
    let coded = &answer.body[..];
    let mut text = Vec::new();
    let read = match answer.field("content-encoding") {
        None => return Ok(coded.to_vec()),
        Some("br") => brotli::Decompressor::new(coded, 4_096).take(BODY_BYTES_MAX).read_to_end(&mut text),
        Some("gzip") => flate2::read::MultiGzDecoder::new(coded).take(BODY_BYTES_MAX).read_to_end(&mut text),
        Some("zstd") => zstd::stream::read::Decoder::with_buffer(coded)
            .and_then(|decoder| decoder.take(BODY_BYTES_MAX).read_to_end(&mut text)),
        Some(other) => return Err(format!("nobody asked for {other}")),
    };
    read.map(|_| text).map_err(|error| error.to_string())
}
