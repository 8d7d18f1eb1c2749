//! The folder of one server, which the tools name with `-n`: one index of its management, one of its work.
//!
//! Varnish is two processes and each writes its own index. Here one writes both. A second server is kept out by a lock on the
//! file with the first one's process id, which the kernel lets go when that ends, however it does.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::segment_set::SegmentSet;

#[derive(Debug)]
pub struct VsmFolder {
    /// What is said of the server: arguments, the management's counters. As long as there is nothing in it, readers find nothing
    /// of the work either.
    pub management: SegmentSet,
    /// What it does: counters.
    pub work: SegmentSet,
    _locked: File,
}

impl VsmFolder {
    /// Makes the folder if need be, and takes it. An error says who has it. `started_s`: this moment, in seconds since 1970.
    pub fn take(path: &Path, started_s: u64) -> io::Result<VsmFolder> {
        DirBuilder::new().recursive(true).mode(0o755).create(path)?;
        let mut pid_file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o644)
            .open(path.join("_.pid"))?;
        match pid_file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                pid_file.read_to_string(&mut pid)?;
                let text = format!("{} is in use by process {}", path.display(), pid.trim());
                return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let pid = std::process::id();
        pid_file.set_len(0)?;
        pid_file.rewind()?;
        writeln!(pid_file, "{pid}")?;
        Ok(VsmFolder {
            // Readers look at the work only once there is a management.
            work: SegmentSet::create(&path.join("_.vsm_child"), pid, started_s)?,
            management: SegmentSet::create(&path.join("_.vsm_mgt"), pid, started_s)?,
            _locked: pid_file,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_server() {
        let path = std::env::temp_dir().join(format!("larder-vsm-taken-{}", std::process::id()));
        let taken = VsmFolder::take(&path, 1).unwrap();
        let refused = VsmFolder::take(&path, 1).expect_err("it is taken").to_string();
        assert!(refused.ends_with(&format!("is in use by process {}", std::process::id())), "{refused}");
        drop(taken);
        drop(VsmFolder::take(&path, 1).expect("it was let go"));
        std::fs::remove_dir_all(&path).unwrap();
    }
}
