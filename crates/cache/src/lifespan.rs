//! Until when a stored response is of any use: what memory and disks ask when they must make room, so that what is of none
//! leaves before what is.
//!
//! While it is fresh, and as long as it may be served stale, it answers requests. After that it saves the body of an answer
//! when the origin confirms it, or stands in for an origin that cannot be reached, as long as somebody asks for it at all:
//! whoever does gets it a new life, but for the time in which the origin is down. So what nobody asked for since, for a
//! quarter of the time for which it was fresh, is over. It goes on being served by the same rules if there is room for it.
//!
//! A quarter by measurement: on the traces of docs/simulate.md, with lives of one and four hours, it and an eighth miss least in
//! the mean of nothing, an eighth, a quarter, a half and the whole, and it keeps more that the origin may confirm.
//!
//! Others draw the line elsewhere. Varnish drops what is over when its ttl, grace and keep are, however much room there is, and
//! evicts by its LRU list alone; nginx and Squid do not look at the expiry when they evict. Where a program said how long to
//! keep a response, that is taken at its word.

use message::{FieldName, FieldsView};
use rules::Facts;

use crate::limits::{DISK_VALIDATABLE_MS, STANDBY_MS_MIN, STANDBY_PART};

/// How long after its freshness a response keeps its place that was fresh for so long.
pub fn standby_ms(lifetime_ms: u64) -> u64 {
    (lifetime_ms / STANDBY_PART).clamp(STANDBY_MS_MIN, DISK_VALIDATABLE_MS)
}

/// For how long from its arrival it answers requests: fresh, or stale where that was allowed in so many words.
pub(crate) fn answers_for_ms(facts: &Facts) -> u64 {
    let fresh_ms = facts.lifetime_ms.saturating_sub(facts.initial_age_ms);
    fresh_ms.saturating_add(facts.stale_while_revalidate_ms.max(facts.stale_if_error_ms.unwrap_or(0)))
}

/// Can the origin be asked whether it is still what it was?
pub(crate) fn is_validatable(facts: &Facts, fields: FieldsView<'_>) -> bool {
    facts.last_modified.is_some() || fields.contains(FieldName::Etag)
}

/// For how long from its arrival anybody has a use for it; none where that has no end. `keep_ms`: where a program said so, how
/// long it is kept to be validated.
pub(crate) fn lives_ms(facts: &Facts, fields: FieldsView<'_>, keep_ms: Option<u64>) -> Option<u64> {
    match keep_ms {
        Some(keep_ms) => Some(answers_for_ms(facts).saturating_add(keep_ms)),
        None if is_validatable(facts, fields) && (facts.always_validate || facts.lifetime_ms == 0) => None,
        None => {
            let stands_in = facts.stale_if_error_ms.is_none() && !facts.must_revalidate;
            let has_standby = stands_in || is_validatable(facts, fields);
            let standby_ms = if has_standby { standby_ms(facts.lifetime_ms) } else { 0 };
            let fresh_ms = facts.lifetime_ms.saturating_sub(facts.initial_age_ms);
            Some(answers_for_ms(facts).max(fresh_ms.saturating_add(standby_ms)))
        }
    }
}
