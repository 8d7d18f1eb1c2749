//! The values that occur most often, of a stream of which there are too many to keep all: Space-Saving (Metwally, Agrawal, El Abbadi,
//! *Efficient Computation of Frequent and Top-k Elements in Data Streams*, 2005).
//!
//! It keeps a fixed number of values. One that is not kept takes the place of the one that has the least, and inherits its count: a
//! count is never too low, and too high by at most `error`. What occurs more often than all occurrences by the number of places is always there.

use std::collections::HashMap;

/// A value that is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptValue<S> {
    pub count: u64,
    /// What of the count may be another's.
    pub error: u64,
    /// What was summed up since it has its place.
    pub sums: S,
}

#[derive(Debug)]
pub struct SpaceSaving<S> {
    places: usize,
    kept: HashMap<String, KeptValue<S>>,
}

impl<S: Default> SpaceSaving<S> {
    pub fn new(places: usize) -> SpaceSaving<S> {
        SpaceSaving { places, kept: HashMap::with_capacity(places) }
    }

    /// It has occurred once more. Returns its sums.
    pub fn add(&mut self, value: &str) -> &mut S {
        if !self.kept.contains_key(value) {
            let error = if self.kept.len() < self.places { 0 } else { self.make_room() };
            self.kept.insert(value.to_owned(), KeptValue { count: error, error, sums: S::default() });
        }
        let kept = self.kept.get_mut(value).expect("it was just put there");
        kept.count += 1;
        &mut kept.sums
    }

    /// The one with the least leaves; its count.
    fn make_room(&mut self) -> u64 {
        let least =
            self.kept.iter().min_by_key(|(_, kept)| kept.count).map(|(value, kept)| (value.clone(), kept.count));
        least.map_or(0, |(value, count)| {
            self.kept.remove(&value);
            count
        })
    }

    pub fn kept(&self) -> impl Iterator<Item = (&str, &KeptValue<S>)> {
        self.kept.iter().map(|(value, kept)| (value.as_str(), kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_occurs_often_is_there_and_its_count_is_off_by_its_error_at_most() {
        let mut saving: SpaceSaving<u64> = SpaceSaving::new(50);
        let mut all: HashMap<String, u64> = HashMap::new();
        let mut seed = 7_u64;
        let count = 100_000;
        for _ in 0..count {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Zipf-like: half of what is drawn is one of a few.
            let value = match seed >> 33 {
                drawn if drawn % 2 == 0 => format!("often-{}", drawn % 16),
                drawn => format!("seldom-{}", drawn % 20_011),
            };
            *all.entry(value.clone()).or_default() += 1;
            *saving.add(&value) += 1;
        }
        assert_eq!(saving.kept().count(), 50);
        for (value, kept) in saving.kept() {
            let real = all[value];
            assert!(kept.count >= real && kept.count - kept.error <= real, "{value}: {kept:?}, really {real}");
            assert!(kept.sums <= real);
        }
        for (value, real) in all.iter().filter(|(_, real)| **real > count / 50) {
            assert!(saving.kept().any(|(kept, _)| kept == value), "{value} occurs {real} times");
        }
    }
}
