//! A trace through the nodes of a fleet: who has what, who asks whom, and what goes over the wires between them. The memories are those of
//! `store::TriedCache`, owners are drawn as the nodes draw them. No time passes within a request, so no two are for one object at once, no node
//! is passed over for its load, and none fails.

use proxy::NodeDraws;
use store::{Ask, EvictionKind, Tried, TriedCache};

use crate::limits::{SHARED_ITEM_BYTES, SHARED_OBJECT_BYTES_MAX};
use crate::load_tool::simulation::trace_file::Trace;

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetTried {
    pub nodes: u32,
    /// Of each node.
    pub memory: Tried,
    /// A miss goes to the owner of its object in place of the origin.
    pub owners: bool,
    /// Of a cache that is shared by all, asked before the origin.
    pub shared_bytes: Option<u64>,
    /// So many requests go by before anything is counted.
    pub warm_requests: u64,
}

/// Requests, and the bytes of their bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub requests: u64,
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, ask: &Ask) {
        self.requests += 1;
        self.bytes += u64::from(ask.bytes);
    }
}

/// How it went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetFigures {
    /// What clients asked.
    pub asked: Tally,
    /// How many objects that was for.
    pub objects: u64,
    /// Answered from the memory of the node that was asked,
    pub own_hits: Tally,
    /// from that of the owner,
    pub owner_hits: Tally,
    /// from the shared cache,
    pub shared_hits: Tally,
    /// or from the origin.
    pub fetched: Tally,
    /// What one node answered another one.
    pub between: Tally,
    /// What was put into the shared cache.
    pub to_shared: Tally,
    /// What the busiest node answered, to clients and to other nodes, against the mean of all; 1 where all have the same.
    pub busiest: f64,
    /// The bytes that the busiest owner sent to others, against the mean of all.
    pub busiest_owner: f64,
}

/// The nodes at one time.
struct Nodes {
    memories: Vec<TriedCache>,
    shared: Option<TriedCache>,
    answered: Vec<u64>,
    sent_bytes: Vec<u64>,
}

/// Who owns each object. Drawn once for all replays of a number of nodes: a draw is of all nodes.
fn owners(objects: u32, nodes: u32) -> Vec<u32> {
    let labels: Vec<String> = (0..nodes).map(|node| format!("node-{node}:80")).collect();
    let draws = NodeDraws::new(labels.iter().map(|label| (label.as_str(), 1)));
    let owner = |object: u32| draws.owner(NodeDraws::key_of(&object.to_le_bytes())).map_or(0, |at| at as u32);
    (0..objects).map(owner).collect()
}

/// Requests are dealt to the nodes in turn.
pub fn replay_in_fleet(trace: &Trace, tried: FleetTried) -> FleetFigures {
    let owners = if tried.owners { owners(trace.objects, tried.nodes) } else { Vec::new() };
    let shared = tried.shared_bytes.map(|bytes| TriedCache::new(shared_cache(bytes, &tried.memory)));
    let count = tried.nodes as usize;
    let memories = (0..count).map(|_| TriedCache::new(tried.memory)).collect();
    let mut nodes = Nodes { memories, shared, answered: vec![0; count], sent_bytes: vec![0; count] };
    let (mut figures, mut was_asked) = (FleetFigures::default(), vec![false; trace.objects as usize]);
    for (number, ask) in trace.asks.iter().enumerate() {
        let at = number % count;
        let owner = owners.get(ask.object as usize).map_or(at, |owner| *owner as usize);
        if number as u64 == tried.warm_requests {
            figures = FleetFigures::default();
            nodes.answered.fill(0);
            nodes.sent_bytes.fill(0);
            was_asked.fill(false);
        }
        was_asked[ask.object as usize] = true;
        figures.asked.add(ask);
        nodes.answer(ask, at, owner, &mut figures);
    }
    figures.objects = was_asked.iter().filter(|was| **was).count() as u64;
    figures.busiest = above_mean(&nodes.answered);
    figures.busiest_owner = above_mean(&nodes.sent_bytes);
    figures
}

/// As memcached and Redis evict, in what they take for an item.
fn shared_cache(limit_bytes: u64, memory: &Tried) -> Tried {
    Tried { kind: EvictionKind::Lru, limit_bytes, object_bytes: SHARED_ITEM_BYTES, standby_s: 0, ..*memory }
}

impl Nodes {
    /// A client asks the node `at`.
    fn answer(&mut self, ask: &Ask, at: usize, owner: usize, figures: &mut FleetFigures) {
        self.answered[at] += 1;
        if self.memories[at].ask(ask).is_some() {
            return figures.own_hits.add(ask);
        }
        if owner == at {
            self.fetch(ask, at, figures);
            return;
        }
        self.answered[owner] += 1;
        self.sent_bytes[owner] += u64::from(ask.bytes);
        figures.between.add(ask);
        let stored_s = match self.memories[owner].ask(ask) {
            Some(stored_s) => {
                figures.owner_hits.add(ask);
                stored_s
            }
            None => self.fetch(ask, owner, figures),
        };
        // A copy, by the rules for what an origin sends, with the age that it has.
        self.memories[at].store(ask, stored_s);
    }

    /// A node that nobody is asked in the place of gets what it does not have. When that came from the origin.
    fn fetch(&mut self, ask: &Ask, at: usize, figures: &mut FleetFigures) -> u32 {
        let is_shared = u64::from(ask.bytes) <= SHARED_OBJECT_BYTES_MAX;
        let mut shared = self.shared.as_mut().filter(|_| is_shared);
        let stored_s = match shared.as_mut().and_then(|shared| shared.ask(ask)) {
            Some(stored_s) => {
                figures.shared_hits.add(ask);
                stored_s
            }
            None => {
                figures.fetched.add(ask);
                if let Some(shared) = shared {
                    figures.to_shared.add(ask);
                    shared.store(ask, ask.at_s);
                }
                ask.at_s
            }
        };
        self.memories[at].store(ask, stored_s);
        stored_s
    }
}

/// How much more than the mean the largest is.
fn above_mean(counts: &[u64]) -> f64 {
    let (largest, sum) = (counts.iter().max().copied().unwrap_or(0), counts.iter().sum::<u64>());
    if sum == 0 { 0.0 } else { largest as f64 * counts.len() as f64 / sum as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_tool::simulation::made_trace::{MadeKind, Recipe, make};

    const NO_OWNERS: FleetTried = FleetTried {
        nodes: 1,
        memory: Tried {
            kind: EvictionKind::S3Fifo,
            limit_bytes: u64::MAX >> 1,
            object_bytes: 0,
            ttl_s: None,
            standby_s: 0,
        },
        owners: false,
        shared_bytes: None,
        warm_requests: 0,
    };

    fn small(objects: &[u32]) -> Trace {
        let asks = objects.iter().map(|object| Ask { object: *object, bytes: 10, at_s: 0 }).collect();
        Trace { asks, objects: objects.iter().max().map_or(0, |last| last + 1), ..Trace::default() }
    }

    fn zipf() -> Trace {
        make(&Recipe { kind: MadeKind::Zipf, requests: 60_000, objects: 2_000, seed: 3 })
    }

    /// Pairs of a node and an object that the trace has, and objects: what memories without bounds miss.
    fn pairs(trace: &Trace, nodes: usize) -> u64 {
        let mut seen = std::collections::HashSet::new();
        trace.asks.iter().enumerate().filter(|(at, ask)| seen.insert((at % nodes, ask.object))).count() as u64
    }

    #[test]
    fn one_node_misses_what_one_memory_misses() {
        let trace = make(&Recipe { kind: MadeKind::Site, requests: 20_000, objects: 2_000, seed: 3 });
        for (limit_bytes, ttl_s) in [(1 << 20, None), (8 << 20, Some(3_600)), (64 << 20, None)] {
            let memory = Tried { limit_bytes, ttl_s, object_bytes: 1_480, ..NO_OWNERS.memory };
            let misses = store::replay(&trace.asks, memory);
            for owners in [false, true] {
                let figures = replay_in_fleet(&trace, FleetTried { memory, owners, ..NO_OWNERS });
                assert_eq!((figures.fetched.requests, figures.fetched.bytes), (misses.missed, misses.missed_bytes));
                assert_eq!(figures.asked, Tally { requests: misses.requests, bytes: misses.bytes });
                assert_eq!((figures.between, figures.busiest), (Tally::default(), 1.0));
            }
        }
    }

    #[test]
    fn with_room_for_all_each_node_fetches_for_itself_and_owners_fetch_once() {
        let trace = zipf();
        for nodes in [2, 3, 10] {
            let alone = replay_in_fleet(&trace, FleetTried { nodes, ..NO_OWNERS });
            let pairs = pairs(&trace, nodes as usize);
            assert_eq!((alone.fetched.requests, alone.owner_hits.requests), (pairs, 0));
            let owned = replay_in_fleet(&trace, FleetTried { nodes, owners: true, ..NO_OWNERS });
            assert_eq!((owned.fetched.requests, owned.objects), (u64::from(trace.objects), u64::from(trace.objects)));
            // Every first request at a node that does not own the object goes to the owner, which has it or fetches it; an owner that
            // was asked has it before a client of its own comes.
            let owner_of = owners(trace.objects, nodes);
            let mut seen = std::collections::HashSet::new();
            let elsewhere = trace.asks.iter().enumerate().filter(|(at, ask)| {
                let node = at % nodes as usize;
                node != owner_of[ask.object as usize] as usize && seen.insert((node, ask.object))
            });
            assert_eq!(owned.between.requests, elsewhere.count() as u64);
            assert!((1.0..1.5).contains(&owned.busiest), "{owned:?}");
            let shared = replay_in_fleet(&trace, FleetTried { nodes, shared_bytes: Some(1 << 40), ..NO_OWNERS });
            let large: std::collections::HashSet<u32> = trace
                .asks
                .iter()
                .filter(|ask| u64::from(ask.bytes) > SHARED_OBJECT_BYTES_MAX)
                .map(|ask| ask.object)
                .collect();
            let large_pairs = {
                let asks = trace.asks.iter().enumerate().map(|(at, ask)| (at % nodes as usize, ask.object));
                asks.filter(|(_, object)| large.contains(object)).collect::<std::collections::HashSet<_>>().len()
            };
            let once = trace.objects as usize - large.len();
            assert!(!large.is_empty());
            assert_eq!(
                shared.fetched.requests,
                (once + large_pairs) as u64,
                "what is too long goes past the shared cache"
            );
            assert_eq!(shared.to_shared.requests, once as u64);
        }
    }

    /// Two nodes, told by hand: requests 0, 2, 4 … go to the first, the others to the second.
    #[test]
    fn every_answer_comes_from_one_place() {
        let trace = small(&[0, 0, 0, 0, 0, 0]);
        let figures = replay_in_fleet(&trace, FleetTried { nodes: 2, ..NO_OWNERS });
        assert_eq!((figures.fetched.requests, figures.own_hits.requests), (2, 4));
        let shared = replay_in_fleet(&trace, FleetTried { nodes: 2, shared_bytes: Some(1_000), ..NO_OWNERS });
        assert_eq!((shared.fetched.requests, shared.shared_hits.requests, shared.own_hits.requests), (1, 1, 4));
        assert_eq!((shared.to_shared.bytes, shared.shared_hits.bytes), (10, 10));
        let owned = replay_in_fleet(&trace, FleetTried { nodes: 2, owners: true, ..NO_OWNERS });
        let is_first_the_owner = owners(1, 2) == [0];
        let hits = if is_first_the_owner { (1, 1) } else { (0, 1) };
        assert_eq!((owned.owner_hits.requests, owned.between.requests), hits);
        assert_eq!((owned.fetched.requests, owned.own_hits.requests), (1, if is_first_the_owner { 4 } else { 5 }));
        for figures in
            [figures, shared, owned, replay_in_fleet(&zipf(), FleetTried { nodes: 7, owners: true, ..NO_OWNERS })]
        {
            let parts = [figures.own_hits, figures.owner_hits, figures.shared_hits, figures.fetched];
            assert_eq!(parts.iter().map(|part| part.requests).sum::<u64>(), figures.asked.requests);
            assert_eq!(parts.iter().map(|part| part.bytes).sum::<u64>(), figures.asked.bytes);
        }
    }

    #[test]
    fn a_node_without_memory_keeps_nothing_and_a_shared_cache_evicts_what_was_used_last_longest_ago() {
        let memory = Tried { limit_bytes: 0, ..NO_OWNERS.memory };
        let room_for_two = 2 * (10 + SHARED_ITEM_BYTES);
        let tried = FleetTried { nodes: 3, memory, shared_bytes: Some(room_for_two), ..NO_OWNERS };
        let figures = replay_in_fleet(&small(&[0, 1, 0, 2, 0, 1, 2]), tried);
        // 0 and 1 come, 0 is had, 2 displaces 1, 0 is had, 1 displaces 2, 2 comes anew.
        assert_eq!((figures.shared_hits.requests, figures.fetched.requests), (2, 5));
        let owned = replay_in_fleet(&small(&[0; 9]), FleetTried { owners: true, shared_bytes: None, ..tried });
        assert_eq!((owned.fetched.requests, owned.owner_hits.requests, owned.between.requests), (9, 0, 6));
    }

    /// A copy has the age that the owner's has: both are over at once, and the owner asks the origin once for both.
    #[test]
    fn a_copy_of_an_owner_is_no_fresher_than_the_owner() {
        let ask = |at_s| Ask { object: 0, bytes: 10, at_s };
        // Node 0, 1, 0, 1 …
        let trace = Trace { asks: [0, 50, 59, 59, 60, 61].map(ask).to_vec(), objects: 1, ..Trace::default() };
        let memory = Tried { ttl_s: Some(60), ..NO_OWNERS.memory };
        for owners in [true, false] {
            let figures = replay_in_fleet(&trace, FleetTried { nodes: 2, memory, owners, ..NO_OWNERS });
            // Without owners the second node fetched at 50, and has that until 110.
            assert_eq!(figures.fetched.requests, if owners { 2 } else { 3 }, "{figures:?}");
        }
        let shared = FleetTried { nodes: 2, memory, shared_bytes: Some(1_000), ..NO_OWNERS };
        assert_eq!(replay_in_fleet(&trace, shared).fetched.requests, 2);
    }

    #[test]
    fn what_is_warm_is_not_counted() {
        let trace = small(&[0, 0, 1, 1, 0, 0]);
        let figures = replay_in_fleet(&trace, FleetTried { nodes: 2, warm_requests: 2, ..NO_OWNERS });
        assert_eq!((figures.asked.requests, figures.objects, figures.fetched.requests), (4, 2, 2));
    }

    /// Of requests that are spread by a Zipf law, the object at the top is one owner's.
    #[test]
    fn the_busiest_owner_is_told_apart() {
        let memory = Tried { limit_bytes: 0, ..NO_OWNERS.memory };
        let mut hot = vec![0; 900];
        hot.extend(1..=100);
        let figures = replay_in_fleet(&small(&hot), FleetTried { nodes: 10, memory, owners: true, ..NO_OWNERS });
        // Of what others ask, nine tenths and its share of the rest are for it, of ten nodes.
        assert!((9.0..9.4).contains(&figures.busiest_owner), "{figures:?}");
        assert!(figures.busiest < figures.busiest_owner, "{figures:?}");
    }
}
