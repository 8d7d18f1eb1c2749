//! The whole tier, with its threads, on real files: the verbs as the cache uses them.

use std::future::Future;
use std::path::PathBuf;

use super::*;
use crate::Blocks;
use crate::disk::{DiskState, Faults, FaultyDevice, Recovered, Tier, WhyNotOpened};

/// A directory that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("larder-disk-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory for the test");
        Folder(path)
    }

    fn settings(&self, name: &str) -> DiskSettings {
        let mut settings = DiskSettings::new(self.0.join(name), 24 << 20);
        settings.segment_bytes = 1 << 20;
        (settings.leases, settings.folio_bytes_max) = (true, 4096);
        settings
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open_tier(disks: Vec<DiskSettings>) -> (Arc<Tier>, Recovered) {
    Tier::open(disks, |_| ()).expect("the disks can be opened")
}

fn get(tier: &Tier, digest: Digest) -> Option<(Bytes, Vec<u8>)> {
    let stored = wait(tier.open_record(tier.find(digest)?)).ok()?;
    assert!(stored.is_current());
    let blocks = wait(stored.read_all()).ok()?;
    Some((stored.head().clone(), blocks.pieces(0, u64::MAX).collect::<Vec<_>>().concat()))
}

#[test]
fn what_streams_in_streams_out_and_is_there_after_a_restart() {
    let folder = Folder::new("streams");
    let (tier, first) = open_tier(vec![folder.settings("a.larder"), folder.settings("b.larder")]);
    let whole = body(1, 3_500_000);
    let mut writer = tier.begin(digest(1), Some(whole.len() as u64)).expect("it fits");
    for piece in whole.chunks(10_007) {
        writer.append(Bytes::copy_from_slice(piece)).expect("the queue has room");
    }
    let placing = writer.finish(Bytes::from_static(b"head"), NO_FACTS);
    let sequence = placing.sequence();
    assert_eq!(wait(placing), Ok(()));
    for n in 2..50 {
        let blocks = Blocks::copy_of(&body(n, 6221));
        let placing = tier.put(digest(n), Bytes::from_static(b"small"), &blocks, NO_FACTS).expect("it fits");
        assert_eq!(wait(placing), Ok(()));
    }
    assert_eq!(wait(tier.refresh(digest(1), sequence, Bytes::from_static(b"new head"), NO_FACTS).expect("up")), Ok(()));
    assert_eq!(wait(tier.invalidate(Invalidation::DeleteFamily(digest(3).family))), Ok(()));
    assert_eq!(wait(tier.invalidate(Invalidation::Ban { number: 9, text: Bytes::from_static(b"x") })), Ok(()));
    let check = |tier: &Tier| {
        assert!(get(tier, digest(1)).is_some_and(|(head, bytes)| head == "new head" && bytes == whole));
        assert!(get(tier, digest(2)).is_some_and(|(head, bytes)| head == "small" && bytes == body(2, 6221)));
        assert!(get(tier, digest(3)).is_none() && tier.family(digest(3).family).is_empty());
        assert_eq!(tier.family(digest(4).family).len(), 1);
        let stored = wait(tier.open_record(tier.find(digest(1)).expect("there"))).expect("whole");
        let block = wait(stored.read(7)).expect("whole");
        assert!(block == whole[7 * 65_536..8 * 65_536]);
        let leased =
            wait(stored.verify_in_place().expect("it may be leased")).expect("whole").lease().expect("it is there");
        assert!(leased_segments::bytes_of(&leased) == whole);
    };
    check(&tier);
    assert!(tier.stats().iter().all(|disk| disk.objects > 5 && disk.state == DiskState::Up), "both have a share");
    assert!(tier.close(super::super::limits::CLOSE_PATIENCE));
    drop(tier);
    let (tier, again) = open_tier(vec![folder.settings("b.larder"), folder.settings("a.larder")]);
    assert_eq!((again.seed, again.number_max), (first.seed, 9));
    assert_eq!(again.bans.iter().map(|ban| ban.number).collect::<Vec<_>>(), [9]);
    while tier.stats().iter().map(|disk| disk.objects).sum::<u64>() < 48 {
        std::thread::yield_now();
    }
    check(&tier);
}

#[test]
fn a_body_that_is_given_up_leaves_nothing_and_one_too_large_is_refused() {
    let folder = Folder::new("given-up");
    let (tier, _) = open_tier(vec![folder.settings("a.larder")]);
    let mut writer = tier.begin(digest(1), None).expect("it fits");
    writer.append(Bytes::from(body(1, 2 << 20))).expect("the queue has room");
    drop(writer);
    assert_eq!(tier.begin(digest(2), Some(20 << 20)).err(), Some(Refused::TooLarge));
    let mut writer = tier.begin(digest(2), None).expect("nobody knows yet");
    let refused = (0..20).find_map(|_| writer.append(Bytes::from(vec![0; 1 << 20])).err());
    assert_eq!(refused, Some(Refused::TooLarge));
    assert_eq!(wait(writer.finish(Bytes::new(), NO_FACTS)), Err(Refused::TooLarge));
    assert!(tier.find(digest(1)).is_none() && tier.find(digest(2)).is_none());
}

#[test]
fn a_second_process_is_refused_and_says_so() {
    let folder = Folder::new("second");
    let (tier, _) = open_tier(vec![folder.settings("a.larder")]);
    let refused = Tier::open(vec![folder.settings("a.larder")], |_| ()).expect_err("it is in use");
    assert!(matches!(refused.why, WhyNotOpened::Locked));
    assert!(refused.to_string().contains("another process uses it"), "{refused}");
    drop(tier);
    open_tier(vec![folder.settings("a.larder")]);
}

#[test]
fn somebody_elses_file_is_left_alone_and_a_directory_gets_a_file() {
    let folder = Folder::new("else");
    std::fs::write(folder.0.join("letter.txt"), "dear reader").expect("written");
    let refused = Tier::open(vec![folder.settings("letter.txt")], |_| ()).expect_err("it is no store");
    assert!(matches!(refused.why, WhyNotOpened::NotAStore), "{refused}");
    assert_eq!(std::fs::read(folder.0.join("letter.txt")).expect("there"), b"dear reader");
    let mut settings = folder.settings("");
    settings.path = folder.0.clone();
    open_tier(vec![settings.clone()]);
    assert!(folder.0.join("larder.store").is_file());
    // What is named like a store is one; what is in it is not used.
    std::fs::write(folder.0.join("larder.store"), [7; 100_000]).expect("written");
    let (tier, _) = open_tier(vec![settings.clone()]);
    assert_eq!(tier.stats()[0].state, DiskState::Up);
    settings.bytes = 1 << 20;
    drop(tier);
    let refused = Tier::open(vec![settings], |_| ()).expect_err("too small");
    assert!(matches!(refused.why, WhyNotOpened::TooSmall { .. }));
    let missing = DiskSettings::new(folder.0.join("no/such/place"), 24 << 20);
    assert!(matches!(Tier::open(vec![missing], |_| ()).expect_err("missing").why, WhyNotOpened::Io(_)));
}

#[test]
fn a_disk_larger_than_its_file_system_is_dropped_and_takes_nothing() {
    use std::os::unix::fs::MetadataExt;
    let folder = Folder::new("larger");
    let system = rustix::fs::statvfs(&folder.0).expect("a file system");
    let bytes = system.f_bfree * system.f_frsize + (8 << 30);
    let (said, hear) = std::sync::mpsc::channel();
    let settings = DiskSettings::new(folder.0.join("a.larder"), bytes);
    let (tier, _) =
        Tier::open(vec![settings], move |event| said.send(event.to_string()).expect("heard")).expect("it starts");
    assert_eq!(tier.stats()[0].state, DiskState::Dropped);
    let said = hear.recv().expect("a line");
    assert!(said.contains("dropped") && said.contains("no space") && said.contains(&bytes.to_string()), "{said}");
    let file = std::fs::metadata(folder.0.join("a.larder")).expect("there");
    assert_eq!((file.len(), file.blocks()), (0, 0));
}

#[test]
fn a_stalled_disk_holds_up_nobody() {
    let settings = DiskSettings { queue_bytes_max: 1 << 20, reads_queued_max: 8, readers: 1, ..small(20, 1 << 20) };
    let memory = Arc::new(SimulatedDevice::new(settings.bytes, 1));
    let faulty = Arc::new(FaultyDevice::new(memory));
    let device = Arc::clone(&faulty) as Arc<dyn Device>;
    let (tier, _) = Tier::on_devices(vec![(settings, device)], Arc::new(|_| ())).expect("it opens");
    let put = |n| tier.put(digest(n), Bytes::new(), &Blocks::copy_of(&body(n, 200_000)), NO_FACTS);
    let first = put(1).expect("there is room");
    let first_sequence = first.sequence();
    assert_eq!(wait(first), Ok(()));
    assert!(!tier.is_waiting(digest(1).family, first_sequence), "it is written");
    let candidate = tier.find(digest(1)).expect("there");
    faulty.set(Faults { stalls: true, ..Faults::default() });
    // More than may wait: each is answered at once, and with a refusal from some point on.
    let waiting: Vec<_> = (10..40).map(put).collect();
    assert!(waiting.iter().any(|put| put.as_ref().err() == Some(&Refused::Busy)));
    faulty.wait_for_stalled();
    let last = waiting.iter().flatten().last().expect("some were taken").sequence();
    assert!(tier.is_waiting(digest(10).family, last) && tier.queued_bytes() > 0);
    let mut reads: Vec<_> = (0..20).map(|_| tier.open_record(candidate)).collect();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let answers = reads.iter_mut().map(|read| std::pin::Pin::new(read).poll(&mut context));
    let busy = answers.filter(|answer| matches!(answer, std::task::Poll::Ready(Err(Lost::Busy)))).count();
    assert!(busy >= 10, "{busy}");
    let acknowledged = tier.invalidate(Invalidation::DeleteFamily(digest(1).family));
    assert!(tier.find(digest(1)).is_none(), "in force at once");
    faulty.set(Faults::default());
    assert_eq!(wait(acknowledged), Ok(()));
    let placed = waiting.into_iter().flatten().map(wait).filter(Result::is_ok).count();
    assert!(placed >= 4, "{placed}");
    assert!(tier.find(digest(10)).is_some());
}

/// A tier above one device that does what it is told, with room for so many bytes on their way.
fn above_faulty(queue_bytes_max: usize) -> (Arc<Tier>, Arc<FaultyDevice>) {
    let settings = DiskSettings { queue_bytes_max, ..small(20, 1 << 20) };
    let faulty = Arc::new(FaultyDevice::new(Arc::new(SimulatedDevice::new(settings.bytes, 1))));
    let device = Arc::clone(&faulty) as Arc<dyn Device>;
    let (tier, _) = Tier::on_devices(vec![(settings, device)], Arc::new(|_| ())).expect("it opens");
    (tier, faulty)
}

#[test]
fn what_is_outdated_is_not_found_while_its_successor_waits_nor_when_it_is_refused() {
    let (tier, faulty) = above_faulty(300_000);
    let put = |n, version| tier.put(digest(n), Bytes::new(), &Blocks::copy_of(&body(version, 100_000)), NO_FACTS);
    assert_eq!(wait(put(1, 1).expect("there is room")), Ok(()));
    assert_eq!(wait(put(2, 1).expect("there is room")), Ok(()));
    faulty.set(Faults { stalls: true, ..Faults::default() });
    // The second version of one waits; of the other even the first does, and its second has no room.
    let waiting = [put(1, 2).expect("there is room"), put(3, 1).expect("there is room")];
    faulty.wait_for_stalled();
    assert!(tier.find(digest(1)).is_none() && tier.find(digest(2)).is_some());
    let filler = put(4, 1).expect("there is room");
    assert_eq!(put(3, 2).err(), Some(Refused::Busy));
    tier.outdate(digest(3));
    assert_eq!(put(2, 2).err(), Some(Refused::Busy));
    assert!(tier.find(digest(2)).is_none());
    faulty.set(Faults::default());
    let settled = wait(tier.invalidate(Invalidation::Number(1)));
    assert_eq!(settled, Ok(()));
    let _ = waiting.map(wait);
    assert_eq!(wait(filler), Ok(()));
    assert!(get(&tier, digest(1)).is_some_and(|(_, bytes)| bytes == body(2, 100_000)));
    assert!(tier.find(digest(2)).is_none() && tier.find(digest(3)).is_none());
}

#[test]
fn what_is_larger_than_may_wait_waits_alone() {
    let (tier, faulty) = above_faulty(100_000);
    let put = |n, bytes| tier.put(digest(n), Bytes::new(), &Blocks::copy_of(&body(n, bytes)), NO_FACTS);
    assert_eq!(wait(put(1, 1_000_000).expect("nothing waits")), Ok(()));
    // Its room is given back just behind its answer: what is asked next is answered after that.
    assert_eq!(wait(tier.invalidate(Invalidation::Number(1))), Ok(()));
    faulty.set(Faults { stalls: true, ..Faults::default() });
    let waits = put(2, 1_000_000).expect("nothing waits");
    faulty.wait_for_stalled();
    assert_eq!(put(3, 10).err(), Some(Refused::Busy));
    faulty.set(Faults::default());
    assert_eq!(wait(waits), Ok(()));
}

#[test]
fn a_disk_is_taken_back_while_others_go_on_invalidating() {
    let (tier, faulty) = above_faulty(1 << 20);
    faulty.set(Faults { writes: Some(std::io::ErrorKind::StorageFull), ..Faults::default() });
    assert!(wait(tier.invalidate(Invalidation::DeleteFamily(1))).is_err());
    assert_ne!(tier.stats()[0].state, DiskState::Up);
    faulty.set(Faults::default());
    // Far more often than it looks after itself.
    let is_back = (0..4_000).any(|n| {
        drop(tier.invalidate(Invalidation::DeleteFamily(n)));
        std::thread::sleep(std::time::Duration::from_millis(5));
        tier.stats()[0].state == DiskState::Up
    });
    assert!(is_back);
}

#[test]
fn a_disk_that_is_named_twice_is_said_to_be() {
    let folder = Folder::new("twice");
    let twice = vec![folder.settings("a.larder"), folder.settings("a.larder")];
    let refused = Tier::open(twice, |_| ()).expect_err("one file cannot be two");
    assert!(refused.to_string().contains("named twice"), "{refused}");
}

#[test]
fn the_end_does_not_wait_for_a_stalled_disk_for_ever() {
    let settings = small(20, 1 << 20);
    let faulty = Arc::new(FaultyDevice::new(Arc::new(SimulatedDevice::new(settings.bytes, 1))));
    let device = Arc::clone(&faulty) as Arc<dyn Device>;
    let (tier, _) = Tier::on_devices(vec![(settings, device)], Arc::new(|_| ())).expect("it opens");
    faulty.set(Faults { stalls: true, ..Faults::default() });
    assert!(!tier.close(std::time::Duration::from_millis(100)));
    faulty.set(Faults::default());
}

#[test]
fn without_disks_everything_is_a_miss() {
    let (tier, recovered) = open_tier(Vec::new());
    assert!(tier.find(digest(1)).is_none() && tier.family(1).is_empty());
    assert_eq!(tier.begin(digest(1), None).err(), Some(Refused::NoDisk));
    assert_eq!(wait(tier.invalidate(Invalidation::Clear)), Ok(()));
    assert_eq!((recovered.number_max, tier.oldest_number()), (0, u64::MAX));
}

/// The old process reads on where it is while the new one writes as much as there is room for.
#[test]
fn a_disk_that_is_handed_over_is_read_by_both_and_nothing_is_written_over_before_the_former_has_left() {
    let folder = Folder::new("handed-over");
    let (old, _) = open_tier(vec![folder.settings("a.larder")]);
    let whole = body(1, 3_000_000);
    let placing = old.put(digest(1), Bytes::from_static(b"old"), &Blocks::copy_of(&whole), NO_FACTS).expect("it fits");
    assert_eq!(wait(placing), Ok(()));
    let held = wait(old.open_record(old.find(digest(1)).expect("there"))).expect("whole");
    assert!(old.hand_over(super::super::limits::CLOSE_PATIENCE));
    assert_eq!(old.stats()[0].state, DiskState::HandedOver);
    assert!(
        old.put(digest(2), Bytes::new(), &Blocks::copy_of(b"x"), NO_FACTS).is_err(),
        "nothing is written here any more"
    );
    let (new, _) = open_tier(vec![DiskSettings { follows: true, ..folder.settings("a.larder") }]);
    let fill = |from: u64| {
        let put = |n| wait(new.put(digest(n), Bytes::new(), &Blocks::copy_of(&body(n, 500_000)), NO_FACTS)?);
        (from..from + 60).map(put).filter(Result::is_ok).count()
    };
    let first = fill(10);
    assert!((20..60).contains(&first), "{first} were stored: there is room for some forty, and none is made");
    assert!(get(&new, digest(1)).is_some_and(|(head, bytes)| head == "old" && bytes == whole), "the new one has it");
    assert!(get(&old, digest(1)).is_some_and(|(_, bytes)| bytes == whole), "and the old one still has it");
    assert!(wait(held.read(40)).expect("whole") == whole[40 * 65_536..41 * 65_536], "who was reading reads on");
    drop(held);
    assert!(old.close(super::super::limits::CLOSE_PATIENCE));
    new.former_has_left();
    assert_eq!(fill(100), 60, "what is oldest makes room again");
    assert!(new.close(super::super::limits::CLOSE_PATIENCE));
}

/// A version that stores otherwise, or a disk of another size, begins anew, and waits with it.
#[test]
fn a_disk_that_begins_anew_behind_another_process_is_written_once_that_has_left() {
    let folder = Folder::new("anew");
    let as_before = || folder.settings("a.larder");
    for anew in [
        DiskSettings { seed: Some([7; 16]), ..as_before() },
        DiskSettings { bytes: 16 << 20, ..as_before() },
        DiskSettings { bytes: 32 << 20, ..as_before() },
    ] {
        let (old, _) = open_tier(vec![as_before()]);
        let whole = body(1, 200_000);
        let placing = old.put(digest(1), Bytes::new(), &Blocks::copy_of(&whole), NO_FACTS).expect("it fits");
        assert_eq!(wait(placing), Ok(()));
        assert!(old.hand_over(super::super::limits::CLOSE_PATIENCE));
        let (new, _) = open_tier(vec![DiskSettings { follows: true, ..anew }]);
        let put = |n: u64| wait(new.put(digest(n), Bytes::new(), &Blocks::copy_of(&body(n, 5_000)), NO_FACTS)?);
        assert!(put(2).is_err() && get(&new, digest(1)).is_none());
        assert!(get(&old, digest(1)).is_some_and(|(_, bytes)| bytes == whole));
        assert!(old.close(super::super::limits::CLOSE_PATIENCE));
        new.former_has_left();
        while put(3).is_err() {
            std::thread::yield_now();
        }
        assert!(get(&new, digest(3)).is_some() && new.close(super::super::limits::CLOSE_PATIENCE));
    }
}

/// Nobody took it: what was purged meanwhile stays so behind the next start, and it is written again.
#[test]
fn a_disk_that_is_taken_back_knows_what_was_invalidated_meanwhile() {
    let folder = Folder::new("taken-back");
    let (tier, _) = open_tier(vec![folder.settings("a.larder")]);
    let put =
        |tier: &Tier, n: u64| wait(tier.put(digest(n), Bytes::new(), &Blocks::copy_of(&body(n, 5_000)), NO_FACTS)?);
    assert_eq!((put(&tier, 1), put(&tier, 2)), (Ok(()), Ok(())));
    assert!(tier.hand_over(super::super::limits::CLOSE_PATIENCE));
    drop(tier.invalidate(Invalidation::DeleteFamily(digest(1).family)));
    drop(tier.invalidate(Invalidation::Ban { number: 9, text: Bytes::from_static(b"x") }));
    tier.take_back();
    while put(&tier, 3).is_err() {
        std::thread::yield_now();
    }
    assert!(tier.close(super::super::limits::CLOSE_PATIENCE));
    drop(tier);
    let (tier, again) = open_tier(vec![folder.settings("a.larder")]);
    assert_eq!(again.bans.iter().map(|ban| ban.number).collect::<Vec<_>>(), [9]);
    while tier.stats().iter().map(|disk| disk.objects).sum::<u64>() < 2 {
        std::thread::yield_now();
    }
    assert!(get(&tier, digest(1)).is_none() && get(&tier, digest(2)).is_some() && get(&tier, digest(3)).is_some());
}
