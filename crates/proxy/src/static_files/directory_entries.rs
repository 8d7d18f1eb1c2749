//! What is in a directory, as far as it is shown: names, kinds, lengths and times, in the order in which they are
//! listed. Blocks, if the disk does. It knows no HTML.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, statat};

use crate::settings::RootSettings;
use crate::static_files::beneath;
use crate::static_files::finding::{self, NotShown};
use crate::static_files::path_meaning::{self, Reach, ShownAs};

/// One line of a listing. Directories before files, then by the bytes of their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    is_file: bool,
    pub(crate) name: Vec<u8>,
    pub(crate) modified_s: i64,
    pub(crate) length: u64,
}

impl Entry {
    pub(crate) fn is_directory(&self) -> bool {
        !self.is_file
    }
}

/// What who asks for it would be shown of this directory beneath the root. More than `entries_max` names, shown or not:
/// none of them, since a part of the names would be a false answer.
pub(crate) fn read(
    root: BorrowedFd<'_>,
    settings: &RootSettings,
    relative: &[u8],
    entries_max: usize,
) -> Result<Vec<Entry>, NotShown> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
    let directory = beneath::open(root, relative, flags).map_err(finding::why)?;
    let mut entries = Vec::new();
    let mut seen_count = 0;
    for found in Dir::read_from(&directory).map_err(finding::why)? {
        let found = found.map_err(finding::why)?;
        let name = found.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        seen_count += 1;
        if seen_count > entries_max {
            return Err(NotShown::TooMany);
        }
        if name[0] == b'.' && !settings.dotfiles {
            continue;
        }
        // One that went meanwhile is not there any more.
        let Ok(stat) = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let path = child(relative, name);
        let stat = match path_meaning::kind(&stat) {
            FileType::Symlink => path_meaning::look_at(root, &path, Reach::Disk).ok(),
            _ => Some(stat),
        };
        entries.extend(stat.and_then(|stat| entry(settings, &path, name, &stat)));
    }
    entries.sort_unstable();
    Ok(entries)
}

/// `None`: asking for it would be refused.
fn entry(settings: &RootSettings, path: &[u8], name: &[u8], stat: &Stat) -> Option<Entry> {
    let is_file = path_meaning::shown_as(settings, path, stat).ok()? != ShownAs::Directory;
    let length = if is_file { u64::try_from(stat.st_size).unwrap_or(0) } else { 0 };
    Some(Entry { is_file, name: name.to_vec(), modified_s: stat.st_mtime, length })
}

fn child(relative: &[u8], name: &[u8]) -> Vec<u8> {
    let slash = if relative.is_empty() { &b""[..] } else { b"/" };
    [relative, slash, name].concat()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::settings::{KeptBack, RootScripts, ShownSources};
    use crate::static_files::finding::tests::TestFolder;

    fn names(folder: &TestFolder, shows_dotfiles: bool, entries_max: usize) -> Result<Vec<String>, NotShown> {
        let settings = RootSettings { dotfiles: shows_dotfiles, ..RootSettings::of(folder.path("")) };
        names_of(folder, &settings, entries_max)
    }

    fn names_of(folder: &TestFolder, settings: &RootSettings, entries_max: usize) -> Result<Vec<String>, NotShown> {
        let entries = read(folder.open().as_fd(), settings, b"in", entries_max)?;
        let name = |entry: &Entry| {
            let slash = if entry.is_directory() { "/" } else { "" };
            format!("{}{slash}", String::from_utf8_lossy(&entry.name))
        };
        Ok(entries.iter().map(name).collect())
    }

    #[test]
    fn what_may_be_asked_for_is_listed_in_order() {
        let folder = TestFolder::new("entries");
        for name in ["in/b", "in/a", "in/.hidden", "in/z/x", "in/B", "out"] {
            folder.write(name, "12");
        }
        symlink("a", folder.path("in/link")).unwrap();
        symlink("../out", folder.path("in/beneath")).unwrap();
        symlink("/etc", folder.path("in/outside")).unwrap();
        symlink("none", folder.path("in/dangling")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.path("in/fifo"), rustix::fs::Mode::RUSR).unwrap();
        let shown = ["z/", "B", "a", "b", "beneath", "link"];
        assert_eq!(names(&folder, false, 100).unwrap(), shown);
        assert_eq!(names(&folder, true, 100).unwrap(), ["z/", ".hidden", "B", "a", "b", "beneath", "link"]);
        assert_eq!(names(&folder, false, 10).unwrap(), shown);
        assert_eq!(names(&folder, false, 9), Err(NotShown::TooMany));
        let settings = RootSettings::of(folder.path(""));
        let length = read(folder.open().as_fd(), &settings, b"in", 100).unwrap()[2].length;
        assert_eq!(length, 2);
    }

    #[test]
    fn what_nobody_is_shown_is_not_listed() {
        let folder = TestFolder::new("entries-kept-back");
        for name in ["in/tok", "in/tok.bak", "in/keys/a.pem", "in/page.html", "in/z/x", "in/a.php", "in/a.php~"] {
            folder.write(name, "12");
        }
        symlink("tok", folder.path("in/link")).unwrap();
        let own = [folder.path("in/tok"), folder.path("in/keys")];
        let mut settings = RootSettings::of(folder.path(""));
        settings.kept_back = KeptBack::beneath(&folder.path(""), &own);
        assert_eq!(names_of(&folder, &settings, 100).unwrap(), ["z/", "page.html"]);
        settings.sources = ShownSources::All;
        assert_eq!(names_of(&folder, &settings, 100).unwrap(), ["z/", "a.php", "a.php~", "page.html"]);
        settings.scripts = Some(RootScripts { origin: 0, endings: vec![".php".to_owned()] });
        assert_eq!(names_of(&folder, &settings, 100).unwrap(), ["z/", "a.php", "page.html"]);
    }
}
