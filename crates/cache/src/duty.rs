//! A fetch that has begun and has to end: what a ticket and a draft change of it, and how it ends without a whole response.

use std::sync::Arc;

use store::sync::Guard;

use crate::cache::Cache;
use crate::directory::Shard;
use crate::entry::Entry;
use crate::failure::Failure;
use crate::flight::{End, Flight, Inner};
use crate::flight_state::FlightState;
use crate::moment::Now;
use crate::second_tier::FetchRight;

/// A fetch under way, counted in its entry. It ends once.
#[derive(Debug)]
pub(crate) struct Duty {
    pub cache: Arc<Cache>,
    pub flight: Arc<Flight>,
    open: bool,
    /// For all nodes that share a tier: given back when this ends.
    pub right: Option<FetchRight>,
}

impl Duty {
    pub fn new(cache: Arc<Cache>, flight: Arc<Flight>) -> Duty {
        Duty { cache, flight, open: true, right: None }
    }

    pub fn shard(&self) -> Guard<'_, Shard> {
        self.cache.directory.shard(self.flight.key)
    }

    /// Changes the directory and the flight together.
    pub fn within<R>(&self, mut shard: Guard<'_, Shard>, change: impl FnOnce(&mut Shard, &Arc<Flight>) -> R) -> R {
        change(&mut shard, &self.flight)
    }

    /// The last change of this fetch.
    pub fn close<R>(&mut self, change: impl FnOnce(&mut Shard, &Arc<Flight>) -> R) -> R {
        let cache = Arc::clone(&self.cache);
        self.close_in(cache.directory.shard(self.flight.key), change)
    }

    pub fn close_in<R>(
        &mut self,
        mut shard: Guard<'_, Shard>,
        change: impl FnOnce(&mut Shard, &Arc<Flight>) -> R,
    ) -> R {
        assert!(std::mem::replace(&mut self.open, false), "a fetch ends once");
        let result = change(&mut shard, &self.flight);
        entry_of(&mut shard, &self.flight).fetching -= 1;
        shard.close(self.flight.began());
        shard.tidy(self.flight.key);
        result
    }

    /// Ends the fetch without a whole response. With a time, and where several read what others could have joined, the
    /// failure is remembered: a body that broke off for one alone may be whole for the next. Before a head it counts, too, but
    /// another fetch has to confirm it.
    pub fn give_up(&mut self, failure: Failure, now: Option<Now>) {
        let ((), wakes) = self.close(|shard, flight| {
            let entry = entry_of(shard, flight);
            let could_be_joined = entry.delist(flight);
            let (is_before_head, readers) = flight.with(|inner| (inner.head.is_none(), inner.readers.count()));
            let had_by_several = could_be_joined && !is_before_head && readers > 1;
            let valid = (had_by_several || is_before_head) && entry.invalidated <= flight.began();
            if let Some(now) = now.filter(|_| valid && failure.remember_ms > 0) {
                shard.note_failure(flight.key, failure.clone(), had_by_several, now);
            }
            flight.change(|inner| inner.truncate(failure))
        });
        wakes.send(&self.flight);
    }

    /// Ends the fetch if nobody reads. Readers join under the shard's lock, which is held from the look to the end.
    pub fn give_up_unread(&mut self, failure: Failure) -> bool {
        let mut shard = self.cache.directory.shard(self.flight.key);
        if !self.flight.with(|inner| inner.is_abandoned()) {
            return false;
        }
        self.open = false;
        let entry = entry_of(&mut shard, &self.flight);
        entry.delist(&self.flight);
        entry.fetching -= 1;
        shard.close(self.flight.began());
        self.flight.with(|inner| inner.truncate(failure));
        shard.tidy(self.flight.key);
        true
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        if self.open {
            let text = "the fetch was given up before it had an outcome".into();
            self.give_up(Failure { status: 502, token: "fetch-abandoned", text, remember_ms: 0 }, None);
        }
    }
}

impl Inner {
    /// No more will come.
    pub(crate) fn truncate(&mut self, failure: Failure) {
        let headless_condemned = self.state == FlightState::Condemned && self.head.is_none();
        let keeping = [FlightState::Reserved, FlightState::Described, FlightState::Filling];
        if headless_condemned || keeping.contains(&self.state) {
            self.state.step(FlightState::Failed);
        }
        self.end = End::Truncated(failure);
    }
}

/// The entry of a flight that has not ended: `fetching` keeps it.
pub(crate) fn entry_of<'a>(shard: &'a mut Shard, flight: &Flight) -> &'a mut Entry {
    shard.entry_if_any(flight.key).expect("an entry stays while a fetch of it is under way")
}
