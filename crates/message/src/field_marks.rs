//! Where the fields of a head that is kept for long are, in eight bytes a field, of which the first is enough to pass it by. Each
//! lies in its text as a line: its name, a colon and a blank, its value, CR and LF.

use crate::{FieldName, FieldSpan};

/// From the lowest bit: the name as a number (8 bits), the length of the name (5), where the line begins (26), and the length of
/// the value (25); little-endian.
pub type FieldMark = [u8; 8];

const NAME_LEN_FROM: u32 = 8;
const LINE_AT_FROM: u32 = 13;
const VALUE_LEN_FROM: u32 = 39;
/// A name that is as long as this or longer ends at its colon.
const LONG: usize = (1 << (LINE_AT_FROM - NAME_LEN_FROM)) - 1;
/// Twice what a head may have, and what is rendered of it, and much besides.
const LINE_AT_MAX: usize = (1 << (VALUE_LEN_FROM - LINE_AT_FROM)) - 1;
const VALUE_LEN_MAX: usize = (1 << (u64::BITS - VALUE_LEN_FROM)) - 1;
const COLON: &[u8] = b": ";

/// Makes a mark.
///
/// # Panics
/// For a line that begins behind the first 64 MiB, or a value of 32 MiB: heads are limited to 16 MiB
/// (`limits.response_head_bytes_max`).
pub fn field_mark(name: FieldName, line_at: usize, name_len: usize, value_len: usize) -> FieldMark {
    assert!(line_at <= LINE_AT_MAX && value_len <= VALUE_LEN_MAX, "a head is limited far below 64 MiB");
    let places = (name_len.min(LONG) << NAME_LEN_FROM | line_at << LINE_AT_FROM | value_len << VALUE_LEN_FROM) as u64;
    (places | u64::from(name as u8)).to_le_bytes()
}

/// Where the line begins that a mark is of.
#[inline]
pub fn line_at(mark: &FieldMark) -> usize {
    (u64::from_le_bytes(*mark) >> LINE_AT_FROM) as usize & LINE_AT_MAX
}

/// Has it this name, or is either not known?
#[inline]
pub(crate) fn is_named(mark: &FieldMark, name: FieldName) -> bool {
    mark[0] == name as u8
}

#[inline]
pub(crate) fn name_of(mark: &FieldMark) -> FieldName {
    FieldName::by_number(u16::from(mark[0]))
}

/// May its name be as long as that?
#[inline]
pub(crate) fn may_be_as_long(mark: &FieldMark, name_len: usize) -> bool {
    marked_name_len(u64::from_le_bytes(*mark)) == name_len.min(LONG)
}

#[inline]
fn marked_name_len(places: u64) -> usize {
    (places >> NAME_LEN_FROM) as usize & LONG
}

/// What a mark says of a text.
#[inline]
pub(crate) fn span_of(mark: &FieldMark, text: &[u8]) -> FieldSpan {
    let places = u64::from_le_bytes(*mark);
    let name_at = (places >> LINE_AT_FROM) as usize & LINE_AT_MAX;
    let name_len = match marked_name_len(places) {
        LONG => long_name_len(&text[name_at..]),
        short => short as u16,
    };
    let name_at = name_at as u32;
    FieldSpan {
        name: name_of(mark),
        name_len,
        name_at,
        value_at: name_at + u32::from(name_len) + COLON.len() as u32,
        value_len: (places >> VALUE_LEN_FROM) as u32,
    }
}

#[cold]
fn long_name_len(line: &[u8]) -> u16 {
    let len = line.iter().position(|&byte| byte == COLON[0]).unwrap_or(line.len());
    u16::try_from(len).expect("a field name is limited below 64 KiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field with a name and a value of these lengths comes back, wherever it stands.
    fn check(name_len: usize, value_len: usize) {
        for line_at in [0, 1, 70_000] {
            let text = [" ".repeat(line_at), "n".repeat(name_len), ": ".into(), ":".repeat(value_len)].concat();
            let mark = field_mark(FieldName::Etag, line_at, name_len, value_len);
            let span = span_of(&mark, text.as_bytes());
            let found = [span.name_at, u32::from(span.name_len), span.value_at, span.value_len].map(|n| n as usize);
            assert_eq!(found, [line_at, name_len, line_at + name_len + 2, value_len]);
            assert_eq!(span.name, FieldName::Etag);
            assert!(is_named(&mark, FieldName::Etag) && !is_named(&mark, FieldName::Other));
            assert!(may_be_as_long(&mark, name_len) && !may_be_as_long(&mark, 4));
        }
    }

    #[test]
    fn every_line_is_found_where_it_is() {
        for name_len in [1, LONG - 1, LONG, LONG + 1, 65_535] {
            for value_len in [0, 1, 65_536, (1 << 24) - 1] {
                check(name_len, value_len);
            }
        }
    }

    #[test]
    fn the_last_places_are_marked_and_what_is_beyond_is_not_marked_wrongly() {
        let span = span_of(&field_mark(FieldName::Etag, LINE_AT_MAX, LONG - 1, VALUE_LEN_MAX), b"");
        let found = [span.name_at as usize, usize::from(span.name_len), span.value_len as usize];
        assert_eq!(found, [LINE_AT_MAX, LONG - 1, VALUE_LEN_MAX]);
        for (line_at, value_len) in [(LINE_AT_MAX + 1, 0), (0, VALUE_LEN_MAX + 1)] {
            let made = std::panic::catch_unwind(|| field_mark(FieldName::Etag, line_at, 4, value_len));
            assert!(made.is_err());
        }
    }
}
