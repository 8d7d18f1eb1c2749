//! From the disk back into memory: what a miss looks for before it asks the shared tier (`shared_recall.rs`) and the origin.
//!
//! What was recalled is a stored object like every other, and whoever looked for it asks anew: freshness, variants, grace
//! and bans are judged in one place. What lies on the disk counts as old as it is, and is newer than another only if it was
//! received later; it is tested against the bans since its
//! fetch began, and against the purges of its tags and groups. Whoever purges its key meanwhile finds it in the directory
//! or, under the same lock, on the disk.

use std::sync::Arc;

use message::Request;
use store::Blocks;
use store::disk::{Candidate, Stored};
use store::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::ban_list::Trial;
use crate::by_program::ByProgram;
use crate::cache::Cache;
use crate::disk_encodings::without_encodings;
use crate::disk_level::{DiskLevel, digest_of};
use crate::encoding_form::EncodingForm;
use crate::group_table::Groups;
use crate::kept_head::KeptHead;
use crate::key::Key;
use crate::limits::DISK_CANDIDATES_MAX;
use crate::moment::Now;
use crate::object::{EncodingsFrom, Object, ObjectParts};
use crate::out_of_line_body::{OUT_OF_LINE_BYTES_MIN, OutOfLineBody};
use crate::removed_objects::RemovedObjects;
use crate::shared_level::SharedLevel;
use crate::spec::{Spec, variant_of};
use crate::stored_form::{self, StoredForm};
use crate::tag_index::Tags;

/// What looking came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recalled {
    /// It is in memory now: ask again.
    Stored,
    /// Nothing that this request could be served from.
    NotThere,
}

/// A record, and what it says.
struct Read {
    stored: Stored,
    form: StoredForm,
    spec: Option<Arc<Spec>>,
}

/// What was found beneath the memory, but for its body.
pub(crate) struct Brought {
    pub form: StoredForm,
    pub spec: Option<Arc<Spec>>,
    /// Of the invalidation sequence, under which it counts as fetched.
    pub number: u64,
    /// The sequence number of the disk's record; 0: it lies on none.
    pub on_disk: u64,
}

/// Where it was found.
pub(crate) enum Origin<'a> {
    Disk(&'a DiskLevel, &'a Stored),
    Shared(&'a SharedLevel),
}

impl Cache {
    /// May a disk have something of a key that memory has not, or the shared tier? No I/O.
    #[inline]
    pub fn may_recall(&self, key: Key) -> bool {
        self.may_be_on_disk(key) || self.has_shared_tier()
    }

    /// May a disk have it? No I/O.
    pub fn may_be_on_disk(&self, key: Key) -> bool {
        self.disk.as_ref().is_some_and(|disk| !disk.tier.family(key.bits()).is_empty())
    }

    /// Brings the variant that a request selects from the disk into memory, and the encodings that were made of it. It may be dropped at any moment.
    pub async fn recall(&self, key: Key, request: &Request<'_>, now: Now) -> Recalled {
        let (Some(disk), Some(found)) = (&self.disk, self.recall_object(key, request, now).await) else {
            return Recalled::NotThere;
        };
        self.recall_encodings(disk, &found).await;
        Recalled::Stored
    }

    /// The same, with what is in memory now: who holds it needs not find it there.
    pub(crate) async fn recall_object(&self, key: Key, request: &Request<'_>, now: Now) -> Option<Arc<Object>> {
        let disk = self.disk.as_ref()?;
        // Before anything is looked at: what is invalidated from here on meets us under the shard's lock.
        let began = self.invalidation.load(Acquire);
        let read = self.select(disk, key, request, now).await?;
        // Not more than may be kept where nothing is leaving: there is no other place from which it could be passed on.
        if read.stored.body_len() > self.kept_bytes_max() {
            return None;
        }
        let blocks = disk.body_of(&read.stored).await?;
        let Read { stored, form, spec } = read;
        let brought = Brought { form, spec, number: stored.facts().number, on_disk: stored.sequence() };
        let found = self.take_back(brought, blocks, request, (began, &Origin::Disk(disk, &stored)));
        self.counters.recalled.fetch_add(u64::from(found.is_some()), Relaxed);
        found
    }

    /// The record of the variant that a request selects: under the newest specification first, and what has none last, as
    /// in memory.
    async fn select(&self, disk: &DiskLevel, key: Key, request: &Request<'_>, now: Now) -> Option<Read> {
        let mut tried = Vec::new();
        let mut plain = None;
        let mut candidates = without_encodings(&disk.tier.family(key.bits()));
        candidates.truncate(DISK_CANDIDATES_MAX);
        for candidate in candidates {
            let Some(read) = self.open(disk, candidate, key, now).await else { continue };
            let variant = variant_of(read.spec.as_ref(), request.fields);
            // Where a program decides, the newest that matches answers.
            if read.form.variant == variant && read.spec.is_none() && read.form.keep_ms.is_none() {
                plain.get_or_insert(read);
                continue;
            }
            if read.form.variant == variant {
                return Some(read);
            }
            // Others of this specification were tried at once: the one that fits has a name.
            let digest = digest_of(key, variant);
            if !tried.contains(&variant) {
                tried.push(variant);
                if let Some(exact) = disk.tier.find(digest)
                    && let Some(read) = self.open(disk, exact, key, now).await
                    && read.form.variant == variant
                {
                    return Some(read);
                }
            }
        }
        plain
    }

    async fn open(&self, disk: &DiskLevel, candidate: Candidate, key: Key, now: Now) -> Option<Read> {
        let stored = disk.tier.open_record(candidate).await.ok()?;
        if EncodingForm::read(stored.head()).is_some() {
            // Its primary is gone: it is of no use any more.
            disk.tier.let_leave(key.bits(), &[stored.digest().member]);
        }
        let form = stored_form::read(stored.head(), disk.boot, now).filter(|form| form.key == key)?;
        let spec = form.vary.clone().map(|vary| self.specs.spec(vary, self.digester));
        Some(Read { stored, form, spec })
    }

    /// What is in memory now, by us or by somebody who was quicker. `began`: nothing of the key may have been invalidated after this number.
    pub(crate) fn take_back(
        &self,
        brought: Brought,
        blocks: Blocks,
        request: &Request<'_>,
        (began, origin): (u64, &Origin<'_>),
    ) -> Option<Arc<Object>> {
        let number = brought.number;
        let object = self.object_of(brought, blocks, request);
        self.make_room(0);
        let mut trial = Trial::since(number);
        let mut shard = self.shard_after(object.key(), &mut trial, |trial| {
            self.bans.go_on(trial, &object.as_subject(Some(request)));
        });
        let mut removed = RemovedObjects::new();
        let entry = shard.entry(object.key());
        let there = entry.slot(object.variant).and_then(|slot| slot.whole.clone()).filter(|there| there.is_valid());
        let stores = there.is_none() && trial.banned.is_none() && entry.invalidated <= began && origin.is_current();
        let stores = stores && object.is_valid() && object.enrol(number);
        if stores {
            object.note_checked(trial.checked);
            self.place(entry, &object, &mut removed);
            if let (Origin::Shared(_), Some(disk)) = (origin, &self.disk) {
                disk.keep(&object);
            }
        } else if there.is_none() && origin.is_current() {
            // Banned, or invalidated with its key, tag or group.
            origin.outdate(&object);
        }
        shard.tidy(object.key());
        drop(shard);
        there.or_else(|| stores.then_some(object))
    }

    fn object_of(&self, brought: Brought, blocks: Blocks, request: &Request<'_>) -> Arc<Object> {
        let Brought { form, spec, number, on_disk } = brought;
        let is_out_of_line = blocks.len() >= OUT_OF_LINE_BYTES_MIN || blocks.on_disk().is_some();
        let behind: Vec<&[u8]> = (!is_out_of_line).then(|| blocks.slices(0, u64::MAX)).into_iter().flatten().collect();
        // An older version of the form has no URL.
        let url = form.url.unwrap_or_else(|| {
            let mut url = Vec::new();
            request.write_url(&mut url);
            url.into()
        });
        let head = KeptHead::of_url(&url, (&form.head, &form.rendered), &behind);
        let out_of_line = is_out_of_line.then(|| OutOfLineBody::new(blocks, &self.account, self.pages.as_ref()));
        let groups = Groups::of_slots(form.group_slots);
        self.object(ObjectParts {
            key: form.key,
            variant: form.variant,
            spec,
            head,
            out_of_line,
            facts: form.facts,
            received: form.received,
            order: 0,
            part: None,
            sliced: form.sliced,
            groups: self.membership(groups.as_ref(), number),
            policy: form.keep_ms.map(|keep_ms| ByProgram { keep_ms, mark: None }),
            tags: self.tag_set(Tags::as_they_were(form.tag_slots, form.tag_digests)),
            esi: form.esi.map(Arc::new),
            checked: number,
            began: number,
            on_disk,
            encodings: EncodingsFrom::Nobody,
        })
    }
}

impl Origin<'_> {
    /// Has nobody put another one in its place meanwhile?
    fn is_current(&self) -> bool {
        match self {
            Origin::Disk(_, stored) => stored.is_current(),
            Origin::Shared(_) => true,
        }
    }

    fn outdate(&self, object: &Object) {
        match self {
            Origin::Disk(disk, _) => disk.outdate(object.key(), object.variant),
            Origin::Shared(shared) => shared.forget_variant(object.key(), object.variant),
        }
    }
}
