//! What ends the servers of a lab that was killed: a process of ours that holds nothing but their process groups.
//!
//! A lab that ends by itself, by a signal or by a panic, ends its servers. A SIGKILL leaves it no moment to do so: what
//! then happens is that the pipe to the keeper closes. That servers die with their parent (PR_SET_PDEATHSIG) would not
//! do: it reaches neither a server's own children nor anything that was started by a thread that has ended.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use crate::lab_clock::Nanos;
use crate::limits::SERVER_STOP_TIMEOUT;

/// The lab's end of it. Dropped, it lets the keeper go, whose list should be empty then.
#[derive(Debug)]
pub(crate) struct GroupKeeper {
    child: Child,
    /// None: it was let go.
    pipe: Option<ChildStdin>,
}

impl GroupKeeper {
    /// `larder` is our own program.
    pub(crate) fn start(larder: &Path) -> Result<GroupKeeper, String> {
        let mut command = Command::new(larder);
        // In a group of its own: a Ctrl-C at the terminal is for the lab.
        command.args(["lab", "keeper"]).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        let complain = |error| format!("cannot start the keeper of the servers, {}: {error}", larder.display());
        let mut child = command.spawn().map_err(complain)?;
        let pipe = child.stdin.take();
        Ok(GroupKeeper { child, pipe })
    }

    pub(crate) fn watch(&self, group: i32) -> Result<(), String> {
        self.tell(format_args!("+{group}\n")).map_err(|error| format!("the keeper of the servers is gone: {error}"))
    }

    /// It has ended.
    pub(crate) fn forget(&self, group: i32) {
        // One that is gone kills nobody.
        let _ = self.tell(format_args!("-{group}\n"));
    }

    fn tell(&self, what: std::fmt::Arguments<'_>) -> io::Result<()> {
        self.pipe.as_ref().map_or(Ok(()), |mut pipe| pipe.write_all(what.to_string().as_bytes()))
    }
}

impl Drop for GroupKeeper {
    fn drop(&mut self) {
        self.pipe = None;
        let _ = self.child.wait();
    }
}

/// The keeper itself: reads `+GROUP` and `-GROUP` until its input ends, then kills what is left.
pub fn keep_groups(told: impl BufRead) {
    let groups: Vec<Pid> = left(told).into_iter().filter_map(Pid::from_raw).collect();
    groups.iter().for_each(|&group| {
        // Fails only for what has gone already.
        let _ = kill_process_group(group, Signal::KILL);
    });
    let deadline = Nanos::now().after(SERVER_STOP_TIMEOUT);
    let is_there = |group: &Pid| test_kill_process_group(*group).is_ok();
    while groups.iter().any(is_there) && Nanos::now() < deadline {
        std::thread::sleep(LOOK);
    }
}

const LOOK: Duration = Duration::from_millis(10);

fn left(told: impl BufRead) -> BTreeSet<i32> {
    let mut groups = BTreeSet::new();
    for line in told.lines().map_while(Result::ok) {
        let number = line.get(1..).and_then(|number| number.parse::<i32>().ok());
        let Some(group) = number.filter(|&group| group > 0) else { continue };
        match line.as_bytes()[0] {
            b'+' => groups.insert(group),
            b'-' => groups.remove(&group),
            _ => false,
        };
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(told: &str, expect: &[i32]) {
        let groups: Vec<i32> = left(told.as_bytes()).into_iter().collect();
        assert_eq!(groups, expect, "{told}");
    }

    #[test]
    fn only_what_was_not_forgotten_is_left() {
        check("", &[]);
        check("+7\n+9\n-7\n", &[9]);
        check("+7\n-7\n+7\n", &[7]);
        // What nobody has written must not become a group: 0 would be our own.
        check("+0\n+\n\n+x\n+-5\n7\n+8", &[8]);
    }

    #[test]
    fn a_group_is_killed_with_its_children() {
        let mut command = Command::new("/bin/sh");
        let mut parent = command.args(["-c", "sleep 60 & sleep 60"]).process_group(0).spawn().unwrap();
        let group = Pid::from_child(&parent);
        // It is ours to wait for, and until then its group is there.
        std::thread::spawn(move || parent.wait());
        keep_groups(format!("+{}\n", group.as_raw_nonzero()).as_bytes());
        assert!(test_kill_process_group(group).is_err(), "{group:?} is still there");
    }
}
