//! What a path means beneath a root, before anything is opened to be read: a file, a directory, or a script. Everything is looked at
//! through an `O_PATH` descriptor, which opens no device, wakes no writer of a FIFO and waits for nothing.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2};

use crate::settings::RootSettings;
use crate::static_files::beneath;
use crate::static_files::file_path::FilePath;
use crate::static_files::finding::{NotShown, why};
use crate::static_files::script_path::{self, ScriptPath};

/// What there is.
#[derive(Debug)]
pub(super) enum PathMeaning {
    /// A regular file of this name, which is no source of a program.
    File(Vec<u8>, Stat),
    /// A directory that was asked for without its last slash.
    Directory,
    /// A directory in which no index file is.
    NoIndex(Stat),
    Script(ScriptPath),
}

/// What was looked at, through a descriptor that reads nothing.
type LookedAt = (OwnedFd, Stat);

/// How far one goes to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// To the disk: it blocks, if that does.
    Disk,
    /// To what the kernel remembers. What it does not is [`NotShown::Failed`].
    Memory,
}

/// A root, opened.
pub(super) fn open_root(settings: &RootSettings, reach: Reach) -> Result<OwnedFd, NotShown> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = match reach {
        Reach::Disk => rustix::fs::open(&settings.directory, flags, Mode::empty()),
        Reach::Memory => openat2(CWD, &settings.directory, flags, Mode::empty(), ResolveFlags::CACHED),
    };
    opened.map_err(|errno| match why(errno) {
        NotShown::Exhausted => NotShown::Exhausted,
        _ => NotShown::NoRoot,
    })
}

/// What the path means now.
pub(super) fn of(
    settings: &RootSettings,
    root: BorrowedFd<'_>,
    path: &FilePath,
    reach: Reach,
) -> Result<PathMeaning, NotShown> {
    if let Some(scripts) = &settings.scripts {
        let is_file = |relative: &[u8]| match look_at(root, relative, reach) {
            Ok(stat) => Ok(Some(kind(&stat) == FileType::RegularFile)),
            Err(NotShown::Absent) => Ok(None),
            Err(other) => Err(other),
        };
        if let Some(script) = script_path::named_by(path, &scripts.endings, is_file)? {
            return Ok(PathMeaning::Script(script));
        }
    }
    let (opened, looked_at) = look(root, &path.relative, reach)?;
    match kind(&looked_at) {
        FileType::RegularFile if path.is_directory => Err(NotShown::Absent),
        FileType::Directory if settings.passes_directories_by() => Err(NotShown::Absent),
        FileType::Directory => {
            shown_as(settings, &path.relative, &looked_at)?;
            if !path.is_directory {
                return Ok(PathMeaning::Directory);
            }
            match index(settings, root, path, reach)? {
                Some((relative, found)) => meaning_of_file(settings, relative, found, reach),
                None => Ok(PathMeaning::NoIndex(looked_at)),
            }
        }
        _ => meaning_of_file(settings, path.relative.clone(), (opened, looked_at), reach),
    }
}

fn meaning_of_file(
    settings: &RootSettings,
    relative: Vec<u8>,
    (opened, stat): LookedAt,
    reach: Reach,
) -> Result<PathMeaning, NotShown> {
    // A file that is at hand is looked at once more by who opens it.
    let own_name = || if reach == Reach::Disk { own_name(opened.as_fd()) } else { None };
    match shown_as(settings, &relative, &stat)? {
        ShownAs::Script => Ok(PathMeaning::Script(ScriptPath::whole(relative))),
        ShownAs::File | ShownAs::Directory => match own_name().and_then(|own| kept_as_source(settings, &own)) {
            Some(why) => Err(why),
            None => Ok(PathMeaning::File(relative, stat)),
        },
    }
}

/// A file that is sent in place of another, if who asks for it by its own name is shown it.
pub(super) fn of_neighbour(settings: &RootSettings, root: BorrowedFd<'_>, relative: Vec<u8>) -> Result<Stat, NotShown> {
    let found = look(root, &relative, Reach::Disk)?;
    match meaning_of_file(settings, relative, found, Reach::Disk)? {
        PathMeaning::File(_, stat) if kind(&stat) == FileType::RegularFile => Ok(stat),
        _ => Err(NotShown::NoFile),
    }
}

/// The name that a link leads to, where the system tells it; else the link's own holds.
fn own_name(opened: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let place = format!("/proc/self/fd/{}", opened.as_raw_fd());
    rustix::fs::readlink(place, Vec::new()).ok().map(CString::into_bytes)
}

/// Why a file of this name is shown to nobody, where it is the source of a program.
fn kept_as_source(settings: &RootSettings, name: &[u8]) -> Option<NotShown> {
    match &settings.scripts {
        Some(scripts) => script_path::is_source(name, &scripts.endings).then_some(NotShown::Source),
        None => settings.sources.keep_back(name).then_some(NotShown::SourceNotRun),
    }
}

/// What something beneath a root is to who asks for it by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShownAs {
    File,
    Directory,
    /// Who answers in its place.
    Script,
}

/// May who asks be shown it? What says so says, too, what stands in a listing.
pub(super) fn shown_as(settings: &RootSettings, relative: &[u8], stat: &Stat) -> Result<ShownAs, NotShown> {
    let kind = kind(stat);
    if !matches!(kind, FileType::RegularFile | FileType::Directory) {
        return Err(NotShown::NoFile);
    }
    if settings.kept_back.holds(relative, stat) {
        return Err(NotShown::Absent);
    }
    match &settings.scripts {
        _ if kind == FileType::Directory => Ok(ShownAs::Directory),
        Some(scripts) if script_path::is_script(relative, &scripts.endings) => Ok(ShownAs::Script),
        _ => kept_as_source(settings, relative).map_or(Ok(ShownAs::File), Err),
    }
}

/// The first of the index files that is there.
fn index(
    settings: &RootSettings,
    root: BorrowedFd<'_>,
    path: &FilePath,
    reach: Reach,
) -> Result<Option<(Vec<u8>, LookedAt)>, NotShown> {
    for name in &settings.index {
        let relative = path.child(name);
        match look(root, &relative, reach) {
            Ok(found) if kind(&found.1) == FileType::RegularFile => return Ok(Some((relative, found))),
            Ok(_) | Err(NotShown::Absent) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(None)
}

pub(super) fn look_at(root: BorrowedFd<'_>, relative: &[u8], reach: Reach) -> Result<Stat, NotShown> {
    look(root, relative, reach).map(|(_, stat)| stat)
}

fn look(root: BorrowedFd<'_>, relative: &[u8], reach: Reach) -> Result<LookedAt, NotShown> {
    let opened = match reach {
        Reach::Disk => beneath::open(root, relative, OFlags::PATH),
        Reach::Memory => beneath::open_at_hand(root, relative, OFlags::PATH),
    };
    let opened = opened.map_err(why)?;
    let stat = fstat(opened.as_fd()).map_err(why)?;
    match kind(&stat) {
        // The walk of an old kernel opens a link itself.
        FileType::Symlink => Err(NotShown::LeadsOut),
        _ => Ok((opened, stat)),
    }
}

pub(super) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
