//! No-Vary-Search (draft-ietf-httpbis-no-vary-search-10, in the RFC editor's queue): which differences between two
//! queries of one path make no difference to the response.
//!
//! Two URLs of a path are equivalent under a variation when they normalise to the same bytes. Which variation counts
//! for a path, and where it is remembered, is the cache's business. What cannot be understood means "every difference
//! counts", which costs hits and never an answer.

use std::borrow::Cow;

use message::{FieldName, FieldsView};
use sfv::{BareItem, Dictionary, InnerList, ListEntry, Parser};

use crate::limits::{VARIATION_BYTES_MAX, VARIATION_KEYS_MAX, VARIED_PARAMETERS_MAX};

/// What a response says of the queries that it answers. That every difference counts is `None` wherever an optional
/// variation stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlVariation {
    names: Names,
    /// Sorted before they are compared.
    ignores_order: bool,
}

/// The parameters that count. Sorted, each once, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Names {
    AllBut(Vec<String>),
    Only(Vec<String>),
}

impl UrlVariation {
    /// "Obtain a URL variation config", of a response. `None`: the default, by word or by fault.
    pub fn of(fields: FieldsView<'_>) -> Option<UrlVariation> {
        if !fields.contains(FieldName::NoVarySearch) {
            return None;
        }
        let lines: Vec<&[u8]> = fields.get_all(FieldName::NoVarySearch).collect();
        let text = lines.join(&b", "[..]);
        if text.len() > VARIATION_BYTES_MAX {
            return None;
        }
        let dictionary = Parser::new(&text).parse::<Dictionary>().ok()?;
        let variation = UrlVariation::read(&dictionary)?;
        let is_default = !variation.ignores_order && variation.names == Names::AllBut(Vec::new());
        (!is_default).then_some(variation)
    }

    /// Does an update (a 304, or the answer to a HEAD) give a stored response another variation? Then it is about other
    /// URLs than those that share the stored response.
    pub fn is_changed_by(stored: FieldsView<'_>, update: FieldsView<'_>) -> bool {
        update.contains(FieldName::NoVarySearch) && UrlVariation::of(update) != UrlVariation::of(stored)
    }

    /// "Parse a URL variation config". A `params` that is a Boolean, as browsers took it before, is no list: the
    /// published text spells it `except`.
    fn read(dictionary: &Dictionary) -> Option<UrlVariation> {
        let ignores_order = match dictionary.get("key-order") {
            None => false,
            Some(ListEntry::Item(item)) => item.bare_item.as_boolean()?,
            Some(ListEntry::InnerList(_)) => return None,
        };
        let names = match (dictionary.get("params"), dictionary.get("except")) {
            (None, None) => Names::AllBut(Vec::new()),
            (Some(ListEntry::InnerList(params)), None) => Names::AllBut(keys(params)?),
            (None, Some(ListEntry::InnerList(except))) => Names::Only(keys(except)?),
            _ => return None,
        };
        Some(UrlVariation { names, ignores_order })
    }

    /// "Comparing", for one side: what is left of a query, in a form that only equivalent queries share. Each name and
    /// each value stands behind its length, so that no two lists are one text. A query of too many parameters is
    /// equivalent to itself alone.
    pub fn normalise(&self, query: Option<&[u8]>, out: &mut Vec<u8>) {
        let query = query.unwrap_or_default();
        let pairs = || query.split(|&b| b == b'&').filter(|pair| !pair.is_empty());
        if pairs().nth(VARIED_PARAMETERS_MAX).is_some() {
            // No length begins like this.
            out.push(0xff);
            out.extend_from_slice(query);
            return;
        }
        let mut pairs: Vec<_> = pairs().map(decode_pair).filter(|(name, _)| self.counts(name)).collect();
        if self.ignores_order {
            // Stable: values under one name keep their order. Any order of names will do, if it is always the same.
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
        }
        for text in pairs.iter().flat_map(|(name, value)| [name, value]) {
            out.extend_from_slice(&(text.len() as u32).to_be_bytes());
            out.extend_from_slice(text.as_bytes());
        }
    }

    fn counts(&self, name: &str) -> bool {
        let is_in = |names: &[String]| names.binary_search_by(|it| it.as_str().cmp(name)).is_ok();
        match &self.names {
            Names::AllBut(names) => !is_in(names),
            Names::Only(names) => is_in(names),
        }
    }
}

/// Strings, decoded like the names of a query; `None` when one is none, or there are too many to look through.
fn keys(list: &InnerList) -> Option<Vec<String>> {
    if list.items.len() > VARIATION_KEYS_MAX {
        return None;
    }
    let mut keys = Vec::with_capacity(list.items.len());
    for item in &list.items {
        let BareItem::String(text) = &item.bare_item else { return None };
        keys.push(String::from_utf8(decode(text.as_str().as_bytes())).ok()?);
    }
    keys.sort_unstable();
    keys.dedup();
    Some(keys)
}

/// One `name=value` of application/x-www-form-urlencoded, as the URL standard parses it.
fn decode_pair(pair: &[u8]) -> (Cow<'_, str>, Cow<'_, str>) {
    let (name, value) = match pair.iter().position(|&b| b == b'=') {
        Some(at) => (&pair[..at], &pair[at + 1..]),
        None => (pair, &b""[..]),
    };
    (decode_text(name), decode_text(value))
}

/// What is no UTF-8 becomes U+FFFD, in the URL standard as here.
fn decode_text(text: &[u8]) -> Cow<'_, str> {
    match text.iter().any(|b| matches!(b, b'%' | b'+')) {
        true => Cow::Owned(String::from_utf8_lossy(&decode(text)).into_owned()),
        false => String::from_utf8_lossy(text),
    }
}

/// `+` is a space, `%41` is an A, and a per cent sign before anything but two hexadecimal digits is itself.
fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        let hex = |b: &u8| char::from(*b).to_digit(16);
        match (byte, tail) {
            (b'+', _) => out.push(b' '),
            (b'%', [high, low, tail @ ..]) if hex(high).is_some() && hex(low).is_some() => {
                let digits = [high, low].map(|digit| hex(digit).unwrap_or_default() as u8);
                out.push(digits[0] << 4 | digits[1]);
                rest = tail;
            }
            _ => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fields;

    fn of(value: &str) -> Option<UrlVariation> {
        UrlVariation::of(fields(&format!("No-Vary-Search: {value}")).view())
    }

    fn variation(names: Names, ignores_order: bool) -> Option<UrlVariation> {
        Some(UrlVariation { names, ignores_order })
    }

    /// §4.2.1, the examples of what is valid.
    #[test]
    fn a_variation_is_read() {
        let list = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        let (all_but, only) = (|names: &[&str]| Names::AllBut(list(names)), |names: &[&str]| Names::Only(list(names)));
        let check = |value: &str, expect: Option<UrlVariation>| assert_eq!(of(value), expect, "{value}");
        check("params=(\"a\")", variation(all_but(&["a"]), false));
        check("params=(\"b\" \"a\" \"b\")", variation(all_but(&["a", "b"]), false));
        check("except=(\"x\")", variation(only(&["x"]), false));
        check("except=()", variation(only(&[]), false));
        check("key-order", variation(all_but(&[]), true));
        check("key-order=?1", variation(all_but(&[]), true));
        check("except=(\"x\"), key-order", variation(only(&["x"]), true));
        check("key-order\nNo-Vary-Search: params=(\"a\")", variation(all_but(&["a"]), true));
        check("key-order, later=(1 2)", variation(all_but(&[]), true));
        check("key-order;a=1, params=(\"a\";b);c", variation(all_but(&["a"]), true));
        check("params=(\"%C3%A9+%E6%B0%97\")", variation(all_but(&["é 気"]), false));
    }

    /// §4.2.1, the examples of what is not, and of what says nothing: every difference counts.
    #[test]
    fn what_is_not_understood_changes_nothing() {
        for value in [
            "",
            "unknown-key",
            "params=()",
            "key-order=?0",
            "key-order=\"not a boolean\"",
            "key-order=(\"a\")",
            "params=\"not an inner list\"",
            "params=(not-a-string)",
            "params=?0",
            "params=?1",
            "params",
            "params=?1, except=(\"x\")",
            "params=(\"a\"), except=(\"x\")",
            "params=(), except=()",
            "except=\"not an inner list\"",
            "except=(not-a-string)",
            "except=?1",
            "key-order, except",
            "params=(\"%ff\")",
            "key-order, &&",
        ] {
            assert_eq!(of(value), None, "{value}");
        }
        assert_eq!(UrlVariation::of(fields("Vary: a").view()), None);
        let many = |count: usize| format!("params=({})", (0..count).map(|n| format!("\"{n}\" ")).collect::<String>());
        assert!(of(&many(VARIATION_KEYS_MAX)).is_some());
        assert_eq!(of(&many(VARIATION_KEYS_MAX + 1)), None);
        let long = |length: usize| format!("params=(\"{}\")", "a".repeat(length - "params=(\"\")".len()));
        assert!(of(&long(VARIATION_BYTES_MAX)).is_some());
        assert_eq!(of(&long(VARIATION_BYTES_MAX + 1)), None);
    }

    /// RFC 9111 §3.2: an update changes the fields that it has.
    #[test]
    fn an_update_may_change_the_variation() {
        let check = |stored: &str, update: &str, expect: bool| {
            let changed = UrlVariation::is_changed_by(fields(stored).view(), fields(update).view());
            assert_eq!(changed, expect, "{stored:?} {update:?}");
        };
        let (one, other) = ("No-Vary-Search: params=(\"a\")", "No-Vary-Search: key-order");
        check("", "", false);
        check(one, "", false);
        check(one, "No-Vary-Search: params=(\"a\" \"a\")", false);
        check(one, other, true);
        check(one, "No-Vary-Search: params=()", true);
        check("", other, true);
        check("", "No-Vary-Search: params=()", false);
    }

    /// §5, §5.1.
    #[test]
    fn equivalent_queries_normalise_alike() {
        let check = |value: &str, one: Option<&str>, other: Option<&str>, expect: bool| {
            let variation = of(value).expect("a variation");
            let [one_text, other_text] = [one, other].map(|query| {
                let mut out = Vec::new();
                variation.normalise(query.map(str::as_bytes), &mut out);
                out
            });
            assert_eq!(one_text == other_text, expect, "{value}: {one:?} {other:?}");
        };
        for (one, other) in [
            (None, Some("")),
            (Some("a=x"), Some("%61=%78")),
            (Some("a=é"), Some("a=%C3%A9")),
            (Some("a=%f6"), Some("a=%ef%bf%bd")),
            (Some("a=x&&&&"), Some("a=x")),
            (Some("a="), Some("a")),
            (Some("a=%20"), Some("a= &")),
            (Some("a=+"), Some("a= &")),
            (Some("a=%2B"), Some("a=%2b")),
            (Some("a=%4"), Some("a=%4")),
        ] {
            check("key-order", one, other, true);
        }
        check("key-order", Some("a=1&b=2"), Some("b=2&a=1"), true);
        check("key-order", Some("a=1&a=2"), Some("a=2&a=1"), false);
        check("key-order", Some("b=0&a=1&a=2"), Some("a=1&b=0&a=2"), true);
        check("key-order", Some("a=+"), Some("a=%2B"), false);
        check("key-order", Some("a=b%26c"), Some("a=b&c"), false);
        check("key-order", Some("a=b"), Some("a=b&c"), false);
        check("key-order", Some("a=bc"), Some("ab=c"), false);
        check("key-order", Some("a=%4g"), Some("a=%254g"), true);
        check("key-order", Some("a=%zz"), Some("a=%25zz"), true);
        check("key-order", Some("a=b=c"), Some("a=b%3Dc"), true);
        check("params=(\"utm\")", Some("a=1&utm=x"), Some("utm=y&a=1"), true);
        check("params=(\"utm\")", Some("a=1"), Some("a=1&%75tm"), true);
        check("params=(\"utm\")", Some("a=1&b=2"), Some("b=2&a=1"), false);
        check("params=(\"utm\")", Some("a=1&UTM=x"), Some("a=1"), false);
        check("params=(\"utm\"), key-order", Some("b=2&utm=x&a=1"), Some("a=1&b=2"), true);
        check("except=(\"id\")", Some("id=1&a=2"), Some("b=3&id=1"), true);
        check("except=(\"id\")", Some("id=1"), Some("id=2"), false);
        check("except=(\"id\")", Some("id=1&id=2"), Some("id=2&id=1"), false);
        check("except=()", Some("id=1"), None, true);
        let many = |count: usize, last: &str| Some("a&".repeat(count - 1) + last);
        for (count, alike) in [(VARIED_PARAMETERS_MAX, true), (VARIED_PARAMETERS_MAX + 1, false)] {
            check("except=()", many(count, "b").as_deref(), many(count, "c").as_deref(), alike);
            check("except=()", many(count, "b").as_deref(), many(count, "b").as_deref(), true);
        }
        let (query, mut out) = (many(VARIED_PARAMETERS_MAX + 1, "b").expect("one"), Vec::new());
        of("key-order").expect("a variation").normalise(Some(query.as_bytes()), &mut out);
        assert_eq!(out, [b"\xff", query.as_bytes()].concat(), "no more is done about so many");
        check("params=(\"%C3%A9+%E6%B0%97\")", Some("é%20気=3"), Some("%C3%A9+%E6%B0%97=4"), true);
    }
}
