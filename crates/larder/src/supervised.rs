//! `larder serve` as two processes: the one that was started supervises ([`supervisor`]), and starts the one that serves.
//!
//! The supervisor reads no config. Of the environment it reads what the service manager says to the process that it has started.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use proxy::{Moment, wall_now_ms};
use supervisor::{Program, SERVING_FLAG, SUCCEEDING_FLAG, Surroundings};

use crate::expiry_watch::show_date;
use crate::given_sockets;
use crate::notify_socket::{self, NotifyTarget, ServiceNotice};
use crate::open_files::raise_limit;
use crate::say::say;

/// Supervises. `succeeds`: in the place of another version, in its process.
pub fn supervise(succeeds: bool) -> ExitCode {
    match try_to(succeeds) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            say!("error: the supervisor cannot go on: {error} (--no-supervisor does without)");
            ExitCode::FAILURE
        }
    }
}

/// As the kernel has it.
const RUNNING: &str = "/proc/self/exe";

fn try_to(succeeds: bool) -> io::Result<u8> {
    // It may have been started as /proc/self/exe.
    let _ = rustix::thread::set_name(c"larder");
    // It has as many descriptors as all that serve below it listen on.
    let _ = raise_limit();
    let program = Program { path: own_path()?, running: RUNNING.into(), arguments: own_arguments() };
    let surroundings = Outside {
        started: Moment::now(),
        notify: NotifyTarget::of_environment(),
        is_watched: notify_socket::is_watched(),
    };
    match succeeds {
        true => supervisor::succeed(&program, &surroundings),
        false => supervisor::supervise(&program, given_sockets::of_environment(), &surroundings),
    }
}

/// Where this program was started from, also when another one lies there by now.
fn own_path() -> io::Result<PathBuf> {
    const REPLACED: &str = " (deleted)";
    let path = std::env::current_exe()?;
    let text = path.to_str().and_then(|text| text.strip_suffix(REPLACED)).map(PathBuf::from);
    Ok(text.filter(|_| !path.exists()).unwrap_or(path))
}

fn own_arguments() -> Vec<OsString> {
    let ours = [SERVING_FLAG, SUCCEEDING_FLAG];
    std::env::args_os().skip(1).filter(|word| !ours.iter().any(|flag| word == flag)).collect()
}

struct Outside {
    started: Moment,
    notify: Option<NotifyTarget>,
    is_watched: bool,
}

impl Surroundings for Outside {
    fn now(&self) -> Duration {
        Duration::from_micros(self.started.micros_until(Moment::now()))
    }

    fn say(&self, sentence: &str) {
        say!("{sentence}");
    }

    fn date(&self) -> String {
        show_date(wall_now_ms() / 1_000)
    }

    fn notify(&self, datagram: &str) {
        self.notify.iter().for_each(|target| target.send(datagram));
    }

    fn beat(&self) {
        if self.is_watched {
            self.notify(&ServiceNotice::Alive.datagram());
        }
    }
}
