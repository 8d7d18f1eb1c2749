//! Who leaves first: S3-FIFO, SIEVE and LRU over the same small world of weighted tenants.
#![cfg(not(feature = "shuttle"))]

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use store::{Eviction, EvictionKind, Lru, S3Fifo, Seat, Sieve, Tenant, by_kind};

struct Guest {
    name: u64,
    weight: usize,
    over_s: Option<u32>,
    seat: Seat,
}

impl Tenant for Guest {
    fn seat(&self) -> &Seat {
        &self.seat
    }

    fn weight(&self) -> usize {
        self.weight
    }

    fn fingerprint(&self) -> u64 {
        self.name
    }

    fn over_s(&self) -> Option<u32> {
        self.over_s
    }
}

/// A house with a limit, run by a policy.
struct House<E> {
    policy: E,
    limit: usize,
    guests: HashMap<u64, Arc<Guest>>,
}

impl<E: Eviction<Guest>> House<E> {
    fn new(policy: E, limit: usize) -> House<E> {
        House { policy, limit, guests: HashMap::new() }
    }

    /// True for a hit.
    fn visit(&mut self, name: u64, weight: usize) -> bool {
        self.visit_until(name, weight, None)
    }

    fn visit_until(&mut self, name: u64, weight: usize, over_s: Option<u32>) -> bool {
        if let Some(guest) = self.guests.get(&name) {
            guest.seat.touch();
            return true;
        }
        let guest = Arc::new(Guest { name, weight, over_s, seat: Seat::default() });
        self.guests.insert(name, Arc::clone(&guest));
        self.policy.admit(guest);
        self.shrink_to(self.limit);
        false
    }

    fn shrink_to(&mut self, limit: usize) {
        while self.policy.weight() > limit {
            let victim = self.policy.victim().expect("there is weight, so there is a guest");
            assert!(self.guests.remove(&victim.name).is_some(), "who leaves was in");
        }
    }

    fn leave(&mut self, name: u64) {
        if let Some(guest) = self.guests.remove(&name) {
            self.policy.remove(&guest);
        }
    }

    fn hits(&mut self, names: std::ops::Range<u64>, weight: usize) -> usize {
        names.filter(|name| self.visit(*name, weight)).count()
    }
}

#[test]
fn s3_fifo_keeps_the_hot_set_under_a_scan() {
    let mut house = House::new(S3Fifo::new(1_000), 1_000);
    for round in 0..3 {
        assert_eq!(house.hits(0..50, 10), if round == 0 { 0 } else { 50 });
    }
    // Ten times the house passes through, each once.
    house.hits(1_000..2_000, 10);
    assert_eq!(house.hits(0..50, 10), 50);
}

#[test]
fn sieve_keeps_who_was_used_between_two_visits_of_its_hand() {
    let mut house = House::new(Sieve::new(), 1_000);
    for _ in 0..2 {
        house.hits(0..50, 10);
    }
    // As much as fits, once: the hand passes those who were used and takes newcomers.
    house.hits(1_000..1_100, 10);
    assert_eq!(house.hits(0..50, 10), 50);
}

#[test]
fn lru_does_not_and_that_is_the_difference() {
    let mut house = House::new(Lru::new(), 1_000);
    for _ in 0..3 {
        house.hits(0..50, 10);
    }
    house.hits(1_000..2_000, 10);
    assert_eq!(house.hits(0..50, 10), 0);
}

#[test]
fn lru_lets_the_least_recently_used_go() {
    let mut house = House::new(Lru::new(), 50);
    house.hits(0..5, 10);
    house.visit(0, 10);
    house.visit(2, 10);
    house.hits(10..12, 10);
    let mut left: Vec<u64> = house.guests.keys().copied().collect();
    left.sort_unstable();
    assert_eq!(left, [0, 2, 4, 10, 11]);
}

#[test]
fn who_comes_back_after_an_unused_stay_goes_to_the_main_queue() {
    let mut house = House::new(S3Fifo::new(1_000), 1_000);
    house.hits(0..100, 10);
    house.hits(100..150, 10);
    let gone: Vec<u64> = (0..150).filter(|name| !house.guests.contains_key(name)).collect();
    assert_eq!(gone.len(), 50);
    // They were evicted unused, so they are ghosts; now they stay, though again they are used once only.
    for name in &gone {
        house.visit(*name, 10);
    }
    house.hits(1_000..3_000, 10);
    let stayed = gone.iter().filter(|name| house.guests.contains_key(name)).count();
    assert_eq!(stayed, 50);
}

#[test]
fn one_large_guest_does_not_cost_the_small_hot_ones_their_place() {
    let mut house = House::new(S3Fifo::new(1_000), 1_000);
    for _ in 0..3 {
        house.hits(0..50, 10);
    }
    for name in 500..520 {
        house.visit(name, 400);
    }
    assert_eq!(house.hits(0..50, 10), 50);
}

#[test]
fn touched_without_end_still_lets_somebody_go() {
    for kind in EvictionKind::ALL {
        let mut policy = by_kind(kind, 100);
        for name in 0..10 {
            let guest = Arc::new(Guest { name, weight: 10, over_s: None, seat: Seat::default() });
            (0..9).for_each(|_| guest.seat.touch());
            policy.admit(guest);
        }
        assert_eq!((0..10).filter(|_| policy.victim().is_some()).count(), 10);
        assert!(policy.victim().is_none() && policy.count() == 0 && policy.weight() == 0);
    }
}

/// Half of the guests are over, which stand between those that are not.
fn let_the_over_leave(policy: impl Eviction<Guest>) {
    let mut house = House::new(policy, 1_000);
    for _ in 0..4 {
        for name in 0..100 {
            house.visit_until(name, 10, (name % 2 == 0).then_some(60));
        }
    }
    let living = |house: &House<_>| (0..100).filter(|name| name % 2 == 1 && house.guests.contains_key(name)).count();
    house.policy.note_time(59);
    house.hits(200..210, 10);
    let before = living(&house);
    assert!(before < 50, "nobody is over yet, so some of those who live left");
    house.policy.note_time(70);
    house.hits(300..340, 10);
    assert_eq!(living(&house), before);
}

#[test]
fn those_whose_life_is_over_leave_first_wherever_they_sit() {
    let_the_over_leave(S3Fifo::new(1_000));
    let_the_over_leave(Sieve::new());
    let_the_over_leave(Lru::new());
}

#[derive(Clone, Debug)]
enum Step {
    Visit(u64, usize),
    VisitUntil(u64, u32),
    Pass(u32),
    Leave(u64),
    Shrink(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0u64..200, 1usize..400).prop_map(|(name, weight)| Step::Visit(name, weight)),
        4 => (0u64..200, 0u32..5_000).prop_map(|(name, over_s)| Step::VisitUntil(name, over_s)),
        2 => (0u32..5_000).prop_map(Step::Pass),
        2 => (0u64..200).prop_map(Step::Leave),
        1 => (0usize..1_000).prop_map(Step::Shrink),
    ]
}

fn run<E: Eviction<Guest>>(policy: E, steps: &[Step]) {
    let mut house = House::new(policy, 1_000);
    for step in steps {
        match *step {
            Step::Visit(name, weight) => {
                house.visit(name, weight);
            }
            Step::VisitUntil(name, over_s) => {
                house.visit_until(name, 30, Some(over_s));
            }
            Step::Pass(now_s) => house.policy.note_time(now_s),
            Step::Leave(name) => house.leave(name),
            Step::Shrink(limit) => house.shrink_to(limit),
        }
        let weight: usize = house.guests.values().map(|guest| guest.weight).sum();
        assert_eq!((house.policy.weight(), house.policy.count()), (weight, house.guests.len()));
        assert!(weight <= 1_000);
    }
    house.shrink_to(0);
    assert!(house.guests.is_empty() && house.policy.victim().is_none());
}

proptest! {
    #[test]
    fn the_limit_is_respected_and_nobody_is_lost(steps in prop::collection::vec(step(), 1..300)) {
        run(S3Fifo::new(1_000), &steps);
        run(Sieve::new(), &steps);
        run(Lru::new(), &steps);
    }
}
