//! Bodies that are too large to be kept in one piece: a manifest, and slices that come and go one by one.
//!
//! The manifest is a stored response like every other but for its body: it is found, judged, validated, purged and banned.
//! It carries a stamp, and its slices are found under keys made of that stamp and their number, and by nothing else. So
//! whoever takes the manifest away has taken all slices away; they leave by themselves, for nobody asks for them any more.
//! A slice knows no freshness: as long as the manifest is confirmed, its slices are what it was made of.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use message::{FieldName, Request, ResponseHead, Status};
use rules::Facts;
use store::limits::LEAVING_SLACK_SHIFT;
use store::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::ban_list::Trial;
use crate::cache::Cache;
use crate::description::{Description, StoreAs};
use crate::disk_level::DiskLevel;
use crate::duty::entry_of;
use crate::failure::Failure;
use crate::flight::{End, Fits, Flight, FlightHead};
use crate::flight_body::FlightBody;
use crate::flight_state::FlightState;
use crate::follower::Follower;
use crate::key::Key;
use crate::limits::{FOR_DISK_SHARE_SHIFT, OBJECT_SHARE_SHIFT};
use crate::moment::Now;
use crate::object::Object;
use crate::slice_layout::Sliced;
use crate::ticket::Ticket;

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

impl Object {
    /// How a slice of the body of this manifest is stored whose bytes are to follow. By itself it is never over: what it is
    /// good for the manifest says, which is confirmed without it.
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
            is_personal: false,
            why_not: None,
            supersedes: true,
            mark: None,
            esi: None,
            now,
        }
    }
}

impl Ticket {
    /// The slice was found on a disk: all who wait have it, even if it was evicted already to make room for another.
    pub fn hand_over(self, slice: Arc<Object>, now: Now) {
        let Ticket { mut duty, .. } = self;
        let full = Arc::new(slice.response().to_head());
        let head = FlightHead {
            shared: Arc::clone(&full),
            full,
            length: Some(slice.length()),
            facts: Some(slice.facts()),
            received: now,
            fits: Fits::Variant(slice.spec.clone(), slice.variant),
            groups: None,
            tags: None,
            keep_ms: 0,
            is_by_program: false,
            trial: Trial::since(duty.flight.began()),
            is_manifest: false,
            esi: None,
        };
        let ((), wakes) = duty.close(|shard, flight| {
            entry_of(shard, flight).delist(flight);
            flight.change(|inner| {
                if inner.state == FlightState::Reserved {
                    inner.state.step(FlightState::Landed);
                }
                inner.head = Some(head);
                inner.body = FlightBody::Landed(slice);
                inner.end = End::Whole(None);
            })
        });
        wakes.send(&duty.flight);
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

    /// Looks for a slice. The request is the one that the manifest answers.
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
        if let Some(object) = entry.variants.newest().and_then(|slot| slot.whole.clone()) {
            object.touch(now);
            return SliceAnswer::Held(object);
        }
        if let Some(object) = self.unwritten.find(key) {
            shard.tidy(key);
            return SliceAnswer::Held(object);
        }
        if let Some(failure) = entry.recent_failure(now) {
            return SliceAnswer::Failed(failure);
        }
        if let Some(flight) = entry.joinable(request.fields, true, |_| true).cloned() {
            let slot = flight.with(|inner| inner.readers.join(core));
            return SliceAnswer::Busy(Follower::new(flight, slot, core).waiting(None, None, 0));
        }
        entry.fetching += 1;
        let flight = Flight::new(key, began, order, core, Arc::clone(&self.notifier));
        entry.list_new(&flight, request.fields);
        shard.open(flight.began());
        drop(shard);
        SliceAnswer::Fetch(Ticket::new(Arc::clone(self), flight, request.to_head(), None))
    }

    /// Is a slice in memory, or perhaps on a disk, or on its way to one? No I/O.
    pub fn may_have_slice(&self, sliced: Sliced, number: u64) -> bool {
        let key = self.slice_key(sliced, number);
        self.holds(key) || self.may_be_on_disk(key) || self.unwritten.find(key).is_some()
    }

    /// Is there room in memory for a slice beside those that are under way? Evicts what is in the way.
    pub fn has_room_for_slice(&self, sliced: Sliced) -> bool {
        // What leaves with its last readers may exceed the limit by its slack; what is taken beside that must not.
        let slack = self.account.limit() >> LEAVING_SLACK_SHIFT;
        self.makes_room_gently(self.slices_under_way.load(Relaxed) + sliced.slice_bytes as usize + slack)
    }

    /// Does so much wait for the disk of a slice, or is about to, that it would be refused there? Never without one.
    pub fn is_disk_busy_for_slice(&self, sliced: Sliced, number: u64) -> bool {
        let (under_way, slice) = (self.slices_for_disk.load(Relaxed), sliced.slice_bytes as usize);
        let is_busy = |disk: &DiskLevel| {
            // What waits is in memory. One may go whatever its share is.
            let waiting = disk.tier.queued_bytes() + under_way;
            let is_share_taken = waiting > 0 && waiting + slice > self.account.limit() >> FOR_DISK_SHARE_SHIFT;
            is_share_taken || disk.tier.is_busy(self.slice_key(sliced, number).bits(), under_way + slice)
        };
        self.disk.as_ref().is_some_and(is_busy)
    }

    /// Brings a slice from the disk into memory.
    pub async fn recall_slice(
        &self,
        sliced: Sliced,
        number: u64,
        request: &Request<'_>,
        now: Now,
    ) -> Option<Arc<Object>> {
        let key = self.slice_key(sliced, number);
        if self.may_be_on_disk(key) { self.recall_object(key, request, now).await } else { None }
    }

    /// The origin has another representation by now: the manifest is not to be found any more. Its readers may finish with
    /// the slices that are there.
    pub fn outdate(&self, manifest: &Arc<Object>) {
        let mut shard = self.directory.shard(manifest.key);
        if shard.remove(manifest) {
            self.part_with(&[Arc::clone(manifest)].into_iter().collect());
            self.forget_variant_beneath(manifest.key, manifest.variant);
        }
    }
}
