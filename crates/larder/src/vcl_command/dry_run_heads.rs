//! Requests and responses as people type them for a dry run: in one line (`GET /x Host: a Cookie: b=c`,
//! `301 Moved Location: /y`), or a request as it goes over the wire, in a file.
//!
//! In a line a word that ends with a colon begins the next field, so that no quoting is needed.

use proxy::dry_runner::{AnswerParts, MockedAnswer};

/// Name and value.
pub type FieldLine = (String, String);

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub method: String,
    pub url: String,
    pub version: String,
    pub fields: Vec<FieldLine>,
    pub body: Vec<u8>,
}

impl Asked {
    /// `METHOD URL [HTTP/1.1] [Name: value]…`; a URL alone is asked with GET.
    pub fn parse(text: &str) -> Result<Asked, String> {
        let (words, fields) = split(text)?;
        Asked::of_line(&words, fields, Vec::new())
            .ok_or_else(|| format!("`{text}` is no request: write METHOD URL and its fields, such as `GET /x Host: a`"))
    }

    /// A head as it goes over the wire, and a body behind an empty line if there is one. Line ends may be bare.
    pub fn parse_wire(bytes: &[u8]) -> Result<Asked, String> {
        let (head, body) =
            match find(bytes, b"\r\n\r\n").map(|at| (at, 4)).or_else(|| find(bytes, b"\n\n").map(|at| (at, 2))) {
                Some((at, length)) => (&bytes[..at], &bytes[at + length..]),
                None => (bytes, &b""[..]),
            };
        let head = std::str::from_utf8(head).map_err(|_| "the head is not text".to_owned())?;
        let mut lines = head.lines();
        let line = lines.next().unwrap_or_default();
        let fields = lines.filter(|line| !line.is_empty()).map(parse_field).collect::<Result<Vec<_>, _>>()?;
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        Asked::of_line(&words, fields, body.to_vec())
            .ok_or_else(|| format!("`{line}` is no request line such as `GET /x HTTP/1.1`"))
    }

    fn of_line(words: &[&str], fields: Vec<FieldLine>, body: Vec<u8>) -> Option<Asked> {
        let (version, words) = match words {
            [words @ .., version] if version.starts_with("HTTP/") => (*version, words),
            words => ("HTTP/1.1", words),
        };
        let (method, url) = match words {
            [url] if url.starts_with('/') => ("GET", *url),
            [method, url] => (*method, *url),
            _ => return None,
        };
        Some(Asked { method: method.to_owned(), url: url.to_owned(), version: version.to_owned(), fields, body })
    }

    /// As it goes over the wire. What has a body says how long it is, if its author did not.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = format!("{} {} {}\r\n", self.method, self.url, self.version);
        for (name, value) in &self.fields {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
        let is_framed = |(name, _): &FieldLine| {
            ["content-length", "transfer-encoding"].iter().any(|own| name.eq_ignore_ascii_case(own))
        };
        if !self.body.is_empty() && !self.fields.iter().any(is_framed) {
            out.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        let mut out = out.into_bytes();
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.body);
        out
    }
}

/// What a backend answers: `STATUS [reason] [Name: value]…`, or `fails` for one where nobody listens.
pub fn parse_answer(text: &str) -> Result<MockedAnswer, String> {
    if text.trim() == "fails" {
        return Ok(MockedAnswer::Refused);
    }
    let wrong = || {
        format!(
            "`{text}` is no answer: write STATUS and its fields, such as `200 Cache-Control: max-age=60`, or `fails`"
        )
    };
    let (words, fields) = split(text)?;
    let status = words.first().and_then(|word| word.parse().ok()).filter(|status| (200..=999).contains(status));
    let status = status.ok_or_else(wrong)?;
    let reason = match words.len() {
        1 => message::Status(status).reason().to_owned(),
        _ => words[1..].join(" "),
    };
    Ok(MockedAnswer::Given(AnswerParts { status, reason, fields, ..AnswerParts::default() }))
}

/// `Name: value`, for one field by itself.
pub fn parse_field(text: &str) -> Result<FieldLine, String> {
    let (name, value) = text.split_once(':').ok_or_else(|| format!("`{text}` is no field such as `Cookie: a=b`"))?;
    if !is_name(name) {
        return Err(format!("`{name}` is no name of a field"));
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}

/// The words before the first field, and the fields.
fn split(text: &str) -> Result<(Vec<&str>, Vec<FieldLine>), String> {
    let mut words = Vec::new();
    let mut fields: Vec<FieldLine> = Vec::new();
    for word in text.split_ascii_whitespace() {
        if let Some(name) = word.strip_suffix(':').filter(|name| is_name(name)) {
            fields.push((name.to_owned(), String::new()));
        } else if let Some((_, value)) = fields.last_mut() {
            if !value.is_empty() {
                value.push(' ');
            }
            value.push_str(word);
        } else {
            words.push(word);
        }
    }
    if text.bytes().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace()) {
        return Err("a control character cannot stand in a head".to_owned());
    }
    Ok((words, fields))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(asked: Result<Asked, String>) -> String {
        asked.map_or_else(|why| why, |asked| String::from_utf8(asked.bytes()).unwrap().replace("\r\n", "|"))
    }

    #[test]
    fn requests_are_read_from_one_line() {
        let check = |text: &str, expect: &str| assert_eq!(shown(Asked::parse(text)), expect, "{text}");
        check("GET /x Host: a", "GET /x HTTP/1.1|Host: a||");
        check("/x", "GET /x HTTP/1.1||");
        check("POST /x HTTP/1.0 A: b c: d E: f", "POST /x HTTP/1.0|A: b|c: d|E: f||");
        check("GET http://a:80/ B: c d  e", "GET http://a:80/ HTTP/1.1|B: c d e||");
        check("GET", "`GET` is no request: write METHOD URL and its fields, such as `GET /x Host: a`");
        check("GET /\u{1} Host: a", "a control character cannot stand in a head");
    }

    #[test]
    fn requests_are_read_as_they_go_over_the_wire() {
        let check = |text: &str, expect: &str| assert_eq!(shown(Asked::parse_wire(text.as_bytes())), expect, "{text}");
        check("GET /x HTTP/1.1\r\nHost: a\r\n\r\n", "GET /x HTTP/1.1|Host: a||");
        check("GET /x HTTP/1.1\nHost: a", "GET /x HTTP/1.1|Host: a||");
        check("POST / HTTP/1.1\nHost: a\n\nx=1", "POST / HTTP/1.1|Host: a|Content-Length: 3||x=1");
        check("POST / HTTP/1.1\nContent-Length: 9\n\nx=1", "POST / HTTP/1.1|Content-Length: 9||x=1");
        check("GET / HTTP/1.1\nHost", "`Host` is no field such as `Cookie: a=b`");
        check("", "`` is no request line such as `GET /x HTTP/1.1`");
    }

    #[test]
    fn answers_are_read_from_one_line() {
        let check = |text: &str, expect: &str| {
            let shown = match parse_answer(text) {
                Ok(MockedAnswer::Given(answer)) => format!("{} {} {:?}", answer.status, answer.reason, answer.fields),
                Ok(MockedAnswer::Refused) => "refused".to_owned(),
                Err(why) => why,
            };
            assert!(shown.starts_with(expect), "{text}: {shown}");
        };
        check("200 Cache-Control: max-age=60, private", "200 OK [(\"Cache-Control\", \"max-age=60, private\")]");
        check("301 Moved Away Location: /y", "301 Moved Away [(\"Location\", \"/y\")]");
        check("fails", "refused");
        check("x", "`x` is no answer: write STATUS");
        check("103", "`103` is no answer");
    }
}
