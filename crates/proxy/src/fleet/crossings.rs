//! Two nodes that each take the other for the owner of a URL would wait for one another until both give up: each has a fetch that asks the
//! other, and answers the other's request from that very fetch. So of a URL a node either asks an owner, or answers others, and never both at
//! once: whoever comes second is told so, and goes to the origin.
//!
//! Nodes that have the same list do not meet here.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// What is under way between nodes, by what stands for its URL.
#[derive(Debug, Default)]
pub(crate) struct Crossings(Mutex<HashMap<u64, CrossingState>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CrossingSide {
    /// Fetches that ask an owner.
    Asks,
    /// Other nodes' requests that are being answered.
    Answers,
}

#[derive(Debug)]
struct CrossingState {
    side: CrossingSide,
    count: usize,
}

/// One that is under way. Dropped, it is over.
#[derive(Debug)]
pub(crate) struct Crossing {
    of: Arc<Crossings>,
    key: u64,
}

impl Crossings {
    /// A fetch is about to ask an owner. `None`: other nodes wait for what it would bring.
    pub(crate) fn ask(self: &Arc<Self>, key: u64) -> Option<Crossing> {
        self.begin(key, CrossingSide::Asks)
    }

    /// Another node asks. `None`: what would answer it is asked of an owner.
    pub(crate) fn answer(self: &Arc<Self>, key: u64) -> Option<Crossing> {
        self.begin(key, CrossingSide::Answers)
    }

    fn begin(self: &Arc<Self>, key: u64, side: CrossingSide) -> Option<Crossing> {
        let mut all = self.0.lock();
        let under_way = all.entry(key).or_insert(CrossingState { side, count: 0 });
        if under_way.side != side {
            return None;
        }
        under_way.count += 1;
        Some(Crossing { of: Arc::clone(self), key })
    }
}

impl Drop for Crossing {
    fn drop(&mut self) {
        let mut all = self.of.0.lock();
        if let Some(under_way) = all.get_mut(&self.key) {
            under_way.count -= 1;
            if under_way.count == 0 {
                all.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_url_a_node_asks_or_answers() {
        let crossings = Arc::new(Crossings::default());
        let asks = [crossings.ask(1), crossings.ask(1)];
        assert!(asks.iter().all(Option::is_some));
        assert!(crossings.answer(1).is_none() && crossings.answer(2).is_some());
        let [first, second] = asks;
        drop(first);
        assert!(crossings.answer(1).is_none());
        drop(second);
        let answers = crossings.answer(1);
        assert!(answers.is_some() && crossings.ask(1).is_none());
        drop(answers);
        assert!(crossings.0.lock().is_empty());
    }
}
