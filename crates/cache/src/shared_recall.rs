//! From the shared tier into memory: what a miss looks for before it asks the origin, where neither memory nor disk has anything.
//!
//! What comes is a stored object like every other, and whoever looked for it asks anew. It counts as fetched under the number that this node
//! had at the place in the log at which it was fetched (`log_marks.rs`); what has been purged since is forgotten there, and asked for
//! once more: whoever is first has the right to fetch it for all.

use message::Request;
use store::sync::atomic::Ordering::Acquire;

use crate::cache::Cache;
use crate::key::{Key, Variant};
use crate::limits::SHARED_QUESTIONS_MAX;
use crate::moment::Now;
use crate::recall::{Brought, Origin};
use crate::second_tier::{FetchRight, TierAnswer, TierRecord};
use crate::shared_form::{self, SharedForm};
use crate::shared_level::{SharedLevel, name_of};
use crate::spec::variant_of;
use crate::stored_form;

/// What looking came to.
#[derive(Debug)]
pub enum SharedRecall {
    /// It is in memory now: ask again.
    Stored,
    /// Nothing that this request could be served from. Who wanted to fetch it for all may hold the right to do so.
    NotThere(Option<FetchRight>),
}

/// What a record was worth.
enum Worth {
    Stored,
    /// It was purged since, and is forgotten: ask once more.
    Outdated,
    /// It lies under this name.
    Elsewhere(Variant),
    /// This node cannot tell, or it is no record.
    Unknown,
}

impl Cache {
    /// Is there a tier that a miss asks?
    pub fn has_shared_tier(&self) -> bool {
        self.shared.is_some()
    }

    /// Brings the variant that a request selects from the shared tier into memory. `wants_right`: who asks would fetch it, and waits a while for
    /// who does so already. It may be dropped at any moment.
    pub async fn recall_shared(&self, key: Key, request: &Request<'_>, now: Now, wants_right: bool) -> SharedRecall {
        let Some(shared) = &self.shared else { return SharedRecall::NotThere(None) };
        let mut variant = Variant::PLAIN;
        for _ in 0..SHARED_QUESTIONS_MAX {
            // Before anything is looked at: what is invalidated from here on meets us under the shard's lock.
            let began = self.invalidation.load(Acquire);
            let record = match shared.tier.ask(name_of(key, variant), wants_right).await {
                TierAnswer::Found(record) => record,
                TierAnswer::Nothing(right) => return SharedRecall::NotThere(right),
            };
            match self.weigh(shared, record, (key, variant), request, (began, now)) {
                Worth::Stored => return SharedRecall::Stored,
                Worth::Outdated => {}
                Worth::Elsewhere(selected) if variant == Variant::PLAIN => variant = selected,
                Worth::Elsewhere(_) | Worth::Unknown => break,
            }
        }
        SharedRecall::NotThere(None)
    }

    fn weigh(
        &self,
        shared: &SharedLevel,
        record: TierRecord,
        (key, variant): (Key, Variant),
        request: &Request<'_>,
        (began, now): (u64, Now),
    ) -> Worth {
        let (fetched, form) = match shared_form::read(&record.head) {
            Some(SharedForm::Response(fetched, form)) => (fetched, form),
            Some(SharedForm::Fields(vary)) => {
                let spec = self.specs.spec(vary, self.digester);
                return Worth::Elsewhere(variant_of(Some(&spec), request.fields));
            }
            None => return Worth::Unknown,
        };
        let Some(form) = stored_form::read(&form, shared.boot, now) else { return Worth::Unknown };
        let spec = form.vary.clone().map(|vary| self.specs.spec(vary, self.digester));
        let is_meant =
            form.key == key && form.variant == variant && variant_of(spec.as_ref(), request.fields) == variant;
        let Some(number) = shared.number_of(&fetched).filter(|_| is_meant) else { return Worth::Unknown };
        if record.body.len() > self.kept_bytes_max() {
            return Worth::Unknown;
        }
        let brought = Brought { form, spec, number, on_disk: 0 };
        match self.take_back(brought, record.body, request, (number.min(began), &Origin::Shared(shared))) {
            Some(_) => Worth::Stored,
            None => Worth::Outdated,
        }
    }
}
