//! What was found in a page with parts, as the stored form of an object has it: so that it is not looked through again after a restart.
//!
//! ```text
//! pieces in gzip: how many u32 (all ones: it is in none), then each: text at u64 · from u64 · to u64 · its length u64 · its CRC-32 u32
//! pieces: how many u32, then each
//! text: 0 u8 · from u64 · to u64
//! include: 1 u8 · goes on u8 · has variables u8 · src · alt (all ones: none)
//! try: 2 u8 · pieces of the attempt · pieces of the other way
//! variable: 3 u8 · name u8 · key (all ones: none) · default (all ones: none)
//! choose: 4 u8 · how many tests u32, then each with its pieces · pieces of the other way
//! ```

use coding::{GzipPiece, TextSum};
use esi::limits::{NESTED_MAX, PIECES_MAX};
use esi::{Document, Include, Piece, VARIABLE_NAMES, Variable, When};

use crate::esi_page::{EsiPage, PagePiece};
use crate::form_fields::{FormReader, FormWriter, NONE_LEN};

const TEXT: u8 = 0;
const INCLUDE: u8 = 1;
const TRY: u8 = 2;
const VARIABLE: u8 = 3;
const CHOOSE: u8 = 4;

pub(crate) fn write(page: &EsiPage, out: &mut FormWriter) {
    match &page.in_gzip {
        None => out.0.extend_from_slice(&NONE_LEN.to_le_bytes()),
        Some(pieces) => {
            out.length(pieces.len());
            for PagePiece { text_at, gzip: GzipPiece { coded, sum } } in pieces {
                out.numbers([*text_at, coded.start, coded.end, sum.length]);
                out.0.extend_from_slice(&sum.crc.to_le_bytes());
            }
        }
    }
    write_pieces(&page.document.pieces, out);
}

fn write_pieces(pieces: &[Piece], out: &mut FormWriter) {
    out.length(pieces.len());
    for piece in pieces {
        match piece {
            Piece::Text(range) => {
                out.0.push(TEXT);
                out.numbers([range.start, range.end]);
            }
            Piece::Include(include) => {
                out.0.extend_from_slice(&[INCLUDE, u8::from(include.goes_on), u8::from(include.has_variables)]);
                out.text(&include.src);
                write_maybe(include.alt.as_deref(), out);
            }
            Piece::Variable(variable) => {
                let name = VARIABLE_NAMES.iter().position(|(_, name)| *name == variable.name);
                out.0.extend_from_slice(&[VARIABLE, name.unwrap_or_default() as u8]);
                write_maybe(variable.key.as_deref(), out);
                write_maybe(variable.default.as_deref(), out);
            }
            Piece::Choose { whens, otherwise } => {
                out.0.push(CHOOSE);
                out.length(whens.len());
                for when in whens {
                    out.text(&when.test);
                    write_pieces(&when.pieces, out);
                }
                write_pieces(otherwise, out);
            }
            Piece::Try { attempt, except } => {
                out.0.push(TRY);
                write_pieces(attempt, out);
                write_pieces(except, out);
            }
        }
    }
}

fn write_maybe(text: Option<&[u8]>, out: &mut FormWriter) {
    match text {
        Some(text) => out.text(text),
        None => out.0.extend_from_slice(&NONE_LEN.to_le_bytes()),
    }
}

/// `None`: what no larder wrote. What its texts are ranges of is not known here: one that ends too early breaks the page off.
pub(crate) fn read(from: &mut FormReader<'_>) -> Option<EsiPage> {
    let in_gzip = match from.length()? {
        NONE_LEN => None,
        count => Some(read_gzip_pieces(from, count as usize)?),
    };
    let mut left = PIECES_MAX;
    let pieces = read_pieces(from, &mut left, 0)?;
    Some(EsiPage { document: Document { pieces, complaints: Vec::new(), has_esi: true }, in_gzip })
}

fn read_gzip_pieces(from: &mut FormReader<'_>, count: usize) -> Option<Vec<PagePiece>> {
    let mut pieces = Vec::new();
    for _ in 0..(count <= PIECES_MAX + 1).then_some(count)? {
        let (text_at, start, end, length) = (from.number()?, from.number()?, from.number()?, from.number()?);
        let sum = TextSum::new(u32::from_le_bytes(from.bytes()?), length);
        let is_behind =
            pieces.last().is_none_or(|last: &PagePiece| last.text_at < text_at && last.gzip.coded.end <= start);
        (is_behind && start <= end)
            .then(|| pieces.push(PagePiece { text_at, gzip: GzipPiece { coded: start..end, sum } }))?;
    }
    Some(pieces)
}

/// `left`: of all pieces of the page. A scanner makes one more for the text behind the last that may be.
fn read_pieces(from: &mut FormReader<'_>, left: &mut usize, depth: usize) -> Option<Vec<Piece>> {
    let count = from.length()? as usize;
    if depth > NESTED_MAX || count > *left + 1 {
        return None;
    }
    *left = left.saturating_sub(count);
    let mut pieces = Vec::with_capacity(count);
    for _ in 0..count {
        pieces.push(match from.bytes::<1>()?[0] {
            TEXT => {
                let (start, end) = (from.number()?, from.number()?);
                (start <= end).then_some(Piece::Text(start..end))?
            }
            INCLUDE => {
                let (goes_on, has_variables) = (flag(from)?, flag(from)?);
                let src = from.text()??.to_vec();
                Piece::Include(Include { src, alt: from.text()?.map(<[u8]>::to_vec), has_variables, goes_on })
            }
            VARIABLE => {
                let name = VARIABLE_NAMES.get(usize::from(from.bytes::<1>()?[0]))?.1;
                let key = from.text()?.map(<[u8]>::to_vec);
                Piece::Variable(Variable { name, key, default: from.text()?.map(<[u8]>::to_vec) })
            }
            CHOOSE => {
                let count = from.length()? as usize;
                let mut whens = Vec::new();
                for _ in 0..(count <= PIECES_MAX).then_some(count)? {
                    let test = from.text()??.to_vec();
                    whens.push(When { test, pieces: read_pieces(from, left, depth + 1)? });
                }
                Piece::Choose { whens, otherwise: read_pieces(from, left, depth + 1)? }
            }
            TRY => {
                let attempt = read_pieces(from, left, depth + 1)?;
                Piece::Try { attempt, except: read_pieces(from, left, depth + 1)? }
            }
            _ => return None,
        });
    }
    Some(pieces)
}

fn flag(from: &mut FormReader<'_>) -> Option<bool> {
    match from.bytes::<1>()?[0] {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}
