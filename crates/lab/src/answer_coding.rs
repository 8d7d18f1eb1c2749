//! The content codings that answers can be asked for in (RFC 9110 §8.4), and what an answer's head says of its own.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentCoding {
    Gzip,
    Brotli,
    Zstd,
}

/// What the Content-Encoding of an answer says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SaidCoding {
    /// There is none, or it says `identity`.
    #[default]
    None,
    One(ContentCoding),
    /// One that is not known, or several, one upon another.
    Other,
}

impl ContentCoding {
    pub const ALL: [ContentCoding; 3] = [ContentCoding::Gzip, ContentCoding::Brotli, ContentCoding::Zstd];

    /// As fields have it.
    pub const fn name(self) -> &'static str {
        match self {
            ContentCoding::Gzip => "gzip",
            ContentCoding::Brotli => "br",
            ContentCoding::Zstd => "zstd",
        }
    }

    pub fn named(text: &str) -> Option<ContentCoding> {
        ContentCoding::ALL.into_iter().find(|coding| coding.name().eq_ignore_ascii_case(text))
    }

    /// The field that asks for it, and for nothing else.
    pub fn field(self) -> String {
        format!("{ACCEPT}{}", self.name())
    }
}

const ACCEPT: &str = "Accept-Encoding: ";

/// The field that asks for the text itself.
pub(crate) fn identity_field() -> String {
    format!("{ACCEPT}identity")
}

impl SaidCoding {
    /// With one more value of the field.
    pub(crate) fn and(self, value: &[u8]) -> SaidCoding {
        let named = std::str::from_utf8(value).unwrap_or("?").trim();
        let said = match ContentCoding::named(named) {
            Some(coding) => SaidCoding::One(coding),
            // `x-gzip` is an old name of the same (RFC 9110 §8.4.1.3).
            None if named.eq_ignore_ascii_case("x-gzip") => SaidCoding::One(ContentCoding::Gzip),
            None if named.is_empty() || named.eq_ignore_ascii_case("identity") => SaidCoding::None,
            None => SaidCoding::Other,
        };
        match (self, said) {
            (SaidCoding::None, said) | (said, SaidCoding::None) => said,
            _ => SaidCoding::Other,
        }
    }

    /// For messages.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            SaidCoding::None => "no Content-Encoding",
            SaidCoding::One(ContentCoding::Gzip) => "Content-Encoding: gzip",
            SaidCoding::One(ContentCoding::Brotli) => "Content-Encoding: br",
            SaidCoding::One(ContentCoding::Zstd) => "Content-Encoding: zstd",
            SaidCoding::Other => "a Content-Encoding that is another, or several",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_head_says_is_one_coding_or_none_that_we_know() {
        let check = |values: &[&str], expect: SaidCoding| {
            let said = values.iter().fold(SaidCoding::None, |said, value| said.and(value.as_bytes()));
            assert_eq!(said, expect, "{values:?}");
        };
        check(&[], SaidCoding::None);
        check(&["identity"], SaidCoding::None);
        check(&["gzip"], SaidCoding::One(ContentCoding::Gzip));
        check(&["X-GZIP"], SaidCoding::One(ContentCoding::Gzip));
        check(&["BR"], SaidCoding::One(ContentCoding::Brotli));
        check(&["identity", "zstd"], SaidCoding::One(ContentCoding::Zstd));
        check(&["gzip, br"], SaidCoding::Other);
        check(&["gzip", "gzip"], SaidCoding::Other);
        check(&["deflate"], SaidCoding::Other);
    }
}
