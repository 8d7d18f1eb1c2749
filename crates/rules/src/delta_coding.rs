//! The codings by a dictionary (RFC 9842 §4, §5): which of them a client takes, and what a head says of one.

use message::{FieldName, Fields, FieldsView};

use crate::content_coding::{ContentCoding, say_coding, vary_by, weight_of};

/// A coding that says what differs from a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeltaCoding {
    Brotli,
    Zstd,
}

impl DeltaCoding {
    /// All of them; each stands at the place of its number.
    pub const ALL: [DeltaCoding; 2] = [DeltaCoding::Brotli, DeltaCoding::Zstd];

    /// As Content-Encoding and Accept-Encoding write it.
    pub const fn name(self) -> &'static str {
        match self {
            DeltaCoding::Brotli => "dcb",
            DeltaCoding::Zstd => "dcz",
        }
    }

    /// What it is without a dictionary.
    pub const fn plain(self) -> ContentCoding {
        match self {
            DeltaCoding::Brotli => ContentCoding::Brotli,
            DeltaCoding::Zstd => ContentCoding::Zstd,
        }
    }
}

/// Which of them a client wants: not less than any other coding that it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptedDeltas([bool; DeltaCoding::ALL.len()]);

impl AcceptedDeltas {
    pub fn of(request: FieldsView<'_>) -> AcceptedDeltas {
        // What it has not named is no wish, by whatever star: before there were dictionaries no star meant these.
        let is_named = |coding: DeltaCoding| {
            request.members(FieldName::AcceptEncoding).any(|member| {
                let name = member.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
                name.eq_ignore_ascii_case(coding.name().as_bytes())
            })
        };
        let weight = |name: &str| weight_of(request, name.as_bytes()).unwrap_or(0);
        let others = ContentCoding::ALL.map(|coding| weight(coding.name())).into_iter().max().unwrap_or(0);
        let deltas = DeltaCoding::ALL.map(|coding| if is_named(coding) { weight(coding.name()) } else { 0 });
        let dearest = deltas.into_iter().max().unwrap_or(0).max(others);
        AcceptedDeltas(deltas.map(|weight| weight > 0 && weight == dearest))
    }

    pub fn takes(self, coding: DeltaCoding) -> bool {
        self.0[coding as usize]
    }
}

/// Makes of the fields of a representation those of the same in a coding by a dictionary, as [`recode`](crate::content_coding::recode)
/// does for the other codings.
pub fn recode_by_dictionary(fields: &mut Fields, coding: DeltaCoding) {
    say_coding(fields, Some(coding.name()));
    vary_by_dictionary(fields);
}

/// Who has another dictionary may be given another answer (RFC 9842 §6.2).
pub fn vary_by_dictionary(fields: &mut Fields) {
    vary_by(fields, FieldName::AvailableDictionary);
}

/// Is a response of another's making in such a coding without saying that who has another dictionary cannot read it?
pub fn hides_its_dictionary(response: FieldsView<'_>) -> bool {
    let is_delta =
        |member: &[u8]| DeltaCoding::ALL.iter().any(|coding| member.eq_ignore_ascii_case(coding.name().as_bytes()));
    response.members(FieldName::ContentEncoding).any(is_delta)
        && !varies_by_dictionary(response)
        && !response.members(FieldName::Vary).any(|member| member == b"*")
}

/// Does a response say that who has another dictionary may be given another answer?
pub fn varies_by_dictionary(response: FieldsView<'_>) -> bool {
    response.members(FieldName::Vary).any(|name| FieldName::classify(name) == FieldName::AvailableDictionary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fields;

    #[test]
    fn a_client_wants_a_delta_no_less_than_others() {
        for (accepts, expect) in [
            ("gzip, deflate, br, zstd, dcb, dcz", [true, true]),
            ("gzip, DCZ", [false, true]),
            ("dcb", [true, false]),
            ("gzip, br", [false, false]),
            ("*", [false, false]),
            ("dcz;q=0.5, *", [false, false]),
            ("dcz;q=0, gzip", [false, false]),
            ("dcz;q=0.5, gzip;q=0.5", [false, true]),
            ("dcz;q=0.5, gzip", [false, false]),
            ("dcz;q=0.5, identity", [false, false]),
            ("dcz;q=0.5, identity;q=0", [false, true]),
            ("dcb;q=0.9, dcz;q=0.8, br;q=0.1", [true, false]),
            ("dcz;q=x", [false, false]),
            ("", [false, false]),
        ] {
            let accepted = AcceptedDeltas::of(fields(&format!("Accept-Encoding: {accepts}\r\n")).view());
            assert_eq!(DeltaCoding::ALL.map(|coding| accepted.takes(coding)), expect, "{accepts}");
        }
    }

    #[test]
    fn a_delta_says_what_it_varies_by() {
        let mut fields = fields("ETag: \"a\"\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\nVary: Cookie\r\n");
        recode_by_dictionary(&mut fields, DeltaCoding::Zstd);
        let mut out = Vec::new();
        fields.view().write_lines(&mut out, |_| true);
        let expect =
            "ETag: W/\"a\"\r\nContent-Encoding: dcz\r\nVary: Cookie, Accept-Encoding, Available-Dictionary\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expect);
    }

    #[test]
    fn a_delta_of_others_that_hides_its_dictionary_is_seen() {
        for (lines, expect) in [
            ("Content-Encoding: dcz\r\n", true),
            ("Content-Encoding: DCB\r\nVary: Accept-Encoding\r\n", true),
            ("Content-Encoding: gzip, dcb\r\n", true),
            ("Content-Encoding: dcz\r\nVary: accept-encoding, available-dictionary\r\n", false),
            ("Content-Encoding: dcz\r\nVary: *\r\n", false),
            ("Content-Encoding: zstd\r\n", false),
            ("", false),
        ] {
            assert_eq!(hides_its_dictionary(fields(lines).view()), expect, "{lines}");
        }
    }
}
