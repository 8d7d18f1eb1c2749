//! The disk beneath the memory: what of the cache is written to it, and what it is told of invalidations.
//!
//! Everything here is called under the lock of the key's shard, or with a number of the invalidation sequence that was
//! taken before, and returns at once: the store has threads for its files. So what the disk finds is never older than what
//! the directory knew: a response that is stored in memory supersedes what the disk had of its variant, whether it is
//! written there itself or not.
//!
//! | what happens in memory | what the disk is told |
//! |---|---|
//! | a response is stored | it is written, if it is admitted; otherwise what was there of the variant is deleted |
//! | it gets a new head (304) | the head is written, the body stays where it is |
//! | an encoding of it is made in idle time | it is written beside it |
//! | it is evicted | nothing |
//! | a key is purged, softly too | its family is deleted |
//! | a tag or a group is invalidated | the number of its slot |
//! | a ban is issued | its number and its text |

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use store::disk::{
    Acknowledged, Digest, DiskEvent, DiskSettings, Invalidation, NotDurable, RecordFacts, Recovered, Tier,
};
use store::sync::Mutex;
use store::sync::atomic::{AtomicU64, Ordering};

use crate::disk_ban::RecoveredBan;
use crate::group_table::slot_of;
use crate::key::{Key, Variant};
use crate::lifespan::{answers_for_ms, is_validatable};
use crate::limits::{DISK_SEEN_MAX, DISK_TOLD_MAX, DISK_VALIDATABLE_MS, GROUP_SLOTS};
use crate::moment::Now;
use crate::object::Object;
use crate::stored_form::{self, Boot};

/// What is worth a place on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// Whatever is stored: after a restart the cache is as warm as it was.
    #[default]
    All,
    /// What is fetched a second time: the many that are asked for once and never again wear no disk out. Bodies of these
    /// bytes, both ends included, are admitted at once.
    SecondFetch { at_once: (u64, u64) },
}

/// Disks that were opened, and what was found on them.
pub struct Disk {
    pub(crate) tier: Arc<Tier>,
    pub(crate) recovered: Recovered,
    pub(crate) admission: Admission,
    pub(crate) leases_from: Option<u64>,
}

/// A file of a fixed size, or the directory that it is made in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskFile {
    pub path: PathBuf,
    pub bytes: u64,
}

impl DiskFile {
    /// The least that a disk can be.
    pub const BYTES_MIN: u64 = 16 << 20;
}

impl Disk {
    /// Opens the files and reads what they know of invalidations; their index comes back meanwhile. `told` hears of what
    /// becomes of them, a sentence at a time, on whatever thread. The error is a sentence too: what an operator has to mend.
    /// Bodies from `leases_from` on are not read into memory again, but sent from the disk's file. With a `seed`, what was stored under
    /// another one is begun anew. `follows`: the process that had them before may still read there ([`Cache::former_has_left`](crate::Cache::former_has_left)).
    pub fn open(
        files: &[DiskFile],
        admission: Admission,
        leases_from: Option<u64>,
        (seed, follows): (Option<[u8; 16]>, bool),
        told: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<Disk, String> {
        // Of groups and, behind them, of tags.
        let settings = |file: &DiskFile| DiskSettings {
            slots_max: 2 * GROUP_SLOTS,
            leases: leases_from.is_some(),
            seed,
            follows,
            ..DiskSettings::new(file.path.clone(), file.bytes)
        };
        let settings = files.iter().map(settings).collect();
        let told = move |event: DiskEvent| told(event.to_string());
        let (tier, recovered) = Tier::open(settings, told).map_err(|why| why.to_string())?;
        Ok(Disk { tier, recovered, admission, leases_from })
    }

    /// The bans that were issued before, oldest first; `None` if one of them cannot be read.
    pub fn bans(&self, now: Now) -> Option<Vec<RecoveredBan>> {
        self.recovered.bans.iter().map(|ban| RecoveredBan::read(ban.number, &ban.text, now)).collect()
    }
}

pub(crate) struct DiskLevel {
    pub tier: Arc<Tier>,
    pub boot: Boot,
    /// Bodies from this size on stay where they lie when they are found.
    pub leases_from: Option<u64>,
    /// `None`: everything is admitted.
    seen: Option<SeenOnce>,
    /// What the disks were told that they may have no room to remember.
    told: Mutex<VecDeque<Acknowledged>>,
}

impl DiskLevel {
    pub fn new(tier: Arc<Tier>, admission: Admission, leases_from: Option<u64>) -> DiskLevel {
        let seen = match admission {
            Admission::All => None,
            Admission::SecondFetch { at_once: (from, to) } => Some(SeenOnce::new(from..=to)),
        };
        DiskLevel { tier, boot: Boot::this_one(), leases_from, seen, told: Mutex::default() }
    }

    /// An object has been stored in memory. Under the shard's lock.
    pub fn keep(&self, object: &Arc<Object>) {
        let digest = digest_of(object.key(), object.variant);
        let form = stored_form::write(object, self.boot);
        let written = form.and_then(|form| match object.on_disk() {
            0 => {
                // Of the body that was there.
                self.let_encodings_leave(object.key(), object.variant);
                self.write(object, digest, form)
            }
            sequence => {
                self.tier.refresh(digest, sequence, form, facts_of(object)).ok().map(|placing| placing.sequence())
            }
        });
        object.note_on_disk(written.unwrap_or(0));
        if written.is_none() {
            self.outdate(object.key(), object.variant);
        }
    }

    /// Has it been handed to a disk that has not written it yet?
    pub fn is_waiting(&self, object: &Object) -> bool {
        object.on_disk() > 0 && self.tier.is_waiting(object.key().bits(), object.on_disk())
    }

    fn write(&self, object: &Arc<Object>, digest: Digest, form: Bytes) -> Option<u64> {
        // One that stays on the disk is there, or is no more.
        if object.body().on_disk().is_some() {
            return None;
        }
        let admitted = self.seen.as_ref().is_none_or(|seen| seen.admits(digest, object.body().len()));
        let placing = admitted.then(|| self.tier.put(digest, form, &object.body().blocks(), facts_of(object)))?;
        placing.ok().map(|placing| placing.sequence())
    }

    /// All variants of a key, on the disk or on their way to it. Under the shard's lock.
    pub fn forget(&self, key: Key) {
        drop(self.tier.invalidate(Invalidation::DeleteFamily(key.bits())));
    }

    pub fn invalidate_group(&self, group: Key, number: u64) {
        self.tell(Invalidation::Slot { slot: slot_of(group), number });
    }

    pub fn invalidate_tag(&self, tag: Key, number: u64) {
        let slot = GROUP_SLOTS as u32 + slot_of(tag);
        self.tell(Invalidation::Slot { slot, number });
    }

    pub fn ban(&self, number: u64, text: Bytes) {
        self.tell(Invalidation::Ban { number, text });
    }

    fn tell(&self, what: Invalidation) {
        let acknowledged = self.tier.invalidate(what);
        let mut told = self.told.lock();
        if told.len() == DISK_TOLD_MAX {
            told.pop_front();
        }
        told.push_back(acknowledged);
    }

    /// Nothing on the disk is older than these bans.
    pub fn retire_bans(&self, through: u64) {
        drop(self.tier.invalidate(Invalidation::RetireBans { through }));
    }

    /// Ready when everything that was invalidated so far survives a crash: a disk remembers in the order in which it is
    /// told, or says that it has no room.
    pub fn settled(&self, number: u64) -> impl Future<Output = Result<(), NotDurable>> + Send + 'static {
        let told = std::mem::take(&mut *self.told.lock());
        let last = self.tier.invalidate(Invalidation::Number(number));
        async move {
            for acknowledged in told {
                acknowledged.await?;
            }
            last.await
        }
    }
}

/// What was fetched once: the newest digest of each place, so that there is nothing to sweep.
struct SeenOnce {
    at_once: RangeInclusive<u64>,
    digests: Box<[AtomicU64]>,
}

impl SeenOnce {
    fn new(at_once: RangeInclusive<u64>) -> SeenOnce {
        SeenOnce { at_once, digests: (0..DISK_SEEN_MAX).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Remembers that it was fetched, too.
    fn admits(&self, digest: Digest, bytes: u64) -> bool {
        let mark = digest.family ^ digest.member.rotate_left(32);
        let place = &self.digests[mark as usize % self.digests.len()];
        place.swap(mark, Ordering::Relaxed) == mark || self.at_once.contains(&bytes)
    }
}

/// Where a variant of a key lies.
pub(crate) fn digest_of(key: Key, variant: Variant) -> Digest {
    Digest { family: key.bits(), member: variant.0 }
}

/// Until when it is of any use, in seconds of the wall clock: fresh, stale where that is allowed, and what has a validator
/// for a while longer. And under which number of the invalidation sequence its fetch began.
pub(crate) fn facts_of(object: &Object) -> RecordFacts {
    let facts = object.facts();
    let validatable_ms = || if is_validatable(&facts, object.fields()) { DISK_VALIDATABLE_MS } else { 0 };
    let keep_ms = object.by_program().map_or_else(validatable_ms, |policy| policy.keep_ms);
    let life_ms = answers_for_ms(&facts).saturating_add(keep_ms);
    let expires = object.received.wall_ms.saturating_add(life_ms) / 1_000 + 1;
    RecordFacts { expires, number: object.began() }
}

impl std::fmt::Debug for DiskLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskLevel").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn what_is_fetched_twice_is_admitted_and_some_sizes_at_once() {
        let digest = |family| Digest { family, member: 7 };
        let check = |seen: &SeenOnce, family, bytes, expect| {
            assert_eq!(seen.admits(digest(family), bytes), expect, "{family}, {bytes} bytes");
        };
        let none_at_once = SeenOnce::new(1..=1);
        for (family, expect) in [(1, false), (2, false), (1, true), (2, true), (1, true)] {
            check(&none_at_once, family, 0, expect);
        }
        // The newer one has the place.
        check(&none_at_once, 1 + DISK_SEEN_MAX as u64, 0, false);
        check(&none_at_once, 1, 0, false);
        let some = SeenOnce::new(10..=20);
        for (bytes, expect) in [(9, false), (10, true), (20, true), (21, false)] {
            check(&some, bytes, bytes, expect);
        }
        // Admitted at once is seen once.
        check(&some, 10, 500, true);
    }
}
