//! What a node tells the others that it has invalidated by itself, as it stands in the log: a JSON object with the word `told`. Bytes of
//! requests, which need not be UTF-8, are texts with a letter from U+0000 to U+00FF for each byte.

use cache::Purge;
use message::Scheme;
use proxy::{ToldInvalidation, ToldUrl};
use serde_json::{Map, Value, json};

/// What every such order has, and no operator's.
const TOLD: &str = "told";

pub fn text_of(told: &ToldInvalidation) -> String {
    let order = match told {
        ToldInvalidation::Urls(urls) => json!({ TOLD: "urls", "urls": urls.iter().map(url_json).collect::<Vec<_>>() }),
        ToldInvalidation::Groups { of, names } => {
            json!({ TOLD: "groups", "urls": of.iter().map(url_json).collect::<Vec<_>>(), "names": names })
        }
        ToldInvalidation::Hashed { parts, how } => {
            json!({ TOLD: "hashed", "parts": letters(parts), "how": how_json(how) })
        }
        ToldInvalidation::Tag { word, how } => json!({ TOLD: "tag", "word": letters(word), "how": how_json(how) }),
        ToldInvalidation::Ban(text) => json!({ TOLD: "ban", "ban": letters(text) }),
    };
    order.to_string()
}

/// `None`: it is an operator's. The error is a sentence.
pub fn of_text(text: &str) -> Option<Result<ToldInvalidation, String>> {
    // Operators' are read by who knows what may stand in them.
    let Ok(Value::Object(order)) = serde_json::from_str(text) else { return None };
    let kind = order.get(TOLD)?.as_str().unwrap_or_default();
    Some(
        told(kind, &order)
            .ok_or_else(|| format!("what another node has told by `{kind}` is not known to this version")),
    )
}

fn told(kind: &str, order: &Map<String, Value>) -> Option<ToldInvalidation> {
    let urls = || order.get("urls")?.as_array()?.iter().map(url_of).collect::<Option<Vec<_>>>();
    let field = |name: &str| bytes(order.get(name)?);
    let how = || how_of(order.get("how")?);
    Some(match kind {
        "urls" => ToldInvalidation::Urls(urls()?),
        "groups" => {
            let names = order.get("names")?.as_array()?.iter().map(|name| Some(name.as_str()?.to_owned()));
            ToldInvalidation::Groups { of: urls()?, names: names.collect::<Option<_>>()? }
        }
        "hashed" => ToldInvalidation::Hashed { parts: field("parts")?, how: how()? },
        "tag" => ToldInvalidation::Tag { word: field("word")?, how: how()? },
        "ban" => ToldInvalidation::Ban(field("ban")?),
        _ => return None,
    })
}

fn url_json(url: &ToldUrl) -> Value {
    let ToldUrl { scheme, host, port, path, query, is_of_proxy } = url;
    json!({
        "scheme": scheme.text(),
        "host": letters(host),
        "port": port,
        "path": letters(path),
        "query": query.as_deref().map(letters),
        "of_proxy": is_of_proxy,
    })
}

fn url_of(value: &Value) -> Option<ToldUrl> {
    let (port, query) = (value.get("port")?, value.get("query")?);
    Some(ToldUrl {
        scheme: [Scheme::Http, Scheme::Https].into_iter().find(|scheme| value["scheme"] == scheme.text())?,
        host: bytes(value.get("host")?)?,
        port: if port.is_null() { None } else { Some(port.as_u64()?.try_into().ok()?) },
        path: bytes(value.get("path")?)?,
        query: if query.is_null() { None } else { Some(bytes(query)?) },
        is_of_proxy: value.get("of_proxy")?.as_bool()?,
    })
}

fn how_json(how: &Purge) -> Value {
    match how {
        Purge::Hard => json!("hard"),
        Purge::Soft { ttl_ms, grace_ms, keep_ms } => {
            json!({ "ttl_ms": ttl_ms, "grace_ms": grace_ms, "keep_ms": keep_ms })
        }
    }
}

fn how_of(value: &Value) -> Option<Purge> {
    if value == "hard" {
        return Some(Purge::Hard);
    }
    let time = |name: &str| match value.get(name)? {
        Value::Null => Some(None),
        ms => Some(Some(ms.as_u64()?)),
    };
    Some(Purge::Soft { ttl_ms: time("ttl_ms")??, grace_ms: time("grace_ms")?, keep_ms: time("keep_ms")? })
}

/// A letter for each byte.
pub fn letters(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// `None`: it is no text of such letters.
pub fn bytes(value: &Value) -> Option<Vec<u8>> {
    value.as_str()?.chars().map(|letter| u8::try_from(u32::from(letter)).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(query: Option<&[u8]>) -> ToldUrl {
        let (host, path) = (b"shop.test".to_vec(), b"/caf\xe9\"\\\0".to_vec());
        ToldUrl {
            scheme: Scheme::Https,
            host,
            port: Some(8443),
            path,
            query: query.map(<[u8]>::to_vec),
            is_of_proxy: false,
        }
    }

    #[test]
    fn what_is_told_comes_back_as_it_was() {
        let soft = Purge::Soft { ttl_ms: 0, grace_ms: Some(7), keep_ms: None };
        let all_bytes: Vec<u8> = (0..=255).collect();
        for told in [
            ToldInvalidation::Urls(vec![
                url(None),
                url(Some(b"")),
                ToldUrl { port: None, is_of_proxy: true, ..url(Some(b"a=%20")) },
            ]),
            ToldInvalidation::Groups { of: vec![url(None)], names: vec!["news".to_owned(), "a\"b".to_owned()] },
            ToldInvalidation::Hashed { parts: all_bytes.clone(), how: Purge::Hard },
            ToldInvalidation::Tag { word: all_bytes, how: soft },
            ToldInvalidation::Ban(b"obj.http.X ~ \xfc".to_vec()),
        ] {
            assert_eq!(of_text(&text_of(&told)), Some(Ok(told)));
        }
    }

    #[test]
    fn an_order_of_an_operators_is_none_of_these_and_what_is_not_known_is_said() {
        for text in [r#"{"url": "http://a.test/"}"#, "", "[]", "{", r#""told""#] {
            assert_eq!(of_text(text), None, "{text}");
        }
        for text in [
            r#"{"told": "dreams"}"#,
            r#"{"told": 7}"#,
            r#"{"told": "urls"}"#,
            r#"{"told": "urls", "urls": [{"scheme": "http", "host": "a", "port": 70000, "path": "/", "query": null, "of_proxy": false}]}"#,
            r#"{"told": "urls", "urls": [{"scheme": "ftp", "host": "a", "port": null, "path": "/", "query": null, "of_proxy": false}]}"#,
            r#"{"told": "hashed", "parts": "Ā", "how": "hard"}"#,
            r#"{"told": "tag", "word": "a", "how": {"ttl_ms": null, "grace_ms": 1, "keep_ms": 1}}"#,
        ] {
            let why = of_text(text).expect("it is told").expect_err(text);
            assert!(why.contains("not known to this version"), "{why}");
        }
    }
}
