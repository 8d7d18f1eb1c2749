//! What `ask` would do with a request, and what is stored under its key, for who wants to know why. Nothing is counted, noted or taken out, and
//! no flight begins: the plan is made over a copy of the entry.

use std::sync::Arc;

use message::Request;

use crate::cache::Cache;
use crate::key::Key;
use crate::lookup_options::LookupOptions;
use crate::lookup_plan::{LookupPlan, Question, fresh_part};
use crate::moment::Now;
use crate::object::Object;
use crate::why_uncacheable::WhyUncacheable;

/// What is known of a key, and what a request would come to.
#[derive(Debug)]
pub struct Explained {
    pub plan: LookupPlan,
    /// The whole response that the request selects, fresh or not.
    pub selected: Option<Arc<Object>>,
    /// A part that holds the range that is wanted.
    pub part: Option<Arc<Object>>,
    /// All that is stored under the key, newest first; marks are not among them.
    pub stored: Vec<Arc<Object>>,
    /// Fetches of the key that are under way.
    pub fetching: u32,
    /// The origin failed a moment ago: nothing is refreshed until that is over.
    pub has_failed: bool,
    /// Why responses to requests like this were not stored of late.
    pub why_uncacheable: Option<WhyUncacheable>,
}

impl Cache {
    /// What `ask` would do, in place of doing it.
    pub fn explain(&self, key: Key, request: &Request<'_>, options: &LookupOptions, now: Now) -> Explained {
        let mut entry = self.directory.shard(key).copy(key);
        let question = Question { key, request, options, now, order: 0, began: 0, is_dry: true };
        let plan = loop {
            // What a look-up comes across is tested first, and taken out; what others would come across stays.
            let is_gone = |object: &&Arc<Object>| !object.is_valid() || self.would_examine_out(object, request);
            let slot = entry.find(request.fields, options, now);
            if let Some(gone) = slot.and_then(|slot| slot.objects().find(is_gone)).cloned() {
                entry.remove(&gone);
                continue;
            }
            match self.plan(&mut entry, &question) {
                LookupPlan::Over(object) => entry.remove(&object),
                plan => break plan,
            };
        };
        let slot = entry.find(request.fields, options, now);
        let selected = slot.and_then(|slot| slot.whole.clone()).filter(|object| object.mark().is_none());
        let part = slot.and_then(|slot| fresh_part(slot, request, options, now));
        let is_listed = |object: &&Arc<Object>| object.mark().is_none() && !object.is_withdrawn();
        let mut stored: Vec<Arc<Object>> = entry.objects().filter(is_listed).cloned().collect();
        stored.sort_by_key(|object| std::cmp::Reverse(object.recency()));
        let is_uncacheable = entry.is_uncacheable(request.fields);
        let why_uncacheable = entry.why_uncacheable().filter(|_| is_uncacheable);
        let (fetching, has_failed) = (entry.fetching, entry.recent_failure(now).is_some());
        Explained { plan, selected, part, stored, fetching, has_failed, why_uncacheable }
    }
}
