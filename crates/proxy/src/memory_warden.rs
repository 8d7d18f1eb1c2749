//! Keeps the process below its memory limit: a thread that looks at what is resident, moves the store's share
//! (`memory_share.rs`), makes the allocator give back, and says whether new connections may come.
//!
//! A thread of its own, because what it does may take milliseconds and is most needed when the cores have no time. It does
//! not know how the resident memory is found out nor which allocator there is: that is the program's.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::core::Shared;
use crate::limits::{CONNECTIONS_ALWAYS, MEMORY_LOOK_OFTEN, MEMORY_LOOK_SELDOM, MEMORY_SAY_EVERY};
use crate::memory_share::MemoryShare;
use crate::stderr_line::complain;
use crate::vital::vital_thread;

/// After so many looks in a row at which nothing was found to cut, there is nothing.
const LOOKS_WITHOUT_CUT_MAX: u32 = 3;

/// The process, as far as its memory goes.
pub trait ProcessMemory: Send + Sync {
    /// What it occupies, as the kernel counts it. `None` where nobody says.
    fn resident_bytes(&self) -> Option<u64>;
    /// Gives back what the allocator keeps for later.
    fn release(&self);
}

/// Watches for as long as anybody else holds what all cores share.
pub(crate) fn start(shared: &Arc<Shared>, process: Arc<dyn ProcessMemory>) -> std::io::Result<()> {
    if process.resident_bytes().is_none() {
        complain(format_args!("nobody says how much memory is resident: memory.size bounds what is accounted alone"));
        return Ok(());
    }
    let warden = Warden {
        share: MemoryShare::new(shared.memory.limit()),
        process,
        silent_for: MEMORY_SAY_EVERY,
        has_said: false,
        refused_before: 0,
        looks_without_cut: 0,
        cut_seen: 0,
        cut_said: 0,
        cut_silent_for: MEMORY_SAY_EVERY,
    };
    let shared = Arc::downgrade(shared);
    vital_thread("larder-memory", "what watches the memory", move || warden.watch(&shared)).map(drop)
}

struct Warden {
    share: MemoryShare,
    process: Arc<dyn ProcessMemory>,
    /// How long ago it was said that connections are refused.
    silent_for: Duration,
    has_said: bool,
    refused_before: u64,
    /// Looks in a row at which the cores had found nothing more to cut.
    looks_without_cut: u32,
    /// How many answers had been cut at the last look.
    cut_seen: u64,
    /// Of how many it was said, and how long ago.
    cut_said: u64,
    cut_silent_for: Duration,
}

impl Warden {
    fn watch(mut self, shared: &Weak<Shared>) {
        while let Some(shared) = shared.upgrade() {
            let pause = if self.look(&shared) { MEMORY_LOOK_OFTEN } else { MEMORY_LOOK_SELDOM };
            self.silent_for = self.silent_for.saturating_add(pause);
            self.cut_silent_for = self.cut_silent_for.saturating_add(pause);
            drop(shared);
            std::thread::sleep(pause);
        }
    }

    /// True when the next look should be soon.
    fn look(&mut self, shared: &Shared) -> bool {
        let (cache, limit) = (&shared.cache, shared.memory.limit());
        let Some(before) = self.resident_bytes(shared) else { return false };
        let share = self.share.after_look(limit, before, cache.account().used() as u64);
        cache.set_memory(share as usize);
        let mut resident = before;
        // What was cut is of use only when the allocator gives it back, whoever had it cut.
        let cut = shared.memory.cut.load(Relaxed);
        let has_cut = std::mem::replace(&mut self.cut_seen, cut) < cut;
        if has_cut {
            self.looks_without_cut = 0;
        }
        if has_cut || self.share.wants_release(limit, before) {
            self.process.release();
            self.share.note_released();
            resident = self.resident_bytes(shared).unwrap_or(before);
        }
        let last = shared.memory.occupied_bytes.swap(resident, Relaxed);
        let overdraft = shared.memory.overdraft(cache.account().used());
        let has_no_more = !cache.sheds();
        let is_short = self.share.after_shedding(limit, resident) || overdraft > 0 && has_no_more;
        cache.set_short(is_short);
        // What the store cannot give is taken from clients that take nothing, before anybody is refused for it: at the first look
        // that might be the first of those that lead to that.
        let lacking = overdraft.max(limit.excess_bytes(resident));
        let brings_room = match is_short || has_no_more && limit.is_beyond_refusal(resident) {
            true => self.cuts(shared, lacking, limit.is_in_danger(resident)),
            false => {
                self.looks_without_cut = 0;
                false
            }
        };
        let refuses = is_short && !brings_room && shared.connections_open() > CONNECTIONS_ALWAYS;
        shared.memory.refuses.store(refuses, Relaxed);
        self.say(shared, refuses, resident);
        self.say_cut(shared);
        limit.wants_looks(last, before)
    }

    /// Asks the cores to cut answers whose clients take nothing, each for its part. False when they were asked before, all of
    /// them came to it, and had none: what they hold may be on its way to a client at one look and wait for it at the next.
    fn cuts(&mut self, shared: &Shared, bytes: u64, is_urgent: bool) -> bool {
        if shared.memory.asked.load(Relaxed) == 0 {
            for mailbox in &*shared.mailboxes {
                shared.memory.ask_to_cut(mailbox, bytes / shared.mailboxes.len() as u64 + 1);
            }
            self.looks_without_cut += 1;
        } else if is_urgent {
            // A core that does not come to it must not hold off what is left to do near the line.
            self.looks_without_cut += 1;
        }
        self.looks_without_cut <= if is_urgent { 1 } else { LOOKS_WITHOUT_CUT_MAX }
    }

    fn say_cut(&mut self, shared: &Shared) {
        let cut = shared.memory.cut.load(Relaxed);
        if cut > self.cut_said && self.cut_silent_for >= MEMORY_SAY_EVERY {
            complain(format_args!(
                "memory: {} answers were cut whose clients took nothing of them, and for which memory was kept that is \
                 needed (memory.size is {} MiB)",
                cut - self.cut_said,
                shared.memory.limit().limit_bytes >> 20
            ));
            (self.cut_said, self.cut_silent_for) = (cut, Duration::ZERO);
        }
    }

    fn resident_bytes(&self, shared: &Shared) -> Option<u64> {
        Some(self.process.resident_bytes()? + shared.cache.file_memory_bytes())
    }

    /// Once when it begins, and once when it is over; not each time of many.
    fn say(&mut self, shared: &Shared, refuses: bool, resident_bytes: u64) {
        let mib = |bytes: u64| bytes >> 20;
        let refused = || shared.counters.iter().map(|core| core.connections_refused_memory.get()).sum::<u64>();
        if refuses && !self.has_said && self.silent_for >= MEMORY_SAY_EVERY {
            (self.has_said, self.silent_for, self.refused_before) = (true, Duration::ZERO, refused());
            let limit = shared.memory.limit();
            complain(format_args!(
                "memory: {} MiB of {} are resident, {} MiB accounted for, and the store has no more to give: new \
                 connections are refused until there is room (memory.size is {} MiB)",
                mib(resident_bytes),
                mib(limit.line_bytes()),
                mib(shared.cache.account().used() as u64),
                mib(limit.limit_bytes)
            ));
        } else if !refuses && self.has_said && self.silent_for >= MEMORY_SAY_EVERY / 6 {
            self.has_said = false;
            complain(format_args!(
                "memory: {} MiB are resident: connections are taken again, {} were refused",
                mib(resident_bytes),
                refused().saturating_sub(self.refused_before)
            ));
        }
    }
}
