//! Bodies that are sent from the file: what an answer keeps from being reclaimed, what sockets keep, and when nothing is leased.

use std::fs;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::JoinHandle;

use super::*;
use crate::disk::body_on_disk::{BodyOnDisk, LeasedBody};
use crate::disk::disk_queue::QuestionQueue;
use crate::disk::disk_threads::start_readers;
use crate::disk::faulty_device::{Faults, FaultyDevice};
use crate::disk::file_device::FileDevice;
use crate::disk::limits::READ_ERRORS_MAX;
use crate::limits::BLOCK_BYTES;

const SEGMENT_BYTES: u64 = 256 << 10;
/// One of them fills a segment: what is left is less than a block.
const BODY_BYTES: usize = 3 * BLOCK_BYTES;

struct Ground {
    path: PathBuf,
    settings: DiskSettings,
    stage: Stage,
    device: Arc<FaultyDevice>,
    queue: Arc<QuestionQueue>,
    readers: Vec<JoinHandle<()>>,
}

impl Ground {
    fn new(name: &str) -> Ground {
        let path = std::env::temp_dir().join(format!("larder-leasing-{}-{name}", std::process::id()));
        let _ = fs::remove_file(&path);
        let settings =
            DiskSettings { path: path.clone(), leases: true, folio_bytes_max: 4096, ..small(8, SEGMENT_BYTES) };
        Ground::open(path, settings, 1)
    }

    fn open(path: PathBuf, settings: DiskSettings, nonce: u64) -> Ground {
        let file = FileDevice::open(&path, settings.bytes).expect("it can be opened");
        file.reserve().expect("there is room");
        let device = Arc::new(FaultyDevice::new(Arc::new(file)));
        let stage = Stage::open(&settings, Arc::clone(&device) as Arc<dyn Device>, nonce).recovered();
        let queue = Arc::new(QuestionQueue::new(8));
        let readers = start_readers(&stage.log.disk, &queue).expect("threads");
        Ground { path, settings, stage, device, queue, readers }
    }

    fn put(&mut self, n: u64) -> Result<u64, Refused> {
        self.stage.put(digest(n), b"head", &body(n, BODY_BYTES), NO_FACTS)
    }

    fn verified(&self, n: u64) -> Option<Arc<BodyOnDisk>> {
        let stored = self.stage.open_record(digest(n)).ok()?.with_readers(&self.queue);
        wait(stored.verify_in_place()?).ok()
    }

    fn leased(&self, n: u64) -> LeasedBody {
        self.verified(n).and_then(|body| body.lease()).expect("there, and leased")
    }

    /// So much that every segment that can be is written anew.
    fn write_over(&mut self, from: u64) {
        for n in from..from + 12 {
            self.put(n).expect("stored");
        }
    }

    /// The same file, by another process: this one leaves nothing behind but its sockets.
    fn reopened(mut self) -> Ground {
        self.stage.log.commit();
        let (path, settings) = (self.path.clone(), self.settings.clone());
        self.path = PathBuf::new();
        drop(self);
        Ground::open(path, settings, 2)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.queue.close();
        self.readers.drain(..).for_each(|reader| reader.join().expect("no reader panics"));
        let _ = fs::remove_file(&self.path);
    }
}

/// As it lies in the file now.
pub fn bytes_of(leased: &LeasedBody) -> Vec<u8> {
    let file = fs::File::from(leased.file().try_clone_to_owned().expect("a file"));
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < leased.len() {
        let place = leased.place_at(bytes.len() as u64);
        let from = bytes.len();
        bytes.resize(from + place.len as usize, 0);
        file.read_exact_at(&mut bytes[from..], place.offset).expect("read");
    }
    bytes
}

/// Puts the beginning of a body into a socket that nobody reads yet.
fn send(leased: &LeasedBody, count: usize) -> UnixStream {
    let (sender, receiver) = UnixStream::pair().expect("a pair");
    let mut offset = leased.place_at(0).offset;
    let sent = rustix::fs::sendfile(&sender, leased.file(), Some(&mut offset), count).expect("sent");
    assert_eq!(sent, count);
    receiver
}

fn receive(mut receiver: UnixStream, count: usize) -> Vec<u8> {
    let mut got = vec![0; count];
    receiver.read_exact(&mut got).expect("received");
    got
}

/// Of a store of eight segments with a body in each of its sealed ones: every choice of answers that are under way while all is
/// written over, and over again.
#[test]
fn what_answers_are_sent_from_is_not_written_over_and_all_else_is() {
    const BODIES: u64 = 5;
    for choice in 0..1u64 << BODIES {
        let mut ground = Ground::new(&format!("choice-{choice}"));
        (0..BODIES).for_each(|n| assert!(ground.put(n).is_ok()));
        let bodies: Vec<_> = (0..BODIES).map(|n| ground.verified(n).expect("there")).collect();
        let wanted = (0..BODIES).filter(|n| choice >> n & 1 == 1);
        let leased: Vec<(u64, Option<LeasedBody>)> = wanted.map(|n| (n, bodies[n as usize].lease())).collect();
        let share = ground.stage.log.disk.geometry.segments as usize / 2;
        assert_eq!(
            leased.iter().filter(|(_, leased)| leased.is_some()).count(),
            leased.len().min(share),
            "{choice:05b}"
        );
        ground.write_over(100);
        for (n, leased) in leased.iter().filter_map(|(n, leased)| Some((*n, leased.as_ref()?))) {
            assert!(bytes_of(leased) == body(n, BODY_BYTES), "{choice:05b}: {n} is under way");
        }
        let is_kept = |n: u64| leased.iter().any(|(at, leased)| *at == n && leased.is_some());
        for n in 0..BODIES {
            assert_eq!(bodies[n as usize].lease().is_some(), is_kept(n), "{choice:05b}: {n}");
        }
        drop(leased);
        ground.write_over(200);
        assert!(bodies.iter().all(|body| body.lease().is_none()), "{choice:05b}: nobody is sent them any more");
    }
}

#[test]
fn where_nothing_can_be_reclaimed_nothing_is_stored_and_nobody_waits() {
    let mut ground = Ground::new("full");
    let mut held = Vec::new();
    for n in 0..8 {
        ground.put(n).expect("stored");
        held.push(ground.stage.open_record(digest(n)).expect("there"));
    }
    let leased: Vec<LeasedBody> = (0..4).map(|n| ground.leased(n)).collect();
    assert_eq!(ground.put(100), Err(Refused::Full));
    // Nobody reads any more; the answers keep four.
    held.clear();
    ground.write_over(200);
    assert!((0..4).all(|n| bytes_of(&leased[n as usize]) == body(n, BODY_BYTES)));
}

#[test]
fn a_socket_keeps_the_bytes_that_were_sent_from_a_segment_that_is_written_anew() {
    let mut ground = Ground::new("sent");
    ground.put(0).expect("stored");
    let leased = ground.leased(0);
    let receiver = send(&leased, 32_768);
    drop(leased);
    ground.write_over(100);
    assert_eq!(ground.stage.get(digest(0)), Err(Lost::Gone));
    assert!(receive(receiver, 32_768) == body(0, 32_768));
}

#[test]
fn a_socket_keeps_them_when_the_process_is_another() {
    for is_discarded in [false, true] {
        let mut ground = Ground::new(&format!("outlived-{is_discarded}"));
        ground.put(0).expect("stored");
        let receiver = send(&ground.leased(0), 32_768);
        ground.stage.log.commit();
        if is_discarded {
            // Both superblocks.
            let file = fs::File::options().write(true).open(&ground.path).expect("there");
            file.write_all_at(&[b'?'; 8192], 0).expect("written");
        }
        let mut ground = ground.reopened();
        ground.write_over(100);
        assert!(receive(receiver, 32_768) == body(0, 32_768), "{is_discarded}");
    }
}

#[test]
fn what_is_read_again_is_summed_again() {
    let mut ground = Ground::new("rotten");
    ground.put(0).expect("stored");
    let leased = ground.leased(0);
    assert_eq!(wait(leased.bring(0, BODY_BYTES as u64)), Ok(()));
    let rotten = leased.place_at(BLOCK_BYTES as u64 + 7).offset;
    let file = fs::File::options().write(true).open(&ground.path).expect("there");
    file.write_all_at(b"\x00\xff", rotten).expect("written");
    assert_eq!(wait(leased.bring(0, BLOCK_BYTES as u64)), Ok(()), "another block");
    assert_eq!(wait(leased.bring(BLOCK_BYTES as u64, BODY_BYTES as u64)), Err(Lost::Damaged));
    assert_eq!(ground.stage.get(digest(0)), Err(Lost::Gone), "nobody finds it any more");
    ground.put(1).expect("stored");
    let place = ground.verified(1).expect("there").lease().expect("leased").place_at(0).offset;
    file.write_all_at(b"\x00\xff", place).expect("written");
    assert!(ground.verified(1).is_none(), "it is summed before it is leased for the first time");
}

#[test]
fn a_disk_that_fails_leases_nothing_and_nothing_of_what_it_leased_is_trusted_again() {
    let mut ground = Ground::new("failing");
    ground.put(0).expect("stored");
    let (body, leased) = (ground.verified(0).expect("there"), ground.leased(0));
    ground.device.set(Faults { reads: Some(io::ErrorKind::Other), ..Faults::default() });
    for _ in 0..READ_ERRORS_MAX {
        assert_eq!(wait(leased.bring(0, BODY_BYTES as u64)), Err(Lost::Failed));
    }
    assert!(!leased.is_trusted() && body.lease().is_none());
    ground.device.set(Faults::default());
    ground.stage.log.look_after();
    ground.stage.log.probe();
    assert!(ground.stage.log.disk.is_up());
    assert!(!leased.is_trusted() && body.lease().is_none(), "somebody may have mended the file with zeros");
    assert!(ground.verified(0).is_some_and(|body| body.lease().is_some()), "what is summed anew is leased");
}

#[test]
fn what_shares_a_folio_with_another_segment_is_not_leased() {
    let mut ground = Ground::new("edges");
    ground.put(0).expect("stored");
    assert!(ground.verified(0).is_some());
    let geometry = ground.stage.log.disk.geometry;
    let (begin, folio) = (geometry.segment_at(3), 64 << 10);
    let first = begin.next_multiple_of(folio);
    let last = (begin + SEGMENT_BYTES) / folio * folio;
    for (place, len, is_inside) in [
        (first, last - first, true),
        (first, last - first + 512, false),
        (first + 512, 512, true),
        (last - 512, 512, true),
        (last, 512, false),
    ] {
        assert_eq!(geometry.is_inside(place, len, folio), is_inside, "{place} {len}");
    }
    if first > begin {
        assert!(!geometry.is_inside(begin, 512, folio));
    }
    ground.settings.folio_bytes_max = 2 << 20;
    let mut ground = ground.reopened();
    ground.put(1).expect("stored");
    assert!(ground.verified(1).is_none(), "its segments are smaller than that");
}

#[test]
fn where_it_was_not_asked_for_nothing_is_leased() {
    let mut ground = Ground::new("off");
    ground.settings.leases = false;
    let mut ground = ground.reopened();
    ground.put(0).expect("stored");
    assert!(ground.verified(0).is_none());
}
