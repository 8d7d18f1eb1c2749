//! Stands between a behaviour file's clients, which speak HTTP/1 in the clear, and a larder that is asked another way: by TLS
//! (`tls_shim.rs`) or over HTTP/2 (`h2_shim.rs`). What it carries how is theirs; when it begins and ends is here.
//!
//! `cargo xtask behaviours --over …` starts larder by this: [`start`] leaves a shim at the socket that the file asks, puts larder behind
//! it, and becomes larder, so that signals and exit codes are larder's own.

use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, parent_id};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// Where files ask, and where larder listens instead.
const ASKED: &str = "l.sock";
pub const BEHIND: &str = "behind.sock";
/// Whether larder still runs is looked at so often.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LAST_WORDS: Duration = Duration::from_secs(10);

/// How larder is asked for what a file's clients ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Clear,
    Tls,
    Http2,
}

impl Over {
    /// As the command line has it.
    pub fn named(name: &str) -> Option<Over> {
        [Over::Tls, Over::Http2].into_iter().find(|over| over.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Over::Clear => "clear",
            Over::Tls => "tls",
            Over::Http2 => "h2",
        }
    }

    /// What larder is told in place of where it should listen.
    fn listens(self, certificates: &str) -> Vec<String> {
        let behind = format!("unix:{BEHIND}");
        let file = |name: &str| format!("{certificates}/site.{name}");
        match self {
            Over::Clear => vec!["--listen".to_owned(), format!("unix:{ASKED}")],
            Over::Tls => ["--tls", &behind, "--cert", &file("pem"), "--key", &file("key")].map(str::to_owned).to_vec(),
            Over::Http2 => ["--listen", &behind, "--h2c"].map(str::to_owned).to_vec(),
        }
    }
}

/// Leaves a shim behind and becomes larder. Returns only if it cannot.
pub fn start(over: Over, certificates: &str, larder: &str, arguments: &[&str]) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|e| format!("the shim: {e}"))?;
    let mut shim = Command::new(own)
        .args(["shim", over.name(), certificates])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // A signal to larder is one to its process group, and what is on its way when larder is told to end has to arrive.
        .process_group(0)
        .spawn()
        .map_err(|e| format!("the shim: {e}"))?;
    // It says so when it listens.
    let mut said = [0];
    shim.stdout.take().ok_or("the shim says nothing")?.read_exact(&mut said).map_err(|e| format!("the shim: {e}"))?;
    let mut command = Command::new(larder);
    let asked = format!("unix:{ASKED}");
    let mut left = arguments;
    while let [argument, behind_it @ ..] = left {
        left = behind_it;
        match (*argument, left) {
            ("--listen", [address, rest @ ..]) if *address == asked => {
                left = rest;
                command.args(over.listens(certificates));
            }
            (other, _) => _ = command.arg(other),
        }
    }
    Err(format!("{larder}: {}", command.exec()))
}

/// The shim itself: carries each client by `carry`, until the process that has started it, which is larder by then, is gone.
pub fn serve<C>(carry: impl Fn(UnixStream) -> C) -> Result<(), String>
where
    C: Future<Output = io::Result<()>> + Send + 'static,
{
    let _ = std::fs::remove_file(ASKED);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let larder = parent_id();
    runtime.block_on(async {
        let listener = UnixListener::bind(ASKED).map_err(|e| format!("{ASKED}: {e}"))?;
        let mut stdout = std::io::stdout();
        stdout.write_all(b"l").and_then(|()| stdout.flush()).map_err(|e| e.to_string())?;
        let mut carried = JoinSet::new();
        while parent_id() == larder {
            if let Ok(Ok((client, _))) = tokio::time::timeout(LOOK_EVERY, listener.accept()).await {
                // Whoever leaves in the middle of something is the business of the file.
                carried.spawn(carry(client));
            }
        }
        drop(listener);
        // What larder said last is still on its way.
        drop(tokio::time::timeout(LAST_WORDS, carried.join_all()).await);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larder_listens_behind_its_shim_and_where_it_was_told_without_one() {
        assert_eq!(
            (Over::named("tls"), Over::named("h2"), Over::named("clear")),
            (Some(Over::Tls), Some(Over::Http2), None)
        );
        assert_eq!(Over::Http2.listens("c"), ["--listen", "unix:behind.sock", "--h2c"]);
        assert_eq!(Over::Clear.listens("c"), ["--listen", "unix:l.sock"]);
        assert!(Over::Tls.listens("c").contains(&"c/site.key".to_owned()));
    }
}
