//! Vary: which fields of a request chose a response, and their values in one normal form (RFC 9111 §4.1).
//!
//! The normal form is fed to whoever hashes it, piece by piece and without allocation. Lists lose their
//! whitespace, their empty members and the borders of their lines; Accept-Encoding and Accept-Language also their
//! order and case. Absent and empty are told apart.

use std::sync::Arc;

use message::{FieldName, FieldsView, list_members};

use crate::cache_control::is_token;
use crate::limits::{NORMALISED_MEMBERS_MAX, VARY_NAMES_MAX};

/// What a response says of its selection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Vary {
    None,
    /// `*`: nothing in a request tells (RFC 9111 §4.1), so it is never reused.
    Any,
    /// More names than the limit, or one that is no name: not stored either.
    TooMany,
    Fields(VarySpec),
}

impl Vary {
    pub fn of(fields: FieldsView<'_>) -> Vary {
        let mut names: Vec<VaryName> = Vec::new();
        for member in fields.members(FieldName::Vary) {
            if member == b"*" {
                return Vary::Any;
            }
            let name = member.to_ascii_lowercase();
            if !is_token(&name) {
                return Vary::TooMany;
            }
            if let Err(at) = names.binary_search_by(|known| (*known.text).cmp(&name)) {
                names.insert(at, VaryName { name: FieldName::classify(&name), text: name.into() });
            }
            if names.len() > VARY_NAMES_MAX {
                return Vary::TooMany;
            }
        }
        if names.is_empty() { Vary::None } else { Vary::Fields(VarySpec { names: names.into() }) }
    }
}

/// The names in a Vary, lower case and sorted, each once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VarySpec {
    names: Arc<[VaryName]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct VaryName {
    name: FieldName,
    text: Box<[u8]>,
}

impl VarySpec {
    /// Feeds the normal form of the selecting fields of a request. Two requests that feed the same bytes may share
    /// a response.
    #[inline]
    pub fn select(&self, request: FieldsView<'_>, sink: &mut impl FnMut(&[u8])) {
        for vary in self.names.iter() {
            vary.select(request, sink);
        }
    }

    /// Is it Accept-Encoding and nothing else, as nearly all are?
    pub fn is_accept_encoding(&self) -> bool {
        matches!(&*self.names, [VaryName { name: FieldName::AcceptEncoding, .. }])
    }

    /// Which of the [`CODING_TEXTS`] usual values of Accept-Encoding a request has, if it has one of them.
    #[inline]
    pub fn coding_text(request: FieldsView<'_>) -> Option<usize> {
        let mut values = request.get_all(FieldName::AcceptEncoding);
        let first = values.next()?;
        let text = COMMON.iter().position(|(text, _)| *text == first)?;
        values.next().is_none().then_some(text)
    }

    /// Feeds what [`select`](VarySpec::select) feeds for Accept-Encoding alone and its usual value `text`.
    pub fn select_text(text: usize, sink: &mut impl FnMut(&[u8])) {
        sink(&[1, COMMON[text].1, 0]);
        sink(&[0]);
    }

    /// These names alone, in lower case.
    pub fn of_names<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Option<VarySpec> {
        names.into_iter().fold(None, |spec: Option<VarySpec>, name| Some(VarySpec::with(spec.as_ref(), name)))
    }

    /// One more name, in lower case, beside those that are there.
    pub fn with(spec: Option<&VarySpec>, name: &[u8]) -> VarySpec {
        let mut names = spec.map_or(Vec::new(), |spec| spec.names.to_vec());
        if let Err(at) = names.binary_search_by(|known| (*known.text).cmp(name)) {
            names.insert(at, VaryName { name: FieldName::classify(name), text: name.into() });
        }
        VarySpec { names: names.into() }
    }

    /// The others of the names. `None`: there are none.
    pub fn without(&self, name: FieldName) -> Option<VarySpec> {
        let others: Arc<[VaryName]> = self.names.iter().filter(|vary| vary.name != name).cloned().collect();
        (!others.is_empty()).then_some(VarySpec { names: others })
    }

    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(|vary| &*vary.text)
    }
}

impl VaryName {
    #[inline]
    fn select(&self, request: FieldsView<'_>, sink: &mut impl FnMut(&[u8])) {
        // Values hold no NUL, so these marks keep neighbours apart.
        match self.name {
            FieldName::AcceptEncoding => select_codings(request, sink),
            FieldName::AcceptLanguage => select_languages(request, sink),
            // Not lists: a comma in them is text.
            FieldName::Cookie | FieldName::UserAgent | FieldName::Authorization | FieldName::Referer => {
                select_lines(request.get_all(self.name), sink);
            }
            FieldName::Other => select_lists(request.get_all_named(&self.text), sink),
            _ => select_lists(request.get_all(self.name), sink),
        }
        sink(&[0]);
    }
}

fn select_lines<'a>(values: impl Iterator<Item = &'a [u8]>, sink: &mut impl FnMut(&[u8])) {
    for value in values {
        sink(&[1]);
        sink(value);
    }
}

/// RFC 9111 §4.1: whitespace where the syntax allows it, and several lines for one list, make no difference.
fn select_lists<'a>(values: impl Iterator<Item = &'a [u8]>, sink: &mut impl FnMut(&[u8])) {
    let mut present = false;
    for value in values {
        if !present {
            sink(&[1]);
        }
        present = true;
        for member in list_members(value) {
            sink(member);
            sink(b",");
        }
    }
}

/// The codings that browsers and tools send, each a bit: the common request needs no sorting.
const CODINGS: [&str; 7] = ["gzip", "deflate", "br", "zstd", "identity", "compress", "*"];

/// How many values of Accept-Encoding are known letter for letter.
pub const CODING_TEXTS: usize = 6;

/// What browsers and tools send, letter for letter, and the bits it comes to: the common hit splits no list.
const COMMON: [(&[u8], u8); CODING_TEXTS] = [
    (b"gzip, deflate, br, zstd", 0b1111),
    (b"gzip, deflate, br", 0b0111),
    (b"gzip, deflate", 0b0011),
    (b"deflate, gzip", 0b0011),
    (b"gzip", 0b0001),
    (b"identity", 0b1_0000),
];

/// RFC 9110 §12.5.3, as the set of codings that are accepted and the set of those that are refused. The weights
/// between 0 and 1 are left out: whatever of the accepted ones was stored is acceptable. What is no coding is
/// ignored; when nothing remains of it, so is the field.
#[inline]
fn select_codings(request: FieldsView<'_>, sink: &mut impl FnMut(&[u8])) {
    let mut values = request.get_all(FieldName::AcceptEncoding);
    let Some(first) = values.next() else { return };
    match COMMON.iter().find(|(text, _)| *text == first) {
        Some((_, accepted)) if values.next().is_none() => sink(&[1, *accepted, 0]),
        _ => select_any_codings(request, sink),
    }
}

fn select_any_codings(request: FieldsView<'_>, sink: &mut impl FnMut(&[u8])) {
    let (mut accepted, mut refused, mut seen, mut empty) = (0u8, 0u8, false, false);
    let mut others: Option<Members<'_>> = None;
    for value in request.get_all(FieldName::AcceptEncoding) {
        empty |= value.is_empty();
        for member in list_members(value) {
            let Some((coding, weight)) = weighted(member) else { continue };
            seen = true;
            match CODINGS.iter().position(|known| is_coding(coding, known)) {
                Some(bit) if weight > 0 => accepted |= 1 << bit,
                Some(bit) => refused |= 1 << bit,
                None => others.get_or_insert_default().insert(coding, weight.min(1)),
            }
        }
    }
    if others.as_ref().is_some_and(|others| others.overflowed) {
        sink(&[2]);
        select_lines(request.get_all(FieldName::AcceptEncoding), sink);
    } else if seen || empty {
        sink(&[1, accepted, refused]);
        if let Some(others) = others {
            others.feed(sink);
        }
    }
}

/// RFC 9110 §8.4.1: without case, and `x-gzip` and `x-compress` are other names of the same.
fn is_coding(text: &[u8], known: &str) -> bool {
    text.eq_ignore_ascii_case(known.as_bytes())
        || known == "gzip" && text.eq_ignore_ascii_case(b"x-gzip")
        || known == "compress" && text.eq_ignore_ascii_case(b"x-compress")
}

/// RFC 9110 §12.5.4: the set of language ranges with their weights.
fn select_languages(request: FieldsView<'_>, sink: &mut impl FnMut(&[u8])) {
    let mut ranges = Members::default();
    let mut present = false;
    for value in request.get_all(FieldName::AcceptLanguage) {
        present = true;
        for (range, weight) in list_members(value).filter_map(weighted) {
            ranges.insert(range, weight);
        }
    }
    if ranges.overflowed {
        sink(&[2]);
        select_lines(request.get_all(FieldName::AcceptLanguage), sink);
    } else if present {
        sink(&[1]);
        ranges.feed(sink);
    }
}

/// A sorted set on the stack. When it overflows, the field is compared as it was sent instead.
#[derive(Default)]
struct Members<'a> {
    members: [(&'a [u8], u16); NORMALISED_MEMBERS_MAX],
    count: usize,
    overflowed: bool,
}

impl<'a> Members<'a> {
    fn insert(&mut self, member: &'a [u8], weight: u16) {
        let known = &self.members[..self.count];
        let Err(at) = known.binary_search_by(|(other, _)| lower(other).cmp(lower(member))) else { return };
        if self.count == NORMALISED_MEMBERS_MAX {
            self.overflowed = true;
            return;
        }
        self.members[at..=self.count].rotate_right(1);
        self.members[at] = (member, weight);
        self.count += 1;
    }

    fn feed(&self, sink: &mut impl FnMut(&[u8])) {
        for &(member, weight) in &self.members[..self.count] {
            let mut piece = [0; 32];
            for part in member.chunks(piece.len()) {
                let piece = &mut piece[..part.len()];
                piece.copy_from_slice(part);
                piece.make_ascii_lowercase();
                sink(piece);
            }
            sink(&[b';', (weight >> 8) as u8, weight as u8]);
        }
    }
}

fn lower(text: &[u8]) -> impl Iterator<Item = u8> {
    text.iter().map(u8::to_ascii_lowercase)
}

/// A member and its weight in thousandths (RFC 9110 §12.4.2); `None` when it is not well-formed.
fn weighted(member: &[u8]) -> Option<(&[u8], u16)> {
    let Some(at) = member.iter().position(|&b| b == b';') else {
        return is_token(member).then_some((member, 1000));
    };
    let (name, parameter) = (member[..at].trim_ascii_end(), member[at + 1..].trim_ascii_start());
    let [b'q' | b'Q', b'=', value @ ..] = parameter else { return None };
    Some((name, thousandths(value)?)).filter(|_| is_token(name))
}

/// `0[.ddd]` or `1[.000]`.
fn thousandths(value: &[u8]) -> Option<u16> {
    let (whole, fraction) = match value {
        [whole] => (whole, &[][..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    let digits = [0, 1, 2].map(|at| fraction.get(at).copied().unwrap_or(b'0'));
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let thousandths = digits.iter().fold(0, |n, b| n * 10 + u16::from(b - b'0'));
    match whole {
        b'0' => Some(thousandths),
        b'1' if thousandths == 0 => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fields;

    fn selected(vary: &str, request: &str) -> Vec<u8> {
        let Vary::Fields(spec) = Vary::of(fields(&format!("Vary: {vary}")).view()) else { panic!("{vary}") };
        let mut out = Vec::new();
        spec.select(fields(request).view(), &mut |bytes: &[u8]| out.extend_from_slice(bytes));
        out
    }

    fn check(vary: &str, one: &str, other: &str, expect_same: bool) {
        assert_eq!(selected(vary, one) == selected(vary, other), expect_same, "{vary}: {one:?} and {other:?}");
    }

    /// RFC 9110 §12.5.5: `*` anywhere means that anything may have chosen.
    #[test]
    fn a_star_in_any_place_is_never_reused() {
        for vary in ["*", "*, *", "*\nVary: *", ", *", "\nVary: *", "*, Foo", "Foo, *", "a\nVary: b, *"] {
            assert_eq!(Vary::of(fields(&format!("Vary: {vary}")).view()), Vary::Any, "{vary:?}");
        }
        for vary in ["", ",", " , ,"] {
            assert_eq!(Vary::of(fields(&format!("Vary: {vary}")).view()), Vary::None, "{vary:?}");
        }
        assert_eq!(Vary::of(fields("").view()), Vary::None);
    }

    #[test]
    fn accept_encoding_alone_is_told_from_others() {
        let is_alone = |vary: &str| match Vary::of(fields(&format!("Vary: {vary}")).view()) {
            Vary::Fields(spec) => spec.is_accept_encoding(),
            _ => false,
        };
        assert!(is_alone("accept-encoding"));
        assert!(!is_alone("Accept-Encoding, Accept") && !is_alone("Accept"));
    }

    #[test]
    fn a_vary_that_cannot_be_kept_is_refused() {
        let many: Vec<String> = (0..=VARY_NAMES_MAX).map(|n| format!("n{n}")).collect();
        let vary = |text: &str| Vary::of(fields(&format!("Vary: {text}")).view());
        assert_eq!(vary(&many.join(",")), Vary::TooMany);
        assert!(matches!(vary(&many[1..].join(",")), Vary::Fields(_)));
        assert_eq!(vary("Other:"), Vary::TooMany);
        assert_eq!(vary("a b"), Vary::TooMany);
    }

    #[test]
    fn a_usual_accept_encoding_feeds_the_same_by_its_number() {
        for (at, (text, _)) in COMMON.iter().enumerate() {
            let request = format!("Accept-Encoding: {}", String::from_utf8_lossy(text));
            assert_eq!(VarySpec::coding_text(fields(&request).view()), Some(at));
            let mut out = Vec::new();
            VarySpec::select_text(at, &mut |bytes: &[u8]| out.extend_from_slice(bytes));
            assert_eq!(out, selected("Accept-Encoding", &request), "{request}");
        }
        for request in ["", "Accept-Encoding: br", "Accept-Encoding: gzip\nAccept-Encoding: gzip", "Accept-Encoding:"] {
            assert_eq!(VarySpec::coding_text(fields(request).view()), None, "{request:?}");
        }
    }

    #[test]
    fn what_is_refused_is_told_from_what_is_hardly_wanted() {
        let check = |one: &str, other: &str, expect_same: bool| {
            let [one, other] = [one, other].map(|value| format!("Accept-Encoding: {value}"));
            check("Accept-Encoding", &one, &other, expect_same);
        };
        check("br;q=0.001", "br;q=0", false);
        check("br;q=0, zstd;q=0", "zstd;q=0", false);
        check("exi;q=0.001", "exi", true);
        check("exi;q=0.5", "exi", true);
        check("exi;q=0", "exi", false);
        check("x-compress", "compress", true);
        check("x-compress", "gzip", false);
    }

    /// RFC 9110 §12.5.4.
    #[test]
    fn languages_differ_by_every_letter_and_weight() {
        let check = |one: &str, other: &str, expect_same: bool| {
            let [one, other] = [one, other].map(|value| format!("Accept-Language: {value}"));
            check("Accept-Language", &one, &other, expect_same);
        };
        check("en", "de", false);
        check("en;q=0.5", "en;q=0.244", false);
        check("en;q=0.25", "en;q=0.2", false);
        check("en;q=0.201", "en;q=0.2", false);
        check("en;q=0.1x", "", true);
        check("en;q=1.5", "", true);
        let many = |last: &str| (0..NORMALISED_MEMBERS_MAX).map(|n| format!("l{n}, ")).collect::<String>() + last;
        check(&many("en"), &many("de"), false);
        check(&many("en"), &many("en"), true);
    }

    #[test]
    fn a_spec_is_a_set_of_names() {
        let spec = |text: &str| Vary::of(fields(&format!("Vary: {text}")).view());
        assert_eq!(spec("Foo, accept-ENCODING,foo"), spec("Accept-Encoding\nVary: FOO"));
        assert_ne!(spec("Foo"), spec("Foo, Bar"));
        let Vary::Fields(spec) = spec("b, A") else { panic!() };
        assert_eq!(spec.names().collect::<Vec<_>>(), [b"a", b"b"]);
    }

    /// RFC 9111 §4.1.
    #[test]
    fn selecting_fields_match_or_not() {
        check("Foo", "Foo: 1", "foo: 1\nOther: 2", true);
        check("Foo", "Foo: 1", "Foo: 2", false);
        check("Foo", "Foo: 1", "", false);
        check("Cookie", "Cookie: ab", "Cookie: a\nCookie: b", false);
        check("Accept-Encoding", "Accept-Encoding:\nAccept-Encoding: (", "", false);
        check("Accept-Language", "Accept-Language:", "", false);
        check("Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: gzip\nAccept-Encoding: br", false);
        check("Foo", "Foo:", "", false);
        check("Foo", "", "Bar: 1", true);
        check("Foo, Bar", "Foo: 1\nBar: 2", "Bar: 2\nFoo: 1", true);
        check("Foo, Bar", "Foo: 1\nBar: 2", "Foo: 2\nBar: 1", false);
        check("Foo, Bar", "Foo: 1", "Bar: 1", false);
        check("Foo, Bar, Baz", "Foo: 1\nBaz: 3", "Baz: 3\nFoo: 1", true);
        check("Foo", "Foo: a", "Foo: A", false);
    }

    /// RFC 9111 §4.1: whitespace and lines.
    #[test]
    fn unknown_fields_are_lists() {
        check("Foo", "Foo: 1, 2", "Foo: 1\nFoo: 2", true);
        check("Foo", "Foo: 1,2", "Foo:  1, 2 ,", true);
        check("Foo", "Foo: 1, 2", "Foo: 2, 1", false);
        check("Foo", "Foo: \"1, 2\"", "Foo: \"1,2\"", false);
        check("Foo", "Foo: 12", "Foo: 1, 2", false);
        check("User-Agent", "User-Agent: a, b", "User-Agent: a,b", false);
        check("Cookie", "Cookie: a=1,2", "Cookie: a=1, 2", false);
    }

    /// RFC 9110 §12.5.3.
    #[test]
    fn accept_encoding_is_a_set_of_codings() {
        let check = |one: &str, other: &str, same: bool| {
            check("Accept-Encoding", &format!("Accept-Encoding: {one}"), &format!("Accept-Encoding: {other}"), same);
        };
        check("gzip, br", "BR,gzip", true);
        check("gzip, br", "gzip;q=0.5\nAccept-Encoding: br;q=1.0", true);
        check("gzip", "x-gzip", true);
        check("gzip", "gzip, br", false);
        check("gzip, br", "gzip, br;q=0", false);
        check("gzip", "gzip, *;q=0", false);
        check("gzip, dcb, exi", "exi, gzip, DCB", true);
        check("gzip, dcb", "gzip", false);
        check("gzip, dcb", "gzip, dcb;q=0", false);
        check("", "gzip", false);
    }

    #[test]
    fn the_common_forms_are_the_same_as_their_members() {
        for (text, _) in COMMON {
            let text = String::from_utf8_lossy(text);
            let [one, other] = [format!("Accept-Encoding: {text}"), format!("Accept-Encoding: {text} ,")];
            check("Accept-Encoding", &one, &other, true);
            check("Accept-Encoding", &one, &format!("{one}\n{other}"), true);
            check("Accept-Encoding", &one, &format!("{one}, br;q=0"), false);
        }
    }

    #[test]
    fn an_accept_encoding_of_junk_is_as_good_as_none() {
        for junk in [";;q=", "gzip;q=9", "gzip;q=0.0001", "gz ip", "gzip;x", ", ,"] {
            check("Accept-Encoding", &format!("Accept-Encoding: {junk}"), "", true);
        }
        check("Accept-Encoding", "Accept-Encoding:", "", false);
        let many: String = (0..100).map(|n| format!("x{n},")).collect();
        let reversed: String = (0..100).rev().map(|n| format!("x{n},")).collect();
        let line = |list: &str| format!("Accept-Encoding: {list}");
        check("Accept-Encoding", &line(&many), &line(&many), true);
        check("Accept-Encoding", &line(&many), &line(&reversed), false);
        check("Accept-Encoding", &line(&"x,".repeat(2000)), &line("x"), true);
    }

    /// RFC 9110 §12.5.4.
    #[test]
    fn accept_language_is_a_set_with_weights() {
        let check = |one: &str, other: &str, same: bool| {
            check("Accept-Language", &format!("Accept-Language: {one}"), &format!("Accept-Language: {other}"), same);
        };
        check("en, de", "de, en", true);
        check("en, de", "eN, De", true);
        check("en, de", " en ,   de", true);
        check("en, de;q=0.8", "de ; q=0.800, en;q=1", true);
        check("en, de;q=0.8", "en, de;q=0.7", false);
        check("en", "en-GB", false);
        check(
            "a-very-long-language-range-with-more-than-32-bytes-in-it",
            "a-very-long-language-range-with-more",
            false,
        );
    }
}
