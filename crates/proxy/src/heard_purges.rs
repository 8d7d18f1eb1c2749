//! What a fleet's log of purges asks of this node: how long what is stored may be served unasked, and what has to be confirmed for good.

use std::time::Duration;

use cache::{PlaceInLog, Stamp};

use crate::clock::{Clock, Moment};
use crate::hit_history::requests_and_hits;
use crate::purge_orders::PurgeOrder;
use crate::service::Proxy;

impl Proxy {
    /// The clock that freshness counts in, in milliseconds.
    pub fn freshness_clock_ms(&self) -> u64 {
        Clock::read().at(Moment::now()).mono_ms
    }

    /// All purges of others up to a lease before that are in force here.
    pub fn extend_fleet_lease(&self, until_ms: u64) {
        self.shared.cache.fleet_lease().extend(until_ms);
    }

    /// The purge of the log with this number is about to be carried out: nothing from before that may come from an owner.
    pub fn hear_log_position(&self, position: u64) {
        self.shared.log_position.hear(position);
    }

    /// All purges of the log up to this one are in force here.
    /// `is_followed`: all between the place that was reached before and this one were carried out.
    pub fn reach_log_position(&self, at: PlaceInLog, is_followed: bool) {
        // What is fetched from now on is written down at this place.
        self.shared.cache.note_log_place(at, is_followed);
        self.shared.log_position.reach(at.position);
    }

    /// Whether something was purged here that is not in the log yet: no owner is asked meanwhile, and what others fetch is older than that.
    pub fn stand_alone(&self, is_alone: bool) {
        self.shared.cache.stand_alone(is_alone);
        self.shared.log_position.stand_alone(is_alone);
    }

    /// Nothing is served unasked that was fetched longer than a lease ago.
    pub fn has_fleet_lease_lapsed(&self) -> bool {
        let Stamp { mono_ms, .. } = Clock::read().at(Moment::now());
        self.shared.cache.fleet_lease().has_lapsed(mono_ms)
    }

    /// Has all that is stored confirmed by the origin before it is served; what [`Proxy::condemned_before`] takes after a restart.
    pub fn condemn_stored(&self) -> u64 {
        self.shared.cache.condemn()
    }

    /// The same, as it was said by the run before this one.
    pub fn condemned_before(&self, number: u64) {
        self.shared.cache.condemned(number);
    }

    /// Can this be carried out? The error is a sentence about what was selected.
    pub fn understands(&self, order: &PurgeOrder) -> Result<(), String> {
        order.is_understood(&self.shared, self.shared.now())
    }

    /// Requests since the start that origins or the store were asked for, and those that the store answered.
    pub fn requests_and_hits(&self) -> (u64, u64) {
        requests_and_hits(self.shared.counters.iter().map(|core| &**core))
    }
}

/// So long, in the cache's milliseconds.
pub(crate) fn lease_ms(lease: Duration) -> u64 {
    lease.as_millis().try_into().unwrap_or(u64::MAX)
}
