//! The codings of a file that do not lie beside it: made when the file is read, and kept in memory with it.

use bytes::Bytes;
use coding::{Coding, Encoder, Flaw};

use crate::coding_choice::Codable;
use crate::coding_levels::quick_level;
use crate::compress_settings::CompressSettings;
use crate::limits::FILE_CODED_BYTES_MAX;
use crate::static_files::open_file::{self, OpenFile};

/// Is it worth it? Who asks for a file that has just changed waits for it.
pub(crate) fn is_worth_it(file: &OpenFile, settings: &CompressSettings) -> bool {
    let (head, length) = (file.head(), file.length());
    length <= FILE_CODED_BYTES_MAX && Codable::of(settings, head.status, head.fields.view(), Some(length)).is_some()
}

/// The file in a coding. `None`: it is not wanted, it cannot be read, or it gets no shorter.
pub(crate) fn make(file: &OpenFile, coding: open_file::Coding, settings: &CompressSettings) -> Option<OpenFile> {
    let known = Coding::of(coding.name().as_bytes())?;
    settings.codings.iter().find(|wanted| wanted.name() == coding.name())?;
    let text = file.read_body().ok()?;
    let coded = encoded(&text, known).ok()?;
    (coded.len() < text.len()).then(|| file.in_coding(coding, Bytes::from(coded)))
}

fn encoded(text: &[u8], coding: Coding) -> Result<Vec<u8>, Flaw> {
    let mut encoder = Encoder::for_text(coding, quick_level(coding), Some(text.len() as u64))?;
    let mut coded = Vec::new();
    encoder.encode(text, &mut coded)?;
    encoder.finish(&mut coded)?;
    Ok(coded)
}
