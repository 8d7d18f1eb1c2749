//! The larder of a part, and who reads its events along: started, told to settle, and ended.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::counted_origin::CountedOrigin;
use super::larder_books::{NamedFigures, by_label, metrics};
use crate::project::{Project, Stopwatch};
use crate::{ports, started_larder};

const PATIENCE_S: f64 = 30.0;
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What is the same for so many looks has settled.
const LOOKS: usize = 3;

/// By which policy larder decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its own, by routes.
    Builtin,
    /// A VCL, in the place of varnishd.
    Varnishd,
}

pub struct CountedLarder {
    pub part: Part,
    pub port: u16,
    pub folder: PathBuf,
    /// The binary.
    pub program: PathBuf,
    process: Child,
    reader: Child,
}

impl Part {
    pub const ALL: [Part; 2] = [Part::Builtin, Part::Varnishd];

    pub fn word(self) -> &'static str {
        match self {
            Part::Builtin => "builtin",
            Part::Varnishd => "varnishd",
        }
    }

    /// Of these there is an answer even in a short run.
    pub fn classes(self) -> &'static [&'static str] {
        match self {
            Part::Builtin => &["hit", "stale", "revalidated", "miss", "pass", "purge", "synth", "error", "refused"],
            Part::Varnishd => &["hit", "stale", "miss", "pass", "synth", "error", "refused"],
        }
    }
}

impl Drop for CountedLarder {
    fn drop(&mut self) {
        for process in [&mut self.reader, &mut self.process] {
            let _ = process.kill().and_then(|()| process.wait());
        }
    }
}

impl CountedLarder {
    pub fn start(
        project: &Project,
        part: Part,
        folder: &Path,
        origins: &[CountedOrigin],
    ) -> Result<CountedLarder, String> {
        let left_over = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?.flatten();
        for file in left_over.filter(|file| file.file_name().to_string_lossy().starts_with("events.json")) {
            let _ = fs::remove_file(file.path());
        }
        let _ = fs::remove_file(folder.join("access.log"));
        let port = ports::free()?;
        let process = match part {
            Part::Builtin => start_builtin(project, folder, port, origins)?,
            Part::Varnishd => start_varnishd(project, folder, port, origins)?,
        };
        let program = project.larder();
        let reader = Command::new(&program)
            .args(["log", "--record", "events.json", "--record-size", "4GiB", "--rate", "1000000"])
            .args(["--admin", "unix:a.sock"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| format!("larder log: {error}"))?;
        let larder = CountedLarder { part, port, folder: folder.to_path_buf(), program, process, reader };
        larder.wait_for("larder log does not read along", |figures| figures["larder_event_readers"] > 0)?;
        Ok(larder)
    }

    fn wait_for(&self, what: &str, is_met: impl Fn(&NamedFigures) -> bool) -> Result<(), String> {
        let begun = Stopwatch::start();
        while !metrics(&self.folder).is_ok_and(|figures| is_met(&figures)) {
            if begun.seconds() > PATIENCE_S {
                return Err(format!("{what}: {}", self.folder.join("larder.log").display()));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Waits until nothing is under way and what is told has been written.
    pub fn settle(&self, origins: &[CountedOrigin]) -> Result<(), String> {
        let begun = Stopwatch::start();
        let mut seen = Vec::new();
        loop {
            let figures = metrics(&self.folder)?;
            let is_idle = figures["larder_requests_active"] == 0
                && figures["larder_connections_active"] == 0
                && origins.iter().all(CountedOrigin::is_idle);
            seen.push(is_idle.then(|| self.sizes(&figures)));
            if let Some(last) = seen.last_chunk::<LOOKS>()
                && last[0].is_some()
                && last.iter().all(|one| *one == last[0])
            {
                return Ok(());
            }
            if begun.seconds() > PATIENCE_S {
                let names = ["larder_requests_active", "larder_connections_active"];
                let active = names.map(|name| figures[name]);
                return Err(format!("it does not come to rest: {active:?} requests and connections are active"));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// What grows as long as anything is done or written.
    fn sizes(&self, figures: &NamedFigures) -> Vec<u64> {
        let file = |name: &str| fs::metadata(self.folder.join(name)).map_or(0, |file| file.len());
        let responses = by_label(figures, "larder_responses_total", &[]).values().sum();
        vec![file("access.log"), file("events.json"), responses, figures["larder_origin_requests_total"]]
    }
}

fn start_builtin(project: &Project, folder: &Path, port: u16, origins: &[CountedOrigin]) -> Result<Child, String> {
    let nowhere = ports::free()?;
    let origin = |origin: &CountedOrigin| {
        let timeouts = if origin.name == "silent" { "timeouts = { first_byte = \"200ms\" }\n" } else { "" };
        format!("[origin.{}]\nurls = [\"http://127.0.0.1:{}\"]\n{timeouts}", origin.name, origin.port)
    };
    let config = format!(
        "{}[origin.down]\nurls = [\"http://127.0.0.1:{nowhere}\"]\n\
         [[route]]\norigin = \"app\"\n\
         [[route]]\npath = \"/other\"\norigin = \"other\"\nstrip_prefix = \"/other\"\n\
         [[route]]\npath = \"/silent\"\norigin = \"silent\"\n\
         [[route]]\npath = \"/down\"\norigin = \"down\"\n\
         [log]\npath = \"access.log\"\nformat = \"json\"\n",
        origins.iter().map(origin).collect::<String>()
    );
    fs::write(folder.join("larder.toml"), config).map_err(|error| format!("larder.toml: {error}"))?;
    let address = format!("127.0.0.1:{port}");
    started_larder::start(project, folder, &["--config", "larder.toml", "--listen", &address, "--h2c"])
}

fn start_varnishd(project: &Project, folder: &Path, port: u16, origins: &[CountedOrigin]) -> Result<Child, String> {
    let nowhere = ports::free()?;
    let backend = |name: &str, port: u16, more: &str| {
        format!("backend {name} {{ .host = \"127.0.0.1\"; .port = \"{port}\"; {more} }}\n")
    };
    let backends = origins.iter().map(|origin| {
        let more = if origin.name == "silent" { ".first_byte_timeout = 0.2s;" } else { "" };
        backend(origin.name, origin.port, more)
    });
    let text = format!("vcl 4.1;\n{}{}{PROGRAM}", backends.collect::<String>(), backend("down", nowhere, ""));
    fs::write(folder.join("default.vcl"), text).map_err(|error| format!("default.vcl: {error}"))?;
    let log = File::create(folder.join("larder.log")).map_err(|error| error.to_string())?;
    let address = format!("127.0.0.1:{port}");
    let mut process = Command::new(project.larder())
        .current_dir(folder)
        .args(["varnishd", "-F", "-j", "none", "-T", "none", "-s", "malloc,128m"])
        .args(["-p", "feature=+http2", "-p", "vsl_space=256m", "--admin", "unix:a.sock", "--log", "access.log"])
        .args(["-f", &folder.join("default.vcl").display().to_string()])
        .args(["-a", &address, "-n", &folder.join("w").display().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|error| format!("larder varnishd: {error}"))?;
    let is_up = ports::wait(port, PATIENCE_S, || matches!(process.try_wait(), Ok(None)));
    is_up.map_err(|why| format!("{why}: {}", folder.join("larder.log").display()))?;
    Ok(process)
}

const PROGRAM: &str = r#"
sub vcl_recv {
    if (req.url ~ "^/other/") {
        set req.backend_hint = other;
        set req.url = regsub(req.url, "^/other", "");
    } elsif (req.url ~ "^/silent") {
        set req.backend_hint = silent;
    } elsif (req.url ~ "^/down") {
        set req.backend_hint = down;
    }
    if (req.method == "PURGE") { return (purge); }
    if (req.url ~ "^/moved/.*b=1") { return (synth(404)); }
    if (req.url ~ "^/cookie" && req.restarts == 0) { return (restart); }
    if (req.url ~ "^/text/1") { return (pass); }
}
sub vcl_backend_response {
    if (bereq.url ~ "^/stale") { set beresp.grace = 1h; set beresp.ttl = 1ms; }
}
"#;
