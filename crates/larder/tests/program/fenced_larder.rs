//! larder as `larder serve` starts it, with its sandbox, in a folder of a test's own that has one folder for each thing: `etc`, `site`, `log`,
//! `run`, and `else`, which no config names at first.

use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::peer_process::{Running, wait_for};
use crate::subject::get;

pub struct FencedLarder {
    pub folder: PathBuf,
    pub child: Running,
}

impl FencedLarder {
    /// `config`: the text of its larder.toml, with PLACE where the folder is meant; a listener and the admin address come with it.
    pub fn start(name: &str, config: &str) -> FencedLarder {
        let folder = make_folder(name);
        write_config(&folder, config);
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        let child = spawn(&folder, command.args(["serve", "--no-supervisor"]));
        FencedLarder::running(folder, child)
    }

    /// Once it listens.
    pub fn running(folder: PathBuf, child: Running) -> FencedLarder {
        let larder = FencedLarder { folder, child };
        larder.wait_for_word("listening on");
        wait_for("larder names its port", || larder.folder.join("run/ports").exists());
        larder
    }

    /// Of its n-th listener.
    pub fn address(&self, nth: usize) -> SocketAddr {
        let ports = std::fs::read_to_string(self.folder.join("run/ports")).expect("it was written");
        let found = ports.lines().filter_map(|line| line.strip_prefix("listen")?.split(' ').nth(1)).nth(nth);
        let found = found.and_then(|address| address.parse().ok());
        found.expect("it listens there")
    }

    pub fn get(&self, path: &str) -> String {
        get(self.address(0), path).expect("larder answers")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// All that it has said.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.path("said")).unwrap_or_default()
    }

    #[track_caller]
    pub fn wait_for_word(&self, word: &str) {
        wait_for(&format!("larder says {word:?}, not\n{}", self.said()), || self.said().contains(word));
    }

    /// Whether the kernel fences files in; where it does not, that is said.
    pub fn has_fence(&self) -> bool {
        let has_none = self.said().contains("files are not fenced in");
        if has_none {
            println!("not run: this kernel has no landlock");
        }
        !has_none
    }

    /// Has it read its config again, and waits for a word that it had not said before.
    #[track_caller]
    pub fn reload(&self, config: &str, word: &str) {
        let before = self.said().len();
        write_config(&self.folder, config);
        self.signal(Signal::HUP);
        wait_for(&format!("larder says {word:?}, not\n{}", self.said()), || self.said()[before..].contains(word));
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child.0), signal).expect("larder runs");
    }

    /// What the admin address answers.
    pub fn status(&self) -> serde_json::Value {
        serde_json::from_slice(&self.told("status")).expect("JSON")
    }

    /// One value of `/metrics`, summed over its labels.
    #[track_caller]
    pub fn metric(&self, name: &str) -> f64 {
        let text = String::from_utf8(self.told("metrics")).expect("it is text");
        let values: Vec<f64> = text.lines().filter_map(|line| value_of(line, name)).collect();
        assert!(!values.is_empty(), "no {name} in {text}");
        values.iter().sum()
    }

    fn told(&self, page: &str) -> Vec<u8> {
        let mut command = Command::new("curl");
        command.args(["-s", "--unix-socket"]).arg(self.path("run/a.sock")).arg(format!("http://localhost/{page}"));
        command.output().expect("curl is there").stdout
    }
}

impl Drop for FencedLarder {
    fn drop(&mut self) {
        let _ = self.child.0.kill();
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// Of a line of `/metrics`, if it is about this.
fn value_of(line: &str, name: &str) -> Option<f64> {
    let (series, value) = line.rsplit_once(' ')?;
    (series.split('{').next() == Some(name)).then(|| value.parse().ok())?
}

pub fn make_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fenced-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    for made in ["etc", "log", "run", "disk", "site/1", "else/2"] {
        std::fs::create_dir_all(folder.join(made)).expect("the target folder can be written");
    }
    std::fs::write(folder.join("site/1/page.txt"), "the first release\n").expect("it is ours");
    std::fs::write(folder.join("else/2/page.txt"), "from elsewhere\n").expect("it is ours");
    symlink("1", folder.join("site/current")).expect("it is ours");
    folder
}

/// Puts a new file in the place of the old one, as editors do.
pub fn write_config(folder: &Path, config: &str) {
    let place = folder.display();
    let config = config.replace("PLACE", &place.to_string());
    let text = format!(
        "{config}\n[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"unix:{place}/run/a.sock\"\n[log]\npath = \"{place}/log/access.log\"\n"
    );
    std::fs::write(folder.join("etc/larder.toml.new"), text).expect("it is ours");
    std::fs::rename(folder.join("etc/larder.toml.new"), folder.join("etc/larder.toml")).expect("it is ours");
}

pub fn spawn(folder: &Path, command: &mut Command) -> Running {
    let said = std::fs::File::create(folder.join("said")).expect("it is ours");
    command.arg("--config").arg(folder.join("etc/larder.toml")).arg("--ports-file").arg(folder.join("run/ports"));
    command.args(["--workers", "2"]).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    Running(command.spawn().expect("larder can be started"))
}
