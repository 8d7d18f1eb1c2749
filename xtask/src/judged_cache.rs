//! The two programs that a scenario is put to, larder and Varnish, each with the same VCL file in a folder of its own:
//! started, asked whether they take their backends for healthy, and ended. Or both are started by Varnish's command line
//! without a program, which the management port brings them.
//!
//! Both listen with the PROXY protocol, so that a scenario may have clients of any address. Varnish runs without its own
//! gzip, which larder does not have either.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::project::Project;
use crate::{ports, process_signal};

/// Varnish needs its C compiler first.
const START_SECONDS_MAX: f64 = 30.0;

/// A program lives for a few requests: what is compiled quickly need not be quick.
const QUICK_COMPILER: &str = "cc_command=exec cc -w -O0 -pthread -fpic -shared -Wl,-x -o %o %s";
const FEW_THREADS: [&str; 4] = ["-p", "thread_pools=1", "-p", "thread_pool_min=20"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    Larder,
    Varnish,
}

pub struct JudgedCache {
    pub port: u16,
    which: Judged,
    larder: PathBuf,
    folder: PathBuf,
    process: Child,
}

impl Judged {
    pub fn name(self) -> &'static str {
        match self {
            Judged::Larder => "larder",
            Judged::Varnish => "Varnish",
        }
    }
}

impl JudgedCache {
    /// By Varnish's command line, larder in the place of varnishd; without a program, and with gzip off. Also says where
    /// its management port is, which asks for no secret.
    pub fn start_managed(project: &Project, which: Judged, folder: &Path) -> Result<(JudgedCache, u16), String> {
        let (port, management) = (ports::free()?, ports::free()?);
        let mut command = match which {
            Judged::Larder => Command::new(project.larder()),
            Judged::Varnish => Command::new("varnishd"),
        };
        if which == Judged::Larder {
            command.arg("varnishd");
        }
        command.args(as_varnishd(port, folder)).args(["-b", "none", "-S", "none"]).args(FEW_THREADS);
        command.arg("-T").arg(format!("127.0.0.1:{management}")).args(["-p", QUICK_COMPILER]);
        let mut cache = JudgedCache::run(project, which, command, port, folder)?;
        // It may listen there a moment later than it serves.
        let waited = ports::wait(management, START_SECONDS_MAX, || matches!(cache.process.try_wait(), Ok(None)));
        waited.map_err(|why| format!("{}: {why}: {}", which.name(), cache.last_words()))?;
        Ok((cache, management))
    }

    /// `vcl_path` is where included files are looked for; the folder is for what the program leaves behind.
    pub fn start(
        project: &Project,
        which: Judged,
        vcl: &Path,
        vcl_path: &[PathBuf],
        folder: &Path,
    ) -> Result<JudgedCache, String> {
        let port = ports::free()?;
        let command = match which {
            Judged::Larder => larder(project, port, vcl, vcl_path, folder)?,
            Judged::Varnish => varnish(port, vcl, vcl_path, folder),
        };
        JudgedCache::run(project, which, command, port, folder)
    }

    fn run(
        project: &Project,
        which: Judged,
        mut command: Command,
        port: u16,
        folder: &Path,
    ) -> Result<JudgedCache, String> {
        let said = |e: std::io::Error| format!("{}: {e}", which.name());
        let log = std::fs::File::create(folder.join("log")).map_err(said)?;
        command.current_dir(folder).stdin(Stdio::null());
        let process = command.stdout(log.try_clone().map_err(said)?).stderr(log).spawn().map_err(said)?;
        let mut cache = JudgedCache { port, which, larder: project.larder(), folder: folder.to_path_buf(), process };
        let started = ports::wait(port, START_SECONDS_MAX, || matches!(cache.process.try_wait(), Ok(None)));
        started.map_err(|why| format!("{}: {why}: {}", which.name(), cache.last_words()))?;
        Ok(cache)
    }

    pub fn name(&self) -> &'static str {
        self.which.name()
    }

    /// Of the process that was started.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// What the program itself says of each backend that has a probe.
    pub fn backends_healthy(&self) -> Result<Vec<bool>, String> {
        let output = self.ask_for_backends().output().map_err(|e| format!("{}: {e}", self.which.name()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let healthy = match self.which {
            Judged::Larder => of_larder(&text),
            Judged::Varnish => of_varnish(&text),
        };
        match healthy.is_empty() {
            true => Err(format!("{} tells of no backend: {text}", self.which.name())),
            false => Ok(healthy),
        }
    }

    /// Loads another program beside the one that runs; larder only.
    pub fn load(&self, name: &str, file: &Path) -> Result<(), String> {
        let mut command = Command::new(&self.larder);
        command.args(["vcl", "load", name, "--admin", "unix:a.sock"]).arg(file).current_dir(&self.folder);
        let output = command.output().map_err(|e| format!("larder vcl load: {e}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("larder vcl load: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    fn ask_for_backends(&self) -> Command {
        let mut command = match self.which {
            Judged::Larder => Command::new(&self.larder),
            Judged::Varnish => Command::new("varnishadm"),
        };
        match self.which {
            Judged::Larder => command.args(["vcl", "backends", "--json", "--admin", "unix:a.sock"]),
            Judged::Varnish => command.arg("-n").arg(self.folder.join("varnish")).arg("backend.list"),
        };
        command.current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    /// How its log ends.
    pub fn last_words(&self) -> String {
        let log = std::fs::read(self.folder.join("log")).unwrap_or_default();
        crate::step_tally::tail(&String::from_utf8_lossy(&log), 6).join(" / ")
    }
}

impl Drop for JudgedCache {
    fn drop(&mut self) {
        // Varnish's child ends when its parent asks; killed, the parent would leave it behind.
        process_signal::send("TERM", &self.process.id().to_string());
        let _ = self.process.wait();
    }
}

fn larder(project: &Project, port: u16, vcl: &Path, vcl_path: &[PathBuf], folder: &Path) -> Result<Command, String> {
    let paths: Vec<String> = vcl_path.iter().map(|path| format!("{:?}", path.display().to_string())).collect();
    // Without gzip, as Varnish: then what a client takes and what an origin is asked for are the program's words.
    let config = format!(
        "[[listen]]\naddress = \"127.0.0.1:{port}\"\nproxy_protocol = true\n\
         [policy]\nhttp_gzip_support = false\nvcl = {:?}\nvcl_path = [{}]\n",
        vcl.display().to_string(),
        paths.join(", ")
    );
    let file = folder.join("larder.toml");
    std::fs::write(&file, config).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut command = Command::new(project.larder());
    command.args([
        "serve",
        "--no-supervisor",
        "--config",
        "larder.toml",
        "--admin",
        "unix:a.sock",
        "--memory",
        "64MiB",
    ]);
    Ok(command)
}

fn varnish(port: u16, vcl: &Path, vcl_path: &[PathBuf], folder: &Path) -> Command {
    let paths: Vec<String> = vcl_path.iter().map(|path| path.display().to_string()).collect();
    let mut command = Command::new("varnishd");
    command.args(as_varnishd(port, folder));
    command.arg("-p").arg(format!("vcl_path={}", paths.join(":"))).arg("-f").arg(vcl);
    command
}

/// What is on every command line of Varnish's here.
fn as_varnishd(port: u16, folder: &Path) -> Vec<String> {
    let (name, address) = (folder.join("varnish").display().to_string(), format!("127.0.0.1:{port},PROXY"));
    let words = ["-F", "-j", "none", "-s", "default,64m", "-p", "vcc_err_unref=off", "-p", "http_gzip_support=off"];
    words.into_iter().chain(["-n", &name, "-a", &address]).map(str::to_string).collect()
}

fn of_larder(text: &str) -> Vec<bool> {
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    let rows = answer["backends"].as_array().into_iter().flatten();
    rows.filter(|backend| backend["probe"].is_object()).filter_map(|backend| backend["healthy"].as_bool()).collect()
}

/// Lines of `name admin good/window healthy|sick when`.
fn of_varnish(text: &str) -> Vec<bool> {
    let word = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, _, probe, word, ..] if probe.contains('/') && probe != "0/0" => Some(word == "healthy"),
        _ => None,
    };
    text.lines().filter_map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: Vec<bool>, expect: &[bool]) {
        assert_eq!(found, expect);
    }

    #[test]
    fn health_is_read_from_both() {
        let table = "Backend name   Admin      Probe    Health     Last change\n\
            boot.default   probe      5/8      healthy    Mon, 01 Jan 2024 00:00:00 GMT\n\
            boot.other     probe      0/8      sick       Mon, 01 Jan 2024 00:00:00 GMT\n\
            boot.third     healthy    0/0      healthy    Mon, 01 Jan 2024 00:00:00 GMT\n";
        check(of_varnish(table), &[true, false]);
        check(of_larder("{\"backends\":[{\"healthy\":false,\"probe\":{\"good\":0}}]}"), &[false]);
        check(of_larder("{\"backends\":[{\"healthy\":true,\"probe\":null}]}"), &[]);
    }
}
