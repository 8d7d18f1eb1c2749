//! The writer's end of a flight whose head is known: appends the body and brings it to its end.
//!
//! While the response may be stored the body is kept and charged as it grows; when it may not, or does not fit,
//! it passes through a window and its writer waits for its readers. What is visible to hits was whole and of the
//! right length before.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use message::{Fields, RequestHead};
use rules::Facts;
use smallvec::SmallVec;
use store::limits::BLOCK_BYTES;
use store::sync::atomic::Ordering::Relaxed;
use store::{Charge, Unfinished};

use crate::ban_list::Trial;
use crate::body_form::Part;
use crate::by_program::ByProgram;
use crate::cache::Cache;
use crate::description::Elsewhere;
use crate::duty::{Duty, entry_of};
use crate::failure::Failure;
use crate::flight::{End, Flight, Inner};
use crate::flight_body::FlightBody;
use crate::flight_state::FlightState;
use crate::group_table::Membership;
use crate::kept_head::KeptHead;
use crate::key::Variant;
use crate::limits::{SLICE_STEP_BYTES, WINDOW_ENDS_BYTES};
use crate::moment::Now;
use crate::object::{EncodingsFrom, Object, ObjectParts};
use crate::out_of_line_body::{OUT_OF_LINE_BYTES_MIN, OutOfLineBody};
use crate::parts::WholeHead;
use crate::removed_objects::RemovedObjects;
use crate::slice_layout::Sliced;
use crate::slice_room::SliceUnderWay;
use crate::spec::Spec;
use crate::tag_index::TagSet;
use crate::why_uncacheable::WhyUncacheable;

#[derive(Debug)]
pub struct Draft {
    duty: Duty,
    length: Option<u64>,
    received: u64,
    charge: Charge,
    /// The same, while the body is not kept: what all such bodies take is bounded too.
    window: Option<Charge>,
    /// What the body will be stored as. Gone once it cannot be.
    keep: Option<Keep>,
    /// Until when the key counts as hit-for-miss if the body turns out too large.
    mark_ms: Option<u64>,
    /// Of a slice: what is not charged yet.
    room: Option<SliceUnderWay>,
    /// What leaves when the body is whole.
    superseded: Option<Arc<Object>>,
}

/// What a draft needs to become an object.
#[derive(Debug)]
pub(crate) struct Keep {
    /// What asked for it: for bans that are issued while the body comes.
    pub request: Option<RequestHead>,
    pub spec: Option<Arc<Spec>>,
    pub variant: Variant,
    /// What its request selects by other Vary fields: it may take their place.
    pub displaced: SmallVec<[Variant; 2]>,
    pub rendered: Bytes,
    /// What it was asked for by.
    pub url: Box<[u8]>,
    pub facts: Facts,
    pub policy: Option<ByProgram>,
    pub partial: Option<Part>,
    pub whole: Option<WholeHead>,
    pub sliced: Option<Sliced>,
    pub elsewhere: Option<Elsewhere>,
    pub groups: Option<Arc<Membership>>,
    pub tags: Option<Arc<TagSet<Object>>>,
}

impl Draft {
    pub(crate) fn new(duty: Duty, length: Option<u64>, keep: Option<Keep>, mark_ms: Option<u64>) -> Draft {
        let charge = duty.cache.account.charge(0);
        Draft { duty, length, received: 0, charge, window: None, keep, mark_ms, room: None, superseded: None }
    }

    pub(crate) fn within(self, room: Option<SliceUnderWay>) -> Draft {
        Draft { room, ..self }
    }

    pub(crate) fn superseding(self, superseded: Option<Arc<Object>>) -> Draft {
        Draft { superseded, ..self }
    }

    pub fn flight(&self) -> &Arc<Flight> {
        &self.duty.flight
    }

    /// Will it be stored, as far as is known?
    pub fn is_kept(&self) -> bool {
        self.keep.is_some()
    }

    pub fn received_bytes(&self) -> u64 {
        self.received
    }

    /// So much more comes before the next block begins.
    pub fn block_bytes_left(&self) -> usize {
        BLOCK_BYTES - (self.received % BLOCK_BYTES as u64) as usize
    }

    pub fn readers_count(&self) -> usize {
        self.duty.flight.readers_count()
    }

    /// Of a slice that is kept: is there no room in memory for what comes next of it? Evicts what is in the way.
    pub fn lacks_room(&self) -> bool {
        self.keep.is_some() && self.room.is_some() && !self.duty.cache.makes_room_gently(SLICE_STEP_BYTES)
    }

    /// Appends to the body; readers see it at once.
    pub fn append(&mut self, bytes: Bytes) {
        self.take(bytes, false);
    }

    /// The same of a piece that holds on to nothing but its own bytes: one that is a whole block, at the place of one, stays as
    /// it is.
    pub fn append_own(&mut self, bytes: Bytes) {
        self.take(bytes, true);
    }

    fn take(&mut self, bytes: Bytes, is_own: bool) {
        if bytes.is_empty() {
            return;
        }
        self.received += bytes.len() as u64;
        if let Some(room) = &mut self.room {
            room.note_arrived(bytes.len());
        }
        if self.keep.is_some() {
            let too_long = self.room.is_none() && self.received > self.duty.cache.object_bytes_max();
            if too_long || !self.duty.cache.make_room(bytes.len()) {
                self.overflow();
            } else {
                self.charge.resize(self.charge.bytes() + bytes.len());
            }
        }
        let ((window, ripe), wakes) = self.duty.flight.change(|inner| {
            if inner.state == FlightState::Described {
                inner.state.step(FlightState::Filling);
            }
            inner.append(bytes, is_own);
            let ripe = match &inner.body {
                FlightBody::Growing(growing) => growing.ripe(),
                _ => None,
            };
            (inner.window_bytes(), ripe)
        });
        wakes.send(&self.duty.flight);
        if let Some(bytes) = window {
            // Condemned meanwhile, or never kept: only what lies between writer and readers is held.
            self.keep = None;
            self.charge.resize(bytes + bytes.min(WINDOW_ENDS_BYTES));
            self.window.get_or_insert_with(|| self.duty.cache.windows.charge(0)).resize(bytes);
        }
        if let Some(pieces) = ripe {
            self.duty.flight.settle(pieces);
        }
    }

    /// It does not fit: from here on it is a window, and nobody new may join.
    fn overflow(&mut self) {
        self.keep = None;
        let mark_ms = self.mark_ms;
        let ((), wakes) = self.duty.within(self.duty.shard(), |shard, flight| {
            let entry = entry_of(shard, flight);
            entry.delist(flight);
            if entry.invalidated <= flight.began() {
                shard.note_uncacheable(flight.key, mark_ms, false, Some(WhyUncacheable::TooLarge));
            }
            flight.change(|inner| {
                if matches!(inner.state, FlightState::Described | FlightState::Filling) {
                    inner.state.step(FlightState::Overflowed);
                }
                inner.open_window();
            })
        });
        wakes.send(&self.duty.flight);
        self.duty.cache.counters.overflowed.fetch_add(1, Relaxed);
    }

    /// Ready when there is room for more: always while the body is kept, and when nobody reads. Else the writer
    /// waits for its slowest reader.
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let max = self.duty.cache.window_bytes_max();
        self.duty.flight.with(|inner| {
            inner.poll_writer(cx, |inner| {
                inner.window_bytes().is_none_or(|held| held < max) || inner.readers.count() == 0
            })
        })
    }

    /// Ready when nobody reads any more, and nobody has left content of what is kept.
    pub fn poll_abandoned(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.duty.flight.with(|inner| inner.poll_writer(cx, Inner::is_abandoned))
    }

    /// Where the slowest reader stands, to see whether it moves.
    pub fn slowest_position(&self) -> Option<u64> {
        self.duty.flight.with(|inner| inner.readers.floor())
    }

    /// Cuts off the readers that stand at the very start of the window, for the caller's clock says that they have
    /// for too long. Returns how many they were. Without a window nobody holds anybody up.
    pub fn cut_off_slowest(&mut self) -> usize {
        let (cut, wakes) = self.duty.flight.change(|inner| {
            let floor = inner.readers.floor().filter(|_| inner.window_bytes().is_some());
            let cut = floor.map_or(0, |floor| inner.readers.cut_off_at(floor));
            inner.trim();
            cut
        });
        wakes.send(&self.duty.flight);
        cut
    }

    /// The body is whole. Returns the stored object, or `None` when it is not stored. A body that is not as long
    /// as was said is truncated, whatever its writer believes (J13).
    pub fn land(mut self, trailers: Option<Fields>) -> Option<Arc<Object>> {
        let part_length = self.keep.as_ref().and_then(|keep| keep.partial).map(|part| part.to - part.from);
        if [self.length, part_length].into_iter().flatten().any(|length| length != self.received) {
            let text = "the body was shorter or longer than its head said".into();
            self.duty.give_up(Failure { status: 502, token: "origin-body-length", text, remember_ms: 0 }, None);
            return None;
        }
        let (trailers, superseded) = (trailers.map(Arc::new), self.superseded.take());
        let whole = self.keep.as_mut().and_then(|keep| keep.whole.take());
        let elsewhere = self.keep.as_ref().and_then(|keep| keep.elsewhere);
        let displaced = self.keep.as_mut().filter(|keep| keep.policy.is_none());
        let displaced = displaced.map(|keep| std::mem::take(&mut keep.displaced)).unwrap_or_default();
        // A program gave it no time at all: who waited has it, and what lies there for others stays.
        let is_for_who_waits =
            self.keep.as_ref().is_some_and(|keep| keep.policy.is_some() && keep.facts.lifetime_ms == 0);
        let request = self.keep.as_mut().and_then(|keep| keep.request.take());
        let landed = self.keep.take().and_then(|keep| self.compact(keep));
        let Some(landed) = landed else {
            self.finish_unstored(trailers, superseded);
            return None;
        };
        let cache = Arc::clone(&self.duty.cache);
        // With nothing locked; what is issued meanwhile, under the lock of the shard.
        let mut trial = Trial::since(landed.checked());
        let request = request.as_ref().map(RequestHead::request);
        cache.bans.go_on(&mut trial, &landed.as_subject(request.as_ref()));
        landed.note_checked(trial.checked);
        // Its readers go by positions in what they asked for; what is stored may be more.
        let object = match landed.partial() {
            Some(_) => cache.join_parts(&landed, whole),
            None => Arc::clone(&landed),
        };
        cache.make_room(0);
        let mut removed = RemovedObjects::new();
        // Whoever works a ban off goes through this shard before or after us: one of the two tests the object.
        let tested = Arc::clone(&landed);
        let is_banned = || {
            let mut trial = trial;
            cache.bans.go_on(&mut trial, &tested.as_subject(request.as_ref()));
            tested.note_checked(trial.checked);
            trial.banned.is_some()
        };
        let stored_elsewhere = elsewhere.map(|there| self.store_elsewhere(&object, there, &is_banned, &mut removed));
        let (stored, wakes) = self.duty.close(|shard, flight| {
            let entry = entry_of(shard, flight);
            entry.delist(flight);
            let stores = match stored_elsewhere {
                None if is_for_who_waits || is_banned() => false,
                None => {
                    let stores = cache.take_in(entry, &object, flight.began(), &mut removed);
                    if stores {
                        removed.extend(cache.displace(entry, &displaced, &object));
                    }
                    stores
                }
                Some(false) => false,
                Some(true) => {
                    // What lay here for this request is superseded.
                    removed.extend(cache.drop_variant(entry, (flight.key, object.variant)));
                    true
                }
            };
            if let Some(old) = superseded {
                cache.supersede(entry, &old, &mut removed);
            }
            flight.change(|inner| {
                if inner.state != FlightState::Condemned {
                    inner.state.step(if stores { FlightState::Landed } else { FlightState::Condemned });
                }
                object.add_hits(inner.hits);
                inner.body = FlightBody::Landed(landed);
                inner.end = End::Whole(trailers);
                stores
            })
        });
        wakes.send(&self.duty.flight);
        drop(removed);
        if let Some(disk) = cache.disk.as_ref().filter(|_| stored && self.room.is_some()) {
            cache.unwritten.note(disk, &object);
        }
        cache.counters.landed.fetch_add(u64::from(stored), Relaxed);
        stored.then_some(object)
    }

    /// Stores under another key than the flight's; its shard is locked alone.
    fn store_elsewhere(
        &self,
        object: &Arc<Object>,
        there: Elsewhere,
        is_banned: &impl Fn() -> bool,
        removed: &mut RemovedObjects,
    ) -> bool {
        let (cache, began) = (&self.duty.cache, self.duty.flight.began());
        let mut shard = cache.directory.shard(there.key);
        let was_known = there.known_since.is_some_and(|since| since.0 <= began);
        if is_banned() || !was_known && cache.invalidation.load(Relaxed) != began {
            return false;
        }
        let entry = shard.entry(there.key);
        let stored = cache.take_in(entry, object, began, removed);
        shard.tidy(there.key);
        stored
    }

    /// Makes the object, unless the flight was condemned meanwhile.
    fn compact(&mut self, keep: Keep) -> Option<Arc<Object>> {
        let flight = &self.duty.flight;
        let (unfinished, head, encodings) = flight.with(|inner| match &inner.body {
            FlightBody::Growing(growing) => Some((growing.unfinished(), inner.head.clone(), inner.encodings.clone())),
            _ => None,
        })?;
        let head = head.expect("a draft has a head");
        let Keep { spec, variant, rendered, url, facts, policy, partial, sliced, elsewhere, groups, tags, .. } = keep;
        let charge = std::mem::replace(&mut self.charge, self.duty.cache.account.charge(0));
        let (kept_head, out_of_line) = at_rest(&self.duty.cache, unfinished, charge, |body| {
            KeptHead::of_url(&url, (&head.shared, &rendered), body)
        });
        let parts = ObjectParts {
            key: elsewhere.map_or(flight.key, |elsewhere| elsewhere.key),
            variant,
            spec,
            head: kept_head,
            out_of_line,
            facts,
            received: head.received,
            order: flight.order,
            part: partial,
            sliced,
            groups,
            policy,
            tags,
            esi: head.esi.clone(),
            checked: head.trial.checked,
            began: flight.began(),
            on_disk: 0,
            encodings: encodings.map_or(EncodingsFrom::Nobody, EncodingsFrom::Flight),
        };
        Some(self.duty.cache.object(parts))
    }

    fn finish_unstored(&mut self, trailers: Option<Arc<Fields>>, superseded: Option<Arc<Object>>) {
        // Slow readers keep what is left of it beyond its writer.
        let held = (std::mem::replace(&mut self.charge, self.duty.cache.account.charge(0)), self.window.take());
        let (cache, mut removed) = (Arc::clone(&self.duty.cache), RemovedObjects::new());
        let ((), wakes) = self.duty.close(|shard, flight| {
            let entry = entry_of(shard, flight);
            entry.delist(flight);
            if let Some(old) = superseded {
                cache.supersede(entry, &old, &mut removed);
            }
            flight.change(|inner| {
                inner.end = End::Whole(trailers);
                inner.held = Some(held);
            })
        });
        wakes.send(&self.duty.flight);
    }

    /// Gives the body up if nobody reads it; hands the draft back if somebody does after all, so that nobody joins a
    /// fetch in the moment in which it is given up. What has come of a part is a shorter part, and is stored; nobody
    /// joins the fetch of a part.
    pub fn abandon(mut self, failure: Failure) -> Option<Draft> {
        if let Some(part) = self.keep.as_mut().and_then(|keep| keep.partial.as_mut())
            && self.received > 0
            && self.duty.flight.readers_count() == 0
        {
            part.to = part.from + self.received;
            self.length = None;
            self.land(None);
            return None;
        }
        (!self.duty.give_up_unread(failure)).then_some(self)
    }

    /// The body broke off: readers get a truncated end, and nothing is stored. Where there were several, and others could
    /// have joined, whoever comes a moment later gets the failure too, for as long as it says.
    pub fn abort(mut self, failure: Failure, now: Now) {
        self.duty.give_up(failure, Some(now));
    }
}

/// Where a body that has come whole stays: behind its head, or out of line, where it goes on with the charge under which it grew.
pub(crate) fn at_rest(
    cache: &Cache,
    unfinished: Unfinished,
    charge: Charge,
    head_before: impl FnOnce(&[&[u8]]) -> KeptHead,
) -> (KeptHead, Option<Arc<OutOfLineBody>>) {
    let is_out_of_line = unfinished.len() >= OUT_OF_LINE_BYTES_MIN;
    let behind: Vec<&[u8]> = unfinished.pieces().filter(|_| !is_out_of_line).map(|piece| &piece[..]).collect();
    let head = head_before(&behind);
    drop(behind);
    let out_of_line = is_out_of_line.then(|| OutOfLineBody::charged(unfinished.finish(), charge, cache.pages.as_ref()));
    (head, out_of_line)
}
