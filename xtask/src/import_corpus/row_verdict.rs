//! What one request came to with the real server and with larder, and what that is: the same, closed, otherwise, or open where
//! the other was closed. It knows no configuration.

use std::collections::BTreeSet;
use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use crate::import_corpus::probe_files::FILE;
use crate::import_corpus::probe_requests::Probe;
use crate::import_corpus::stub_origins::{APP, UPGRADED};
use crate::plain_exchange::{Message, Unframed};

const PATIENCE: Duration = Duration::from_secs(20);

/// An answer, as far as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// A file or a stub, where one was shown.
    pub shown: Option<Shown>,
    /// Where it leads, without ports.
    pub leads_to: Option<String>,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    File(String),
    /// Its name, and the script or path that it was asked for.
    App(String, String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Same,
    /// Nothing is shown where something was.
    Closed,
    /// Neither of these.
    Otherwise,
    /// Something is shown that was not, or another thing.
    Open,
}

/// Asks one of the two. `row`: a number that its log says.
pub fn ask(port: u16, probe: &Probe, row: usize) -> io::Result<Answer> {
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let Probe { method, path, host, .. } = probe;
    let connection = if probe.upgrade.is_some() { "upgrade, close" } else { "close" };
    let fields = probe.field_lines();
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nX-Row: {row}\r\n{fields}Connection: {connection}\r\n\r\n");
    // In one piece: who answers a part of it has closed the connection before the rest.
    socket.write_all(head.as_bytes())?;
    let answer = match Message::read(&mut BufReader::new(socket), Unframed::UntilEnd, *method != "HEAD") {
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => None,
        answer => answer?,
    };
    // A connection that is closed without a word is a refusal: 444.
    let Some(answer) = answer else {
        return Ok(Answer { status: 444, shown: None, leads_to: None, text: String::new() });
    };
    let status = answer.second_word().parse().map_err(io::Error::other)?;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let leads_to = answer.field("location").map(|to| without_port(to, host));
    Ok(Answer { status, shown: shown(status, &text), leads_to, text })
}

fn shown(status: u16, text: &str) -> Option<Shown> {
    if let Some(file) = text.strip_prefix(FILE) {
        // A page for an error is none of what was asked for.
        return (status < 300).then(|| Shown::File(file.to_owned()));
    }
    let (name, what) = text.strip_prefix(APP)?.split_once(' ')?;
    Some(Shown::App(name.to_owned(), what.to_owned()))
}

/// With the bytes that a path's escapes stand for, as far as these are of ASCII.
fn decoded(path: &str) -> String {
    let mut pieces = path.split('%');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => out.extend([char::from(byte).to_string(), piece[2..].to_owned()]),
            None => out.extend(["%", piece]),
        }
    }
    out
}

/// A URL without its scheme and port, so that what leads to TLS is the same as what leads to its port here.
fn without_port(to: &str, host: &str) -> String {
    let rest = match to.split_once("://") {
        Some((_, rest)) => rest.to_owned(),
        None => format!("{host}{to}"),
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let authority = authority.split(':').next().unwrap_or_default();
    format!("{authority}{}{path}", if path.starts_with('/') { "" } else { "/" })
}

impl Answer {
    fn is_refused(&self) -> bool {
        self.status >= 400
    }

    /// Is it the text of a script, which nobody ran?
    pub fn shows_a_source(&self) -> bool {
        let is_source = |file: &str| [".php", ".phtml", ".phar"].iter().any(|ending| file.contains(ending));
        matches!(&self.shown, Some(Shown::File(file)) if is_source(&file.to_ascii_lowercase()))
    }

    pub fn is_file(&self) -> bool {
        matches!(self.shown, Some(Shown::File(_)))
    }

    fn is_redirect(&self) -> bool {
        (300..400).contains(&self.status)
    }

    /// Does the other server lead from a folder's name to it whatever the method, and larder say that files take no such method?
    pub fn leads_into_folder_that_takes_no(&self, probe: &Probe, ours: &Answer) -> bool {
        let adds_slash = self.leads_to.as_ref() == Some(&format!("{}{}/", probe.host, probe.path));
        adds_slash && ours.status == 405 && !matches!(probe.method, "GET" | "HEAD")
    }

    /// Is it an application's, the word of a directory that takes no such method, or does it lead to the same path with a slash?
    pub fn is_no_guard_of(&self, probe: &Probe) -> bool {
        let last = |path: &str| path.trim_end_matches('/').rsplit('/').next().map(decoded);
        let adds_slash = |to: &String| to.ends_with('/') && !probe.path.ends_with('/') && last(to) == last(&probe.path);
        matches!(self.shown, Some(Shown::App(..)))
            || self.status == 405 && probe.names_a_directory()
            || self.leads_to.as_ref().is_some_and(adds_slash)
    }

    /// Paths that may be the own ones of the file that is shown: beneath one of these roots, or in the folder that was asked for.
    pub fn own_paths(&self, roots: &BTreeSet<String>, asked: &str) -> Vec<String> {
        let Some(Shown::File(file)) = &self.shown else { return Vec::new() };
        let beneath = roots.iter().filter_map(|root| file.strip_prefix(root.as_str()));
        let mut paths: Vec<String> = beneath.filter(|rest| rest.starts_with('/')).map(str::to_owned).collect();
        let folder = asked.split('?').next().and_then(|path| path.rsplit_once('/')).map_or("", |(folder, _)| folder);
        paths.extend(file.rsplit_once('/').map(|(_, name)| format!("{folder}/{name}")));
        paths
    }

    /// Was an application asked for this other protocol?
    pub fn is_asked_for(&self, protocol: &str) -> bool {
        matches!(&self.shown, Some(Shown::App(_, what)) if protocol_in(what) == Some(protocol.to_lowercase()))
    }

    pub fn said(&self) -> String {
        let what = match (&self.shown, &self.leads_to) {
            (Some(Shown::File(file)), _) => format!(" file {file}"),
            (Some(Shown::App(name, what)), _) => format!(" {name} {what}"),
            (None, Some(to)) => format!(" to {to}"),
            (None, None) => String::new(),
        };
        format!("{}{what}", self.status)
    }
}

/// Compares the real server's answer with larder's.
pub fn verdict(theirs: &Answer, ours: &Answer) -> Verdict {
    let is_success = |answer: &Answer| (200..300).contains(&answer.status);
    match (&theirs.shown, &ours.shown) {
        (Some(theirs), Some(ours)) if is_same(theirs, ours) => return Verdict::Same,
        // Whom an application would not show it, larder does not either.
        (Some(Shown::File(_)), Some(Shown::App(..))) => return Verdict::Otherwise,
        (_, Some(_)) => return Verdict::Open,
        _ => {}
    }
    if ours.is_refused() {
        return if theirs.is_refused() { Verdict::Same } else { Verdict::Closed };
    }
    if is_success(ours) {
        return match (is_success(theirs), theirs.is_redirect()) {
            (true, _) if theirs.shown.is_none() && theirs.text == ours.text => Verdict::Same,
            // What is in a directory is said in each one's own page.
            (true, _) if [theirs, ours].iter().all(|answer| answer.text.contains("<a href=")) => Verdict::Same,
            (true, _) | (_, true) => Verdict::Otherwise,
            _ => Verdict::Open,
        };
    }
    match theirs.is_redirect() && theirs.leads_to == ours.leads_to {
        true => Verdict::Same,
        false => Verdict::Otherwise,
    }
}

/// Is an application asked by larder that the same location of nginx's asks for whatever a client says? Then it is open there, too:
/// a front controller, that nginx asks for all but directories, and with all methods but for them.
pub fn is_front_controller(beside: &Answer, ours: &Answer) -> bool {
    match (&beside.shown, &ours.shown) {
        (Some(theirs @ Shown::App(..)), Some(ours)) => is_same(theirs, ours),
        // A text that the server itself answers, whatever is asked for. Of HEAD nobody sees who answered.
        (None, None) => beside.status == ours.status && (ours.text.is_empty() || beside.text == ours.text),
        _ => false,
    }
}

/// Who answered, and which script of it. What a path is called when it is handed on is the same in several spellings.
fn is_same(one: &Shown, other: &Shown) -> bool {
    match (one, other) {
        (Shown::File(one), Shown::File(other)) => one == other,
        (Shown::App(one, first), Shown::App(other, second)) => {
            // `other` is larder's: whom the real server asks for a page it asks for nothing else.
            let asked = protocol_in(second);
            one == other
                && (!first.starts_with("runs ") || first == second)
                && (asked.is_none() || protocol_in(first) == asked)
        }
        _ => false,
    }
}

/// The other protocol that a stub says it was asked for.
fn protocol_in(what: &str) -> Option<String> {
    what.split_once(UPGRADED).map(|(_, protocol)| protocol.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, text: &str) -> Answer {
        let leads_to = (300..400).contains(&status).then(|| without_port(text, "a.test"));
        Answer { status, shown: shown(status, text), leads_to, text: text.to_owned() }
    }

    fn check(theirs: (u16, &str), ours: (u16, &str), expect: Verdict) {
        let (theirs, ours) = (answer(theirs.0, theirs.1), answer(ours.0, ours.1));
        assert_eq!(verdict(&theirs, &ours), expect, "{} {}", theirs.said(), ours.said());
    }

    #[test]
    fn what_is_shown_by_larder_alone_is_open() {
        for closed in [(403, ""), (404, ""), (502, ""), (444, ""), (401, ""), (301, "/x")] {
            check(closed, (200, "FILE a"), Verdict::Open);
            check(closed, (200, "APP a /x"), Verdict::Open);
        }
        check((200, "APP php runs a.php"), (200, "FILE a.php"), Verdict::Open);
        check((200, "APP php runs a.php"), (200, "APP php runs b.php"), Verdict::Open);
        check((200, "APP a /x"), (200, "APP b /x"), Verdict::Open);
        check((200, "FILE a"), (200, "FILE b"), Verdict::Open);
        check((403, ""), (200, "hello"), Verdict::Open);
        check((200, "APP a /x"), (200, "APP a /x upgraded to websocket"), Verdict::Open);
        check((200, "APP a /x upgraded to websocket"), (200, "APP a /x upgraded to TLS/1.0"), Verdict::Open);
    }

    #[test]
    fn an_application_says_which_protocol_it_was_asked_for() {
        let websocket = answer(200, "APP a /x upgraded to WebSocket");
        assert!(websocket.is_asked_for("websocket") && !websocket.is_asked_for("h2c"));
        assert!(!answer(200, "APP a /x").is_asked_for("websocket") && !answer(403, "").is_asked_for("websocket"));
    }

    #[test]
    fn a_script_that_nobody_ran_is_a_source() {
        assert!(
            ["a.php", "a.PHP", "b.phtml", "a.php.bak"]
                .iter()
                .all(|name| answer(200, &format!("FILE {name}")).shows_a_source())
        );
        assert!(!answer(200, "FILE a.html").shows_a_source());
        assert!(!answer(200, "APP php runs a.php").shows_a_source());
    }

    #[test]
    fn files_have_paths_of_their_own() {
        let roots = ["html", "roots/srv/a", "roots/srv/a/sub"].map(str::to_owned).into();
        let paths = |text: &str| answer(200, text).own_paths(&roots, "/x/y?z");
        assert_eq!(paths("FILE roots/srv/a/b/c.html"), ["/b/c.html", "/x/c.html"]);
        assert_eq!(paths("FILE roots/srv/a/sub/c.html"), ["/sub/c.html", "/c.html", "/x/c.html"]);
        assert_eq!((paths("FILE roots/srv/ab"), paths("APP a /x").len()), (vec!["/x/ab".to_owned()], 0));
    }

    #[test]
    fn front_controllers_are_asked_for_everything() {
        let index = answer(200, "APP php runs index.php");
        assert!(is_front_controller(&index, &index));
        for beside in [answer(404, ""), answer(200, "APP php runs a.php"), answer(200, "FILE a")] {
            assert!(!is_front_controller(&beside, &index), "{}", beside.said());
        }
        assert!(!is_front_controller(&index, &answer(200, "FILE a")));
    }

    #[test]
    fn the_same_is_the_same_and_less_is_closed() {
        check((200, "FILE a"), (200, "FILE a"), Verdict::Same);
        check((200, "APP a /x"), (200, "APP a //x"), Verdict::Same);
        check((200, "APP a /x upgraded to h2c"), (200, "APP a /x"), Verdict::Same);
        check((200, "APP a /x upgraded to WebSocket"), (200, "APP a /x upgraded to websocket"), Verdict::Same);
        check((404, "FILE 404.html"), (403, ""), Verdict::Same);
        check((200, "FILE a"), (403, ""), Verdict::Closed);
        check((301, "/x"), (404, ""), Verdict::Closed);
        check((301, "https://a.test/x"), (301, "http://a.test:81/x"), Verdict::Same);
        check((301, "/x"), (302, "/y"), Verdict::Otherwise);
        check((200, "hello"), (200, "hello"), Verdict::Same);
        check((200, "<a href=\"x\">"), (200, "<li><a href=\"/x\">"), Verdict::Same);
        check((200, "FILE a"), (200, "APP a /x"), Verdict::Otherwise);
    }
}
