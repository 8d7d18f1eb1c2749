//! Which link on the way of a path leads out of the root, for the operator who looks for why it is not followed. Blocks, if the disk does.

use std::os::fd::AsFd;

use rustix::fs::{OFlags, readlinkat};

use crate::settings::RootSettings;
use crate::static_files::beneath;
use crate::static_files::file_path::FilePath;
use crate::static_files::path_meaning::{self, Reach};

/// A sentence about the first of them.
pub(crate) fn of(settings: &RootSettings, path: &FilePath) -> Option<String> {
    let root = path_meaning::open_root(settings, Reach::Disk).ok()?;
    let whole = &path.relative;
    let slashes = whole.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for end in slashes.chain([whole.len()]) {
        let link = &whole[..end];
        let (folder, name) = match link.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&link[..at], &link[at + 1..]),
            None => (&b""[..], link),
        };
        let folder = beneath::open(root.as_fd(), folder, OFlags::PATH | OFlags::DIRECTORY).ok()?;
        let Ok(target) = readlinkat(&folder, name, Vec::new()) else { continue };
        if beneath::open(root.as_fd(), link, OFlags::PATH).is_ok() {
            continue;
        }
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).escape_debug().to_string();
        let directory = settings.directory.display();
        return Some(format!(
            "The link {} leads to {}, which is not beneath the root {directory} by a relative path (root of its [[route]]).",
            shown(link),
            shown(target.to_bytes())
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::static_files::finding::tests::TestFolder;

    #[test]
    fn the_link_that_leads_out_is_named() {
        let folder = TestFolder::new("leading-link");
        folder.write("a/b.txt", "b");
        symlink("a", folder.path("inside")).unwrap();
        symlink("/etc", folder.path("a/out")).unwrap();
        symlink("../..", folder.path("a/up")).unwrap();
        let settings = RootSettings::of(folder.path(""));
        let said = |path: &str| of(&settings, &FilePath::read(path.as_bytes(), false).unwrap()).unwrap_or_default();
        assert!(said("/a/out/passwd").starts_with("The link a/out leads to /etc, "), "{}", said("/a/out/passwd"));
        assert!(said("/inside/up/x").starts_with("The link inside/up leads to ../.., "), "{}", said("/inside/up/x"));
        assert_eq!((said("/inside/b.txt"), said("/none/x")), (String::new(), String::new()));
    }
}
