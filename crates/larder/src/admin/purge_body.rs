//! The JSON body of an order to purge, refresh or warm: one selector, and how. What is wrong with it is said by name.

use fleet::Acknowledge;
use message::Scheme;
use proxy::{OrderedUrl, PurgeOrder, PurgeSelector, Softness};
use serde_json::{Map, Value};

use super::explain_request::head_of;
use crate::limits::{
    PURGE_GRACE_MAX, PURGE_SAMPLES, PURGE_SAMPLES_MAX, PURGE_TAGS_MAX, PURGE_URLS_MAX, REFRESH_RATE, REFRESH_RATE_MAX,
    WARM_URLS_MAX,
};

/// The words that say what is meant: a body has one of them.
const SELECTORS: [&str; 10] = ["url", "urls", "prefix", "host", "glob", "regex", "ban", "tags", "group", "all"];

/// An order to fetch again, or before anybody asks.
#[derive(Clone, Debug, PartialEq)]
pub struct RefreshOrder {
    pub what: ToFetch,
    /// Requests a second.
    pub rate: u32,
    pub is_dry: bool,
    pub samples_max: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ToFetch {
    /// What is stored.
    Stored(PurgeSelector),
    Urls(Vec<String>),
    /// What this page lists.
    Sitemap(String),
}

/// An order to purge.
#[derive(Clone, Debug, PartialEq)]
pub struct PurgeAsked {
    /// The word by which it selects.
    pub word: &'static str,
    pub order: PurgeOrder,
    /// What must have happened before it is acknowledged.
    pub acknowledge: Option<Acknowledge>,
}

/// The error is a sentence.
pub fn purge(body: &[u8]) -> Result<PurgeAsked, String> {
    let fields = object(body)?;
    let word = selector_word(&fields)?;
    only(&fields, word, &["soft", "grace_s", "dry_run", "samples", "origin", "acknowledge"])?;
    let selector = selector(&fields, word)?;
    let is_soft = flag(&fields, "soft")?;
    let grace_ms = number(&fields, "grace_s", PURGE_GRACE_MAX.as_secs())?.map(|seconds| seconds * 1_000);
    if grace_ms.is_some() && !is_soft {
        return Err("`grace_s` says how long what is stale may be served: it stands beside \"soft\": true".to_owned());
    }
    if is_soft && word == "group" {
        return Err("a group is invalidated for good: there is no soft way (RFC 9875)".to_owned());
    }
    let is_dry = flag(&fields, "dry_run")?;
    let samples_max = samples(&fields, is_dry)?;
    let acknowledge = acknowledge(&fields)?;
    let order = PurgeOrder { selector, soft: is_soft.then_some(Softness { grace_ms }), is_dry, samples_max };
    Ok(PurgeAsked { word, order, acknowledge })
}

fn acknowledge(fields: &Map<String, Value>) -> Result<Option<Acknowledge>, String> {
    let Some(value) = fields.get("acknowledge") else { return Ok(None) };
    let word = value.as_str().and_then(Acknowledge::of);
    word.map(Some).ok_or_else(|| "`acknowledge` is \"local\", \"logged\" or \"applied\"".to_owned())
}

pub fn refresh(body: &[u8]) -> Result<RefreshOrder, String> {
    let fields = object(body)?;
    let word = selector_word(&fields)?;
    if matches!(word, "group" | "all") {
        return Err(format!("`{word}` cannot be refreshed: name a url, urls, prefix, host, glob, regex, ban or tags"));
    }
    only(&fields, word, &["rate", "dry_run", "samples"])?;
    let what = ToFetch::Stored(selector(&fields, word)?);
    let is_dry = flag(&fields, "dry_run")?;
    Ok(RefreshOrder { what, rate: rate(&fields)?, is_dry, samples_max: samples(&fields, is_dry)? })
}

pub fn warm(body: &[u8]) -> Result<RefreshOrder, String> {
    let fields = object(body)?;
    let what = match (fields.get("urls"), fields.get("sitemap")) {
        (Some(urls), None) => {
            only(&fields, "urls", &["rate"])?;
            let urls = texts("urls", urls, WARM_URLS_MAX)?;
            urls.iter().try_for_each(|url| head_for(url).map(drop))?;
            ToFetch::Urls(urls)
        }
        (None, Some(sitemap)) => {
            only(&fields, "sitemap", &["rate"])?;
            let url = text("sitemap", sitemap)?;
            head_for(&url)?;
            ToFetch::Sitemap(url)
        }
        _ => {
            return Err(
                "write what is to be fetched: {\"urls\": [\"http://…\"]} or {\"sitemap\": \"http://…\"}".to_owned()
            );
        }
    };
    Ok(RefreshOrder { what, rate: rate(&fields)?, is_dry: false, samples_max: 0 })
}

/// The scheme of a URL and the head of a GET for it.
pub fn head_for(url: &str) -> Result<(Scheme, Vec<u8>), String> {
    head_of(url, "GET", &[]).map_err(|why| format!("`{url}`: {why}"))
}

fn object(body: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("the body is a JSON object, such as {\"url\": \"http://www.example.org/\"}".to_owned()),
        Err(why) => Err(format!("the body is no JSON: {why}")),
    }
}

fn selector_word(fields: &Map<String, Value>) -> Result<&'static str, String> {
    let mut given = SELECTORS.into_iter().filter(|word| fields.contains_key(*word));
    match (given.next(), given.next()) {
        (Some(word), None) => Ok(word),
        (None, _) => Err(format!("say what is meant, by one of: {}", SELECTORS.join(", "))),
        (Some(one), Some(other)) => Err(format!("`{one}` and `{other}` both say what is meant: write one of them")),
    }
}

fn only(fields: &Map<String, Value>, word: &str, known: &[&str]) -> Result<(), String> {
    match fields.keys().find(|key| *key != word && !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(format!("`{key}` is not known here; beside `{word}` there are: {}", known.join(", "))),
    }
}

fn selector(fields: &Map<String, Value>, word: &str) -> Result<PurgeSelector, String> {
    let value = &fields[word];
    if word != "group" && fields.contains_key("origin") {
        return Err("`origin` stands beside `group` alone: it says whose group it is".to_owned());
    }
    Ok(match word {
        "url" => PurgeSelector::Urls(vec![ordered(text(word, value)?)?]),
        "urls" => {
            let urls = texts(word, value, PURGE_URLS_MAX)?;
            PurgeSelector::Urls(urls.into_iter().map(ordered).collect::<Result<_, _>>()?)
        }
        "prefix" => PurgeSelector::Prefix(text(word, value)?),
        "host" => PurgeSelector::Host(text(word, value)?),
        "glob" => PurgeSelector::Glob(text(word, value)?),
        "regex" => PurgeSelector::Regex(text(word, value)?),
        "ban" => PurgeSelector::Ban(text(word, value)?),
        "tags" => PurgeSelector::Tags(texts(word, value, PURGE_TAGS_MAX)?),
        "group" => {
            let origin =
                fields.get("origin").ok_or("a group is an origin's: write \"origin\": \"http://www.example.org\"")?;
            let (scheme, head) = head_for(&text("origin", origin)?)?;
            PurgeSelector::Group { name: text(word, value)?, head, scheme }
        }
        _ if *value == Value::Bool(true) => PurgeSelector::All,
        _ => return Err("write \"all\": true".to_owned()),
    })
}

fn ordered(url: String) -> Result<OrderedUrl, String> {
    let (scheme, head) = head_for(&url)?;
    Ok(OrderedUrl { url, head, scheme })
}

fn text(key: &str, value: &Value) -> Result<String, String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned).ok_or_else(|| format!("`{key}` is a text"))
}

fn texts(key: &str, value: &Value, max: usize) -> Result<Vec<String>, String> {
    let list = value.as_array().filter(|list| !list.is_empty()).ok_or_else(|| format!("`{key}` is a list of texts"))?;
    if list.len() > max {
        return Err(format!("`{key}` has {} texts, and takes {max} at a time", list.len()));
    }
    list.iter().map(|value| text(key, value).map_err(|_| format!("`{key}` is a list of texts"))).collect()
}

fn flag(fields: &Map<String, Value>, key: &str) -> Result<bool, String> {
    match fields.get(key) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(format!("`{key}` is true or false")),
    }
}

fn number(fields: &Map<String, Value>, key: &str, max: u64) -> Result<Option<u64>, String> {
    let Some(value) = fields.get(key) else { return Ok(None) };
    value.as_u64().filter(|number| *number <= max).map(Some).ok_or_else(|| format!("`{key}` is a number up to {max}"))
}

fn samples(fields: &Map<String, Value>, is_dry: bool) -> Result<usize, String> {
    let given = number(fields, "samples", PURGE_SAMPLES_MAX as u64)?;
    Ok(given.map_or(if is_dry { PURGE_SAMPLES } else { 0 }, |samples| samples as usize))
}

fn rate(fields: &Map<String, Value>) -> Result<u32, String> {
    match number(fields, "rate", u64::from(REFRESH_RATE_MAX))? {
        None => Ok(REFRESH_RATE),
        Some(0) => Err("`rate` is how many are asked for in a second, 1 at least".to_owned()),
        Some(rate) => Ok(rate as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_refused(read: impl Fn(&[u8]) -> Option<String>, body: &str, part: &str) {
        let why = read(body.as_bytes()).unwrap_or_else(|| panic!("{body} is taken"));
        assert!(why.contains(part), "{body}: {why}");
    }

    #[test]
    fn a_body_says_what_is_meant_and_how() {
        let read = |body: &str| purge(body.as_bytes()).unwrap_or_else(|why| panic!("{body}: {why}"));
        let PurgeAsked { word, order, acknowledge } = read(r#"{"url": "http://a.test/x?y"}"#);
        assert_eq!(acknowledge, None);
        let head = b"GET /x?y HTTP/1.1\r\nHost: a.test\r\n\r\n".to_vec();
        assert_eq!(
            (word, &order.selector),
            (
                "url",
                &PurgeSelector::Urls(vec![OrderedUrl {
                    url: "http://a.test/x?y".to_owned(),
                    head,
                    scheme: Scheme::Http
                }])
            )
        );
        assert_eq!((order.soft, order.is_dry, order.samples_max), (None, false, 0));
        let order = read(r#"{"tags": ["a", "b"], "soft": true, "grace_s": 60, "dry_run": true}"#).order;
        assert_eq!(order.selector, PurgeSelector::Tags(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!((order.soft, order.is_dry), (Some(Softness { grace_ms: Some(60_000) }), true));
        assert_eq!(order.samples_max, PURGE_SAMPLES);
        assert_eq!(read(r#"{"all": true, "samples": 3}"#).order.samples_max, 3);
        assert!(matches!(
            read(r#"{"group": "g", "origin": "https://a.test"}"#).order.selector,
            PurgeSelector::Group { .. }
        ));
        let applied = read(r#"{"url": "http://a.test/", "acknowledge": "applied"}"#);
        assert_eq!(applied.acknowledge, Some(Acknowledge::Applied));
        let order = refresh(br#"{"prefix": "a.test/", "rate": 5}"#).unwrap();
        assert_eq!((order.what, order.rate), (ToFetch::Stored(PurgeSelector::Prefix("a.test/".to_owned())), 5));
        let order = warm(br#"{"urls": ["http://a.test/"]}"#).unwrap();
        assert_eq!((order.what, order.rate), (ToFetch::Urls(vec!["http://a.test/".to_owned()]), REFRESH_RATE));
    }

    #[test]
    fn what_is_wrong_is_said_by_name() {
        let purge = |body: &[u8]| super::purge(body).err();
        let many = format!("{{\"tags\": [{}\"x\"]}}", "\"x\",".repeat(PURGE_TAGS_MAX));
        for (body, part) in [
            ("", "no JSON"),
            ("{\"url\": ", "no JSON"),
            ("[]", "a JSON object"),
            ("{}", "one of: url, urls, prefix"),
            (r#"{"dry_run": true}"#, "one of: url, urls, prefix"),
            (r#"{"url": "http://a/", "all": true}"#, "`url` and `all` both"),
            (r#"{"url": 7}"#, "`url` is a text"),
            (r#"{"all": true, "acknowledge": "all"}"#, "\"local\", \"logged\" or \"applied\""),
            (r#"{"all": true, "acknowledge": true}"#, "\"local\", \"logged\" or \"applied\""),
            (r#"{"url": ""}"#, "`url` is a text"),
            (r#"{"url": "a.test/"}"#, "http:// or https://"),
            (r#"{"url": "http://a.test/\r\nX: y"}"#, "%XX"),
            (r#"{"urls": []}"#, "`urls` is a list of texts"),
            (r#"{"urls": ["http://a/", "a"]}"#, "http:// or https://"),
            (r#"{"tags": []}"#, "`tags` is a list of texts"),
            (r#"{"tags": "a"}"#, "`tags` is a list of texts"),
            (r#"{"tags": [1]}"#, "`tags` is a list of texts"),
            (&many, "takes 256 at a time"),
            (r#"{"group": "a"}"#, "a group is an origin's"),
            (r#"{"group": "a", "origin": "http://a", "soft": true}"#, "no soft way"),
            (r#"{"host": "a", "origin": "http://a"}"#, "beside `group` alone"),
            (r#"{"all": 1}"#, "write \"all\": true"),
            (r#"{"all": false}"#, "write \"all\": true"),
            (r#"{"all": true, "soft": "yes"}"#, "`soft` is true or false"),
            (r#"{"all": true, "grace_s": 5}"#, "beside \"soft\": true"),
            (r#"{"all": true, "soft": true, "grace_s": -5}"#, "`grace_s` is a number"),
            (r#"{"all": true, "samples": 101}"#, "`samples` is a number up to 100"),
            (r#"{"all": true, "dryrun": true}"#, "`dryrun` is not known here"),
            (r#"{"all": true, "rate": 5}"#, "`rate` is not known here"),
        ] {
            check_refused(purge, body, part);
        }
        let refresh = |body: &[u8]| super::refresh(body).err();
        check_refused(refresh, r#"{"all": true}"#, "cannot be refreshed");
        check_refused(refresh, r#"{"host": "a", "rate": 0}"#, "1 at least");
        check_refused(refresh, r#"{"host": "a", "rate": 1001}"#, "up to 1000");
        let warm = |body: &[u8]| super::warm(body).err();
        check_refused(warm, "{}", "what is to be fetched");
        check_refused(warm, r#"{"urls": ["ftp://a"]}"#, "`ftp://a`");
        check_refused(warm, r#"{"urls": ["http://a/"], "sitemap": "http://a/"}"#, "what is to be fetched");
    }
}
