//! What the kernel is told of files: for each need of a plan the folders and files that stay open, and for what. A rule holds of what lies at a
//! path when it is made, so a file that others put anew is opened with its folder, and a link with the folder that its targets lie in.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use landlock::{AccessFs, BitFlags};

use super::fence::Reach;
use super::file_needs::{FileNeed, FileUse};
use super::link_walk;
use super::system_files::{self, SystemPlace};

/// One place, and what is allowed there and beneath it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRule {
    pub path: PathBuf,
    pub rights: BitFlags<AccessFs>,
    pub reach: Reach,
}

/// Rights that a file has; the others are of folders.
fn of_files() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate
}

fn rights(usage: FileUse) -> BitFlags<AccessFs> {
    let kept = of_files() | AccessFs::MakeReg | AccessFs::RemoveFile;
    match usage {
        FileUse::ReadAgain | FileUse::ReadBeneath | FileUse::ReadRoot => AccessFs::ReadFile | AccessFs::ReadDir,
        FileUse::Append => AccessFs::WriteFile | AccessFs::MakeReg,
        FileUse::Keep => kept,
        FileUse::KeepBeneath => kept | AccessFs::ReadDir | AccessFs::MakeDir | AccessFs::RemoveDir | AccessFs::MakeSock,
        FileUse::Listen => AccessFs::MakeSock | AccessFs::RemoveFile,
    }
}

/// The rules, and what an operator should know of them.
#[derive(Debug, Default)]
pub struct FileRules {
    pub rules: Vec<FileRule>,
    pub told: Vec<String>,
}

impl FileRules {
    fn open(&mut self, path: PathBuf, usage: FileUse) {
        let Ok(found) = std::fs::metadata(&path) else { return };
        let rights = if found.is_dir() { rights(usage) } else { rights(usage) & of_files() };
        let rule = FileRule { path, rights, reach: usage.reach() };
        if !rights.is_empty() && !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
    }

    fn add(&mut self, need: &FileNeed) {
        let (path, usage) = (&need.path, need.usage);
        match usage {
            FileUse::ReadAgain => {
                self.open(path.clone(), usage);
                let folders = folders_of(path).into_iter().chain(link_walk::folders_of_targets(path));
                let own = folders.filter(|folder| !system_files::is_shared_by_all(folder));
                own.for_each(|folder| self.open(folder, usage));
            }
            FileUse::ReadBeneath | FileUse::ReadRoot => self.open_folder(need),
            FileUse::Append | FileUse::Keep | FileUse::Listen => {
                // A device or a pipe is put nowhere anew.
                let is_made_anew = path.metadata().map_or(true, |found| found.is_file() || usage == FileUse::Listen);
                let folders = if is_made_anew { folders_of(path) } else { Vec::new() };
                let own: Vec<PathBuf> =
                    folders.into_iter().filter(|folder| !system_files::is_of_system(folder)).collect();
                if own.is_empty() {
                    if usage != FileUse::Listen && !path.exists() {
                        make_file(path, usage);
                    }
                    // A rule for a file keeps it on its disk when it is removed: where its folder is open it needs none.
                    self.open(path.clone(), usage);
                }
                own.into_iter().for_each(|folder| self.open(folder, usage));
            }
            FileUse::KeepBeneath => {
                // It is larder's own, and made when it is first written in. What cannot be made is said by whoever writes there.
                let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
                self.open(path.clone(), usage);
            }
        }
    }

    /// A folder, and where the next one will lie: beside it, if it is made anew, or where the next target of a link is.
    fn open_folder(&mut self, need: &FileNeed) {
        let (path, setting) = (need.path.display(), need.setting);
        if !need.path.exists() {
            self.told.push(format!("{path} is not there, and stays closed ({setting})"));
        }
        self.open(need.path.clone(), need.usage);
        let above = need.path.canonicalize().ok().and_then(|real| real.parent().map(Path::to_owned));
        let above = above.filter(|above| need.usage == FileUse::ReadRoot && !system_files::is_shared_by_all(above));
        above.into_iter().for_each(|above| self.open(above, need.usage));
        for folder in link_walk::folders_of_targets(&need.path) {
            if system_files::is_shared_by_all(&folder) {
                self.told.push(format!(
                    "{path} is a link into {}, of which not all is opened to larder: where the link is to lead elsewhere, name that in \
                     [process] sandbox_reads beforehand, or restart ({setting})",
                    folder.display()
                ));
            } else {
                self.open(folder, need.usage);
            }
        }
    }

    fn add_system(&mut self, place: SystemPlace) {
        match place {
            SystemPlace::Read(path) => self.open(PathBuf::from(path), FileUse::ReadBeneath),
            SystemPlace::ReadThroughLinks(path) => {
                self.add(&FileNeed { path: PathBuf::from(path), usage: FileUse::ReadAgain, setting: "" });
            }
            SystemPlace::Write(path) => self.open(PathBuf::from(path), FileUse::Keep),
        }
    }
}

/// An empty file where there is none, in a folder that nothing can be made in later. What cannot be made is said by whoever opens it.
fn make_file(path: &Path, usage: FileUse) {
    use std::os::unix::fs::OpenOptionsExt;
    let mode = if usage == FileUse::Append { 0o640 } else { 0o600 };
    let _ = std::fs::OpenOptions::new().append(true).create(true).mode(mode).open(path);
}

/// The folder that a file is in as it is written, and the one that it lies in.
fn folders_of(path: &Path) -> Vec<PathBuf> {
    let Ok(path) = std::path::absolute(path) else { return Vec::new() };
    let written = path.parent().and_then(|folder| folder.canonicalize().ok());
    let real = path.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned));
    let mut folders: Vec<PathBuf> = written.into_iter().chain(real).collect();
    folders.dedup();
    folders
}

/// All that stays open to a larder with these needs. `is_root`: who may read everything.
pub fn of(needs: &[FileNeed], is_root: bool) -> FileRules {
    let mut all = FileRules::default();
    needs.iter().for_each(|need| all.add(need));
    let of_system = system_files::of_names(is_root).into_iter().chain(system_files::OTHERS.iter().copied());
    of_system.for_each(|place| all.add_system(place));
    all
}
