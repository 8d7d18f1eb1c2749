//! `cargo xtask object-cost [--objects N] [--larder BINARY]`: what one small object makes resident, in larder and in Debian's
//! varnishd beside it: many answers of 300 bytes fetched once each through a running cache, what became resident divided by
//! their number. What larder's own account says stands beside it; Varnish's knows its storage alone.

use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::many_articles::{BODY, PATIENCE, ask_for_all, serve};
use crate::memory::{resident, status};

use crate::project::{Project, Stopwatch};
use crate::started_larder;

/// Since the index grows by doubling, another number finds it with more or with less left empty.
const OBJECTS: u64 = 500_000;
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longer than an allocator keeps for later what was freed.
const SETTLING: Duration = Duration::from_secs(12);

struct Plan {
    objects: u64,
    larder: Option<PathBuf>,
}

/// A cache that is running, and how its answers come.
struct Cache {
    name: &'static str,
    started: Child,
    /// The process that holds what is stored.
    holder: u32,
    socket: PathBuf,
}

struct Cost {
    name: &'static str,
    resident_bytes: f64,
    accounted_bytes: Option<f64>,
}

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    let plan = Plan::read(options)?;
    let folder = project.scratch("object-cost")?;
    let origin = folder.join("origin.sock");
    let _ = fs::remove_file(&origin);
    serve(&origin, |_| head()).map_err(|error| format!("the origin: {error}"))?;
    let mut costs = Vec::new();
    for start in [start_larder, start_varnish] {
        let mut cache = start(project, &plan, &folder, &origin)?;
        let cost = cache.cost_of(plan.objects, &folder);
        let _ = cache.started.kill().and_then(|()| cache.started.wait());
        costs.push(cost?);
    }
    print!("{}", table(&costs));
    Ok(())
}

impl Plan {
    fn read(options: &[&str]) -> Result<Plan, String> {
        let mut plan = Plan { objects: OBJECTS, larder: None };
        for option in options.chunks(2) {
            match option {
                ["--objects", number] => {
                    plan.objects = number.parse().map_err(|_| format!("'{number}' is no number of objects"))?;
                }
                ["--larder", path] => plan.larder = Some(fs::canonicalize(path).map_err(|e| format!("{path}: {e}"))?),
                other => return Err(format!("object-cost knows --objects N and --larder BINARY, not {other:?}")),
            }
        }
        Ok(plan)
    }
}

/// Of every answer: eight fields.
fn head() -> String {
    format!(
        "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Mon, 23 Nov 2026 07:00:00 GMT\r\nContent-Type: text/html\r\n\
         Content-Length: {}\r\nLast-Modified: Sun, 22 Nov 2026 07:00:00 GMT\r\nETag: \"6560f2c0-12c\"\r\n\
         Cache-Control: max-age=1000000\r\nX-Request-Id: 7f3c9a\r\n\r\n",
        BODY.len()
    )
}

fn start_larder(project: &Project, plan: &Plan, folder: &Path, origin: &Path) -> Result<Cache, String> {
    let program = Command::new(plan.larder.clone().unwrap_or_else(|| project.larder()));
    let origin = format!("unix:{}", origin.display());
    let wanted = ["--workers", "1", "--origin", &origin, "--memory", "8GiB"];
    let started = started_larder::start_program(program, folder, &wanted)?;
    let holder = started.id();
    Ok(Cache { name: "larder", started, holder, socket: folder.join("l.sock") })
}

fn start_varnish(_: &Project, _: &Plan, folder: &Path, origin: &Path) -> Result<Cache, String> {
    let (socket, vcl) = (folder.join("v.sock"), folder.join("v.vcl"));
    let _ = fs::remove_file(&socket);
    let text = format!("vcl 4.1;\nbackend origin {{ .path = \"{}\"; }}\n", origin.display());
    fs::write(&vcl, text).map_err(|error| format!("{}: {error}", vcl.display()))?;
    let log = File::create(folder.join("varnish.log")).map_err(|error| format!("varnish.log: {error}"))?;
    let mut started = Command::new("varnishd")
        .args(["-F", "-j", "none", "-s", "malloc,8G", "-n"])
        .arg(folder.join("varnish"))
        .arg("-a")
        .arg(&socket)
        .arg("-f")
        .arg(&vcl)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|error| format!("varnishd: {error}: install Debian's package varnish"))?;
    let begun = Stopwatch::start();
    loop {
        if let (Some(holder), Ok(_)) = (child_of(started.id()), UnixStream::connect(&socket)) {
            return Ok(Cache { name: "varnishd", started, holder, socket });
        }
        if begun.seconds() > PATIENCE.as_secs_f64() || started.try_wait().is_ok_and(|ended| ended.is_some()) {
            let _ = started.kill();
            return Err(format!("varnishd does not start: {}", folder.join("varnish.log").display()));
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// The only child of a process (proc(5)): varnishd's manager stores nothing.
pub fn child_of(process: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

impl Cache {
    fn cost_of(&self, objects: u64, folder: &Path) -> Result<Cost, String> {
        let (before, accounted_before) = self.look(folder)?;
        ask_for_all(&self.socket, objects).map_err(|error| format!("{}: {error}", self.name))?;
        thread::sleep(SETTLING);
        let (after, accounted_after) = self.look(folder)?;
        let for_one = |after: u64, before: u64| after.saturating_sub(before) as f64 / objects as f64;
        let accounted_bytes = accounted_after.zip(accounted_before).map(|(after, before)| for_one(after, before));
        Ok(Cost { name: self.name, resident_bytes: for_one(after, before), accounted_bytes })
    }

    /// What is resident, and what of it larder accounts for.
    fn look(&self, folder: &Path) -> Result<(u64, Option<u64>), String> {
        let (bytes, _) = resident(self.holder).ok_or(format!("{} ended", self.name))?;
        let accounted = match self.name {
            "larder" => status(&folder.join("a.sock"))?["memory"]["used_bytes"].as_u64(),
            _ => None,
        };
        Ok((bytes, accounted))
    }
}

fn table(costs: &[Cost]) -> String {
    let bytes = BODY.len() + head().len();
    let mut text = format!(
        "| | resident for one | beyond its body | beyond the {bytes} bytes of head and body as they came | by its own account |\n\
         |---|---|---|---|---|\n"
    );
    for Cost { name, resident_bytes, accounted_bytes } in costs {
        let [beyond_body, beyond_all] = [BODY.len(), bytes].map(|bytes| resident_bytes - bytes as f64);
        let accounted = accounted_bytes.map_or("—".to_owned(), |bytes| format!("{bytes:.0} B"));
        text += &format!("| {name} | {resident_bytes:.0} B | {beyond_body:.0} B | {beyond_all:.0} B | {accounted} |\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_bytes_is_what_is_left_of_them() {
        let beyond = 300.0 + head().len() as f64;
        let cost = Cost { name: "it", resident_bytes: 200.0 + beyond, accounted_bytes: Some(650.0) };
        let rows = table(&[cost, Cost { name: "other", resident_bytes: beyond, accounted_bytes: None }]);
        assert!(rows.contains("| 200 B | 650 B |\n"), "{rows}");
        assert!(rows.ends_with("| 0 B | — |\n"), "{rows}");
    }
}
