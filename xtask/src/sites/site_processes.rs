//! A folder of its own beneath the system's temporary ones, and the programs that run in it. Whatever ends the task, they end
//! and the folder goes: a shell beside us holds their process groups and the end of a pipe, and acts when the pipe closes.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::step_tally;

/// Reads a process group a line until its input ends, asks them all to end, kills after five seconds those that have not, and takes the
/// folder away. Squid, killed, leaves what it shares in memory, and the next one does not start.
const KEEPER: &str = "\
trap '' INT TERM HUP
groups=
while read -r group; do groups=\"$groups $group\"; done
for signal in TERM KILL; do
    for group in $groups; do kill -s $signal -- \"-$group\" 2>/dev/null; done
    tries=0
    while [ $tries -lt 50 ]; do
        left=
        for group in $groups; do kill -s 0 -- \"-$group\" 2>/dev/null && left=1; done
        [ -z \"$left\" ] && break
        tries=$((tries + 1))
        sleep 0.1
    done
done
rm -rf -- \"$1\"
";

const LOOK_EVERY: Duration = Duration::from_millis(10);

pub struct SiteProcesses {
    pub folder: PathBuf,
    keeper: Child,
    ledger: Option<ChildStdin>,
    children: Vec<Child>,
}

impl SiteProcesses {
    pub fn set_up(name: &str) -> Result<SiteProcesses, String> {
        let folder = std::env::temp_dir().join(format!("larder-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(&folder).stdin(Stdio::piped()).process_group(0);
        let mut keeper = command.spawn().map_err(|error| format!("sh: {error}"))?;
        let ledger = keeper.stdin.take();
        Ok(SiteProcesses { folder, keeper, ledger, children: Vec::new() })
    }

    /// Starts a program whose words go to `NAME.log`.
    pub fn start(&mut self, name: &str, mut command: Command) -> Result<(), String> {
        let said = |error: std::io::Error| format!("{name}: {error}");
        let log = File::create(self.log(name)).map_err(said)?;
        self.at_home(&mut command).process_group(0);
        let child = command.stdout(log.try_clone().map_err(said)?).stderr(log).spawn().map_err(said)?;
        self.keep(child)
    }

    /// Temporary files too: two runs must not meet.
    fn at_home<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.current_dir(&self.folder).env("TMPDIR", &self.folder).stdin(Stdio::null())
    }

    /// Takes in a program that leads a process group.
    pub fn keep(&mut self, child: Child) -> Result<(), String> {
        let ledger = self.ledger.as_mut().ok_or("the keeper has ended")?;
        let written = writeln!(ledger, "{}", child.id());
        self.children.push(child);
        written.map_err(|error| format!("the keeper: {error}"))
    }

    /// Ends one that is wanted no longer.
    pub fn end(&mut self, id: u32) {
        let Some(at) = self.children.iter().position(|child| child.id() == id) else { return };
        let mut child = self.children.swap_remove(at);
        let _ = child.kill().and_then(|()| child.wait());
    }

    /// Do all of them run?
    pub fn is_up(&mut self) -> bool {
        self.children.iter_mut().all(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// How what a program said ends.
    pub fn last_words(&self, name: &str) -> String {
        let log = fs::read(self.log(name)).unwrap_or_default();
        step_tally::tail(&String::from_utf8_lossy(&log), 6).join(" / ")
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    pub fn write(&self, name: impl AsRef<Path>, text: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        let said = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(said)?;
        }
        fs::write(&path, text).map_err(said)?;
        Ok(path)
    }

    /// Runs a program to its end, and gives what it printed.
    pub fn run(&self, command: &mut Command) -> Result<String, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let output = self.at_home(command).output();
        let output = output.map_err(|error| format!("{name}: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => {
                let said = [output.stdout, output.stderr].concat();
                Err(format!("{name}: {}", step_tally::tail(&String::from_utf8_lossy(&said), 8).join(" / ")))
            }
        }
    }
}

impl Drop for SiteProcesses {
    fn drop(&mut self) {
        drop(self.ledger.take());
        // A group is there until its leader was waited for.
        while matches!(self.keeper.try_wait(), Ok(None)) {
            self.children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
            thread::sleep(LOOK_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_signal;

    /// A shell that says that it was asked to end, and one that does not hear it.
    #[test]
    fn programs_are_asked_to_end_before_they_are_killed() {
        let mut processes = SiteProcesses::set_up("processes-asked").expect("a folder");
        let told = std::env::temp_dir().join(format!("larder-told-{}", std::process::id()));
        for (name, trap) in [("asked", format!("echo > {}; exit", told.display())), ("deaf", String::new())] {
            let mut program = Command::new("sh");
            program.arg("-c").arg(format!("trap '{trap}' TERM; echo > {name}-waits; while :; do sleep 0.1; done"));
            processes.start(name, program).expect("it starts");
            while !processes.folder.join(format!("{name}-waits")).exists() {
                thread::sleep(LOOK_EVERY);
            }
        }
        let deaf = processes.children[1].id();
        drop(processes);
        assert!(told.exists() && !process_signal::send("0", &format!("-{deaf}")));
        fs::remove_file(told).expect("it was told");
    }

    #[test]
    fn nothing_is_left_behind() {
        let mut processes = SiteProcesses::set_up("processes-test").expect("a folder");
        let folder = processes.folder.clone();
        let mut sleeper = Command::new("sh");
        sleeper.args(["-c", "sleep 600 & sleep 600"]);
        processes.start("sleeper", sleeper).expect("it starts");
        assert!(processes.is_up() && folder.exists());
        let group = processes.children[0].id();
        drop(processes);
        assert!(!folder.exists() && !process_signal::send("0", &format!("-{group}")));
    }
}
