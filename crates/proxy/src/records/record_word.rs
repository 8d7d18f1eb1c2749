//! What a record's text is put together from, without the formatting machinery: a hit makes some forty records, and formatting their
//! numbers was most of what they cost.

use std::net::IpAddr;

use message::{DIGITS_MAX, PAIRS_OF_DIGITS, decimal, write_address, write_decimal};

/// A piece of a record's text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RecordWord<'a> {
    Text(&'a [u8]),
    /// ASCII in capitals.
    Capitals(&'a [u8]),
    Number(u64),
    /// A status, in three digits.
    Status(u16),
    /// Microseconds, as seconds with six digits behind the point.
    Seconds(i64),
    Address(IpAddr),
}

impl RecordWord<'_> {
    pub(crate) fn append_to(self, out: &mut Vec<u8>) {
        match self {
            RecordWord::Text(text) => out.extend_from_slice(text),
            RecordWord::Capitals(text) => out.extend(text.iter().map(u8::to_ascii_uppercase)),
            RecordWord::Number(number) => write_decimal(out, number),
            RecordWord::Status(status) => {
                let [tens, ones] = PAIRS_OF_DIGITS[usize::from(status % 100)];
                write_decimal(out, u64::from(status / 100));
                out.extend_from_slice(&[tens, ones]);
            }
            RecordWord::Seconds(micros) => write_seconds(out, micros),
            RecordWord::Address(address) => write_address(out, address),
        }
    }
}

fn write_seconds(out: &mut Vec<u8>, micros: i64) {
    if micros < 0 {
        out.push(b'-');
    }
    let (whole, mut rest) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
    let mut text = [b'.'; DIGITS_MAX + ".000000".len()];
    for at in [5, 3, 1] {
        let pair = PAIRS_OF_DIGITS[(rest % 100) as usize];
        text[DIGITS_MAX + at..DIGITS_MAX + at + 2].copy_from_slice(&pair);
        rest /= 100;
    }
    let digits = &mut [0; DIGITS_MAX];
    let whole = decimal(digits, whole);
    let begin = DIGITS_MAX - whole.len();
    text[begin..DIGITS_MAX].copy_from_slice(whole);
    out.extend_from_slice(&text[begin..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(words: &[RecordWord<'_>]) -> String {
        let mut out = Vec::new();
        words.iter().for_each(|word| word.append_to(&mut out));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn words_are_written_as_formatting_writes_them() {
        for micros in [0, 7, 10, 999_999, 1_000_000, 1_000_001, 1_700_000_000_123_456, i64::MAX] {
            let expect = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
            assert_eq!(written(&[RecordWord::Seconds(micros)]), expect);
        }
        assert_eq!(
            written(&[RecordWord::Seconds(-500), RecordWord::Text(b" "), RecordWord::Seconds(i64::MIN)]),
            "-0.000500 -9223372036854.775808"
        );
        for status in [0, 7, 42, 100, 206, 599, 999, 1200, u16::MAX] {
            assert_eq!(written(&[RecordWord::Status(status)]), format!("{status:03}"));
        }
        let address = RecordWord::Address("192.0.2.7".parse().unwrap());
        assert_eq!(
            written(&[RecordWord::Capitals(b"recv"), RecordWord::Text(b" a "), RecordWord::Number(0), address]),
            "RECV a 0192.0.2.7"
        );
    }
}
