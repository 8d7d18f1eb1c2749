//! RFC 9110 (conditions, ranges, dates), 9111 (caching), 5861, 8246, 9211, 9213, 9875 and No-Vary-Search as pure
//! functions.
//!
//! Facts are extracted once, when a response is stored ([`storing::may_store`]); judging a hit is arithmetic on
//! them ([`freshness::judge`]). Time is always an argument: wall milliseconds since 1970 where a date is meant,
//! milliseconds of residence where an age is meant. This crate knows no clock, no storage, no policy language
//! and no framing.

pub mod byteranges;
pub mod cache_control;
pub mod cache_status;
pub mod conditions;
pub mod content_coding;
pub mod credentials;
pub mod date;
pub mod entity_tag;
pub mod forwarded;
pub mod freshness;
pub mod groups;
pub mod invalidation;
pub mod lifetimes;
pub mod limits;
pub mod media_range;
pub mod range;
pub mod reference;
pub mod storing;
pub mod targeted;
pub mod update;
pub mod url_variation;
pub mod vary;
mod why_not_stored;

pub use cache_control::{RequestDirectives, ResponseDirectives};
pub use freshness::{Facts, Freshness};
pub use lifetimes::Lifetimes;
pub use storing::{Exchange, StoreDefaults};
pub use url_variation::UrlVariation;
pub use vary::{CODING_TEXTS, Vary, VarySpec};
pub use why_not_stored::WhyNotStored;

#[cfg(test)]
mod tests;
