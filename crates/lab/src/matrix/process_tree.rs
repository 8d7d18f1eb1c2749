//! What a server uses, read from /proc: the process that was started and all that descend from it.
//!
//! Processor time is counted by thread in nanoseconds (`schedstat`), because the clock ticks of `stat` are too coarse
//! for a slice of a second. A thread that ends between two readings keeps what it had at the last one.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use crate::process_stat::{Stat, numbers_in, tree_of};
use crate::results::ServerCost;

/// The sum of a tree at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    user: Duration,
    system: Duration,
    voluntary: u64,
    involuntary: u64,
    pub(crate) fds: u64,
    pub(crate) threads: u64,
    pub(crate) pss_bytes: u64,
}

/// The account of one server's processor time.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuAccount {
    nanos_by_thread: HashMap<(i32, u32), u64>,
}

/// Each root and its descendants, parents first; nothing of one that is gone.
pub(crate) fn processes_of(roots: &[i32]) -> Vec<i32> {
    roots.iter().flat_map(|&root| tree_of(root as u32)).map(|id| id as i32).collect()
}

impl CpuAccount {
    /// Reads on; all nanoseconds that were ever seen.
    pub(crate) fn read(&mut self, processes: &[i32]) -> u64 {
        for &pid in processes {
            for thread in numbers_in(&format!("/proc/{pid}/task")) {
                let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).unwrap_or_default();
                if let Some(nanos) = text.split_whitespace().next().and_then(|word| word.parse().ok()) {
                    self.nanos_by_thread.insert((pid, thread), nanos);
                }
            }
        }
        self.nanos_by_thread.values().sum()
    }
}

impl Usage {
    pub(crate) fn read(processes: &[i32]) -> Usage {
        let mut usage = Usage { pss_bytes: pss_bytes(processes), ..Usage::default() };
        for &pid in processes {
            let Some(stat) = Stat::of(pid as u32) else { continue };
            usage.user += stat.user;
            usage.system += stat.system;
            usage.fds += numbers_in(&format!("/proc/{pid}/fd")).len() as u64;
            for thread in numbers_in(&format!("/proc/{pid}/task")) {
                let status = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).unwrap_or_default();
                usage.voluntary += line_number(&status, "voluntary_ctxt_switches:");
                usage.involuntary += line_number(&status, "nonvoluntary_ctxt_switches:");
                usage.threads += 1;
            }
        }
        usage
    }

    /// What was used between two readings; processor time and its share come from elsewhere.
    pub(crate) fn cost_until(&self, later: &Usage) -> ServerCost {
        ServerCost {
            user_seconds: later.user.saturating_sub(self.user).as_secs_f64(),
            system_seconds: later.system.saturating_sub(self.system).as_secs_f64(),
            pss_bytes: later.pss_bytes,
            fds: later.fds,
            threads: later.threads,
            voluntary_switches: later.voluntary.saturating_sub(self.voluntary),
            involuntary_switches: later.involuntary.saturating_sub(self.involuntary),
            ..ServerCost::default()
        }
    }
}

/// Memory, what is shared counted in shares.
pub(crate) fn pss_bytes(processes: &[i32]) -> u64 {
    let of = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    processes.iter().map(|pid| line_number(&of(pid), "Pss:") * 1024).sum()
}

fn line_number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Who listens on a TCP port of this machine, for the sentence that it is taken.
pub(crate) fn listener_of(port: u16) -> Option<String> {
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|table| {
        let text = fs::read_to_string(table).ok()?;
        text.lines().skip(1).find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let listens = fields.get(3) == Some(&"0A") && fields[1].ends_with(&format!(":{port:04X}"));
            listens.then(|| fields.get(9).map(|inode| format!("socket:[{inode}]")))?
        })
    })?;
    let holds = |pid: u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
        links.any(|link| link.to_str() == Some(inode.as_str()))
    };
    let pid = numbers_in("/proc").into_iter().find(|&pid| holds(pid))?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(format!("{} (process {pid})", name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_are_a_process_that_uses_time_and_memory() {
        let us = std::process::id() as i32;
        let tree = processes_of(&[us]);
        assert_eq!(tree[0], us);
        let mut account = CpuAccount::default();
        let before = account.read(&tree);
        let mut sum = 0u64;
        while account.read(&tree) < before + 2_000_000 {
            sum = (0..100_000u64).fold(sum, |sum, n| sum.wrapping_mul(31).wrapping_add(n));
        }
        let usage = Usage::read(&tree);
        assert!(usage.pss_bytes > 100_000 && usage.threads >= 1 && usage.fds >= 3, "{usage:?} {sum}");
        assert!(processes_of(&[i32::MAX]).is_empty());
    }

    #[test]
    fn a_port_names_its_listener() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let who = listener_of(port).unwrap();
        assert!(who.contains(&std::process::id().to_string()), "{who}");
        drop(listener);
        assert_eq!(listener_of(port), None);
    }
}
