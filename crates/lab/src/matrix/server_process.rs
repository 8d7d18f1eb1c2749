//! One server as a process: started on its processors, waited for until it listens, and ended with all its children on
//! every way out.
//!
//! It runs in a process group of its own, so a Ctrl-C at the terminal reaches us and not it; `group_keeper` knows that
//! group, for the case that we are killed. What it prints goes to a file, whose end stands in the error when it does
//! not start.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::lab_clock::Nanos;
use crate::limits::{LOG_TAIL_LINES, SERVER_PORTS, SERVER_START_TIMEOUT, SERVER_STOP_TIMEOUT, TOOL_TIMEOUT};
use crate::matrix::cpu_sets::on_cpus;
use crate::matrix::group_keeper::GroupKeeper;
use crate::matrix::process_tree::{listener_of, processes_of};

#[derive(Debug)]
pub(crate) struct ServerProcess {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Those that were there when it had begun to listen.
    first_children: Vec<i32>,
    keeper: Option<Arc<GroupKeeper>>,
    /// What stands behind it and is a part of it; ended after it.
    behind: Option<Box<ServerProcess>>,
}

const LOOK: Duration = Duration::from_millis(10);

/// What is needed to start one.
pub(crate) struct Start<'a> {
    pub(crate) name: &'a str,
    /// The binary first.
    pub(crate) command: &'a [String],
    pub(crate) environment: &'a BTreeMap<String, String>,
    pub(crate) address: SocketAddr,
    pub(crate) dir: &'a Path,
    pub(crate) logs: &'a [PathBuf],
    pub(crate) cpus: &'a [usize],
    pub(crate) stop: &'a AtomicBool,
    /// Who ends it should we be killed.
    pub(crate) keeper: Option<&'a Arc<GroupKeeper>>,
}

impl ServerProcess {
    pub(crate) fn start(start: &Start<'_>) -> Result<ServerProcess, String> {
        let name = start.name;
        if TcpListener::bind(start.address).is_err() {
            return Err(taken(name, start.address.port()));
        }
        let log = start.dir.join("output.log");
        let spawned = File::create(&log).and_then(|file| {
            let mut command = Command::new(&start.command[0]);
            command
                .args(&start.command[1..])
                .envs(start.environment)
                .current_dir(start.dir)
                .stdin(Stdio::null())
                .process_group(0);
            command.stdout(file.try_clone()?).stderr(file);
            on_cpus(start.cpus, move || command.spawn())?
        });
        let child = spawned.map_err(|error| format!("{name} cannot be started: {}: {error}", start.command[0]))?;
        let keeper = start.keeper.map(Arc::clone);
        let (address, first_children) = (start.address, Vec::new());
        let mut server = ServerProcess { child, address, first_children, keeper, behind: None };
        server.keeper.as_ref().map_or(Ok(()), |keeper| keeper.watch(server.pid()))?;
        let said = || tail_of(std::iter::once(&log).chain(start.logs));
        server.wait_until_it_listens(start).map_err(|what| format!("{name} {what}{}", said()))?;
        server.settle();
        Ok(server)
    }

    fn wait_until_it_listens(&mut self, start: &Start<'_>) -> Result<(), String> {
        let deadline = Nanos::now().after(SERVER_START_TIMEOUT);
        while TcpStream::connect_timeout(&self.address, LOOK * 20).is_err() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("did not start: it ended with {status}"));
            }
            if start.stop.load(Ordering::Relaxed) {
                return Err("was not waited for: interrupted".to_owned());
            }
            if Nanos::now() >= deadline {
                return Err(format!("did not listen on {} within {SERVER_START_TIMEOUT:?}", self.address));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// With what stands behind it.
    pub(crate) fn standing_before(mut self, behind: Option<ServerProcess>) -> ServerProcess {
        self.behind = behind.map(Box::new);
        self
    }

    /// Its own first process, and that of what stands behind it.
    pub(crate) fn roots(&self) -> Vec<i32> {
        let behind = self.behind.iter().flat_map(|behind| behind.roots());
        std::iter::once(self.pid()).chain(behind).collect()
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// It has its children now: a master may open its port before it has them.
    pub(crate) fn settle(&mut self) {
        self.first_children = processes_of(&[self.pid()]);
        self.behind.iter_mut().for_each(|behind| behind.settle());
    }

    /// Is it gone, or is a child gone that should have stayed?
    pub(crate) fn has_died(&mut self, keeps_children: bool) -> bool {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return true;
        }
        let now = processes_of(&[self.pid()]);
        let lost_a_child = keeps_children && self.first_children.iter().any(|pid| !now.contains(pid));
        lost_a_child || self.behind.as_mut().is_some_and(|behind| behind.has_died(keeps_children))
    }

    fn end(&mut self) {
        let all = processes_of(&[self.pid()]);
        let group = Pid::from_child(&self.child);
        // Each of these fails only for what has gone already.
        let _ = kill_process(group, Signal::TERM);
        let deadline = Nanos::now().after(SERVER_STOP_TIMEOUT);
        while matches!(self.child.try_wait(), Ok(None)) && Nanos::now() < deadline {
            std::thread::sleep(LOOK);
        }
        let is_over = matches!(self.child.try_wait(), Ok(Some(_)));
        let _ = kill_process_group(group, Signal::KILL);
        let left = all.into_iter().filter(|&pid| !(is_over && pid == group.as_raw_nonzero().get()));
        for pid in left.filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.child.wait();
        if let Some(keeper) = &self.keeper {
            keeper.forget(self.pid());
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.end();
    }
}

fn taken(name: &str, port: u16) -> String {
    match listener_of(port) {
        Some(who) => format!("{name}: port {port} is taken by {who}; choose another one with port = N, or none"),
        None => format!("{name}: port {port} is taken; choose another one with port = N, or none"),
    }
}

/// One that nobody listens on, from below those that the kernel gives to clients: a connection of some load must not
/// take it while a server is being restarted.
pub(crate) fn free_port(dice: &mut fastrand::Rng, used: &[u16]) -> Result<u16, String> {
    let is_free = |port: &u16| !used.contains(port) && TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let tries = (0..1_000).map(|_| dice.u16(SERVER_PORTS));
    let mut free = tries.filter(is_free);
    free.next().ok_or_else(|| format!("no free port among {SERVER_PORTS:?}"))
}

/// Runs a program to its end; what it printed. Its failure is an error with its last lines.
pub(crate) fn run_tool(command: &[String], dir: &Path) -> Result<String, String> {
    let path = dir.join("tool.log");
    let complain = |error: io::Error| format!("{}: {error}", command[0]);
    let file = File::create(&path).map_err(complain)?;
    let errors = file.try_clone().map_err(complain)?;
    let mut tool = Command::new(&command[0]);
    tool.args(&command[1..]).current_dir(dir).stdin(Stdio::null()).stdout(file).stderr(errors).process_group(0);
    let mut child = tool.spawn().map_err(complain)?;
    let deadline = Nanos::now().after(TOOL_TIMEOUT);
    let status = loop {
        match child.try_wait().map_err(complain)? {
            Some(status) => break status,
            None if Nanos::now() >= deadline => {
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                let _ = child.wait();
                return Err(format!("{} did not end within {TOOL_TIMEOUT:?}", command.join(" ")));
            }
            None => std::thread::sleep(LOOK),
        }
    };
    let said = String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
    match status.success() {
        true => Ok(said),
        false => Err(format!("{} ended with {status}{}", command.join(" "), tail_of([&path]))),
    }
}

/// The last lines of some logs, each after its name.
fn tail_of<'a>(logs: impl IntoIterator<Item = &'a PathBuf>) -> String {
    let mut all = String::new();
    for log in logs {
        let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        if !lines.is_empty() {
            all.push_str(&format!("\n  {} ends with:", log.display()));
            lines[lines.len().saturating_sub(LOG_TAIL_LINES)..]
                .iter()
                .for_each(|line| all.push_str(&format!("\n    {line}")));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str, address: SocketAddr, dir: &Path) -> Result<ServerProcess, String> {
        let command = ["/bin/sh", "-c", script].map(str::to_owned);
        let cpus = crate::matrix::cpu_sets::allowed();
        let never = AtomicBool::new(false);
        let environment = BTreeMap::new();
        let (command, environment, cpus) = (&command[..], &environment, &cpus[..]);
        let start =
            Start { name: "it", command, environment, address, dir, logs: &[], cpus, stop: &never, keeper: None };
        ServerProcess::start(&start)
    }

    #[test]
    fn a_server_that_does_not_start_shows_its_last_words() {
        let dir = std::env::temp_dir().join(format!("larder-lab-process-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let port = free_port(&mut fastrand::Rng::with_seed(1), &[]).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let error = start("echo no such thing >&2; exit 3", address, &dir).unwrap_err();
        assert!(error.contains("exit status: 3") && error.contains("no such thing"), "{error}");
        let listener = TcpListener::bind(address).unwrap();
        let error = start("exit 0", address, &dir).unwrap_err();
        assert!(error.contains(&format!("port {port} is taken by")), "{error}");
        drop(listener);
        let error = run_tool(&["/bin/sh".to_owned(), "-c".to_owned(), "echo why; exit 1".to_owned()], &dir);
        assert!(error.unwrap_err().contains("why"));
        fs::remove_dir_all(&dir).unwrap();
    }
}
