//! Published squid.conf files under the real Squid and, imported, under larder: who is refused by one and not by the other? What is
//! let in ends at an address where nobody listens, so that nothing beyond this machine is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::import_corpus::probe_requests::{LOGIN, sample};
use crate::import_corpus::row_verdict::Verdict;
use crate::import_corpus::{NotCompared, Table, USERS, larder_side};
use crate::plain_exchange::{Message, Unframed};
use crate::ports;
use crate::project::Project;
use crate::sites::site_processes::SiteProcesses;

const START_SECONDS_MAX: f64 = 30.0;
const PATIENCE: Duration = Duration::from_secs(60);
/// So many lines are taken out before it is said that the file does not run.
const REFUSED_MAX: usize = 40;
/// What every file of names holds that a configuration reads.
const LISTED: [&str; 2] = ["listed.example.com", ".listed.example.org"];
/// Where nobody listens: this machine itself, which rules may be about (`to_localhost`).
const NOBODY: &str = "127.0.0.9";
/// Whose address the names have for Squid. Nobody is reached there either (a group of RFC 6676 for examples, and TCP knows no groups), and no
/// rule about this machine or its networks is about it: larder, for whom they have no address, would not know of that.
const NOWHERE: &str = "233.252.0.9";
const OTHERS: [&str; 2] = ["elsewhere.example", "www.elsewhere.example"];
const PORTS: [u16; 7] = [80, 443, 22, 25, 873, 1024, 8443];
const METHODS: [&str; 4] = ["GET", "POST", "CONNECT", "PURGE"];
/// Of an accelerator, beside those that a rule of it names.
const PATHS: [&str; 7] = ["/", "/x", "/a.html", "/admin/", "/cgi-bin/x", "/.git/config", "/x/../admin/"];

/// Of the process, its logs and its disks.
const NOT_HERE: [&str; 16] = [
    "cache_dir",
    "access_log",
    "cache_log",
    "cache_store_log",
    "logformat",
    "coredump_dir",
    "pid_filename",
    "hosts_file",
    "dns_",
    "url_rewrite",
    "visible_hostname",
    "shutdown_lifetime",
    "netdb_filename",
    "connect_",
    "cache_effective",
    "workers",
];

/// The lines of a configuration.
struct SquidLines {
    lines: Vec<Vec<String>>,
    place: Option<String>,
    names: BTreeSet<String>,
}

pub fn compare(project: &Project, file: &Path, opens: bool) -> Result<Table, NotCompared> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut site = SiteProcesses::set_up("import-corpus-squid")?;
    let folder = site.folder.clone();
    site.write("users", USERS)?;
    site.write("listed", &LISTED.map(|name| format!("{name}\n")).concat())?;
    let mut conf = SquidLines::read(&String::from_utf8_lossy(&bytes), &folder);
    let nowhere = || NotCompared::Refused("it listens nowhere".to_owned());
    let place = conf.place.clone().ok_or_else(nowhere)?;
    site.write("site.conf", &conf.text())?;
    let hosts: String = conf.names.iter().map(|name| format!("{NOWHERE} {name}\n")).collect();
    site.write("hosts", &hosts)?;
    let theirs = start(&mut conf, &mut site, &folder)?;
    let ours = larder_side::start(project, &mut site, "site.conf", std::slice::from_ref(&place), None)?;
    let ours_at = ours.ports.get(&place).copied();
    let mut table = Table { left: ours.left.len(), ..Table::default() };
    for probe in conf.probes() {
        let asked = |port| ask(port, &probe).map_err(|error| format!("{}: {error}", probe.line));
        let of_squid = asked(theirs)?;
        // A planted fault: everybody is let in.
        let of_larder = match (ours_at, opens) {
            (_, true) => 200,
            (Some(port), _) => asked(port)?,
            (None, _) => 403,
        };
        let row = format!("{}: squid {of_squid}, larder {of_larder}", probe.line);
        // docs/forward.md says that what has no public address is closed.
        let is_documented = probe.host.starts_with(NOBODY);
        table.add(row, verdict(of_squid, of_larder), !ours.left.is_empty() || is_documented);
    }
    let is_up = site.is_up();
    drop(site);
    clean_up();
    if is_up { Ok(table) } else { Err("a server ended on its way".into()) }
}

fn verdict(theirs: u16, ours: u16) -> Verdict {
    // Of an accelerator what is for no site of its is refused, too.
    let is_refused = |status: u16| matches!(status, 400 | 401 | 403 | 404 | 405 | 407 | 421);
    match (is_refused(theirs), is_refused(ours)) {
        (true, false) => Verdict::Open,
        (false, true) => Verdict::Closed,
        _ => Verdict::Same,
    }
}

impl SquidLines {
    fn read(text: &str, folder: &Path) -> SquidLines {
        let mut conf = SquidLines { lines: Vec::new(), place: None, names: OTHERS.map(str::to_owned).into() };
        let mut add = |name: &str| {
            let name = name.to_lowercase();
            match name.strip_prefix('.') {
                Some(rest) => conf.names.extend([rest.to_owned(), format!("www.{rest}")]),
                None => drop(conf.names.insert(name)),
            }
        };
        let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
        for line in joined.lines() {
            let line = line.split(" #").next().unwrap_or_default().split("\t#").next().unwrap_or_default();
            let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            if words.is_empty() || words[0].starts_with('#') || NOT_HERE.iter().any(|start| words[0].starts_with(start))
            {
                continue;
            }
            for word in words.iter_mut().filter(|word| word.starts_with('"')) {
                *word = format!("\"{}/listed\"", folder.display());
                LISTED.iter().for_each(|name| add(name));
            }
            if words.get(2).is_some_and(|kind| kind == "dstdomain") {
                let names = words[3.min(words.len())..].iter().filter(|word| !word.starts_with(['"', '-']));
                names.take(4).for_each(|name| add(name));
            }
            if words[0] == "auth_param" && words.get(2).is_some_and(|word| word == "program") && words[1] == "basic" {
                words.truncate(3);
                words.extend(["/usr/lib/squid/basic_ncsa_auth".to_owned(), format!("{}/users", folder.display())]);
            }
            match words[0].as_str() {
                "http_port" if conf.place.is_none() => {
                    let at = &words[1];
                    conf.place = Some(if at.contains(':') { at.clone() } else { format!("*:{at}") });
                }
                "http_port" | "https_port" => continue,
                "cache_peer" => lead_home(&mut words),
                "icap_service" => continue,
                _ => {}
            }
            conf.lines.push(words);
        }
        conf
    }

    fn text(&self) -> String {
        self.lines.iter().map(|words| format!("{}\n", words.join(" "))).collect()
    }

    /// In plain letters, and as somebody writes them who would come around a rule.
    fn ruled_paths(&self) -> BTreeSet<String> {
        let of_paths = self.lines.iter().filter(|words| words.get(2).is_some_and(|kind| kind == "urlpath_regex"));
        let regexes = of_paths.flat_map(|words| &words[3..]).filter(|word| !word.starts_with(['-', '"']));
        let paths: BTreeSet<String> = regexes.filter_map(|regex| path_of(regex)).collect();
        let around = paths.iter().flat_map(|path| {
            let escaped = path.as_bytes().get(1).map(|first| format!("/%{first:02x}{}", &path[2..]));
            [
                Some(path.clone()),
                escaped,
                Some(format!("/{path}")),
                Some(path.to_uppercase()),
                Some(format!("{path}/x")),
            ]
        });
        around.flatten().collect()
    }

    fn probes(&self) -> Vec<ForwardProbe> {
        let mut found = Vec::new();
        let is_accelerator =
            self.lines.iter().any(|words| words[0] == "http_port" && words.iter().any(|word| word == "accel"));
        let mut add = |method, target: &str, host: &str| {
            for has_login in [false, true] {
                let with = if has_login { " with a login" } else { "" };
                let line = format!("{method} {target} of {host}{with}");
                let (target, host) = (target.to_owned(), host.to_owned());
                found.push(ForwardProbe { method, target, host, has_login, line });
            }
        };
        let ruled = self.ruled_paths();
        let itself = NOBODY.to_owned();
        for name in self.names.iter().chain((!is_accelerator).then_some(&itself)) {
            if is_accelerator {
                let paths = PATHS.iter().copied().chain(ruled.iter().map(String::as_str));
                paths.for_each(|path| METHODS.iter().for_each(|&method| add(method, path, name)));
                continue;
            }
            for (port, method) in PORTS.iter().flat_map(|port| METHODS.map(|method| (port, method))) {
                let host = format!("{name}:{port}");
                let target = if method == "CONNECT" { host.clone() } else { format!("http://{host}/") };
                add(method, &target, &host);
            }
            ruled.iter().for_each(|path| add("GET", &format!("http://{name}{path}"), name));
        }
        found.sort_by(|a, b| a.line.cmp(&b.line));
        found.dedup_by(|a, b| a.line == b.line);
        found
    }
}

/// A path for each expression that rules have for paths.
fn path_of(regex: &str) -> Option<String> {
    let path = sample(&["~".to_owned(), regex.to_owned()])?;
    path.bytes().all(|byte| byte.is_ascii_graphic()).then_some(path)
}

/// A peer may be anywhere, and nobody but this machine is asked. Lines that name it find it by the name that it had.
fn lead_home(words: &mut Vec<String>) {
    let Some(host) = words.get_mut(1) else { return };
    let host = std::mem::replace(host, NOBODY.to_owned());
    if !words.iter().any(|word| word.starts_with("name=")) {
        words.push(format!("name={host}"));
    }
}

struct ForwardProbe {
    method: &'static str,
    target: String,
    host: String,
    has_login: bool,
    line: String,
}

fn ask(port: u16, probe: &ForwardProbe) -> io::Result<u16> {
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let ForwardProbe { method, target, host, has_login, .. } = probe;
    let login = if *has_login { format!("Proxy-Authorization: {LOGIN}\r\n") } else { String::new() };
    let length = if *method == "POST" { "Content-Length: 0\r\n" } else { "" };
    write!(socket, "{method} {target} HTTP/1.1\r\nHost: {host}\r\n{login}{length}Connection: close\r\n\r\n")?;
    let answer = Message::read(&mut BufReader::new(socket), Unframed::UntilEnd, false)?;
    let Some(answer) = answer else { return Ok(403) };
    answer.second_word().parse().map_err(io::Error::other)
}

/// The real Squid. What it does not know is taken out of its copy. Only what `squid -k parse` says is a refusal.
fn start(conf: &mut SquidLines, site: &mut SiteProcesses, folder: &Path) -> Result<u16, NotCompared> {
    let port = ports::free()?;
    let mut theirs = SquidLines { lines: conf.lines.clone(), place: None, names: BTreeSet::new() };
    for words in theirs.lines.iter_mut().filter(|words| words[0] == "http_port") {
        words[1] = format!("127.0.0.1:{port}");
        words.retain(|word| {
            !matches!(word.as_str(), "transparent" | "intercept" | "tproxy" | "ssl-bump") && !word.contains("cert")
        });
    }
    let here = folder.display();
    let own = format!(
        "pid_filename {here}/squid.pid\ncache_log {here}/squid-cache.log\naccess_log none\ncoredump_dir {here}\n\
         hosts_file {here}/hosts\nvisible_hostname proxy.test\nconnect_timeout 1 second\nshutdown_lifetime 0 seconds\n\
         pinger_enable off\nnetdb_filename none\n"
    );
    let mut gone = 0;
    loop {
        let file = site.write("squid.conf", &format!("{}{own}", theirs.text()))?;
        let Err(said) = site.run(squid(&file).args(["-k", "parse"])) else { break };
        let line = said.split("line ").filter_map(|rest| rest.split(':').next()?.trim().parse::<usize>().ok()).last();
        match line.filter(|line| (1..=theirs.lines.len()).contains(line) && gone < REFUSED_MAX) {
            Some(line) => drop(theirs.lines.remove(line - 1)),
            None if !said.contains("FATAL") => {
                return Err(NotCompared::Failed(format!("squid does not start: {said}")));
            }
            None => return Err(NotCompared::Refused(format!("squid takes it not: {said}"))),
        }
        gone += 1;
    }
    // It gives up root's rights, and writes here all the same.
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder, all).map_err(|error| format!("{here}: {error}"))?;
    let mut command = squid(&folder.join("squid.conf"));
    command.arg("-N");
    site.start("squid", command)?;
    ports::wait(port, START_SECONDS_MAX, || site.is_up())
        .map_err(|why| format!("{why}: {}", site.last_words("squid")))?;
    Ok(port)
}

/// A name of its own for what it shares in memory, which a Squid of the system may have, too.
fn service() -> String {
    format!("larder{}", std::process::id())
}

fn squid(file: &Path) -> Command {
    let mut command = Command::new("squid");
    command.args(["-n", &service(), "-f"]).arg(file);
    command
}

/// What a Squid that was killed has left in memory.
fn clean_up() {
    for entry in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&service()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// All files of a folder, by their names.
pub fn files(folder: &Path) -> BTreeMap<String, std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let named = |path: std::path::PathBuf| Some((path.file_name()?.to_string_lossy().into_owned(), path));
    entries.filter(|path| path.is_file()).filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_squid_conf_is_made_to_run() {
        let text = "# a\nhttp_port \\\n  3128 # b\nhttp_port 3129 intercept\nacl x dstdomain .a.test \"/etc/l\"\ncache_dir ufs /x\n\
            auth_param basic program /x /y\ncache_peer p.test parent 3128 0\ncache_peer q.test parent 1 0 name=q\nicap_service s a b icap://i.test/\n";
        let conf = SquidLines::read(text, Path::new("/tmp/x"));
        let expect = "http_port 3128\nacl x dstdomain .a.test \"/tmp/x/listed\"\n\
            auth_param basic program /usr/lib/squid/basic_ncsa_auth /tmp/x/users\n\
            cache_peer 127.0.0.9 parent 3128 0 name=p.test\ncache_peer 127.0.0.9 parent 1 0 name=q\n";
        assert_eq!((conf.text().as_str(), conf.place.as_deref()), (expect, Some("*:3128")));
        for name in ["a.test", "www.a.test", "listed.example.com", "elsewhere.example"] {
            assert!(conf.names.contains(name), "{name}");
        }
        let lines: Vec<String> = conf.probes().into_iter().map(|probe| probe.line).collect();
        assert!(lines.contains(&"CONNECT a.test:22 of a.test:22 with a login".to_owned()), "{lines:?}");
        // A rule about this machine is asked by an address, which needs nobody who knows names.
        assert!(lines.contains(&"GET http://127.0.0.9:80/ of 127.0.0.9:80".to_owned()), "{lines:?}");
    }

    #[test]
    fn an_accelerator_is_asked_for_the_paths_of_its_rules() {
        let text = "http_port 80 accel defaultsite=a.test\nacl x urlpath_regex -i ^/manager/ \\.bak$\nacl y dstdomain a.test\n";
        let lines: Vec<String> =
            SquidLines::read(text, Path::new("/tmp/x")).probes().into_iter().map(|probe| probe.line).collect();
        for line in [
            "GET / of a.test",
            "POST /manager/ of a.test",
            "GET /%6danager/ of a.test",
            "GET /x.bak of a.test",
            "GET /admin/ of a.test",
        ] {
            assert!(lines.iter().any(|found| found == line), "{line} {lines:?}");
        }
    }

    #[test]
    fn whoever_is_let_in_by_larder_alone_is_open() {
        assert_eq!(verdict(403, 503), Verdict::Open);
        assert_eq!(verdict(407, 200), Verdict::Open);
        assert_eq!(verdict(503, 407), Verdict::Closed);
        assert_eq!((verdict(403, 407), verdict(503, 502)), (Verdict::Same, Verdict::Same));
    }
}
