//! Bans at work: issuing one, testing what a look-up comes across, and the lurker, which tests in the background whatever
//! no look-up comes across.
//!
//! Objects are tested with nothing locked. One that a ban hits is taken out by whoever finds that out; the others note how
//! far they were tested, and the next look-up compares one number.

use std::sync::Arc;

use message::Request;
use store::sync::Guard;
use store::sync::atomic::Ordering::{AcqRel, Relaxed};

use crate::ban_list::{Ban, BanEntry, Snapshot, Tested, Trial};
use crate::ban_test::{BanSubject, BanTest};
use crate::cache::Cache;
use crate::directory::Shard;
use crate::disk_ban;
use crate::flight::{Flight, FlightHead};
use crate::key::Key;
use crate::moment::Now;
use crate::object::Object;

/// What a ban came to that was worked off at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BanOutcome {
    /// Its number in the invalidation sequence.
    pub number: u64,
    /// What it hit, stored or arriving; `None` where only those who ask will tell.
    pub matched: Option<u64>,
}

/// What a stretch of background work came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BanProgress {
    pub tested: usize,
    pub dropped: usize,
    /// Nothing is left to be done until the next ban.
    pub is_idle: bool,
}

impl Object {
    pub(crate) fn as_subject<'a>(&'a self, request: Option<&'a Request<'a>>) -> BanSubject<'a> {
        BanSubject {
            head: self.response(),
            facts: self.facts(),
            keep_ms: self.by_program().map_or(0, |policy| policy.keep_ms),
            received: self.received(),
            last_hit_ms: self.last_hit_ms(),
            stored_url: self.url(),
            request,
        }
    }
}

impl Cache {
    /// Bans what is stored by now, and what is being fetched, if the test says so. It takes the next number of the
    /// invalidation sequence.
    pub fn ban(&self, test: Arc<dyn BanTest>, now: Now) {
        let _ = self.issue_ban(test, now);
    }

    /// The same, and tests all that is stored before it returns, on the calling thread; others may go first at each `pause`. A ban that
    /// needs a request waits for those who ask. The lurker goes through once more, with nothing left to test.
    pub fn ban_at_once(&self, test: Arc<dyn BanTest>, now: Now, pause: impl FnMut()) -> BanOutcome {
        let needs_request = test.needs_request();
        let ban = self.issue_ban(test, now);
        let (number, bans) = (ban.number(), self.bans.snapshot());
        let test_one = |object: &Arc<Object>| {
            if object.checked() < number {
                self.try_stored(&bans, object, None);
            }
            true
        };
        if !needs_request {
            self.look_through(test_one, pause);
        }
        BanOutcome { number, matched: (!needs_request).then(|| ban.matched()) }
    }

    fn issue_ban(&self, test: Arc<dyn BanTest>, now: Now) -> Arc<Ban> {
        self.watch_for_bans();
        self.bans.push(test, now, &self.account, |test| {
            let number = self.invalidation.fetch_add(1, AcqRel) + 1;
            if let Some(disk) = &self.disk {
                disk.ban(number, disk_ban::text_of(test, now));
            }
            self.tell_of_ban(test, now);
            number
        })
    }

    /// Has hot tables compare the number of the newest ban, from now on. The first ban does it by itself, and then looks
    /// at everything that is stored; a program that may ban does it better before anything is.
    pub fn watch_for_bans(&self) {
        self.bans.watch(|| {
            for shard in self.directory.shards() {
                shard.temper(true);
            }
        });
    }

    /// The bans in force, newest first.
    pub fn bans(&self) -> Vec<BanEntry> {
        self.bans.entries()
    }

    /// Tests an object that newer bans may hit. One that they do is gone then.
    pub(crate) fn examine(&self, object: &Arc<Object>, request: &Request<'_>) {
        self.try_stored(&self.bans.snapshot(), object, Some(request));
    }

    /// True if it was taken out.
    fn try_stored(&self, bans: &Snapshot, object: &Arc<Object>, request: Option<&Request<'_>>) -> bool {
        let by_whom = if request.is_some() { &self.counters.ban_tests } else { &self.counters.ban_tests_behind };
        let mut object = Arc::clone(object);
        loop {
            let (trial, tests) = bans.test(object.checked(), &object.as_subject(request), Tested::Stored);
            by_whom.fetch_add(tests, Relaxed);
            let Some(number) = trial.banned else {
                object.note_checked(trial.checked);
                return false;
            };
            let next = match trial.softly {
                Some(how) if object.partial().is_none() => {
                    let softened = self.soften_stored(&object, how, number);
                    if softened.is_some() {
                        bans.note_hit(number);
                    }
                    softened
                }
                _ if self.take_out(&object) => {
                    bans.note_hit(number);
                    self.counters.banned.fetch_add(1, Relaxed);
                    return true;
                }
                _ => None,
            };
            // The lurker does not come back for what has taken its place, and may have been tested no further.
            match next.or_else(|| self.successor(&object, number)) {
                Some(next) => object = next,
                None => return false,
            }
        }
    }

    /// What was put in the place of an object meanwhile, if it is to be tested against this ban.
    fn successor(&self, object: &Arc<Object>, number: u64) -> Option<Arc<Object>> {
        let entry = self.directory.shard(object.key()).copy(object.key());
        let stored = entry.slot(object.variant)?.whole.as_ref()?;
        (!Arc::ptr_eq(stored, object) && stored.checked() < number).then(|| Arc::clone(stored))
    }

    /// Locks a shard when what is to be changed in it was tested against all bans there are.
    pub(crate) fn shard_after(
        &self,
        key: Key,
        trial: &mut Trial,
        mut go_on: impl FnMut(&mut Trial),
    ) -> Guard<'_, Shard> {
        loop {
            go_on(trial);
            let shard = self.directory.shard(key);
            if trial.banned.is_some() || self.bans.newest() <= trial.checked {
                return shard;
            }
        }
    }

    /// Does a newer ban hit the response that a flight brings, as far as it is known? Under the shard's lock: one flight,
    /// and the bans since somebody joined it last.
    pub(crate) fn is_banned(&self, flight: &Flight, request: &Request<'_>) -> bool {
        if self.bans.newest() == 0 {
            return false;
        }
        flight.with(|inner| {
            let Some(head) = &mut inner.head else { return false };
            let mut trial = head.trial;
            self.bans.go_on(&mut trial, &head.as_subject(request));
            head.trial = trial;
            trial.banned.is_some()
        })
    }

    /// The same, where nothing may be counted or noted.
    pub(crate) fn would_ban(&self, flight: &Flight, request: &Request<'_>) -> bool {
        let hits = |head: &FlightHead| {
            let bans = self.bans.snapshot();
            head.trial.banned.is_some()
                || bans.would_hit(head.trial.checked, &head.as_subject(request), Tested::Arriving)
        };
        self.bans.newest() > 0 && flight.with(|inner| inner.head.as_ref().is_some_and(hits))
    }

    /// Would a look-up find that a ban hits it?
    pub(crate) fn would_examine_out(&self, object: &Object, request: &Request<'_>) -> bool {
        object.checked() < self.bans.newest()
            && self.bans.snapshot().would_hit(object.checked(), &object.as_subject(Some(request)), Tested::Stored)
    }

    /// Works bans off that need no request, and returns after about so many objects. What is under way is tested when it
    /// lands; a ban is done when every shard was looked through since it was issued.
    pub fn work_off_bans(&self, objects_max: usize) -> BanProgress {
        let mut progress = BanProgress::default();
        let mut lurker = self.lurker.lock();
        let mut steps = 0;
        while steps < objects_max.max(1) {
            let bans = self.bans.snapshot();
            if bans.workable().next().is_none() {
                progress.is_idle = true;
                break;
            }
            let newest = self.bans.newest();
            let found = lurker.step(&self.directory, |object| object.checked() < newest);
            steps += found.objects.len().max(1);
            for object in &found.objects {
                progress.tested += 1;
                progress.dropped += usize::from(self.try_stored(&bans, object, None));
            }
            if found.ends_shard {
                self.bans.note_cursor(lurker.cursor);
            }
        }
        let retired = self.bans.retire(|| {
            let under_way = self.directory.shards().filter_map(|shard| shard.oldest_open()).min();
            // What lies on a disk is tested when it is recalled.
            let on_disk = self.disk.as_ref().map(|disk| disk.tier.oldest_number());
            let shared = self.shared.as_ref().and_then(|shared| shared.marks.oldest_number());
            [under_way, on_disk, shared].into_iter().flatten().min()
        });
        if let (Some(disk), Some(through)) = (&self.disk, retired) {
            disk.retire_bans(through);
        }
        progress
    }
}

impl FlightHead {
    /// As it will be stored.
    pub(crate) fn as_subject<'a>(&'a self, request: &'a Request<'a>) -> BanSubject<'a> {
        BanSubject {
            head: self.shared.response(),
            facts: self.facts.unwrap_or_default(),
            keep_ms: self.keep_ms,
            received: self.received,
            last_hit_ms: None,
            stored_url: None,
            request: Some(request),
        }
    }
}
