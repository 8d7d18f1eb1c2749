//! Which of several codings of one thing a client wants (RFC 9110 §12.5.3).

use message::{FieldName, FieldsView, list_members};

/// The place of the coding to send among those that are there, named in lower case, the dearest first; `None`: as it is.
///
/// The highest weight wins; among equals what stands first in `offered`. What is only not forbidden, because the field
/// names nothing of it, is not sent.
pub fn preferred(fields: FieldsView<'_>, offered: &[&[u8]]) -> Option<usize> {
    let weight = |coding: &[u8]| weight_of(fields, coding);
    let identity = weight(b"identity").unwrap_or(0);
    let mut best: Option<(usize, u32)> = None;
    for (at, coding) in offered.iter().enumerate() {
        let weight = weight(coding).unwrap_or(0);
        if weight > 0 && weight >= identity && best.is_none_or(|(_, highest)| weight > highest) {
            best = Some((at, weight));
        }
    }
    best.map(|(at, _)| at)
}

/// Do these lines of Accept-Encoding want the coding, which is in lower case, by a name of its own? As Varnish reads them: a weight may
/// have more digits than RFC 9110 lets it, and one that is no number is none.
pub fn names<'a>(mut lines: impl Iterator<Item = &'a [u8]>, coding: &[u8]) -> bool {
    let is_wanted = |member: &[u8]| {
        let mut parts = member.split(|&b| b == b';').map(<[u8]>::trim_ascii);
        let is_it = is_named(parts.next().unwrap_or_default(), coding);
        is_it && parts.find_map(|part| part.strip_prefix(b"q=")).is_none_or(is_positive)
    };
    lines.any(|line| list_members(line).any(is_wanted))
}

/// Is it a number, and more than nothing?
fn is_positive(number: &[u8]) -> bool {
    let (whole, rest) = number.split_at(number.iter().take_while(|byte| byte.is_ascii_digit()).count());
    let fraction = rest.strip_prefix(b".").unwrap_or_default();
    let digits = whole.iter().chain(fraction.iter().take_while(|byte| byte.is_ascii_digit()));
    digits.copied().any(|digit| digit != b'0')
}

/// In thousandths; by its own name, or else by `*`. Of several the first counts.
fn weight_of(fields: FieldsView<'_>, coding: &[u8]) -> Option<u32> {
    let mut by_star = None;
    for value in fields.get_all(FieldName::AcceptEncoding) {
        for member in list_members(value) {
            let mut parts = member.split(|&b| b == b';').map(<[u8]>::trim_ascii);
            let name = parts.next().unwrap_or_default();
            let said = parts.next().map_or(Some(1_000), weight);
            if is_named(name, coding) {
                return said;
            }
            if name == b"*" && by_star.is_none() {
                by_star = said;
            }
        }
    }
    // A star is no wish for the thing as it is: every client takes that.
    by_star.filter(|&weight| coding != b"identity" || weight == 0)
}

/// RFC 9110 §8.4.1.3: `x-gzip` is gzip.
fn is_named(name: &[u8], coding: &[u8]) -> bool {
    name.eq_ignore_ascii_case(coding) || coding == b"gzip" && name.eq_ignore_ascii_case(b"x-gzip")
}

/// `q=0.5`; what cannot be read is as good as not named.
pub(crate) fn weight(parameter: &[u8]) -> Option<u32> {
    let (b"q=" | b"Q=", value) = parameter.split_at_checked(2)? else { return None };
    let (whole, fraction) = match value {
        [whole @ (b'0' | b'1')] => (whole, &b""[..]),
        [whole @ (b'0' | b'1'), b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    let mut thousandths = u32::from(whole - b'0') * 1_000;
    for (digit, worth) in fraction.iter().zip([100, 10, 1]) {
        thousandths += char::from(*digit).to_digit(10)? * worth;
    }
    (thousandths <= 1_000).then_some(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fields;

    fn check(lines: &str, expect: Option<usize>) {
        let fields = fields(lines);
        assert_eq!(preferred(fields.view(), &[b"br", b"zstd", b"gzip"]), expect, "{lines:?}");
    }

    #[test]
    fn the_highest_weight_wins() {
        check("", None);
        check("Accept-Encoding: gzip, deflate, br, zstd\r\n", Some(0));
        check("Accept-Encoding: gzip\r\n", Some(2));
        check("Accept-Encoding: X-GZIP\r\n", Some(2));
        check("Accept-Encoding: gzip;q=1.0, br;q=0.5\r\n", Some(2));
        check("Accept-Encoding: gzip; q=0.8, zstd;q=0.801\r\n", Some(1));
        check("Accept-Encoding: deflate\r\nAccept-Encoding: gzip\r\n", Some(2));
        check("Accept-Encoding: *\r\n", Some(0));
        check("Accept-Encoding: gzip;q=0.001\r\n", Some(2));
        check("Accept-Encoding: gzip;q=0.999\r\n", Some(2));
        check("Accept-Encoding: gzip, br;q=1.0\r\n", Some(0));
        check("Accept-Encoding: identity;q=0.5, gzip;q=0.5\r\n", Some(2));
        check("Accept-Encoding: gzip;q=0.1, br;q=0, zstd;q=0, *;q=0.5\r\n", Some(2));
        check("Accept-Encoding: br;q=0, *;q=0.1\r\n", Some(1));
    }

    #[test]
    fn a_coding_is_named_or_not() {
        for (lines, expect) in [
            ("Accept-Encoding: br, GZIP;q=0.1\r\n", true),
            ("Accept-Encoding: x-gzip\r\n", true),
            ("Accept-Encoding: br\r\nAccept-Encoding: gzip\r\n", true),
            ("Accept-Encoding: gzip;q=0\r\n", false),
            ("Accept-Encoding: gzip;q=0.0, x-gzip\r\n", true),
            ("Accept-Encoding: gzip;q=-1\r\n", false),
            ("Accept-Encoding: *\r\n", false),
            ("Accept-Encoding: gzippy, br\r\n", false),
            ("", false),
        ] {
            assert_eq!(names(fields(lines).view().get_all(FieldName::AcceptEncoding), b"gzip"), expect, "{lines:?}");
        }
    }

    #[test]
    fn what_is_not_wanted_is_not_sent() {
        check("Accept-Encoding:\r\n", None);
        check("Accept-Encoding: identity\r\n", None);
        check("Accept-Encoding: gzip;q=0\r\n", None);
        check("Accept-Encoding: gzip;q=0.000, *;q=0\r\n", None);
        check("Accept-Encoding: identity, gzip;q=0.5\r\n", None);
        check("Accept-Encoding: gzip;q=2\r\n", None);
        check("Accept-Encoding: gzip;q=0.a\r\n", None);
        check("Accept-Encoding: gzip;q=0.5000\r\n", None);
        check("Accept-Encoding: gzip;q=1.001\r\n", None);
        check("Accept-Encoding: gzip;q=x, br;level=1\r\n", None);
        check("Accept-Encoding: deflate, gzippy\r\n", None);
    }
}
