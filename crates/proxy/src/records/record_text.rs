//! Texts of records without the formatting machinery: a hit makes some forty records, and formatting their numbers was most of what they cost.

use message::{PAIRS_OF_DIGITS, write_decimal};

/// Microseconds, as seconds with six digits behind the point.
pub(crate) fn write_seconds(out: &mut Vec<u8>, micros: u64) {
    if micros == 0 {
        return out.extend_from_slice(b"0.000000");
    }
    let (whole, rest) = (micros / 1_000_000, (micros % 1_000_000) as usize);
    let [[a, b], [c, d], [e, f]] = [rest / 10_000, rest / 100 % 100, rest % 100].map(|pair| PAIRS_OF_DIGITS[pair]);
    match whole {
        // Most are spans, and short ones.
        0..=9 => out.extend_from_slice(&[b'0' + whole as u8, b'.', a, b, c, d, e, f]),
        _ => {
            write_decimal(out, whole);
            out.extend_from_slice(&[b'.', a, b, c, d, e, f]);
        }
    }
}

/// The same of what may have been before.
pub(crate) fn write_signed_seconds(out: &mut Vec<u8>, micros: i64) {
    if micros < 0 {
        out.push(b'-');
    }
    write_seconds(out, micros.unsigned_abs());
}

/// In three digits, or more.
pub(crate) fn write_status(out: &mut Vec<u8>, status: u16) {
    let [tens, ones] = PAIRS_OF_DIGITS[usize::from(status % 100)];
    write_decimal(out, u64::from(status / 100));
    out.extend_from_slice(&[tens, ones]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn texts_are_written_as_formatting_writes_them() {
        for micros in [0, 7, 10, 999_999, 1_000_000, 1_000_001, 9_999_999, 10_000_000, 1_700_000_000_123_456, u64::MAX]
        {
            let expect = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
            assert_eq!(written(|out| write_seconds(out, micros)), expect);
        }
        assert_eq!(written(|out| write_signed_seconds(out, -500)), "-0.000500");
        assert_eq!(written(|out| write_signed_seconds(out, i64::MIN)), "-9223372036854.775808");
        for status in [0, 7, 42, 100, 206, 599, 999, 1200, u16::MAX] {
            assert_eq!(written(|out| write_status(out, status)), format!("{status:03}"));
        }
    }
}
