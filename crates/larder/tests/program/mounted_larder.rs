//! larder in a mount namespace of its own, in which folders of it are small file systems that a test fills, makes read-only or stalls. They
//! are gone with it. Whoever may not mount is told that nothing was run.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fenced_larder::{FencedLarder, make_folder, spawn, write_config};

/// Whether this user may mount, and devices of loops can be had where `needs_loop`.
pub fn may_mount(needs_loop: bool) -> bool {
    let script = match needs_loop {
        true => "losetup -f",
        false => "mount -t tmpfs tmpfs /mnt",
    };
    let tried = Command::new("unshare").args(["-m", "sh", "-c", script]).output();
    let may = rustix::process::geteuid().is_root() && tried.is_ok_and(|tried| tried.status.success());
    if !may {
        println!("not run: nothing can be mounted here");
    }
    may
}

/// `mounts`: shell commands that are run before it starts, with PLACE where its folder is meant; `config`: as in [`FencedLarder::start`].
pub fn start(name: &str, mounts: &str, config: &str) -> FencedLarder {
    let folder = make_folder(name);
    write_config(&folder, config);
    let script = format!("set -e; {}; exec \"$0\" \"$@\"", mounts.replace("PLACE", &folder.display().to_string()));
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script, env!("CARGO_BIN_EXE_larder"), "serve", "--no-supervisor"]);
    let child = spawn(&folder, &mut command);
    FencedLarder::running(folder, child)
}

/// Its folder, with what is mounted there.
pub fn place(larder: &FencedLarder) -> PathBuf {
    let inside = larder.folder.strip_prefix("/").expect("it is absolute");
    Path::new("/proc").join(larder.child.0.id().to_string()).join("root").join(inside)
}

/// A program in its namespace, with PLACE where its folder is meant.
pub fn run_inside(larder: &FencedLarder, script: &str) {
    let script = script.replace("PLACE", &larder.folder.display().to_string());
    let mut command = Command::new("nsenter");
    command.args(["-m", "-t", &larder.child.0.id().to_string(), "sh", "-c", &script]);
    let told = command.output().expect("nsenter is there");
    assert!(told.status.success(), "{script}: {}", String::from_utf8_lossy(&told.stderr));
}

/// Takes all the room that is left where `file` lies.
pub fn fill(file: &Path) {
    use std::io::Write;
    let mut file = File::create(file).expect("there is room for a name");
    for piece in [1 << 20, 1 << 12, 1] {
        while file.write_all(&vec![b'x'; piece]).is_ok() {}
    }
}

/// A file system that takes no writes until this goes: who writes waits.
pub struct Stalled(File);

impl Stalled {
    pub fn at(folder: &Path) -> Stalled {
        let stalled = Stalled(File::open(folder).expect("it is mounted"));
        assert!(stalled.fsfreeze("-f"), "fsfreeze");
        stalled
    }

    fn fsfreeze(&self, what: &str) -> bool {
        let shown = format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd());
        Command::new("fsfreeze").args([what, &shown]).status().is_ok_and(|status| status.success())
    }
}

impl Drop for Stalled {
    fn drop(&mut self) {
        // Where it was not stalled there is nothing to undo.
        self.fsfreeze("-u");
    }
}
