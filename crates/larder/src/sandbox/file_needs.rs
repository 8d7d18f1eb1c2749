//! Which files a plan needs, and for what: the one place that says so. What is read with the config is read again at every reload, so the
//! folder that it is in is needed, too: editors, certbot and Kubernetes put a new file in the place of the old one.
//!
//! It knows plans; how the kernel is told is no business of this file.

use std::path::{Path, PathBuf};

use proxy::settings::ListenAddress;

use super::fence::Reach;
use crate::addresses::AdminAddress;
use crate::edge_report;
use crate::own_files;
use crate::plan::{LogTarget, Plan};

/// What is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileUse {
    /// Read, and read again when another file is in its place.
    ReadAgain,
    /// A folder, and all beneath it.
    ReadBeneath,
    /// The same of one that a deploy may remove and make anew.
    ReadRoot,
    /// Written at its end, and made where there is none.
    Append,
    /// Read and written, made, put in the place of another.
    Keep,
    /// The same of all in a folder.
    KeepBeneath,
    /// A UNIX socket, made and removed.
    Listen,
}

impl FileUse {
    pub fn reach(self) -> Reach {
        match self {
            FileUse::ReadAgain | FileUse::ReadBeneath | FileUse::ReadRoot => Reach::Read,
            FileUse::Append | FileUse::Keep | FileUse::KeepBeneath | FileUse::Listen => Reach::Write,
        }
    }
}

/// A file or a folder that a plan needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileNeed {
    pub path: PathBuf,
    pub usage: FileUse,
    /// The key that names it.
    pub setting: &'static str,
}

/// What larder needs to carry out this plan, from its start to its end, and what a reload may change of it.
pub fn of(plan: &Plan) -> Vec<FileNeed> {
    let mut all = that_reloads_change(plan);
    let mut need = |path: PathBuf, usage, setting| all.push(FileNeed { path, usage, setting });
    for disk in &plan.disks {
        need(cache::disk_file(&disk.path), FileUse::Keep, "[[disk]] path");
    }
    if let AdminAddress::At(ListenAddress::Unix(path)) = &plan.admin.address {
        need(path.clone(), FileUse::Listen, "[admin] address");
    }
    plan.history_file().into_iter().for_each(|path| need(path, FileUse::Keep, "[admin] history"));
    if plan.fleet_log.is_some() {
        plan.fleet_position_file().into_iter().for_each(|path| need(path, FileUse::Keep, "[[disk]] path"));
    }
    edge_report::folder().into_iter().for_each(|path| need(path, FileUse::KeepBeneath, "the project's own tests"));
    core_folder(plan).into_iter().for_each(|folder| need(folder, FileUse::KeepBeneath, "core_dumps"));
    let sandbox = &plan.sandbox;
    sandbox.reads.iter().for_each(|path| need(path.clone(), FileUse::ReadBeneath, "[process] sandbox_reads"));
    sandbox.writes.iter().for_each(|path| need(path.clone(), FileUse::KeepBeneath, "[process] sandbox_writes"));
    all
}

/// Those of them that another config may name otherwise while larder runs.
pub fn that_reloads_change(plan: &Plan) -> Vec<FileNeed> {
    let mut all = read_again(plan);
    let mut need = |path: &Path, usage, setting| all.push(FileNeed { path: path.to_owned(), usage, setting });
    for root in &plan.settings.roots {
        need(&root.directory, FileUse::ReadRoot, "[[route]] root");
    }
    plan.vcl_path.iter().for_each(|folder| need(folder, FileUse::ReadBeneath, "[policy] vcl_path"));
    if let Some(LogTarget::File(path)) = &plan.log {
        need(path, FileUse::Append, "[log] path");
    }
    for listener in &plan.settings.listeners {
        if let ListenAddress::Unix(path) = &listener.address {
            need(path, FileUse::Listen, "[[listen]] address");
        }
    }
    if let Some(acme) = &plan.acme {
        need(&acme.settings.folder, FileUse::KeepBeneath, "[acme] folder");
    }
    plan.sandbox.ports_file.iter().for_each(|path| need(path, FileUse::Keep, "--ports-file"));
    all
}

/// What is read once more at a reload, or when it has changed.
fn read_again(plan: &Plan) -> Vec<FileNeed> {
    let disks = plan.disks.iter().flat_map(|disk| [disk.path.clone(), cache::disk_file(&disk.path)]);
    let log = plan.log.iter().filter_map(|log| if let LogTarget::File(path) = log { Some(path.clone()) } else { None });
    let written: Vec<PathBuf> = disks.chain(log).chain(plan.history_file()).collect();
    let is_of_acme = |path: &Path| plan.acme.iter().any(|acme| path.starts_with(&acme.settings.folder));
    let own = own_files::of(plan, plan.sandbox.config.as_deref());
    let own = own.into_iter().filter(|path| !written.contains(path) && !is_of_acme(path));
    let of_tls = plan.tls_files.iter().flat_map(|(_, files)| {
        let stapled = files.certificates.iter().filter_map(|pair| pair.ocsp.clone());
        stapled.chain(files.clients.iter().map(|(file, _)| file.clone()))
    });
    let all = own.chain(of_tls).chain(plan.fleet_secret_file.clone());
    all.map(|path| FileNeed { path, usage: FileUse::ReadAgain, setting: "a file of the config" }).collect()
}

/// Where the kernel leaves a core of this process, if one is wanted and no program gets it.
pub fn core_folder(plan: &Plan) -> Option<PathBuf> {
    if !plan.core_dumps {
        return None;
    }
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").ok()?;
    let pattern = pattern.trim_end();
    if pattern.starts_with('|') {
        return None;
    }
    let here = std::env::current_dir().ok()?;
    here.join(pattern).parent().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::every_path;

    /// What stands between quotes there and is no file of larder's: names, addresses, and sockets of others, which need no rule.
    const NO_FILES: [&str; 19] = [
        "127.0.0.1:8443",
        "127.0.0.1:8444",
        "a.test",
        "https://far.test",
        "near.sock",
        "php.sock",
        "/srv",
        "near",
        "far",
        "/table",
        "/files",
        "/items",
        "m.sock",
        "/sealed",
        "m.test",
        "1GiB",
        "parent.sock",
        "http://192.0.2.9",
        "rediss://192.0.2.9",
    ];

    #[test]
    fn every_path_that_a_config_may_have_is_needed_for_something() {
        let folder = std::env::temp_dir().join(format!("larder-needs-{}", std::process::id()));
        let mut plan = every_path::loaded(&folder);
        std::fs::remove_dir_all(&folder).expect("the folder");
        plan.sandbox.config = Some(folder.join("larder.toml"));
        let needs = of(&plan);
        let quoted = every_path::RELATIVE.split('"').skip(1).step_by(2).map(|text| text.trim_start_matches("unix:"));
        for name in quoted.filter(|text| !NO_FILES.contains(text)).chain(["larder.toml"]) {
            assert!(needs.iter().any(|need| need.path == folder.join(name)), "{name}: say in this file what it is for");
        }
        let usage = |name: &str| {
            let mut found: Vec<FileUse> =
                needs.iter().filter(|need| need.path == folder.join(name)).map(|need| need.usage).collect();
            found.sort_unstable();
            found.dedup();
            found
        };
        for (name, expect) in [
            ("larder.toml", FileUse::ReadAgain),
            ("both.ocsp", FileUse::ReadAgain),
            ("www", FileUse::ReadRoot),
            ("vcls", FileUse::ReadBeneath),
            ("access.log", FileUse::Append),
            ("disk", FileUse::Keep),
            ("disk.history", FileUse::Keep),
            ("acme", FileUse::KeepBeneath),
            ("l.sock", FileUse::Listen),
            ("a.sock", FileUse::Listen),
            ("more/logs", FileUse::KeepBeneath),
        ] {
            assert_eq!(usage(name), [expect], "{name}");
        }
        let of_reload = that_reloads_change(&plan);
        assert!(!of_reload.iter().any(|need| need.path == folder.join("disk")), "it changes with a restart");
    }
}
