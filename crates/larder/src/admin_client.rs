//! The admin address of a larder that runs, as the commands ask it: which larder is meant, one request, its answer.
//!
//! What may be done, and what comes of it, is decided there.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use clap::Args;
use proxy::settings::ListenAddress;
use serde_json::Value;

use crate::addresses::{AdminAddress, parse_listen, show_listen};
use crate::bounded_file;
use crate::config;
use crate::limits::{self, ADMIN_ANSWER_BYTES_MAX, ADMIN_HEAD_BYTES_MAX, ADMIN_PATIENCE, ADMIN_TIMEOUT};
use crate::plan::{ADMIN_DEFAULT, AdminPlan, HistoryPlace};
use crate::say::say;

/// Which larder is meant.
#[derive(Clone, Debug, Default, Args)]
pub struct AdminFlags {
    /// The admin address of the running larder, IP:PORT or unix:PATH [default: that of the config, or 127.0.0.1:9180]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    pub admin: Option<ListenAddress>,

    /// Read the admin address and the token from this larder.toml [default without --admin: larder.toml here, if it is this user's or root's, else in /etc/larder]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// A file with the token of [admin]; over a UNIX socket none is needed
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// Where a config lies that nobody names.
const USUAL_CONFIGS: [&str; 2] = ["larder.toml", "/etc/larder/larder.toml"];

impl AdminFlags {
    /// The config that says whom to ask: the one that is named, or the first of the usual ones that is there, which is said once.
    pub fn config_file(&self) -> Option<PathBuf> {
        static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
        if self.config.is_some() || self.admin.is_some() {
            return self.config.clone();
        }
        let found = || {
            let found = usual_config(&USUAL_CONFIGS.map(Path::new))?;
            match File::open(&found) {
                // It says where the token goes that it names.
                Ok(file) if found.is_relative() && !is_of_user(&file) => {
                    say!(
                        "{} is not asked: it is another user's, or everybody may write it (--config names it)",
                        found.display()
                    );
                    return None;
                }
                Ok(_) => say!("{} says whom to ask (--config or --admin names another)", found.display()),
                Err(why) => {
                    say!("{} would say whom to ask, and cannot be read: {why}", found.display());
                    return None;
                }
            }
            Some(found)
        };
        FOUND.get_or_init(found).clone()
    }

    /// A refusal, with the flag that brings the token where none was told.
    fn with_way_in(&self, status: u16, sentence: String) -> String {
        let is_told = self.config_file().is_some() || self.token_file.is_some();
        match matches!(status, 401 | 403) && !is_told {
            true => format!("{}; --config larder.toml has it read there", sentence.trim_end()),
            false => sentence,
        }
    }
}

/// Which larder is meant, and how its answer is shown.
#[derive(Clone, Debug, Default, Args)]
pub struct RemoteFlags {
    #[command(flatten)]
    pub larder: AdminFlags,

    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// A connection to an admin address.
pub enum AdminStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Why an answer without an end does not begin.
pub enum Unfollowed {
    /// Nobody is there, or not yet.
    Unreachable(String),
    /// It was refused, for this reason.
    Refused(String),
}

impl Read for AdminStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            AdminStream::Tcp(stream) => stream.read(bytes),
            AdminStream::Unix(stream) => stream.read(bytes),
        }
    }
}

impl Write for AdminStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            AdminStream::Tcp(stream) => stream.write(bytes),
            AdminStream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AdminStream {
    fn open(address: &ListenAddress, patience: Duration) -> io::Result<AdminStream> {
        match address {
            ListenAddress::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, patience)?;
                stream.set_read_timeout(Some(patience))?;
                Ok(AdminStream::Tcp(stream))
            }
            ListenAddress::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(patience))?;
                Ok(AdminStream::Unix(stream))
            }
        }
    }

    fn set_patience(&self, patience: Duration) -> io::Result<()> {
        match self {
            AdminStream::Tcp(stream) => stream.set_read_timeout(Some(patience)),
            AdminStream::Unix(stream) => stream.set_read_timeout(Some(patience)),
        }
    }
}

/// What is sent behind a request's head.
#[derive(Clone, Copy)]
enum Sent<'a> {
    Text(&'a [u8]),
    Json(&'a [u8]),
}

/// One request, and its answer on standard output.
pub fn ask(
    remote: &RemoteFlags,
    method: &str,
    target: &str,
    body: &[u8],
    show: impl FnOnce(&Value) -> String,
) -> ExitCode {
    ask_sending(remote, (method, target), Sent::Text(body), show)
}

/// The same of an order, which is JSON.
pub fn ask_json(
    remote: &RemoteFlags,
    method: &str,
    target: &str,
    order: &Value,
    show: impl FnOnce(&Value) -> String,
) -> ExitCode {
    ask_sending(remote, (method, target), Sent::Json(order.to_string().as_bytes()), show)
}

/// Status and answer.
pub fn exchange_json(
    flags: &AdminFlags,
    method: &str,
    target: &str,
    order: Option<&Value>,
) -> Result<(u16, Value), String> {
    exchange_json_within(ADMIN_PATIENCE, flags, method, target, order)
}

/// The same, where a read waits for so long.
pub fn exchange_json_within(
    patience: Duration,
    flags: &AdminFlags,
    method: &str,
    target: &str,
    order: Option<&Value>,
) -> Result<(u16, Value), String> {
    let order = order.map(Value::to_string);
    let sent = order.as_ref().map_or(Sent::Text(b""), |order| Sent::Json(order.as_bytes()));
    let (status, answer) = exchange(patience, flags, (method, target), sent)?;
    let refusal = || serde_json::json!({ "error": String::from_utf8_lossy(&answer).trim() });
    let mut answered: Value = serde_json::from_slice(&answer).unwrap_or_else(|_| refusal());
    if let Some(sentence) = answered["error"].as_str().map(str::to_owned) {
        answered["error"] = flags.with_way_in(status, sentence).into();
    }
    Ok((status, answered))
}

fn ask_sending(
    remote: &RemoteFlags,
    asked: (&str, &str),
    sent: Sent<'_>,
    show: impl FnOnce(&Value) -> String,
) -> ExitCode {
    let (status, answer) = match exchange(ADMIN_PATIENCE, &remote.larder, asked, sent) {
        Ok(answered) => answered,
        Err(why) => return failed(&why),
    };
    let parsed: Value = serde_json::from_slice(&answer).unwrap_or(Value::Null);
    // A closed pipe must not end this with a panic; the exit code still tells.
    let mut out = io::stdout();
    if remote.json {
        let _ = out.write_all(&answer);
    } else if status == 200 {
        let _ = out.write_all(show(&parsed).as_bytes());
    } else {
        let sentence = parsed["error"].as_str().map(str::to_owned);
        let sentence = sentence.unwrap_or_else(|| String::from_utf8_lossy(&answer).into_owned());
        return failed(&remote.larder.with_way_in(status, sentence));
    }
    if status == 200 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

pub fn failed(sentence: &str) -> ExitCode {
    say!("error: {}", sentence.trim_end());
    ExitCode::FAILURE
}

/// Status and body, where a read waits for so long.
pub fn exchange_within(
    patience: Duration,
    flags: &AdminFlags,
    asked: (&str, &str),
    body: &[u8],
) -> Result<(u16, Vec<u8>), String> {
    exchange(patience, flags, asked, Sent::Text(body))
}

fn exchange(
    patience: Duration,
    flags: &AdminFlags,
    (method, target): (&str, &str),
    sent: Sent<'_>,
) -> Result<(u16, Vec<u8>), String> {
    let (address, token) = whom(flags)?;
    let (Sent::Text(body) | Sent::Json(body)) = sent;
    let request = [head(method, target, token, sent).as_bytes(), body].concat();
    let answer = converse(&address, &request, patience).map_err(|e| silent(&address, &e))?;
    parse(&answer).ok_or_else(|| stranger(&address))
}

/// What is answered without an end, behind its head. A read that brings nothing for `patience` fails from then on.
pub fn follow(flags: &AdminFlags, target: &str, patience: Duration) -> Result<BufReader<AdminStream>, Unfollowed> {
    let (address, token) = whom(flags).map_err(Unfollowed::Unreachable)?;
    let unreachable = |e: io::Error| Unfollowed::Unreachable(silent(&address, &e));
    let mut stream = AdminStream::open(&address, ADMIN_TIMEOUT).map_err(unreachable)?;
    stream.write_all(head("GET", target, token, Sent::Text(b"")).as_bytes()).map_err(unreachable)?;
    let mut stream = BufReader::new(stream);
    let mut answered = Vec::new();
    while !answered.ends_with(b"\r\n\r\n") {
        let read = (&mut stream).take(ADMIN_HEAD_BYTES_MAX as u64).read_until(b'\n', &mut answered);
        if read.map_err(unreachable)? == 0 {
            return Err(Unfollowed::Unreachable(stranger(&address)));
        }
        if answered.len() > ADMIN_HEAD_BYTES_MAX {
            return Err(Unfollowed::Refused(stranger(&address)));
        }
    }
    match parse(&answered) {
        Some((200, _)) => {
            stream.get_ref().set_patience(patience).map_err(unreachable)?;
            Ok(stream)
        }
        Some((status, _)) => {
            let mut said = Vec::new();
            // Whatever comes of it, it was refused.
            let _ = stream.take(ADMIN_ANSWER_BYTES_MAX).read_to_end(&mut said);
            let sentence = serde_json::from_slice::<Value>(&said).ok();
            let sentence = sentence.and_then(|answer| Some(answer["error"].as_str()?.to_owned()));
            let sentence = sentence.unwrap_or_else(|| String::from_utf8_lossy(&said).trim().to_owned());
            let sentence = flags.with_way_in(status, sentence);
            // There may be room in a moment.
            Err(if status == 503 { Unfollowed::Unreachable(sentence) } else { Unfollowed::Refused(sentence) })
        }
        None => Err(Unfollowed::Refused(stranger(&address))),
    }
}

fn head(method: &str, target: &str, token: Option<String>, sent: Sent<'_>) -> String {
    let (body_bytes, content_type) = match sent {
        Sent::Text(body) => (body.len(), ""),
        Sent::Json(body) => (body.len(), "Content-Type: application/json\r\n"),
    };
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\n{authorization}{content_type}Content-Length: {body_bytes}\r\nConnection: close\r\n\r\n"
    )
}

fn silent(address: &ListenAddress, error: &io::Error) -> String {
    format!("the admin address {} does not answer: {error} (--admin names another)", show_listen(address))
}

fn stranger(address: &ListenAddress) -> String {
    format!("what answers on {} is not larder's admin address (--admin names another)", show_listen(address))
}

fn converse(address: &ListenAddress, request: &[u8], patience: Duration) -> io::Result<Vec<u8>> {
    let mut stream = AdminStream::open(address, patience)?;
    stream.write_all(request)?;
    let mut answer = Vec::new();
    stream.take(ADMIN_ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(answer)
}

/// `HTTP/1.1 200 …`, fields, an empty line, the body to the end.
fn parse(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let end = answer.windows(4).position(|end| end == b"\r\n\r\n")?;
    let status = answer.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    let status = std::str::from_utf8(status).ok()?.parse().ok()?;
    Some((status, answer[end + 4..].to_vec()))
}

fn usual_config(places: &[&Path]) -> Option<PathBuf> {
    places.iter().find(|place| place.is_file()).map(|place| place.to_path_buf())
}

/// Did this user write it, or root, and nobody else can?
fn is_of_user(file: &File) -> bool {
    let user = rustix::process::geteuid().as_raw();
    file.metadata().is_ok_and(|about| (about.uid() == 0 || about.uid() == user) && about.mode() & 0o002 == 0)
}

/// The address, and the token if there is one.
fn whom(flags: &AdminFlags) -> Result<(ListenAddress, Option<String>), String> {
    let plan = match flags.config_file() {
        None => AdminPlan {
            address: AdminAddress::At(ListenAddress::Tcp(ADMIN_DEFAULT.into())),
            asked_for: false,
            token: None,
            token_file: None,
            explain_header: None,
            history: HistoryPlace::Off,
        },
        Some(path) => config::load_admin(&path).map_err(|error| without_error(&error.show(false)))?,
    };
    let token = match &flags.token_file {
        None => plan.token,
        Some(path) => Some(read_token(path)?),
    };
    match (flags.admin.clone(), plan.address) {
        (Some(address), _) | (None, AdminAddress::At(address)) => Ok((address, token)),
        (None, AdminAddress::Off) => Err("[admin] address is \"off\" in the config: give --admin ADDRESS".to_owned()),
    }
}

/// Where it is asked, if that is known.
pub fn address_of(flags: &AdminFlags) -> Option<ListenAddress> {
    whom(flags).ok().map(|(address, _)| address)
}

/// Whoever says it begins with that word already.
fn without_error(drawn: &str) -> String {
    drawn.replacen(": error: ", ": ", 1)
}

fn read_token(path: &Path) -> Result<String, String> {
    let text = bounded_file::read_text(path, limits::TOKEN_FILE_BYTES_MAX)
        .map_err(|why| format!("{}: {why}", path.display()))?;
    let token = text.trim();
    match !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic()) {
        true => Ok(token.to_owned()),
        false => Err(format!("{}: a token is one line of printable characters", path.display())),
    }
}

/// For a path segment or a value in a query.
pub fn encoded(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~/".contains(&b);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn answers_are_read_and_others_are_not() {
        let check = |answer: &str, expect: Option<(u16, &str)>| {
            let expect = expect.map(|(status, body)| (status, body.as_bytes().to_vec()));
            assert_eq!(parse(answer.as_bytes()), expect, "{answer:?}");
        };
        check("HTTP/1.1 409 Conflict\r\nA: b\r\n\r\n{}\n", Some((409, "{}\n")));
        check("HTTP/1.1 200 OK\r\nA: b\r\n", None);
        check("SSH-2.0\r\n\r\n", None);
    }

    #[test]
    fn a_config_that_nobody_names_is_found() {
        let here = std::env::temp_dir().join(format!("larder-usual-{}.toml", std::process::id()));
        let places = [Path::new("/nowhere/larder.toml"), here.as_path()];
        assert_eq!(usual_config(&places), None);
        std::fs::write(&here, "").unwrap();
        assert_eq!(usual_config(&places), Some(here.clone()));
        let is_taken = |mode| {
            std::fs::set_permissions(&here, Permissions::from_mode(mode)).unwrap();
            is_of_user(&File::open(&here).unwrap())
        };
        assert!(is_taken(0o600) && is_taken(0o664) && !is_taken(0o646), "what everybody may write is nobody's word");
        std::fs::remove_file(here).unwrap();
    }

    #[test]
    fn an_error_is_called_one_once() {
        let flags = AdminFlags { config: Some("/nowhere/larder.toml".into()), ..AdminFlags::default() };
        let why = whom(&flags).map(|_| ()).unwrap_err();
        assert!(why.starts_with("/nowhere/larder.toml: No such file") && !why.contains("error: "), "{why}");
    }

    #[test]
    fn names_are_written_so_that_they_stay_one_segment() {
        assert_eq!(encoded("/etc/a b?.vcl"), "/etc/a%20b%3F.vcl");
    }
}
