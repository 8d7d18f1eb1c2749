//! Which script beneath a root a path means, and what of the path is left for it (RFC 3875 §4.1.5, §4.1.13).
//!
//! A script is a regular file beneath the root whose name ends like one. Where a path goes on behind it the rest is told to the script;
//! nothing but a look at the disk says where it ends, so that `/uploads/photo.jpg/x.php` runs nobody's photo.

use std::os::fd::AsFd;

use crate::settings::RootSettings;
use crate::static_files::file_path::FilePath;
use crate::static_files::finding::NotShown;
use crate::static_files::path_meaning::{self, PathMeaning, Reach};

/// A script, and what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptPath {
    /// Beneath the root, without a slash before it.
    pub(crate) relative: Vec<u8>,
    /// Of the path what stands behind it: nothing, or what begins with a slash.
    pub(crate) path_info: Vec<u8>,
}

/// What stands for sources behind a dot of a name, whoever runs them, and wherever in the name: editors and people who are careful leave
/// copies called `config.php.bak` and `config.php~`.
const SOURCES: [&[u8]; 12] =
    [b"php", b"php3", b"php4", b"php5", b"php6", b"php7", b"php8", b"phps", b"phpt", b"phtml", b"pht", b"phar"];
/// The same at the end of a name alone.
const INCLUDED: &[u8] = b"inc";

impl ScriptPath {
    /// The script and nothing behind it.
    pub(crate) fn whole(relative: Vec<u8>) -> ScriptPath {
        ScriptPath { relative, path_info: Vec::new() }
    }
}

/// Does what runs scripts answer for a directory without an index as well, as for what is no file? Not where a file answers for those.
pub(super) fn hands_directories_on(settings: &RootSettings) -> bool {
    let Some(scripts) = settings.scripts.as_ref().filter(|_| settings.lists_nothing()) else { return false };
    settings.fallback.as_ref().is_none_or(|fallback| is_script(fallback.as_bytes(), &scripts.endings))
}

/// Does the last segment end like the name of a script? In that very spelling: what a server beside us would not run, such as `x.PHP`, is
/// run by nobody, and as a source it is shown to nobody.
pub(super) fn is_script(relative: &[u8], endings: &[String]) -> bool {
    let name = relative.rsplit(|&b| b == b'/').next().unwrap_or_default();
    endings.iter().any(|ending| {
        let end = name.len().checked_sub(ending.len()).filter(|at| *at > 0);
        end.is_some_and(|at| name[at..] == *ending.as_bytes())
    })
}

/// Is the last segment the name of a source, or of a copy of one?
pub(super) fn is_source(relative: &[u8], endings: &[String]) -> bool {
    let mut parts = parts_of_name(relative);
    // What is included, or a copy of that: `a.inc`, `a.inc.bak`; a script for browsers may be called `a.inc.js`.
    let is_included = |part: &[u8]| word(part).eq_ignore_ascii_case(INCLUDED);
    let is_copy = |part: &[u8]| COPIES.iter().any(|copy| word(part).eq_ignore_ascii_case(copy)) || is_number(part);
    let ends_included = parts.clone().position(is_included).is_some_and(|at| parts.clone().skip(at + 1).all(is_copy));
    let is_of_scripts = |part: &[u8]| {
        let is_it = |ending: &String| word(part).eq_ignore_ascii_case(ending.trim_start_matches('.').as_bytes());
        endings.iter().any(is_it)
    };
    ends_included || parts.any(is_of_scripts) || is_of_php(relative)
}

/// The same of PHP alone, and without what is included by other names.
pub(super) fn is_of_php(relative: &[u8]) -> bool {
    parts_of_name(relative).any(|part| SOURCES.iter().any(|source| word(part).eq_ignore_ascii_case(source)))
}

/// What stands behind each dot of the last segment.
fn parts_of_name(relative: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    relative.rsplit(|&b| b == b'/').next().unwrap_or_default().split(|&byte| byte == b'.').skip(1)
}

/// Letters and digits at the beginning.
fn word(part: &[u8]) -> &[u8] {
    &part[..part.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count()]
}

/// How editors, tools and people call what they keep of a file.
const COPIES: [&[u8]; 14] = [
    b"bak", b"backup", b"old", b"orig", b"save", b"saved", b"swp", b"swo", b"tmp", b"txt", b"gz", b"br", b"zst",
    b"dist",
];

fn is_number(part: &[u8]) -> bool {
    !part.is_empty() && part.iter().all(u8::is_ascii_digit)
}

/// The first script on the way of the path. `is_file` says of a name whether it is a regular file; `None`: there is nothing, and
/// so nothing beneath it.
pub(super) fn named_by(
    path: &FilePath,
    endings: &[String],
    mut is_file: impl FnMut(&[u8]) -> Result<Option<bool>, NotShown>,
) -> Result<Option<ScriptPath>, NotShown> {
    let whole = &path.relative;
    let slashes = whole.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for end in slashes.chain([whole.len()]) {
        let relative = &whole[..end];
        if !is_script(relative, endings) {
            continue;
        }
        match is_file(relative)? {
            Some(true) => {
                let mut path_info = whole[end..].to_vec();
                if path.is_directory {
                    path_info.push(b'/');
                }
                return Ok(Some(ScriptPath { relative: relative.to_vec(), path_info }));
            }
            Some(false) => {}
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// What can be told of a path without waiting for a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AtHand {
    Script(ScriptPath),
    /// There is nothing of that name.
    Absent,
    /// It is no script, or the disk has to be asked.
    Unknown,
}

/// What the kernel remembers of a path.
pub(crate) fn at_hand(settings: &RootSettings, path: &FilePath) -> AtHand {
    match look(settings, path, Reach::Memory) {
        Ok(Some(script)) => AtHand::Script(script),
        Err(NotShown::Absent) => AtHand::Absent,
        Ok(None) | Err(_) => AtHand::Unknown,
    }
}

/// The script that a path means, or that answers for it, by the disk, for whoever fetches an answer: what is a file by now is answered for as what
/// is none. Blocks, if the disk does.
pub(crate) fn of_fetch(settings: &RootSettings, path: &[u8]) -> Result<ScriptPath, NotShown> {
    let found = match FilePath::read(path, settings.dotfiles) {
        Ok(path) => look(settings, &path, Reach::Disk),
        Err(_) => Ok(None),
    };
    match found {
        Ok(Some(script)) => Ok(script),
        Ok(None) | Err(NotShown::Absent) => fallback(settings)?.ok_or(NotShown::Absent),
        Err(other) => Err(other),
    }
}

/// The script of a path; none where it is something else.
fn look(settings: &RootSettings, path: &FilePath, reach: Reach) -> Result<Option<ScriptPath>, NotShown> {
    let root = path_meaning::open_root(settings, reach)?;
    match path_meaning::of(settings, root.as_fd(), path, reach)? {
        PathMeaning::Script(script) => Ok(Some(script)),
        PathMeaning::NoIndex(_) if hands_directories_on(settings) => Err(NotShown::Absent),
        PathMeaning::NoIndex(_) | PathMeaning::Directory | PathMeaning::File(..) => Ok(None),
    }
}

fn fallback(settings: &RootSettings) -> Result<Option<ScriptPath>, NotShown> {
    let Some(fallback) = &settings.fallback else { return Ok(None) };
    let Ok(path) = FilePath::read(fallback.as_bytes(), settings.dotfiles) else { return Ok(None) };
    look(settings, &path, Reach::Disk)
}

#[cfg(test)]
#[path = "script_path_tests.rs"]
mod tests;
