//! One program under test, the origin behind it and the clients before it, driven by one thread: turn by turn,
//! until nothing moves and the program is at rest. Rest is the clock of every script, so nothing here sleeps.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::answer_stream::{self, Answer};
use crate::notation::{self, Names};
use crate::raw_client::Client;
use crate::recording_origin::RecordingOrigin;
use crate::subject::Subject;

/// How long a test waits for an event that must come.
pub const PATIENCE_MS: u64 = 10_000;

#[derive(Debug)]
pub struct Lane {
    pub subject: Subject,
    pub origin: RecordingOrigin,
    pub names: Names,
}

/// Why a lane stopped waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    Met,
    /// Nothing came for as long as anybody waits.
    InVain,
    /// The program uses the processor and gets nowhere.
    Spinning,
}

impl Lane {
    pub fn new(subject: Subject, origin: RecordingOrigin) -> Lane {
        Lane { subject, origin, names: Names::default() }
    }

    /// Runs until everybody is at rest. False: the program never rests.
    pub fn settle(&mut self, clients: &mut [Client]) -> bool {
        let started_ms = now_ms();
        loop {
            if self.turn(clients) {
                continue;
            }
            if now_ms() - started_ms > PATIENCE_MS {
                return false;
            }
            if !self.subject.stillness.is_still() {
                self.poll(clients, 1);
                continue;
            }
            // Bytes may have come between the last look and its falling asleep.
            if self.turn(clients) {
                continue;
            }
            let moved = clients.iter_mut().map(Client::on_still).filter(|&moved| moved).count() > 0;
            if !moved && !self.origin.on_still() {
                return true;
            }
        }
    }

    /// Runs until the condition holds while everybody is at rest.
    pub fn wait_until(
        &mut self,
        clients: &mut [Client],
        patience_ms: u64,
        mut is_met: impl FnMut(&mut Lane, &mut [Client]) -> bool,
    ) -> Waited {
        let deadline_ms = now_ms() + patience_ms;
        loop {
            if !self.settle(clients) {
                return Waited::Spinning;
            }
            if is_met(self, clients) {
                return Waited::Met;
            }
            let left_ms = deadline_ms.saturating_sub(now_ms());
            if left_ms == 0 {
                return Waited::InVain;
            }
            // A short look, since the condition may depend on the program alone.
            self.poll(clients, left_ms.min(50));
        }
    }

    /// Connects a client that plays this script.
    pub fn connect(&mut self, text: &str) -> Client {
        let script = notation::read(text, &self.names).unwrap_or_else(|error| panic!("{error}"));
        Client::connect(self.subject.address, script).expect("the program listens")
    }

    /// Sends a request on a connection of its own beside the others and waits for a whole answer with this status.
    pub fn ask(&mut self, clients: &mut Vec<Client>, text: &str, status: u16) -> Answer {
        let client = self.connect(text);
        clients.push(client);
        let methods = [text.split(' ').next().unwrap_or_default().to_string()];
        let mut answer = None;
        let waited = self.wait_until(clients, PATIENCE_MS, |_, clients| {
            let asker = clients.last().expect("just pushed");
            let read = answer_stream::read(&asker.received, &methods, asker.end);
            answer = read.ok().and_then(|mut read| read.answers.pop()).filter(|answer| answer.complete);
            answer.is_some()
        });
        let asker = clients.pop().expect("just pushed");
        let answer = answer.unwrap_or_else(|| {
            panic!("{text} got {} ({:?}, {waited:?})", notation::show(&asker.received, 300), asker.end)
        });
        assert_eq!(answer.status, status, "{text} got {}", notation::show(&asker.received, 300));
        answer
    }

    /// Waits for a condition that must come, or panics with this text.
    pub fn expect(&mut self, clients: &mut [Client], what: &str, is_met: impl FnMut(&mut Lane, &mut [Client]) -> bool) {
        let waited = self.wait_until(clients, PATIENCE_MS, is_met);
        if waited != Waited::Met {
            let shown =
                clients.iter().map(|client| format!("{:?} {}", client.end, notation::show(&client.received, 60)));
            let mut counts = std::collections::BTreeMap::new();
            shown.for_each(|text| *counts.entry(text).or_insert(0) += 1);
            let clients: Vec<_> =
                counts.into_iter().take(12).map(|(text, count)| format!("{count} × {text}")).collect();
            let clients = clients.join("\n");
            panic!("{what} did not come ({waited:?})\nclients:\n{clients}\nstderr: {}", self.subject.errors());
        }
    }

    fn turn(&mut self, clients: &mut [Client]) -> bool {
        let moved = match clients.len() > CROWD {
            true => ready(clients).into_iter().filter(|&index| clients[index].turn()).count() > 0,
            false => clients.iter_mut().map(Client::turn).filter(|&moved| moved).count() > 0,
        };
        self.origin.turn() || moved
    }

    /// Waits for any socket.
    fn poll(&self, clients: &[Client], timeout_ms: u64) {
        let deaf = |client: &&Client| !client.deaf;
        let watched = clients.iter().filter(deaf).filter_map(Client::watch).chain(self.origin.watch());
        let mut fds: Vec<PollFd<'_>> =
            watched.map(|(fd, writes): (BorrowedFd<'_>, bool)| poll_fd(fd, writes)).collect();
        let timeout =
            Timespec { tv_sec: (timeout_ms / 1_000) as i64, tv_nsec: (timeout_ms % 1_000 * 1_000_000) as i64 };
        let _ = poll(&mut fds, Some(&timeout));
    }
}

/// So many clients are asked for by one poll rather than one by one.
const CROWD: usize = 32;

/// Those that can read, write, or have ended.
fn ready(clients: &[Client]) -> Vec<usize> {
    let watched = clients.iter().enumerate().filter(|(_, client)| !client.deaf);
    let (indices, mut fds): (Vec<usize>, Vec<PollFd<'_>>) =
        watched.filter_map(|(index, client)| client.watch().map(|(fd, writes)| (index, poll_fd(fd, writes)))).unzip();
    let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    indices.into_iter().zip(fds).filter(|(_, fd)| !fd.revents().is_empty()).map(|(index, _)| index).collect()
}

fn poll_fd(fd: BorrowedFd<'_>, writes: bool) -> PollFd<'_> {
    let flags = if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    PollFd::from_borrowed_fd(fd, flags)
}

/// Milliseconds of a clock that only goes forward.
pub fn now_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}
