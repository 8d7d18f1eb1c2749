//! Buckets of tokens, one for each key and rate: what vmod vsthrottle counts in.
//!
//! A bucket is full at first and fills evenly: so many tokens for each period, never more than that. Varnish's fills by
//! whole tokens and drops the rest at every request, so that a steady stream gets less than its rate.
//!
//! There are never more than so many. They lie in two generations: what is asked for is in the younger one, and when
//! that is full it becomes the older, whose buckets are forgotten unless they are asked for again. A key is known by its
//! hash, of which no client knows the secret.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use parking_lot::Mutex;

/// So much for each while, and how long a key is denied once it has asked for more.
#[derive(Clone, Copy, Debug)]
pub struct Rate<'k> {
    pub key: &'k [u8],
    pub limit: i64,
    pub period_s: f64,
    pub block_s: f64,
}

/// Whether a request is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling {
    pub denied: bool,
    /// Buckets that still counted and were forgotten to make room.
    pub forgotten_count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    filled_s: f64,
    blocked_until_s: f64,
    period_s: f64,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<u128, Bucket>,
    old: HashMap<u128, Bucket>,
}

/// Locked apart, so that cores seldom wait for one another.
const SHARDS_COUNT: usize = 16;

/// All buckets.
#[derive(Debug)]
pub struct TokenBuckets {
    secrets: [RandomState; 2],
    shards: [Mutex<Generations>; SHARDS_COUNT],
    generation_len_max: usize,
}

impl TokenBuckets {
    pub fn new(buckets_max: usize) -> TokenBuckets {
        TokenBuckets {
            secrets: [RandomState::new(), RandomState::new()],
            shards: Default::default(),
            generation_len_max: (buckets_max / (2 * SHARDS_COUNT)).max(1),
        }
    }

    /// Takes a token. Who is blocked loses tokens too, as in Varnish.
    pub fn take(&self, rate: &Rate<'_>, now_s: f64) -> Ruling {
        if !rate.is_one() {
            return Ruling { denied: true, forgotten_count: 0 };
        }
        self.change(rate, now_s, |bucket| {
            let blocked = rate.block_s > 0.0 && now_s < bucket.blocked_until_s;
            let has_token = bucket.tokens >= 1.0;
            if has_token {
                bucket.tokens -= 1.0;
            } else if rate.block_s > 0.0 && !blocked {
                bucket.blocked_until_s = now_s + rate.block_s;
            }
            blocked || !has_token
        })
    }

    pub fn give_back(&self, rate: &Rate<'_>, now_s: f64) -> Ruling {
        if !rate.is_one() {
            return Ruling { denied: true, forgotten_count: 0 };
        }
        self.change(rate, now_s, |bucket| {
            bucket.tokens = (bucket.tokens + 1.0).min(rate.limit as f64);
            false
        })
    }

    /// Whole tokens that are left.
    pub fn left(&self, rate: &Rate<'_>, now_s: f64) -> i64 {
        if !rate.is_one() {
            return 0;
        }
        let id = self.id(rate);
        let shard = self.shard(id).lock();
        let bucket = shard.young.get(&id).or_else(|| shard.old.get(&id));
        bucket.map_or(rate.limit, |bucket| bucket.filled(rate, now_s).tokens as i64)
    }

    /// For how long the key is still blocked.
    pub fn blocked_s(&self, rate: &Rate<'_>, now_s: f64) -> f64 {
        let id = self.id(rate);
        let shard = self.shard(id).lock();
        let bucket = shard.young.get(&id).or_else(|| shard.old.get(&id));
        bucket.map_or(0.0, |bucket| (bucket.blocked_until_s - now_s).max(0.0))
    }

    pub fn remove(&self, rate: &Rate<'_>) {
        let id = self.id(rate);
        let mut shard = self.shard(id).lock();
        shard.young.remove(&id);
        shard.old.remove(&id);
    }

    fn change(&self, rate: &Rate<'_>, now_s: f64, act: impl FnOnce(&mut Bucket) -> bool) -> Ruling {
        let id = self.id(rate);
        let mut shard = self.shard(id).lock();
        let mut forgotten_count = 0;
        if !shard.young.contains_key(&id) {
            let bucket = shard.old.remove(&id).unwrap_or_else(|| Bucket::new(rate, now_s));
            if shard.young.len() >= self.generation_len_max {
                let young = std::mem::take(&mut shard.young);
                let old = std::mem::replace(&mut shard.old, young);
                forgotten_count = old.values().filter(|bucket| bucket.counts(now_s)).count();
            }
            shard.young.insert(id, bucket);
        }
        let bucket = shard.young.entry(id).or_insert_with(|| Bucket::new(rate, now_s));
        *bucket = bucket.filled(rate, now_s);
        Ruling { denied: act(bucket), forgotten_count }
    }

    fn id(&self, rate: &Rate<'_>) -> u128 {
        let half = |secret: &RandomState| {
            let mut hasher = secret.build_hasher();
            rate.key.hash(&mut hasher);
            (rate.limit, rate.period_s.to_bits(), rate.block_s.to_bits()).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        half(&self.secrets[0]) << 64 | half(&self.secrets[1])
    }

    fn shard(&self, id: u128) -> &Mutex<Generations> {
        &self.shards[id as usize % SHARDS_COUNT]
    }
}

impl Rate<'_> {
    /// Whether anything fits into it at all.
    fn is_one(&self) -> bool {
        self.limit > 0 && self.period_s > 0.0
    }
}

impl Bucket {
    fn new(rate: &Rate<'_>, now_s: f64) -> Bucket {
        Bucket { tokens: rate.limit as f64, filled_s: now_s, blocked_until_s: 0.0, period_s: rate.period_s }
    }

    fn filled(mut self, rate: &Rate<'_>, now_s: f64) -> Bucket {
        let limit = rate.limit as f64;
        // A clock that was set back fills nothing, and is believed from then on.
        let passed_s = (now_s - self.filled_s).max(0.0);
        self.tokens = (self.tokens + passed_s / self.period_s * limit).min(limit);
        // Many small sums of what should be a whole token fall just short of it.
        let whole = self.tokens.round();
        if (self.tokens - whole).abs() < 1e-6 {
            self.tokens = whole;
        }
        self.filled_s = now_s;
        self
    }

    /// Whether it is something else than a new one.
    fn counts(&self, now_s: f64) -> bool {
        now_s < self.blocked_until_s || now_s - self.filled_s < self.period_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(key: &str, block_s: f64) -> Rate<'_> {
        Rate { key: key.as_bytes(), limit: 2, period_s: 10.0, block_s }
    }

    #[test]
    fn a_bucket_empties_and_fills() {
        let buckets = TokenBuckets::new(100);
        let check = |times_s: &[f64], denied: &[bool]| {
            let given: Vec<bool> = times_s.iter().map(|now_s| buckets.take(&rate("a", 0.0), *now_s).denied).collect();
            assert_eq!(given, denied, "{times_s:?}");
        };
        check(&[0.0, 0.0, 0.0], &[false, false, true]);
        // A token is five seconds, however often one asks meanwhile.
        check(&[1.0, 2.0, 3.0, 4.9, 5.0, 5.0], &[true, true, true, true, false, true]);
        check(&[1000.0, 1000.0, 1000.0], &[false, false, true]);
        // The clock was set back.
        check(&[0.0, 5.0], &[true, false]);
        assert_eq!(buckets.left(&rate("a", 0.0), 10.0), 1);
        assert_eq!(buckets.left(&rate("a", 0.0), 100.0), 2, "asking takes nothing and gives nothing");
        assert_eq!(buckets.left(&rate("a", 0.0), 10.0), 1);
        assert_eq!(buckets.left(&rate("b", 0.0), 0.0), 2);
        assert!(!buckets.give_back(&rate("a", 0.0), 5.0).denied);
        check(&[5.0, 5.0], &[false, true]);
        buckets.remove(&rate("a", 0.0));
        check(&[5.0, 5.0, 5.0], &[false, false, true]);
    }

    #[test]
    fn who_asked_for_too_much_is_blocked() {
        let buckets = TokenBuckets::new(100);
        let denied = |now_s: f64| buckets.take(&rate("a", 20.0), now_s).denied;
        assert_eq!([denied(0.0), denied(0.0), denied(0.0)], [false, false, true]);
        assert_eq!(buckets.blocked_s(&rate("a", 20.0), 5.0), 15.0);
        assert_eq!([denied(19.0), denied(20.5)], [true, false]);
        assert_eq!(buckets.blocked_s(&rate("a", 20.0), 20.5), 0.0);
        assert_eq!(buckets.blocked_s(&rate("other", 20.0), 0.0), 0.0);
    }

    #[test]
    fn nothing_fits_into_what_is_no_rate() {
        let buckets = TokenBuckets::new(100);
        for (limit, period_s) in [(0, 10.0), (-1, 10.0), (5, 0.0), (5, -1.0), (5, f64::NAN)] {
            let rate = Rate { key: b"a", limit, period_s, block_s: 0.0 };
            assert!(buckets.take(&rate, 0.0).denied && buckets.left(&rate, 0.0) == 0, "{rate:?}");
        }
    }

    #[test]
    fn so_many_keys_are_known_and_no_more() {
        let buckets = TokenBuckets::new(64 * SHARDS_COUNT);
        let mut forgotten_count = 0;
        for number in 0..100_000 {
            let name = format!("key {number}");
            forgotten_count += buckets.take(&rate(&name, 0.0), 0.0).forgotten_count;
            // One that keeps asking stays known.
            assert_eq!(buckets.take(&rate("often", 0.0), 0.0).denied, number >= 2, "{number}");
        }
        let known = |shard: &Mutex<Generations>| {
            let shard = shard.lock();
            shard.young.len() + shard.old.len()
        };
        let known_count: usize = buckets.shards.iter().map(known).sum();
        assert!(known_count <= 64 * SHARDS_COUNT, "{known_count}");
        assert_eq!(known_count + forgotten_count, 100_001);
    }
}
