//! Encodings on a disk, beside the object that they are made of: written when they are as good as they get, and brought back with it.
//!
//! An encoding is a record of its own, a member of its key's family like the primary. It is found by the primary's name and its coding, and used only if it
//! names the very body that the primary has. So nothing depends on when it is written or gone: of the two writes a crash may lose either, and what was
//! purged, banned or replaced has no encoding, for there is no primary that it would be of. What is left of one makes room when its time comes.
//!
//! What is made in a hurry, while a client waits, is not written: it is made again as quickly as it is read, and would be written for everything that is
//! asked for once.

use std::sync::Arc;

use rules::ContentCoding;
use store::disk::{Candidate, Digest};
use store::sync::atomic::Ordering::Relaxed;

use crate::cache::Cache;
use crate::disk_level::{DiskLevel, digest_of, facts_of};
use crate::encoding_form::EncodingForm;
use crate::encoding_head::{encoding_parts, recoded};
use crate::encodings::{Encodings, Grade};
use crate::kept_head::KeptHead;
use crate::key::{Key, Variant};
use crate::limits::DISK_ENCODINGS_BELOW;
use crate::object::{Object, ObjectParts};
use crate::out_of_line_body::{OUT_OF_LINE_BYTES_MIN, OutOfLineBody};

/// What may lie there, and what is added to the name of the primary to have the encoding's. An index knows the lower half of it, in which no sum and
/// no difference of two is another one.
const KEPT: [(ContentCoding, u64); 3] = [
    (ContentCoding::Gzip, 0x9e37_79b9_7f4a_7c15),
    (ContentCoding::Brotli, 0xc2b2_ae3d_27d4_eb4f),
    (ContentCoding::Zstd, 0x1656_67b1_9e37_79f9),
];

fn member_of(variant: Variant, mark: u64) -> u64 {
    variant.0.wrapping_add(mark)
}

/// The records of a family that are no encodings of another one there. One variant in 2³² is taken for one, and is a hit less.
pub(crate) fn without_encodings(candidates: &[Candidate]) -> Vec<Candidate> {
    let is_of = |one: &Candidate, other: &Candidate| {
        KEPT.iter().any(|(_, mark)| one.member() == other.member().wrapping_add(*mark as u32))
    };
    let is_encoding = |one: &Candidate| candidates.iter().any(|other| is_of(one, other));
    candidates.iter().copied().filter(|one| !is_encoding(one)).collect()
}

impl DiskLevel {
    /// What has this name is outdated, with the encodings that are made of it, and nothing is stored in its place.
    pub(crate) fn outdate(&self, key: Key, variant: Variant) {
        self.tier.outdate(digest_of(key, variant));
        self.let_encodings_leave(key, variant);
    }

    /// Those of a body that is not there any more: nothing finds them, and they need not be looked at.
    pub(crate) fn let_encodings_leave(&self, key: Key, variant: Variant) {
        self.tier.let_leave(key.bits(), &KEPT.map(|(_, mark)| member_of(variant, mark)));
    }

    /// An encoding is kept in memory. Under the shard's lock.
    fn keep_encoding(&self, primary: &Arc<Object>, coding: ContentCoding, encoding: &Arc<Object>) {
        let Some((_, mark)) = KEPT.into_iter().find(|(kept, _)| *kept == coding) else { return };
        let (key, variant, sequence) = (primary.key(), primary.variant, primary.on_disk());
        let is_crowded = || self.tier.family(key.bits()).len() >= DISK_ENCODINGS_BELOW;
        if sequence == 0 || primary.is_dead() || is_crowded() {
            return;
        }
        let digest = Digest { family: key.bits(), member: member_of(variant, mark) };
        let form = EncodingForm { key, variant, sequence, coding };
        // A disk that refuses it says so in its figures; it is made again after a restart.
        if let Ok(placing) = self.tier.put(digest, form.write(), &encoding.body().blocks(), facts_of(primary)) {
            encoding.note_on_disk(placing.sequence());
        }
    }
}

/// The place of an encoding while it is read. Nobody is to wait for it in vain.
struct PlaceHeld<'e>(&'e Encodings, ContentCoding);

impl Drop for PlaceHeld<'_> {
    fn drop(&mut self) {
        self.0.break_promise(self.1, false);
    }
}

impl Cache {
    /// Writes an encoding that was made beside its primary, if that lies on a disk.
    pub(crate) fn write_encoding(&self, primary: &Arc<Object>, coding: ContentCoding, encoding: &Arc<Object>) {
        if let Some(disk) = &self.disk {
            let _shard = self.directory.shard(primary.key());
            disk.keep_encoding(primary, coding, encoding);
        }
    }

    /// Brings the encodings of an object that has come back from the disk. It may be dropped at any moment.
    pub(crate) async fn recall_encodings(&self, disk: &DiskLevel, primary: &Arc<Object>) {
        // What stays on the disk is sent from there as it is.
        if primary.on_disk() == 0 || primary.body().on_disk().is_some() {
            return;
        }
        for (coding, mark) in KEPT {
            let digest = Digest { family: primary.key().bits(), member: member_of(primary.variant, mark) };
            let Some(candidate) = disk.tier.find(digest) else { continue };
            let encodings = primary.encodings_or_new();
            if encodings.promise(coding) {
                let _place = PlaceHeld(encodings, coding);
                self.recall_encoding(disk, candidate, (primary, coding)).await;
            }
        }
    }

    async fn recall_encoding(
        &self,
        disk: &DiskLevel,
        candidate: Candidate,
        (primary, coding): (&Arc<Object>, ContentCoding),
    ) -> Option<()> {
        let stored = disk.tier.open_record(candidate).await.ok()?;
        let (key, variant, sequence) = (primary.key(), primary.variant, primary.on_disk());
        if EncodingForm::read(stored.head()) != Some(EncodingForm { key, variant, sequence, coding }) {
            disk.tier.let_leave(key.bits(), &[stored.digest().member]);
            return None;
        }
        let length = stored.body_len();
        if length > self.kept_bytes_max() || !self.make_room(length as usize) {
            return None;
        }
        let blocks = match stored.body() {
            Some(blocks) => blocks.clone(),
            None => stored.read_all().await.ok()?,
        };
        let (head, rendered) = recoded(primary, coding.into());
        let is_out_of_line = length >= OUT_OF_LINE_BYTES_MIN;
        let behind: Vec<&[u8]> = (!is_out_of_line).then(|| blocks.slices(0, u64::MAX)).into_iter().flatten().collect();
        let head = KeptHead::new(&head, &rendered, &behind);
        drop(behind);
        let out_of_line = is_out_of_line.then(|| OutOfLineBody::new(blocks, &self.account, self.pages.as_ref()));
        let parts = ObjectParts { out_of_line, on_disk: stored.sequence(), ..encoding_parts(head, primary) };
        let encoding = self.object(parts);
        if self.keep_encoding((primary.encodings()?, coding.into(), Grade::Best), &encoding, primary) {
            self.counters.encodings_recalled.fetch_add(1, Relaxed);
        }
        Some(())
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "disk_encodings_tests.rs"]
mod tests;
