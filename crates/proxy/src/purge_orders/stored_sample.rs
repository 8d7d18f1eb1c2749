//! One of the stored responses that are meant, to be shown.

use cache::{Cache, Now, Object};

/// A stored response, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSample {
    /// That it was fetched for; `None` where that is not known.
    pub url: Option<String>,
    /// Half of the digest under which it lies.
    pub key_bits: u64,
    pub status: u16,
    pub age_s: u64,
    pub body_bytes: u64,
    pub hits: u32,
    pub is_fresh: bool,
}

impl StoredSample {
    pub(super) fn of(object: &Object, now: Now) -> StoredSample {
        StoredSample {
            url: object.url().map(|url| String::from_utf8_lossy(url).into_owned()),
            key_bits: object.key().bits(),
            status: object.status().0,
            age_s: object.lifetimes(now).age_ms / 1_000,
            body_bytes: object.sliced().map_or(object.body_len(), |sliced| sliced.complete),
            hits: object.hits(),
            is_fresh: object.is_fresh_at(now),
        }
    }
}

/// Samples that are being gathered, and how many objects were meant.
pub(super) struct Gathered {
    pub samples: Vec<StoredSample>,
    pub matched: u64,
    samples_max: usize,
    now: Now,
}

impl Gathered {
    pub fn new(samples_max: usize, now: Now) -> Gathered {
        Gathered { samples: Vec::new(), matched: 0, samples_max, now }
    }

    pub fn note(&mut self, object: &Object) {
        self.matched += 1;
        if self.samples.len() < self.samples_max {
            self.samples.push(StoredSample::of(object, self.now));
        }
    }

    /// Are there as many as were wanted?
    pub fn is_full(&self) -> bool {
        self.samples.len() >= self.samples_max
    }
}

/// The tags of stored responses, as they are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagCount {
    pub tag: String,
    /// The field that names it.
    pub field: &'static str,
    pub urls: usize,
    pub objects: usize,
}

/// Named by one of the responses that carry it; `None` where they have left meanwhile.
pub(super) fn tag_count(cache: &Cache, tag: &cache::TagUse) -> Option<TagCount> {
    let carriers = cache.stored_under(tag.one_of_them);
    let named = |object: &std::sync::Arc<Object>| crate::response_tags::named(cache, object.fields(), tag.bits);
    let (field, name) = carriers.iter().find_map(named)?;
    Some(TagCount { tag: name, field, urls: tag.keys, objects: tag.objects })
}
