//! Tags by which responses can be purged together: which fields of a response name them, and the digest of each.
//!
//! One table for the built-in policy and for programs. Each field has names of its own, so that a word in one is not the same word in
//! another: xkey's are what `xkey.purge()` of a program means, and nothing else is.

use cache::{Cache, Key, Tags, TooManyTags};
use message::FieldsView;

/// A field that names tags.
struct TagField {
    name: &'static str,
    /// Tells its words from those of other fields.
    space: &'static [u8],
    parts: fn(u8) -> bool,
    /// Are words the same that differ in case alone?
    folds: bool,
}

/// As Fastly, Cloudflare and varnish-modules read them.
const TAG_FIELDS: [TagField; 4] = [
    TagField { name: "Surrogate-Key", space: b"surrogate-key", parts: is_blank, folds: false },
    TagField { name: "Cache-Tag", space: b"cache-tag", parts: is_blank_or_comma, folds: true },
    TagField { name: "xkey", space: b"xkey", parts: is_blank_or_comma, folds: false },
    TagField { name: "X-HashTwo", space: b"xkey", parts: is_blank_or_comma, folds: false },
];

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_blank_or_comma(byte: u8) -> bool {
    is_blank(byte) || byte == b','
}

impl TagField {
    fn key(&self, cache: &Cache, word: &[u8]) -> Key {
        match self.folds && word.iter().any(u8::is_ascii_uppercase) {
            true => cache.key([self.space, &word.to_ascii_lowercase()]),
            false => cache.key([self.space, word]),
        }
    }
}

/// Of a response that is to be stored. One that has too many is not: what could not be purged by one of its tags would stay.
pub(crate) fn of_response(cache: &Cache, fields: FieldsView<'_>) -> Result<Option<Tags>, TooManyTags> {
    Tags::new(words(fields).map(|(field, word)| field.key(cache, word)))
}

/// What a word stands for in whichever field it is.
pub(crate) fn keys_of(cache: &Cache, word: &str) -> Vec<Key> {
    let mut keys: Vec<Key> = TAG_FIELDS.iter().map(|field| field.key(cache, word.as_bytes())).collect();
    keys.dedup();
    keys
}

/// What `xkey.purge()` of a program means.
pub(crate) fn xkey(cache: &Cache, word: &[u8]) -> Key {
    cache.key([&b"xkey"[..], word])
}

/// The field and the word of a response that have this digest.
pub(crate) fn named(cache: &Cache, fields: FieldsView<'_>, bits: u64) -> Option<(&'static str, String)> {
    let (field, word) = words(fields).find(|(field, word)| field.key(cache, word).bits() == bits)?;
    let word = String::from_utf8_lossy(word);
    Some((field.name, if field.folds { word.to_ascii_lowercase() } else { word.into_owned() }))
}

/// All tags of a response, each with its field. Most responses have none, and cost a look at their fields' names.
fn words(fields: FieldsView<'_>) -> impl Iterator<Item = (&'static TagField, &[u8])> {
    let named = fields.iter().filter_map(|line| {
        let field = TAG_FIELDS.iter().find(|field| line.name_text.eq_ignore_ascii_case(field.name.as_bytes()))?;
        Some((field, line.value))
    });
    named.flat_map(|(field, value)| {
        value.split(|byte| (field.parts)(*byte)).filter(|word| !word.is_empty()).map(move |word| (field, word))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cache::{CacheSettings, Flight, Notifier};
    use message::Fields;

    use super::*;

    struct Nobody;

    impl Notifier for Nobody {
        fn post(&self, _: usize, _: Arc<Flight>) {}
    }

    fn fields(lines: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        lines.iter().for_each(|(name, value)| fields.push_named(name.as_bytes(), value.as_bytes()));
        fields
    }

    fn read(lines: &[(&str, &str)]) -> Vec<(&'static str, String)> {
        let fields = fields(lines);
        words(fields.view()).map(|(field, word)| (field.name, String::from_utf8_lossy(word).into_owned())).collect()
    }

    #[test]
    fn each_field_parts_its_words_as_its_inventors_do() {
        let word = |field: &'static str, word: &str| (field, word.to_owned());
        assert_eq!(read(&[("Surrogate-Key", " a,b  C\t")]), [word("Surrogate-Key", "a,b"), word("Surrogate-Key", "C")]);
        assert_eq!(read(&[("cache-tag", "a, B,,c")]).len(), 3);
        assert_eq!(read(&[("XKEY", "a b"), ("x-hashtwo", "c")]).len(), 3);
        assert!(read(&[("Surrogate-Control", "a"), ("Cache-Tags", "b"), ("Surrogate-Key", " ")]).is_empty());
    }

    #[test]
    fn a_word_is_found_in_whichever_field_it_stood() {
        let cache = Cache::new(CacheSettings::default(), Arc::new(Nobody));
        let key = |name: &str, value: &str| {
            let fields = fields(&[(name, value)]);
            words(fields.view()).map(|(field, word)| field.key(&cache, word)).next().expect("a tag")
        };
        let meant = keys_of(&cache, "Menu");
        for (name, value, expect) in [
            ("Surrogate-Key", "Menu", true),
            ("Surrogate-Key", "menu", false),
            ("Cache-Tag", "mENU", true),
            ("xkey", "Menu", true),
            ("xkey", "menu", false),
        ] {
            assert_eq!(meant.contains(&key(name, value)), expect, "{name}: {value}");
        }
        assert_eq!(xkey(&cache, b"Menu"), key("X-HashTwo", "Menu"));
        let fields = fields(&[("Cache-Tag", "a, Menu")]);
        let bits = key("Cache-Tag", "menu").bits();
        assert_eq!(named(&cache, fields.view(), bits), Some(("Cache-Tag", "menu".to_owned())));
        assert_eq!(named(&cache, fields.view(), bits ^ 1), None);
    }
}
