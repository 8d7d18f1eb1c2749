//! Plays the table of pages with parts, spec/bad-input/n.toml: larder before an origin whose pages mean harm, a client that reads to the end, and the log.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;

use crate::subject::{Kind, Setup, Subject};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    group: String,
    row: Vec<EsiRow>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EsiRow {
    id: String,
    why: String,
    page: String,
    repeat: Option<usize>,
    /// It does not ask for ESI.
    stranger: bool,
    want: String,
    want_repeat: Option<usize>,
    want_begins: Option<String>,
    /// It breaks off.
    cut: bool,
    why_logged: Option<String>,
    asked: Vec<String>,
}

const HUGE_BYTES: usize = 1 << 30;
const PIECE_BYTES: usize = 64 << 10;
/// What a page may have here, so that the test is quick.
const LIMITS: &str = "esi_page_bytes_max = \"1MiB\"\nesi_wait_max = \"1s\"\n";
const PATIENCE: Duration = Duration::from_secs(30);
/// More than the program needs for any of these pages, and far less than the largest of them.
const RESIDENT_KIB_MAX: u64 = 200 << 10;

fn table() -> Vec<EsiRow> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/bad-input/n.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let table: Table = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(table.group, "n");
    table.row
}

/// An origin, a thread for each connection.
struct Origin {
    address: SocketAddr,
    shared: Arc<Mutex<OriginState>>,
}

#[derive(Default)]
struct OriginState {
    page: Vec<u8>,
    asks_for_esi: bool,
    asked: BTreeSet<String>,
}

impl Origin {
    fn start() -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Mutex::new(OriginState::default()));
        let for_all = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&for_all);
                // Who leaves in the middle of a body is the program's affair.
                std::thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        Origin { address, shared }
    }
}

fn serve(stream: TcpStream, shared: &Mutex<OriginState>) -> std::io::Result<()> {
    let mut from = BufReader::new(stream.try_clone()?);
    let mut to = stream;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
        while line.trim() != "" {
            line.clear();
            from.read_line(&mut line)?;
        }
        let mut state = shared.lock().expect("no thread panics with it");
        let (asks, body) = match target.as_str() {
            "/page" => (state.asks_for_esi, state.page.clone()),
            "/part" => (false, b"[part]".to_vec()),
            "/markup" => (false, b"<esi:include src=\"/part\"/>".to_vec()),
            other => match other.strip_prefix("/deep/").and_then(|depth| depth.parse::<u32>().ok()) {
                Some(depth) => (true, format!("<{depth}><esi:include src=\"/deep/{}\"/>", depth + 1).into_bytes()),
                None => (false, format!("<{other}>").into_bytes()),
            },
        };
        if target != "/page" {
            state.asked.insert(target.clone());
        }
        drop(state);
        let length = if target == "/huge" { HUGE_BYTES } else { body.len() };
        let surrogate = if asks { "Surrogate-Control: max-age=600, content=\"ESI/1.0\"\r\n" } else { "" };
        let life = "Cache-Control: max-age=600\r\n";
        if target == "/silent" {
            std::thread::sleep(PATIENCE);
            return Ok(());
        }
        to.write_all(format!("HTTP/1.1 200 OK\r\n{life}{surrogate}Content-Length: {length}\r\n\r\n").as_bytes())?;
        match target.as_str() {
            "/huge" => (0..HUGE_BYTES / PIECE_BYTES).try_for_each(|_| to.write_all(&[b'z'; PIECE_BYTES]))?,
            _ => to.write_all(&body)?,
        }
    }
}

/// The body of /page, and whether that was all of it.
fn ask(address: SocketAddr) -> (Vec<u8>, bool) {
    let mut client = TcpStream::connect(address).expect("it listens");
    client.set_read_timeout(Some(PATIENCE)).expect("a socket has time-outs");
    client.write_all(b"GET /page HTTP/1.1\r\nHost: t.test\r\nConnection: close\r\n\r\n").expect("it is sent");
    let mut all = Vec::new();
    let is_over = client.read_to_end(&mut all).is_ok();
    let Some(behind) = all.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4) else {
        return (all, false);
    };
    let head = String::from_utf8_lossy(&all[..behind]).to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200 "), "{head}");
    if !head.contains("transfer-encoding: chunked") {
        return (all[behind..].to_vec(), is_over);
    }
    let (mut rest, mut body) = (&all[behind..], Vec::new());
    loop {
        let Some(line_end) = rest.windows(2).position(|two| two == b"\r\n") else { return (body, false) };
        let length = std::str::from_utf8(&rest[..line_end]).ok().and_then(|hex| usize::from_str_radix(hex, 16).ok());
        let length = length.expect("a chunk begins with its length");
        let chunk = &rest[line_end + 2..];
        if length == 0 {
            return (body, true);
        }
        body.extend_from_slice(&chunk[..length.min(chunk.len())]);
        match chunk.get(length + 2..) {
            Some(behind) => rest = behind,
            None => return (body, false),
        }
    }
}

/// `{x*N}` stands for so many of them.
fn unfolded(text: &str) -> String {
    let Some((before, (times, behind))) =
        text.split_once("{x*").and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return text.to_owned();
    };
    format!("{before}{}{behind}", "x".repeat(times.parse().expect("a number")))
}

/// What is wrong, if anything is.
fn play(row: &EsiRow, origin: &Origin, subject: &Subject) -> Result<(), String> {
    {
        let mut state = origin.shared.lock().expect("no thread panics with it");
        state.page = unfolded(&row.page).repeat(row.repeat.unwrap_or(1)).into_bytes();
        state.asks_for_esi = !row.stranger;
        state.asked.clear();
    }
    let (body, is_whole) = ask(subject.address);
    let shown = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
    let fits = match &row.want_begins {
        Some(begin) => body.starts_with(begin.as_bytes()),
        None => body == row.want.repeat(row.want_repeat.unwrap_or(1)).as_bytes(),
    };
    if !fits || is_whole == row.cut {
        return Err(format!("{} bytes, whole: {is_whole}: {}", body.len(), shown(&body)));
    }
    let asked = origin.shared.lock().expect("no thread panics with it").asked.clone();
    let wanted: BTreeSet<String> = row.asked.iter().cloned().collect();
    if asked != wanted {
        return Err(format!("the origin was asked for {asked:?}"));
    }
    let line = log_line(subject)?;
    if row.why_logged.as_ref().is_some_and(|why| !line.contains(&format!(" {why}"))) {
        return Err(format!("the log says {line}"));
    }
    let resident = subject.process_number("VmRSS");
    if resident > RESIDENT_KIB_MAX { Err(format!("{resident} KiB are resident")) } else { Ok(()) }
}

/// The only line of the log, which is written when the answer has ended.
fn log_line(subject: &Subject) -> Result<String, String> {
    let path = subject.log.as_ref().expect("there is a log");
    let begun = crate::lane::now_ms();
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.ends_with('\n') {
            return match text.lines().count() {
                1 => Ok(text),
                _ => Err(format!("more than the page's line: {text}")),
            };
        }
        if crate::lane::now_ms() - begun > PATIENCE.as_millis() as u64 {
            return Err("the log says nothing".to_owned());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n_pages_with_parts() {
        let only = std::env::var("LARDER_BAD_INPUT_ROW").ok();
        let mut failures = Vec::new();
        let rows: Vec<EsiRow> = table();
        let ids: BTreeSet<&str> = rows.iter().map(|row| row.id.split('.').next().unwrap_or_default()).collect();
        assert_eq!(ids, BTreeSet::from(["N01", "N02", "N03", "N04"]));
        for row in rows.iter().filter(|row| only.as_ref().is_none_or(|id| row.id == *id)) {
            // Each in a store of its own: nothing of another row answers.
            let origin = Origin::start();
            let setup = Setup {
                limits: LIMITS.to_owned(),
                extra: "[esi]\npages = \"surrogate\"\n".to_owned(),
                log_format: Some("combined"),
                ..Setup::default()
            };
            let subject = Subject::start(Kind::Larder, origin.address, &setup);
            if let Err(why) = play(row, &origin, &subject) {
                failures.push(format!("{}: {}\n  {why}", row.id, row.why));
            }
        }
        assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
    }
}
