//! What waits for a disk's threads: commands for its log, questions for its readers. Both are bounded; nobody who puts
//! something in waits.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::disk_command::Command;
use super::limits::COMMANDS_QUEUED_MAX;
use super::refused::{Lost, Refused};

/// More commands wait than may, even of those that must not be lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyWait;

/// Commands in the order in which they were given.
pub struct CommandQueue {
    inner: Mutex<Commands>,
    arrived: Condvar,
    bytes_max: usize,
}

#[derive(Default)]
struct Commands {
    waiting: VecDeque<(Command, usize)>,
    /// Of bodies: waiting, or in the hands of the log.
    bytes: usize,
    /// The log has some in its hands.
    is_at_work: bool,
}

impl Commands {
    fn has_room(&self, bytes: usize, bytes_max: usize) -> bool {
        self.waiting.len() < COMMANDS_QUEUED_MAX && (self.bytes == 0 || self.bytes + bytes <= bytes_max)
    }
}

impl CommandQueue {
    pub fn new(bytes_max: usize) -> CommandQueue {
        CommandQueue { inner: Mutex::default(), arrived: Condvar::new(), bytes_max }
    }

    /// With a body, or a part of one: refused when too much waits. One that is larger than may wait waits alone.
    pub fn offer(&self, command: Command, bytes: usize) -> Result<(), Refused> {
        let mut inner = self.inner.lock();
        if !inner.has_room(bytes, self.bytes_max) {
            return Err(Refused::Busy);
        }
        inner.bytes += bytes;
        self.push(&mut inner, command, bytes);
        Ok(())
    }

    /// Would a body be taken?
    pub fn has_room(&self, bytes: usize) -> bool {
        self.inner.lock().has_room(bytes, self.bytes_max)
    }

    /// What must not be lost. When it is refused the caller gives the disk up.
    pub fn insist(&self, command: Command) -> Result<(), TooManyWait> {
        let mut inner = self.inner.lock();
        if inner.waiting.len() >= 2 * COMMANDS_QUEUED_MAX {
            return Err(TooManyWait);
        }
        self.push(&mut inner, command, 0);
        Ok(())
    }

    /// The last command. It has room always.
    pub fn finish(&self, command: Command) {
        self.push(&mut self.inner.lock(), command, 0);
    }

    fn push(&self, inner: &mut Commands, command: Command, bytes: usize) {
        inner.waiting.push_back((command, bytes));
        if inner.waiting.len() == 1 {
            self.arrived.notify_one();
        }
    }

    /// All that waits; after a while, if nothing comes, nothing.
    pub fn take(&self, patience: Duration) -> VecDeque<(Command, usize)> {
        let mut inner = self.inner.lock();
        inner.is_at_work = false;
        if inner.waiting.is_empty() && !patience.is_zero() {
            self.arrived.wait_for(&mut inner, patience);
        }
        inner.is_at_work = !inner.waiting.is_empty();
        std::mem::take(&mut inner.waiting)
    }

    /// Has everything been done that was told so far?
    pub fn is_idle(&self) -> bool {
        let inner = self.inner.lock();
        inner.waiting.is_empty() && !inner.is_at_work
    }

    /// The log is done with bytes of bodies.
    pub fn done(&self, bytes: usize) {
        self.inner.lock().bytes -= bytes;
    }

    pub fn bytes(&self) -> usize {
        self.inner.lock().bytes
    }
}

type Question = Box<dyn FnOnce() + Send>;

/// Questions for whichever reader is free.
pub struct QuestionQueue {
    inner: Mutex<Questions>,
    arrived: Condvar,
    questions_max: usize,
}

#[derive(Default)]
struct Questions {
    waiting: VecDeque<Question>,
    is_closed: bool,
}

impl QuestionQueue {
    pub fn new(questions_max: usize) -> QuestionQueue {
        QuestionQueue { inner: Mutex::default(), arrived: Condvar::new(), questions_max }
    }

    pub fn ask(&self, question: Question) -> Result<(), Lost> {
        let mut inner = self.inner.lock();
        if inner.is_closed || inner.waiting.len() >= self.questions_max {
            return Err(Lost::Busy);
        }
        inner.waiting.push_back(question);
        self.arrived.notify_one();
        Ok(())
    }

    /// Waits for a question; `None` when there will be none.
    pub fn take(&self) -> Option<Question> {
        let mut inner = self.inner.lock();
        loop {
            if inner.is_closed {
                return None;
            }
            match inner.waiting.pop_front() {
                Some(question) => return Some(question),
                None => self.arrived.wait(&mut inner),
            }
        }
    }

    /// Readers go home; who waits for an answer gets none.
    pub fn close(&self) {
        let mut inner = self.inner.lock();
        inner.is_closed = true;
        let unanswered = std::mem::take(&mut inner.waiting);
        drop(inner);
        drop(unanswered);
        self.arrived.notify_all();
    }
}
