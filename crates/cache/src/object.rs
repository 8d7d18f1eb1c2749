//! A stored response: immutable but for whether it is still the one to serve, and how often it was.
//!
//! An object comes into being when its body has landed whole, or when a 304 gave an old body a new head. It knows
//! its key and variant, so that eviction finds its way back to the directory.

use std::sync::{Arc, OnceLock};

use coding::GzipMarks;
use message::{Field, FieldName, FieldsView, Response, Status};
use once_cell::race::OnceBox;
use rules::{Facts, VarySpec, lifetimes};
use store::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use store::{Charge, Seat, Tenant};

use crate::ban_list::BanList;
use crate::body_form::{BodyForm, Part};
use crate::by_program::ByProgram;
use crate::dictionary_name::TextName;
use crate::encoding_name::EncodingName;
use crate::encodings::Encodings;
use crate::esi_page::EsiPage;
use crate::group_table::Membership;
use crate::kept_facts::KeptFacts;
use crate::kept_head::KeptHead;
use crate::key::{Key, Variant};
use crate::lifespan;
use crate::limits::{HITS_EXACT_MAX, OBJECT_INDEX_BYTES};
use crate::liveness::{COOL, DEAD, HOT, Liveness, SOFTENED, WATCHED, WITHDRAWN};
use crate::moment::{Began, Now, Stamp};
use crate::out_of_line_body::OutOfLineBody;
use crate::shortened_life::ShortenedLife;
use crate::slice_layout::Sliced;
use crate::spec::Spec;
use crate::tag_index::TagSet;

/// A stored response.
///
/// What a hit reads stands first and side by side, in lines of their own, one step from the bytes it sends: with many
/// objects a hit's time is the cache misses that wait for one another.
#[derive(Debug)]
#[repr(C)]
pub struct Object {
    pub(crate) variant: Variant,
    pub(crate) spec: Option<Arc<Spec>>,
    pub(crate) received: Stamp,
    liveness: Liveness,
    hits: AtomicU16,
    /// The second of its last hit, from 1; 0 before the first.
    last_hit_s: AtomicU32,
    seat: Seat,
    head: KeptHead,
    facts: KeptFacts,
    pub(crate) key: Key,
    /// The place of its flight among those of the shard; modulo 2³², for it tells apart what came in one millisecond.
    order: u32,
    /// The invalidation number up to which it was tested against bans, counted from `began`: no ban before that is about it.
    /// What does not fit says less, and it is tested again.
    checked: AtomicU32,
    /// For all of it but a body that is kept out of line.
    charge: Charge,
    /// Made when the response is, or with its first encoding.
    rare: OnceBox<Rare>,
    /// The invalidation number under which its fetch began.
    began: u64,
    /// Where a disk has its body: the sequence number of the record. 0: nowhere.
    on_disk: AtomicU64,
}

/// What few responses have, and what it takes is not taken from all others.
#[derive(Debug, Default)]
struct Rare {
    /// The body, where it does not lie behind the head.
    out_of_line: Option<Arc<OutOfLineBody>>,
    body_form: BodyForm,
    groups: Option<Arc<Membership>>,
    tags: Option<Arc<TagSet<Object>>>,
    esi: Option<Arc<EsiPage>>,
    /// What does not fit where the others have it.
    facts: Option<(Facts, Option<ByProgram>)>,
    encodings: OnceLock<Arc<Encodings>>,
    dictionary: OnceLock<Box<TextName>>,
    gzip_marks: OnceLock<Box<GzipMarks>>,
    /// What a soft purge left of its life. Nobody charges it: it is small, and gone when the response is fetched again.
    shortened: OnceBox<ShortenedLife>,
}

impl Rare {
    fn says_anything(&self) -> bool {
        self.out_of_line.is_some()
            || self.body_form != BodyForm::Whole
            || self.groups.is_some()
            || self.tags.is_some()
            || self.esi.is_some()
            || self.facts.is_some()
            || self.encodings.get().is_some()
    }

    fn bytes(&self) -> usize {
        let groups = self.groups.as_ref().map_or(0, |groups| groups.heap_bytes());
        let esi = self.esi.as_ref().map_or(0, |page| page.heap_bytes());
        size_of::<Rare>() + groups + esi + self.tags.as_ref().map_or(0, |tags| tags.heap_bytes())
    }
}

/// What an object is made of.
pub(crate) struct ObjectParts {
    pub key: Key,
    pub variant: Variant,
    pub spec: Option<Arc<Spec>>,
    /// With the body, if it is not kept out of line.
    pub head: KeptHead,
    /// A refreshed object shares it with the one before.
    pub out_of_line: Option<Arc<OutOfLineBody>>,
    pub facts: Facts,
    pub received: Now,
    pub order: u64,
    pub part: Option<Part>,
    pub sliced: Option<Sliced>,
    pub groups: Option<Arc<Membership>>,
    pub policy: Option<ByProgram>,
    pub tags: Option<Arc<TagSet<Object>>>,
    pub esi: Option<Arc<EsiPage>>,
    pub checked: u64,
    pub began: u64,
    /// See `Object::on_disk`.
    pub on_disk: u64,
    pub encodings: EncodingsFrom,
}

/// Where the encodings of a new object come from.
#[derive(Debug)]
pub(crate) enum EncodingsFrom {
    Nobody,
    /// They were begun while it came.
    Flight(Arc<Encodings>),
    /// They are those of an object with the same body, under another head.
    Inherited(Arc<Encodings>),
}

impl ObjectParts {
    /// Those of a stored object, for one that differs in a few.
    pub fn of(object: &Object) -> ObjectParts {
        ObjectParts::under(object.head.clone(), object)
    }

    /// The same under another head, which holds the body already, if it is not kept out of line.
    pub fn under(head: KeptHead, object: &Object) -> ObjectParts {
        ObjectParts {
            key: object.key,
            variant: object.variant,
            spec: object.spec.clone(),
            head,
            out_of_line: object.out_of_line().cloned(),
            facts: object.facts(),
            received: object.received(),
            order: u64::from(object.order),
            part: object.partial(),
            sliced: object.sliced(),
            groups: object.groups().cloned(),
            policy: object.by_program(),
            tags: object.tags().cloned(),
            esi: object.esi().cloned(),
            checked: object.checked(),
            began: object.began,
            on_disk: object.on_disk(),
            encodings: object
                .encodings()
                .map_or(EncodingsFrom::Nobody, |encodings| EncodingsFrom::Inherited(Arc::clone(encodings))),
        }
    }
}

impl Object {
    /// Born dead: the directory brings it to life by taking it in.
    pub(crate) fn new(parts: ObjectParts, charge: impl FnOnce(usize) -> Charge) -> Arc<Object> {
        let ObjectParts { key, variant, spec, head, out_of_line, .. } = parts;
        let ObjectParts { facts, received, order, part, sliced, groups, .. } = parts;
        let ObjectParts { policy, tags, esi, checked, began, on_disk, encodings, .. } = parts;
        // What is inherited the cache makes anew.
        let encodings = match encodings {
            EncodingsFrom::Flight(encodings) => OnceLock::from(encodings),
            EncodingsFrom::Nobody | EncodingsFrom::Inherited(_) => OnceLock::new(),
        };
        let body_form = match (part, sliced) {
            (Some(part), _) => BodyForm::Part(part),
            (None, Some(sliced)) => BodyForm::Sliced(sliced),
            (None, None) => BodyForm::Whole,
        };
        let kept_facts = KeptFacts::of(&facts, policy);
        let large_facts = kept_facts.is_none().then_some((facts, policy));
        let rare = Rare { out_of_line, body_form, groups, tags, esi, facts: large_facts, encodings, ..Rare::default() };
        let rare = rare.says_anything().then(|| Box::new(rare));
        let head_bytes = size_of::<Object>() + OBJECT_INDEX_BYTES + head.heap_bytes();
        let head_bytes = head_bytes + rare.as_ref().map_or(0, |rare| rare.bytes());
        let rare = rare.map_or_else(OnceBox::new, OnceBox::with_value);
        let (charge, seat) = (charge(head_bytes), Seat::default());
        let (liveness, hits) = (Liveness::default(), AtomicU16::new(0));
        Arc::new(Object {
            variant,
            spec,
            received: received.stamp(),
            liveness,
            hits,
            seat,
            head,
            facts: kept_facts.unwrap_or(KeptFacts::KEPT_ELSEWHERE),
            key,
            order: order as u32,
            charge,
            rare,
            checked: AtomicU32::new(since(began, checked)),
            began,
            on_disk: AtomicU64::new(on_disk),
            last_hit_s: AtomicU32::new(0),
        })
    }

    /// Which of two responses of a variant is the newer: whose head came later, and of two that came at once
    /// whose fetch began later.
    pub(crate) fn is_newer_than(&self, other: &Object) -> bool {
        self.recency() > other.recency()
    }

    /// Was it there when an exchange began, under this number and at this time? What is stored after an invalidation bears a
    /// higher number. Both times are rounded, so what came in the same millisecond or two counts as later.
    pub fn was_stored_before(&self, began: Began, mono_ms: u64) -> bool {
        self.began <= began.0 && self.received.mono_ms.saturating_add(1) < mono_ms
    }

    /// What is greater is newer.
    pub(crate) fn recency(&self) -> (u64, u32) {
        (self.received.mono_ms, self.order)
    }

    pub fn key(&self) -> Key {
        self.key
    }

    #[inline]
    pub fn status(&self) -> Status {
        self.head.status()
    }

    /// The stored head: without hop-by-hop fields, Set-Cookie and Age.
    pub fn response(&self) -> Response<'_> {
        self.head.response()
    }

    /// Its fields alone.
    #[inline]
    pub fn fields(&self) -> FieldsView<'_> {
        self.head.fields()
    }

    /// What its sender calls the status, where that is not what everybody calls it.
    #[inline]
    pub fn reason(&self) -> Option<&[u8]> {
        self.head.reason()
    }

    /// The URL that it was fetched for. Of what has none nobody knows.
    pub fn url(&self) -> Option<&[u8]> {
        self.head.url()
    }

    pub(crate) fn kept_head(&self) -> &KeptHead {
        &self.head
    }

    /// The HTTP/1.1 status line and fields, each line with its CRLF, without the empty line at the end.
    #[inline]
    pub fn rendered(&self) -> &[u8] {
        self.head.rendered()
    }

    /// Is a field of this kind sent with every hit, as it was rendered?
    #[inline]
    pub fn renders(&self, is_it: impl Fn(&Field<'_>) -> bool) -> bool {
        self.head.renders(is_it)
    }

    /// How many bytes of a body are here: none of one that lies in slices.
    #[inline]
    pub fn body_len(&self) -> u64 {
        match self.out_of_line() {
            None => self.head.behind().len() as u64,
            Some(out_of_line) => out_of_line.len(),
        }
    }

    #[inline]
    pub(crate) fn behind_head(&self) -> &[u8] {
        self.head.behind()
    }

    #[inline]
    pub(crate) fn out_of_line(&self) -> Option<&Arc<OutOfLineBody>> {
        self.rare.get()?.out_of_line.as_ref()
    }

    pub(crate) fn shares_body_with(&self, other: &Object) -> bool {
        self.out_of_line().zip(other.out_of_line()).is_some_and(|(one, other)| Arc::ptr_eq(one, other))
    }

    #[inline]
    pub fn facts(&self) -> Facts {
        match self.has_facts_at_hand() {
            true => self.facts.facts(),
            false => self.rare_facts().0,
        }
    }

    /// Neither large ones, nor such as a soft purge has shortened?
    #[inline]
    fn has_facts_at_hand(&self) -> bool {
        !self.facts.are_elsewhere() && self.liveness.get() > SOFTENED
    }

    #[cold]
    fn rare_facts(&self) -> (Facts, Option<ByProgram>) {
        let rare = self.rare.get();
        let own = match self.facts.are_elsewhere() {
            false => (self.facts.facts(), self.facts.policy()),
            true => rare.and_then(|rare| rare.facts).expect("facts that do not fit are among what is rare"),
        };
        rare.and_then(|rare| rare.shortened.get()).map_or(own, |shortened| shortened.of(own))
    }

    /// Has it room for a shorter life in its place? What carries tags has.
    pub(crate) fn can_be_shortened(&self) -> bool {
        self.rare.get().is_some()
    }

    /// Leaves it so much of its life from a moment on, in its place, with nothing locked. From here on no hot table serves it. True if it
    /// could be served until now.
    pub(crate) fn shorten(&self, ttl_ms: u64, grace_ms: Option<u64>, keep_ms: Option<u64>, now: Now) -> bool {
        let facts = lifetimes::shortened(&self.facts(), self.resident_ms(now), ttl_ms, grace_ms);
        let rare = self.rare.get_or_init(Box::default);
        // In this order: who sees that it is softened finds what is left of it.
        rare.shortened.get_or_init(Box::default).bound(&facts, keep_ms);
        let was_live = self.liveness.soften();
        if let Some(encodings) = self.encodings() {
            encodings.shorten_all(ttl_ms, grace_ms, keep_ms, now);
        }
        was_live
    }

    #[inline]
    fn body_form(&self) -> BodyForm {
        self.rare.get().map_or(BodyForm::Whole, |rare| rare.body_form)
    }

    /// Set for a stored 206: the body is this part of the representation.
    #[inline]
    pub fn partial(&self) -> Option<Part> {
        match self.body_form() {
            BodyForm::Part(part) => Some(part),
            _ => None,
        }
    }

    /// Set where the body lies in slices of its own: this has none.
    #[inline]
    pub fn sliced(&self) -> Option<Sliced> {
        match self.body_form() {
            BodyForm::Sliced(sliced) => Some(sliced),
            _ => None,
        }
    }

    /// Is the body the whole representation?
    #[inline]
    pub fn has_whole_body(&self) -> bool {
        self.body_form() == BodyForm::Whole
    }

    /// Does it go out as it is: the whole, with nothing to be included in it?
    #[inline]
    pub fn goes_out_as_it_is(&self) -> bool {
        self.rare.get().is_none_or(|rare| rare.body_form == BodyForm::Whole && rare.esi.is_none())
    }

    /// How long the body is that it answers with: of a part, its own.
    #[inline]
    pub fn length(&self) -> u64 {
        match self.body_form() {
            BodyForm::Sliced(sliced) => sliced.complete,
            _ => self.body_len(),
        }
    }

    /// Which fields of a request select it, where it is not for all.
    pub fn vary(&self) -> Option<&VarySpec> {
        self.spec.as_ref().map(|spec| spec.vary())
    }

    /// When its head came, or was confirmed.
    pub fn received(&self) -> Now {
        self.received.into()
    }

    pub fn etag(&self) -> Option<&[u8]> {
        self.fields().get(FieldName::Etag)
    }

    /// Still the stored one. False once it was replaced, purged or evicted, itself or with a group.
    #[inline]
    pub fn is_live(&self) -> bool {
        self.liveness.get() > WITHDRAWN && self.has_valid_groups()
    }

    #[inline]
    pub(crate) fn is_hot(&self, bans: &BanList) -> bool {
        match self.liveness.get() {
            HOT => true,
            WATCHED => self.has_valid_groups() && bans.newest() <= self.checked(),
            _ => false,
        }
    }

    /// The number up to which it was tested against bans: none of those hits it.
    pub(crate) fn checked(&self) -> u64 {
        self.began + u64::from(self.checked.load(Ordering::Relaxed))
    }

    pub(crate) fn note_checked(&self, number: u64) {
        self.checked.fetch_max(since(self.began, number), Ordering::Relaxed);
    }

    pub(crate) fn began(&self) -> u64 {
        self.began
    }

    /// The sequence number of the disk's record of its body; 0 where there is none.
    pub(crate) fn on_disk(&self) -> u64 {
        self.on_disk.load(Ordering::Relaxed)
    }

    pub(crate) fn note_on_disk(&self, sequence: u64) {
        self.on_disk.store(sequence, Ordering::Relaxed);
    }

    pub(crate) fn by_program(&self) -> Option<ByProgram> {
        match self.has_facts_at_hand() {
            true => self.facts.policy(),
            false => self.rare_facts().1,
        }
    }

    pub(crate) fn tags(&self) -> Option<&Arc<TagSet<Object>>> {
        self.rare.get()?.tags.as_ref()
    }

    /// What is to be included in its body, if anything is.
    #[inline]
    pub fn esi(&self) -> Option<&Arc<EsiPage>> {
        self.rare.get()?.esi.as_ref()
    }

    /// The same representation in other codings, as far as anybody asked for such.
    #[inline]
    pub fn encodings(&self) -> Option<&Arc<Encodings>> {
        self.rare.get()?.encodings.get()
    }

    /// The one of a name, if it is made. It is as good as this is: what was tested of this was tested of it.
    pub fn encoding(&self, name: impl Into<EncodingName>) -> Option<Arc<Object>> {
        let encoding = self.encodings()?.made(name)?;
        encoding.note_checked(self.checked());
        Some(encoding)
    }

    /// The same, for who asks for one.
    pub fn encodings_or_new(&self) -> &Arc<Encodings> {
        self.rare.get_or_init(Box::default).encodings.get_or_init(Arc::default)
    }

    /// By what its text is known to be a dictionary, if anybody said so.
    pub(crate) fn dictionary(&self) -> Option<TextName> {
        self.rare.get()?.dictionary.get().map(|name| **name)
    }

    /// The first name counts: its body does not change.
    pub(crate) fn note_dictionary(&self, name: TextName) {
        self.rare.get_or_init(Box::default).dictionary.get_or_init(|| Box::new(name));
    }

    /// Is the body of both the same, as far as can be told without a look at all of it?
    pub(crate) fn has_body_of(&self, other: &Object) -> bool {
        match (self.out_of_line(), other.out_of_line()) {
            (None, None) => self.behind_head() == other.behind_head(),
            _ => self.shares_body_with(other),
        }
    }

    /// Where its body, a gzip, is cut to become a piece of a page, if that was found out.
    pub fn gzip_marks(&self) -> Option<&GzipMarks> {
        self.rare.get()?.gzip_marks.get().map(|marks| &**marks)
    }

    pub fn note_gzip_marks(&self, marks: GzipMarks) {
        self.rare.get_or_init(Box::default).gzip_marks.get_or_init(|| Box::new(marks));
    }

    /// Lets purges of its tags find it, unless one of them was purged after `began`. To be called before it is stored.
    pub(crate) fn enrol(self: &Arc<Object>, began: u64) -> bool {
        self.tags().is_none_or(|tags| tags.enrol(self.key, self, began))
    }

    /// The same of what gives a stored one a new head: false, too, if that was purged, hard or soft.
    pub(crate) fn enrol_in_place_of(self: &Arc<Object>, stored: &Object, began: u64) -> bool {
        if !self.enrol(began) {
            return false;
        }
        // In this order: a purge that has not found this in the index marks `stored`, or has done so.
        let is_being_purged = self.tags().is_some_and(|tags| tags.is_being_purged());
        let is_purged = is_being_purged || stored.liveness.is_purged();
        if let Some(tags) = self.tags().filter(|_| is_purged) {
            tags.strike_off(self.key, self);
        }
        !is_purged
    }

    pub(crate) fn groups(&self) -> Option<&Arc<Membership>> {
        self.rare.get()?.groups.as_ref()
    }

    /// Was none of its groups invalidated since its fetch began, and none of its tags purged? What is not valid is as good as gone.
    pub(crate) fn is_valid(&self) -> bool {
        !self.is_withdrawn() && self.has_valid_groups()
    }

    #[inline]
    fn has_valid_groups(&self) -> bool {
        self.groups().is_none_or(|groups| groups.is_valid())
    }

    /// Was it purged by one of its tags, though it may still be in its place?
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.liveness.get() == WITHDRAWN
    }

    /// From here on nobody is served it; nothing needs to be locked. True if it could be until now: what is about to be stored never can.
    pub(crate) fn withdraw(&self) -> bool {
        self.liveness.withdraw()
    }

    /// Counts a hit, and remembers its second for bans that ask. Takes no lock; once both counters are full it writes once
    /// a second at most.
    #[inline]
    pub fn touch(&self, now: Now) {
        self.seat.touch();
        self.count_hit();
        let second = u32::try_from(now.mono_ms / 1_000).unwrap_or(u32::MAX - 1) + 1;
        if self.last_hit_s.load(Ordering::Relaxed) != second {
            self.last_hit_s.store(second, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn count_hit(&self) {
        if self.hits.load(Ordering::Relaxed) < HITS_EXACT_MAX {
            self.hits.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Begins with the hits that were had while it was on its way.
    pub(crate) fn add_hits(&self, hits: u16) {
        self.hits.fetch_add(hits, Ordering::Relaxed);
    }

    /// Something that is found by it was asked for: it leaves no sooner than that.
    pub fn note_needed(&self) {
        self.seat.touch();
    }

    /// Hits so far; exact while small, then `HITS_EXACT_MAX` for ever.
    pub fn hits(&self) -> u32 {
        u32::from(self.hits.load(Ordering::Relaxed).min(HITS_EXACT_MAX))
    }

    /// When it was hit last, on the clock that does not jump, to the second before.
    pub fn last_hit_ms(&self) -> Option<u64> {
        let second = self.last_hit_s.load(Ordering::Relaxed).checked_sub(1)?;
        Some(u64::from(second) * 1_000)
    }

    /// Goes on counting where the object did in whose place this one comes. Under a program another response begins anew.
    pub(crate) fn inherit(&self, before: &Object) {
        self.seat.inherit(&before.seat);
        if !self.is_by_program() || self.order == before.order {
            self.hits.store(before.hits.load(Ordering::Relaxed), Ordering::Relaxed);
            self.last_hit_s.store(before.last_hit_s.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Only under the shard's lock.
    pub(crate) fn set_hot(&self, watched: bool, hot: bool) {
        // Only the story knows how to serve a manifest.
        let hot = hot && self.sliced().is_none();
        let liveness = match (hot, watched || self.groups().is_some()) {
            (false, _) => COOL,
            (true, false) => HOT,
            (true, true) => WATCHED,
        };
        self.liveness.set(liveness);
        if let Some(encodings) = self.encodings() {
            encodings.follow_liveness(liveness);
        }
    }

    pub(crate) fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// Were its encodings used of late? Then it was, and whoever orders objects by their use is told so.
    pub(crate) fn hears_of_uses(&self) -> bool {
        let uses = self.encodings().map_or(0, |encodings| encodings.take_uses());
        (0..uses).for_each(|_| self.seat.touch());
        uses > 0
    }

    /// How often it was used of late; from here on it counts anew.
    pub(crate) fn take_uses(&self) -> u8 {
        self.seat.take_uses()
    }

    /// What of the weight is its own, without that of its encodings.
    pub(crate) fn own_weight(&self) -> usize {
        self.charge.bytes() + self.out_of_line().map_or(0, |out_of_line| out_of_line.charge.bytes())
    }

    /// What of it stays in memory for each of those who still read it, the one that asks not counted: nothing while it is
    /// stored, for then the store keeps it.
    pub fn kept_for_reader(self: &Arc<Object>) -> usize {
        let readers = Arc::strong_count(self).saturating_sub(1).max(1);
        if self.is_dead() { self.own_bytes() / readers } else { 0 }
    }

    /// Without a body that another object has taken over.
    pub(crate) fn own_bytes(&self) -> usize {
        let out_of_line = self.out_of_line().filter(|out_of_line| Arc::strong_count(out_of_line) == 1);
        self.charge.bytes() + out_of_line.map_or(0, |out_of_line| out_of_line.charge.bytes())
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.liveness.get() <= WITHDRAWN
    }

    /// Only under the shard's lock. From here on no hit serves it; those who hold it may finish. `heir`: what comes in its place, maybe
    /// with its body. True if it could be served until now.
    pub(crate) fn kill(&self, heir: Option<&Object>) -> bool {
        let body_stays = heir.is_some_and(|heir| self.shares_body_with(heir));
        let before = self.liveness.end();
        if let Some(tags) = self.tags().filter(|_| before != DEAD) {
            tags.strike_off(self.key, self);
        }
        self.charge.leave();
        if let Some(out_of_line) = self.out_of_line().filter(|_| !body_stays) {
            out_of_line.charge.leave();
        }
        if let Some(encodings) = self.encodings() {
            encodings.close(heir.and_then(Object::encodings).map(|encodings| &**encodings));
        }
        before > WITHDRAWN
    }
}

fn since(began: u64, number: u64) -> u32 {
    u32::try_from(number.saturating_sub(began)).unwrap_or(u32::MAX)
}

// With the two counters before it the first line of the cache is what every look at it reads, and the whole is of a size
// that an allocator has.
#[cfg(not(feature = "shuttle"))]
const _: () = assert!(size_of::<Object>() + 2 * size_of::<usize>() <= 192);

impl Tenant for Object {
    fn seat(&self) -> &Seat {
        &self.seat
    }

    fn weight(&self) -> usize {
        self.own_weight() + self.encodings().map_or(0, |encodings| encodings.bytes())
    }

    fn fingerprint(&self) -> u64 {
        self.key.bits() ^ self.variant.0
    }

    /// The second, on the clock that does not jump, from which on nobody has a use for it; none where that has no end.
    fn over_s(&self) -> Option<u32> {
        let keep_ms = self.by_program().map(|policy| policy.keep_ms);
        let lives_ms = lifespan::lives_ms(&self.facts(), self.fields(), keep_ms)?;
        u32::try_from(self.received.mono_ms.saturating_add(lives_ms) / 1_000 + 1).ok()
    }
}
