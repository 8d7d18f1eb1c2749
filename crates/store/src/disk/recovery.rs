//! Finding everything again: the last checkpoint, and what the journal says since.
//!
//! First the journal, whole: it says what is no longer valid, and where the newest records are. From then on the disk
//! serves what it knows, while the pages of the checkpoint come in one after another and fill in what is older. What
//! cannot be known to be valid is not used.

use std::hash::{BuildHasher, Hasher};
use std::io;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::checkpoint::{Checkpoint, decode_page, void_slot};
use super::device::{Device, read_whole};
use super::disk_digest::ShortName;
use super::disk_event::{DiskEvent, WhyDiscarded};
use super::disk_index::{Kept, Rule};
use super::disk_log::DiskLog;
use super::disk_settings::DiskSettings;
use super::geometry::{Found, Geometry, Superblock};
use super::journal::{Journal, JournalEnd, is_outdated, replay};
use super::journal_entry::JournalEntry;
use super::knowledge::Knowledge;
use super::limits::{PAGE_BYTES, PAGES_A_STEP, UNIT_BYTES};
use super::one_disk::{DiskState, OneDisk, Told};
use super::segment_table::{Phase, Segment, SegmentTable};
use crate::sync::atomic::Ordering::{Relaxed, SeqCst};

/// A number that nobody foresees.
pub fn drawn() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// Spreads a number over all bits.
pub fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

/// The pages of a checkpoint that are not back yet, and what is known of their records already.
pub struct Recovering {
    epoch: u64,
    next_page: u64,
    pages: u64,
    pages_damaged: u64,
    is_cleared: bool,
    families: HashSet<u64, foldhash::fast::RandomState>,
    names: HashSet<ShortName, foldhash::fast::RandomState>,
    /// Segments that hold what the checkpoint says they hold.
    usable: Vec<bool>,
    /// What lies in segments that were open.
    orphans: HashMap<u32, Vec<ShortName>>,
}

impl Recovering {
    pub fn note_clear(&mut self) {
        self.is_cleared = true;
    }

    pub fn note_deletion(&mut self, family: u64, member: Option<u64>) {
        match member {
            Some(member) => self.names.insert(ShortName { family, member: member as u32 }),
            None => self.families.insert(family),
        };
    }

    fn is_superseded(&self, name: ShortName) -> bool {
        self.is_cleared || self.families.contains(&name.family) || self.names.contains(&name)
    }
}

/// Opens what is on a device, or makes a store there. It never fails: a device that does is dropped, and tried again.
pub fn open(
    device: Arc<dyn Device>,
    settings: DiskSettings,
    geometry: Geometry,
    seed: [u8; 16],
    nonce: u64,
    told: Told,
) -> DiskLog {
    let fresh = Superblock { geometry, store: mixed(nonce ^ 0x5AFE), seed };
    let path = settings.path.clone();
    // What is there is read and written whether or not all of its room can be had; a store is made only where it can.
    // Where another process still reads, nothing is made anew before it has ended: the disk is out until then.
    let spared = |why: &str| io::Error::other(format!("{why}, and another process still reads there"));
    let reserved = if settings.follows { Ok(()) } else { device.reserve() };
    let why = match Superblock::read(&*device) {
        Ok(Found::Ours(superblock)) if superblock.geometry != geometry => Some(WhyDiscarded::Geometry),
        Ok(Found::Ours(superblock)) if superblock.seed != seed => Some(WhyDiscarded::Seed),
        Ok(Found::Ours(superblock)) => match read_all(&*device, &superblock) {
            Ok(all) => return restore(device, settings, superblock, all, nonce, told),
            Err(what) => Some(WhyDiscarded::Damage(what)),
        },
        Ok(Found::Version(version)) => Some(WhyDiscarded::Version(version)),
        Ok(Found::Garbage { .. }) => Some(WhyDiscarded::Damage("its beginning cannot be read")),
        Ok(Found::Blank) => None,
        Err(error) => return dropped(device, settings, fresh, nonce, told, &error),
    };
    let is_blank = why.is_none();
    if settings.follows && !is_blank {
        return dropped(device, settings, fresh, nonce, told, &spared("it is to be made anew"));
    }
    if let Some(why) = why {
        told(DiskEvent::Discarded { path: path.clone(), why });
    }
    match reserved.and_then(|()| format(&*device, &fresh, Knowledge::default())) {
        Ok((journal, _)) => {
            if is_blank {
                told(DiskEvent::Formatted { path, bytes: geometry.bytes });
            }
            let disk = OneDisk::new(device, settings, fresh, DiskState::Up, told);
            if !is_blank {
                disk.distrust_sockets();
            }
            DiskLog::new(Arc::new(disk), journal, Knowledge::default(), nonce)
        }
        Err(error) => dropped(device, settings, fresh, nonce, told, &error),
    }
}

fn dropped(
    device: Arc<dyn Device>,
    settings: DiskSettings,
    superblock: Superblock,
    nonce: u64,
    told: Told,
    error: &io::Error,
) -> DiskLog {
    let end = JournalEnd { epoch: 0, position: 0, number: 0, chain: 0 };
    let disk = Arc::new(OneDisk::new(device, settings, superblock, DiskState::Up, told));
    disk.drop_it(error);
    disk.distrust_sockets();
    let mut log = DiskLog::new(disk, Journal::new(superblock.store, end, end), Knowledge::default(), nonce);
    log.was_opened = false;
    log
}

/// Makes an empty store.
pub fn format(device: &dyn Device, superblock: &Superblock, knowledge: Knowledge) -> io::Result<(Journal, Checkpoint)> {
    let geometry = &superblock.geometry;
    for slot in [0, 1] {
        void_slot(device, geometry, slot)?;
    }
    let journal = JournalEnd { epoch: 0, position: 0, number: 1, chain: 0 };
    let segments = SegmentTable::new(geometry.segments).all();
    let checkpoint = Checkpoint { journal, pages: 0, records: 0, sequence: 0, order: 0, segments, knowledge };
    checkpoint.write(device, geometry, superblock.store)?;
    superblock.write(device)?;
    Ok((Journal::new(superblock.store, journal, journal), checkpoint))
}

/// What was read at the start.
struct All {
    checkpoint: Checkpoint,
    entries: Vec<JournalEntry>,
    /// Of the half that is written.
    start: JournalEnd,
    end: JournalEnd,
}

fn read_all(device: &dyn Device, superblock: &Superblock) -> Result<All, &'static str> {
    let (geometry, store) = (&superblock.geometry, superblock.store);
    let checkpoint = Checkpoint::read_newest(device, geometry, store).ok_or("no checkpoint can be read")?;
    if is_outdated(device, geometry, store, checkpoint.journal.epoch) {
        return Err("its newest checkpoint cannot be read");
    }
    let (mut start, mut end) = (checkpoint.journal, checkpoint.journal);
    let mut entries = replay(device, geometry, store, &mut end).map_err(|_| "its journal is damaged")?;
    // A checkpoint that was under way: the journal had gone over to the other half already.
    let mut other = JournalEnd { epoch: end.epoch + 1, position: 0, ..end };
    let other_start = other;
    let behind = replay(device, geometry, store, &mut other).map_err(|_| "its journal is damaged")?;
    if other.position > 0 {
        (start, end) = (other_start, other);
        entries.extend(behind);
    }
    Ok(All { checkpoint, entries, start, end })
}

fn restore(
    device: Arc<dyn Device>,
    settings: DiskSettings,
    superblock: Superblock,
    all: All,
    nonce: u64,
    told: Told,
) -> DiskLog {
    let All { checkpoint, entries, start, end } = all;
    let disk = Arc::new(OneDisk::new(device, settings, superblock, DiskState::Up, told));
    let mut recovering = Recovering {
        epoch: checkpoint.journal.epoch,
        next_page: 0,
        pages: u64::from(checkpoint.pages),
        pages_damaged: 0,
        is_cleared: false,
        families: HashSet::default(),
        names: HashSet::default(),
        usable: Vec::new(),
        orphans: HashMap::new(),
    };
    let mut segments = Segments::new(&disk.geometry, checkpoint.segments);
    entries.iter().for_each(|entry| segments.apply(entry));
    recovering.usable = segments.usable();
    disk.segments.restore(segments.all.clone());
    disk.distrust_sockets();
    disk.index.reserve(checkpoint.records);
    let (mut knowledge, mut sequence) = (checkpoint.knowledge, checkpoint.sequence);
    for entry in &entries {
        match entry {
            JournalEntry::Put { kept, generation, sequence: of, number } => {
                sequence = sequence.max(*of);
                knowledge.note_number(*number);
                // What is older of this name must not come back, not even when this turns out to be damaged.
                recovering.names.insert(kept.name);
                let lies_there = segments.holds(kept.spot.unit * UNIT_BYTES, *generation);
                if !lies_there || disk.index.insert(*kept, Rule::Newest).is_err() {
                    disk.index.take_out(kept.name.family, Some(u64::from(kept.name.member)));
                }
            }
            JournalEntry::Delete { family, member } => {
                disk.index.take_out(*family, *member);
                recovering.note_deletion(*family, *member);
            }
            JournalEntry::Clear => {
                disk.index.empty();
                recovering.note_clear();
            }
            JournalEntry::Slot { slot, number } => drop(knowledge.set_slot(*slot, *number, usize::MAX)),
            JournalEntry::Ban { number, text } => drop(knowledge.add_ban(*number, text, usize::MAX)),
            JournalEntry::RetireBans { through } => knowledge.retire_bans(*through),
            JournalEntry::Number(number) => knowledge.note_number(*number),
            JournalEntry::Open { .. } | JournalEntry::Seal { .. } | JournalEntry::Free { .. } => {}
        }
    }
    disk.sequence.store(sequence, Relaxed);
    recovering.note_orphans(&disk, (0..disk.index.shards_count()).flat_map(|shard| disk.index.shard_kept(shard)));
    let (path, journal_entries) = (disk.path.clone(), entries.len() as u64);
    disk.tell(DiskEvent::Opened { path, records: checkpoint.records, journal_entries });
    let order = segments.order.max(checkpoint.order);
    let mut log = DiskLog::new(disk, Journal::new(superblock.store, start, end), knowledge, nonce);
    log.base_epoch = checkpoint.journal.epoch;
    log.order = order;
    log.disk.recovering.store(true, SeqCst);
    log.disk.counters.index_pages.store(recovering.pages, Relaxed);
    log.recovering = Some(recovering);
    log
}

/// The segments, as the journal changes them.
struct Segments<'a> {
    geometry: &'a Geometry,
    all: Vec<Segment>,
    reopened: HashSet<u32>,
    order: u64,
}

impl<'a> Segments<'a> {
    fn new(geometry: &'a Geometry, all: Vec<Segment>) -> Segments<'a> {
        Segments { geometry, all, reopened: HashSet::new(), order: 0 }
    }

    fn apply(&mut self, entry: &JournalEntry) {
        match *entry {
            JournalEntry::Open { segment, generation, order } => {
                self.order = self.order.max(order);
                self.reopened.insert(segment);
                if let Some(it) = self.all.get_mut(segment as usize) {
                    (it.phase, it.generation) = (Phase::Orphan, generation);
                    (it.order, it.number_min) = (order, u64::MAX);
                }
            }
            JournalEntry::Seal { segment, number_min } => {
                if let Some(it) = self.all.get_mut(segment as usize) {
                    (it.phase, it.number_min) = (Phase::Sealed, number_min);
                }
            }
            JournalEntry::Free { segment } => {
                if let Some(it) = self.all.get_mut(segment as usize) {
                    it.phase = Phase::Free;
                }
            }
            JournalEntry::Put { kept, generation, number, .. } => {
                let segment = self.geometry.segment_of(kept.spot.unit * UNIT_BYTES);
                let it = segment.and_then(|segment| self.all.get_mut(segment as usize));
                if let Some(it) = it.filter(|it| it.generation == generation) {
                    it.number_min = it.number_min.min(number);
                }
            }
            _ => {}
        }
    }

    fn holds(&self, place: u64, generation: u32) -> bool {
        let segment = self.geometry.segment_of(place).map(|segment| self.all[segment as usize]);
        segment.is_some_and(|it| it.generation == generation && it.phase != Phase::Free)
    }

    /// What an older checkpoint says of a segment that was opened since is not what is in it.
    fn usable(&self) -> Vec<bool> {
        let holds = |(at, it): (usize, &Segment)| it.phase != Phase::Free && !self.reopened.contains(&(at as u32));
        self.all.iter().enumerate().map(holds).collect()
    }
}

impl Recovering {
    fn note_orphans(&mut self, disk: &OneDisk, records: impl Iterator<Item = Kept>) {
        let phases: Vec<Phase> = disk.segments.all().iter().map(|segment| segment.phase).collect();
        for kept in records {
            let segment = disk.geometry.segment_of(kept.spot.unit * UNIT_BYTES);
            if let Some(segment) = segment.filter(|segment| phases[*segment as usize] == Phase::Orphan) {
                self.orphans.entry(segment).or_default().push(kept.name);
            }
        }
    }
}

impl DiskLog {
    pub(super) fn new(disk: Arc<OneDisk>, journal: Journal, knowledge: Knowledge, nonce: u64) -> DiskLog {
        DiskLog {
            disk,
            journal,
            knowledge,
            open: None,
            order: 0,
            nonce,
            drafts: HashMap::new(),
            acks: Vec::new(),
            checkpoint: None,
            base_epoch: 0,
            recovering: None,
            was_opened: true,
            is_reclaiming: false,
            buffer: Vec::new(),
            syncer: None,
            #[cfg(test)]
            acknowledges_early: false,
        }
    }

    /// Some pages of the checkpoint; after the last one the index is back.
    pub(super) fn recover_some(&mut self) {
        let Some(mut recovering) = self.recovering.take() else { return };
        let mut page = vec![0; PAGE_BYTES];
        for _ in 0..PAGES_A_STEP.min(recovering.pages - recovering.next_page) {
            let number = recovering.next_page;
            recovering.next_page += 1;
            let place = self.disk.geometry.page_at(recovering.epoch % 2, number);
            let read = match read_whole(&*self.disk.device, &mut page, place) {
                Ok(()) => decode_page(&page, self.disk.store(), place, recovering.epoch, number as u32),
                Err(_) => None,
            };
            match read {
                Some(records) => self.take_in(&mut recovering, &records),
                None => recovering.pages_damaged += 1,
            }
        }
        self.disk.counters.index_pages_read.store(recovering.next_page, Relaxed);
        if recovering.next_page < recovering.pages {
            self.recovering = Some(recovering);
            return;
        }
        self.end_recovery(&mut recovering);
    }

    fn take_in(&self, recovering: &mut Recovering, records: &[Kept]) {
        let is_usable = |kept: &&Kept| {
            let segment = self.disk.geometry.segment_of(kept.spot.unit * UNIT_BYTES);
            segment.is_some_and(|segment| recovering.usable[segment as usize])
        };
        let wanted = records.iter().filter(is_usable).filter(|kept| !recovering.is_superseded(kept.name));
        let taken: Vec<Kept> =
            wanted.filter(|kept| self.disk.index.insert(**kept, Rule::IfAbsent).is_ok()).copied().collect();
        recovering.note_orphans(&self.disk, taken.into_iter());
    }

    /// Ends the segments that were being written when the process ended: nothing is appended to them.
    fn end_recovery(&mut self, recovering: &mut Recovering) {
        for (segment, it) in self.disk.segments.all().into_iter().enumerate() {
            let segment = segment as u32;
            if it.phase != Phase::Orphan {
                continue;
            }
            let names = recovering.orphans.remove(&segment).unwrap_or_default();
            if let Err(error) = self.seal(segment, &names) {
                self.disk.write_failed(&error);
            }
        }
        self.disk.recovering.store(false, SeqCst);
        let (objects, pages_damaged) = (self.disk.index.count(), recovering.pages_damaged);
        self.disk.tell(DiskEvent::Recovered { path: self.disk.path.clone(), objects, pages_damaged });
    }
}
