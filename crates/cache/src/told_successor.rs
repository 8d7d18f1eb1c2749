//! A process that lets another one take over: what it still invalidates, for requests that were under way, holds in the other one too.
//!
//! Keys are digests, so both must make them with the same seed: who cannot know that has everything confirmed instead.

use std::time::Duration;

use store::sync::atomic::Ordering::{Acquire, Release};

use crate::cache::Cache;
use crate::disk_ban::{self, RecoveredBan};
use crate::invalidation_line::{Invalidated, Successor};
use crate::moment::Now;
use crate::purge_kind::Purge;

impl Cache {
    /// From now on, whatever is invalidated here is said to another process too, or, with `None`, to nobody.
    pub fn tell_successor(&self, successor: Option<Successor>) {
        let mut told = self.successor.lock();
        self.has_successor.store(successor.is_some(), Release);
        *told = successor;
    }

    /// Lets another process have the disks: they are read here, and written no more. Blocks. False if one of them takes too long.
    pub fn hand_disks_over(&self, patience: Duration) -> bool {
        self.disk.as_ref().is_none_or(|disk| disk.tier.hand_over(patience))
    }

    /// Other processes answer clients, and not all that they invalidate is heard here: what is stored is confirmed as in a fleet that cannot be
    /// heard, until they have left.
    pub fn stand_beside_unheard(&self) {
        self.fleet_lease.stand_beside(true);
    }

    /// No process that had the disks before reads there any more, nor invalidates anything.
    pub fn former_has_left(&self) {
        self.fleet_lease.stand_beside(false);
        if let Some(disk) = &self.disk {
            disk.tier.former_has_left();
        }
    }

    /// What keys are made with.
    pub fn seed(&self) -> [u8; 16] {
        self.digester.seed()
    }

    /// The process before this one has invalidated something. A ban is for who can read it.
    pub fn hear_former(&self, invalidated: &Invalidated, now: Now) -> Option<RecoveredBan> {
        match invalidated {
            Invalidated::Key(key) => drop(self.purge(*key)),
            Invalidated::Group(group) => self.invalidate_group(*group),
            Invalidated::Tag(tag) => drop(self.purge_tags(&[*tag], Purge::Hard, now)),
            Invalidated::Ban(text) => return RecoveredBan::read(0, text, now),
        }
        None
    }

    pub(crate) fn tell_of(&self, invalidated: impl FnOnce() -> Invalidated) {
        if self.has_successor.load(Acquire)
            && let Some(successor) = &*self.successor.lock()
        {
            successor(invalidated());
        }
    }

    /// The text of a ban for whoever takes over.
    pub(crate) fn tell_of_ban(&self, test: &dyn crate::ban_test::BanTest, now: Now) {
        self.tell_of(|| Invalidated::Ban(disk_ban::text_of(test, now)));
    }
}
