//! The folder of one server, which the tools name with `-n`: one index of its management, one of its work.
//!
//! Varnish is two processes and each writes its own index. Here one writes both. A second server is kept out by a lock on the
//! file with the first one's process id, which the kernel lets go when that ends, however it does.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::segment_set::SegmentSet;

#[derive(Debug)]
pub struct VsmFolder {
    /// What is said of the server: arguments, the management's counters. As long as there is nothing in it, readers find nothing
    /// of the work either.
    pub management: SegmentSet,
    /// What it does: counters.
    pub work: SegmentSet,
    path: PathBuf,
    _locked: File,
}

const PID: &str = "_.pid";

impl VsmFolder {
    /// An error if another process has the folder: for who wants to know before it changes anything there.
    pub fn is_free(path: &Path) -> io::Result<()> {
        let pid_path = path.join(PID);
        match File::open(&pid_path) {
            Ok(file) => try_lock(&file, &pid_path),
            // Whoever may not even read it will not get far.
            Err(_) => Ok(()),
        }
    }

    /// Makes the folder if need be, and takes it. An error says who has it. `started_s`: this moment, in seconds since 1970.
    pub fn take(path: &Path, started_s: u64) -> io::Result<VsmFolder> {
        DirBuilder::new().recursive(true).mode(0o755).create(path)?;
        let pid_path = path.join(PID);
        let pid_file = match lock(&pid_path) {
            // What another user left. The lock says that nobody is there any more.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                fs::remove_file(&pid_path)?;
                lock(&pid_path)
            }
            locked => locked,
        };
        let (pid, mut pid_file) = (std::process::id(), pid_file?);
        pid_file.set_len(0)?;
        writeln!(pid_file, "{pid}")?;
        Ok(VsmFolder {
            // Readers look at the work only once there is a management.
            work: SegmentSet::create(&path.join("_.vsm_child"), pid, started_s)?,
            management: SegmentSet::create(&path.join("_.vsm_mgt"), pid, started_s)?,
            path: pid_path,
            _locked: pid_file,
        })
    }
}

impl Drop for VsmFolder {
    /// Who looks here must not find a process that is gone.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The file, ours until it is closed; made if there is none.
fn lock(path: &Path) -> io::Result<File> {
    let writable = OpenOptions::new().append(true).create(true).mode(0o644).open(path);
    let file = match &writable {
        Ok(file) => file.try_clone()?,
        Err(_) => File::open(path)?,
    };
    try_lock(&file, path)?;
    writable
}

fn try_lock(file: &File, path: &Path) -> io::Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let pid = fs::read_to_string(path).unwrap_or_default();
            let folder = path.parent().unwrap_or(path);
            let text = format!("{} is in use by process {}", folder.display(), pid.trim());
            Err(io::Error::new(io::ErrorKind::AddrInUse, text))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_server() {
        let path = std::env::temp_dir().join(format!("larder-vsm-taken-{}", std::process::id()));
        let taken = VsmFolder::take(&path, 1).unwrap();
        assert!(VsmFolder::is_free(&path).is_err());
        let refused = VsmFolder::take(&path, 1).expect_err("it is taken").to_string();
        assert!(refused.ends_with(&format!("is in use by process {}", std::process::id())), "{refused}");
        assert_eq!(std::fs::read_to_string(path.join(PID)).unwrap(), format!("{}\n", std::process::id()));
        drop(taken);
        VsmFolder::is_free(&path).unwrap();
        assert!(!path.join(PID).exists() && !path.join("_.vsm_mgt/_.index").exists());
        drop(VsmFolder::take(&path, 1).expect("it was let go"));
        std::fs::remove_dir_all(&path).unwrap();
    }
}
