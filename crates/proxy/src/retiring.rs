//! A process that another one takes over from, and the one that does: the disks change hands, nobody new is let in here, and what is still
//! invalidated here holds there.
//!
//! Requests that come over connections that are still open are answered as by a node that cannot hear what others purge: what is stored is
//! confirmed by the origin first, for purges are said to the other process by now.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cache::{Invalidated, Successor};

use crate::core::Shared;
use crate::limits::{DISK_CLOSE_MAX, RETIRED_MEMORY_MIN, RETIRED_MEMORY_SHIFT};
use crate::service::Proxy;
use crate::stderr_line::complain;
use crate::vcl_story::bans::ProgramBan;

impl Proxy {
    /// Has another process take over: `successor` hears what is invalidated here from now on, the disks are that one's when this returns, and
    /// nobody is let in any more. What is under way has [`limits.upgrade_grace`](crate::limits::Limits::upgrade_grace). False: a disk was not done
    /// with writing in time, and everything goes on here, and the disks are used again as after a failure.
    pub fn retire(&self, successor: Successor) -> bool {
        let cache = &self.shared.cache;
        cache.tell_successor(Some(successor));
        if !cache.hand_disks_over(DISK_CLOSE_MAX) {
            cache.tell_successor(None);
            return false;
        }
        cache.fleet_lease().end_for_good();
        self.shared.handed_over.store(true, Ordering::Release);
        let grace = self.shared.site.load().settings.limits.upgrade_grace;
        self.drain_within(grace);
        true
    }

    /// Gives most of the memory back. With much of it this takes seconds.
    pub fn give_memory_back(&self) {
        let cache = &self.shared.cache;
        cache.set_memory((cache.account().limit() >> RETIRED_MEMORY_SHIFT).max(RETIRED_MEMORY_MIN));
    }

    /// Others of this larder answer clients, and what they invalidate is not all heard here: until they have left, what is stored is confirmed.
    pub fn stand_beside_unheard(&self) {
        self.shared.cache.stand_beside_unheard();
    }

    /// What keys of this process are made with: what the next one needs to understand what it is told.
    pub fn key_seed(&self) -> [u8; 16] {
        self.shared.cache.seed()
    }

    /// The process before this one has invalidated something. What of it cannot be read here has all that is stored confirmed.
    pub fn hear_former(&self, line: &str) {
        let now = self.shared.now();
        let Some(said) = Invalidated::read(line) else { return self.distrust(line) };
        if let Some(ban) = self.shared.cache.hear_former(&said, now) {
            match ProgramBan::parse(ban.text.as_bytes()) {
                Ok(parsed) => self.shared.cache.ban(Arc::new(parsed.issued_at(ban.issued)), now),
                Err(_) => self.distrust(line),
            }
        }
    }

    fn distrust(&self, line: &str) {
        complain(format_args!(
            "what the former process invalidated cannot be read ({line}): all that is stored is confirmed"
        ));
        self.condemn_stored();
    }

    /// The process before this one has ended: what lies on the disks may be written over.
    pub fn former_has_left(&self) {
        self.shared.cache.former_has_left();
    }
}

impl Shared {
    /// Has another process taken over?
    pub(crate) fn is_handed_over(&self) -> bool {
        self.handed_over.load(Ordering::Acquire)
    }
}
