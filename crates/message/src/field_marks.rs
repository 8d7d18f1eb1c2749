//! Where the fields of a head that is kept for long are, in eight bytes a field, of which the first is enough to pass it by. Each
//! lies in its text as a line: its name, a colon and a blank, its value, CR and LF.

use crate::{FieldName, FieldSpan};

/// The name as a number, the length of the name, and three bytes each, little-endian: where the line begins, and the length of
/// the value.
pub type FieldMark = [u8; 8];

/// A name that is as long as this or longer ends at its colon.
const LONG: u8 = u8::MAX;
const COLON: &[u8] = b": ";

/// Makes a mark.
///
/// # Panics
/// For a line that begins behind the first 16 MiB, or is longer: heads are limited far below that.
pub fn field_mark(name: FieldName, line_at: usize, name_len: usize, value_len: usize) -> FieldMark {
    let small = |n: usize| match u32::try_from(n).map(u32::to_le_bytes) {
        Ok([a, b, c, 0]) => [a, b, c],
        _ => panic!("a head is limited far below 16 MiB"),
    };
    let ([a, b, c], [d, e, f]) = (small(line_at), small(value_len));
    [name as u8, u8::try_from(name_len).unwrap_or(LONG), a, b, c, d, e, f]
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
    usize::from(mark[1]) == name_len.min(usize::from(LONG))
}

/// What a mark says of a text.
#[inline]
pub(crate) fn span_of(mark: &FieldMark, text: &[u8]) -> FieldSpan {
    let &[_, name_len, a, b, c, d, e, f] = mark;
    let name_at = u32::from_le_bytes([a, b, c, 0]);
    let name_len = match name_len {
        LONG => long_name_len(&text[name_at as usize..]),
        short => u16::from(short),
    };
    FieldSpan {
        name: name_of(mark),
        name_len,
        name_at,
        value_at: name_at + u32::from(name_len) + COLON.len() as u32,
        value_len: u32::from_le_bytes([d, e, f, 0]),
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
        for name_len in [1, 254, 255, 256, 65_535] {
            for value_len in [0, 1, 65_536, (1 << 24) - 1] {
                check(name_len, value_len);
            }
        }
    }

    #[test]
    #[should_panic(expected = "far below 16 MiB")]
    fn what_is_too_far_away_is_not_marked_wrongly() {
        field_mark(FieldName::Etag, 1 << 24, 4, 0);
    }
}
