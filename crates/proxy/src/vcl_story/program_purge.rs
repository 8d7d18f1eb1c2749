//! Purges that a program asks for: of the request's own hash, or of a tag; at once, or by shortening what is left. And the
//! tags by which its answers can be purged.

use cache::{Cache, Key, Purge as Depth, Tags};
use message::FieldsView;
use vcl::{Fault, Purge, Purged};

use crate::vcl_story::program_scope::{Scope, Side};

/// Of an answer that is to be stored: the words of its xkey fields, as varnish-modules reads them. Too many are none: what
/// could not be purged by one of its tags is not stored.
pub(crate) fn tags_of(cache: &Cache, fields: FieldsView<'_>) -> Result<Option<Tags>, cache::TooManyTags> {
    let lines = fields.get_all_named(b"xkey").chain(fields.get_all_named(b"x-hashtwo"));
    let words = lines.flat_map(|line| line.split(|byte| matches!(byte, b' ' | b'\t' | b',')));
    Tags::new(words.filter(|word| !word.is_empty()).map(|word| tag(cache, word)))
}

fn tag(cache: &Cache, word: &[u8]) -> Key {
    cache.key([&b"xkey"[..], word])
}

/// How many objects it met.
pub(crate) fn purge(scope: &Scope<'_>, what: Purged<'_>, how: Purge) -> Result<u64, Fault> {
    let cache = &scope.core.shared.cache;
    let met = match (what, scope.side) {
        (Purged::This, Side::Client(state)) => {
            let key = state.key.get().ok_or_else(|| Fault::new("there is no hash to purge by here"))?;
            cache.purge_as(key, depth(how), scope.now)
        }
        (Purged::This, Side::Fetch(_)) => return Err(Fault::new("there is no hash to purge by here")),
        (Purged::Tag(word), _) => cache.purge_tags(&[tag(cache, word)], depth(how), scope.now),
    };
    Ok(met as u64)
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
