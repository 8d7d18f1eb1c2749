//! The bans in force, in the order of the invalidation sequence, and how far each has come.
//!
//! An object remembers the number up to which it was tested; as long as none is newer, a look-up compares that and no
//! more. Nothing here holds a shard: who tests an object does so with nothing locked.
//!
//! | a ban is | tested against objects | tested against what began before it | leaves when |
//! |---|---|---|---|
//! | in force | yes | yes | an equal one comes, or it is the oldest of too many |
//! | done: every stored object was tested | no | yes | all that began before it has ended, or there are too many |

use std::sync::Arc;

use store::sync::Mutex;
use store::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use store::{Account, Charge};

use crate::ban_test::{BanSubject, BanTest};
use crate::limits::{BANS_MAX, SHARDS};
use crate::moment::Now;
use crate::purge_kind::Purge;

pub(crate) struct Ban {
    pub number: u64,
    /// The number of the first of the equal ones whose place it has taken; its own, if there were none.
    since: u64,
    pub test: Arc<dyn BanTest>,
    issued: Now,
    /// How far the lurker must have come for this ban to be done.
    due: u64,
    done: AtomicBool,
    tested: AtomicU64,
    matched: AtomicU64,
    _charge: Charge,
}

/// A ban, for who asks what bans there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanEntry {
    pub text: String,
    pub issued: Now,
    pub needs_request: bool,
    /// It only shortens lives.
    pub is_soft: bool,
    /// Objects and arriving responses that it was tested against, and how many of them it hit.
    pub tested: u64,
    pub matched: u64,
    /// No stored object is left to be tested.
    pub is_done: bool,
}

/// The bans of a moment, oldest first.
#[derive(Clone)]
pub(crate) struct Snapshot {
    bans: Arc<Vec<Arc<Ban>>>,
    /// The newest ban there ever was.
    newest: u64,
    /// What was not tested up to here goes untested: a ban left because there were too many.
    objects_floor: u64,
    /// The newest ban that has left the list: what began before it cannot be tested any more.
    flights_floor: u64,
}

/// How far something was tested, and the first ban that hit it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trial {
    pub checked: u64,
    /// Of what is stored the ban's number. Of what arrives, from which number on it is banned: who came later is given none of it.
    pub banned: Option<u64>,
    /// If that ban only shortens lives: how, and from when on.
    pub softly: Option<(Purge, Now)>,
}

/// What is tested.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tested {
    Stored,
    /// Not stored yet, and in no shard where the lurker could have met it.
    Arriving,
}

/// One for the process.
pub(crate) struct BanList {
    newest: AtomicU64,
    /// How far the lurker has come: shards looked through since the start.
    pub cursor: AtomicU64,
    /// May a hot table not trust a stored object's liveness alone any more?
    watching: AtomicBool,
    watched: Mutex<bool>,
    now: Mutex<Snapshot>,
    pub overflowed: AtomicU64,
}

impl BanList {
    pub fn new() -> Arc<BanList> {
        let now = Snapshot { bans: Arc::default(), newest: 0, objects_floor: 0, flights_floor: 0 };
        Arc::new(BanList {
            newest: AtomicU64::new(0),
            cursor: AtomicU64::new(0),
            watching: AtomicBool::new(false),
            watched: Mutex::new(false),
            now: Mutex::new(now),
            overflowed: AtomicU64::new(0),
        })
    }

    /// The number of the newest ban; 0 before the first.
    #[inline]
    pub fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    #[inline]
    pub fn is_watching(&self) -> bool {
        self.watching.load(Ordering::Acquire)
    }

    /// Has every hot table look at the newest number from now on. What is stored already is looked at by the first
    /// caller; the others wait for that.
    pub fn watch(&self, look_at_all: impl FnOnce()) {
        let mut watched = self.watched.lock();
        if !std::mem::replace(&mut *watched, true) {
            self.watching.store(true, Ordering::Release);
            look_at_all();
        }
    }

    pub fn snapshot(&self) -> Snapshot {
        self.now.lock().clone()
    }

    pub fn count(&self) -> usize {
        self.now.lock().bans.len()
    }

    /// Takes a ban in under the next number. The list is in the order of the numbers, because both are taken at once.
    pub fn push(
        &self,
        test: Arc<dyn BanTest>,
        issued: Now,
        account: &Arc<Account>,
        number: impl FnOnce(&dyn BanTest) -> u64,
    ) -> Arc<Ban> {
        let bytes = size_of::<Ban>() + test.text().len() + test.heap_bytes();
        let charge = account.charge(bytes);
        let mut gone = Vec::new();
        let mut now = self.now.lock();
        let bans = Arc::make_mut(&mut now.bans);
        if test.is_timeless() {
            // What an equal one has not tested yet, this one will; but a soft one does less than a hard one.
            let does_as_much = |ban: &Ban| test.purges() == Purge::Hard || test.purges() == ban.test.purges();
            let is_equal = |ban: &Ban| ban.test.is_timeless() && ban.test.text() == test.text();
            gone.extend(bans.extract_if(.., |ban| is_equal(ban) && does_as_much(ban)));
        }
        let (done, [tested, matched]) = (AtomicBool::new(false), [0, 0].map(AtomicU64::new));
        let due = self.cursor.load(Ordering::Acquire) + 1 + SHARDS as u64;
        // Whoever learns the number looks at the list, and waits there for us.
        self.newest.store(u64::MAX, Ordering::Release);
        let number = number(&*test);
        let since = gone.iter().map(|ban| ban.since).min().unwrap_or(number);
        let ban = Arc::new(Ban { number, since, test, issued, due, done, tested, matched, _charge: charge });
        bans.push(Arc::clone(&ban));
        now.newest = number;
        if now.bans.len() > BANS_MAX {
            self.drop_oldest(&mut now);
        }
        self.newest.store(number, Ordering::Release);
        drop(now);
        drop(gone);
        ban
    }

    /// A ban that is done leaves, or, without one, the oldest; and what it was not tested against counts as hit.
    fn drop_oldest(&self, now: &mut Snapshot) {
        let bans = Arc::make_mut(&mut now.bans);
        let done = bans.iter().position(|ban| ban.is_done());
        let left = bans.remove(done.unwrap_or(0)).number;
        now.flights_floor = now.flights_floor.max(left);
        if done.is_none() {
            now.objects_floor = now.objects_floor.max(left);
            self.overflowed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Says that the lurker has come so far.
    pub fn note_cursor(&self, cursor: u64) {
        self.cursor.store(cursor, Ordering::Release);
        for ban in self.snapshot().workable().filter(|ban| ban.due <= cursor) {
            ban.done.store(true, Ordering::Release);
        }
    }

    /// Lets bans go that are done, as far as nothing is under way any more that began before them.
    /// Returns the number up to which none is left, if any went.
    pub fn retire(&self, oldest_open: impl FnOnce() -> Option<u64>) -> Option<u64> {
        if !self.snapshot().bans.iter().any(|ban| ban.is_done()) {
            return None;
        }
        let oldest_open = oldest_open().unwrap_or(u64::MAX);
        let mut gone = Vec::new();
        let mut now = self.now.lock();
        gone.extend(Arc::make_mut(&mut now.bans).extract_if(.., |ban| ban.is_done() && ban.number <= oldest_open));
        let left = gone.iter().map(|ban| ban.number).max().unwrap_or(0);
        now.flights_floor = now.flights_floor.max(left);
        let through = now.bans.first().map_or(now.newest, |oldest| oldest.number - 1);
        drop(now);
        (!gone.is_empty()).then_some(through)
    }

    /// Tests what newer bans there are.
    pub fn go_on(&self, trial: &mut Trial, subject: &BanSubject<'_>) {
        if self.newest() > trial.checked && trial.banned.is_none() {
            (*trial, _) = self.snapshot().test(trial.checked, subject, Tested::Arriving);
        }
    }

    pub fn entries(&self) -> Vec<BanEntry> {
        self.snapshot().bans.iter().rev().map(|ban| ban.entry()).collect()
    }
}

impl Snapshot {
    /// Those that the lurker works off.
    pub fn workable(&self) -> impl Iterator<Item = &Arc<Ban>> {
        self.bans.iter().filter(|ban| !ban.test.needs_request() && !ban.is_done())
    }

    /// Tests the bans after `checked`, up to the first that hits. A ban that needs a request is not passed without one. With
    /// how many tests that took.
    pub fn test(&self, checked: u64, subject: &BanSubject<'_>, tested: Tested) -> (Trial, u64) {
        self.try_by(checked, subject, tested, |ban| ban.hits(subject, tested))
    }

    /// The ban of this number took something stored out, or made it stale. Two may find out at once that it hits, and one of them does it.
    pub fn note_hit(&self, number: u64) {
        if let Ok(at) = self.bans.binary_search_by_key(&number, |ban| ban.number) {
            self.bans[at].matched.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Would one of them hit? Nothing is counted.
    pub fn would_hit(&self, checked: u64, subject: &BanSubject<'_>, tested: Tested) -> bool {
        self.try_by(checked, subject, tested, |ban| ban.test.bans(subject)).0.banned.is_some()
    }

    fn try_by(
        &self,
        checked: u64,
        subject: &BanSubject<'_>,
        tested: Tested,
        hits: impl Fn(&Ban) -> bool,
    ) -> (Trial, u64) {
        let floor = if tested == Tested::Stored { self.objects_floor } else { self.flights_floor };
        if checked < floor {
            // Which of those that have left would have hit it, nobody knows any more.
            let banned = if tested == Tested::Stored { floor } else { checked + 1 };
            return (Trial { checked, banned: Some(banned), softly: None }, 0);
        }
        let (mut passed, mut tests) = (self.newest.max(checked), 0);
        let from = self.bans.partition_point(|ban| ban.number <= checked);
        for ban in &self.bans[from..] {
            if tested == Tested::Stored && ban.is_done() {
                continue;
            }
            if ban.test.needs_request() && subject.request.is_none() {
                passed = passed.min(ban.number - 1);
                continue;
            }
            tests += 1;
            if hits(ban) {
                let how = ban.test.purges();
                let softly = (how != Purge::Hard).then_some((how, ban.issued));
                let banned = if tested == Tested::Stored { ban.number } else { ban.hits_from(checked) };
                return (Trial { checked, banned: Some(banned), softly }, tests);
            }
        }
        (Trial { checked: passed, banned: None, softly: None }, tests)
    }
}

impl Ban {
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn matched(&self) -> u64 {
        self.matched.load(Ordering::Relaxed)
    }

    /// From which number on it hits what began under an earlier one. Of several that it has taken the place of, the first that could have hit.
    fn hits_from(&self, checked: u64) -> u64 {
        if self.since == self.number { self.number } else { self.since.max(checked + 1) }
    }

    /// What arrives is tested by who brings it alone, and counted here.
    fn hits(&self, subject: &BanSubject<'_>, tested: Tested) -> bool {
        self.tested.fetch_add(1, Ordering::Relaxed);
        let hits = self.test.bans(subject);
        self.matched.fetch_add(u64::from(hits && tested == Tested::Arriving), Ordering::Relaxed);
        hits
    }

    fn entry(&self) -> BanEntry {
        BanEntry {
            text: self.test.text().to_owned(),
            issued: self.issued,
            needs_request: self.test.needs_request(),
            is_soft: self.test.purges() != Purge::Hard,
            tested: self.tested.load(Ordering::Relaxed),
            matched: self.matched.load(Ordering::Relaxed),
            is_done: self.is_done(),
        }
    }
}

impl Trial {
    /// Of what a fetch brings that began under a number.
    pub fn since(began: u64) -> Trial {
        Trial { checked: began, ..Trial::default() }
    }
}

impl std::fmt::Debug for BanList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BanList").field("newest", &self.newest()).finish_non_exhaustive()
    }
}
