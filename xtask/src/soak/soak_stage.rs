//! All that a soak has on stage: the origin, memcached, the two larders with their disks and logs, and the judge's books; started together, ended together.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

use super::soak_books::{LARDERS, SoakBooks};
use super::soak_mounts::SoakMounts;
use super::soak_site::SoakSite;
use super::soak_trust::SoakTrust;
use super::soaked_larder::{PATIENCE_S, SoakSurroundings, SoakedLarder};
use crate::dice::Dice;
use crate::ports;
use crate::project::Project;

/// What is wrong on purpose, so that the judge can be seen to notice it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoakPlant {
    /// Purges that are judged as acknowledged, and that nobody was told.
    Stale,
    /// Some of the origin's answers lack their last byte, and their lengths say so.
    Truncate,
    /// Connections that are never closed.
    Leak,
    /// A kill that is not announced.
    Kill,
}

impl SoakPlant {
    pub fn named(word: &str) -> Option<SoakPlant> {
        let all = [SoakPlant::Stale, SoakPlant::Truncate, SoakPlant::Leak, SoakPlant::Kill];
        all.into_iter()
            .zip(["stale", "truncate", "leak", "kill"])
            .find(|(_, name)| *name == word)
            .map(|(plant, _)| plant)
    }
}

/// In the order in which they are dropped.
pub struct SoakStage {
    pub books: SoakBooks,
    pub trust: SoakTrust,
    pub larders: [SoakedLarder; LARDERS],
    pub mounts: SoakMounts,
    /// Names and contents of the files beneath the roots.
    pub files: Vec<(String, Vec<u8>)>,
    pub planted: Option<SoakPlant>,
    /// Clients end.
    pub is_over: AtomicBool,
    pub folder: PathBuf,
    _memcached: JudgedMemcached,
}

struct JudgedMemcached(Child);

impl Drop for JudgedMemcached {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

impl SoakStage {
    pub fn start(project: &Project, folder: &Path, planted: Option<SoakPlant>) -> Result<SoakStage, String> {
        let folders: [PathBuf; LARDERS] = ["rules", "program"].map(|name| folder.join(name));
        let mounts = SoakMounts::make(&folders)?;
        let site = SoakSite::serve(planted == Some(SoakPlant::Truncate))?;
        let memcached_port = ports::free()?;
        let memcached = start_memcached(memcached_port)?;
        let (origin_port, echo_port) = (site.port, site.echo_port);
        let surroundings = SoakSurroundings { origin_port, echo_port, memcached_port };
        let files = made_files();
        for folder in &folders {
            let files_folder = folder.join("files/files");
            fs::create_dir_all(&files_folder).map_err(|error| format!("{}: {error}", files_folder.display()))?;
            for (name, content) in &files {
                fs::write(files_folder.join(name), content).map_err(|error| format!("{name}: {error}"))?;
            }
        }
        let trust = SoakTrust::nobody();
        let start =
            |number: usize| SoakedLarder::start(&project.larder(), (number, &folders[number]), surroundings, &trust);
        let larders = [start(0)?, start(1)?];
        Ok(SoakStage {
            books: SoakBooks::open(site),
            trust,
            larders,
            mounts,
            files,
            planted,
            is_over: AtomicBool::new(false),
            folder: folder.to_owned(),
            _memcached: memcached,
        })
    }
}

fn start_memcached(port: u16) -> Result<JudgedMemcached, String> {
    let mut command = Command::new("memcached");
    command.args(["-l", "127.0.0.1", "-p", &port.to_string(), "-U", "0", "-u", "nobody"]);
    let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut process =
        JudgedMemcached(started.map_err(|error| format!("memcached (./setup all installs it): {error}"))?);
    ports::wait(port, PATIENCE_S, || process.0.try_wait().is_ok_and(|ended| ended.is_none()))?;
    Ok(process)
}

/// A text that is held in memory, and two that are sent from where they lie.
fn made_files() -> Vec<(String, Vec<u8>)> {
    let mut dice = Dice::of(29);
    let lengths = [("page.html", 9_000), ("middle.bin", 90_000), ("large.bin", 700_000)];
    let made =
        lengths.map(|(name, length)| (name.to_owned(), (0..length).map(|_| b' ' + dice.below(90) as u8).collect()));
    made.to_vec()
}
