//! Invalidation as operators order it: what is meant (`purge_orders/purge_selector.rs`), how many responses that is, and that they go, or are
//! stale from now on. Everything takes numbers of the one sequence of the cache, as a PURGE does.
//!
//! Looking through the store takes as long as it takes: it is done on a thread of whoever calls, and is never a core's work.

mod purge_selector;
mod stored_sample;
mod within;

use std::sync::Arc;

use cache::{BanTest, Now, Object, Purge};

use crate::clock::{Clock, Moment};
use crate::purge_orders::purge_selector::Meant;
pub use crate::purge_orders::purge_selector::PurgeSelector;
use crate::purge_orders::stored_sample::{Gathered, tag_count};
pub use crate::purge_orders::stored_sample::{StoredSample, TagCount};
use crate::service::Proxy;

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
        let now = Clock::read().at(Moment::now());
        let meant = order.selector.meant(&self.shared, now)?;
        if order.soft.is_some() && matches!(meant, Meant::Grouped(_)) {
            return Err("a group is invalidated for good: there is no soft way (RFC 9875)".to_owned());
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
        let (matched, went) = self.carry_out(meant, order.purge(), now);
        let (dropped, softened) = if order.soft.is_some() { (0, went) } else { (went, 0) };
        let sequence = self.shared.cache.sequence();
        Ok(PurgeOutcome { matched, dropped, softened, samples: shown.samples, sequence, is_pending: matched.is_none() })
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
        PurgeOutcome { matched: Some(counted.matched), samples: counted.samples, sequence, ..PurgeOutcome::default() }
    }

    /// How many were meant, and how many it did anything to.
    fn carry_out(&self, meant: Meant, how: Purge, now: Now) -> (Option<u64>, u64) {
        let cache = &self.shared.cache;
        let went = match meant {
            Meant::Keys(keys) => keys.into_iter().map(|key| cache.purge_as(key, how, now)).sum::<usize>() as u64,
            Meant::Tagged(tags) => cache.purge_tags(&tags, how, now) as u64,
            Meant::Grouped(groups) => {
                groups.iter().for_each(|group| cache.invalidate_group(*group));
                let mut went = 0;
                cache.look_through(
                    |object| {
                        went += u64::from(cache.drop_outdated(object));
                        true
                    },
                    std::thread::yield_now,
                );
                went
            }
            Meant::Banned(ban) => {
                let outcome = cache.ban_at_once(Arc::new(ban.purging(how)), now, std::thread::yield_now);
                return (outcome.matched, outcome.matched.unwrap_or(0));
            }
        };
        (Some(went), went)
    }

    /// Shows what is stored and meant to `look` until that says `false`.
    fn each(&self, meant: &Meant, is_wanted: &dyn Fn(&Object) -> bool, mut look: impl FnMut(&Object) -> bool) {
        let cache = &self.shared.cache;
        let mut all = |objects: Vec<Arc<Object>>| {
            let _ = objects.iter().filter(|object| is_wanted(object)).all(|object| look(object));
        };
        match meant {
            Meant::Keys(keys) => all(keys.iter().flat_map(|key| cache.stored_under(*key)).collect()),
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

    /// What of the store is meant, to be fetched again; `urls_max` bounds how much of it.
    pub fn to_refresh(
        &self,
        selector: &PurgeSelector,
        samples_max: usize,
        urls_max: usize,
    ) -> Result<ToRefresh, String> {
        let now = Clock::read().at(Moment::now());
        let meant = selector.meant(&self.shared, now)?;
        if needs_request(&meant) {
            return Err(
                "conditions on the request say nothing of which URLs are meant: write them on obj.url".to_owned()
            );
        }
        let (mut shown, mut found) = (Gathered::new(samples_max, now), Vec::new());
        self.each(&meant, &|_| true, |object| {
            shown.note(object);
            if let Some(url) = object.url() {
                found.push((object.hits(), Box::<[u8]>::from(url)));
            }
            true
        });
        found.sort_unstable_by(|one, other| other.cmp(one));
        let mut seen = std::collections::HashSet::new();
        found.retain(|(_, url)| seen.insert(url.clone()));
        let left_out = found.len().saturating_sub(urls_max) as u64;
        found.truncate(urls_max);
        let urls = found.into_iter().map(|(_, url)| String::from_utf8_lossy(&url).into_owned()).collect();
        Ok(ToRefresh { matched: shown.matched, urls, left_out, samples: shown.samples })
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
                let mut all: Vec<TagCount> = named.filter(|tag| tag.tag.starts_with(prefix)).collect();
                total = all.len();
                all.truncate(tags_max);
                all
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
