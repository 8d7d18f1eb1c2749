//! Bodies that are too large to be kept in one piece: an outline, and slices that come and go one by one.
//!
//! The outline is a stored response like every other but for its body: it is found, judged, validated, purged and banned.
//! It carries a stamp, and its slices are found under keys made of that stamp and their number, and by nothing else. So
//! whoever takes the outline away has taken all slices away; they leave by themselves, for nobody asks for them any more.
//! A slice knows no freshness: as long as the outline is confirmed, its slices are what it was made of.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use message::{FieldName, Request, ResponseHead, Status};
use rules::Facts;
use store::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::cache::Cache;
use crate::disk_level::DiskLevel;
use crate::flight::{Failure, Flight};
use crate::follower::Follower;
use crate::key::{Key, random_number};
use crate::limits::OBJECT_SHARE_SHIFT;
use crate::object::Object;
use crate::recall::Recalled;
use crate::ticket::{Description, StoreAs, Ticket};
use crate::wishes::Now;

/// How a body lies in slices: all of `slice_bytes`, but the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sliced {
    /// Of the whole representation.
    pub complete: u64,
    pub slice_bytes: u64,
    /// Drawn when the outline was made.
    pub(crate) stamp: u64,
}

/// Where a slice is.
#[derive(Debug)]
pub enum SliceAnswer {
    Held(Arc<Object>),
    /// Nobody has it: the right and the duty to fetch it.
    Fetch(Ticket),
    /// On its way.
    Busy(Follower),
    /// Its fetch failed a moment ago.
    Failed(Failure),
}

/// Room that a fetch is about to take.
#[must_use]
#[derive(Debug)]
pub struct SliceUnderWay {
    cache: Arc<Cache>,
    bytes: usize,
}

impl Drop for SliceUnderWay {
    fn drop(&mut self) {
        self.cache.slices_under_way.fetch_sub(self.bytes, Relaxed);
    }
}

impl Sliced {
    /// `slice_bytes` must not be 0.
    pub fn new(complete: u64, slice_bytes: u64) -> Sliced {
        assert!(slice_bytes > 0, "a slice holds something");
        Sliced { complete, slice_bytes, stamp: random_number() }
    }

    /// As it was written on a disk. `None` for what nobody wrote.
    pub(crate) fn read([complete, slice_bytes, stamp]: [u64; 3]) -> Option<Sliced> {
        (slice_bytes > 0).then_some(Sliced { complete, slice_bytes, stamp })
    }

    pub fn count(self) -> u64 {
        self.complete.div_ceil(self.slice_bytes)
    }

    /// The slice that a byte is in.
    pub fn number_at(self, position: u64) -> u64 {
        position / self.slice_bytes
    }

    /// The bytes of a slice, in the representation.
    pub fn range(self, number: u64) -> Range<u64> {
        let from = number.saturating_mul(self.slice_bytes).min(self.complete);
        from..from.saturating_add(self.slice_bytes).min(self.complete)
    }
}

impl Object {
    /// How a slice of the body of this outline is stored whose bytes are to follow. By itself it is never over: what it is
    /// good for the outline says, which is confirmed without it.
    pub fn slice_description(&self, range: &Range<u64>, now: Now) -> Description {
        let mut head = ResponseHead::new(Status::PARTIAL_CONTENT);
        if let Some(etag) = self.etag() {
            head.fields.push(FieldName::Etag, etag);
        }
        head.fields.shrink();
        let head = Arc::new(head);
        let store_as = StoreAs {
            facts: Facts { always_validate: true, ..self.facts() },
            lifetimes: None,
            vary: None,
            rendered: Bytes::new(),
            partial: None,
            whole: None,
            sliced: None,
            elsewhere: None,
            groups: None,
            tags: None,
        };
        Description {
            head: Arc::clone(&head),
            shared_head: head,
            length: Some(range.end - range.start),
            storable: Some(store_as),
            uncacheable_ms: 0,
            mark: None,
            now,
        }
    }
}

impl Cache {
    /// How large a body must be at least to be kept in slices: in one piece it would not be kept.
    pub fn is_to_be_sliced(&self, complete: u64) -> bool {
        complete > self.object_bytes_max()
    }

    /// Slices of at most so many bytes, smaller where one would not be kept. It is the same whatever memory is short of at
    /// the moment: slices of two sizes are none of one another's.
    pub fn slice_bytes(&self, wanted: u64) -> u64 {
        wanted.min(self.settings.object_bytes_max).min((self.settings.memory_bytes_max >> OBJECT_SHARE_SHIFT) as u64)
    }

    fn slice_key(&self, sliced: Sliced, number: u64) -> Key {
        self.key([&b"slice"[..], &sliced.stamp.to_le_bytes(), &number.to_le_bytes()])
    }

    /// Looks for a slice. The request is the one that the outline answers.
    pub fn ask_slice(
        self: &Arc<Self>,
        sliced: Sliced,
        number: u64,
        request: &Request<'_>,
        core: usize,
        now: Now,
    ) -> SliceAnswer {
        let key = self.slice_key(sliced, number);
        let mut shard = self.directory.shard(key);
        let began = self.invalidation.load(Acquire);
        let order = shard.next_order();
        if let Some(object) = shard.only_object(key) {
            object.touch(now);
            return SliceAnswer::Held(Arc::clone(object));
        }
        let entry = shard.entry(key);
        if let Some(object) = entry.find(request.fields, true).and_then(|slot| slot.whole.clone()) {
            object.touch(now);
            return SliceAnswer::Held(object);
        }
        if let Some(failure) = entry.recent_failure(now) {
            return SliceAnswer::Failed(failure);
        }
        if let Some(flight) = entry.joinable(request.fields, true).cloned() {
            let slot = flight.with(|inner| inner.readers.join(core));
            return SliceAnswer::Busy(Follower::new(flight, slot, core).waiting(None, None, 0));
        }
        entry.fetching += 1;
        let flight = Flight::new(key, began, order, core, Arc::clone(&self.courier));
        entry.list_new(&flight, request.fields);
        shard.open(flight.began);
        drop(shard);
        SliceAnswer::Fetch(Ticket::new(Arc::clone(self), flight, request.to_head(), None))
    }

    /// Is a slice in memory, or perhaps on a disk? No I/O.
    pub fn may_have_slice(&self, sliced: Sliced, number: u64) -> bool {
        let key = self.slice_key(sliced, number);
        self.holds(key) || self.may_recall(key)
    }

    /// Is there room for a slice beside those that are under way: in memory, and in what waits for its disk, if there is
    /// one? Evicts what is in the way.
    pub fn has_room_for_slice(&self, sliced: Sliced, number: u64) -> bool {
        let more = self.slices_under_way.load(Relaxed) + sliced.slice_bytes as usize;
        let is_busy = |disk: &DiskLevel| disk.tier.is_busy(self.slice_key(sliced, number).bits(), more);
        !self.disk.as_ref().is_some_and(is_busy) && self.make_room(more)
    }

    /// A slice is about to be fetched: as long as this lives it counts as one that needs room.
    pub fn slice_under_way(self: &Arc<Self>, sliced: Sliced) -> SliceUnderWay {
        let bytes = sliced.slice_bytes as usize;
        self.slices_under_way.fetch_add(bytes, Relaxed);
        SliceUnderWay { cache: Arc::clone(self), bytes }
    }

    /// Brings a slice from the disk into memory. True if it is there now.
    pub async fn recall_slice(&self, sliced: Sliced, number: u64, request: &Request<'_>, now: Now) -> bool {
        let key = self.slice_key(sliced, number);
        self.may_recall(key) && self.recall(key, request, now).await == Recalled::Stored
    }

    /// The origin has another representation by now: the outline is not to be found any more. Its readers may finish with
    /// the slices that are there.
    pub fn outdate(&self, outline: &Arc<Object>) {
        let mut shard = self.directory.shard(outline.key);
        if shard.remove(outline) {
            self.part_with(&[Arc::clone(outline)].into_iter().collect());
            self.forget_on_disk(outline.key, outline.variant);
        }
    }
}
