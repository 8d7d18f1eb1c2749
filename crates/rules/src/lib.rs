//! RFC 9110 (conditions, ranges, dates), 9111 (caching), 5861, 8246, 9211, 9213, 9842, 9875 and No-Vary-Search as pure
//! functions.
//!
//! Facts are extracted once, when a response is stored ([`storing::may_store`]); judging a hit is arithmetic on
//! them ([`freshness::judge`]). Time is always an argument: wall milliseconds since 1970 where a date is meant,
//! milliseconds of residence where an age is meant. This crate knows no clock, no storage, no policy language
//! and no framing.
//!
//! ```
//! use message::{Authority, FieldName, Fields, Method, Request, ResponseHead, Scheme, Status, TargetForm, Version};
//! use rules::freshness::{Freshness, judge};
//! use rules::storing::{Exchange, may_store};
//! use rules::{RequestDirectives, StoreDefaults};
//!
//! let asked = Fields::default();
//! let request = Request {
//!     method: Method::Get,
//!     method_text: b"GET",
//!     version: Version::Http11,
//!     form: TargetForm::Origin,
//!     scheme: Scheme::Http,
//!     authority: Authority::EMPTY,
//!     path: b"/",
//!     query: None,
//!     fields: asked.view(),
//! };
//! let mut head = ResponseHead::new(Status::OK);
//! head.fields.push(FieldName::CacheControl, "max-age=60");
//! let facts = may_store(&Exchange {
//!     request: &request,
//!     response: head.response(),
//!     response_wall_ms: 1_767_268_800_000,
//!     response_delay_ms: 0,
//!     defaults: &StoreDefaults::default(),
//! });
//! let facts = facts.expect("it says how long it is fresh");
//!
//! let anybody = RequestDirectives::default();
//! assert!(matches!(judge(&facts, 59_000, &anybody), Freshness::Fresh));
//! assert!(matches!(judge(&facts, 60_000, &anybody), Freshness::Stale { .. }));
//! ```

pub mod byteranges;
pub mod cache_control;
pub mod cache_status;
pub mod conditions;
pub mod content_coding;
pub mod credentials;
pub mod date;
pub mod delta_coding;
pub mod dictionary_fields;
pub mod entity_tag;
pub mod forwarded;
pub mod freshness;
pub mod grant;
pub mod groups;
pub mod invalidation;
pub mod lifetime_source;
pub mod lifetimes;
pub mod limits;
pub mod media_range;
pub mod range;
pub mod reference;
pub mod storing;
pub mod targeted;
pub mod update;
pub mod url_pattern;
pub mod url_variation;
pub mod vary;
mod why_not_stored;

pub use cache_control::{RequestDirectives, ResponseDirectives};
pub use content_coding::{AcceptedCodings, ContentCoding};
pub use delta_coding::{AcceptedDeltas, DeltaCoding};
pub use dictionary_fields::{AvailableDictionary, DictionaryHash, DictionaryUse};
pub use freshness::{Facts, Freshness};
pub use grant::{Grant, GrantedLifetime};
pub use lifetime_source::LifetimeSource;
pub use lifetimes::Lifetimes;
pub use storing::{Exchange, StoreDefaults};
pub use url_pattern::{PatternBase, PatternFlaw, UrlPattern};
pub use url_variation::UrlVariation;
pub use vary::{CODING_TEXTS, Vary, VarySpec};
pub use why_not_stored::WhyNotStored;

#[cfg(test)]
mod tests;
