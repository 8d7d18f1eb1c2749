//! Runs the public HTTP cache test suite, `http-cache-tests`: its origin on the loopback, a larder with an empty
//! cache in front, its client; then holds the verdicts against the closed list in docs/conformance.md.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::project::{Project, Stopwatch};
use crate::step_tally::Tally;
use crate::verdicts::{Kind, Test, Verdict, Verdicts, list};
use crate::{edge_counts, ports};

/// A run takes about 20 s. The client may stay after it printed its results, so its end is not waited for.
const CLIENT_SECONDS_MAX: f64 = 300.0;
const START_SECONDS_MAX: f64 = 20.0;
const CONFIG: &str = "spec/conformance/larder.toml";
const SUITE: &str = "target/tools/http-cache-tests/node_modules/http-cache-tests";

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    let verdicts = match options {
        [] | ["--list"] => {
            project.build_larder()?;
            against_larder(project)?
        }
        ["--against", url, "--origin-port", port] => {
            let port = port.parse().map_err(|_| format!("'{port}' is no port"))?;
            let origin = Origin::start(project, port)?;
            let verdicts = judge(project, url)?;
            drop(origin);
            for (id, kind, verdict) in verdicts.failures() {
                println!("{} {id}: {}: {}", kind.word(), verdict.word(), verdicts.said(id));
            }
            println!("{}", verdicts.summary().join("\n"));
            return Ok(());
        }
        _ => return Err("conformance takes nothing, --list, or --against URL --origin-port PORT".to_string()),
    };
    if options == ["--list"] {
        for (id, kind, verdict) in verdicts.failures() {
            println!("| `{id}` | {} | {} | {} |", kind.word(), verdict.word(), verdicts.said(id));
        }
    }
    println!("{}", verdicts.summary().join("\n"));
    let differences = verdicts.differences(&list(&project.read("docs/conformance.md")?));
    println!("{}", differences.join("\n"));
    match differences.len() {
        0 => Ok(()),
        count => Err(format!("docs/conformance.md and the run differ in {count} places")),
    }
}

pub fn run(project: &Project) -> Result<Tally, String> {
    let verdicts = against_larder(project)?;
    let differences = verdicts.differences(&list(&project.read("docs/conformance.md")?));
    let passed = verdicts.count(Kind::Required, Verdict::Pass) + verdicts.count(Kind::Optimal, Verdict::Pass);
    let remarks = verdicts.summary().into_iter().chain(differences.iter().cloned()).collect();
    Ok(Tally { passed, failed: differences.len(), remarks })
}

fn against_larder(project: &Project) -> Result<Verdicts, String> {
    let origin = Origin::start(project, ports::free()?)?;
    let larder = Larder::start(project, origin.port)?;
    let verdicts = judge(project, &format!("http://127.0.0.1:{}", larder.port))?;
    larder.end()?;
    Ok(verdicts)
}

fn judge(project: &Project, url: &str) -> Result<Verdicts, String> {
    Ok(Verdicts::judge(&tests(project)?, client(project, url)?))
}

fn suite(project: &Project) -> Result<PathBuf, String> {
    let folder = project.root.join(SUITE);
    if folder.is_dir() { Ok(folder) } else { Err(format!("{SUITE} is not there: ./setup")) }
}

fn node(folder: &Path) -> Command {
    let mut command = Command::new("node");
    command.current_dir(folder).stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// What the suite holds, from the suite itself.
fn tests(project: &Project) -> Result<Vec<Test>, String> {
    let folder = suite(project)?;
    let output = node(&folder).arg(project.root.join("spec/conformance/list.mjs")).arg(&folder).output();
    let output = output.map_err(|e| format!("node: {e}"))?.stdout;
    let described: Vec<Value> = serde_json::from_slice(&output).map_err(|e| format!("list.mjs: {e}"))?;
    let test = |value: &Value| {
        let kind = match value["kind"].as_str()? {
            "required" => Kind::Required,
            "optimal" => Kind::Optimal,
            "check" => Kind::Check,
            _ => return None,
        };
        let depends_on =
            value["depends_on"].as_array()?.iter().filter_map(|id| Some(id.as_str()?.to_string())).collect();
        Some(Test { id: value["id"].as_str()?.to_string(), kind, depends_on })
    };
    described.iter().map(test).collect::<Option<Vec<Test>>>().ok_or("list.mjs printed something odd".to_string())
}

/// Runs the suite's client and takes the JSON it prints.
fn client(project: &Project, url: &str) -> Result<Value, String> {
    let child = node(&suite(project)?)
        .args(["--no-warnings", "cli.mjs"])
        .env("npm_config_base", url)
        .env("npm_package_config_id", "")
        .stdout(Stdio::piped())
        .spawn();
    let mut child = Ended(child.map_err(|e| format!("node: {e}"))?);
    let mut stdout = child.0.stdout.take().ok_or("node has no output")?;
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut piece = [0; 16384];
        while let Ok(length @ 1..) = stdout.read(&mut piece) {
            if send.send(piece[..length].to_vec()).is_err() {
                break;
            }
        }
    });
    let watch = Stopwatch::start();
    let mut printed = Vec::new();
    loop {
        let left = (CLIENT_SECONDS_MAX - watch.seconds()).max(0.0);
        match receive.recv_timeout(Duration::from_secs_f64(left)) {
            Ok(piece) => printed.extend(piece),
            Err(mpsc::RecvTimeoutError::Timeout) => return Err(format!("no results within {CLIENT_SECONDS_MAX} s")),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
        if printed.ends_with(b"}\n") && serde_json::from_slice::<Value>(&printed).is_ok() {
            break;
        }
    }
    serde_json::from_slice(&printed).map_err(|e| format!("the suite's client printed no results: {e}"))
}

/// The suite's origin, until dropped.
struct Origin {
    port: u16,
    _process: Ended,
}

impl Origin {
    fn start(project: &Project, port: u16) -> Result<Origin, String> {
        let child = node(&suite(project)?)
            .arg("--require")
            .arg(project.root.join("spec/conformance/loopback.cjs"))
            .arg("server/server.mjs")
            .env("npm_config_protocol", "http")
            .env("npm_config_port", port.to_string())
            .env("npm_config_pidfile", project.scratch("conformance")?.join("origin.pid"))
            .stdout(Stdio::null())
            .spawn();
        let mut process = Ended(child.map_err(|e| format!("node: {e}"))?);
        ports::wait(port, START_SECONDS_MAX, || process.runs())?;
        Ok(Origin { port, _process: process })
    }
}

/// A larder with an empty cache and the committed config, which says why it has the one line it has.
struct Larder {
    port: u16,
    process: Ended,
}

impl Larder {
    fn start(project: &Project, origin_port: u16) -> Result<Larder, String> {
        let port = ports::free()?;
        let log = project.scratch("conformance")?.join("larder.log");
        let log = std::fs::File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let child = Command::new(project.larder())
            .args(["serve", "--no-supervisor", "--admin", "off", "--listen", &format!("127.0.0.1:{port}")])
            .arg("--config")
            .arg(project.root.join(CONFIG))
            .args(["--origin", &format!("http://127.0.0.1:{origin_port}")])
            .env(edge_counts::FOLDER_VARIABLE, project.edges_folder())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        let mut process = Ended(child.map_err(|e| format!("{}: {e}", project.larder().display()))?);
        ports::wait(port, START_SECONDS_MAX, || process.runs())?;
        Ok(Larder { port, process })
    }

    /// Asks it to end and waits until it did, so that it leaves its edge counts.
    fn end(mut self) -> Result<(), String> {
        edge_counts::terminate(self.process.0.id());
        let watch = Stopwatch::start();
        while self.process.runs() {
            if watch.seconds() > START_SECONDS_MAX * 2.0 {
                return Err("larder did not end after SIGTERM".to_string());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        match self.process.0.wait() {
            Ok(status) if status.success() => Ok(()),
            status => Err(format!("larder ended badly: {status:?}")),
        }
    }
}

/// A process that does not outlive its owner.
struct Ended(Child);

impl Ended {
    fn runs(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
