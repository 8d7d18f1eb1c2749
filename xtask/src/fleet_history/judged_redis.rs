//! The Redis that keeps the log of a round: started with a file to which everything is written before it is acknowledged, so that a kill
//! loses nothing; told what an operator might tell it by mistake; stopped and killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use crate::{ports, process_signal};

const START_SECONDS_MAX: f64 = 30.0;

/// It is killed when it is dropped.
pub struct JudgedRedis {
    pub port: u16,
    folder: PathBuf,
    process: Mutex<Child>,
}

impl JudgedRedis {
    pub fn start(folder: &Path) -> Result<JudgedRedis, String> {
        let port = ports::free()?;
        Ok(JudgedRedis { port, folder: folder.to_owned(), process: Mutex::new(start(folder, port)?) })
    }

    /// With -9, and waits until it is gone.
    pub fn kill(&self) {
        let mut process = self.process.lock().expect("nobody panicked");
        let _ = process.kill().and_then(|()| process.wait());
    }

    /// After a kill, with what its file has.
    pub fn restart(&self) -> Result<(), String> {
        *self.process.lock().expect("nobody panicked") = start(&self.folder, self.port)?;
        Ok(())
    }

    pub fn signal(&self, word: &str) {
        let process = self.process.lock().expect("nobody panicked").id();
        process_signal::send(word, &process.to_string());
    }

    /// What it answers to a command, a line each.
    pub fn tell(&self, words: &[&str]) -> Result<Vec<String>, String> {
        let mut client = Command::new("redis-cli");
        client.args(["-p", &self.port.to_string()]).args(words).stdin(Stdio::null());
        let output = client.output().map_err(|error| format!("redis-cli: {error}"))?;
        Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
    }
}

impl Drop for JudgedRedis {
    fn drop(&mut self) {
        self.kill();
    }
}

fn start(folder: &Path, port: u16) -> Result<Child, String> {
    let port_text = port.to_string();
    let mut server = Command::new("redis-server");
    server.args(["--port", &port_text, "--bind", "127.0.0.1", "--save", "", "--logfile", "redis.log"]);
    server.args(["--appendonly", "yes", "--appendfsync", "always"]).current_dir(folder);
    let started = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut process = started.map_err(|error| format!("redis-server (./setup all installs it): {error}"))?;
    ports::wait(port, START_SECONDS_MAX, || process.try_wait().is_ok_and(|ended| ended.is_none()))?;
    Ok(process)
}
