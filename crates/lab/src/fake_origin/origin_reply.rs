//! From a plan and a request to what is sent: the status, the head, and which bytes of the body.
//!
//! Conditions and one range are answered as RFC 9110 says; an answer that a fault has hit is sent whole, so that
//! the fault is what is seen. It decides and writes text; nothing here waits or sends.

use std::time::UNIX_EPOCH;

use message::{FieldName, FieldsView, Method, Status, Version, list_members};

use crate::constructed_body::BodyRule;
use crate::fake_origin::origin_plan::{Etag, Faults, Garble, Plan};
use crate::usual_fields::{LAST_MODIFIED, LAST_MODIFIED_SECONDS, etag};

/// What the request says beside its target.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) version: Version,
    /// May another request follow, as far as the client is concerned?
    pub(crate) persistent: bool,
    pub(crate) conditions: Option<Box<Conditions>>,
}

/// Fields that may make the answer another one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    if_none_match: Option<String>,
    if_modified_since: Option<String>,
    range: Option<String>,
    if_range: Option<String>,
}

impl Conditions {
    pub(crate) fn of_view(fields: FieldsView<'_>) -> Option<Box<Conditions>> {
        use FieldName::{IfModifiedSince, IfNoneMatch, IfRange, Range};
        let some = |name| matches!(name, IfNoneMatch | IfModifiedSince | IfRange | Range);
        if !fields.names().any(some) {
            return None;
        }
        Conditions::of([IfNoneMatch, IfModifiedSince, Range, IfRange].map(|name| fields.get(name)))
    }

    /// Of the values of If-None-Match, If-Modified-Since, Range and If-Range.
    pub(crate) fn of(values: [Option<&[u8]>; 4]) -> Option<Box<Conditions>> {
        if values.iter().all(Option::is_none) {
            return None;
        }
        let [if_none_match, if_modified_since, range, if_range] =
            values.map(|value| value.map(|value| String::from_utf8_lossy(value).into_owned()));
        Some(Box::new(Conditions { if_none_match, if_modified_since, range, if_range }))
    }
}

/// What dice and counters have said for this one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    /// Of the whole body.
    pub(crate) size: u64,
    pub(crate) rule: BodyRule,
    /// An error instead of the answer.
    pub(crate) error: Option<u16>,
    pub(crate) faults: Faults,
}

#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// All but the date and the empty line, which come behind it.
    pub(crate) head: Vec<u8>,
    pub(crate) rule: BodyRule,
    /// HEAD, 204, 304: the head is all, whatever it announces.
    pub(crate) bodiless: bool,
    /// The bytes of the body that are sent.
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) chunked: bool,
    pub(crate) closes: bool,
    pub(crate) faults: Faults,
}

impl Reply {
    pub(crate) fn new(plan: &Plan, asked: &Asked, drawn: &Drawn) -> Reply {
        let size = drawn.size;
        let status = drawn.error.unwrap_or(plan.status);
        let (status, from, to) = match (&asked.conditions, asked.method) {
            (Some(conditions), Method::Get | Method::Head) if status == 200 && drawn.faults == Faults::default() => {
                conditions.apply(plan, drawn, asked.method)
            }
            _ => (status, 0, size),
        };
        let is_unframed = matches!(status, 204 | 304);
        // HTTP/1.0 has no chunks: the end of the connection is the end of the body.
        let until_close = plan.chunked && !is_unframed && asked.version == Version::Http10;
        let chunked = plan.chunked && !is_unframed && !until_close;
        let closes = plan.closes || until_close || !(asked.persistent || plan.keeps);
        let mut head = format!("HTTP/1.1 {status} {}\r\n", Status(status).reason()).into_bytes();
        append_entity_fields(&mut head, plan, drawn, status);
        match status {
            206 => head.extend_from_slice(format!("Content-Range: bytes {from}-{}/{size}\r\n", to - 1).as_bytes()),
            416 => head.extend_from_slice(format!("Content-Range: bytes */{size}\r\n").as_bytes()),
            _ => {}
        }
        let connection = match (closes, asked.version) {
            (true, _) => "Connection: close\r\n",
            (false, Version::Http10) => "Connection: keep-alive\r\n",
            (false, _) => "",
        };
        head.extend_from_slice(connection.as_bytes());
        let announced = (to - from).saturating_add_signed(drawn.faults.lie);
        if chunked {
            head.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        } else if !is_unframed && !until_close {
            head.extend_from_slice(format!("Content-Length: {announced}\r\n").as_bytes());
        }
        if let Some(garble) = drawn.faults.garble {
            spoil(&mut head, garble, announced);
        }
        let bodiless = is_unframed || asked.method == Method::Head;
        let to = if bodiless { from } else { to };
        Reply { status, head, rule: drawn.rule, bodiless, from, to, chunked, closes, faults: drawn.faults }
    }

    /// The head's fields as HTTP/2 has them: names and values, without those that speak of a connection (RFC 9113 §8.2.2).
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let lines = self.head.split(|&b| b == b'\n').skip(1);
        let fields = lines.filter_map(|line| {
            let colon = line.iter().position(|&b| b == b':')?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        });
        fields.filter(|(name, _)| *name != b"Connection" && *name != b"Transfer-Encoding")
    }
}

/// What is said of the body, whoever asked for it.
pub(crate) fn append_entity_fields(out: &mut Vec<u8>, plan: &Plan, drawn: &Drawn, status: u16) {
    let tag = etag(drawn.rule.seed(), drawn.size);
    let mut text = String::with_capacity(256);
    if !matches!(status, 204 | 304) {
        text.push_str("Content-Type: text/html; charset=utf-8\r\n");
    }
    // Nobody asked for an error that dice have made to be remembered.
    match plan.stored && drawn.error.is_none() {
        true => text.push_str(&format!("Cache-Control: max-age={}\r\n", plan.max_age)),
        false => text.push_str("Cache-Control: no-store\r\n"),
    }
    match plan.etag {
        Etag::Strong => text.push_str(&format!("ETag: {tag}\r\n")),
        Etag::Weak => text.push_str(&format!("ETag: W/{tag}\r\n")),
        Etag::None => {}
    }
    if plan.modified {
        text.push_str(&format!("Last-Modified: {LAST_MODIFIED}\r\n"));
    }
    if let Some(name) = &plan.vary {
        text.push_str(&format!("Vary: {name}\r\n"));
    }
    out.extend_from_slice(text.as_bytes());
}

impl Conditions {
    /// The status, and the bytes of the body that belong to it (RFC 9110 §13.2.2).
    fn apply(&self, plan: &Plan, drawn: &Drawn, method: Method) -> (u16, u64, u64) {
        let whole = (200, 0, drawn.size);
        let tag = etag(drawn.rule.seed(), drawn.size);
        let unchanged = match (&self.if_none_match, &self.if_modified_since) {
            (Some(tags), _) => plan.etag != Etag::None && names_tag(tags, &tag),
            (None, Some(date)) => plan.modified && is_unchanged_since(date),
            (None, None) => false,
        };
        if unchanged {
            return (304, 0, 0);
        }
        let Some(range) = self.range.as_deref().filter(|_| method == Method::Get) else { return whole };
        let applies = self.if_range.as_ref().is_none_or(|validator| match validator.as_bytes().first() {
            Some(b'"') => plan.etag == Etag::Strong && *validator == tag,
            _ => plan.modified && validator == LAST_MODIFIED,
        });
        match read_range(range, drawn.size) {
            Some(Ok((from, to))) if applies => (206, from, to),
            Some(Err(())) if applies => (416, 0, 0),
            _ => whole,
        }
    }
}

/// RFC 9110 §13.1.2: the comparison is the weak one.
fn names_tag(tags: &str, tag: &str) -> bool {
    let same = |member: &[u8]| member == b"*" || member.strip_prefix(b"W/").unwrap_or(member) == tag.as_bytes();
    list_members(tags.as_bytes()).any(same)
}

fn is_unchanged_since(date: &str) -> bool {
    let since = httpdate::parse_http_date(date).ok().and_then(|date| date.duration_since(UNIX_EPOCH).ok());
    since.is_some_and(|since| since.as_secs() >= LAST_MODIFIED_SECONDS)
}

/// One range of bytes; `Err`: none of it is there. `None`: of another form, so ignored (RFC 9110 §14.2).
fn read_range(text: &str, size: u64) -> Option<Result<(u64, u64), ()>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten();
    let (from, to) = match (first, last) {
        ("", suffix) => (size.saturating_sub(number(suffix)?), size),
        (first, "") => (number(first)?, size),
        (first, last) => (number(first)?, number(last)?.checked_add(1).filter(|&to| to > number(first).unwrap_or(0))?),
    };
    Some(if from < size { Ok((from, to.min(size))) } else { Err(()) })
}

fn spoil(head: &mut Vec<u8>, garble: Garble, announced: u64) {
    let line_end = head.iter().position(|&b| b == b'\n').map_or(0, |at| at + 1);
    match garble {
        Garble::Line => drop(head.splice(..line_end, *b"this is no HTTP\r\n")),
        Garble::Field => drop(head.splice(line_end..line_end, *b"a line without a colon\r\n")),
        Garble::Nul => drop(head.splice(line_end..line_end, *b"X-Nul: a\0b\r\n")),
        Garble::Lengths => {
            let two = format!("Content-Length: {}\r\nContent-Length: {announced}\r\n", announced + 1);
            head.extend_from_slice(two.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Option<Result<(u64, u64), ()>> {
        read_range(text, 100)
    }

    #[test]
    fn ranges_are_cut_out_of_the_body() {
        assert_eq!(range("bytes=0-9"), Some(Ok((0, 10))));
        assert_eq!(range("bytes=90-"), Some(Ok((90, 100))));
        assert_eq!(range("bytes=-10"), Some(Ok((90, 100))));
        assert_eq!(range("bytes=-500"), Some(Ok((0, 100))));
        assert_eq!(range("bytes=50-500"), Some(Ok((50, 100))));
        assert_eq!(range("bytes=100-"), Some(Err(())));
        assert_eq!(range("bytes=-0"), Some(Err(())));
        for other in ["bytes=5-4", "bytes=x-", "lines=0-1", "bytes=0-1,5-6", "bytes=-"] {
            assert!(!matches!(range(other), Some(Ok(_))), "{other}");
        }
    }

    #[test]
    fn tags_are_compared_weakly() {
        assert!(names_tag("*", "\"a\"") && names_tag("\"x\", W/\"a\"", "\"a\""));
        assert!(!names_tag("\"x\"", "\"a\"") && !names_tag("", "\"a\""));
        assert!(is_unchanged_since(LAST_MODIFIED) && !is_unchanged_since("Sun, 31 Dec 2023 23:59:59 GMT"));
        assert!(!is_unchanged_since("yesterday"));
    }
}
