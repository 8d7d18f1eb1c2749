//! What is said of dictionaries (RFC 9842 §2): by a response, that it may be one, and by a request, which one its client has.

use message::{FieldName, FieldsView};
use sfv::{BareItem, Dictionary, Item, ListEntry, Parser};

use crate::limits::{AVAILABLE_DICTIONARY_BYTES_MAX, DICTIONARY_ID_CHARS_MAX, USE_AS_DICTIONARY_BYTES_MAX};
use crate::url_pattern::{PatternBase, UrlPattern};

/// The SHA-256 of a dictionary's text.
pub type DictionaryHash = [u8; 32];

/// For which requests a response may be a dictionary, as it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DictionaryUse {
    /// URLs of its own origin.
    pub pattern: UrlPattern,
    /// What a client says again with the hash; empty: nothing.
    pub id: Box<str>,
}

impl DictionaryUse {
    /// §2.1. `None`: it says nothing that is understood here, and is no dictionary. Which kinds of requests it is for
    /// (`match-dest`) is the client's affair.
    pub fn of(response: FieldsView<'_>, base: PatternBase<'_>) -> Option<DictionaryUse> {
        let text = joined(response, FieldName::UseAsDictionary, USE_AS_DICTIONARY_BYTES_MAX)?;
        let said = Parser::new(&text).parse::<Dictionary>().ok()?;
        let item = |name: &str| match said.get(name) {
            None => Some(None),
            Some(ListEntry::Item(item)) => Some(Some(&item.bare_item)),
            Some(ListEntry::InnerList(_)) => None,
        };
        let BareItem::String(pattern) = item("match")?? else { return None };
        let id = match item("id")? {
            None => "",
            Some(BareItem::String(id)) if id.as_str().len() <= DICTIONARY_ID_CHARS_MAX => id.as_str(),
            Some(_) => return None,
        };
        let is_raw = match item("type")? {
            None => true,
            Some(BareItem::Token(kind)) => kind.as_str() == "raw",
            Some(_) => false,
        };
        let names_destinations = match said.get("match-dest") {
            None => true,
            Some(ListEntry::InnerList(list)) => {
                list.items.iter().all(|item| matches!(item.bare_item, BareItem::String(_)))
            }
            Some(ListEntry::Item(_)) => false,
        };
        let pattern = UrlPattern::parse(pattern.as_str().as_bytes(), base).ok()?;
        (is_raw && names_destinations).then(|| DictionaryUse { pattern, id: id.into() })
    }
}

/// The value of a Use-As-Dictionary that says this pattern and nothing else.
pub fn use_as_dictionary(pattern: &str) -> String {
    let mut value = String::from("match=\"");
    for character in pattern.chars() {
        if matches!(character, '"' | '\\') {
            value.push('\\');
        }
        value.push(character);
    }
    value.push('"');
    value
}

/// The dictionary that a client says it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AvailableDictionary {
    pub hash: DictionaryHash,
    /// What it was told that the dictionary is called; empty where it says nothing, or nothing that can be read.
    pub id: Box<str>,
}

impl AvailableDictionary {
    /// §2.2, §2.3. `None`: none, or several, or no hash.
    pub fn of(request: FieldsView<'_>) -> Option<AvailableDictionary> {
        let text = joined(request, FieldName::AvailableDictionary, AVAILABLE_DICTIONARY_BYTES_MAX)?;
        let BareItem::ByteSequence(hash) = Parser::new(&text).parse::<Item>().ok()?.bare_item else { return None };
        Some(AvailableDictionary { hash: hash.try_into().ok()?, id: id_of(request).unwrap_or_default() })
    }
}

fn id_of(request: FieldsView<'_>) -> Option<Box<str>> {
    let text = joined(request, FieldName::DictionaryId, USE_AS_DICTIONARY_BYTES_MAX)?;
    match Parser::new(&text).parse::<Item>().ok()?.bare_item {
        BareItem::String(id) if id.as_str().len() <= DICTIONARY_ID_CHARS_MAX => Some(id.as_str().into()),
        _ => None,
    }
}

/// Several lines are one (RFC 9651 §4.2). `None`: there is none, or it is longer than it may be.
fn joined(fields: FieldsView<'_>, name: FieldName, bytes_max: usize) -> Option<Vec<u8>> {
    if !fields.contains(name) {
        return None;
    }
    let lines: Vec<&[u8]> = fields.get_all(name).collect();
    let text = lines.join(&b", "[..]);
    (text.len() <= bytes_max).then_some(text)
}

/// The value of a field that is sent once; what is said twice says nothing that can be relied on.
fn one<'a>(fields: FieldsView<'a>, name: &[u8]) -> Option<&'a [u8]> {
    let mut lines = fields.iter().filter(|field| field.name_text.eq_ignore_ascii_case(name)).map(|field| field.value);
    let first = lines.next();
    if lines.next().is_some() { Some(b"") } else { first }
}

/// May the page that asks read the answer? Where it may not, the length of what a dictionary makes of the answer would tell it what
/// stands there (§9.3.3).
pub fn is_readable_by_asker(request: FieldsView<'_>, response: FieldsView<'_>) -> bool {
    let site = one(request, b"sec-fetch-site");
    if matches!(site, None | Some(b"same-origin")) {
        return true;
    }
    match one(request, b"sec-fetch-mode") {
        None | Some(b"navigate" | b"same-origin") => true,
        Some(b"cors") => match (one(request, b"origin"), one(response, b"access-control-allow-origin")) {
            (Some(_), Some(b"*")) => true,
            (Some(origin), Some(allowed)) => !origin.is_empty() && origin == allowed,
            _ => false,
        },
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fields;

    const BASE: PatternBase<'_> = PatternBase { origin: b"https://a.test", path: b"/js/app.js" };

    fn used(value: &str) -> Option<DictionaryUse> {
        DictionaryUse::of(fields(&format!("Use-As-Dictionary: {value}\r\n")).view(), BASE)
    }

    #[test]
    fn a_response_says_what_it_is_a_dictionary_for() {
        let with = |pattern: &str, id: &str| {
            let pattern = UrlPattern::parse(pattern.as_bytes(), BASE).unwrap();
            Some(DictionaryUse { pattern, id: id.into() })
        };
        assert_eq!(used("match=\"/product/*\", match-dest=(\"document\" \"frame\")"), with("/product/*", ""));
        assert_eq!(used("match=\"/app/*/main.js\", id=\"a \\\"b\\\"\", type=raw"), with("/app/*/main.js", "a \"b\""));
        assert_eq!(used("match=\"x*\", match-dest=(), later=?1"), with("/js/x*", ""));
        assert_eq!(used("id=\"1\"\r\nUse-As-Dictionary: match=\"/a\""), with("/a", "1"));
        let long = "x".repeat(DICTIONARY_ID_CHARS_MAX);
        assert_eq!(used(&format!("match=\"/a\", id=\"{long}\"")), with("/a", &long));
    }

    #[test]
    fn what_is_broken_is_no_dictionary() {
        let long = format!("match=\"/a\", id=\"{}\"", "x".repeat(DICTIONARY_ID_CHARS_MAX + 1));
        let longer = format!("match=\"/a\", x=\"{}\"", "x".repeat(USE_AS_DICTIONARY_BYTES_MAX));
        for value in [
            "",
            "match",
            "match=/a",
            "match=(\"/a\")",
            "match=\"/a",
            "id=\"1\"",
            "match=\"/a\", id=1",
            "match=\"/a\", type=\"raw\"",
            "match=\"/a\", type=other",
            "match=\"/a\", match-dest=\"document\"",
            "match=\"/a\", match-dest=(document)",
            "match=\"/:a\"",
            "match=\"https://b.test/a\"",
            "\"/a\"",
            &long,
            &longer,
        ] {
            assert_eq!(used(value), None, "{value}");
        }
    }

    #[test]
    fn a_pattern_is_said_as_it_is_read() {
        for path in ["/a", "/a\\*b", "/a\"b"] {
            let said = used(&use_as_dictionary(path)).unwrap();
            assert_eq!(said.pattern, UrlPattern::parse(path.as_bytes(), BASE).unwrap(), "{path}");
        }
        assert_eq!(use_as_dictionary("/a\\*"), "match=\"/a\\\\*\"");
    }

    #[test]
    fn a_client_names_one_dictionary() {
        let available = |lines: &str| AvailableDictionary::of(fields(lines).view());
        const HASH: &str = ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:";
        let line = format!("Available-Dictionary: {HASH}\r\n");
        let named = available(&line).unwrap();
        assert_eq!((&named.hash[..4], named.hash[31], &*named.id), (&[0xa5, 0x91, 0xa6, 0xd4][..], 0x6e, ""));
        let id = |lines: &str| available(&format!("{line}{lines}")).unwrap().id;
        assert_eq!(&*id("Dictionary-ID: \"/v1 \\\"x\\\"\"\r\n"), "/v1 \"x\"");
        for broken in ["Dictionary-ID: v1\r\n", "Dictionary-ID: \"a\"\r\nDictionary-ID: \"b\"\r\n"] {
            assert_eq!(&*id(broken), "", "{broken}");
        }
        assert_eq!(&*id(&format!("Dictionary-ID: \"{}\"\r\n", "x".repeat(DICTIONARY_ID_CHARS_MAX + 1))), "");
        for broken in [
            "".to_owned(),
            format!("{line}{line}"),
            format!("Available-Dictionary: {HASH}, {HASH}\r\n"),
            "Available-Dictionary: pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=\r\n".to_owned(),
            "Available-Dictionary: :pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2f:\r\n".to_owned(),
            "Available-Dictionary: :pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4AAAA=:\r\n".to_owned(),
            "Available-Dictionary: :not base64:\r\n".to_owned(),
            "Available-Dictionary: ::\r\n".to_owned(),
            "Available-Dictionary: \"text\"\r\n".to_owned(),
            format!("Available-Dictionary: {HASH};x=\"{}\"\r\n", "y".repeat(AVAILABLE_DICTIONARY_BYTES_MAX)),
        ] {
            assert_eq!(available(&broken), None, "{broken}");
        }
    }

    #[test]
    fn who_may_not_read_an_answer_is_not_shown_its_length() {
        for (request, response, expect) in [
            ("", "", true),
            ("Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: no-cors\r\n", "", true),
            ("Sec-Fetch-Site: cross-site\r\n", "", true),
            ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", "", true),
            ("Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n", "", true),
            ("Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors\r\n", "", false),
            ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: websocket\r\n", "", false),
            ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\nOrigin: https://b\r\n", "", false),
            ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\n", "Access-Control-Allow-Origin: *\r\n", false),
            (
                "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\nOrigin: https://b\r\n",
                "Access-Control-Allow-Origin: *\r\n",
                true,
            ),
            (
                "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\nOrigin: https://b\r\n",
                "Access-Control-Allow-Origin: https://b\r\n",
                true,
            ),
            (
                "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\nOrigin: https://b\r\n",
                "Access-Control-Allow-Origin: https://c\r\n",
                false,
            ),
            ("Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", "", false),
            ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Mode: navigate\r\n", "", false),
        ] {
            assert_eq!(
                is_readable_by_asker(fields(request).view(), fields(response).view()),
                expect,
                "{request}{response}"
            );
        }
    }
}
