//! Files beneath a root that are larder's own: its configuration, keys, passwords, logs, disks. Whatever a root shows, those it does not,
//! nor what lies beside them by a name of theirs that goes on (`larder.toml.bak`, `access.log.1`, `users.old`). Which name of a file
//! says that it is a copy of another is told here alone.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::Stat;

/// What of one root is shown to nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptBack {
    /// Paths beneath the root, of files and of folders with all that is in them.
    relative: Vec<Vec<u8>>,
    /// Device and number of each file that is there: a link to it is it.
    files: Vec<(u64, u64)>,
}

impl KeptBack {
    /// Of these files and folders, those that lie beneath this root, or that a link there leads to. Asks the disk.
    pub fn beneath(root: &Path, own: &[PathBuf]) -> KeptBack {
        let Ok(root) = root.canonicalize() else { return KeptBack::default() };
        let relative = own.iter().filter_map(|own| relative(&root, own)).collect();
        let files = own.iter().filter_map(|own| own.metadata().ok()).filter(|found| found.is_file());
        KeptBack { relative, files: files.map(|found| (found.dev(), found.ino())).collect() }
    }

    /// Does one of them lie beneath the root?
    pub fn holds_path(root: &Path, own: &Path) -> bool {
        root.canonicalize().is_ok_and(|root| relative(&root, own).is_some())
    }

    /// Is it one that nobody is shown?
    pub(super) fn holds(&self, path: &[u8], stat: &Stat) -> bool {
        self.relative.iter().any(|own| is_kept_back(path, own)) || self.files.contains(&(stat.st_dev, stat.st_ino))
    }

    /// What lies beside such a file as its copies do, by name. Asks the disk.
    pub fn copies_of(own: &Path) -> Vec<PathBuf> {
        let Some(name) = own.file_name() else { return Vec::new() };
        let folder = own.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let Ok(beside) = folder.read_dir() else { return Vec::new() };
        let others = beside.flatten().map(|entry| entry.file_name()).filter(|other| other != name);
        let copies = others.filter(|other| is_copy(other.as_bytes(), name.as_bytes(), true));
        let mut copies: Vec<PathBuf> = copies.map(|other| own.with_file_name(other)).collect();
        copies.sort_unstable();
        copies
    }
}

/// Where a file lies that need not be there yet; nothing, if that is not beneath the root.
fn relative(root: &Path, own: &Path) -> Option<Vec<u8>> {
    let own = std::path::absolute(own).ok()?;
    let place = match own.canonicalize() {
        Ok(place) => place,
        Err(_) => own.parent()?.canonicalize().ok()?.join(own.file_name()?),
    };
    let relative = place.strip_prefix(root).ok()?;
    (!relative.as_os_str().is_empty()).then(|| relative.as_os_str().as_bytes().to_vec())
}

/// The same path, one in a folder of that name, or one that is a copy of it, or lies in one.
fn is_kept_back(path: &[u8], own: &[u8]) -> bool {
    let folder = own.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let Some(beneath) = path.strip_prefix(&own[..folder]) else { return false };
    let end = beneath.iter().position(|byte| *byte == b'/').unwrap_or(beneath.len());
    let (name, own) = (&beneath[..end], &own[folder..]);
    name == own || is_copy(name, own, end == beneath.len())
}

/// Does a name say that it is a copy of the other, beside which it lies? Editors, packagers, log rotation and people put what tells them apart
/// behind it (`larder.toml.bak`, `users~`), around it (`#larder.toml#`, `.#users`, `.users.swp`), before its ending (`access-2.log`) or in place
/// of that (`larder.old`).
fn is_copy(name: &[u8], own: &[u8], is_file: bool) -> bool {
    let bare = &name[name.iter().take_while(|byte| matches!(byte, b'#' | b'.' | b'~')).count()..];
    let own_bare = &own[own.iter().take_while(|byte| **byte == b'.').count()..];
    let Some(dot) = own_bare.iter().rposition(|byte| *byte == b'.') else {
        // A word, with which the names of others may begin: `users.html`.
        let is_hidden = own_bare.len() < own.len();
        let rest = bare.strip_prefix(own_bare).filter(|rest| goes_on(rest) || rest.is_empty() && name != own);
        return rest.is_some_and(|rest| is_hidden || is_told_by_words(rest, true));
    };
    let (stem, ending) = own_bare.split_at(dot);
    if bare.strip_prefix(own_bare).is_some_and(|rest| rest.is_empty() || goes_on(rest)) {
        return true;
    }
    let Some(rest) = bare.strip_prefix(stem).filter(|rest| is_file && !stem.is_empty() && goes_on(rest)) else {
        return false;
    };
    is_told_by_words(rest.strip_suffix(ending).unwrap_or(rest), false)
}

/// Is there something behind the name that is no part of a longer word?
fn goes_on(rest: &[u8]) -> bool {
    rest.first().is_some_and(|byte| !byte.is_ascii_alphanumeric())
}

/// Do all its words, be there none, say that something is a copy? `.tar.gz` of one that has no ending is.
fn is_told_by_words(rest: &[u8], is_packed_copy: bool) -> bool {
    let mut words = rest.split(|byte| !byte.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).peekable();
    let is_none = words.peek().is_none();
    let (mut is_told, mut is_strange) = (is_none || is_packed_copy, false);
    for word in words {
        // `bak2`, `old1`
        let letters = &word[..word.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |last| last + 1)];
        let is_one_of = |all: &[&str]| all.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(letters));
        is_told |= letters.is_empty() || is_one_of(&COPY_WORDS);
        is_strange |= !letters.is_empty() && !is_one_of(&COPY_WORDS) && !is_one_of(&PACKED);
    }
    is_told && !is_strange
}

/// Beside numbers and dates.
const COPY_WORDS: [&str; 28] = [
    "bak", "back", "backup", "bck", "bk", "bkp", "old", "orig", "original", "save", "saved", "sav", "swp", "swo",
    "swn", "tmp", "temp", "copy", "copie", "kopie", "new", "prev", "previous", "rej", "dist", "dpkg", "rpmsave",
    "rpmnew",
];
const PACKED: [&str; 9] = ["gz", "bz2", "xz", "zst", "br", "zip", "tar", "tgz", "7z"];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(own: &str, paths: &[&str], expect: bool) {
        for path in paths {
            assert_eq!(is_kept_back(path.as_bytes(), own.as_bytes()), expect, "{own} {path}");
        }
    }

    #[test]
    fn copies_and_what_lies_in_folders_count() {
        let behind =
            ["larder.toml", "larder.toml~", "larder.toml.bak", "larder.toml-old", "larder.toml_1", "larder.toml,v"];
        check("larder.toml", &behind, true);
        check("larder.toml", &["#larder.toml#", ".#larder.toml", ".larder.toml.swp", "larder.toml (copy)"], true);
        check(
            "larder.toml",
            &["larder.old", "larder.BAK", "larder-old.toml", "larder (1).toml", "larder.2026-11-28"],
            true,
        );
        check(
            "larder.toml",
            &["larder.tomlx", "a/larder.toml", "larder.html", "larder.zip", "larder-old/a", "larder"],
            false,
        );
        check("in/access.log", &["in/access.log.1.gz", "in/access-20261128.log", "in/access.log.2/x"], true);
        check("in/access.log", &["access.log", "in/access.html", "in/accesses.log"], false);
        check("keys", &["keys/a.pem", "keys.bak/a.pem", "keys.tar.gz"], true);
        check(".htpasswd", &[".htpasswd.txt", ".htpasswd~", "htpasswd"], true);
    }

    /// Names without an ending are words, with which other files' names may begin.
    #[test]
    fn copies_of_what_has_no_ending_are_told_by_their_words() {
        let copies =
            ["users.bak", "users.old", "users.orig", "users.1", "users.save", "users-2026.gz", "users~", "#users#"];
        check("users", &copies, true);
        check("users", &["users.bak2", "users_backup", "users copy", ".#users", ".users.swp", "users.zip"], true);
        check(
            "users",
            &["users.html", "users-online", "users.old.html", "users2", "superusers", "users.css.gz"],
            false,
        );
        check("a/token", &["a/token", "a/token.bak"], true);
        check("a/token", &["token.bak", "a/b/token.bak"], false);
    }

    #[test]
    fn copies_that_are_there_are_found() {
        let folder = std::env::temp_dir().join(format!("larder-copies-of-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        ["users", "users.bak", "#users#", "users.html"]
            .iter()
            .for_each(|name| std::fs::write(folder.join(name), "u").unwrap());
        let found = KeptBack::copies_of(&folder.join("users"));
        assert_eq!(found, [folder.join("#users#"), folder.join("users.bak")]);
        assert!(KeptBack::copies_of(&folder.join("none/users")).is_empty());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_lies_elsewhere_is_not_this_roots() {
        let folder = std::env::temp_dir().join(format!("larder-kept-back-{}", std::process::id()));
        let root = folder.join("www");
        std::fs::create_dir_all(root.join("in")).unwrap();
        std::fs::write(folder.join("outside.key"), "k").unwrap();
        std::fs::hard_link(folder.join("outside.key"), root.join("link.txt")).unwrap();
        std::fs::write(root.join("page.html"), "p").unwrap();
        let own = [folder.join("outside.key"), root.join("in/access.log"), root.join("larder.toml")];
        let kept = KeptBack::beneath(&root, &own);
        let holds = |name: &str| {
            let stat = rustix::fs::stat(root.join(name)).or_else(|_| rustix::fs::stat(root.join("page.html")));
            kept.holds(name.as_bytes(), &stat.unwrap())
        };
        assert!(holds("in/access.log") && holds("in/access.log.1") && holds("larder.toml") && holds("link.txt"));
        assert!(!holds("page.html") && !holds("in/other.log"));
        assert!(KeptBack::holds_path(&root, &own[1]) && !KeptBack::holds_path(&root, &own[0]));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
