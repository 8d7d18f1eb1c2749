//! Files beneath a root that are larder's own: its configuration, keys, passwords, logs, disks. Whatever a root shows, those it does not,
//! nor their copies: what has the name of one in its own name. Which name says that a file is a copy of another is told here alone.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

use crate::static_files::file_types;

/// What of one root is shown to nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptBack {
    relative: Vec<OwnPath>,
    /// Device and number of each file that is there: a link to it is it.
    files: Vec<(u64, u64)>,
}

/// A path beneath the root.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnPath {
    path: Vec<u8>,
    /// It is, or may come to be, a folder: all that is in it goes with it.
    may_be_folder: bool,
}

impl KeptBack {
    /// Of these files and folders, those that lie beneath this root, or that a link there leads to. Asks the disk.
    pub fn beneath(root: &Path, own: &[PathBuf]) -> KeptBack {
        let Ok(root) = root.canonicalize() else { return KeptBack::default() };
        let own_path = |own: &PathBuf| Some(OwnPath { path: relative(&root, own)?, may_be_folder: !own.is_file() });
        let relative = own.iter().filter_map(own_path).collect();
        let files = own.iter().filter_map(|own| own.metadata().ok()).filter(|found| found.is_file());
        KeptBack { relative, files: files.map(|found| (found.dev(), found.ino())).collect() }
    }

    /// Does one of them lie beneath the root?
    pub fn holds_path(root: &Path, own: &Path) -> bool {
        root.canonicalize().is_ok_and(|root| relative(&root, own).is_some())
    }

    /// Is it one that nobody is shown?
    pub(super) fn holds(&self, path: &[u8], stat: &Stat) -> bool {
        let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        self.relative.iter().any(|own| is_kept_back(path, is_folder, own))
            || self.files.contains(&(stat.st_dev, stat.st_ino))
    }

    /// What lies beside such a file as its copies do, by name. Asks the disk.
    pub fn copies_of(own: &Path) -> Vec<PathBuf> {
        let Some(name) = own.file_name() else { return Vec::new() };
        let folder = own.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let Ok(beside) = folder.read_dir() else { return Vec::new() };
        let others = beside.flatten().map(|entry| entry.file_name()).filter(|other| other != name);
        let copies = others.filter(|other| is_copy(other.as_bytes(), name.as_bytes()));
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

/// Is it that very file, something in a folder of that name or of a copy beside it, or a copy of it in any folder?
fn is_kept_back(path: &[u8], is_folder: bool, own: &OwnPath) -> bool {
    let name_at = |path: &[u8]| path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let (folder, name) = own.path.split_at(name_at(&own.path));
    if path == own.path || !is_folder && is_copy(&path[name_at(path)..], name) {
        return true;
    }
    let Some(beneath) = path.strip_prefix(folder).filter(|_| own.may_be_folder) else { return false };
    let end = beneath.iter().position(|byte| *byte == b'/');
    let first = &beneath[..end.unwrap_or(beneath.len())];
    (is_folder || end.is_some()) && (first == name || has_word(first, bare(name)))
}

/// Does a name say that it is a copy of the other? It has that one's name in itself, in any case and as a word, without its ending
/// (`larder.conf`, `Copy of Larder.toml`, `users2`); what is published under such a word (`users.html`) is one only with all of it
/// (`larder.toml.html`).
fn is_copy(name: &[u8], own: &[u8]) -> bool {
    let whole = bare(own);
    match stem(whole) {
        Some(stem) => has_word(name, whole) || has_word(name, stem) && !file_types::is_published(name),
        None => has_word(name, whole) && !file_types::is_published(name),
    }
}

/// Without the dots that hide it.
fn bare(name: &[u8]) -> &[u8] {
    &name[name.iter().take_while(|byte| **byte == b'.').count()..]
}

/// What stands before the ending, if there is one.
fn stem(name: &[u8]) -> Option<&[u8]> {
    let dot = name.iter().rposition(|byte| *byte == b'.').filter(|dot| *dot > 0)?;
    Some(&name[..dot])
}

/// Does the word stand there, with no letter directly before or behind it?
fn has_word(name: &[u8], word: &[u8]) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
    !word.is_empty()
        && name.windows(word.len()).enumerate().any(|(at, found)| {
            let before = at.checked_sub(1).and_then(|before| name.get(before));
            found.eq_ignore_ascii_case(word) && !is_letter(before) && !is_letter(name.get(at + word.len()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(own: &str, paths: &[&str], expect: bool) {
        let own = OwnPath { path: own.as_bytes().to_vec(), may_be_folder: false };
        check_path(&own, paths, expect);
    }

    fn check_folder(own: &str, paths: &[&str], expect: bool) {
        let own = OwnPath { path: own.as_bytes().to_vec(), may_be_folder: true };
        check_path(&own, paths, expect);
    }

    /// A folder ends in a slash.
    fn check_path(own: &OwnPath, paths: &[&str], expect: bool) {
        for path in paths {
            let (bare, is_folder) = path.strip_suffix('/').map_or((*path, false), |bare| (bare, true));
            assert_eq!(is_kept_back(bare.as_bytes(), is_folder, own), expect, "{own:?} {path}");
        }
    }

    #[test]
    fn what_has_the_name_in_its_own_is_a_copy() {
        let behind =
            ["larder.toml", "larder.toml~", "larder.toml.bak", "larder.toml-old", "larder.toml_1", "larder.tomlx"];
        check("larder.toml", &behind, true);
        check("larder.toml", &["#larder.toml#", ".#larder.toml", ".larder.toml.swp", "larder.toml (copy)"], true);
        let others = ["larder.conf", "larder.txt", "larder.json", "Larder.toml", "LARDER.BAK", "larder", "larder.zip"];
        check("larder.toml", &others, true);
        let before = ["Copy of larder.toml", "old-larder.toml", "2larder.toml", "larder2.toml", "larder (1).toml"];
        check("larder.toml", &before, true);
        check("larder.toml", &["backup/larder.toml", "a/b/old-Larder.conf", "larder.2026-11-28"], true);
        // What joins it with other letters is another word, and pages are pages, but of the whole name.
        check("larder.toml", &["larderold.toml", "oldlarder.toml", "config.toml", "a.html"], false);
        check("larder.toml", &["larder.html", "a/larder.svg", "larder/logo.png", "larder-old/a"], false);
        check("larder.toml", &["larder.toml.html", "larder.toml.png"], true);
        check("in/access.log", &["in/access.log.1.gz", "in/access-20261128.log", "access.log"], true);
        check("in/access.log", &["in/access.html", "in/accesses.log", "access/a.txt"], false);
        check(".htpasswd", &[".htpasswd.txt", ".htpasswd~", "htpasswd", "htpasswd.old", "a/.htpasswd2"], true);
    }

    /// Names without an ending are words that pages may have.
    #[test]
    fn pages_are_called_as_they_like() {
        let copies =
            ["users.bak", "users.1", "users-2026.gz", "users~", "#users#", "users2", "users.txt", "users-online"];
        check("users", &copies, true);
        check("users", &["users_backup", "users copy", ".#users", ".users.swp", "users.zip", "api/users"], true);
        check(
            "users",
            &["users.html", "users.old.html", "superusers", "users.css", "a/users/index.html", "a/users.PHP"],
            false,
        );
        check("a/token", &["a/token", "a/token.bak", "token.bak", "a/b/token.bak"], true);
        check("...", &["a", "b/..c"], false);
    }

    #[test]
    fn what_lies_in_a_folder_goes_with_it() {
        let inside =
            ["keys/a.pem", "keys/a.html", "keys.bak/a.pem", "old-keys/x/a.pem", "keys.tar.gz", "keys/", "keys-2/"];
        check_folder("keys", &inside, true);
        check_folder("keys", &["a/keys/b.pem", "monkeys/b.pem", "keys.html", "a/keys/", "a/"], false);
        check_folder("in/acme", &["in/acme/a.html", "in/acme-2/a.html"], true);
        check_folder("in/acme", &["acme/a.html", "in/a.html", "in/"], false);
        // What goes on behind the name of a file is no folder of larder's.
        check("users", &["users-online/index.html", "users-online/", "blog/users/"], false);
        check("larder.toml", &["larder/", "larder/index.html", "backup/"], false);
    }

    #[test]
    fn copies_that_are_there_are_found() {
        let folder = std::env::temp_dir().join(format!("larder-copies-of-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        ["users", "users.bak", "#users#", "old users2", "users.html"]
            .iter()
            .for_each(|name| std::fs::write(folder.join(name), "u").unwrap());
        let found = KeptBack::copies_of(&folder.join("users"));
        assert_eq!(found, [folder.join("#users#"), folder.join("old users2"), folder.join("users.bak")]);
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
