//! Invalidation as operators order it: what is meant (`purge_orders/purge_selector.rs`), how many responses that is, and that they go, or are
//! stale from now on. Everything takes numbers of the one sequence of the cache, as a PURGE does.
//!
//! Looking through the store takes as long as it takes: it is done on a thread of whoever calls, and is never a core's work.

mod purge_selector;
mod stored_sample;
mod wanted_urls;
mod within;

use std::sync::{Arc, Weak};

use cache::{BanTest, Key, Now, Object, Purge};

use crate::core::Shared;
use crate::purge_orders::purge_selector::{Meant, MeantPlace, MeantUrl};
pub use crate::purge_orders::purge_selector::{OrderedUrl, PurgeSelector};
use crate::purge_orders::stored_sample::{Gathered, tag_count};
pub use crate::purge_orders::stored_sample::{StoredSample, TagCount};
use crate::purge_orders::wanted_urls::WantedUrls;
use crate::purge_tally::OrderEnd;
use crate::service::Proxy;
use crate::vcl_story::bans::ProgramBan;

/// What is taken out of what was purged before others may go first.
const PURGED_STEP: usize = 64;

const NO_SOFT_GROUP: &str = "a group is invalidated for good: there is no soft way (RFC 9875)";

/// URLs that are found for who asks what is stored.
const STORED_URLS_MAX: usize = 100;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeOrder {
    pub selector: PurgeSelector,
    /// Only stale from now on; with so much grace, or as much as it has.
    pub soft: Option<Softness>,
    /// Nothing is done; what would be is counted.
    pub is_dry: bool,
    pub samples_max: usize,
}

/// How soft.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Softness {
    pub grace_ms: Option<u64>,
}

/// What it has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgeOutcome {
    /// Responses in memory that were meant, parts and slices counted each; `None` where only those who ask will tell.
    pub matched: Option<u64>,
    /// Those that went, and those that were made stale.
    pub dropped: u64,
    pub softened: u64,
    pub samples: Vec<StoredSample>,
    /// How far the invalidation sequence was then.
    pub sequence: u64,
    /// It is worked off when somebody asks.
    pub is_pending: bool,
    /// Responses of which a pattern could not say whether it means them: it gave up at its limit.
    pub unjudged: u64,
}

/// What was done.
#[derive(Default)]
struct CarriedOut {
    matched: Option<u64>,
    went: u64,
    unjudged: u64,
}

/// What is to be fetched again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToRefresh {
    pub matched: u64,
    /// The URLs of what was meant, each once, those that are asked for most first.
    pub urls: Vec<String>,
    /// There were more.
    pub left_out: u64,
    pub samples: Vec<StoredSample>,
}

impl PurgeOrder {
    fn end(&self, is_done: bool) -> OrderEnd {
        match (is_done, self.is_dry, self.soft) {
            (false, ..) => OrderEnd::Refused,
            (true, true, _) => OrderEnd::Dry,
            (true, false, None) => OrderEnd::Dropped,
            (true, false, Some(_)) => OrderEnd::Softened,
        }
    }

    /// Is it clear what is meant?
    pub(crate) fn is_understood(&self, shared: &Arc<Shared>, now: Now) -> Result<(), String> {
        let meant = self.selector.meant(shared, now)?;
        match self.soft.is_some() && matches!(meant, Meant::Grouped(_)) {
            true => Err(NO_SOFT_GROUP.to_owned()),
            false => Ok(()),
        }
    }

    fn purge(&self) -> Purge {
        match self.soft {
            None => Purge::Hard,
            Some(Softness { grace_ms }) => Purge::Soft { ttl_ms: 0, grace_ms, keep_ms: None },
        }
    }
}

impl Proxy {
    /// Drops what is meant, or makes it stale. It holds when this returns; [`settled`](Proxy::settled) says when a crash cannot undo it.
    /// The error is a sentence about what was selected.
    pub fn purge(&self, order: &PurgeOrder) -> Result<PurgeOutcome, String> {
        let outcome = self.purge_uncounted(order);
        self.shared.purge_tally.note(order.selector.kind(), order.end(outcome.is_ok()));
        outcome
    }

    /// Hosts of which something is stored in memory: of so many responses, whichever they are.
    pub fn stored_hosts(&self, responses_max: usize) -> Vec<String> {
        let all = PurgeOrder { selector: PurgeSelector::All, soft: None, is_dry: true, samples_max: responses_max };
        let samples = self.purge_uncounted(&all).map(|outcome| outcome.samples).unwrap_or_default();
        let mut hosts: Vec<String> = Vec::new();
        for url in samples.into_iter().filter_map(|sample| sample.url) {
            let (_, rest) = url.split_once("://").unwrap_or(("", &url));
            let host = rest.split(['/', '?']).next().unwrap_or_default();
            if !hosts.iter().any(|known| known == host) {
                hosts.push(host.to_owned());
            }
        }
        hosts
    }

    /// URLs of what is stored in memory that are wanted, each once, a hundred at most: of so many responses that are looked at, whichever they are.
    pub fn stored_urls(&self, is_wanted: impl Fn(&str) -> bool, responses_max: usize) -> Vec<String> {
        let (mut urls, mut looked_at) = (Vec::new(), 0);
        let look = |object: &Arc<Object>| {
            looked_at += 1;
            let url = object.url().map(String::from_utf8_lossy);
            if let Some(url) = url.filter(|url| is_wanted(url) && !urls.iter().any(|known| known == url)) {
                urls.push(url.into_owned());
            }
            looked_at < responses_max && urls.len() < STORED_URLS_MAX
        };
        // So few that nobody has to be given way to.
        self.shared.cache.look_through(look, || ());
        urls
    }

    /// Takes out and frees what purges of tags have marked, on the thread of whoever calls: for after the answer, which needs none of it.
    pub fn take_out_purged(&self) {
        while self.shared.cache.take_out_purged(PURGED_STEP) > 0 {
            std::thread::yield_now();
        }
    }

    /// Orders to purge since the start: selector, what came of it, and how many.
    pub fn purge_orders_counts(&self) -> Vec<(&'static str, &'static str, u64)> {
        self.shared.purge_tally.counts()
    }

    fn purge_uncounted(&self, order: &PurgeOrder) -> Result<PurgeOutcome, String> {
        let now = self.shared.now();
        let meant = order.selector.meant(&self.shared, now)?;
        if order.soft.is_some() && matches!(meant, Meant::Grouped(_)) {
            return Err(NO_SOFT_GROUP.to_owned());
        }
        if order.is_dry {
            return Ok(self.counted(&meant, order, now));
        }
        let mut shown = Gathered::new(order.samples_max, now);
        if order.samples_max > 0 {
            self.each(&meant, &|_| true, |object| {
                shown.note(object);
                !shown.is_full()
            });
        }
        let CarriedOut { matched, went, unjudged } = self.carry_out(meant, order.purge(), now);
        let (dropped, softened) = if order.soft.is_some() { (0, went) } else { (went, 0) };
        let (samples, sequence, is_pending) = (shown.samples, self.shared.cache.sequence(), matched.is_none());
        Ok(PurgeOutcome { matched, dropped, softened, samples, sequence, is_pending, unjudged })
    }

    /// A dry run.
    fn counted(&self, meant: &Meant, order: &PurgeOrder, now: Now) -> PurgeOutcome {
        let sequence = self.shared.cache.sequence();
        if needs_request(meant) {
            return PurgeOutcome { sequence, is_pending: true, ..PurgeOutcome::default() };
        }
        let mut counted = Gathered::new(order.samples_max, now);
        // What is stale already is no tag's affair.
        let spares_stale = order.soft.is_some() && matches!(meant, Meant::Tagged(_));
        self.each(meant, &|object| !spares_stale || object.lifetimes(now).ttl_ms > 0, |object| {
            counted.note(object);
            true
        });
        let unjudged = if let Meant::Banned(ban) = meant { ban.unjudged() } else { 0 };
        let (matched, samples) = (Some(counted.matched), counted.samples);
        PurgeOutcome { matched, samples, sequence, unjudged, ..PurgeOutcome::default() }
    }

    fn carry_out(&self, meant: Meant, how: Purge, now: Now) -> CarriedOut {
        let cache = &self.shared.cache;
        let went = match meant {
            Meant::Urls(urls) => {
                let of_ban = |ban: ProgramBan| self.ban_at_once(ban, how, now).went;
                let went = |url: MeantUrl| {
                    let of_keys = |at: MeantPlace| cache.purge_as(at.key, how, now) as u64;
                    // The keys first: what they have is not there for the ban.
                    url.places.into_iter().map(of_keys).sum::<u64>() + url.also.map_or(0, of_ban)
                };
                urls.into_iter().map(went).sum()
            }
            Meant::Tagged(tags) => cache.purge_tags(&tags, how, now) as u64,
            Meant::Grouped(groups) => self.invalidate_groups(&groups),
            Meant::Banned(ban) => return self.ban_at_once(ban, how, now),
        };
        CarriedOut { matched: Some(went), went, unjudged: 0 }
    }

    fn ban_at_once(&self, ban: ProgramBan, how: Purge, now: Now) -> CarriedOut {
        let ban = Arc::new(ban.purging(how));
        let outcome = self.shared.cache.ban_at_once(Arc::clone(&ban) as Arc<dyn BanTest>, now, std::thread::yield_now);
        let (matched, unjudged) = (outcome.matched, ban.unjudged());
        CarriedOut { matched, went: matched.unwrap_or(0), unjudged }
    }

    /// What belongs to them is gathered before: what other groups left behind is outdated as well, and no work of this order's.
    fn invalidate_groups(&self, groups: &[Key]) -> u64 {
        let cache = &self.shared.cache;
        let mut theirs = Vec::new();
        let note = |object: &Arc<Object>| {
            if cache.belongs(object, groups) {
                theirs.push(Arc::downgrade(object));
            }
            true
        };
        cache.look_through(note, std::thread::yield_now);
        groups.iter().for_each(|group| cache.invalidate_group(*group));
        theirs.iter().filter_map(Weak::upgrade).filter(|object| cache.drop_outdated(object)).count() as u64
    }

    /// Shows what is stored and meant to `look` until that says `false`.
    fn each(&self, meant: &Meant, is_wanted: &dyn Fn(&Object) -> bool, mut look: impl FnMut(&Object) -> bool) {
        let cache = &self.shared.cache;
        let mut all = |objects: Vec<Arc<Object>>| {
            let _ = objects.iter().filter(|object| is_wanted(object)).all(|object| look(object));
        };
        match meant {
            Meant::Urls(urls) => self.each_of_urls(urls, &mut all),
            Meant::Tagged(tags) => all(cache.tagged(tags)),
            Meant::Banned(_) | Meant::Grouped(_) => {
                let is_meant = |object: &Object| match meant {
                    Meant::Banned(ban) => !needs_request(meant) && cache.would_hit(ban, object),
                    Meant::Grouped(groups) => cache.belongs(object, groups),
                    _ => false,
                };
                let look = |object: &Arc<Object>| !(is_meant(object) && is_wanted(object)) || look(object);
                cache.look_through(look, std::thread::yield_now);
            }
        }
    }

    /// What lies under the keys, and what else the programs' URLs mean, each once.
    fn each_of_urls(&self, urls: &[MeantUrl], all: &mut dyn FnMut(Vec<Arc<Object>>)) {
        let cache = &self.shared.cache;
        let mut keys: Vec<Key> = urls.iter().flat_map(|url| url.places.iter().map(|at| at.key)).collect();
        keys.sort_unstable_by_key(|key| key.bits());
        keys.dedup();
        let mut objects: Vec<_> = keys.iter().flat_map(|key| cache.stored_under(*key)).collect();
        let bans: Vec<&ProgramBan> = urls.iter().filter_map(|url| url.also.as_ref()).collect();
        if !bans.is_empty() {
            let look = |object: &Arc<Object>| {
                let is_new = !keys.contains(&object.key());
                if is_new && bans.iter().any(|ban| cache.would_hit(*ban, object)) {
                    objects.push(Arc::clone(object));
                }
                true
            };
            cache.look_through(look, std::thread::yield_now);
        }
        all(objects);
    }

    /// What of the store is meant, to be fetched again; `urls_max` bounds how much of it.
    pub fn to_refresh(
        &self,
        selector: &PurgeSelector,
        samples_max: usize,
        urls_max: usize,
    ) -> Result<ToRefresh, String> {
        let now = self.shared.now();
        let meant = selector.meant(&self.shared, now)?;
        if needs_request(&meant) {
            return Err(
                "conditions on the request say nothing of which URLs are meant: write them on obj.url".to_owned()
            );
        }
        let (mut shown, mut wanted) = (Gathered::new(samples_max, now), WantedUrls::new(urls_max));
        let is_by_url = matches!(meant, Meant::Urls(_));
        self.each(&meant, &|_| true, |object| {
            shown.note(object);
            if let Some(url) = object.url().filter(|_| !is_by_url) {
                wanted.note(object.hits(), url);
            }
            true
        });
        let (urls, left_out) = match &meant {
            Meant::Urls(urls) => (self.urls_stored_under(urls), 0),
            _ => wanted.most_wanted(),
        };
        Ok(ToRefresh { matched: shown.matched, urls, left_out, samples: shown.samples })
    }

    /// By which URLs what is stored under these is asked for, on a disk or in memory.
    fn urls_stored_under(&self, urls: &[MeantUrl]) -> Vec<String> {
        let cache = &self.shared.cache;
        let is_stored = |key: Key| cache.may_be_on_disk(key) || !cache.stored_under(key).is_empty();
        let mut stored: Vec<String> = Vec::new();
        for url in urls {
            // Under a program other keys have it, too.
            let mut is_found = url.also.as_ref().is_some_and(|ban| self.is_any(ban));
            for at in &url.places {
                let Some(text) = at.url.as_ref() else { continue };
                is_found |= is_stored(at.key);
                if std::mem::take(&mut is_found) && !stored.contains(text) {
                    stored.push(text.clone());
                }
            }
        }
        stored
    }

    fn is_any(&self, ban: &ProgramBan) -> bool {
        let mut is_any = false;
        let look = |object: &Arc<Object>| {
            is_any = self.shared.cache.would_hit(ban, object);
            !is_any
        };
        self.shared.cache.look_through(look, std::thread::yield_now);
        is_any
    }

    /// The tags of what is stored that begin so, those that most carry first, and how many there are.
    pub fn tags(&self, prefix: &str, tags_max: usize) -> (Vec<TagCount>, usize) {
        let cache = &self.shared.cache;
        let mut uses = cache.tags_in_use();
        uses.sort_unstable_by_key(|tag| std::cmp::Reverse((tag.objects, tag.bits)));
        let mut total = uses.len();
        let named = uses.iter().filter_map(|tag| tag_count(cache, tag));
        let listed: Vec<TagCount> = match prefix.is_empty() {
            true => named.take(tags_max).collect(),
            false => {
                let (mut listed, mut count) = (Vec::new(), 0);
                for tag in named.filter(|tag| tag.tag.starts_with(prefix)) {
                    count += 1;
                    if listed.len() < tags_max {
                        listed.push(tag);
                    }
                }
                total = count;
                listed
            }
        };
        (listed, total)
    }
}

/// How much a thread that looks through the store gives way to the cores (nice(2)): one of these that wants to run has three times its weight.
const LOOKING_NICE: i32 = 5;

/// For a thread that looks through the store: those that serve go first.
pub fn give_way_to_cores() {
    // Where it may not, it takes its turn as they do.
    let _ = rustix::process::nice(LOOKING_NICE);
}

fn needs_request(meant: &Meant) -> bool {
    matches!(meant, Meant::Banned(ban) if ban.needs_request())
}
