//! The machine that a matrix runs on, as far as it bears on speed: what a reader of its results has to know.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::{Resource, getrlimit};

use crate::results::Machine;

/// What is read from one file each, by the name under which it is shown.
const SETTINGS: &[(&str, &str)] = &[
    ("governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("smt", "/sys/devices/system/cpu/smt/active"),
    ("transparent huge pages", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("net.core.somaxconn", "/proc/sys/net/core/somaxconn"),
    ("net.ipv4.tcp_max_syn_backlog", "/proc/sys/net/ipv4/tcp_max_syn_backlog"),
    ("net.ipv4.ip_local_port_range", "/proc/sys/net/ipv4/ip_local_port_range"),
    ("net.ipv4.tcp_tw_reuse", "/proc/sys/net/ipv4/tcp_tw_reuse"),
    ("net.ipv4.tcp_congestion_control", "/proc/sys/net/ipv4/tcp_congestion_control"),
    ("net.core.busy_poll", "/proc/sys/net/core/busy_poll"),
    ("kernel.randomize_va_space", "/proc/sys/kernel/randomize_va_space"),
    ("clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
];
const MITIGATIONS: &str = "/sys/devices/system/cpu/vulnerabilities";

/// Ticks of all processors: (all, stolen by the host).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ticks(u64, u64);

/// What can be said before anything runs.
pub(crate) fn gather() -> Machine {
    let cpuinfo = read("/proc/cpuinfo");
    let memory = read("/proc/meminfo");
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
    };
    let kib: u64 = field(&memory, "MemTotal")
        .and_then(|value| value.split_whitespace().next().and_then(|kib| kib.parse().ok()))
        .unwrap_or(0);
    let mut settings: BTreeMap<String, String> = SETTINGS
        .iter()
        .map(|(name, path)| (name.to_string(), read(path).split_whitespace().collect::<Vec<_>>().join(" ")))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    if cpuinfo.contains(" hypervisor") {
        settings.insert("virtual machine".to_owned(), "yes".to_owned());
    }
    settings.insert("mitigations".to_owned(), mitigations());
    let cpus = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    Machine {
        cpu_model: field(&cpuinfo, "model name").unwrap_or_else(|| "unknown".to_owned()),
        cpus: cpus.max(1),
        memory_bytes: kib * 1024,
        kernel: read("/proc/version").trim().to_owned(),
        open_files_max: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        load_before: load_average(),
        load_after: load_average(),
        steal_share: 0.0,
        settings,
    }
}

/// Those that are not `Not affected`.
fn mitigations() -> String {
    let entries = fs::read_dir(MITIGATIONS).into_iter().flatten().flatten();
    let mut all: Vec<String> = entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), read(&entry.path().to_string_lossy())))
        .filter(|(_, state)| !state.trim().is_empty() && state.trim() != "Not affected")
        .map(|(name, state)| format!("{name}: {}", state.trim()))
        .collect();
    all.sort();
    if all.is_empty() { "none reported".to_owned() } else { all.join("; ") }
}

pub(crate) fn load_average() -> f64 {
    read("/proc/loadavg").split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

impl Ticks {
    pub(crate) fn read() -> Ticks {
        let text = read("/proc/stat");
        let fields: Vec<u64> =
            text.lines().next().unwrap_or_default().split_whitespace().skip(1).flat_map(str::parse).collect();
        // Guest time, the last two, is in user time already.
        Ticks(fields.iter().take(8).sum(), fields.get(7).copied().unwrap_or(0))
    }

    pub(crate) fn steal_share_until(self, later: Ticks) -> f64 {
        let all = later.0.saturating_sub(self.0);
        if all == 0 { 0.0 } else { later.1.saturating_sub(self.1) as f64 / all as f64 }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_known() {
        let machine = gather();
        assert!(machine.cpus >= 1 && machine.memory_bytes > 1 << 20 && !machine.kernel.is_empty(), "{machine:?}");
        assert!(machine.settings.contains_key("mitigations"));
        assert_eq!(Ticks(100, 5).steal_share_until(Ticks(200, 15)), 0.1);
        assert_eq!(Ticks(1, 1).steal_share_until(Ticks(1, 1)), 0.0);
    }
}
