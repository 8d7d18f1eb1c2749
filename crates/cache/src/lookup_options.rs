//! How `ask` looks a request up, beside what the request says itself.

use rules::RequestDirectives;
use rules::range::RangeSpec;

use crate::moment::Began;

/// How a request is looked up. The default is that of the built-in policy.
#[derive(Clone, Debug, Default)]
pub struct LookupOptions {
    /// The core that asks: flights wake their followers through it. A wrong one is slower, not wrong.
    pub core: usize,
    /// VCL's `req.hash_always_miss`: fetch anew, whatever is stored; the old object stays until the new one lands.
    pub always_miss: bool,
    /// VCL's `req.hash_ignore_busy`: wait for nobody's fetch. Who may follow one whose head is there, does: that is no wait.
    pub ignore_busy: bool,
    /// Follow no other fetch at all.
    pub alone: bool,
    /// Whoever fetches says when its request leaves ([`Ticket::departure`](crate::Ticket::departure)), and what is invalidated
    /// before that is not about what it brings. Otherwise a fetch begins with the ticket.
    pub says_departure: bool,
    /// A VCL decides: of several responses that match, the newest that is fresh, as `selection.rs` says.
    pub newest_first: bool,
    /// VCL's `req.hash_ignore_vary`: the newest variant, whatever it varies on.
    pub ignore_vary: bool,
    /// Where nothing is stored and the key is known as hit-for-miss, say so instead of giving a ticket: who asked
    /// fetches past the store, and asks again with `always_miss` and `began` if the response can be stored after all.
    pub pass_uncacheable: bool,
    /// For a response that was fetched without a ticket: the number that [`Cache::began`](crate::Cache::began) gave
    /// before its fetch connected. Without it an invalidation during that fetch would go unnoticed.
    pub began: Option<Began>,
    /// An upper bound on how long past its lifetime an object may be served while it is refreshed.
    pub grace_max_ms: Option<u64>,
    /// An object older than this counts as one that must be validated. Where a program decided how long it lives, it is
    /// fetched anew, as for `ttl_max_ms`.
    pub age_max_ms: Option<u64>,
    /// VCL's `req.ttl`, for objects whose lifetimes a program decided: an upper bound on their ttl, which counts from their
    /// making at the origin.
    pub ttl_max_ms: Option<u64>,
    /// Where no whole response can be served, a stored part (206) will do that holds all of this range, and
    /// whose validator is that of the request's If-Range.
    pub range: Option<RangeSpec>,
    /// The request's own Cache-Control; the default if it is not honoured.
    pub directives: RequestDirectives,
}
