//! What a response to an unsafe request makes untrue of what is stored. It stores nothing itself.

use cache::Began;
use message::{Request, ResponseHead};

use crate::cache_groups;
use crate::core::Core;
use crate::policy;

/// RFC 9111 §4.4, RFC 9875 §3: what an unsafe request has made untrue. Returns the number that its own response may be
/// stored under.
pub(crate) fn invalidate_after(core: &Core, request: &Request<'_>, head: &ResponseHead, began: Began) -> Began {
    let cache = &core.shared.cache;
    let invalidation = rules::invalidation::invalidated(request, head.response());
    for location in &invalidation.others {
        let there = Request { path: &location.path, query: location.query.as_deref(), ..request.clone() };
        policy::invalidate(&core.shared, &there, |key| cache.invalidate(key));
    }
    // RFC 9875 §3: whatever the status.
    cache_groups::invalidate(cache, request, &rules::groups::invalidated(request.method, head.fields.view()));
    let mut stored_under = None;
    if invalidation.target {
        policy::invalidate(&core.shared, request, |key| {
            let under = cache.invalidate_before_storing(key, began);
            // Where somebody else was faster under one key, the response comes too late for all of them.
            stored_under = Some(if stored_under == Some(began) { began } else { under });
        });
    }
    stored_under.unwrap_or(began)
}
