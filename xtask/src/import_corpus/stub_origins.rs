//! Stubs in the place of all whom a published configuration asks: each says its name, and what it was asked for. Those that
//! speak FastCGI do as php-fpm does: a script that is not there is not found, and what is no script is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::plain_exchange::{Message, Unframed};

/// How a stub's answers begin.
pub const APP: &str = "APP ";
/// And what they say of a protocol that they were asked for.
pub const UPGRADED: &str = " upgraded to ";

const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
/// No request of the task has more.
const PARAMS_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Speaks {
    Http,
    FastCgi,
}

/// One listener for each name, as long as the task runs.
#[derive(Debug, Default)]
pub struct StubOrigins {
    ports: BTreeMap<(Speaks, String), u16>,
    guarded: GuardedPaths,
}

/// Paths at which whoever shows no login is told so: of services that say who may come in.
type GuardedPaths = Arc<Mutex<BTreeSet<String>>>;

impl StubOrigins {
    /// The port of the stub with this name, which is started when it is first asked for.
    pub fn port(&mut self, speaks: Speaks, name: &str) -> io::Result<u16> {
        self.port_of_one(speaks, name, name)
    }

    /// The same of one of several that say the same name.
    pub fn port_of_one(&mut self, speaks: Speaks, one: &str, name: &str) -> io::Result<u16> {
        if let Some(port) = self.ports.get(&(speaks, one.to_owned())) {
            return Ok(*port);
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let (named, guarded) = (name.to_owned(), self.guarded.clone());
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (name, guarded) = (named.clone(), guarded.clone());
                // Whoever hangs up has what it wanted.
                thread::spawn(move || match speaks {
                    Speaks::Http => drop(answer_http(socket, &name, &guarded)),
                    Speaks::FastCgi => drop(answer_fastcgi(socket, &name)),
                });
            }
        });
        self.ports.insert((speaks, one.to_owned()), port);
        Ok(port)
    }

    /// From now on a service is at these paths alone.
    pub fn guard(&self, paths: BTreeSet<String>) {
        *self.guarded.lock().unwrap_or_else(PoisonError::into_inner) = paths;
    }
}

fn answer_http(mut socket: TcpStream, name: &str, guarded: &GuardedPaths) -> io::Result<()> {
    let mut from = BufReader::new(socket.try_clone()?);
    while let Some(request) = Message::read(&mut from, Unframed::Empty, true)? {
        let path = request.second_word().split('?').next().unwrap_or_default();
        let is_guarded = guarded.lock().unwrap_or_else(PoisonError::into_inner).contains(path);
        let (status, body) = match is_guarded && request.field("authorization").is_none() {
            true => ("401 Unauthorized", "who?".to_owned()),
            false => {
                let upgrade = request.field("upgrade").map(|protocol| format!("{UPGRADED}{protocol}"));
                ("200 OK", format!("{APP}{name} {}{}", request.second_word(), upgrade.unwrap_or_default()))
            }
        };
        let head = format!("HTTP/1.1 {status}\r\nCache-Control: no-store\r\nContent-Length: {}\r\n\r\n", body.len());
        let body = if request.start.starts_with("HEAD ") { "" } else { &body };
        socket.write_all(format!("{head}{body}").as_bytes())?;
    }
    Ok(())
}

fn answer_fastcgi(mut socket: TcpStream, name: &str) -> io::Result<()> {
    let mut params = Vec::new();
    loop {
        let mut head = [0; 8];
        socket.read_exact(&mut head)?;
        let length = usize::from(u16::from_be_bytes([head[4], head[5]]));
        let mut content = vec![0; length + usize::from(head[6])];
        socket.read_exact(&mut content)?;
        match head[1] {
            PARAMS if params.len() + length <= PARAMS_BYTES_MAX => params.extend_from_slice(&content[..length]),
            STDIN if length == 0 => break,
            BEGIN_REQUEST | STDIN => {}
            other => return Err(io::Error::other(format!("a record of type {other}"))),
        }
    }
    let said = script_answer(name, &params_of(&params).unwrap_or_default());
    let mut out = record(STDOUT, said.as_bytes());
    out.extend(record(STDOUT, &[]));
    out.extend(record(END_REQUEST, &[0; 8]));
    socket.write_all(&out)
}

fn script_answer(name: &str, params: &BTreeMap<String, String>) -> String {
    let named = Path::new(params.get("SCRIPT_FILENAME").map_or("", String::as_str));
    // What stands behind a script is told to it (cgi.fix_pathinfo).
    let script = named.ancestors().find(|path| path.is_file()).and_then(Path::to_str);
    match (script, script.is_some_and(|script| script.ends_with(".php"))) {
        (None, _) => "Status: 404 Not Found\r\n\r\nFile not found.\n".to_owned(),
        (Some(_), false) => "Status: 403 Forbidden\r\n\r\nAccess denied.\n".to_owned(),
        (Some(script), true) => {
            // The folder of the run is another one for each.
            let script = script.split_once("/roots/").map_or(script, |(_, script)| script).replace("//", "/");
            format!("Cache-Control: no-store\r\nContent-Type: text/html\r\n\r\n{APP}{name} runs {script}")
        }
    }
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    let mut out = vec![1, kind, 0, 1, high, low, 0, 0];
    out.extend_from_slice(content);
    out
}

/// Names and values with their lengths in front.
fn params_of(bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let name_length = length(&mut rest)?;
        let value_length = length(&mut rest)?;
        let (name, behind) = rest.split_at_checked(name_length)?;
        let (value, behind) = behind.split_at_checked(value_length)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        found.insert(text(name), text(value));
        rest = behind;
    }
    Some(found)
}

fn length(rest: &mut &[u8]) -> Option<usize> {
    let (&first, behind) = rest.split_first()?;
    if first < 0x80 {
        *rest = behind;
        return Some(usize::from(first));
    }
    let (four, behind) = rest.split_at_checked(4)?;
    *rest = behind;
    Some(u32::from_be_bytes([four[0] & 0x7f, four[1], four[2], four[3]]) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_answer_as_those_of_php_do() {
        let folder = std::env::temp_dir().join(format!("larder-stub-{}", std::process::id())).join("roots/srv");
        std::fs::create_dir_all(&folder).expect("a folder");
        ["a.php", "a.txt"].iter().for_each(|name| std::fs::write(folder.join(name), "").expect("a file"));
        let answer = |name: &str| {
            let script = folder.join(name).display().to_string();
            script_answer("php", &[("SCRIPT_FILENAME".to_owned(), script)].into())
        };
        assert!(answer("a.php").ends_with("\r\n\r\nAPP php runs srv/a.php"), "{}", answer("a.php"));
        assert!(answer("a.txt").starts_with("Status: 403") && answer("b.php").starts_with("Status: 404"));
        assert!(answer("a.php/x").ends_with(" srv/a.php") && answer("a.txt/x.php").starts_with("Status: 403"));
        std::fs::remove_dir_all(folder.parent().and_then(Path::parent).expect("its folder")).expect("gone");
    }

    #[test]
    fn params_are_read() {
        let long = "x".repeat(200);
        let bytes = [&[1, 2][..], b"Aab", &[1, 0x80, 0, 0, 200], b"B", long.as_bytes()].concat();
        let expect = [("A".to_owned(), "ab".to_owned()), ("B".to_owned(), long)];
        assert_eq!(params_of(&bytes), Some(expect.into()));
        assert_eq!(params_of(&[5, 0, 1]), None);
    }
}
