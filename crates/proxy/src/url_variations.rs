//! What the responses of each path said last about its queries (No-Vary-Search), and the keys that follow from it: a
//! request finds what was stored for another query of its path that makes no difference.
//!
//! A stored response lies under exactly one key: that of its own URL, or, when it came with a variation, that of its
//! path, the variation's generation and what the variation leaves of the query. So whatever lies under a key may
//! answer every request with that key, and what was stored under a variation that has changed since is never found
//! again. A new generation is taken whenever a path's variation is learned: while it was not known, an invalidation
//! could not have reached what it stood for before. The first of a process is drawn at random, so that it is none under
//! which a disk still has something: what is known of variations ends with the process.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};
use std::sync::{Arc, OnceLock};

use cache::{Began, Cache, Elsewhere, Key};
use hashbrown::HashMap;
use message::{Request, TargetForm};
use parking_lot::Mutex;
use rules::UrlVariation;

use crate::limits::{URL_VARIATIONS_MAX, URL_VARIATIONS_SHARDS};

/// Bits of the sieve in front of the table (32 KiB): when that is full, one path in thirty is looked up in vain.
const SIEVE_BITS: usize = 32 * URL_VARIATIONS_MAX;
/// Tells keys under a variation, and digests of paths, from keys of URLs.
const UNDER_VARIATION: u8 = 0x80;
const PATH: u8 = 0x40;
/// Tells what a proxy was asked for from what a server was: a client that may choose where a proxy looks must not choose
/// what a server of the same name answers.
const OF_PROXY: u8 = 0x20;

/// One for all cores.
pub(crate) struct UrlVariations {
    /// Has any response ever varied less than its URL? Until then this is all that a request looks at.
    any: AtomicBool,
    /// Paths that may be in the table. A request for another one takes no lock.
    sieve: Box<[AtomicU64]>,
    shards: Box<[Mutex<Shard>]>,
    generation: AtomicU64,
}

#[derive(Default)]
struct Shard {
    known: HashMap<Key, Arc<KnownVariation>, foldhash::fast::RandomState>,
    /// Oldest first.
    order: VecDeque<Key>,
}

/// The variation of a path.
pub(crate) struct KnownVariation {
    variation: UrlVariation,
    generation: u64,
    /// Since when an invalidation sees it; set when it is learned.
    known_since: OnceLock<Began>,
    /// Responses without it were stored as well, each under its own URL.
    has_plain: AtomicBool,
}

/// Where a response belongs.
pub(crate) struct VariationKey {
    pub(crate) key: Key,
    /// The key of the URL itself.
    plain: Key,
    kind: Kind,
}

enum Kind {
    /// Under its own URL, on a path that is known to have a variation, or on another.
    Plain(Option<Arc<KnownVariation>>),
    /// Under the variation that its path has.
    Varied(Arc<KnownVariation>),
    /// Under one that its path has not had.
    Lesson { path: Key, lesson: Arc<KnownVariation> },
}

impl VariationKey {
    /// What the store must know of a response that was asked for by another key.
    pub(crate) fn elsewhere(&self, asked: Key) -> Option<Elsewhere> {
        let known_since = match &self.kind {
            Kind::Plain(_) => Some(Began::FIRST),
            Kind::Varied(remembered) => remembered.known_since.get().copied(),
            Kind::Lesson { .. } => None,
        };
        let only_target = asked != self.plain;
        (asked != self.key).then_some(Elsewhere { key: self.key, only_target, known_since })
    }
}

impl Default for UrlVariations {
    fn default() -> UrlVariations {
        UrlVariations {
            any: AtomicBool::new(false),
            sieve: (0..SIEVE_BITS / 64).map(|_| AtomicU64::new(0)).collect(),
            shards: (0..URL_VARIATIONS_SHARDS).map(|_| Mutex::default()).collect(),
            generation: AtomicU64::new(RandomState::new().hash_one(UNDER_VARIATION)),
        }
    }
}

impl UrlVariations {
    /// The key to look a request up by.
    #[inline]
    pub(crate) fn key(&self, cache: &Cache, request: &Request<'_>) -> Key {
        if self.any.load(Relaxed) { self.varied_key(cache, request) } else { key_of_url(cache, request) }
    }

    #[cold]
    fn varied_key(&self, cache: &Cache, request: &Request<'_>) -> Key {
        let plain = key_of_url(cache, request);
        match self.recall(key_of_path(cache, request)) {
            // A response to this very URL, without the variation, comes before one to an equivalent URL.
            Some(remembered) if !(remembered.has_plain.load(Relaxed) && cache.holds(plain)) => {
                key_under(cache, request, &remembered)
            }
            _ => plain,
        }
    }

    /// Invalidates, by `act`, every key under which a response to this URL may lie. The URL's own goes first: who
    /// learns a variation too late to be seen here sees, before it stores, that something was invalidated.
    pub(crate) fn invalidate(&self, cache: &Cache, request: &Request<'_>, mut act: impl FnMut(Key)) {
        act(key_of_url(cache, request));
        fence(SeqCst);
        if self.any.load(Relaxed)
            && let Some(remembered) = self.recall(key_of_path(cache, request))
        {
            act(key_under(cache, request, &remembered));
        }
    }

    /// Where a response with this variation belongs.
    pub(crate) fn place(&self, cache: &Cache, request: &Request<'_>, variation: Option<UrlVariation>) -> VariationKey {
        let plain = key_of_url(cache, request);
        let any = self.any.load(Relaxed);
        let Some(variation) = variation else {
            let known = if any { self.recall(key_of_path(cache, request)) } else { None };
            return VariationKey { key: plain, plain, kind: Kind::Plain(known) };
        };
        let path = key_of_path(cache, request);
        let known = if any { self.recall(path) } else { None };
        match known.filter(|known| known.variation == variation) {
            Some(known) => VariationKey { key: key_under(cache, request, &known), plain, kind: Kind::Varied(known) },
            None => {
                let generation = self.generation.fetch_add(1, Relaxed);
                let (known_since, has_plain) = (OnceLock::new(), AtomicBool::new(false));
                let lesson = Arc::new(KnownVariation { variation, generation, known_since, has_plain });
                let key = key_under(cache, request, &lesson);
                VariationKey { key, plain, kind: Kind::Lesson { path, lesson } }
            }
        }
    }

    /// A response is about to be stored in its place.
    pub(crate) fn note(&self, cache: &Cache, place: VariationKey) {
        match place.kind {
            Kind::Plain(Some(remembered)) => remembered.has_plain.store(true, Relaxed),
            Kind::Plain(None) | Kind::Varied(_) => {}
            Kind::Lesson { path, lesson } => self.learn(cache, path, lesson),
        }
    }

    fn recall(&self, path: Key) -> Option<Arc<KnownVariation>> {
        let (word, bit) = sieve_place(path);
        if self.sieve[word].load(Relaxed) & bit == 0 {
            return None;
        }
        self.shard(path).lock().known.get(&path).cloned()
    }

    fn learn(&self, cache: &Cache, path: Key, lesson: Arc<KnownVariation>) {
        let mut shard = self.shard(path).lock();
        if shard.known.insert(path, Arc::clone(&lesson)).is_none() {
            shard.order.push_back(path);
            if shard.order.len() > URL_VARIATIONS_MAX / URL_VARIATIONS_SHARDS
                && let Some(oldest) = shard.order.pop_front()
            {
                shard.known.remove(&oldest);
            }
        }
        let (word, bit) = sieve_place(path);
        self.sieve[word].fetch_or(bit, Relaxed);
        self.any.store(true, Relaxed);
        fence(SeqCst);
        // Nobody else has seen it: the shard is still locked.
        lesson.known_since.get_or_init(|| cache.began());
    }

    fn shard(&self, path: Key) -> &Mutex<Shard> {
        &self.shards[(path.bits() >> 32) as usize % URL_VARIATIONS_SHARDS]
    }
}

fn sieve_place(path: Key) -> (usize, u64) {
    let at = path.bits() as usize % SIEVE_BITS;
    (at / 64, 1 << (at % 64))
}

/// Exactly what is forwarded (design §3), so that no two different requests share a key.
#[inline]
fn key_of_url(cache: &Cache, request: &Request<'_>) -> Key {
    cache.key(parts_of_url(request, &shape(request, u8::from(request.query.is_some()))))
}

/// What the key of a URL is made of, with its shape.
#[inline]
pub(crate) fn parts_of_url<'a>(request: &'a Request<'_>, shape: &'a [u8; 4]) -> [&'a [u8]; 4] {
    [shape, &*request.authority.host, request.path, request.query.unwrap_or(b"")]
}

fn key_of_path(cache: &Cache, request: &Request<'_>) -> Key {
    cache.key([&shape(request, PATH), &*request.authority.host, request.path])
}

fn key_under(cache: &Cache, request: &Request<'_>, remembered: &KnownVariation) -> Key {
    let mut query = Vec::new();
    remembered.variation.normalise(request.query, &mut query);
    let generation = remembered.generation.to_be_bytes();
    cache.key([&shape(request, UNDER_VARIATION), &*request.authority.host, request.path, &generation, &query])
}

/// The part of a key that is the same for a whole origin, but for what the key is of.
#[inline]
pub(crate) fn shape(request: &Request<'_>, kind: u8) -> [u8; 4] {
    let [high, low] = request.authority.port.unwrap_or(0).to_be_bytes();
    let asked_of = if request.form == TargetForm::Absolute { OF_PROXY } else { 0 };
    [request.scheme as u8, high, low, kind | asked_of]
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache::{CacheSettings, Flight, Notifier};
    use message::{Authority, FieldName, Fields, FieldsView, Method, Scheme, Version};

    struct Nobody;

    impl Notifier for Nobody {
        fn post(&self, _: usize, _: Arc<Flight>) {}
    }

    struct Site {
        cache: Arc<Cache>,
        variations: UrlVariations,
    }

    fn site() -> Site {
        Site { cache: Cache::new(CacheSettings::default(), Arc::new(Nobody)), variations: UrlVariations::default() }
    }

    fn request(target: &str) -> Request<'_> {
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        Request {
            method: Method::Get,
            method_text: b"GET",
            version: Version::Http11,
            form: TargetForm::Origin,
            scheme: Scheme::Http,
            authority: Authority::parse(b"t.test", Scheme::Http).expect("a host"),
            path: path.as_bytes(),
            query: query.map(str::as_bytes),
            fields: FieldsView::default(),
        }
    }

    fn variation(value: &str) -> Option<UrlVariation> {
        let mut fields = Fields::default();
        fields.push(FieldName::NoVarySearch, value);
        UrlVariation::of(fields.view())
    }

    impl Site {
        fn key(&self, target: &str) -> Key {
            self.variations.key(&self.cache, &request(target))
        }

        fn reached(&self, target: &str) -> Vec<Key> {
            let mut keys = Vec::new();
            self.variations.invalidate(&self.cache, &request(target), |key| keys.push(key));
            keys
        }

        /// A response to this URL, with this No-Vary-Search, is stored. Returns its key.
        fn store(&self, target: &str, value: &str) -> Key {
            let place = self.variations.place(&self.cache, &request(target), variation(value));
            let key = place.key;
            self.variations.note(&self.cache, place);
            key
        }
    }

    #[test]
    fn queries_without_a_difference_share_a_key() {
        let site = site();
        let plain = site.key("/a?id=1&utm=x");
        let stored = site.store("/a?id=1&utm=x", "params=(\"utm\")");
        assert_ne!(stored, plain);
        for target in ["/a?id=1&utm=x", "/a?utm=y&id=1", "/a?id=1", "/a?i%64=1"] {
            assert_eq!(site.key(target), stored, "{target}");
            assert!(site.reached(target).contains(&stored), "{target}");
        }
        for target in ["/a?id=2", "/a", "/b?id=1", "/a/?id=1"] {
            assert_ne!(site.key(target), stored, "{target}");
        }
        assert_eq!(site.store("/a?id=1&utm=z", "params=(\"utm\")"), stored);
    }

    #[test]
    fn another_variation_never_finds_what_was_stored_under_the_last() {
        let site = site();
        let first = site.store("/a?id=1", "params=(\"utm\")");
        let second = site.store("/a?id=1", "except=(\"id\")");
        let third = site.store("/a?id=1", "params=(\"utm\")");
        assert!(first != second && second != third && first != third);
        assert_eq!(site.key("/a?id=1&utm=x"), third);
    }

    #[test]
    fn a_response_without_the_variation_lies_under_its_own_url() {
        let site = site();
        let plain = site.key("/a?id=1");
        let varied = site.store("/a?id=2", "params=(\"utm\")");
        assert_eq!(site.store("/a?id=1", ""), plain);
        // Nothing is stored there, so the variation still counts.
        assert_ne!(site.key("/a?id=1"), plain);
        assert_eq!(site.key("/a?id=2&utm=1"), varied);
        assert_eq!(site.reached("/a?id=1")[0], plain);
    }

    #[test]
    fn the_table_is_bounded() {
        let site = site();
        let targets: Vec<String> = (0..URL_VARIATIONS_MAX * 2).map(|n| format!("/{n}?a")).collect();
        for target in &targets {
            site.store(target, "except=()");
        }
        let known: usize = site.variations.shards.iter().map(|shard| shard.lock().known.len()).sum();
        assert!(known <= URL_VARIATIONS_MAX && known > URL_VARIATIONS_MAX / 2, "{known}");
        let ordered: usize = site.variations.shards.iter().map(|shard| shard.lock().order.len()).sum();
        assert_eq!(ordered, known);
        let last = &targets[targets.len() - 1];
        assert_eq!(site.key(last), site.key(&last.replace("?a", "?b")));
    }
}
