//! All disks as one: which of them a name belongs to, and the verbs that the cache uses.
//!
//! Nothing here waits for a disk but opening and closing. A disk that fails costs its share of hits; the others go on.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;

use super::device::Device;
use super::disk_command::{Body, Command, Rest};
use super::disk_digest::Digest;
use super::disk_event::DiskEvent;
use super::disk_invalidation::Invalidation;
use super::disk_queue::{CommandQueue, QuestionQueue, TooManyWait};
use super::disk_settings::DiskSettings;
use super::disk_stats::DiskStats;
use super::disk_threads::{start_log, start_readers};
use super::disk_writer::{Acknowledged, Placing, Writer};
use super::file_device::{FILE_NAME, FileDevice, FileRefusal};
use super::geometry::{Found, Geometry, Superblock};
use super::head_record::RecordFacts;
use super::knowledge::{Ban, Knowledge};
use super::late_device::{LateDevice, is_passing_fault};
use super::limits::{BAN_TEXT_BYTES_MAX, CLOSE_PATIENCE, COMMANDS_QUEUED_MAX, OBJECT_SHARE_SHIFT};
use super::one_disk::{OneDisk, Told};
use super::promise::{promise, wait_for};
use super::reading::{Candidate, Reading, open_record};
use super::recovery::{self, drawn, mixed};
use super::refused::{NotDurable, Refused};
use super::stored::Stored;
use crate::Blocks;
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::{Relaxed, SeqCst};

/// The disks of a process.
pub struct Tier {
    lanes: Vec<Lane>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Lane {
    disk: Arc<OneDisk>,
    commands: Arc<CommandQueue>,
    questions: Arc<QuestionQueue>,
    /// Families are spread by it.
    salt: u64,
}

/// What a start must know before it serves anything from disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The digests of everything stored were made with it.
    pub seed: [u8; 16],
    pub bans: Vec<Ban>,
    pub slots: Vec<(u32, u64)>,
    /// No greater number was seen.
    pub number_max: u64,
}

/// What an operator must mend before a disk can be used.
#[derive(Debug)]
pub struct OpenError {
    pub path: PathBuf,
    pub why: WhyNotOpened,
}

#[derive(Debug)]
pub enum WhyNotOpened {
    Locked,
    /// A file with something else in it.
    NotAStore,
    TooSmall {
        bytes: u64,
    },
    Twice,
    Io(io::Error),
}

impl WhyNotOpened {
    /// The same of a disk that is used already.
    fn into_io(self) -> io::Error {
        match self {
            WhyNotOpened::Io(error) => error,
            WhyNotOpened::Locked => io::Error::new(io::ErrorKind::ResourceBusy, "another process has the file"),
            _ => io::Error::new(io::ErrorKind::AlreadyExists, "the file holds something that is no store of larder"),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.why {
            WhyNotOpened::Locked => {
                write!(f, "disk {path}: another process uses it; stop that one, or give this one a disk of its own")
            }
            WhyNotOpened::NotAStore => {
                write!(
                    f,
                    "disk {path}: the file holds something that is no store of larder; remove it, or name another"
                )
            }
            WhyNotOpened::TooSmall { bytes } => write!(f, "disk {path}: {bytes} bytes are too few for a store"),
            WhyNotOpened::Twice => write!(f, "disk {path}: named twice"),
            WhyNotOpened::Io(error) => write!(f, "disk {path}: cannot be opened: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl Tier {
    /// Opens the disks. What must be known is read when this returns; their indexes come back while they are used.
    pub fn open(
        disks: Vec<DiskSettings>,
        told: impl Fn(DiskEvent) + Send + Sync + 'static,
    ) -> Result<(Arc<Tier>, Recovered), OpenError> {
        let mut devices: Vec<(DiskSettings, Arc<dyn Device>)> = Vec::new();
        let told: Told = Arc::new(told);
        for (at, settings) in disks.iter().enumerate() {
            if disks[..at].iter().any(|other| other.path == settings.path) {
                return Err(OpenError { path: settings.path.clone(), why: WhyNotOpened::Twice });
            }
        }
        for settings in disks {
            let why = |why| OpenError { path: settings.path.clone(), why };
            let device: Arc<dyn Device> = match open_file(&settings) {
                Err(WhyNotOpened::Io(error)) if is_passing_fault(&error) => {
                    let settings = settings.clone();
                    Arc::new(LateDevice::new(error, move || open_file(&settings).map_err(WhyNotOpened::into_io)))
                }
                opened => Arc::new(opened.map_err(why)?),
            };
            devices.push((settings, device));
        }
        Tier::on_devices(devices, told)
    }

    /// The same on devices that are open already.
    pub fn on_devices(
        devices: Vec<(DiskSettings, Arc<dyn Device>)>,
        told: Told,
    ) -> Result<(Arc<Tier>, Recovered), OpenError> {
        let wanted = devices.iter().find_map(|(settings, _)| settings.seed);
        let found = || common_seed(devices.iter().map(|(_, device)| &**device)).unwrap_or_else(new_seed);
        let seed = wanted.unwrap_or_else(found);
        let (mut lanes, mut threads, mut knowledge) = (Vec::new(), Vec::new(), Knowledge::default());
        for (settings, device) in devices {
            let path = settings.path.clone();
            let why = |why| OpenError { path: path.clone(), why };
            let too_small = WhyNotOpened::TooSmall { bytes: settings.bytes };
            let geometry = Geometry::of(&settings).ok_or(too_small).map_err(why)?;
            let log = recovery::open(device, settings, geometry, seed, drawn(), Arc::clone(&told));
            knowledge.merge(&log.knowledge);
            let disk = Arc::clone(&log.disk);
            let lane = Lane {
                commands: Arc::new(CommandQueue::new(disk.settings.queue_bytes_max)),
                questions: Arc::new(QuestionQueue::new(disk.settings.reads_queued_max)),
                salt: disk.store(),
                disk,
            };
            let io = |error| OpenError { path: path.clone(), why: WhyNotOpened::Io(error) };
            threads.extend(start_readers(&lane.disk, &lane.questions).map_err(io)?);
            threads.extend(start_log(log, Arc::clone(&lane.commands)).map_err(io)?);
            lanes.push(lane);
        }
        let recovered = Recovered {
            seed,
            bans: knowledge.bans().collect(),
            slots: knowledge.slots().collect(),
            number_max: knowledge.number_max,
        };
        Ok((Arc::new(Tier { lanes, threads: Mutex::new(threads) }), recovered))
    }

    fn lane_of(&self, family: u64) -> Option<(usize, &Lane)> {
        // By the highest of scores that do not depend on the other disks: one more or one less moves only its share.
        self.lanes.iter().enumerate().max_by_key(|(_, lane)| mixed(family ^ lane.salt))
    }

    /// Is something stored under this name, as far as the index knows?
    pub fn find(&self, digest: Digest) -> Option<Candidate> {
        let (disk, lane) = self.lane_of(digest.family)?;
        let name = digest.short();
        lane.disk.index.find(name).filter(|_| lane.disk.is_read()).map(|_| Candidate { disk, name })
    }

    /// All that is stored of a family.
    pub fn family(&self, family: u64) -> Vec<Candidate> {
        let Some((disk, lane)) = self.lane_of(family) else { return Vec::new() };
        let names = lane.disk.index.family(family);
        if names.is_empty() || !lane.disk.is_read() {
            return Vec::new();
        }
        names.into_iter().map(|name| Candidate { disk, name }).collect()
    }

    /// Reads a record and sums it; a small body comes with it.
    pub fn open_record(&self, candidate: Candidate) -> Reading<Stored> {
        let lane = &self.lanes[candidate.disk];
        open_record(&lane.disk, &lane.questions, candidate.name)
    }

    /// It is still asked for, though nobody reads it here.
    pub fn touch(&self, digest: Digest) {
        if let Some((_, lane)) = self.lane_of(digest.family) {
            lane.disk.index.ask(digest.short(), true, |_| ());
        }
    }

    /// Begins to store a body that is still coming. Its length, if it is known, may refuse it at once.
    pub fn begin(&self, digest: Digest, length: Option<u64>) -> Result<Writer, Refused> {
        let (_, lane) = self.lane_of(digest.family).ok_or(Refused::NoDisk)?;
        let bytes_max = lane.object_bytes_max();
        lane.admits(length.unwrap_or(0))?;
        let sequence = lane.next_sequence();
        Ok(Writer::new(&lane.disk, &lane.commands, digest, sequence, bytes_max))
    }

    /// Does so much wait for the disk of a family that so many bytes more would be refused?
    pub fn is_busy(&self, family: u64, more: usize) -> bool {
        self.lane_of(family).is_some_and(|(_, lane)| lane.disk.is_up() && !lane.commands.has_room(more))
    }

    /// Does a body that was taken under this number still wait for the disk of its family? Of one that was taken by another
    /// thread at the same time it may be said a moment too early that it does not.
    pub fn is_waiting(&self, family: u64, sequence: u64) -> bool {
        let waits = |disk: &OneDisk| disk.is_up() && disk.settled.load(Relaxed) < sequence;
        self.lane_of(family).is_some_and(|(_, lane)| waits(&lane.disk))
    }

    /// Stores a body that is at hand.
    pub fn put(&self, digest: Digest, head: Bytes, body: &Blocks, facts: RecordFacts) -> Result<Placing, Refused> {
        let (_, lane) = self.lane_of(digest.family).ok_or(Refused::NoDisk)?;
        lane.admits(body.len())?;
        let (sequence, (done, awaited)) = (lane.next_sequence(), promise());
        let queued = body.len() as usize + head.len();
        let body = Body { bytes: body.len(), rest: Rest::Whole(body.clone()) };
        let command = Command::Finish { digest, sequence, body, head, facts, done };
        // From here on what it replaces is outdated, however long its own turn is in coming.
        lane.disk.index.take_out(digest.family, Some(digest.member));
        if let Err(refused) = lane.offer(command, queued) {
            drop(self.invalidate(Invalidation::Delete(digest)));
            return Err(refused);
        }
        Ok(Placing::new(sequence, awaited))
    }

    /// What has this name, or is about to have it, is outdated, and nothing is stored in its place. Where there certainly is
    /// nothing it costs a look.
    pub fn outdate(&self, digest: Digest) {
        if let Some((_, lane)) = self.lane_of(digest.family)
            && !lane.certainly_has_none(digest)
        {
            drop(self.invalidate(Invalidation::Delete(digest)));
        }
    }

    /// Members that nobody asks for any more leave the index, and nothing is promised: one that is on its way to the disk comes in all
    /// the same, and after a crash all may be there again. For what is of no use without another record, and harmless.
    pub fn let_leave(&self, family: u64, members: &[u64]) {
        if let Some((_, lane)) = self.lane_of(family) {
            for &member in members {
                lane.disk.index.take_out(family, Some(member));
            }
        }
    }

    /// Gives a stored body a new head, if it is still the one that `sequence` names.
    pub fn refresh(&self, digest: Digest, sequence: u64, head: Bytes, facts: RecordFacts) -> Result<Placing, Refused> {
        let (_, lane) = self.lane_of(digest.family).ok_or(Refused::NoDisk)?;
        lane.admits(0)?;
        let ((done, awaited), queued) = (promise(), head.len());
        let command = Command::Refresh { digest, body_sequence: sequence, head, facts, done };
        lane.offer(command, queued)?;
        Ok(Placing::new(sequence, awaited))
    }

    /// Invalidates. What is deleted cannot be found any more when this returns, nor what is on its way to the disk; ready
    /// is the answer when it would stay so after a crash.
    pub fn invalidate(&self, what: Invalidation) -> Acknowledged {
        match &what {
            Invalidation::Delete(Digest { family, .. }) | Invalidation::DeleteFamily(family) => {
                let lane = self.lane_of(*family).map(|(_, lane)| lane);
                Lane::invalidate_all(lane.into_iter(), &what)
            }
            Invalidation::Ban { text, .. } if text.len() > BAN_TEXT_BYTES_MAX => {
                Acknowledged::new(Vec::new(), Some(NotDurable("the ban is too long to be remembered".into())))
            }
            _ => Lane::invalidate_all(self.lanes.iter(), &what),
        }
    }

    /// No record is older: bans up to this number hit nothing on any disk.
    pub fn oldest_number(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.disk.segments.number_min()).min().unwrap_or(u64::MAX)
    }

    /// Says what time it is, in the units of `RecordFacts::expires`.
    pub fn set_now(&self, now: u64) {
        self.lanes.iter().for_each(|lane| lane.disk.now.store(now, Relaxed));
    }

    pub fn stats(&self) -> Vec<DiskStats> {
        self.lanes.iter().map(|lane| DiskStats::of(&lane.disk, lane.commands.bytes())).collect()
    }

    /// Bodies that wait to be written.
    pub fn queued_bytes(&self) -> usize {
        self.lanes.iter().map(|lane| lane.commands.bytes()).sum()
    }

    /// What all this takes of memory, bodies that wait to be written included.
    pub fn memory_bytes(&self) -> usize {
        let of = |lane: &Lane| lane.disk.index.heap_bytes() + lane.commands.bytes();
        self.lanes.iter().map(of).sum()
    }

    /// Writes what waits, makes it durable, and lets another process have the disks. What lies there can be read here as before as long as
    /// the other one [spares](DiskSettings::follows) it; nothing is written any more. Blocks. False if a disk needs longer than this: then all
    /// are taken back as after a failure, once they answer.
    pub fn hand_over(&self, patience: Duration) -> bool {
        let hand_over = |lane: &Lane| {
            let (done, awaited) = promise();
            lane.commands.finish(Command::HandOver { done });
            awaited
        };
        let handing: Vec<_> = self.lanes.iter().map(hand_over).collect();
        let patience = patience / self.lanes.len().max(1) as u32;
        let are_handed_over = handing.into_iter().all(|awaited| wait_for(awaited, patience).flatten().is_some());
        if !are_handed_over {
            self.take_back();
        }
        are_handed_over
    }

    /// Nobody has taken the disks that were handed over: they are used again as after a failure.
    pub fn take_back(&self) {
        self.lanes.iter().for_each(|lane| lane.commands.finish(Command::TakeBack));
    }

    /// No other process reads here any more: what is old may be written over.
    pub fn former_has_left(&self) {
        self.lanes.iter().for_each(|lane| lane.disk.spares.store(false, Relaxed));
    }

    /// Writes what waits, makes it durable, and ends the threads. Blocks; a disk that needs longer than this is left to
    /// itself, and the next start finds it as after a crash. False then.
    pub fn close(&self, patience: Duration) -> bool {
        let threads = std::mem::take(&mut *self.threads.lock());
        if threads.is_empty() {
            return true;
        }
        let close = |lane: &Lane| {
            let (done, awaited) = promise();
            lane.commands.finish(Command::Close { done });
            lane.questions.close();
            awaited
        };
        // All at once: each takes as long as it takes.
        let closing: Vec<_> = self.lanes.iter().map(close).collect();
        let closed = closing.into_iter().filter_map(|awaited| wait_for(awaited, patience)).count();
        let are_closed = closed == self.lanes.len();
        if are_closed {
            // One that ended by a panic has told so already.
            threads.into_iter().for_each(|thread| drop(thread.join()));
        }
        are_closed
    }
}

impl Drop for Tier {
    fn drop(&mut self) {
        self.close(CLOSE_PATIENCE);
    }
}

impl fmt::Debug for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.lanes.iter().map(|lane| &lane.disk.path)).finish()
    }
}

impl Lane {
    fn next_sequence(&self) -> u64 {
        self.disk.sequence.fetch_add(1, Relaxed) + 1
    }

    /// One object must not push out all others.
    fn object_bytes_max(&self) -> u64 {
        let geometry = &self.disk.geometry;
        (u64::from(geometry.segments) * geometry.segment_bytes) >> OBJECT_SHARE_SHIFT
    }

    fn admits(&self, bytes: u64) -> Result<(), Refused> {
        let refused = match () {
            () if !self.disk.is_up() => Refused::Down,
            () if bytes > self.object_bytes_max() => Refused::TooLarge,
            () => return Ok(()),
        };
        self.disk.count_refusal(refused);
        Err(refused)
    }

    /// Nothing waits that could bring it, nothing is still to be found, and a disk that is out is no evidence.
    fn certainly_has_none(&self, digest: Digest) -> bool {
        let is_settled = self.disk.is_up() && !self.disk.recovering.load(SeqCst) && self.commands.is_idle();
        is_settled && self.disk.index.find(digest.short()).is_none()
    }

    fn offer(&self, command: Command, bytes: usize) -> Result<(), Refused> {
        self.commands.offer(command, bytes).inspect_err(|refused| self.disk.count_refusal(*refused))
    }

    fn invalidate_all<'a>(lanes: impl Iterator<Item = &'a Lane>, what: &Invalidation) -> Acknowledged {
        let (mut waiting, mut failed) = (Vec::new(), None);
        for lane in lanes {
            let (done, awaited) = promise();
            lane.forget(what);
            match lane.commands.insist(Command::Invalidate { what: what.clone(), done }) {
                Ok(()) => waiting.push(awaited),
                Err(TooManyWait) => failed = Some(lane.give_up(what)),
            }
        }
        Acknowledged::new(waiting, failed)
    }

    /// Takes out of the index what is deleted, before its turn comes in the queue.
    fn forget(&self, what: &Invalidation) {
        match what {
            Invalidation::Delete(digest) => drop(self.disk.index.delete(digest.family, Some(digest.member))),
            Invalidation::DeleteFamily(family) => drop(self.disk.index.delete(*family, None)),
            Invalidation::Clear => self.disk.index.clear(),
            _ => {}
        }
    }

    /// More invalidations wait than may: the disk does not keep up. It is not used again before it has done so.
    fn give_up(&self, what: &Invalidation) -> NotDurable {
        let why = format!("more than {} changes wait for it", 2 * COMMANDS_QUEUED_MAX);
        self.disk.drop_it(&io::Error::other(why.clone()));
        self.disk.index.waits_no_more(what);
        NotDurable(format!("disk {}: {why}", self.disk.path.display()))
    }
}

fn open_file(settings: &DiskSettings) -> Result<FileDevice, WhyNotOpened> {
    let device = FileDevice::open(&settings.path, settings.bytes).map_err(|refusal| match refusal {
        FileRefusal::Locked => WhyNotOpened::Locked,
        FileRefusal::Io(error) => WhyNotOpened::Io(error),
    })?;
    let is_named_so = device.path().file_name() == Some(Path::new(FILE_NAME).as_os_str());
    match Superblock::read(&device) {
        // Somebody's file, that happens to be named here. One that is named like a store is one, whatever is in it.
        Ok(Found::Garbage { was_ours: false }) if !is_named_so => return Err(WhyNotOpened::NotAStore),
        _ => {}
    }
    Ok(device)
}

/// The seed that most of the stores were made with.
fn common_seed<'a>(devices: impl Iterator<Item = &'a dyn Device>) -> Option<[u8; 16]> {
    let seeds: Vec<[u8; 16]> = devices
        .filter_map(|device| match Superblock::read(device) {
            Ok(Found::Ours(superblock)) => Some(superblock.seed),
            _ => None,
        })
        .collect();
    let count = |seed: &[u8; 16]| seeds.iter().filter(|other| *other == seed).count();
    seeds.iter().rev().max_by_key(|seed| count(seed)).copied()
}

fn new_seed() -> [u8; 16] {
    let (high, low) = (drawn(), drawn());
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}
