//! Cache-Control, in a request and in a response (RFC 9111 §5.2, RFC 5861, RFC 8246), as small flat values.
//!
//! Reading never allocates and never fails: what is not understood is ignored, what is malformed counts in the
//! safe direction. The targeted fields of `targeted` become the same values. Pragma, which RFC 9111
//! §5.4 deprecates, is no part of them.

use message::{FieldName, FieldsView, list_members};

use crate::limits::DELTA_SECONDS_MAX;

/// What a client asks of the caches on its way (RFC 9111 §5.2.1). The default is a request that asks nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    pub max_age_s: Option<u64>,
    /// `u64::MAX` when `max-stale` has no argument: any staleness will do.
    pub max_stale_s: Option<u64>,
    pub min_fresh_s: Option<u64>,
    /// RFC 5861 §4: also a request directive.
    pub stale_if_error_s: Option<u64>,
    pub no_cache: bool,
    pub no_store: bool,
    pub no_transform: bool,
    pub only_if_cached: bool,
}

impl RequestDirectives {
    /// The first occurrence of a directive counts; one whose argument is not a number of seconds is ignored.
    #[inline]
    pub fn parse(fields: FieldsView<'_>) -> RequestDirectives {
        if fields.contains(FieldName::CacheControl) { RequestDirectives::read_all(fields) } else { Self::default() }
    }

    fn read_all(fields: FieldsView<'_>) -> RequestDirectives {
        let mut directives = RequestDirectives::default();
        for value in fields.get_all(FieldName::CacheControl) {
            directives.read(value);
        }
        directives
    }

    fn read(&mut self, value: &[u8]) {
        for member in list_members(value) {
            let (name, argument) = split(member);
            let seconds = || argument.and_then(delta_seconds);
            if is(name, "max-age") {
                self.max_age_s = self.max_age_s.or_else(seconds);
            } else if is(name, "no-cache") {
                self.no_cache = true;
            } else if is(name, "max-stale") {
                let any = argument.is_none().then_some(u64::MAX);
                self.max_stale_s = self.max_stale_s.or(any).or_else(seconds);
            } else if is(name, "min-fresh") {
                self.min_fresh_s = self.min_fresh_s.or_else(seconds);
            } else if is(name, "no-store") {
                self.no_store = true;
            } else if is(name, "only-if-cached") {
                self.only_if_cached = true;
            } else if is(name, "no-transform") {
                self.no_transform = true;
            } else if is(name, "stale-if-error") {
                self.stale_if_error_s = self.stale_if_error_s.or_else(seconds);
            }
        }
    }
}

/// The reach of `no-cache` and `private`, which may be narrowed to named fields (RFC 9111 §5.2.2.4, §5.2.2.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    #[default]
    Absent,
    /// Only the fields named in the argument; [`listed_fields`] says which.
    Fields,
    Whole,
}

/// What an origin asks of the caches on the way (RFC 9111 §5.2.2). A lifetime that cannot be read is 0: §4.2.1
/// encourages caches to consider such a response stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseDirectives {
    pub max_age_s: Option<u64>,
    pub s_maxage_s: Option<u64>,
    pub stale_while_revalidate_s: Option<u64>,
    pub stale_if_error_s: Option<u64>,
    pub no_cache: Scope,
    pub private: Scope,
    pub no_store: bool,
    pub public: bool,
    pub must_revalidate: bool,
    pub proxy_revalidate: bool,
    pub must_understand: bool,
    pub no_transform: bool,
    pub immutable: bool,
}

impl ResponseDirectives {
    /// The first occurrence of a lifetime counts (RFC 9111 §4.2.1), the widest of a scope.
    pub fn parse(fields: FieldsView<'_>) -> ResponseDirectives {
        let mut directives = ResponseDirectives::default();
        for value in fields.get_all(FieldName::CacheControl) {
            for member in list_members(value) {
                directives.read(member);
            }
        }
        directives
    }

    fn read(&mut self, member: &[u8]) {
        let (name, argument) = split(member);
        if argument.is_some_and(is_open_quoted) {
            // The rest of the line is inside a string that never ends: a `no-store` may be lost in it.
            self.no_store = true;
        }
        self.set(name, argument);
        if !is_token(name) || argument.is_some_and(|argument| !is_value(argument)) {
            self.heed_malformed(member);
        }
    }

    /// What is no directive, such as `private;max-age=60`, prohibits what it has the words of.
    fn heed_malformed(&mut self, member: &[u8]) {
        for word in member.split(|&byte| !is_token_byte(byte)) {
            if ["no-store", "no-cache", "private"].iter().any(|known| is(word, known)) {
                self.set(word, None);
            }
        }
    }

    /// Counts one directive in.
    pub(crate) fn set(&mut self, name: &[u8], argument: Option<&[u8]>) {
        let lifetime = || Some(argument.and_then(delta_seconds).unwrap_or(0));
        let seconds = || argument.and_then(delta_seconds);
        if is(name, "max-age") {
            self.max_age_s = self.max_age_s.or_else(lifetime);
        } else if is(name, "s-maxage") {
            self.s_maxage_s = self.s_maxage_s.or_else(lifetime);
        } else if is(name, "no-cache") {
            self.no_cache = widest(self.no_cache, scope(argument));
        } else if is(name, "private") {
            self.private = widest(self.private, scope(argument));
        } else if is(name, "stale-while-revalidate") {
            self.stale_while_revalidate_s = self.stale_while_revalidate_s.or_else(seconds);
        } else if is(name, "stale-if-error") {
            self.stale_if_error_s = self.stale_if_error_s.or_else(seconds);
        } else if let Some(flag) = self.flag(name) {
            *flag = true;
        }
    }

    fn flag(&mut self, name: &[u8]) -> Option<&mut bool> {
        Some(match name.to_ascii_lowercase().as_slice() {
            b"no-store" => &mut self.no_store,
            b"public" => &mut self.public,
            b"must-revalidate" => &mut self.must_revalidate,
            b"proxy-revalidate" => &mut self.proxy_revalidate,
            b"must-understand" => &mut self.must_understand,
            b"no-transform" => &mut self.no_transform,
            b"immutable" => &mut self.immutable,
            _ => return None,
        })
    }

    /// The lifetime that a shared cache goes by (RFC 9111 §4.2.1): `s-maxage`, else `max-age`.
    pub fn shared_lifetime_s(&self) -> Option<u64> {
        self.s_maxage_s.or(self.max_age_s)
    }

    /// RFC 9111 §4.2.4: what forbids any answer that is stale. `s-maxage` counts, because §5.2.2.10 gives it the
    /// meaning of `proxy-revalidate`.
    pub fn forbids_stale(&self) -> bool {
        self.must_revalidate || self.proxy_revalidate || self.s_maxage_s.is_some() || self.no_cache == Scope::Whole
    }
}

/// The fields that `no-cache="…"` and `private="…"` of Cache-Control keep out of a shared store.
pub fn listed_fields<'a>(fields: FieldsView<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    fields.members(FieldName::CacheControl).flat_map(|member| {
        let (name, argument) = split(member);
        let argument = argument.filter(|_| is(name, "no-cache") || is(name, "private")).unwrap_or_default();
        list_members(unquoted(argument))
    })
}

/// What nginx obeys, for which RFC 9111 has no word, and what §5.4 of it deprecates: `X-Accel-Expires: 0`, and `Pragma: no-cache` where there is
/// no Cache-Control. Where nothing but the operator's word stores a response they are what its application says against that.
pub(crate) fn older_words_prohibit(fields: FieldsView<'_>) -> bool {
    let is_zero = |value: &[u8]| !value.is_empty() && value.iter().all(|&byte| byte == b'0');
    let accel = fields.get_named(FieldName::Other, b"X-Accel-Expires");
    let asks_each_time = |member: &[u8]| member.eq_ignore_ascii_case(b"no-cache");
    accel.is_some_and(|value| is_zero(value.strip_prefix(b"@").unwrap_or(value)))
        || !fields.contains(FieldName::CacheControl) && fields.members(FieldName::Pragma).any(asks_each_time)
}

/// RFC 9111 §1.2.2: a non-negative integer, as a token or, tolerated by §5.2, a quoted string; too many saturate.
pub fn delta_seconds(text: &[u8]) -> Option<u64> {
    let digits = unquoted(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |n: u64, b: &u8| n.saturating_mul(10).saturating_add(u64::from(b - b'0'));
    Some(digits.iter().fold(0, add).min(DELTA_SECONDS_MAX))
}

/// Name and argument. Whitespace around `=` belongs to neither grammar, so it makes another name or a bad number.
fn split(member: &[u8]) -> (&[u8], Option<&[u8]>) {
    match member.iter().position(|&b| b == b'=') {
        Some(at) => (&member[..at], Some(&member[at + 1..])),
        None => (member, None),
    }
}

fn is(name: &[u8], known: &str) -> bool {
    name.eq_ignore_ascii_case(known.as_bytes())
}

fn unquoted(text: &[u8]) -> &[u8] {
    match text {
        [b'"', inner @ .., b'"'] => inner,
        _ => text,
    }
}

fn is_open_quoted(argument: &[u8]) -> bool {
    argument.first() == Some(&b'"') && (argument.len() < 2 || argument.last() != Some(&b'"'))
}

fn scope(argument: Option<&[u8]>) -> Scope {
    let mut names = argument.map(unquoted).into_iter().flat_map(list_members).peekable();
    let named = names.peek().is_some() && names.all(is_token);
    if named { Scope::Fields } else { Scope::Whole }
}

fn widest(a: Scope, b: Scope) -> Scope {
    match (a, b) {
        (Scope::Whole, _) | (_, Scope::Whole) => Scope::Whole,
        (Scope::Fields, _) | (_, Scope::Fields) => Scope::Fields,
        _ => Scope::Absent,
    }
}

/// RFC 9110 §5.6.2.
pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| is_token_byte(byte))
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// May it be an argument: a token, or a quoted string, which ends only once?
fn is_value(argument: &[u8]) -> bool {
    let ends_once = |inner: &[u8]| {
        let ends = |(at, &byte): (usize, &u8)| byte == b'"' && (at == 0 || inner[at - 1] != b'\\');
        !inner.iter().enumerate().any(ends)
    };
    match argument {
        [] => true,
        [b'"', inner @ .., b'"'] => ends_once(inner),
        _ => is_token(argument),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fields;

    fn check_request(lines: &str, expect: RequestDirectives) {
        assert_eq!(RequestDirectives::parse(fields(lines).view()), expect, "{lines}");
    }

    fn check(lines: &str, expect: ResponseDirectives) {
        assert_eq!(ResponseDirectives::parse(fields(lines).view()), expect, "{lines}");
    }

    /// RFC 9111 §5.2.1.
    #[test]
    fn a_request_may_ask() {
        let none = RequestDirectives::default();
        check_request("Accept: */*", none);
        check_request("Cache-Control: nothing-to-see-here\nPragma: no-cache", none);
        check_request("Cache-Control: No-Cache", RequestDirectives { no_cache: true, ..none });
        check_request(
            "Cache-Control: no-store, only-if-cached\nCache-Control: no-transform",
            RequestDirectives { no_store: true, only_if_cached: true, no_transform: true, ..none },
        );
        check_request("Cache-Control: max-age=0", RequestDirectives { max_age_s: Some(0), ..none });
        check_request("Cache-Control: max-age=\"5\"", RequestDirectives { max_age_s: Some(5), ..none });
        check_request("Cache-Control: max-age=1, max-age=9", RequestDirectives { max_age_s: Some(1), ..none });
        check_request("Cache-Control: max-stale", RequestDirectives { max_stale_s: Some(u64::MAX), ..none });
        check_request("Cache-Control: max-stale=9", RequestDirectives { max_stale_s: Some(9), ..none });
        check_request("Cache-Control: min-fresh=9", RequestDirectives { min_fresh_s: Some(9), ..none });
        check_request("Cache-Control: stale-if-error=9", RequestDirectives { stale_if_error_s: Some(9), ..none });
    }

    #[test]
    fn a_request_that_asks_nonsense_asks_nothing() {
        for junk in ["max-age=-1", "max-age", "max-age=", "max-age=\"1", "max-age = 1", "min-fresh=x", "max-stale=1.5"]
        {
            check_request(&format!("Cache-Control: {junk}"), RequestDirectives::default());
        }
        let many = format!("Cache-Control: {}", "max-age=1,".repeat(800));
        check_request(&many, RequestDirectives { max_age_s: Some(1), ..RequestDirectives::default() });
    }

    /// RFC 9111 §1.2.2: beyond 2^31 it is 2^31.
    #[test]
    fn seconds_saturate() {
        let parsed = |text: &str| delta_seconds(text.as_bytes());
        assert_eq!(parsed("003600"), Some(3600));
        assert_eq!(parsed("2147483647"), Some(2_147_483_647));
        assert_eq!(parsed("2147483649"), Some(1 << 31));
        assert_eq!(parsed("99999999999999999999"), Some(1 << 31));
        for junk in ["", "\"\"", "-1", "+1", "1.0", "1a", "a1", " 1", "1 ", "'1'", "\"1"] {
            assert_eq!(parsed(junk), None, "{junk}");
        }
    }

    /// RFC 9111 §5.2.2.
    #[test]
    fn a_response_may_ask() {
        let none = ResponseDirectives::default();
        check(
            "Cache-Control: foo, bar=\"max-age=9, no-store\", max-age=1",
            ResponseDirectives { max_age_s: Some(1), ..none },
        );
        check("Cache-Control: max-age=1, ext=\"max-age=9\"", ResponseDirectives { max_age_s: Some(1), ..none });
        check(
            "Cache-Control: MaX-aGe=3600, nO-StOrE",
            ResponseDirectives { max_age_s: Some(3600), no_store: true, ..none },
        );
        check(
            "Cache-Control: public, must-revalidate\nCache-Control: proxy-revalidate,immutable",
            ResponseDirectives { public: true, must_revalidate: true, proxy_revalidate: true, immutable: true, ..none },
        );
        check(
            "Cache-Control: s-maxage=5, stale-while-revalidate=6, stale-if-error=7",
            ResponseDirectives {
                s_maxage_s: Some(5),
                stale_while_revalidate_s: Some(6),
                stale_if_error_s: Some(7),
                ..none
            },
        );
        check("Cache-Control: stale-while-revalidate=x, stale-if-error", none);
    }

    /// RFC 9111 §4.2.1: invalid freshness is stale; of several the first.
    #[test]
    fn a_lifetime_that_cannot_be_read_is_over() {
        for junk in ["max-age=x", "max-age", "max-age=1.5", "max-age= 5", "max-age=-5", "max-age=a5", "max-age='5'"] {
            check(
                &format!("Cache-Control: {junk}"),
                ResponseDirectives { max_age_s: Some(0), ..ResponseDirectives::default() },
            );
        }
        // Another directive's name, not this one.
        check("Cache-Control: max-age =5", ResponseDirectives::default());
        let first = ResponseDirectives { max_age_s: Some(1800), ..ResponseDirectives::default() };
        check("Cache-Control: max-age=1800\nCache-Control: max-age=1", first);
        check("Cache-Control: max-age=1800, max-age=3600", first);
    }

    #[test]
    fn a_string_without_end_may_hide_a_no_store() {
        let fields = fields("Cache-Control: max-age=60, ext=\"x, no-store");
        assert!(ResponseDirectives::parse(fields.view()).no_store);
    }

    #[test]
    fn a_prohibition_that_is_badly_written_is_one() {
        let of = |value: &str| {
            let said = ResponseDirectives::parse(fields(&format!("Cache-Control: {value}")).view());
            (said.no_store, said.no_cache == Scope::Whole, said.private == Scope::Whole)
        };
        for private in
            ["private;max-age=60", "\"private\"", "max-age=60;private", "max-age=60 private", "PRIVATE max-age=60"]
        {
            assert_eq!(of(private), (false, false, true), "{private}");
        }
        for no_store in ["no-store;", "max-age=60; no-store", "(no-store)", "public;no-store", "max-age=60, no-store:"]
        {
            assert_eq!(of(no_store), (true, false, false), "{no_store}");
        }
        assert_eq!(of("no-store;private"), (true, false, true));
        assert_eq!(of("no-cache; no-store"), (true, true, false));
        assert_eq!(of("ext=\"a\" private \"b\""), (false, false, true));
        for other in [
            "ext=\"no-store; private\"",
            "ext=\"a \\\" private\"",
            "x-private;",
            "private-x;a",
            "not-no-store",
            "max-age= 5",
        ] {
            assert_eq!(of(other), (false, false, false), "{other}");
        }
    }

    /// RFC 9111 §5.2.2.4, §5.2.2.7: the qualified forms.
    #[test]
    fn no_cache_and_private_may_be_about_some_fields_only() {
        let check = |value: &str, no_cache: Scope, private: Scope, names: &[&str]| {
            let fields = fields(&format!("Cache-Control: {value}"));
            let directives = ResponseDirectives::parse(fields.view());
            let listed: Vec<_> =
                listed_fields(fields.view()).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
            assert_eq!((directives.no_cache, directives.private), (no_cache, private), "{value}");
            assert_eq!(listed, names, "{value}");
            assert!(!directives.no_store, "every string ends: {value}");
        };
        check("no-cache", Scope::Whole, Scope::Absent, &[]);
        check("no-cache=\"a, b\"", Scope::Fields, Scope::Absent, &["a", "b"]);
        check("no-cache=a", Scope::Fields, Scope::Absent, &["a"]);
        check("no-cache=\"\"", Scope::Whole, Scope::Absent, &[]);
        check("no-cache=\"a b\"", Scope::Whole, Scope::Absent, &["a b"]);
        check("no-cache=\"a\", no-cache", Scope::Whole, Scope::Absent, &["a"]);
        check("private=\"Set-Cookie\", max-age=1", Scope::Absent, Scope::Fields, &["Set-Cookie"]);
        check("private=\"a, b c\"", Scope::Absent, Scope::Whole, &["a", "b c"]);
        check("private", Scope::Absent, Scope::Whole, &[]);
    }
}
