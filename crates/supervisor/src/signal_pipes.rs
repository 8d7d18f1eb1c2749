//! Signals as bytes in pipes, so that they can be polled beside everything else.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use nix::sys::signal::SigSet;
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};
use signal_hook::low_level::pipe;

/// Those that are heard come later, until [`heard_again`]: also in the next program of this process.
pub fn heard_later() -> io::Result<()> {
    Ok(heard_signals().thread_block()?)
}

/// What has come meanwhile comes now.
pub fn heard_again() -> io::Result<()> {
    Ok(heard_signals().thread_unblock()?)
}

fn heard_signals() -> SigSet {
    use nix::sys::signal::Signal::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};
    SigSet::from_iter([SIGTERM, SIGINT, SIGHUP, SIGUSR2])
}

/// A pipe for each signal that is heard.
#[derive(Debug)]
pub struct SignalPipes(Vec<(Signal, UnixStream)>);

impl SignalPipes {
    /// From here on these signals do nothing else.
    pub fn open() -> io::Result<SignalPipes> {
        let heard = [(SIGTERM, Signal::TERM), (SIGINT, Signal::INT), (SIGHUP, Signal::HUP), (SIGUSR2, Signal::USR2)];
        let open = |(number, signal)| {
            let (read, written) = UnixStream::pair()?;
            read.set_nonblocking(true)?;
            pipe::register(number, written)?;
            Ok((signal, read))
        };
        heard.into_iter().map(open).collect::<io::Result<Vec<_>>>().map(SignalPipes)
    }

    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(|(_, pipe)| pipe.as_fd())
    }

    /// Has one come that was not taken?
    pub fn has_some(&self) -> bool {
        let waits = |(_, pipe): &(Signal, UnixStream)| rustix::io::ioctl_fionread(pipe).is_ok_and(|bytes| bytes > 0);
        self.0.iter().any(waits)
    }

    /// Those that have come, each as often as it can be told.
    pub fn take(&mut self) -> Vec<Signal> {
        let mut taken = Vec::new();
        for (signal, pipe) in &mut self.0 {
            let mut bytes = [0; 16];
            if let Ok(count) = pipe.read(&mut bytes) {
                taken.extend(std::iter::repeat_n(*signal, count));
            }
        }
        taken
    }
}
