//! The larder that was built, started in a folder of its own and awaited: for tasks that watch it from outside. It says
//! where it listens in `up`, its admin address is `a.sock`, and what it writes is in `larder.log`.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::project::{Project, Stopwatch};

/// Until it listens.
const PATIENCE_S: f64 = 30.0;
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// With two workers, a socket to be asked at, `l.sock`, and what else is wanted.
pub fn start(project: &Project, folder: &Path, wanted: &[&str]) -> Result<Child, String> {
    start_program(Command::new(project.larder()), folder, &[&["--workers", "2"], wanted].concat())
}

/// Another larder than the one that was built, with as many workers as are wanted.
pub fn start_program(mut program: Command, folder: &Path, wanted: &[&str]) -> Result<Child, String> {
    for name in ["l.sock", "a.sock", "up", "access.log"] {
        let _ = fs::remove_file(folder.join(name));
    }
    let log = File::create(folder.join("larder.log")).map_err(|error| error.to_string())?;
    let mut larder = program
        .current_dir(folder)
        .args(["serve", "--no-supervisor", "--listen", "unix:l.sock", "--admin", "unix:a.sock", "--ports-file", "up"])
        .args(wanted)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|error| format!("larder: {error}"))?;
    let begun = Stopwatch::start();
    while !folder.join("up").exists() {
        if begun.seconds() > PATIENCE_S || larder.try_wait().is_ok_and(|ended| ended.is_some()) {
            let _ = larder.kill();
            return Err(format!("larder does not start: {}", folder.join("larder.log").display()));
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(larder)
}
