//! `larder lab run` as a person types it: a tiny matrix with a real nginx, what it leaves behind, how it is interrupted
//! and goes on, and what it says to a file that is wrong.

use std::fs;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Lines};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A directory of one test; gone when the test is.
pub struct Place(PathBuf);

impl Place {
    pub fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("larder-lab-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the temporary directory can be written");
        Place(path)
    }

    fn command(&self, text: &str) -> Command {
        let file = self.0.join("lab.toml");
        fs::write(&file, text).expect("the lab file can be written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(["lab", "run"]).arg(file).arg("--out").arg(self.out()).stdin(Stdio::null());
        command
    }

    /// Where a run writes.
    pub fn out(&self) -> PathBuf {
        self.0.join("out")
    }

    pub fn run(&self, text: &str, arguments: &[&str]) -> Output {
        self.command(text).args(arguments).output().expect("larder can be started")
    }

    pub fn results(&self) -> Value {
        let text = fs::read(self.out().join("results.json")).expect("there are results");
        serde_json::from_slice(&text).expect("they are JSON")
    }

    /// Every server runs in a directory of its own below this one.
    #[track_caller]
    pub fn nothing_is_left(&self) {
        let processes = fs::read_dir("/proc").expect("there is /proc").flatten();
        let inside = |path: PathBuf| fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&self.0));
        let left: Vec<PathBuf> = processes.map(|entry| entry.path()).filter(|path| inside(path.clone())).collect();
        assert!(left.is_empty(), "{left:?} still run");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const TINY: &str = r#"
title = "Tiny"
reference = "larder"
servers = ["larder", "nginx-cache", "absent"]

[[server]]
name = "absent"
profile = "nginx-static"

[method]
blocks = 3
slice = "300ms"
warm_max = "3s"

[[row]]
name = "hit"
size = 6221
connections = 8
only = ["larder", "nginx-cache"]

[[row]]
name = "pass"
kind = "pass"
size = 1000
connections = 4

[[row]]
name = "held"
kind = "idle"
size = 128
connections = 50
only = ["larder"]
"#;

pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_tiny_matrix_is_measured_and_leaves_nothing_running() {
    let place = Place::new("tiny");
    let output = place.run(TINY, &[]);
    assert!(output.status.success(), "{}", said(&output));
    let results = place.results();
    assert_eq!((&results["format"], &results["interrupted"]), (&"larder-lab/1".into(), &false.into()));
    let cells = results["cells"].as_array().expect("cells are a list");
    assert_eq!(cells.len(), 4 * 3, "four servers, the second copy among them, in three rows");
    let cell = |server: &str, row: &str| {
        let mut all = cells.iter().filter(|cell| cell["server"] == *server && cell["row"] == *row);
        all.next().expect("a cell for each server and row")
    };
    for server in ["larder", "larder-again", "nginx-cache"] {
        let hit = cell(server, "hit");
        assert_eq!(hit["colour"], "clean", "{server}: {}", hit["why"]);
        assert_eq!(hit["gate"]["bytes"], 6221, "{server}");
        assert!(hit["server_micros_per_answer"]["median"].as_f64().is_some_and(|micros| micros > 0.5), "{hit:#}");
        let blocks = hit["blocks"].as_array().expect("blocks are a list");
        assert_eq!(blocks.len(), 3, "{server}");
        for block in blocks {
            assert_eq!(block["origin_requests"], 0, "{server} asked the origin for a hit: {block:#}");
            assert!(block["server"]["pss_bytes"].as_u64().is_some_and(|bytes| bytes > 100_000), "{block:#}");
        }
        let pass = cell(server, "pass");
        let (good, asked) = (&pass["blocks"][0]["good"], &pass["blocks"][0]["origin_requests"]);
        assert!(asked.as_u64() >= good.as_u64() && good.as_u64() > Some(10), "{server}: {good} of {asked}");
    }
    assert_eq!(cell("absent", "pass")["colour"], "white", "a server of files passes nothing");
    assert_eq!(cell("nginx-cache", "held")["colour"], "white");
    assert_eq!(cell("larder", "held")["blocks"][0]["held"]["alive"], 50);
    let noise = results["noise"].as_array().expect("noise is a list");
    assert!(noise.iter().any(|noise| noise["row"] == "hit" && noise["metric"] == "server-micros-per-answer"));
    let nginx = results["servers"].as_array().expect("servers are a list").iter().find(|s| s["name"] == "nginx-cache");
    let nginx = nginx.expect("nginx is a server");
    assert!(nginx["version"].as_str().is_some_and(|version| version.contains("nginx/")), "{nginx:#}");
    assert_eq!(nginx["binary_sha256"].as_str().map(str::len), Some(64));
    assert!(nginx["configs"][0]["text"].as_str().is_some_and(|text| text.contains("proxy_cache ")));
    place.nothing_is_left();
}

/// What a run says, line by line.
struct Sayings {
    lines: Lines<BufReader<ChildStderr>>,
    seen: String,
}

impl Sayings {
    fn of(child: &mut Child) -> Sayings {
        let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        Sayings { lines, seen: String::new() }
    }

    fn next(&mut self) -> Option<String> {
        let line = self.lines.next()?.expect("it writes text");
        self.seen.push_str(&format!("{line}\n"));
        Some(line)
    }

    /// Waits for a line that holds a word.
    #[track_caller]
    fn wait_for(&mut self, word: &str) {
        while let Some(line) = self.next() {
            if line.contains(word) {
                return;
            }
        }
        panic!("it ended before `{word}`: {}", self.seen);
    }

    /// To the end, which is when nobody holds the other end any more.
    fn read_to_end(mut self) -> String {
        while self.next().is_some() {}
        self.seen
    }
}

/// The processes that run in the directory of one server, and whose binary has this name.
fn processes_of(place: &Place, server: &str, binary: &str) -> Vec<Pid> {
    let dir = place.0.join("out/work").join(server);
    let processes = fs::read_dir("/proc").expect("there is /proc").flatten().map(|entry| entry.path());
    let is_it = |path: &PathBuf| {
        let runs = |link: &str, what: &dyn Fn(&Path) -> bool| fs::read_link(path.join(link)).is_ok_and(|to| what(&to));
        runs("cwd", &|cwd| cwd == dir) && runs("exe", &|exe| exe.file_name().is_some_and(|name| name == binary))
    };
    let number = |path: PathBuf| Pid::from_raw(path.file_name()?.to_str()?.parse().ok()?);
    processes.filter(is_it).filter_map(number).collect()
}

/// Starts a run and waits until its first block has begun.
fn begun(place: &Place, text: &str) -> (Child, Sayings) {
    let mut child = place.command(text).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("larder starts");
    let mut sayings = Sayings::of(&mut child);
    sayings.wait_for("block  1");
    (child, sayings)
}

/// One row that lasts, of larder and of what else is named.
fn lasting(servers: &str) -> String {
    format!(
        "title = \"Lasting\"\nreference = \"larder\"\n{servers}\n[method]\nblocks = 3\nslice = \"300ms\"\nwarm_max = \"1s\"\n\
         [[row]]\nname = \"hit\"\nsize = 6221\nconnections = 4\n"
    )
}

#[test]
fn a_run_ends_with_words_when_its_origin_is_gone() {
    let place = Place::new("no-origin");
    let (mut child, sayings) = begun(&place, &lasting("servers = [\"larder\"]"));
    let origin = processes_of(&place, "origin", "larder");
    assert_eq!(origin.len(), 1, "the origin is a process of its own");
    kill_process(origin[0], Signal::KILL).expect("it runs");
    let said = sayings.read_to_end();
    assert_eq!(child.wait().expect("it ends").code(), Some(1), "{said}");
    assert!(said.contains("error: the origin does not answer any more (row hit)"), "{said}");
    place.nothing_is_left();
}

/// A process that lives and listens no more: a shell that outlives the nginx it has started.
#[test]
fn a_server_that_lives_and_takes_no_connection_counts_as_dead() {
    let place = Place::new("hung");
    let wrapper = place.0.join("wrapper.sh");
    let script =
        "#!/bin/sh\nPATH=$PATH:/usr/sbin\n[ \"$1\" = -v ] && exec nginx -v\nnginx \"$@\" &\nwait\nexec sleep 600\n";
    fs::write(&wrapper, script).expect("the script can be written");
    fs::set_permissions(&wrapper, Permissions::from_mode(0o755)).expect("it is ours");
    let server = format!("[[server]]\nname = \"hung\"\nprofile = \"nginx-cache\"\nbinary = {:?}\n", wrapper);
    let (mut child, mut sayings) = begun(&place, &lasting(&format!("servers = [\"larder\", \"hung\"]\n{server}")));
    // While it is warmed up it would be another story.
    if !sayings.seen.contains("block  1  hung") {
        sayings.wait_for("block  1  hung");
    }
    for process in processes_of(&place, "hung", "nginx") {
        // Workers may be gone with their master.
        let _ = kill_process(process, Signal::KILL);
    }
    let said = sayings.read_to_end();
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "the others go on: {said}");
    let results = place.results();
    let cell = results["cells"].as_array().and_then(|cells| cells.iter().find(|cell| cell["server"] == "hung"));
    let cell = cell.expect("a cell for the server that hung");
    assert_eq!(cell["colour"], "red", "{said}");
    assert_eq!(cell["why"][0], "it died, hung, or a process of it was replaced, under load", "{:#}", cell["why"]);
    assert_eq!(cell["comparable_in"], Value::Array(vec![]));
    assert!(said.contains("hung: cannot connect to"), "{said}");
    place.nothing_is_left();
}

#[test]
fn a_lab_that_is_killed_leaves_no_server() {
    let place = Place::new("killed");
    let (mut child, sayings) = begun(&place, &lasting("servers = [\"larder\", \"nginx-cache\"]"));
    kill_process(Pid::from_child(&child), Signal::KILL).expect("it runs");
    child.wait().expect("it ends");
    // What ends the servers holds the other end of the pipe until they are gone.
    sayings.read_to_end();
    place.nothing_is_left();
}

#[test]
fn an_interrupted_matrix_goes_on_where_it_was() {
    let place = Place::new("interrupted");
    let text = TINY.replace(", \"absent\"", "");
    let text = text.replace("[[server]]\nname = \"absent\"\nprofile = \"nginx-static\"\n", "");
    let mut child = place.command(&text).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("larder starts");
    let mut sayings = Sayings::of(&mut child);
    sayings.wait_for("block  2");
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    place.nothing_is_left();
    let results = place.results();
    assert_eq!(results["interrupted"], true);
    assert_eq!(results["cells"][0]["blocks"].as_array().map(Vec::len), Some(1), "only whole blocks are kept");
    let first = results["cells"][0]["blocks"][0].clone();

    let output = place.run(&text, &[]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("goes on after 1 blocks"), "{}", said(&output));
    let results = place.results();
    assert_eq!((&results["interrupted"], &results["cells"][0]["blocks"][0]), (&false.into(), &first));
    assert_eq!(results["cells"][0]["blocks"].as_array().map(Vec::len), Some(3));
    place.nothing_is_left();
}

#[track_caller]
fn check_refused(text: &str, arguments: &[&str], parts: &[&str]) {
    let place = Place::new("refused");
    let output = place.run(text, arguments);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    for part in parts {
        assert!(said(&output).contains(part), "no `{part}` in {}", said(&output));
    }
    place.nothing_is_left();
}

#[test]
fn what_is_wrong_is_said() {
    check_refused("title = ", &[], &["lab.toml:1:"]);
    let slip = TINY.replace("\"nginx-cache\", \"absent\"", "\"nginx-chache\"");
    check_refused(&slip, &[], &["lab.toml:4: unknown profile `nginx-chache`: did you mean `nginx-cache`?"]);
    check_refused(&TINY.replace("connections = 8", "conections = 8"), &[], &["did you mean `connections`?"]);
    check_refused(TINY, &["--rows", "miss"], &["no row's name holds `miss`", "  held"]);
    check_refused(TINY, &["--only", "nginx"], &["unknown server `nginx`"]);
    let many = TINY.replace("connections = 50", "connections = 59999");
    check_refused(&many, &[], &["59999 connections do not fit into", "ulimit -n"]);
    let wrong = TINY.replace("nginx-static\"", "larder\"\nargs = [\"--nonsense\"]");
    check_refused(&wrong, &[], &["absent did not start", "output.log ends with", "--nonsense"]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = listener.local_addr().expect("it has an address").port();
    let taken = TINY.replace("nginx-static\"", &format!("larder\"\nport = {port}"));
    check_refused(
        &taken,
        &[],
        &[&format!("absent: port {port} is taken by"), &format!("(process {}", std::process::id())],
    );
    let binary = TINY.replace("nginx-static\"", "larder\"\nbinary = \"no/such\"");
    check_refused(&binary, &[], &["absent: no/such"]);
    let place = Place::new("unreadable");
    for file in [Path::new("no-such.toml"), &place.0] {
        let output = Command::new(env!("CARGO_BIN_EXE_larder")).args(["lab", "run"]).arg(file).output();
        let output = output.expect("larder can be started");
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains(&file.display().to_string()), "{}", said(&output));
    }
}
