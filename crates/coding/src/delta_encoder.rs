//! A text as what differs from another one that its reader has, the dictionary (RFC 9842): `dcb` and `dcz`.
//!
//! Either is a header, which names the dictionary by its SHA-256, and a stream of brotli or zstd for which the dictionary is what was said
//! before its first byte.

use crate::brotli_stream::BrotliEncoder;
use crate::codec_step::Ending;
use crate::flaw::Flaw;
use crate::known_codings::Coding;
use crate::limits::{BROTLI_DELTA_WINDOW_LOG_MAX, DELTA_WINDOW_LOG_MIN, DICTIONARY_BYTES_MAX, ZSTD_WINDOW_LOG_MAX};
use crate::zstd_stream::ZstdEncoder;

/// What a dictionary is named by.
pub type DictionaryHash = [u8; 32];

/// RFC 9842 §4.
const DCB_MAGIC: &[u8] = &[0xff, 0x44, 0x43, 0x42];
/// RFC 9842 §5: a frame of zstd that readers of zstd skip.
const DCZ_MAGIC: &[u8] = &[0x5e, 0x2a, 0x4d, 0x18, 0x20, 0x00, 0x00, 0x00];
/// What begins so zstd takes for a dictionary in a form of its own (RFC 8878 §5), and not for a text.
const ZSTD_DICTIONARY_MAGIC: &[u8] = &[0x37, 0xa4, 0x30, 0xec];

/// May a text be a dictionary, in whatever coding? Not one that is too long, or that zstd would take for something else.
pub fn may_be_dictionary(text: &[u8]) -> bool {
    text.len() <= DICTIONARY_BYTES_MAX && !text.starts_with(ZSTD_DICTIONARY_MAGIC)
}

/// A dictionary that is looked at when it is needed: on whatever thread the work is done.
pub struct DictionarySource {
    sha256: DictionaryHash,
    load: Box<dyn FnOnce() -> Result<Vec<u8>, Flaw> + Send>,
}

impl DictionarySource {
    /// `load` brings the text, of which `sha256` is the hash.
    pub fn new(
        sha256: DictionaryHash,
        load: impl FnOnce() -> Result<Vec<u8>, Flaw> + Send + 'static,
    ) -> DictionarySource {
        DictionarySource { sha256, load: Box::new(load) }
    }
}

impl std::fmt::Debug for DictionarySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DictionarySource").finish_non_exhaustive()
    }
}

pub(crate) enum DeltaEncoder {
    /// Nothing was said yet.
    New {
        coding: Coding,
        level: u8,
        length: Option<u64>,
        source: Option<DictionarySource>,
    },
    Brotli(Box<BrotliEncoder>),
    Zstd(ZstdEncoder),
}

impl DeltaEncoder {
    /// `length`: of the text, if it is known.
    pub(crate) fn new(
        coding: Coding,
        level: u8,
        length: Option<u64>,
        source: DictionarySource,
    ) -> Result<DeltaEncoder, Flaw> {
        match coding {
            Coding::Brotli | Coding::Zstd => Ok(DeltaEncoder::New { coding, level, length, source: Some(source) }),
            Coding::Gzip => Err(Flaw::Unready),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            DeltaEncoder::New { coding: Coding::Brotli, .. } | DeltaEncoder::Brotli(_) => "dcb",
            DeltaEncoder::New { .. } | DeltaEncoder::Zstd(_) => "dcz",
        }
    }

    pub(crate) fn run(&mut self, piece: &[u8], ending: Ending, out: &mut Vec<u8>) -> Result<(), Flaw> {
        if let DeltaEncoder::New { coding, level, length, source } = self {
            // Once it was taken and was no use there is nothing to go on with.
            let source = source.take().ok_or(Flaw::Unready)?;
            *self = begun(*coding, *level, *length, source, out)?;
        }
        match self {
            DeltaEncoder::Brotli(encoder) => encoder.run(piece, ending, out),
            DeltaEncoder::Zstd(encoder) => encoder.run(piece, ending, out),
            DeltaEncoder::New { .. } => Err(Flaw::Unready),
        }
    }
}

/// Says the header, and prepares for the text.
fn begun(
    coding: Coding,
    level: u8,
    length: Option<u64>,
    source: DictionarySource,
    out: &mut Vec<u8>,
) -> Result<DeltaEncoder, Flaw> {
    let dictionary = (source.load)()?;
    if !may_be_dictionary(&dictionary) {
        return Err(Flaw::Unready);
    }
    let window_log = window_log(dictionary.len() as u64, length);
    let (magic, encoder) = match coding {
        Coding::Brotli => {
            let window_log = window_log.min(BROTLI_DELTA_WINDOW_LOG_MAX);
            let encoder = BrotliEncoder::with_dictionary(level, window_log, &dictionary);
            (DCB_MAGIC, DeltaEncoder::Brotli(Box::new(encoder)))
        }
        _ => {
            let encoder = ZstdEncoder::with_dictionary(level, window_log.min(ZSTD_WINDOW_LOG_MAX), &dictionary)?;
            (DCZ_MAGIC, DeltaEncoder::Zstd(encoder))
        }
    };
    out.extend_from_slice(magic);
    out.extend_from_slice(&source.sha256);
    Ok(encoder)
}

/// In powers of two: at the end of the text its reader still remembers all of the dictionary. A text whose length is not known is as long
/// as its dictionary, and a quarter.
fn window_log(dictionary: u64, length: Option<u64>) -> u32 {
    let length = length.unwrap_or(dictionary + dictionary / 4);
    let bytes = dictionary.saturating_add(length).saturating_add(1 << DELTA_WINDOW_LOG_MIN);
    bytes.checked_next_power_of_two().map_or(u32::MAX, u64::trailing_zeros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_reaches_from_the_end_of_the_text_to_the_begin_of_the_dictionary() {
        assert_eq!(window_log(0, Some(0)), DELTA_WINDOW_LOG_MIN);
        assert_eq!(window_log(270_000, Some(270_100)), 20);
        assert_eq!(window_log(270_000, None), 20);
        assert_eq!(window_log(1 << 22, Some(1 << 22)), 24);
        assert_eq!(window_log(1, Some(u64::MAX)), u32::MAX);
    }
}
