//! What a response to an unsafe request makes untrue of what is stored. It stores nothing itself.

use cache::Began;
use message::{Request, ResponseHead};

use crate::cache_groups;
use crate::core::Core;
use crate::other_nodes::{OtherNodes, ToldInvalidation, ToldUrl};
use crate::policy;
use rules::invalidation::Invalidation;

/// RFC 9111 §4.4, RFC 9875 §3: what an unsafe request has made untrue. Returns the number that its own response may be
/// stored under.
pub(crate) fn invalidate_after(core: &Core, request: &Request<'_>, head: &ResponseHead, began: Began) -> Began {
    let cache = &core.shared.cache;
    let invalidation = rules::invalidation::invalidated(request, head.response());
    // RFC 9875 §3: whatever the status.
    let groups = rules::groups::invalidated(request.method, head.fields.view());
    if let Some(others) = core.shared.unsafe_methods_heard_by() {
        tell(others, request, &invalidation, &groups);
    }
    for there in others_of(&invalidation, request) {
        policy::invalidate(&core.shared, &there, |key| cache.invalidate(key));
    }
    cache_groups::invalidate(cache, request, &groups);
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

/// What the response names beside what was asked for.
fn others_of<'a>(invalidation: &'a Invalidation, request: &'a Request<'_>) -> impl Iterator<Item = Request<'a>> {
    invalidation.others.iter().map(|location| Request {
        path: &location.path,
        query: location.query.as_deref(),
        ..request.clone()
    })
}

/// The other nodes of the fleet hear of the same. Most responses make nothing untrue.
fn tell(others: &dyn OtherNodes, request: &Request<'_>, invalidation: &Invalidation, groups: &[String]) {
    if !groups.is_empty() {
        others.tell(&ToldInvalidation::Groups { of: vec![ToldUrl::of(request)], names: groups.to_vec() });
    }
    if invalidation.target {
        let mut urls = vec![ToldUrl::of(request)];
        urls.extend(others_of(invalidation, request).map(|there| ToldUrl::of(&there)));
        others.tell(&ToldInvalidation::Urls(urls));
    }
}
