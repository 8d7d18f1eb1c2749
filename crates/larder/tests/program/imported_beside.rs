//! An imported configuration under larder beside the real server that it was written for: the same origins, files and users behind
//! both, and the same requests to both, each in several spellings. What one of them is refused, led away or given to another origin the
//! other must not show.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::peer_process::{Running, free_address, wait_until_it_listens};
use crate::told_origin;

/// What larder keeps people out with.
const REFUSALS: [u16; 4] = [401, 403, 429, 503];

/// A folder, the addresses of both, and the origins.
pub struct Beside {
    pub folder: PathBuf,
    /// Each as the configuration names it (`A1`, `A2`), for the real server, and for larder.
    addresses: BTreeMap<String, (SocketAddr, SocketAddr)>,
    origins: BTreeMap<String, SocketAddr>,
    running: Vec<Running>,
    /// What the import said.
    pub said: String,
    pub toml: String,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub status: u16,
    pub location: String,
    /// Fields that begin with `X-R-`.
    pub fields: Vec<String>,
    pub body: String,
}

/// A request: options of curl, and at which address.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    pub at: &'a str,
    pub path: String,
    pub options: Vec<&'a str>,
}

/// What must come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Same,
    /// larder refuses what the real server answers, and the import has said so.
    Closed,
}

impl Beside {
    /// `name`: of the folder. `text`: the configuration, in which `A1` … are addresses to listen at, `O-NAME` those of origins, and `HERE` the folder.
    pub fn new(name: &str, text: &str) -> (Beside, String) {
        // Apache becomes another user, who may not come where the project lies.
        let folder = std::env::temp_dir().join(format!("larder-beside-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let mut beside = Beside {
            folder,
            addresses: BTreeMap::new(),
            origins: BTreeMap::new(),
            running: Vec::new(),
            said: String::new(),
            toml: String::new(),
        };
        let text = text.replace("HERE", &beside.folder.display().to_string());
        let text = beside.with_addresses(&text);
        (beside, text)
    }

    fn with_addresses(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for at in ["A1", "A2", "A3", "A4"]
            .iter()
            .filter(|at| text.contains(**at))
            .map(|at| (*at).to_owned())
            .collect::<Vec<_>>()
        {
            let pair = (free_address(), free_address());
            text = text.replace(&at, &pair.0.to_string());
            self.addresses.insert(at, pair);
        }
        while let Some(start) = text.find("O-") {
            let rest = &text[start + 2..];
            let name = rest[..rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len())].to_owned();
            let address = *self.origins.entry(name.clone()).or_insert_with(|| naming_origin(&name));
            text = text.replace(&format!("O-{name}"), &address.to_string());
        }
        text
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Imports the configuration, and starts both.
    pub fn start(&mut self, conf: &Path, mut real: Command) {
        let toml = self.folder.join("larder.toml");
        let done =
            Command::new(env!("CARGO_BIN_EXE_larder")).args(["import", "-o"]).arg(&toml).arg(conf).output().unwrap();
        self.said = String::from_utf8_lossy(&done.stderr).into_owned();
        self.toml = std::fs::read_to_string(&toml).unwrap_or_else(|_| panic!("{}", self.said));
        let mut text = self.toml.clone();
        for (theirs, ours) in self.addresses.values() {
            text = text.replace(&format!("\"{theirs}\""), &format!("\"{ours}\""));
        }
        std::fs::write(&toml, format!("{text}\n[admin]\naddress = \"off\"\n")).unwrap();
        let errors = std::fs::File::create(self.folder.join("real.stderr")).unwrap();
        self.running.push(Running(
            real.stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(errors)
                .spawn()
                .expect("it is installed: ./setup all"),
        ));
        let errors = std::fs::File::create(self.folder.join("larder.stderr")).unwrap();
        let mut larder = Command::new(env!("CARGO_BIN_EXE_larder"));
        larder.args(["serve", "--no-supervisor", "--workers", "1", "--config"]).arg(&toml);
        self.running.push(Running(larder.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap()));
        for (theirs, ours) in self.addresses.values() {
            wait_until_it_listens(*theirs);
            if text.contains(&format!("\"{ours}\"")) {
                wait_until_it_listens(*ours);
            }
        }
    }

    pub fn left(&self) -> Vec<&str> {
        self.said.lines().filter(|line| line.contains(": not carried over: ")).collect()
    }

    /// The real server's answer, and larder's.
    pub fn ask(&self, asked: &Asked<'_>) -> [Outcome; 2] {
        let (theirs, ours) = self.addresses[asked.at];
        [theirs, ours].map(|address| outcome(address, asked))
    }

    /// One row: `path` as it is, where what comes must be this, and in other spellings, where larder may refuse, and show nothing else.
    pub fn check(&self, at: &str, path: &str, options: &[&str], wanted: Wanted) {
        self.check_as_it_is(at, path, options, wanted);
        for spelling in spellings(path) {
            let asked = Asked { at, path: spelling, options: options.to_vec() };
            let [theirs, ours] = self.ask(&asked);
            let may_be = is_refused(&ours) || is_same(&theirs, &ours);
            assert!(may_be, "open: {asked:?}\n  theirs {theirs:?}\n  larder {ours:?}\n{}\n{}", self.said, self.toml);
        }
    }

    /// Both refuse.
    pub fn check_refused(&self, at: &str, path: &str, options: &[&str]) {
        let asked = Asked { at, path: path.to_owned(), options: options.to_vec() };
        let [theirs, ours] = self.ask(&asked);
        let context = format!("{asked:?}\n  theirs {theirs:?}\n  larder {ours:?}\n{}\n{}", self.said, self.toml);
        assert!(is_refused(&theirs), "the real one does not refuse: {context}");
        assert!(is_refused(&ours), "open: {context}");
    }

    pub fn check_as_it_is(&self, at: &str, path: &str, options: &[&str], wanted: Wanted) {
        let asked = Asked { at, path: path.to_owned(), options: options.to_vec() };
        let [theirs, ours] = self.ask(&asked);
        let context = || format!("{asked:?}\n  theirs {theirs:?}\n  larder {ours:?}\n{}\n{}", self.said, self.toml);
        match wanted {
            Wanted::Same => assert!(is_same(&theirs, &ours), "not the same: {}", context()),
            Wanted::Closed => {
                assert!(is_refused(&ours) && !is_refused(&theirs), "not closed: {}", context());
                assert!(!self.left().is_empty(), "closed without a word: {}", context());
            }
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.running.clear();
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// The same path in other letters: escaped, with a slash or a dot too many, in capitals.
fn spellings(path: &str) -> Vec<String> {
    let (path, query) = path.split_once('?').map_or((path, String::new()), |(path, query)| (path, format!("?{query}")));
    let Some(rest) = path.strip_prefix('/') else { return Vec::new() };
    let Some(first) = rest.chars().next() else { return vec![format!("//{query}"), format!("/x/..{query}")] };
    let escaped = format!("/%{:02x}{}", u32::from(first), &rest[first.len_utf8()..]);
    [
        escaped,
        format!("//{rest}"),
        format!("/x/../{rest}"),
        format!("/./{rest}"),
        path.to_uppercase(),
        format!("{path}/"),
    ]
    .map(|path| format!("{path}{query}"))
    .into()
}

fn is_refused(outcome: &Outcome) -> bool {
    // Nobody listens there.
    outcome.status == 0 || REFUSALS.contains(&outcome.status) && !outcome.body.starts_with("origin ")
}

/// Refused by both, or the same origin asked for the same, or the same text, or led to the same place.
fn is_same(theirs: &Outcome, ours: &Outcome) -> bool {
    let is_error =
        |outcome: &Outcome| (outcome.status >= 400 || outcome.status == 0) && !outcome.body.starts_with("origin ");
    match (is_error(theirs), is_error(ours)) {
        (true, true) => true,
        (false, false) => {
            let is_redirect = |outcome: &Outcome| (300..400).contains(&outcome.status);
            let body = |outcome: &Outcome| if is_redirect(outcome) { String::new() } else { outcome.body.clone() };
            (is_redirect(theirs) == is_redirect(ours))
                && (is_redirect(theirs) || theirs.status == ours.status)
                && theirs.location == ours.location
                && theirs.fields == ours.fields
                && body(theirs) == body(ours)
        }
        _ => false,
    }
}

fn outcome(address: SocketAddr, asked: &Asked<'_>) -> Outcome {
    let is_secure = asked.options.contains(&"--insecure");
    let scheme = if is_secure { "https" } else { "http" };
    let mut command = Command::new("curl");
    command.args(["-s", "-i", "--path-as-is", "--http1.1", "--max-time", "20", "-H", "Accept:"]).args(&asked.options);
    let output = command.arg(format!("{scheme}://{address}{}", asked.path)).output().expect("curl is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let field = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let fields: Vec<(String, String)> = head.lines().filter_map(field).collect();
    let location =
        fields.iter().find(|(name, _)| name == "location").map(|(_, value)| value.clone()).unwrap_or_default();
    // Each leads to its own address where no name is said.
    let location = location.replace(&address.to_string(), "ADDRESS").replace("127.0.0.1/", "ADDRESS/");
    let mut own: Vec<String> = fields
        .iter()
        .filter(|(name, _)| name.starts_with("x-r-"))
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    own.sort();
    Outcome { status, location, fields: own, body: body.to_owned() }
}

/// Answers with its name and what it was asked: method, target, Host, the fields that begin with `X-T-`, and for which protocol.
fn naming_origin(name: &str) -> SocketAddr {
    let name = name.to_owned();
    told_origin::origin(move |told| {
        let mut own: Vec<String> = told
            .fields()
            .filter(|(name, _)| name.starts_with("x-t-"))
            .map(|(name, value)| format!(" {name}={value}"))
            .collect();
        own.sort();
        let host = told.value("host").unwrap_or_default();
        let host = host.split(':').next().unwrap_or_default().to_lowercase();
        let upgrade = told.value("upgrade").map(|protocol| format!(" upgrade to {protocol}")).unwrap_or_default();
        let said = format!("origin {name}: {} for {host}{}{upgrade}", told.line(), own.concat());
        told.answer(&format!("Cache-Control: no-store\r\nX-R-Origin: {name}\r\nX-Powered-By: stub"), &said)
    })
}
