//! The cache as its users hold it: settings, digests, invalidation, room, and figures.
//!
//! `ask.rs` answers requests; `ticket.rs` and `draft.rs` bring responses in. Here is what happens beside that:
//! what leaves, and why.

use std::sync::{Arc, OnceLock};

use message::{Request, ResponseHead};
use rules::{Facts, Freshness, RequestDirectives};
use store::disk::DiskStats;
use store::limits::BLOCK_BYTES;
use store::sync::Mutex;
use store::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use store::{Account, Eviction, EvictionKind, PageFile};

use crate::ban_list::BanList;
use crate::beneath_memory::Beneath;
use crate::cache_stats::{CacheStats, Counters};
use crate::dictionaries::Dictionaries;
use crate::directory::Directory;
use crate::disk_level::DiskLevel;
use crate::entry::Entry;
use crate::fleet_lease::FleetLease;
use crate::flight::Notifier;
use crate::group_table::{GroupTable, Groups, Membership};
use crate::invalidation_line::{Invalidated, Successor};
use crate::kept_head::KeptHead;
use crate::key::{Digester, Key, Variant};
use crate::limits::{
    MEMORY_BYTES_MAX, OBJECT_BYTES_MAX, OBJECT_SHARE_SHIFT, SPARED_MAX, VARIANTS_MAX, WINDOW_BYTES_MAX,
    WINDOW_READ_BYTES_MAX, WINDOWS_SHARE_SHIFT,
};
use crate::lookup_options::LookupOptions;
use crate::moment::{Began, Now, Stamp};
use crate::object::{EncodingsFrom, Object, ObjectParts};
use crate::purged_objects::PurgedObjects;
use crate::removal_listener::{RemovalCause, RemovalListener};
use crate::removed_objects::RemovedObjects;
use crate::shared_level::SharedLevel;
use crate::spec::SharedSpecs;
use crate::tag_index::{TagIndex, TagSet, Tags};
use crate::unwritten::Unwritten;
use crate::variants::Slot;
use crate::walk::Walk;

/// What an operator decides. The default is that of `limits`.
#[derive(Clone, Debug)]
pub struct CacheSettings {
    pub memory_bytes_max: usize,
    pub object_bytes_max: u64,
    pub window_bytes_max: usize,
    pub variants_max: usize,
    pub eviction: EvictionKind,
    /// Cores that ask; nothing is sized by it yet but the hot tables, which their cores hold.
    pub cores: usize,
}

impl Default for CacheSettings {
    fn default() -> CacheSettings {
        CacheSettings {
            memory_bytes_max: MEMORY_BYTES_MAX,
            object_bytes_max: OBJECT_BYTES_MAX,
            window_bytes_max: WINDOW_BYTES_MAX,
            variants_max: VARIANTS_MAX,
            eviction: EvictionKind::S3Fifo,
            cores: 1,
        }
    }
}

/// One for the process, shared by all cores.
pub struct Cache {
    pub(crate) settings: CacheSettings,
    pub(crate) digester: Digester,
    pub(crate) directory: Directory,
    pub(crate) specs: SharedSpecs,
    /// Made for the first response with groups, or the first group that is invalidated.
    groups: OnceLock<Arc<GroupTable>>,
    /// Made for the first response with tags, or the first tag that is purged.
    tags: OnceLock<Arc<TagIndex<Object>>>,
    pub(crate) account: Arc<Account>,
    pub(crate) notifier: Arc<dyn Notifier>,
    pub(crate) counters: Counters,
    /// The number of the last invalidation; taken and compared under a shard's lock.
    pub(crate) invalidation: AtomicU64,
    pub(crate) bans: Arc<BanList>,
    /// Of a node of a fleet: has it heard of all that others purged?
    pub(crate) fleet_lease: FleetLease,
    pub(crate) lurker: Mutex<Walk>,
    pub(crate) reaper: Mutex<Walk>,
    /// What purges of tags have marked.
    pub(crate) purged: PurgedObjects,
    /// Bytes of memory that slices on their way will still take.
    pub(crate) slices_under_way: AtomicUsize,
    /// Bytes of slices that are being fetched, and will wait for their disk.
    pub(crate) slices_for_disk: AtomicUsize,
    pub(crate) unwritten: Unwritten,
    /// What lies beneath the memory, and beneath that.
    pub(crate) disk: Option<DiskLevel>,
    pub(crate) shared: Option<SharedLevel>,
    /// Where large bodies lie; absent where the kernel has no files in memory.
    pub(crate) pages: Option<Arc<PageFile>>,
    /// What of the account bodies take that are not kept, and up to where each of them may run far ahead.
    pub(crate) windows: Arc<Account>,
    /// What clients have of what was stored here.
    pub(crate) dictionaries: Dictionaries,
    /// Another process that takes over.
    pub(crate) has_successor: AtomicBool,
    pub(crate) successor: Mutex<Option<Successor>>,
    pub(crate) removal_listener: OnceLock<Arc<dyn RemovalListener>>,
    /// The process is at its limit.
    is_short: AtomicBool,
    pub(crate) eviction: Mutex<Box<dyn Eviction<Object>>>,
}

impl Cache {
    pub fn new(settings: CacheSettings, notifier: Arc<dyn Notifier>) -> Arc<Cache> {
        Cache::above(settings, notifier, Beneath::default())
    }

    pub(crate) fn made(
        settings: CacheSettings,
        notifier: Arc<dyn Notifier>,
        (digester, number): (Digester, u64),
        (disk, shared): (Option<DiskLevel>, Option<SharedLevel>),
    ) -> Arc<Cache> {
        let limit = settings.memory_bytes_max;
        let eviction = store::by_kind(settings.eviction, limit);
        let account = Account::new(limit);
        Arc::new(Cache {
            settings,
            digester,
            directory: Directory::new(&account),
            specs: SharedSpecs::default(),
            dictionaries: Dictionaries::new(&account),
            groups: OnceLock::new(),
            tags: OnceLock::new(),
            account,
            notifier,
            counters: Counters::default(),
            invalidation: AtomicU64::new(number),
            bans: BanList::new(),
            fleet_lease: FleetLease::default(),
            lurker: Mutex::default(),
            reaper: Mutex::default(),
            purged: PurgedObjects::default(),
            slices_under_way: AtomicUsize::new(0),
            slices_for_disk: AtomicUsize::new(0),
            unwritten: Unwritten::default(),
            disk,
            shared,
            pages: PageFile::create().ok(),
            windows: Account::new(limit >> WINDOWS_SHARE_SHIFT),
            successor: Mutex::default(),
            has_successor: AtomicBool::new(false),
            removal_listener: OnceLock::new(),
            is_short: AtomicBool::new(false),
            eviction: Mutex::new(eviction),
        })
    }

    /// The key of whatever a request is found by. Each part counts with its length.
    #[inline]
    pub fn key<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> Key {
        self.digester.key(parts)
    }

    /// Where everybody who keeps bytes charges them: buffers and connections too.
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Drops all variants of a key and condemns the fetches of it that are under way. Returns how many responses
    /// were dropped.
    pub fn purge(&self, key: Key) -> usize {
        self.take_next_number(key, None).1
    }

    /// The number under which a fetch begins now: for one that is made without a ticket, and whose response may
    /// turn out storable. To be taken before it connects.
    pub fn began(&self) -> Began {
        Began(self.invalidation.load(Relaxed))
    }

    /// What holds at a moment: whoever asks what is stored asks by this.
    #[inline]
    pub fn now(&self, at: Stamp) -> Now {
        let confirmed_from =
            self.fleet_lease.confirmed_from(at.mono_ms, || self.invalidation.fetch_add(1, Relaxed) + 1);
        Now { confirmed_from, ..Now::from(at) }
    }

    /// Has all that is stored or under way confirmed by the origin before it is served: something may have been purged unheard. Returns the
    /// number to say so again after a restart ([`Cache::condemned`]).
    pub fn condemn(&self) -> u64 {
        let number = self.invalidation.fetch_add(1, Relaxed) + 1;
        self.fleet_lease.condemn(number);
        number
    }

    /// The same, of the run before this one.
    pub fn condemned(&self, number: u64) {
        self.fleet_lease.condemn(number);
    }

    /// For who hears of what others purge.
    pub fn fleet_lease(&self) -> &FleetLease {
        &self.fleet_lease
    }

    /// How many invalidations there were: the number of the last one.
    pub fn sequence(&self) -> u64 {
        self.began().0
    }

    /// The index of tags, if anything ever had one.
    pub(crate) fn tag_index_if_any(&self) -> Option<&Arc<TagIndex<Object>>> {
        self.tags.get()
    }

    /// Invalidates a key because of an exchange whose own response may be stored under it (a POST that answers with
    /// its target's representation). Returns the number that this response is stored under: a new one, unless
    /// somebody else has invalidated the key since the exchange began.
    pub fn invalidate_before_storing(&self, key: Key, began: Began) -> Began {
        self.take_next_number(key, Some(began)).0
    }

    fn take_next_number(&self, key: Key, began: Option<Began>) -> (Began, usize) {
        let (mut removed, mut hit) = (RemovedObjects::new(), 0);
        let mut shard = self.directory.shard(key);
        let before = self.invalidation.fetch_add(1, Relaxed);
        let last = shard.renumber(key, before + 1);
        self.forget_beneath(key);
        if let Some(entry) = shard.known(key) {
            entry.remove_all(&mut removed);
            entry.forget_notes();
            entry.delist_those_that_left().for_each(|flight| flight.condemn());
            hit = self.part_with(&removed);
            shard.tidy(key);
        }
        drop(shard);
        self.counters.invalidated.fetch_add(hit as u64, Relaxed);
        (began.filter(|began| began.0 < last).unwrap_or(Began(before + 1)), hit)
    }

    /// The same, caused by an unsafe method (RFC 9111 §4.4).
    pub fn invalidate(&self, key: Key) {
        self.purge(key);
    }

    /// Invalidates what belongs to a group (RFC 9875), by the digest of its name and its origin. A response that is
    /// being fetched already is not stored if it turns out to belong to it.
    pub fn invalidate_group(&self, group: Key) {
        let number = self.invalidation.fetch_add(1, Relaxed) + 1;
        self.group_table().invalidate(group, number);
        if let Some(disk) = &self.disk {
            disk.invalidate_group(group, number);
        }
        self.tell_of(|| Invalidated::Group(group));
    }

    pub(crate) fn group_table(&self) -> &Arc<GroupTable> {
        self.groups.get_or_init(GroupTable::new)
    }

    pub(crate) fn tag_index(&self) -> &Arc<TagIndex<Object>> {
        self.tags.get_or_init(TagIndex::new)
    }

    pub(crate) fn tag_set(&self, tags: Option<Tags>) -> Option<Arc<TagSet<Object>>> {
        tags.map(|tags| TagSet::new(self.tag_index(), tags))
    }

    pub(crate) fn membership(&self, groups: Option<&Groups>, began: u64) -> Option<Arc<Membership>> {
        groups.map(|groups| Membership::new(self.group_table(), groups, began))
    }

    /// What is stored for a request, fresh or not: for the rules about HEAD (RFC 9111 §4.3.5).
    pub fn find(&self, key: Key, request: &Request<'_>) -> Option<Arc<Object>> {
        self.look_up(key, request, (&LookupOptions::default(), Now::default()), |slot| {
            slot.whole.clone().filter(|object| object.mark().is_none())
        })
    }

    /// Looks at what is stored for a request, and changes nothing but what groups and bans have outdated.
    pub(crate) fn look_up<T>(
        &self,
        key: Key,
        request: &Request<'_>,
        (options, now): (&LookupOptions, Now),
        mut look: impl FnMut(&Slot) -> Option<T>,
    ) -> Option<T> {
        let mut removed = RemovedObjects::new();
        loop {
            let mut shard = self.directory.shard(key);
            let entry = shard.known(key)?;
            self.weed(entry, request, (options, now), &mut removed);
            let slot = entry.find(request.fields, options, now);
            let suspect = self.suspect(slot);
            let found = slot.filter(|_| suspect.is_none()).and_then(&mut look);
            shard.tidy(key);
            let Some(suspect) = suspect else { return found };
            drop(shard);
            self.examine(&suspect, request);
        }
    }

    /// One of those that would answer a request, if it was not tested against the newest ban yet.
    pub(crate) fn suspect(&self, slot: Option<&Slot>) -> Option<Arc<Object>> {
        // Where nothing was ever banned a look-up pays no more than this.
        let newest = self.bans.newest();
        if newest == 0 { None } else { slot?.objects().find(|object| object.checked() < newest).cloned() }
    }

    /// Takes out what would answer a request if its groups had not been invalidated, or its tags purged. Under the shard's lock.
    pub(crate) fn weed(
        &self,
        entry: &mut Entry,
        request: &Request<'_>,
        (options, now): (&LookupOptions, Now),
        removed: &mut RemovedObjects,
    ) {
        // Where no group was ever invalidated, and nothing is purged behind an order, a look-up pays no more than this.
        if self.groups.get().is_none_or(|groups| groups.is_untouched()) && self.purged.is_empty() {
            return;
        }
        let mut outdated = RemovedObjects::new();
        while let Some(object) = entry.find(request.fields, options, now).and_then(Slot::outdated) {
            entry.remove(&object);
            outdated.push(object);
        }
        if !outdated.is_empty() {
            let hit = self.part_with(&outdated);
            self.counters.invalidated.fetch_add(hit as u64, Relaxed);
            removed.extend(outdated);
        }
    }

    /// Gives a stored object a new head, if there is one, and new facts (RFC 9111 §4.3.5), by what was asked under a number; `None` if it is
    /// no longer the stored one, or was purged since, hard or soft. What was banned since is to be found out of the new one, too.
    pub fn freshen(
        &self,
        object: &Arc<Object>,
        head: Option<(&ResponseHead, &[u8])>,
        facts: Facts,
        (began, now): (Began, Now),
    ) -> Option<Arc<Object>> {
        let head = match head {
            Some(head) => KeptHead::of_url(object.url().unwrap_or_default(), head, &[object.behind_head()]),
            None => object.kept_head().clone(),
        };
        let checked = object.checked().min(began.0);
        let parts = ObjectParts { facts, received: now, policy: None, checked, ..ObjectParts::under(head, object) };
        let fresh = self.object(parts);
        let mut removed = RemovedObjects::new();
        let mut shard = self.directory.shard(object.key);
        let entry = shard.known(object.key)?;
        let is_in = |slot: &Slot| slot.objects().any(|it| Arc::ptr_eq(it, object));
        let is_stored = entry.slot(object.variant).is_some_and(is_in) && object.is_valid();
        let is_stored = is_stored && entry.invalidated <= began.0 && fresh.enrol_in_place_of(object, began.0);
        if is_stored {
            self.put(entry, &fresh, &mut removed);
        }
        shard.tidy(object.key);
        drop(shard);
        is_stored.then_some(fresh)
    }

    /// An object that nobody can find yet.
    pub(crate) fn object(&self, parts: ObjectParts) -> Arc<Object> {
        let inherited = match &parts.encodings {
            EncodingsFrom::Inherited(encodings) => Some(Arc::clone(encodings)),
            _ => None,
        };
        let object = Object::new(parts, |bytes| self.account.charge(bytes));
        if let Some(encodings) = inherited {
            self.inherit_encodings(&object, &encodings);
        }
        object
    }

    /// Sets the memory limit and evicts what is over it.
    pub fn set_memory(&self, bytes: usize) {
        if self.account.limit() != bytes {
            self.account.set_limit(bytes);
            self.windows.set_limit(bytes >> WINDOWS_SHARE_SHIFT);
            self.eviction.lock().set_limit(bytes);
        }
        self.make_room(0);
    }

    /// Memory of stored bodies that lies in a file, where the resident size of the process does not show it.
    pub fn file_memory_bytes(&self) -> u64 {
        self.pages.as_ref().map_or(0, |pages| pages.memory_bytes())
    }

    /// Has the account room for all that it holds, now that others made it?
    pub fn sheds(&self) -> bool {
        self.make_room(0)
    }

    /// Says that memory is short, or no longer: then bodies that are not kept run ahead of their readers by a block and no more.
    pub fn set_short(&self, is_short: bool) {
        self.is_short.store(is_short, Relaxed);
    }

    /// How far a body that is not kept may run ahead of its slowest reader at the moment. Others make room for it first. Where
    /// they have none left, it is read piece by piece, and the next one when the reader has the last: however many such
    /// bodies come at once, they do not grow in what time it takes until somebody sees what they occupy.
    pub(crate) fn window_bytes_max(&self) -> usize {
        let max = self.settings.window_bytes_max;
        if !self.make_room(0) {
            return 1;
        }
        let is_short = self.is_short.load(Relaxed) || self.windows.excess(0) > 0;
        if is_short { max.min(WINDOW_READ_BYTES_MAX) } else { max }
    }

    /// Of each disk.
    pub fn disk_stats(&self) -> Vec<DiskStats> {
        self.disk.as_ref().map_or_else(Vec::new, |disk| disk.tier.stats())
    }

    /// For a tick: what has no use any more at this second leaves first when room is made, in memory and on disks.
    pub fn note_time(&self, now: Now) {
        self.dictionaries.settle(now);
        self.eviction.lock().note_time(u32::try_from(now.mono_ms / 1_000).unwrap_or(u32::MAX));
        if let Some(disk) = &self.disk {
            disk.tier.set_now(now.wall_ms / 1_000);
            self.unwritten.sweep(disk);
        }
    }

    pub fn stats(&self) -> CacheStats {
        let counters = &self.counters;
        // Not in the expression below: its lock would be held to the end of that, while shards are locked, and who stores
        // locks them the other way round.
        let objects = self.eviction.lock().count() as u64;
        let (dictionaries, dictionary_bytes) = self.dictionaries.counts();
        CacheStats {
            memory_bytes_max: self.account.limit() as u64,
            memory_bytes: self.account.used() as u64,
            leaving_bytes: self.account.leaving() as u64,
            file_memory_bytes: self.file_memory_bytes(),
            objects,
            keys: self.directory.keys_count() as u64,
            evictions: counters.evictions.load(Relaxed),
            invalidated: counters.invalidated.load(Relaxed),
            expired: counters.expired.load(Relaxed),
            banned: counters.banned.load(Relaxed),
            ban_tests: counters.ban_tests.load(Relaxed),
            ban_tests_behind: counters.ban_tests_behind.load(Relaxed),
            tags: self.tags.get().map_or(0, |index| index.enrolled_count()),
            bans: self.bans.count() as u64,
            bans_overflowed: self.bans.overflowed.load(Relaxed),
            landed: counters.landed.load(Relaxed),
            refreshed: counters.refreshed.load(Relaxed),
            coalesced: counters.coalesced.load(Relaxed),
            overflowed: counters.overflowed.load(Relaxed),
            recalled: counters.recalled.load(Relaxed),
            encodings_made: counters.encodings_made.load(Relaxed),
            encodings_recalled: counters.encodings_recalled.load(Relaxed),
            deltas_made: counters.deltas_made.load(Relaxed),
            dictionaries: dictionaries as u64,
            dictionary_bytes: dictionary_bytes as u64,
            dictionaries_given_up: self.dictionaries.given_up.load(Relaxed),
        }
    }

    /// The largest body that is ever kept in memory.
    pub(crate) fn kept_bytes_max(&self) -> u64 {
        self.settings.object_bytes_max.min((self.account.limit() >> OBJECT_SHARE_SHIFT) as u64)
    }

    /// The largest body that is kept at the moment. Where slow readers hold half of the memory already, each with a body that
    /// was kept for it, further ones pass through windows, so that small objects have a place beside them.
    pub(crate) fn object_bytes_max(&self) -> u64 {
        let room = self.account.limit().saturating_sub(self.account.leaving().saturating_mul(2)).max(BLOCK_BYTES);
        self.settings.object_bytes_max.min((room >> OBJECT_SHARE_SHIFT) as u64)
    }

    /// Evicts until `more` bytes fit; false if they cannot.
    ///
    /// One victim at a time: the eviction is locked to choose it and a shard to take it out, so a hit waits for
    /// one of them at most. What is evicted but still held by a reader counts as gone up to the account's slack.
    pub(crate) fn make_room(&self, more: usize) -> bool {
        let (mut left, mut spared) = (self.account.excess(more), 0);
        if left > 0 {
            self.dictionaries.give_up(left);
            left = self.account.excess(more);
        }
        while left > 0 && self.account.excess(more) > 0 {
            // Before anything else leaves for it.
            if let Some(weight) = self.take_out_one_purged() {
                left = left.saturating_sub(weight);
                continue;
            }
            let victim = self.eviction.lock().victim();
            let Some(victim) = victim else { break };
            let weight = store::Tenant::weight(&*victim);
            left = left.saturating_sub(self.evict(&victim, &mut spared).unwrap_or(weight));
        }
        self.account.excess(more) == 0
    }

    /// As `make_room`, but where more than half of what is stored would have to go nothing does, and there is no room: what is
    /// on its way becomes something that may go, and of what is stored the manifests are needed to find the rest.
    pub(crate) fn makes_room_gently(&self, more: usize) -> bool {
        let excess = self.account.excess(more);
        excess == 0 || excess <= self.eviction.lock().weight() / 2 && self.make_room(more)
    }

    /// Evicts what was chosen, or its encodings alone, which go first; or nothing, where those were used. How many bytes that
    /// frees, if it is not all.
    fn evict(&self, victim: &Arc<Object>, spared: &mut usize) -> Option<usize> {
        let mut shard = self.directory.shard(victim.key);
        if let Some(encodings) = victim.encodings().filter(|_| !victim.is_dead() && *spared < SPARED_MAX) {
            *spared += 1;
            let freed =
                if victim.hears_of_uses() { Some(0) } else { Some(encodings.give_up()).filter(|&freed| freed > 0) };
            if freed.is_some() {
                self.eviction.lock().spare(Arc::clone(victim));
                return freed;
            }
        }
        // Replaced or purged since it was chosen: then it is dead already.
        if shard.remove(victim) {
            let is_evicted = victim.kill(None);
            self.dictionaries.note_evicted(victim);
            self.note_removed(victim, if is_evicted { RemovalCause::Evicted } else { RemovalCause::Over });
            self.counters.evictions.fetch_add(u64::from(is_evicted), Relaxed);
        }
        None
    }

    /// Stores what was fetched under an invalidation number, unless it comes too late. Under the shard's lock.
    pub(crate) fn take_in(
        &self,
        entry: &mut Entry,
        object: &Arc<Object>,
        began: u64,
        removed: &mut RemovedObjects,
    ) -> bool {
        let outdated = entry.slot(object.variant).is_some_and(|slot| slot.outdates(object));
        let stores = entry.invalidated <= began && !outdated && object.is_valid() && object.enrol(began);
        if stores {
            self.put(entry, object, removed);
        }
        stores
    }

    /// Stores what is enrolled, beneath too. Under the shard's lock. `removed` holds nothing but those that it replaces.
    pub(crate) fn put(&self, entry: &mut Entry, object: &Arc<Object>, removed: &mut RemovedObjects) {
        entry.end_mark(object, removed);
        self.place(entry, object, removed);
        self.keep_beneath(object);
    }

    /// A response has come for a request that selects these variants, too. What is stale of them goes, and all of it where
    /// the response has no Vary: it would be selected before the newer one. Under the shard's lock.
    pub(crate) fn displace(&self, entry: &mut Entry, variants: &[Variant], by: &Object) -> RemovedObjects {
        let is_displaced = |old: &Arc<Object>| {
            let is_fresh = old.freshness(by.received(), &RequestDirectives::default()) == Freshness::Fresh;
            by.is_newer_than(old) && (by.spec.is_none() || !is_fresh)
        };
        let mut displaced = RemovedObjects::new();
        for &variant in variants.iter().filter(|_| by.partial().is_none()) {
            if entry.slot(variant).and_then(|slot| slot.whole.as_ref()).is_some_and(is_displaced) {
                displaced.extend(self.drop_variant(entry, (by.key, variant)));
            } else if by.spec.is_none() && entry.slot(variant).is_none_or(|slot| slot.whole.is_none()) {
                // Evicted meanwhile it may lie beneath all the same.
                self.forget_variant_beneath(by.key, variant);
            }
        }
        if !displaced.is_empty() {
            entry.temper(self.bans.is_watching());
        }
        displaced
    }

    /// Drops the whole response of a variant, beneath too. Under the shard's lock.
    pub(crate) fn drop_variant(&self, entry: &mut Entry, (key, variant): (Key, Variant)) -> RemovedObjects {
        let mut dropped = RemovedObjects::new();
        entry.remove_whole(variant, &mut dropped);
        self.forget_variant_beneath(key, variant);
        self.part_with(&dropped);
        dropped
    }

    /// Takes out what a fetch set out from: what it brought stands in its place, under whatever Vary, or it was said that nothing
    /// does. Under the shard's lock.
    pub(crate) fn supersede(&self, entry: &mut Entry, old: &Object, removed: &mut RemovedObjects) {
        let mut superseded = RemovedObjects::new();
        entry.supersede(old, &mut superseded);
        self.part_with(&superseded);
        removed.extend(superseded);
        entry.temper(self.bans.is_watching());
        // Evicted meanwhile it may lie beneath all the same.
        if entry.slot(old.variant).is_none_or(|slot| slot.whole.is_none()) {
            self.forget_variant_beneath(old.key, old.variant);
        }
    }

    /// The same in memory alone.
    pub(crate) fn place(&self, entry: &mut Entry, object: &Arc<Object>, removed: &mut RemovedObjects) {
        entry.store(object, (self.settings.variants_max, self.bans.is_watching()), removed);
        self.admit(object, removed);
    }

    /// Lets a stored object take its seat, and those it replaced leave theirs. Under the shard's lock.
    pub(crate) fn admit(&self, object: &Arc<Object>, removed: &RemovedObjects) {
        let mut eviction = self.eviction.lock();
        for gone in removed {
            eviction.remove(gone);
            if gone.variant == object.variant {
                object.inherit(gone);
            }
            gone.kill(Some(object));
            self.dictionaries.note_gone(gone, Some(object));
            self.note_removed(gone, RemovalCause::Over);
        }
        eviction.admit(Arc::clone(object));
    }

    /// Sets the listener, once: the first one stays.
    pub fn set_removal_listener(&self, removal_listener: Arc<dyn RemovalListener>) {
        let _ = self.removal_listener.set(removal_listener);
    }

    pub(crate) fn note_removed(&self, object: &Object, why: RemovalCause) {
        if let Some(removal_listener) = self.removal_listener.get() {
            removal_listener.removed(object, why);
        }
    }

    /// Ends the life of objects that were taken out. Under the shard's lock. Returns how many of them could be served until now.
    pub(crate) fn part_with(&self, removed: &RemovedObjects) -> usize {
        if removed.is_empty() {
            return 0;
        }
        let (mut eviction, mut ended) = (self.eviction.lock(), 0);
        for gone in removed {
            eviction.remove(gone);
            ended += usize::from(gone.kill(None));
            self.dictionaries.note_gone(gone, None);
            self.note_removed(gone, RemovalCause::Over);
        }
        ended
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("settings", &self.settings).finish_non_exhaustive()
    }
}
