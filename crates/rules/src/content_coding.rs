//! Codings of one representation: which of them a client takes (RFC 9110 §12.5.3), and what a head says of one (§8.4).

use message::{FieldName, Fields, FieldsView, list_members};

/// A coding that is known here, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentCoding {
    /// As it is.
    Identity,
    Gzip,
    Brotli,
    Zstd,
}

impl ContentCoding {
    /// All of them; each stands at the place of its number.
    pub const ALL: [ContentCoding; 4] =
        [ContentCoding::Identity, ContentCoding::Gzip, ContentCoding::Brotli, ContentCoding::Zstd];

    /// As Content-Encoding and Accept-Encoding write it.
    pub const fn name(self) -> &'static str {
        match self {
            ContentCoding::Identity => "identity",
            ContentCoding::Gzip => "gzip",
            ContentCoding::Brotli => "br",
            ContentCoding::Zstd => "zstd",
        }
    }

    /// By its name; `x-gzip` is gzip.
    pub fn named(name: &[u8]) -> Option<ContentCoding> {
        ContentCoding::ALL.into_iter().find(|coding| is_named(name, coding.name().as_bytes()))
    }

    /// What these fields of a response say. `None`: another coding, or several, one over the other.
    pub fn said_by(fields: FieldsView<'_>) -> Option<ContentCoding> {
        let mut codings = fields.members(FieldName::ContentEncoding);
        match (codings.next(), codings.next()) {
            (None, _) => Some(ContentCoding::Identity),
            (Some(only), None) => ContentCoding::named(only),
            _ => None,
        }
    }
}

/// Which of the codings a client takes, and how dear they are to it, as one number: two requests of the same number are answered
/// alike. Without Accept-Encoding it is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AcceptedCodings(u16);

/// Of the rank of one coding.
const RANK_BITS: u32 = 3;
/// Of what nobody has said anything about, beneath every weight that was said.
const IDENTITY_USUALLY: u32 = 1;

impl AcceptedCodings {
    pub fn of(fields: FieldsView<'_>) -> AcceptedCodings {
        if !fields.contains(FieldName::AcceptEncoding) {
            return AcceptedCodings::default();
        }
        // Among equals the thing as it is comes last.
        let weights = ContentCoding::ALL.map(|coding| match (coding, weight_of(fields, coding.name().as_bytes())) {
            (ContentCoding::Identity, None) => IDENTITY_USUALLY,
            (ContentCoding::Identity, Some(weight)) => (2 * weight).saturating_sub(1),
            (_, weight) => 2 * weight.unwrap_or(0),
        });
        let mut bits = 0;
        for (coding, weight) in ContentCoding::ALL.into_iter().zip(weights) {
            // How many different weights there are up to its own.
            let below = |at: usize| weights[at] > 0 && weights[at] <= weight && !weights[..at].contains(&weights[at]);
            let rank = (0..weights.len()).filter(|&at| below(at)).count() as u16;
            bits |= rank << AcceptedCodings::shift(coding);
        }
        AcceptedCodings(bits ^ 1)
    }

    /// How dear a coding is: what is greater is dearer, and 0 is not taken.
    pub fn rank(self, coding: ContentCoding) -> u8 {
        let bits = self.0 ^ 1;
        (bits >> AcceptedCodings::shift(coding)) as u8 & ((1 << RANK_BITS) - 1)
    }

    /// The number.
    pub fn bits(self) -> u16 {
        self.0
    }

    const fn shift(coding: ContentCoding) -> u32 {
        coding as u32 * RANK_BITS
    }
}

/// Makes of the fields of a representation those of the same in another coding: other bytes, so that what was said of the length
/// and the digest of the old ones goes, and a tag is a weak one (RFC 9110 §8.8.1).
pub fn recode(fields: &mut Fields, coding: ContentCoding) {
    say_coding(fields, (coding != ContentCoding::Identity).then_some(coding.name()));
}

/// The same with a coding by its name, if it is in any.
pub(crate) fn say_coding(fields: &mut Fields, name: Option<&str>) {
    let of_the_bytes =
        [FieldName::ContentEncoding, FieldName::ContentLength, FieldName::ContentMd5, FieldName::ContentDigest];
    of_the_bytes.into_iter().for_each(|name| fields.remove(name));
    fields.retain(|field| !OF_THE_REPRESENTATION.iter().any(|name| field.name_text.eq_ignore_ascii_case(name)));
    weaken_tag(fields);
    if let Some(name) = name {
        fields.push(FieldName::ContentEncoding, name);
    }
    vary_by_coding(fields);
}

/// Digests of a representation, which its coding is a part of (RFC 9530 §3), and their name of old (RFC 3230).
const OF_THE_REPRESENTATION: [&[u8]; 2] = [b"repr-digest", b"digest"];

/// Another coding is another text, letter for letter (RFC 9110 §8.8.1).
pub fn weaken_tag(fields: &mut Fields) {
    let weak = match fields.view().get(FieldName::Etag) {
        Some(tag) if !tag.starts_with(b"W/") => [b"W/", tag].concat(),
        _ => return,
    };
    fields.set(FieldName::Etag, weak);
}

/// Who asks with other codings may be given another answer.
pub fn vary_by_coding(fields: &mut Fields) {
    vary_by(fields, FieldName::AcceptEncoding);
}

pub(crate) fn vary_by(fields: &mut Fields, name: FieldName) {
    let (said, name): (Vec<&[u8]>, _) = (fields.view().get_all(FieldName::Vary).collect(), name.canonical().as_bytes());
    let is_said = |member: &[u8]| member == b"*" || member.eq_ignore_ascii_case(name);
    if said.iter().flat_map(|line| list_members(line)).any(is_said) {
        return;
    }
    let all = said.into_iter().chain([name]).collect::<Vec<_>>().join(&b", "[..]);
    fields.set(FieldName::Vary, all);
}

/// Is a media type (RFC 9110 §8.3.1) among these, of which `*` stands for what is not said: `text/*`, `application/*+json`?
/// A stream of events never is: each has to go out when it comes.
pub fn is_among_types(content_type: &[u8], types: &[impl AsRef<str>]) -> bool {
    let essence = content_type.split(|&b| b == b';').next().unwrap_or_default().trim_ascii();
    let Some(slash) = essence.iter().position(|&b| b == b'/') else { return false };
    let (kind, sub) = (&essence[..slash], &essence[slash + 1..]);
    if kind.eq_ignore_ascii_case(b"text") && sub.eq_ignore_ascii_case(b"event-stream") {
        return false;
    }
    types.iter().any(|pattern| {
        let Some((of_kind, of_sub)) = pattern.as_ref().split_once('/') else { return false };
        let fits_sub = match of_sub.strip_prefix('*') {
            Some(end) => sub.len() >= end.len() && sub[sub.len() - end.len()..].eq_ignore_ascii_case(end.as_bytes()),
            None => sub.eq_ignore_ascii_case(of_sub.as_bytes()),
        };
        kind.eq_ignore_ascii_case(of_kind.as_bytes()) && fits_sub
    })
}

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
pub(crate) fn weight_of(fields: FieldsView<'_>, coding: &[u8]) -> Option<u32> {
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
    fn what_a_vary_says_already_is_not_said_again() {
        for (lines, expect) in [
            ("", "Accept-Encoding"),
            ("Vary: Cookie\r\nVary: Accept\r\n", "Cookie, Accept, Accept-Encoding"),
            ("Vary: Cookie, accept-encoding\r\n", "Cookie, accept-encoding"),
            ("Vary: *\r\nVary: Cookie\r\n", "*, Cookie"),
        ] {
            let mut fields = fields(lines);
            vary_by_coding(&mut fields);
            assert_eq!(fields.view().get_all(FieldName::Vary).collect::<Vec<_>>().join(&b", "[..]), expect.as_bytes());
        }
    }

    /// The ranks of identity, gzip, br and zstd.
    fn check_ranks(lines: &str, expect: [u8; 4]) {
        let accepted = AcceptedCodings::of(fields(lines).view());
        assert_eq!(ContentCoding::ALL.map(|coding| accepted.rank(coding)), expect, "{lines:?}");
    }

    #[test]
    fn a_client_ranks_what_it_takes() {
        check_ranks("", [1, 0, 0, 0]);
        check_ranks("Accept-Encoding:\r\n", [1, 0, 0, 0]);
        check_ranks("Accept-Encoding: deflate\r\n", [1, 0, 0, 0]);
        check_ranks("Accept-Encoding: gzip, deflate, br, zstd\r\n", [1, 2, 2, 2]);
        check_ranks("Accept-Encoding: x-gzip\r\n", [1, 2, 0, 0]);
        check_ranks("Accept-Encoding: gzip;q=1.0, br;q=0.5\r\n", [1, 3, 2, 0]);
        check_ranks("Accept-Encoding: *\r\n", [1, 2, 2, 2]);
        check_ranks("Accept-Encoding: *;q=0.1, gzip\r\n", [1, 3, 2, 2]);
        check_ranks("Accept-Encoding: identity, gzip;q=0.5\r\n", [2, 1, 0, 0]);
        check_ranks("Accept-Encoding: identity;q=0.5, gzip;q=0.5, zstd;q=0.1\r\n", [2, 3, 0, 1]);
        check_ranks("Accept-Encoding: identity;q=0, br\r\n", [0, 0, 1, 0]);
        check_ranks("Accept-Encoding: *;q=0, gzip\r\n", [0, 1, 0, 0]);
        check_ranks("Accept-Encoding: *;q=0\r\n", [0, 0, 0, 0]);
        check_ranks("Accept-Encoding: gzip;q=0.001\r\n", [1, 2, 0, 0]);
    }

    #[test]
    fn what_is_answered_alike_has_one_number() {
        let number = |lines: &str| AcceptedCodings::of(fields(lines).view()).bits();
        assert_eq!(number(""), 0);
        assert_eq!(number("Accept-Encoding: identity;q=0.3\r\n"), 0);
        assert_eq!(
            number("Accept-Encoding: br , gzip;q=1\r\n"),
            number("Accept-Encoding: gzip\r\nAccept-Encoding: br\r\n")
        );
        assert_ne!(number("Accept-Encoding: br\r\n"), number("Accept-Encoding: gzip\r\n"));
    }

    #[test]
    fn a_head_says_its_coding() {
        let said = |lines: &str| ContentCoding::said_by(fields(lines).view());
        assert_eq!(said(""), Some(ContentCoding::Identity));
        assert_eq!(said("Content-Encoding: X-Gzip\r\n"), Some(ContentCoding::Gzip));
        assert_eq!(said("Content-Encoding: br\r\n"), Some(ContentCoding::Brotli));
        assert_eq!(said("Content-Encoding: identity\r\n"), Some(ContentCoding::Identity));
        assert_eq!(said("Content-Encoding: deflate\r\n"), None);
        assert_eq!(said("Content-Encoding: gzip, br\r\n"), None);
    }

    #[test]
    fn fields_in_another_coding_say_nothing_of_the_old_bytes() {
        let recoded = |lines: &str, coding| {
            let mut fields = fields(lines);
            recode(&mut fields, coding);
            let mut out = Vec::new();
            fields.view().write_lines(&mut out, |_| true);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            recoded(
                "ETag: \"a\"\r\nContent-Length: 5\r\nRepr-Digest: sha-256=:x:\r\nContent-Digest: y\r\nVary: Cookie\r\n",
                ContentCoding::Brotli
            ),
            "ETag: W/\"a\"\r\nContent-Encoding: br\r\nVary: Cookie, Accept-Encoding\r\n"
        );
        assert_eq!(
            recoded("Content-Encoding: gzip\r\nETag: W/\"a\"\r\nVary: accept-encoding\r\n", ContentCoding::Identity),
            "ETag: W/\"a\"\r\nVary: accept-encoding\r\n"
        );
        assert_eq!(recoded("Vary: *\r\n", ContentCoding::Zstd), "Vary: *\r\nContent-Encoding: zstd\r\n");
    }

    #[test]
    fn types_are_named_whole_or_by_their_ends() {
        let types = ["text/*", "application/json", "application/*+xml"];
        let is_among = |content_type: &str| is_among_types(content_type.as_bytes(), &types);
        assert!(is_among("text/html; charset=utf-8") && is_among("TEXT/plain") && is_among("application/JSON ;x=y"));
        assert!(is_among("application/rss+xml"));
        assert!(!is_among("application/xml") && !is_among("image/svg+xml") && !is_among("text") && !is_among(""));
        assert!(!is_among("text/event-stream") && !is_among("application/json5"));
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
