//! A serving process as its supervisor sees it: who it is, how it is spoken with, and in which part of its life it is.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, kill_process, pidfd_open, waitpid};

use crate::limits::{START_MAX, UPGRADE_MAX};
use crate::link_socket::LinkSocket;
use crate::link_word::SupervisorWord;

/// What its supervisor sees of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It is to take over from one that serves, and is not ready.
    Coming,
    /// It serves, or is about to with nobody before it.
    Serving,
    /// It lets nobody in any more, and finishes what is under way.
    Leaving,
}

#[derive(Debug)]
pub struct Child {
    pub pid: Pid,
    /// Readable once it has ended.
    pub life: OwnedFd,
    /// `None` once it has closed its end.
    pub link: Option<LinkSocket>,
    pub part: Part,
    pub started: Duration,
    pub has_served: bool,
    /// When it is to be worried about.
    pub silent_at: Option<Duration>,
    /// It said nothing in time, and has a little more.
    pub is_doubted: bool,
    /// When it is ended, whatever it does.
    pub killed_at: Option<Duration>,
    /// What it has bound. It is nobody else's before it serves: where it never does, nobody listens.
    pub bound: Vec<(String, Vec<OwnedFd>)>,
    /// A HUP came while it could not hear one.
    pub is_hup_owed: bool,
}

/// How one has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Code(u8),
    Signal(i32),
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ending::Code(code) => write!(f, "ended with code {code}"),
            Ending::Signal(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
}

impl Ending {
    fn of(status: WaitStatus) -> Ending {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Ending::Code(code.try_into().unwrap_or(u8::MAX)),
            (None, Some(signal)) => Ending::Signal(signal),
            (None, None) => Ending::Code(u8::MAX),
        }
    }

    /// As a shell tells it.
    pub fn code(self) -> u8 {
        match self {
            Ending::Code(code) => code,
            Ending::Signal(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }
}

impl Child {
    /// Starts `program` with one end of a link as its standard input.
    pub fn start(program: &Path, arguments: &[OsString], part: Part, now: Duration) -> io::Result<Child> {
        let (ours, its) = LinkSocket::pair()?;
        let mut command = Command::new(program);
        command.arg0("larder").args(arguments).stdin(Stdio::from(its.into_fd()));
        // A terminal's signals are for the supervisor, which passes them on.
        command.process_group(0);
        // What the service manager hears of larder, it hears from the supervisor.
        for name in ["NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
            command.env_remove(name);
        }
        let pid = Pid::from_child(&command.spawn()?);
        Child::of(pid, Some(ours), part, now)
    }

    /// One that is there already.
    pub fn of(pid: Pid, link: Option<LinkSocket>, part: Part, now: Duration) -> io::Result<Child> {
        let life = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Child {
            pid,
            life,
            link,
            part,
            started: now,
            has_served: false,
            silent_at: (part == Part::Serving).then_some(now + START_MAX),
            is_doubted: false,
            killed_at: (part == Part::Coming).then_some(now + UPGRADE_MAX),
            bound: Vec::new(),
            is_hup_owed: false,
        })
    }

    /// That it cannot be told is seen by its end.
    pub fn say(&mut self, word: SupervisorWord) {
        if let Some(link) = &self.link
            && link.send(&word.datagram()).is_err()
        {
            self.link = None;
        }
    }

    /// One that has ended takes no signal, which is as well.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid, signal);
    }

    /// How it has ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        match waitpid(Some(self.pid), WaitOptions::NOHANG) {
            Ok(Some((_, status))) => Some(Ending::of(status)),
            Ok(None) => None,
            // Somebody else has asked: it is gone all the same.
            Err(_) => Some(Ending::Code(u8::MAX)),
        }
    }
}
