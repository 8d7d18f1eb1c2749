//! What a random request may ask of the origin, by words of its query (`/a?ma=10&et=1`), so that what is answered follows
//! from what the cache asked for, and from how often. Both programs under test have an origin of their own that counts.
//!
//! | word | what comes |
//! |---|---|
//! | `s=404`, `then=503` | this status; that one from the second request on |
//! | `len=3000` | so many bytes of body behind its first line |
//! | `f=chunked`, `close`, `cut`, `nothing` | how the body ends, by Content-Length otherwise; `cut` and `nothing` are failures |
//! | `ma=10`, `cc=private`, `ex=past` or `future`, `age=3` | max-age, Cache-Control, Expires, Age |
//! | `et=strong`, `weak` or `new`, `lm=1` | an ETag, `new` for each request another; Last-Modified. Conditions are answered |
//! | `v=X-A` or `any`, `thenv=X-A` | Vary; this one from the second request on |
//! | `sc=1`, `two=1`, `hop=1`, `loc=1` | Set-Cookie, one field in two lines, a field that Connection names, Location |
//! | `part=1` | Range is honoured |

use super::replayed_case::WELL;
use crate::plain_exchange::Message;
use crate::scenario_origin::{Answers, OriginAnswer, OriginFraming};

pub struct OriginWords;

const LAST_MODIFIED: &str = "Thu, 01 Jan 2015 00:00:00 GMT";
const PAST: &str = "Fri, 02 Jan 2015 00:00:00 GMT";
const FUTURE: &str = "Fri, 01 Jan 2100 00:00:00 GMT";

struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    fn of(target: &'a str) -> Words<'a> {
        Words(target.split_once('?').map_or("", |(_, query)| query))
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.split('&').filter_map(|word| word.split_once('=')).find(|(known, _)| *known == name).map(|(_, v)| v)
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.get(name).and_then(|text| text.parse().ok())
    }
}

impl Answers for OriginWords {
    fn answer(&self, request: &Message, mode: &str, count: usize) -> OriginAnswer {
        let method = request.start.split(' ').next().unwrap_or_default();
        let words = Words::of(request.second_word());
        let later = if count > 1 { words.number("then") } else { None };
        let status = match mode {
            WELL | "" => later.or(words.number("s")).filter(|status| (200..600).contains(status)).unwrap_or(200),
            _ => 503,
        };
        let validators = validators(&words, count);
        let mut fields = vec![format!("X-N: {count}")];
        fields.extend(validators.iter().map(|(name, value)| format!("{name}: {value}")));
        add_fields(&words, count, &mut fields);
        let mut body = format!("{method} {} #{count}\n", request.second_word()).into_bytes();
        body.extend((0..words.number("len").unwrap_or(0).min(400_000)).map(|at| b'a' + (at % 26) as u8));
        let mut framing = match (mode, words.get("f")) {
            ("gone", _) | (_, Some("nothing")) => OriginFraming::Nothing,
            (_, Some("chunked")) => OriginFraming::Chunked,
            (_, Some("close")) => OriginFraming::Close,
            (_, Some("cut")) => OriginFraming::Cut,
            _ => OriginFraming::Length,
        };
        let mut status = status;
        if status == 200 && is_confirmed(request, &validators) {
            status = 304;
        } else if status == 200
            && words.get("part").is_some()
            && let Some((from, to)) = request.field("range").and_then(|range| wanted(range, body.len()))
        {
            status = 206;
            fields.push(format!("Content-Range: bytes {from}-{to}/{}", body.len()));
            body = body[from..=to].to_vec();
        }
        if matches!(status, 204 | 304) && framing != OriginFraming::Nothing {
            framing = OriginFraming::Bodiless;
        }
        let head = format!("HTTP/1.1 {status} {}\r\n{}\r\n", reason(status), fields.join("\r\n"));
        OriginAnswer { head, body, framing, unrecorded: false }
    }
}

fn validators(words: &Words, count: usize) -> Vec<(&'static str, String)> {
    let tag = match words.get("et") {
        Some("strong") => Some("\"e\"".to_string()),
        Some("weak") => Some("W/\"e\"".to_string()),
        Some("new") => Some(format!("\"e{count}\"")),
        _ => None,
    };
    let modified = words.get("lm").map(|_| ("Last-Modified", LAST_MODIFIED.to_string()));
    tag.map(|tag| ("ETag", tag)).into_iter().chain(modified).collect()
}

fn is_confirmed(request: &Message, validators: &[(&str, String)]) -> bool {
    let has = |name: &str| validators.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    match request.field("if-none-match") {
        Some(tag) => has("ETag") == Some(tag),
        None => has("Last-Modified").is_some() && request.field("if-modified-since") == has("Last-Modified"),
    }
}

fn add_fields(words: &Words, count: usize, fields: &mut Vec<String>) {
    let control = words.number("ma").map(|seconds| format!("max-age={seconds}"));
    let control: Vec<String> = control.into_iter().chain(words.get("cc").map(str::to_string)).collect();
    if !control.is_empty() {
        fields.push(format!("Cache-Control: {}", control.join(", ")));
    }
    let mut add = |name: &str, value: Option<&str>| fields.extend(value.map(|value| format!("{name}: {value}")));
    add("Expires", words.get("ex").map(|when| if when == "past" { PAST } else { FUTURE }));
    add("Age", words.get("age"));
    add(
        "Vary",
        words
            .get("thenv")
            .filter(|_| count > 1)
            .or(words.get("v"))
            .map(|names| if names == "any" { "*" } else { names }),
    );
    add("Set-Cookie", words.get("sc").map(|_| "s=1; path=/"));
    add("X-Two", words.get("two").map(|_| "a"));
    add("X-Two", words.get("two").map(|_| "b, c"));
    add("Connection", words.get("hop").map(|_| "X-Hop"));
    add("X-Hop", words.get("hop").map(|_| "1"));
    add("Location", words.get("loc").map(|_| "/b"));
    add("Content-Type", Some("text/plain"));
}

/// One range, from there or so many at the end.
fn wanted(range: &str, length: usize) -> Option<(usize, usize)> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    let last = length.checked_sub(1)?;
    let (from, to) = match (from.parse::<usize>(), to.parse::<usize>()) {
        (Ok(from), Ok(to)) => (from, to.min(last)),
        (Ok(from), Err(_)) => (from, last),
        (Err(_), Ok(end)) => (length.saturating_sub(end), last),
        _ => return None,
    };
    (from <= to).then_some((from, to))
}

fn reason(status: usize) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        404 => "Not Found",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Said",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain_exchange::Unframed;

    fn check(request: &str, count: usize, head: &[&str], body_bytes: usize) {
        let text = format!("{request}\r\n\r\n").replace(" | ", "\r\n");
        let request = Message::read(&mut text.as_bytes(), Unframed::Empty, true).expect("readable").expect("there");
        let answer = OriginWords.answer(&request, WELL, count);
        assert!(head.iter().all(|words| answer.head.contains(words)), "{}", answer.head);
        assert_eq!(answer.body.len(), body_bytes, "{text}");
    }

    #[test]
    fn what_is_asked_for_is_answered() {
        check("GET /a?len=10 HTTP/1.1", 1, &["200 OK", "X-N: 1"], 27);
        check("GET /a?s=404&then=503 HTTP/1.1", 1, &["404 Not Found"], 25);
        check("GET /a?s=404&then=503 HTTP/1.1", 2, &["503 "], 25);
        check("GET /a?ma=10&cc=private HTTP/1.1", 1, &["Cache-Control: max-age=10, private"], 27);
        check("GET /a?et=weak HTTP/1.1 | If-None-Match: W/\"e\"", 1, &["304 ", "ETag: W/\"e\""], 18);
        check("GET /a?part=1 HTTP/1.1 | Range: bytes=1-3", 1, &["206 ", "Content-Range: bytes 1-3/17"], 3);
    }
}
