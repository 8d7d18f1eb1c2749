//! How many requests of somebody are under way at a time: a table of counts, for all cores together. Who has none is not in it, so that it is as
//! large as what is under way.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::limits::UNDER_WAY_SHARDS;
use crate::route_rules::field_template::FieldTemplate;

/// How many requests somebody may have under way.
#[derive(Clone, Debug)]
pub struct ConnectionLimit {
    /// At least 1.
    pub requests_max: u32,
    pub by: CountedBy,
    /// What the refusal is.
    pub status: u16,
    /// Tells it from the limits of other routes.
    pub zone: String,
}

/// Whose requests are counted together.
#[derive(Clone, Debug)]
pub enum CountedBy {
    /// The client's address, or its network where that is of IPv6.
    Client,
    /// All of the route.
    Route,
    Key(FieldTemplate),
}

impl CountedBy {
    /// Is it by who the client has shown to be?
    pub(crate) fn needs_user(&self) -> bool {
        matches!(self, CountedBy::Key(key) if key.has_user())
    }
}

/// Counts by a keyed digest of who it is.
#[derive(Debug)]
pub(crate) struct UnderWay(Box<[Mutex<HashMap<u64, u32>>]>);

/// One request that is counted as long as this lives.
#[derive(Debug)]
pub(crate) struct Counted {
    table: Arc<UnderWay>,
    who: u64,
}

impl Default for UnderWay {
    fn default() -> UnderWay {
        UnderWay((0..UNDER_WAY_SHARDS).map(|_| Mutex::default()).collect())
    }
}

impl UnderWay {
    /// Counts one more of whoever this is, unless there are so many.
    pub(crate) fn begin(self: &Arc<UnderWay>, who: u64, requests_max: u32) -> Option<Counted> {
        let mut shard = self.shard(who).lock();
        let count = shard.entry(who).or_default();
        if *count >= requests_max {
            return None;
        }
        *count += 1;
        Some(Counted { table: Arc::clone(self), who })
    }

    fn shard(&self, who: u64) -> &Mutex<HashMap<u64, u32>> {
        &self.0[(who >> 32) as usize % UNDER_WAY_SHARDS]
    }
}

impl Counted {
    pub(crate) fn is_of(&self, who: u64) -> bool {
        self.who == who
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut shard = self.table.shard(self.who).lock();
        if let Some(count) = shard.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                shard.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_so_many_and_who_has_none_is_forgotten() {
        let table = Arc::new(UnderWay::default());
        let (first, second) = (table.begin(1, 2), table.begin(1, 2));
        assert!(first.is_some() && second.is_some() && table.begin(1, 2).is_none());
        assert!(table.begin(2, 2).is_some(), "another has a share of its own");
        drop(first);
        assert!(table.begin(1, 2).is_some());
        drop(second);
        assert_eq!(table.0.iter().map(|shard| shard.lock().len()).sum::<usize>(), 0);
    }
}
