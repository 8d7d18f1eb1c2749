//! Which of two media types a client would rather have (RFC 9110 §12.5.1).

use message::{FieldName, FieldsView, list_members};

use crate::content_coding::weight;

/// Is the first of two types, named in lower case, wanted more than the second? Not when nothing is said.
pub fn prefers(fields: FieldsView<'_>, wanted: &str, other: &str) -> bool {
    weight_of(fields, wanted) > weight_of(fields, other)
}

/// In thousandths, by the most exact range that the type is in.
fn weight_of(fields: FieldsView<'_>, wanted: &str) -> u32 {
    let mut best = (0, 0);
    for value in fields.get_all(FieldName::Accept) {
        for member in list_members(value) {
            let mut parts = member.split(|&b| b == b';').map(<[u8]>::trim_ascii);
            let exactness = exactness(parts.next().unwrap_or_default(), wanted.as_bytes());
            // A parameter before the weight narrows the range to something that is not offered here.
            let said = match parts.next() {
                None => Some(1_000),
                Some(parameter) => weight(parameter),
            };
            if let Some(said) = said
                && exactness > best.0
            {
                best = (exactness, said);
            }
        }
    }
    best.1
}

/// 3: the type itself, 2: `type/*`, 1: `*/*`, 0: not in it.
fn exactness(range: &[u8], wanted: &[u8]) -> u32 {
    if range.eq_ignore_ascii_case(wanted) {
        return 3;
    }
    let slash = wanted.iter().position(|&b| b == b'/').map_or(0, |at| at + 1);
    match range.strip_suffix(b"*") {
        Some(b"*/") => 1,
        Some(class) if class.len() == slash && class.eq_ignore_ascii_case(&wanted[..slash]) => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fields;

    fn check(lines: &str, expect: bool) {
        let fields = fields(lines);
        assert_eq!(prefers(fields.view(), "application/json", "text/html"), expect, "{lines:?}");
    }

    #[test]
    fn the_more_exact_range_says_the_weight() {
        check("", false);
        check("Accept: */*\r\n", false);
        check("Accept: application/json\r\n", true);
        check("Accept: Application/JSON, */*;q=0.5\r\n", true);
        check("Accept: application/*\r\n", true);
        check("Accept: text/html, application/json\r\n", false);
        check("Accept: text/html;q=0.8\r\nAccept: application/json;q=0.9\r\n", true);
        check("Accept: text/*, application/json;q=0.9\r\n", false);
        check("Accept: */*;q=0.9, text/html;q=0\r\n", true);
        check("Accept: text/html;q=0\r\n", false);
        check("Accept: application/json, text/html;q=1.0\r\n", false);
        check("Accept: */*;q=0.9, application/*;q=0.1, text/html;q=0.5\r\n", false);
        check("Accept: application/*;q=0.9, application/json;q=0.1, text/html;q=0.5\r\n", false);
        check("Accept: conjunction/*\r\n", false);
        check("Accept: application/json;version=2\r\n", false);
        check("Accept: application/json;q=nonsense, text/html;q=0.1\r\n", false);
    }
}
