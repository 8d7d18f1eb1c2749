//! Files beneath a root that are larder's own: its configuration, keys, passwords, logs, disks. Whatever a root shows, those it does not,
//! nor what lies beside them by a longer name (`larder.toml.bak`, `access.log.1`).

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
        self.relative.iter().any(|own| is_or_goes_on(path, own)) || self.files.contains(&(stat.st_dev, stat.st_ino))
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

/// The same path, one in a folder of that name, or one beside it whose name goes on as those of copies do.
fn is_or_goes_on(path: &[u8], own: &[u8]) -> bool {
    let has_ending = own.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.contains(&b'.'));
    path.strip_prefix(own).is_some_and(|rest| match rest.first() {
        None | Some(b'/' | b'~') => true,
        Some(b'.' | b'-' | b'_') => has_ending,
        Some(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_what_lies_in_folders_count() {
        let check = |own: &str, path: &str, expect: bool| {
            assert_eq!(is_or_goes_on(path.as_bytes(), own.as_bytes()), expect, "{own} {path}");
        };
        for path in ["larder.toml", "larder.toml~", "larder.toml.bak", "larder.toml-old", "larder.toml_1"] {
            check("larder.toml", path, true);
        }
        check("larder.toml", "larder.tomlx", false);
        check("larder.toml", "a/larder.toml", false);
        check("keys", "keys/a.pem", true);
        // Names without an ending are words, with which other files' names may begin.
        check("users", "users.html", false);
        check("a/token", "a/token", true);
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
