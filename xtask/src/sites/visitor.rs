//! Somebody who visits a site: a browser's cookies, what they may know, and what they do next.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::plain_exchange::{Message, Unframed};

/// The name under which the site is asked for.
pub const HOST: &str = "site.test";
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Under which its answers are counted.
    pub class: &'static str,
    pub method: &'static str,
    pub target: String,
    pub fields: Vec<(String, String)>,
    /// A form, or what `fields` say.
    pub body: Option<String>,
    /// It has a password in it: the answer may be its owner's without a session.
    pub has_password: bool,
}

impl Request {
    pub fn get(class: &'static str, target: impl Into<String>) -> Request {
        Request { class, method: "GET", target: target.into(), ..Request::default() }
    }

    pub fn form(class: &'static str, target: impl Into<String>, pairs: &[(&str, &str)]) -> Request {
        let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        Request::post(class, target, "application/x-www-form-urlencoded", pairs.join("&"))
    }

    /// What scripts and applications send.
    pub fn post(class: &'static str, target: impl Into<String>, kind: &str, body: impl Into<String>) -> Request {
        let fields = vec![("Content-Type".to_owned(), kind.to_owned())];
        Request { method: "POST", fields, body: Some(body.into()), ..Request::get(class, target) }
    }

    pub fn with(mut self, name: &str, value: impl Into<String>) -> Request {
        self.fields.push((name.to_owned(), value.into()));
        self
    }

    pub fn with_password(self) -> Request {
        Request { has_password: true, ..self }
    }

    /// Sends it to larder, which listens on a socket in this folder.
    pub fn send(&self, cookies: &str, folder: &Path) -> io::Result<Message> {
        let mut socket = UnixStream::connect(folder.join("l.sock"))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let mut head = format!("{} {} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n", self.method, self.target);
        let fields = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let cookies = (!cookies.is_empty()).then_some(("Cookie", cookies));
        for (name, value) in fields.chain(cookies) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let body = self.body.as_deref().unwrap_or_default();
        if self.method == "POST" {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        socket.write_all(format!("{head}\r\n{body}").as_bytes())?;
        let answer = Message::read(&mut BufReader::new(socket), Unframed::UntilEnd, self.method != "HEAD")?;
        answer.ok_or(io::ErrorKind::UnexpectedEof.into())
    }
}

#[derive(Debug, Default)]
pub struct Visitor {
    /// `None`: a stranger.
    pub name: Option<&'static str>,
    pub cookies: BTreeMap<String, String>,
    /// They have had a session.
    pub has_been_in: bool,
    /// Words that nobody else should see, and that this one may.
    pub knows: BTreeSet<String>,
    /// What pages told, by names that the site gives: nonces, links.
    pub kept: BTreeMap<&'static str, String>,
    /// What comes next, whatever else might be drawn: where a redirect leads.
    pub next: Vec<Request>,
}

impl Visitor {
    pub fn shown_name(&self) -> &'static str {
        self.name.unwrap_or("a stranger")
    }

    pub fn has_cookie(&self, part: &str) -> bool {
        self.cookies.keys().any(|name| name.contains(part))
    }

    /// Without cookies, and without what they may know by these: somebody else might come now.
    pub fn forget(&mut self) {
        self.cookies.clear();
        self.knows.clear();
        self.kept.clear();
        self.next.clear();
    }

    pub fn cookie_line(&self) -> String {
        let pairs: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("; ")
    }

    /// Takes in what an answer sets, as far as a test of privacy needs it: paths and lives are not looked at.
    pub fn take_cookies(&mut self, answer: &Message) {
        for (_, value) in answer.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie")) {
            let (pair, attributes) = value.split_once(';').unwrap_or((value, ""));
            let Some((name, value)) = pair.trim().split_once('=') else { continue };
            let is_gone = matches!(value, "" | "+" | "%20" | "deleted" | "-") || attributes.contains("Max-Age=0");
            match is_gone {
                true => drop(self.cookies.remove(name)),
                false => drop(self.cookies.insert(name.to_owned(), value.to_owned())),
            }
        }
    }
}

/// A value of a form or a query.
pub fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~') => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_come_and_go() {
        let mut visitor = Visitor::default();
        let mut check = |text: &str, expect: &str| {
            let text = format!("HTTP/1.1 200 OK\r\n{text}Content-Length: 0\r\n\r\n");
            let answer = Message::read(&mut text.as_bytes(), Unframed::UntilEnd, true).expect("whole").expect("one");
            visitor.take_cookies(&answer);
            assert_eq!(visitor.cookie_line(), expect, "{text}");
        };
        check("Set-Cookie: a=1; path=/; HttpOnly\r\nset-cookie: b=2\r\n", "a=1; b=2");
        check("Set-Cookie: a=3\r\nSet-Cookie: b=+; expires=x; Max-Age=0\r\n", "a=3");
        assert_eq!(escaped("a b&c=é"), "a%20b%26c%3D%C3%A9");
    }
}
