//! Purges that a program asks for: of the request's own hash, or of a tag; at once, or by shortening what is left.

use cache::Cache;
use vcl::{Fault, Purge, Purged};

use crate::vcl_story::policy_scope::{Scope, Side};

/// How many objects it met.
pub(crate) fn purge(scope: &Scope<'_>, what: Purged<'_>, how: Purge) -> Result<u64, Fault> {
    let cache: &Cache = &scope.core.shared.cache;
    let key = match (what, scope.side) {
        (Purged::This, Side::Client(state)) => state.key.get(),
        _ => None,
    };
    match (what, how, key) {
        (Purged::This, Purge::Hard, Some(key)) => Ok(cache.purge(key) as u64),
        (Purged::This, Purge::Soft { .. }, Some(_)) => Err(Fault::new("soft purges are not built yet")),
        (Purged::This, _, None) => Err(Fault::new("there is no hash to purge by here")),
        (Purged::Tag(_), ..) => Err(Fault::new("purges by tag are not built yet")),
    }
}
