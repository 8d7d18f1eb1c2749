//! The supervisor at work: it starts who serves, holds the sockets, starts it again when it dies or says nothing any more, and has another
//! one take over when the program is upgraded.
//!
//! It reads no config and no byte of a client. What a serving process is to be told or asked beyond these words is between it and others.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_acceptconn;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal};

use crate::child::{Child, Ending, Part};
use crate::kept_sockets::KeptSockets;
use crate::limits::{
    ABORT_PATIENCE, DOUBT, LEAVING_MARGIN, LEAVING_MAX, NAMES_MAX, PATIENCE_MAX, START_MAX, WORDS_A_TURN_MAX,
};
use crate::link_word::{ServingWord, SupervisorWord, VERSION};
use crate::processes::Processes;
use crate::restart_pause::RestartPause;
use crate::signal_pipes::{self, SignalPipes};
use crate::succession;
use crate::supervised_program::{Program, SERVING_FLAG};

/// What a supervisor needs of the program that it is part of.
pub trait Surroundings {
    /// A clock that does not jump.
    fn now(&self) -> Duration;
    /// A line for the operator.
    fn say(&self, sentence: &str);
    /// The time of day, for who reads a report later.
    fn date(&self) -> String;
    /// A datagram for the service manager.
    fn notify(&self, datagram: &str);
    /// The one that serves goes round: for a watchdog of the service manager.
    fn beat(&self);
}

struct Supervisor<'a> {
    program: &'a Program,
    surroundings: &'a dyn Surroundings,
    processes: Processes,
    signals: SignalPipes,
    pause: RestartPause,
    /// When another one is started in place of one that died.
    start_at: Option<Duration>,
    has_served: bool,
    ends_asked: u32,
    /// What the whole comes to, once it is over.
    code: u8,
}

/// Supervises until a signal ends it, or until what it starts cannot serve at all. Returns the exit code. `given`: sockets that the
/// service manager has bound.
pub fn supervise(program: &Program, given: KeptSockets, surroundings: &dyn Surroundings) -> io::Result<u8> {
    let mut supervisor = Supervisor::new(program, Processes { kept: given, ..Processes::default() }, surroundings)?;
    let first = supervisor.start(&program.here(), Part::Serving)?;
    supervisor.begin(first, None);
    supervisor.go_on()
}

/// Goes on for a supervisor of another version, whose process this is: its standard input has what that one knew.
pub fn succeed(program: &Program, surroundings: &dyn Surroundings) -> io::Result<u8> {
    let mut supervisor = Supervisor::new(program, succession::take_over(surroundings.now())?, surroundings)?;
    supervisor.has_served = true;
    signal_pipes::heard_again()?;
    supervisor.go_on()
}

/// What a service manager may be told by a process that serves; not that another process is the main one, nor anything else that this one may
/// say and that one may not.
fn of_service(datagram: &str) -> String {
    const MAY_BE_SAID: [&str; 6] =
        ["READY", "RELOADING", "MONOTONIC_USEC", "STOPPING", "EXTEND_TIMEOUT_USEC", "STATUS"];
    let may_be_said = |line: &&str| line.split_once('=').is_some_and(|(name, _)| MAY_BE_SAID.contains(&name));
    datagram.lines().filter(may_be_said).collect::<Vec<_>>().join("\n")
}

impl<'a> Supervisor<'a> {
    fn new(
        program: &'a Program,
        processes: Processes,
        surroundings: &'a dyn Surroundings,
    ) -> io::Result<Supervisor<'a>> {
        Ok(Supervisor {
            program,
            surroundings,
            processes,
            signals: SignalPipes::open()?,
            pause: RestartPause::default(),
            start_at: None,
            has_served: false,
            ends_asked: 0,
            code: 0,
        })
    }

    fn go_on(mut self) -> io::Result<u8> {
        loop {
            self.wait()?;
            let signals = self.signals.take();
            signals.into_iter().for_each(|signal| self.obey(signal));
            self.hear();
            self.bury();
            self.leave_no_gap();
            self.look_at_clock();
            if self.processes.children.is_empty() && self.start_at.is_none() {
                return Ok(self.code);
            }
        }
    }

    /// Until something has come, or a time.
    fn wait(&self) -> io::Result<()> {
        let mut fds: Vec<PollFd<'_>> =
            self.signals.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        for child in &self.processes.children {
            fds.push(PollFd::new(&child.life, PollFlags::IN));
            fds.extend(child.link.iter().map(|link| PollFd::from_borrowed_fd(link.as_fd(), PollFlags::IN)));
        }
        let now = self.surroundings.now();
        let until = self.next_time().map(|at| at.saturating_sub(now) + Duration::from_millis(1));
        let until =
            until.map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) });
        match poll(&mut fds, until.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// When something is to be done although nothing comes.
    fn next_time(&self) -> Option<Duration> {
        let of_child = |child: &Child| [child.silent_at, child.killed_at].into_iter().flatten().min();
        self.processes.children.iter().filter_map(of_child).chain(self.start_at).min()
    }

    fn at(&mut self, part: Part) -> Option<&mut Child> {
        self.processes.children.iter_mut().find(|child| child.part == part)
    }

    fn obey(&mut self, signal: Signal) {
        match signal {
            Signal::USR2 if self.ends_asked == 0 => self.upgrade(),
            Signal::USR2 => {}
            Signal::HUP => {
                for child in &mut self.processes.children {
                    match child.part {
                        Part::Serving if child.has_served => child.signal(Signal::HUP),
                        // It would end it before it listens.
                        Part::Serving | Part::Coming => child.is_hup_owed = true,
                        Part::Leaving => {}
                    }
                }
            }
            ends => {
                self.ends_asked += 1;
                self.start_at = None;
                self.processes.children.iter_mut().for_each(|child| {
                    // From here on it may take as long as it says.
                    child.silent_at = None;
                    child.signal(ends);
                });
            }
        }
    }

    /// Starts one, and tells it nothing yet.
    fn start(&mut self, program: &Path, part: Part) -> io::Result<Pid> {
        let mut arguments = self.program.arguments.clone();
        arguments.push(SERVING_FLAG.into());
        let child = Child::start(program, &arguments, part, self.surroundings.now())?;
        let pid = child.pid;
        self.processes.children.push(child);
        Ok(pid)
    }

    /// Tells one what is kept, and that it may begin.
    fn begin(&mut self, pid: Pid, former: Option<OwnedFd>) {
        let copies = match self.processes.kept.copies() {
            Ok(copies) => Ok(copies),
            Err(error) => {
                self.surroundings.say(&format!("error: kept sockets cannot be handed on: {error}"));
                Err(())
            }
        };
        let (beside, deaths) = (self.processes.children.len() > 1, self.processes.deaths);
        let Some(child) = self.processes.children.iter_mut().find(|child| child.pid == pid) else { return };
        let Ok(copies) = copies else {
            // Without them it would find its addresses in use: it ends, and another one is tried.
            child.link = None;
            return;
        };
        for line in self.processes.reports.lines() {
            child.say(SupervisorWord::Reported(line.to_owned()));
        }
        for (name, sockets) in copies {
            child.say(SupervisorWord::Have { name, sockets });
        }
        child.say(SupervisorWord::Begin { version: VERSION, deaths, beside, former });
    }

    /// One of the program as it lies there now takes over from the one that serves.
    fn upgrade(&mut self) {
        if let Err(why) = self.try_upgrade() {
            self.surroundings.say(&format!("not upgraded: {why}"));
            if let Some(serving) = self.at(Part::Serving) {
                serving.say(SupervisorWord::Verdict(why));
            }
        }
    }

    fn try_upgrade(&mut self) -> Result<(), String> {
        if self.at(Part::Coming).is_some() {
            // Who asks now hears what comes of that one.
            return Ok(());
        }
        if self.at(Part::Serving).is_none_or(|serving| !serving.has_served) {
            return Err("nothing serves at the moment that could be taken over from".to_owned());
        }
        let path = self.program.path.clone();
        let failed = |error: io::Error| format!("{} cannot be started: {error}", path.display());
        let (former, heir) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(|error| failed(error.into()))?;
        let coming = self.start(&path, Part::Coming).map_err(failed)?;
        let sentence = format!("upgrade: {} is started as process {}", path.display(), coming.as_raw_pid());
        self.surroundings.say(&sentence);
        if let Some(serving) = self.at(Part::Serving) {
            serving.say(SupervisorWord::Heir(heir));
        }
        self.begin(coming, Some(former));
        Ok(())
    }

    /// What serving processes have said.
    fn hear(&mut self) {
        (0..self.processes.children.len()).for_each(|at| self.hear_one(at));
    }

    fn hear_one(&mut self, at: usize) {
        for _ in 0..WORDS_A_TURN_MAX {
            let child = &mut self.processes.children[at];
            let Some(link) = &child.link else { break };
            match link.receive_now() {
                Ok(Some(datagram)) => match ServingWord::read(datagram) {
                    Some(word) => self.heard(at, word),
                    None => self.surroundings.say("warning: a word of the serving process is not understood"),
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Ok(None) | Err(_) => child.link = None,
            }
        }
    }

    /// Of one that has ended: why, if it has said so. What else it wanted is nobody's wish any more.
    fn hear_last_words(&mut self, child: &Child) {
        let Some(link) = &child.link else { return };
        while let Ok(Some(datagram)) = link.receive_now() {
            if let Some(ServingWord::Report(line)) = ServingWord::read(datagram) {
                self.processes.reports.keep(&line);
            }
        }
    }

    fn heard(&mut self, at: usize, word: ServingWord) {
        let now = self.surroundings.now();
        let child = &mut self.processes.children[at];
        match word {
            ServingWord::Keep { name, sockets } => {
                if child.has_served {
                    self.keep(&name, sockets);
                } else if child.bound.len() < NAMES_MAX {
                    child.bound.push((name, sockets));
                }
            }
            ServingWord::Release(name) => drop(self.processes.kept.take(&name)),
            ServingWord::Leaving { grace } => {
                (child.part, child.silent_at) = (Part::Leaving, None);
                child.killed_at = Some(now + grace.min(PATIENCE_MAX) + LEAVING_MARGIN);
                self.bound_leaving();
            }
            ServingWord::Alive { patience } if child.part == Part::Serving && self.ends_asked == 0 => {
                (child.silent_at, child.is_doubted) = (Some(now + patience.min(PATIENCE_MAX)), false);
                self.surroundings.beat();
            }
            ServingWord::Alive { .. } => {}
            ServingWord::Notify(datagram) if child.part == Part::Serving => {
                self.surroundings.notify(&of_service(&datagram))
            }
            ServingWord::Notify(_) => {}
            ServingWord::Report(line) => self.processes.reports.keep(&line),
            ServingWord::Upgrade => self.upgrade(),
            ServingWord::Ready { version } => self.ready(at, version),
        }
    }

    /// What is no listening socket is not kept: nobody could serve on it.
    fn keep(&mut self, name: &str, sockets: Vec<OwnedFd>) {
        let are_listening = sockets.iter().all(|socket| socket_acceptconn(socket).unwrap_or_default());
        if !are_listening || !self.processes.kept.keep(name, sockets) {
            let sentence = format!("warning: the sockets of {name} cannot be kept beyond its process");
            self.surroundings.say(&sentence);
        }
    }

    fn ready(&mut self, at: usize, version: u32) {
        let bound = std::mem::take(&mut self.processes.children[at].bound);
        bound.into_iter().for_each(|(name, sockets)| self.keep(&name, sockets));
        let child = &mut self.processes.children[at];
        (child.has_served, child.killed_at) = (true, None);
        self.has_served = true;
        if std::mem::take(&mut child.is_hup_owed) {
            child.signal(Signal::HUP);
        }
        if child.part != Part::Coming {
            return;
        }
        let pid = child.pid;
        // One that has not said that it leaves has nothing to leave.
        self.processes
            .children
            .iter_mut()
            .filter(|child| child.part == Part::Serving)
            .for_each(|it| it.part = Part::Leaving);
        let now = self.surroundings.now();
        let child = &mut self.processes.children[at];
        (child.part, child.silent_at) = (Part::Serving, Some(now + START_MAX));
        for former in self.processes.children.iter_mut().filter(|child| child.part == Part::Leaving) {
            former.say(SupervisorWord::Succeeded { process: pid.as_raw_pid() });
        }
        self.surroundings.say(&format!("upgrade: process {} serves from here on", pid.as_raw_pid()));
        if version != VERSION {
            self.surroundings.say("the supervisor itself is upgraded by a restart: the new one speaks otherwise");
        } else if self.ends_asked == 0
            && let Err(why) = succession::hand_over(self.program, &self.processes, now, || self.signals.has_some())
        {
            self.surroundings.say(&format!("the supervisor itself is not upgraded, and goes on: {why}"));
        }
    }

    /// Some clients never leave.
    fn bound_leaving(&mut self) {
        let leaving = self.processes.children.iter().filter(|child| child.part == Part::Leaving);
        if leaving.clone().count() > LEAVING_MAX
            && let Some(oldest) = leaving.min_by_key(|child| child.started)
        {
            oldest.signal(Signal::TERM);
        }
    }

    /// Those that have ended.
    fn bury(&mut self) {
        let mut at = 0;
        while at < self.processes.children.len() {
            match self.processes.children[at].ending() {
                None => at += 1,
                Some(ending) => {
                    let child = self.processes.children.remove(at);
                    self.hear_last_words(&child);
                    self.ended(&child, ending);
                    if let [only] = &mut self.processes.children[..] {
                        only.say(SupervisorWord::Alone);
                    }
                }
            }
        }
    }

    fn ended(&mut self, child: &Child, ending: Ending) {
        let pid = child.pid.as_raw_pid();
        if self.ends_asked > 0 {
            if child.part == Part::Serving {
                self.code = ending.code();
            }
            return;
        }
        match child.part {
            Part::Leaving => {}
            Part::Coming => self.did_not_come(pid, ending),
            // It cannot serve, and has said why.
            Part::Serving if !self.has_served => self.code = ending.code(),
            Part::Serving => match self.at(Part::Coming) {
                // It is on its way, and takes over from nobody now.
                Some(coming) => {
                    coming.part = Part::Serving;
                    self.died(child, ending);
                    self.surroundings
                        .say(&format!("error: the serving process {pid} {ending}; the next one takes its place"));
                }
                None => self.start_again(child, ending),
            },
        }
    }

    fn did_not_come(&mut self, pid: i32, ending: Ending) {
        let why = format!("process {pid} {ending} before it served");
        match self.at(Part::Serving) {
            Some(serving) => {
                serving.say(SupervisorWord::Verdict(why.clone()));
                self.surroundings.say(&format!("not upgraded: {why}; the one that serves goes on"));
            }
            // It had let go already.
            None => {
                self.surroundings.say(&format!("not upgraded: {why}; the former version is started again"));
                if let Some(leaving) = self.at(Part::Leaving) {
                    leaving.say(SupervisorWord::Verdict(why));
                }
            }
        }
    }

    /// Whatever has happened: somebody serves, or is about to.
    fn leave_no_gap(&mut self) {
        let is_there = self.processes.children.iter().any(|child| child.part != Part::Leaving);
        if !is_there && self.has_served && self.ends_asked == 0 && self.start_at.is_none() {
            self.start_at = Some(self.surroundings.now());
        }
    }

    /// Before its time.
    fn died(&mut self, child: &Child, ending: Ending) {
        self.processes.deaths += 1;
        let (date, pid) = (self.surroundings.date(), child.pid.as_raw_pid());
        let lived = self.surroundings.now().saturating_sub(child.started).as_secs();
        self.processes.reports.keep(&format!("{date} the serving process {pid} {ending} after {lived} s"));
    }

    fn start_again(&mut self, child: &Child, ending: Ending) {
        self.died(child, ending);
        let now = self.surroundings.now();
        let pause = self.pause.after(now.saturating_sub(child.started), child.has_served);
        let when = match pause {
            Duration::ZERO => "another one is started".to_owned(),
            pause => format!("another one is started in {} ms", pause.as_millis()),
        };
        let pid = child.pid.as_raw_pid();
        self.surroundings.say(&format!("error: the serving process {pid} {ending}; {when}"));
        self.start_at = Some(now + pause);
    }

    fn look_at_clock(&mut self) {
        let now = self.surroundings.now();
        if self.start_at.is_some_and(|at| at <= now) {
            self.start_at = None;
            let started = self.start(&self.program.here(), Part::Serving);
            match started {
                Ok(pid) => self.begin(pid, None),
                Err(error) => {
                    let pause = self.pause.after(Duration::ZERO, false);
                    let ms = pause.as_millis();
                    self.surroundings
                        .say(&format!("error: larder cannot be started: {error}; the next try is in {ms} ms"));
                    self.start_at = Some(now + pause);
                }
            }
        }
        for child in &mut self.processes.children {
            if child.killed_at.is_some_and(|at| at <= now) {
                child.killed_at = None;
                child.signal(Signal::KILL);
            }
            if child.silent_at.is_some_and(|at| at <= now) {
                if !std::mem::replace(&mut child.is_doubted, true) {
                    child.silent_at = Some(now + DOUBT);
                    continue;
                }
                child.silent_at = None;
                child.killed_at = Some(now + ABORT_PATIENCE);
                child.signal(Signal::ABORT);
                let pid = child.pid.as_raw_pid();
                self.surroundings
                    .say(&format!("error: the serving process {pid} does not go round any more, and is ended"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serving_process_tells_the_service_manager_of_itself_alone() {
        let said = "READY=1\nMAINPID=1\nSTATUS=a=b\nFDSTORE=1\nnonsense";
        assert_eq!(of_service(said), "READY=1\nSTATUS=a=b");
    }
}
