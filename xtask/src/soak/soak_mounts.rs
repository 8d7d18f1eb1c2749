//! The file systems of a soak's own: each larder's disk lies on an image that can be frozen, and its log on a small file system that can be full. Only root can mount them; without it both
//! lie in a folder, and what needs them is left out, which the report says.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// It lies in memory, so that nobody else's writing holds up what must be durable.
const IMAGE: &str = "256M";
const IMAGE_HOLDER_SIZE: &str = "size=288m";
const LOG_SIZE: &str = "size=128m";
const FILLED_BY: &str = "filled";
/// In the order in which they are taken away.
const FOLDERS: [&str; 3] = ["disk", "log", "image"];
const PIECE_BYTES: usize = 1 << 16;

/// They are taken away when it is dropped.
pub struct SoakMounts {
    mounted: Vec<PathBuf>,
    /// Why there are none.
    pub missing: Option<String>,
}

impl Drop for SoakMounts {
    fn drop(&mut self) {
        for path in self.mounted.drain(..).rev() {
            // One that is frozen would keep whoever takes it away.
            let _ = run(&["fsfreeze", "-u"], &path);
            let _ = run(&["umount", "-l"], &path);
        }
    }
}

impl SoakMounts {
    /// In these folders, which are emptied.
    pub fn make(folders: &[PathBuf]) -> Result<SoakMounts, String> {
        for folder in folders {
            // Of a run that was killed.
            for path in FOLDERS.map(|name| folder.join(name)).iter().filter(|path| is_mount(path)) {
                let _ = run(&["fsfreeze", "-u"], path);
                run(&["umount", "-l"], path)?;
            }
            let _ = fs::remove_dir_all(folder);
            for name in FOLDERS {
                let path = folder.join(name);
                fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
        let mut mounts = SoakMounts { mounted: Vec::new(), missing: None };
        for folder in folders {
            if let Err(why) = mounts.mount(folder) {
                mounts.missing = Some(why);
                break;
            }
        }
        Ok(mounts)
    }

    fn mount(&mut self, folder: &Path) -> Result<(), String> {
        let (holder, disk, log) = (folder.join("image"), folder.join("disk"), folder.join("log"));
        run(&["mount", "-t", "tmpfs", "-o", IMAGE_HOLDER_SIZE, "soak"], &holder)?;
        self.mounted.push(holder.clone());
        let image = holder.join("disk.image");
        run(&["truncate", "-s", IMAGE], &image)?;
        run(&["mkfs.ext4", "-q", "-F", "-m", "0"], &image)?;
        run(&["mount", "-o", "loop", &image.display().to_string()], &disk)?;
        self.mounted.push(disk);
        run(&["mount", "-t", "tmpfs", "-o", LOG_SIZE, "soak"], &log)?;
        self.mounted.push(log);
        Ok(())
    }
}

fn is_mount(path: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(1) == Some(&path.display().to_string()))
}

pub fn freeze(folder: &Path, is_frozen: bool) -> Result<(), String> {
    run(&["fsfreeze", if is_frozen { "-f" } else { "-u" }], &folder.join("disk"))
}

/// Until the file system of the log takes no more.
pub fn fill_log(folder: &Path) -> Result<(), String> {
    let path = folder.join("log").join(FILLED_BY);
    let mut file = fs::File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let piece = vec![b'x'; PIECE_BYTES];
    while file.write_all(&piece).is_ok() {}
    Ok(())
}

pub fn free_log(folder: &Path) -> Result<(), String> {
    let path = folder.join("log").join(FILLED_BY);
    fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))
}

fn run(words: &[&str], path: &Path) -> Result<(), String> {
    let mut command = Command::new(words[0]);
    let output = command.args(&words[1..]).arg(path).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{}: {error}", words[0]))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim())),
    }
}
