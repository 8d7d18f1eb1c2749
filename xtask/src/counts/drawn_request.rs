//! A random request of a run: what a client may ask for, in a form that either protocol can send. Its User-Agent is its number, by which the
//! access log, the events and the origins know it.

use super::origin_manner::OriginManner;
use crate::dice::Dice;

/// Few are asked for often.
const PAGES: u64 = 60;
const BODY_BYTES_MAX: u64 = 3_000;

/// One request, before it is sent.
#[derive(Clone, Debug)]
pub struct DrawnRequest {
    pub number: String,
    pub method: &'static str,
    pub target: String,
    /// Those that say something of their own.
    pub fields: Vec<(&'static str, &'static str)>,
    pub body: Vec<u8>,
    /// Its length is not said first.
    pub is_chunked: bool,
}

const METHODS: [(&str, u64); 7] =
    [("GET", 80), ("HEAD", 7), ("POST", 5), ("PUT", 1), ("DELETE", 1), ("OPTIONS", 1), ("PURGE", 3)];

/// Each with how many of a thousand requests have it.
const FIELDS: [(&str, &str, u64); 15] = [
    ("If-None-Match", "\"0\"", 70),
    ("If-None-Match", "\"never\"", 20),
    ("If-Match", "\"never\"", 8),
    ("If-Modified-Since", "Mon, 23 Nov 2026 07:00:00 GMT", 15),
    ("Range", "bytes=0-9", 40),
    ("Range", "bytes=100-", 15),
    ("Range", "bytes=0-0,5-9", 12),
    ("Range", "bytes=9000000-", 10),
    ("Cookie", "a=b", 30),
    ("Authorization", "Basic YTpi", 20),
    ("Cache-Control", "no-cache", 20),
    ("Cache-Control", "only-if-cached", 15),
    ("Accept-Encoding", "gzip, br", 200),
    ("X-Kind", "one", 200),
    ("X-Kind", "two", 200),
];

impl DrawnRequest {
    pub fn draw(number: u64, dice: &mut Dice) -> DrawnRequest {
        let method = drawn_method(dice);
        let target = drawn_target(dice);
        let mut fields: Vec<(&'static str, &'static str)> = Vec::new();
        for (name, value, share) in FIELDS {
            let is_said = fields.iter().any(|(known, _)| *known == name);
            if dice.below(1_000) < share && !is_said {
                fields.push((name, value));
            }
        }
        let has_body = matches!(method, "POST" | "PUT");
        let body = if has_body { vec![b'x'; dice.below(BODY_BYTES_MAX) as usize] } else { Vec::new() };
        let is_chunked = has_body && dice.below(3) == 0;
        DrawnRequest { number: format!("n{number}"), method, target, fields, body, is_chunked }
    }

    /// As HTTP/1 has it. `is_last`: it says that nothing more is asked.
    pub fn text(&self, version: &str, is_last: bool) -> Vec<u8> {
        let mut text = format!(
            "{} {} HTTP/{version}\r\nHost: a.test\r\nUser-Agent: {}\r\n",
            self.method, self.target, self.number
        );
        for (name, value) in &self.fields {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if is_last {
            text.push_str("Connection: close\r\n");
        }
        let chunked = self.is_chunked && version == "1.1";
        if chunked {
            text.push_str("Transfer-Encoding: chunked\r\n");
        } else if matches!(self.method, "POST" | "PUT") {
            text.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        let mut bytes = (text + "\r\n").into_bytes();
        match chunked {
            true => {
                if !self.body.is_empty() {
                    bytes.extend_from_slice(format!("{:x}\r\n", self.body.len()).as_bytes());
                    bytes.extend_from_slice(&self.body);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(b"0\r\n\r\n");
            }
            false => bytes.extend_from_slice(&self.body),
        }
        bytes
    }
}

fn drawn_method(dice: &mut Dice) -> &'static str {
    let all: u64 = METHODS.iter().map(|(_, share)| share).sum();
    let mut at = dice.below(all);
    for (method, share) in METHODS {
        if at < share {
            return method;
        }
        at -= share;
    }
    unreachable!("the shares make up the sum")
}

fn drawn_target(dice: &mut Dice) -> String {
    let word = OriginManner::drawn(dice);
    let page = if dice.below(8) == 0 { PAGES + dice.below(100_000) } else { dice.often_small(PAGES) };
    match dice.below(300) {
        0 => "/silent".to_owned(),
        1..=4 => format!("/down/{page}"),
        5..=30 => format!("/other/{word}/{page}"),
        31..=60 => format!("/{word}/{page}?utm_source=a&b={}", dice.below(2)),
        _ => format!("/{word}/{page}"),
    }
}

/// What is no request, each by itself.
pub const MALFORMED: [&str; 9] = [
    "GET /a HTTP/1.1\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "GET /a HTTP/9.9\r\nHost: a\r\n\r\n",
    "it is no request\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: a\r\nno field\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    "GET  /a HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost : a\r\n\r\n",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_framed_as_its_version_allows() {
        let request = DrawnRequest {
            number: "n7".to_owned(),
            method: "POST",
            target: "/a".to_owned(),
            fields: vec![("Cookie", "a=b")],
            body: b"abc".to_vec(),
            is_chunked: true,
        };
        let text = |version, is_last| String::from_utf8(request.text(version, is_last)).expect("it is text");
        let head = "POST /a HTTP/1.1\r\nHost: a.test\r\nUser-Agent: n7\r\nCookie: a=b\r\n";
        assert_eq!(text("1.1", false), format!("{head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"));
        assert!(text("1.0", true).ends_with("Connection: close\r\nContent-Length: 3\r\n\r\nabc"));
    }

    #[test]
    fn no_field_is_said_twice() {
        let mut dice = Dice::of(3);
        for number in 0..2_000 {
            let names: Vec<_> = DrawnRequest::draw(number, &mut dice).fields.iter().map(|(name, _)| *name).collect();
            let unique: std::collections::BTreeSet<_> = names.iter().collect();
            assert_eq!(unique.len(), names.len());
        }
    }
}
