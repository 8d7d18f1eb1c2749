//! A real browser: Chromium, headless, which believes an authority of a test's own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::tls_site::NAME;

fn run(command: &mut Command) -> String {
    let done = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {}\n{errors}", done.status);
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// One that was never here before, and whose home believes the authority.
pub struct Browser {
    home: PathBuf,
    site: SocketAddr,
}

impl Browser {
    pub fn new(folder: &Path, visit: &str, authority: &str, site: SocketAddr) -> Browser {
        let home = folder.join(visit);
        let store = home.join(".pki/nssdb");
        std::fs::create_dir_all(&store).expect("the target folder can be written");
        let database = format!("sql:{}", store.display());
        run(Command::new("certutil").args(["-d", &database, "-N", "--empty-password"]));
        run(Command::new("certutil").args(["-d", &database, "-A", "-n", "ours", "-t", "C,,", "-i", authority]));
        Browser { home, site }
    }

    /// What stands in the page when all of it has loaded, and what the browser wrote of its network.
    pub fn load(&self, path: &str) -> (String, String) {
        let events = self.home.join("events.json");
        let page = run(Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"])
            .args(["--disable-background-networking", "--disable-component-update", "--dump-dom"])
            // It takes dictionaries from those alone whose authority everybody knows.
            .arg("--disable-features=CompressionDictionaryTransportRequireKnownRootCert")
            .arg(format!("--host-resolver-rules=MAP {NAME} {}", self.site))
            .arg(format!("--user-data-dir={}", self.home.join("profile").display()))
            .arg(format!("--log-net-log={}", events.display()))
            .arg(format!("https://{NAME}{path}"))
            .env("HOME", &self.home));
        (page, std::fs::read_to_string(events).unwrap_or_default())
    }
}
