//! Cache-Control, in a request and in a response (RFC 9111 §5.2, RFC 5861, RFC 8246), as small flat values.
//!
//! Reading never allocates and never fails: what is not understood is ignored, what is malformed counts in the
//! safe direction. The targeted fields of `targeted` become the same values. Pragma is not read: RFC 9111 §5.4
//! deprecates it.

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
    !text.is_empty() && text.iter().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b))
}
