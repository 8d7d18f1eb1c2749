//! Purges that a program asks for: of the request's own hash, or of a tag; at once, or by shortening what is left.

use cache::Purge as Depth;
use vcl::{Fault, Purge, Purged};

use crate::other_nodes::ToldInvalidation;
use crate::response_tags::xkey;
use crate::vcl_story::client_state::ClientState;
use crate::vcl_story::program_scope::{Scope, Side};

/// How many objects it met.
pub(crate) fn purge(scope: &Scope<'_>, what: Purged<'_>, how: Purge) -> Result<u64, Fault> {
    let cache = &scope.core.shared.cache;
    let met = match (what, scope.side) {
        (Purged::This, Side::Client(state)) => {
            let key = state.key.get().ok_or_else(|| Fault::new("there is no hash to purge by here"))?;
            cache.purge_as(key, depth(how), scope.now)
        }
        (Purged::This, Side::Fetch(_)) => return Err(Fault::new("there is no hash to purge by here")),
        (Purged::Tag(word), _) => cache.purge_tags(&[xkey(cache, word)], depth(how), scope.now),
    };
    Ok(met as u64)
}

/// Tells the other nodes of the fleet, if there are any, before it is done here. Nobody waits for that.
pub(crate) fn tell(scope: &Scope<'_>, what: &Purged<'_>, how: Purge) {
    let Some(others) = &scope.core.shared.others else { return };
    match (what, &scope.side) {
        (Purged::This, Side::Client(state)) if state.key.get().is_some() => others.tell(&of_request(state, how)),
        (Purged::This, _) => {}
        (Purged::Tag(word), _) => others.tell(&ToldInvalidation::Tag { word: word.to_vec(), how: depth(how) }),
    }
}

/// What lies under the request's hash.
pub(crate) fn of_request(state: &ClientState, how: Purge) -> ToldInvalidation {
    ToldInvalidation::Hashed { parts: state.hashed.borrow().to_vec(), how: depth(how) }
}

fn depth(how: Purge) -> Depth {
    let ms = |seconds: f64| (seconds.max(0.0) * 1_000.0) as u64;
    match how {
        Purge::Hard => Depth::Hard,
        Purge::Soft { ttl_s, grace_s, keep_s } => {
            Depth::Soft { ttl_ms: ms(ttl_s), grace_ms: grace_s.map(ms), keep_ms: keep_s.map(ms) }
        }
    }
}
