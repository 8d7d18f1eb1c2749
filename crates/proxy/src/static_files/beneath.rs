//! Opening a path beneath a directory such that nothing outside of it is ever reached, whoever changes links meanwhile:
//! the kernel watches (`openat2`), and where it cannot, a walk that follows no link.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// The kernel says so when a rename made it doubt where it was.
const TRIES_MAX: usize = 8;

/// Is this a kernel before 5.6, or a jail that does not know the call?
static WALKS: AtomicBool = AtomicBool::new(false);

/// Opens a decoded relative path without `..`; the empty one is the directory itself. EXDEV or ELOOP: it leads out, or
/// through a link that nobody follows here.
pub(crate) fn open(root: BorrowedFd<'_>, relative: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    let path = if relative.is_empty() { b"." } else { relative };
    for _ in 0..TRIES_MAX {
        if WALKS.load(Ordering::Relaxed) {
            return walk(root, path, flags);
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match openat2(root, path, flags, Mode::empty(), resolve) {
            Err(Errno::NOSYS | Errno::PERM) => WALKS.store(true, Ordering::Relaxed),
            Err(Errno::AGAIN | Errno::INTR) => {}
            done => return done,
        }
    }
    Err(Errno::AGAIN)
}

/// The same of what the kernel has at hand. EAGAIN: it would have to look at the disk, or does not know the flag (before 5.12).
pub(crate) fn open_at_hand(root: BorrowedFd<'_>, relative: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    if WALKS.load(Ordering::Relaxed) {
        return Err(Errno::AGAIN);
    }
    let path = if relative.is_empty() { b"." } else { relative };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::CACHED;
    openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve).map_err(|errno| match errno {
        Errno::INVAL | Errno::NOSYS | Errno::PERM => Errno::AGAIN,
        other => other,
    })
}

/// One segment after the other, none of which may be a link.
fn walk(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let (folders, last) = match path.iter().rposition(|&b| b == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&b""[..], path),
    };
    let folder_flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder: Option<OwnedFd> = None;
    for name in folders.split(|&b| b == b'/').filter(|name| !name.is_empty()) {
        let opened = match &folder {
            Some(folder) => openat(folder, name, folder_flags, Mode::empty()),
            None => openat(root, name, folder_flags, Mode::empty()),
        };
        folder = Some(opened?);
    }
    let flags = flags | OFlags::NOFOLLOW;
    match &folder {
        Some(folder) => openat(folder, last, flags, Mode::empty()),
        None => openat(root, last, flags, Mode::empty()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::static_files::finding::tests::TestFolder;

    /// How `openat2` and the walk end; `None`: it opens.
    fn check(folder: &TestFolder, path: &str, expect: [Option<Errno>; 2]) {
        let root = folder.open();
        // Without O_PATH, which would open a link itself.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let got = [open(root.as_fd(), path.as_bytes(), flags).err(), walk(root.as_fd(), path.as_bytes(), flags).err()];
        assert_eq!(got, expect, "{path}");
    }

    #[test]
    fn nothing_outside_is_opened() {
        let folder = TestFolder::new("beneath");
        folder.write("a/b.txt", "b");
        symlink("a/b.txt", folder.path("inside")).unwrap();
        symlink("a", folder.path("folder")).unwrap();
        symlink("/etc/passwd", folder.path("absolute")).unwrap();
        symlink("../../etc", folder.path("out")).unwrap();
        symlink("/proc/self/fd/0", folder.path("magic")).unwrap();
        symlink("loop", folder.path("loop")).unwrap();
        check(&folder, "a/b.txt", [None, None]);
        check(&folder, "inside", [None, Some(Errno::LOOP)]);
        check(&folder, "folder/b.txt", [None, Some(Errno::NOTDIR)]);
        check(&folder, "absolute", [Some(Errno::XDEV), Some(Errno::LOOP)]);
        check(&folder, "out/passwd", [Some(Errno::XDEV), Some(Errno::NOTDIR)]);
        check(&folder, "magic", [Some(Errno::XDEV), Some(Errno::LOOP)]);
        check(&folder, "loop", [Some(Errno::LOOP), Some(Errno::LOOP)]);
        check(&folder, "none", [Some(Errno::NOENT), Some(Errno::NOENT)]);
        check(&folder, "a/b.txt/c", [Some(Errno::NOTDIR), Some(Errno::NOTDIR)]);
    }
}
