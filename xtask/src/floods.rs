//! `cargo xtask floods`: what hostile clients of HTTP/2 cost a server and a good client of it. larder, and HAProxy and nginx where they
//! are installed, stand one after the other in front of the same origin; each is left alone first, then flooded in seven ways. A
//! table says how much more memory was resident than in calm, and what the good client had to wait for.
//!
//! In `cargo xtask test` larder alone is flooded, shortly; whether its memory stayed, whether it closed the attackers' connections and
//! whether every good answer was right is asserted there, and never a time.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::flood_attack::{ATTACKERS, Attacked, FLOODS, Flood, LARGE_PATH, attack};
use crate::flood_client::FloodClient;
use crate::memory::resident;
use crate::original_scenario::Answer;
use crate::project::{Project, Stopwatch};
use crate::scenario_origin::RecordingOrigin;
use crate::step_tally::Tally;
use crate::{edge_counts, ports, process_signal};

const SECONDS_DEFAULT: f64 = 5.0;
const SECONDS_IN_TESTS: f64 = 0.7;
const START_SECONDS_MAX: f64 = 20.0;
/// More may not be resident than in calm.
const GROWTH_BYTES_MAX: u64 = 16 << 20;
const PAGE_BYTES: usize = 6_000;
const LARGE_BYTES: usize = 8 << 20;
/// The good client asks so often.
const PACE: Duration = Duration::from_millis(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    let seconds = match options {
        [] => SECONDS_DEFAULT,
        ["--seconds", seconds] => seconds.parse().map_err(|_| format!("'{seconds}' is no number of seconds"))?,
        _ => return Err("floods takes nothing, or --seconds N".to_string()),
    };
    project.build_larder()?;
    let folder = project.scratch("floods")?;
    let origin = origin()?;
    println!(
        "{:<9} {:<13} {:>9} {:>8} {:>8} {:>6} {:>7} {:>7}",
        "server", "flood", "resident", "p50 ms", "p99 ms", "wrong", "opened", "closed"
    );
    let mut wrong = Vec::new();
    for server in [
        Server::larder(project, &folder, origin.port)?,
        Server::haproxy(&folder, origin.port)?,
        Server::nginx(&folder, origin.port)?,
    ]
    .into_iter()
    .flatten()
    {
        let phases = server.flood_all(seconds)?;
        let calm = phases[0].clone();
        for phase in &phases {
            println!("{}", phase.line(server.name, &calm));
        }
        if server.name == "larder" {
            wrong = complaints(&phases);
        }
        server.end()?;
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n       ")) }
}

pub fn run(project: &Project) -> Result<Tally, String> {
    let folder = project.scratch("floods")?;
    let origin = origin()?;
    let server = Server::larder(project, &folder, origin.port)?.ok_or("larder is always there")?;
    let phases = server.flood_all(SECONDS_IN_TESTS)?;
    server.end()?;
    let said = std::fs::read_to_string(folder.join("larder.log")).unwrap_or_default();
    let mut wrong = complaints(&phases);
    wrong.extend(said.lines().filter(|line| line.contains("panicked")).map(str::to_string));
    let mut tally = Tally::of(wrong);
    if tally.failed > 0 {
        tally.remarks.extend(phases.iter().map(|phase| phase.line("larder", &phases[0])));
    }
    Ok(tally)
}

/// What must hold whatever the machine is busy with.
fn complaints(phases: &[Phase]) -> Vec<String> {
    let mut wrong = Vec::new();
    for phase in phases {
        let name = phase.name();
        let growth_bytes = phase.peak_bytes.saturating_sub(phases[0].peak_bytes);
        if growth_bytes > GROWTH_BYTES_MAX {
            wrong.push(format!("{name}: {} KiB more are resident than in calm", growth_bytes >> 10));
        }
        if phase.wrong > 0 || phase.waits_ms.is_empty() {
            wrong.push(format!("{name}: of {} good answers {} were wrong", phase.waits_ms.len(), phase.wrong));
        }
        if phase.flood.is_some_and(Flood::is_offence) && phase.closed == 0 {
            wrong.push(format!("{name}: none of {} connections was closed", phase.connections));
        }
    }
    wrong
}

fn origin() -> Result<RecordingOrigin, String> {
    let answer = |target: &str, bytes: usize| Answer {
        target: Some(target.to_string()),
        headers: vec!["Cache-Control: max-age=600".to_string()],
        body: Some("a".repeat(bytes)),
        ..Answer::default()
    };
    RecordingOrigin::start(vec![answer(LARGE_PATH, LARGE_BYTES), answer("/page", PAGE_BYTES)])
}

/// What was seen during one flood, or in calm.
#[derive(Clone, Default)]
struct Phase {
    flood: Option<Flood>,
    peak_bytes: u64,
    /// Of the good client, sorted.
    waits_ms: Vec<f64>,
    wrong: usize,
    connections: u64,
    closed: u64,
}

impl Phase {
    fn name(&self) -> &'static str {
        self.flood.map_or("calm", Flood::name)
    }

    fn percentile(&self, part: f64) -> f64 {
        let last = self.waits_ms.len().saturating_sub(1);
        self.waits_ms.get((last as f64 * part) as usize).copied().unwrap_or(f64::NAN)
    }

    fn line(&self, server: &str, calm: &Phase) -> String {
        let growth_mib = (self.peak_bytes as f64 - calm.peak_bytes as f64) / f64::from(1 << 20);
        let memory = match self.flood {
            None => format!("{:.1} MiB", self.peak_bytes as f64 / f64::from(1 << 20)),
            Some(_) => format!("{growth_mib:+.1} MiB"),
        };
        let (p50, p99) = (self.percentile(0.5), self.percentile(0.99));
        let (name, wrong, opened, closed) = (self.name(), self.wrong, self.connections, self.closed);
        format!("{server:<9} {name:<13} {memory:>9} {p50:>8.2} {p99:>8.2} {wrong:>6} {opened:>7} {closed:>7}")
    }
}

/// A server that listens for HTTP/2 in the clear.
struct Server {
    name: &'static str,
    port: u16,
    process: Child,
}

impl Server {
    fn larder(project: &Project, folder: &Path, origin: u16) -> Result<Option<Server>, String> {
        let port = ports::free()?;
        let mut command = Command::new(project.larder());
        command.args(["serve", "--no-supervisor", "--admin", "off", "--workers", "2", "--memory", "64MiB", "--h2c"]);
        command.args(["--listen", &format!("127.0.0.1:{port}"), "--origin", &format!("http://127.0.0.1:{origin}")]);
        command.env(edge_counts::FOLDER_VARIABLE, project.edges_folder());
        Server::start("larder", port, command, folder)
    }

    fn haproxy(folder: &Path, origin: u16) -> Result<Option<Server>, String> {
        let port = ports::free()?;
        let text = format!(
            "global\n  maxconn 4096\n  nbthread 2\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n\
             \x20 timeout server 60s\ncache c\n  total-max-size 64\n  max-object-size 9000000\nfrontend f\n  bind 127.0.0.1:{port} proto h2\n\
             \x20 default_backend b\nbackend b\n  http-request cache-use c\n  http-response cache-store c\n  server o 127.0.0.1:{origin}\n"
        );
        let config = write(folder, "haproxy.cfg", &text)?;
        let mut command = Command::new("haproxy");
        command.args(["-db", "-f"]).arg(config);
        Server::start("HAProxy", port, command, folder)
    }

    fn nginx(folder: &Path, origin: u16) -> Result<Option<Server>, String> {
        let (port, place) = (ports::free()?, folder.display());
        let text = format!(
            "daemon off; worker_processes 2; pid {place}/nginx.pid; error_log {place}/nginx-error.log;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; client_body_temp_path {place}/b; proxy_temp_path {place}/p; fastcgi_temp_path {place}/f;\n\
             uwsgi_temp_path {place}/u; scgi_temp_path {place}/s; proxy_cache_path {place}/cache keys_zone=z:8m;\n\
             server {{ listen 127.0.0.1:{port} http2; keepalive_requests 100000000; proxy_cache z;\n\
             location / {{ proxy_pass http://127.0.0.1:{origin}; }} }} }}\n"
        );
        let config = write(folder, "nginx.conf", &text)?;
        let mut command = Command::new("nginx");
        command.arg("-c").arg(config).args(["-e", "/dev/null"]);
        Server::start("nginx", port, command, folder)
    }

    /// None: it is not installed.
    fn start(name: &'static str, port: u16, mut command: Command, folder: &Path) -> Result<Option<Server>, String> {
        let log = folder.join(format!("{name}.log"));
        let log = std::fs::File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let Ok(process) = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn() else {
            println!("{name} is not installed, and left out");
            return Ok(None);
        };
        let mut server = Server { name, port, process };
        ports::wait(port, START_SECONDS_MAX, || matches!(server.process.try_wait(), Ok(None)))?;
        Ok(Some(server))
    }

    /// In calm first.
    fn flood_all(&self, seconds: f64) -> Result<Vec<Phase>, String> {
        let said = |e: std::io::Error| format!("{}: {e}", self.name);
        // What is stored is no growth.
        let mut first = FloodClient::connect(self.port).map_err(said)?;
        for path in ["/page", LARGE_PATH, LARGE_PATH] {
            first.ask(path).map_err(said)?;
        }
        let floods = std::iter::once(None).chain(FLOODS.map(Some));
        Ok(floods.map(|flood| self.flood(flood, seconds)).collect())
    }

    fn flood(&self, flood: Option<Flood>, seconds: f64) -> Phase {
        let (attacked, stopped) = (Attacked::default(), AtomicBool::new(false));
        let mut phase = Phase { flood, ..Phase::default() };
        std::thread::scope(|scope| {
            for _ in 0..flood.map_or(0, |_| ATTACKERS) {
                scope.spawn(|| flood.into_iter().for_each(|flood| attack(flood, self.port, &attacked)));
            }
            let good = scope.spawn(|| ask_steadily(self.port, &stopped));
            let watch = Stopwatch::start();
            while watch.seconds() < seconds {
                std::thread::sleep(LOOK_EVERY);
                phase.peak_bytes = phase.peak_bytes.max(self.resident_bytes());
            }
            stopped.store(true, Relaxed);
            attacked.stopped.store(true, Relaxed);
            (phase.waits_ms, phase.wrong) = good.join().unwrap_or((Vec::new(), 1));
        });
        phase.waits_ms.sort_by(f64::total_cmp);
        (phase.connections, phase.closed) = (attacked.connections.load(Relaxed), attacked.closed.load(Relaxed));
        phase
    }

    /// With its children, which nginx works in.
    fn resident_bytes(&self) -> u64 {
        let id = self.process.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        let all = children.split_whitespace().filter_map(|child| child.parse().ok()).chain([id]);
        all.filter_map(resident).map(|(now, _)| now).sum()
    }

    /// Must end well, and leaves its edge counts if it is larder.
    fn end(mut self) -> Result<(), String> {
        process_signal::send("TERM", &self.process.id().to_string());
        match self.process.wait() {
            Ok(status) if status.success() || self.name != "larder" => Ok(()),
            status => Err(format!("{} ended badly: {status:?}", self.name)),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        process_signal::send("TERM", &self.process.id().to_string());
        let _ = self.process.wait();
    }
}

/// The good client: the milliseconds of every right answer, and how many were not right.
fn ask_steadily(port: u16, stopped: &AtomicBool) -> (Vec<f64>, usize) {
    let (mut waits_ms, mut wrong, mut client) = (Vec::new(), 0, None);
    while !stopped.load(Relaxed) {
        std::thread::sleep(PACE);
        let known = client.take().filter(FloodClient::may_ask);
        let asked = known.map_or_else(|| FloodClient::connect(port), Ok).and_then(|mut here| {
            let answer = here.ask("/page")?;
            client = Some(here);
            Ok(answer)
        });
        match asked {
            Ok((body, wait_ms)) if body.len() == PAGE_BYTES && body.iter().all(|byte| *byte == b'a') => {
                waits_ms.push(wait_ms);
            }
            _ => wrong += 1,
        }
    }
    (waits_ms, wrong)
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, String> {
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}
