//! Torn writes, flipped bits, lost and misplaced writes, full and failing disks: each costs hits, and nothing else.
//!
//! What a small store holds is known here. After each fault everything that can be had of it must be exactly that, what
//! was invalidated must stay so, and a store that is used again must take new objects.

use super::*;
use crate::disk::{DiskState, Faults, FaultyDevice, WhyDiscarded};

/// A store with something of each kind in it, and what can be had of it.
struct Known {
    settings: DiskSettings,
    content: Vec<u8>,
}

const SURVIVORS: [(u64, &str); 3] = [(1, "first, again"), (2, "second"), (4, "fourth")];

impl Known {
    fn new() -> Known {
        let settings = small(5, 16 << 10);
        let (mut stage, device) = Stage::new(&settings);
        let first = stage.put(digest(1), b"first", &body(1, 700), NO_FACTS).expect("stored");
        stage.put(digest(2), b"second", &body(2, 1000), NO_FACTS).expect("stored");
        stage.put(digest(3), b"third", &body(3, 90), NO_FACTS).expect("stored");
        stage.log.commit();
        stage.log.checkpoint_now().expect("written");
        stage.refresh(digest(1), first, b"first, again", NO_FACTS).expect("stored");
        stage.put(digest(4), b"fourth", &body(4, 90), NO_FACTS).expect("stored");
        stage.invalidated(Invalidation::DeleteFamily(digest(3).family)).expect("durable");
        stage.invalidated(Invalidation::Ban { number: 5, text: Bytes::from_static(b"text") }).expect("durable");
        stage.invalidated(Invalidation::Slot { slot: 6, number: 7 }).expect("durable");
        Known { settings, content: device.content() }
    }

    fn open(&self, content: Vec<u8>) -> Stage {
        Stage::open(&self.settings, Arc::new(SimulatedDevice::with_content(content, 1)), 2).recovered()
    }

    /// What is there is right. Returns how much of it is.
    fn check(&self, stage: &Stage, what: &dyn std::fmt::Display) -> usize {
        let mut there = 0;
        for (n, head) in SURVIVORS {
            if let Ok((found, bytes)) = stage.get(digest(n)) {
                let len = [0, 700, 1000, 0, 90][n as usize];
                assert!(bytes == body(n, len), "{what}: other bytes under {n}");
                // A record of the same body with its former head was valid too, until its successor was written.
                assert!(found == head, "{what}: {found:?} under {n}");
                there += 1;
            }
        }
        assert_eq!(stage.get(digest(3)).err(), Some(Lost::Gone), "{what}: it came back");
        let was_discarded = stage.heard(|event| matches!(event, DiskEvent::Discarded { .. }));
        let knows = stage.log.knowledge.bans().count() == 1 && stage.log.knowledge.slots().count() == 1;
        assert!(knows || was_discarded && there == 0, "{what}: invalidations are lost, and the store is used");
        there
    }
}

fn used_bytes(content: &[u8]) -> Vec<usize> {
    // Whole sectors with anything in them: their padding too.
    let sectors = content.chunks(512).enumerate().filter(|(_, sector)| sector.iter().any(|byte| *byte != 0));
    sectors.flat_map(|(index, sector)| (0..sector.len()).map(move |at| index * 512 + at)).collect()
}

#[test]
fn no_bit_of_a_store_may_flip_unnoticed() {
    let known = Known::new();
    assert_eq!(known.check(&known.open(known.content.clone()), &"untouched"), 3);
    let (mut flips, mut misses) = (0u64, 0u64);
    // Every bit of what is not a checksummed page's padding; of that, one bit in each byte.
    for at in used_bytes(&known.content) {
        let bits = if known.content[at] == 0 { 0..1 } else { 0..8 };
        for bit in bits {
            let mut content = known.content.clone();
            content[at] ^= 1 << bit;
            let there = known.check(&known.open(content), &format_args!("bit {bit} of byte {at}"));
            (flips, misses) = (flips + 1, misses + (3 - there as u64));
        }
    }
    println!("{flips} bits flipped, one at a time: {misses} misses, nothing wrong");
    assert!(flips > 10_000 && misses > 1000);
}

#[test]
fn any_sector_may_be_zeros_or_another() {
    let known = Known::new();
    let used: Vec<usize> = used_bytes(&known.content).into_iter().filter(|at| at % 512 == 0).collect();
    for &at in &used {
        let mut zeros = known.content.clone();
        zeros[at..at + 512].fill(0);
        known.check(&known.open(zeros), &format_args!("zeros at {at}"));
        // A write that went elsewhere: right in itself, in a wrong place.
        for &from in &used {
            let mut moved = known.content.clone();
            moved.copy_within(from..from + 512, at);
            known.check(&known.open(moved), &format_args!("{from} at {at}"));
        }
    }
}

#[test]
fn every_write_may_be_torn_at_every_sector() {
    let known = Known::new();
    let steps: [fn(&mut Stage); 7] = [
        |stage| _ = stage.put(digest(10), b"tenth", &body(10, 3000), NO_FACTS),
        |stage| drop(stage.invalidated(Invalidation::Number(8))),
        |stage| drop(stage.log.seal_open()),
        |stage| drop(stage.log.checkpoint_now()),
        |stage| _ = stage.put(digest(2), b"second", &body(2, 1000), NO_FACTS),
        |stage| drop(stage.invalidated(Invalidation::Slot { slot: 6, number: 9 })),
        Stage::close,
    ];
    let mut torn = 0;
    for last in 0..steps.len() {
        // The power goes in each call of this step, and each call is torn in several ways.
        for call in 0.. {
            let mut was_off = false;
            for seed in 0..24 {
                let device = Arc::new(SimulatedDevice::with_content(known.content.clone(), seed));
                let stage = Stage::open(&known.settings, Arc::clone(&device) as Arc<dyn Device>, 3);
                let mut stage = stage.recovered();
                steps[..last].iter().for_each(|step| step(&mut stage));
                device.lose_power_after(call);
                steps[last](&mut stage);
                was_off = device.is_off();
                torn += u64::from(was_off);
                let what = format!("step {last}, call {call}, seed {seed}");
                let stage = known.open(device.lose_power());
                known.check(&stage, &what);
                if let Ok((head, bytes)) = stage.get(digest(10)) {
                    assert!(head == "tenth" && bytes == body(10, 3000), "{what}");
                }
            }
            if !was_off {
                break;
            }
        }
    }
    println!("{torn} writes torn");
    assert!(torn > 200, "{torn}");
}

#[test]
fn a_record_torn_at_any_sector_is_a_miss() {
    let settings = small(5, 16 << 10);
    let (mut stage, device) = Stage::new(&settings);
    let before = device.content();
    stage.put(digest(1), &[b'h'; 1500], &body(1, 5000), NO_FACTS).expect("stored");
    stage.log.commit();
    let after = device.content();
    let segments = stage.log.disk.geometry.segment_at(0) as usize;
    let len = (1500 + 5000 + 88 + 20_usize).next_multiple_of(512);
    for cut in (0..=len).step_by(512) {
        let mut content = after.clone();
        content[segments + cut..segments + len].copy_from_slice(&before[segments + cut..segments + len]);
        let stage = Stage::open(&settings, Arc::new(SimulatedDevice::with_content(content, 1)), 2).recovered();
        assert_eq!(stage.get(digest(1)).is_ok(), cut == len, "torn at {cut}");
        assert_eq!(stage.get(digest(1)).is_ok(), cut == len, "again");
    }
}

/// A store in use on a device that can be told to fail.
fn on_faulty() -> (Stage, Arc<FaultyDevice>) {
    let settings = small(8, 256 << 10);
    let faulty = Arc::new(FaultyDevice::new(Arc::new(SimulatedDevice::new(settings.bytes, 1))));
    let mut stage = Stage::open(&settings, Arc::clone(&faulty) as Arc<dyn Device>, 1);
    for n in 0..5 {
        stage.put(digest(n), b"head", &body(n, 100_000), NO_FACTS).expect("stored");
    }
    (stage, faulty)
}

fn is_there(stage: &Stage, n: u64) -> bool {
    stage.get(digest(n)).is_ok_and(|(head, bytes)| head == "head" && bytes == body(n, 100_000))
}

#[test]
fn a_full_disk_is_read_and_written_again_when_there_is_room() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::ReadOnlyFilesystem] {
        // At every write call of an object, one after another.
        for good in 0..4 {
            let (mut stage, faulty) = on_faulty();
            faulty.set(Faults { writes: Some(kind), writes_good: good, ..Faults::default() });
            let mut refused = 0;
            for n in 10..13 {
                refused += u32::from(stage.put(digest(n), b"head", &body(n, 100_000), NO_FACTS).is_err());
                stage.log.commit();
            }
            assert!(refused >= 1 && stage.log.disk.state() == DiskState::ReadOnly, "{kind:?} after {good}");
            assert!((0..5).all(|n| is_there(&stage, n)), "old objects are kept");
            // It holds here, but nobody is told that it would survive.
            assert!(stage.invalidated(Invalidation::DeleteFamily(digest(0).family)).is_err());
            assert!(!is_there(&stage, 0) && !stage.log.probe());
            faulty.set(Faults::default());
            assert!(stage.log.probe() && stage.log.disk.is_up());
            assert!(!is_there(&stage, 0) && (1..5).all(|n| is_there(&stage, n)));
            assert!(stage.put(digest(20), b"head", &body(20, 100_000), NO_FACTS).is_ok());
            let again = restarted(&mut stage);
            assert!(!is_there(&again, 0) && (1..5).chain([20]).all(|n| is_there(&again, n)));
        }
    }
}

#[test]
fn a_body_of_which_a_part_could_not_be_written_is_none() {
    let settings = small(16, 1 << 20);
    let faulty = Arc::new(FaultyDevice::new(Arc::new(SimulatedDevice::new(settings.bytes, 1))));
    let mut stage = Stage::open(&settings, Arc::clone(&faulty) as Arc<dyn Device>, 1);
    let extent = super::super::limits::EXTENT_BYTES_MAX;
    let (sequence, (done, awaited)) = (stage.sequence(), promise());
    let send = |stage: &mut Stage, n| {
        let pieces = vec![Bytes::from(body(n, extent))];
        stage.log.apply(Command::Extent { digest: digest(1), sequence, pieces });
    };
    send(&mut stage, 1);
    faulty.set(Faults { writes: Some(io::ErrorKind::StorageFull), ..Faults::default() });
    send(&mut stage, 2);
    faulty.set(Faults::default());
    // The disk is good again before the body ends: what is missing of it is missing all the same.
    assert!(stage.log.probe());
    send(&mut stage, 3);
    let body = Body { bytes: 3 * extent as u64, rest: Rest::Pieces(Vec::new()) };
    let head = Bytes::from_static(b"head");
    stage.log.apply(Command::Finish { digest: digest(1), sequence, body, head, facts: NO_FACTS, done });
    assert_eq!(wait(awaited), Some(Err(Refused::Down)));
    assert_eq!(stage.get(digest(1)), Err(Lost::Gone));
    assert!(stage.log.drafts.is_empty());
}

/// The next process on the same device.
fn restarted(stage: &mut Stage) -> Stage {
    stage.log.commit();
    let settings = stage.log.disk.settings.clone();
    Stage::open(&settings, Arc::clone(&stage.log.disk.device), 9).recovered()
}

#[test]
fn a_sync_that_fails_is_no_success() {
    let (mut stage, faulty) = on_faulty();
    stage.log.commit();
    faulty.set(Faults { syncs: Some(io::ErrorKind::Other), ..Faults::default() });
    let refused = stage.invalidated(Invalidation::DeleteFamily(digest(1).family)).expect_err("not durable");
    assert!(refused.to_string().contains("disk small"), "{refused}");
    assert_eq!(stage.log.disk.state(), DiskState::Dropped);
    assert!(stage.heard(|event| matches!(event, DiskEvent::Dropped { .. })));
    assert_eq!(stage.get(digest(2)), Err(Lost::Failed));
    // The same sync again may say that all is well, and nothing be: it is not asked, all is written anew.
    assert!(!stage.log.probe());
    faulty.set(Faults::default());
    assert!(stage.log.probe());
    assert!(!is_there(&stage, 1) && is_there(&stage, 2));
    assert_eq!(stage.invalidated(Invalidation::DeleteFamily(digest(2).family)), Ok(()));
    let again = restarted(&mut stage);
    assert!(!is_there(&again, 1) && !is_there(&again, 2) && is_there(&again, 3));
}

#[test]
fn a_disk_that_cannot_be_read_is_dropped_and_taken_back() {
    let (mut stage, faulty) = on_faulty();
    faulty.set(Faults { reads: Some(io::ErrorKind::Other), ..Faults::default() });
    assert_eq!(stage.get(digest(1)), Err(Lost::Failed));
    assert!(stage.log.disk.is_up(), "once is a bad sector");
    for _ in 0..super::super::limits::READ_ERRORS_MAX {
        assert_eq!(stage.get(digest(1)), Err(Lost::Failed));
    }
    assert_eq!(stage.log.disk.state(), DiskState::Dropped);
    assert_eq!(stage.put(digest(9), b"head", b"body", NO_FACTS), Err(Refused::Down));
    assert!(!stage.log.probe());
    faulty.set(Faults::default());
    assert!(stage.log.probe() && (0..5).all(|n| is_there(&stage, n)));
    let opened = stage.events.lock().iter().filter(|event| matches!(event, DiskEvent::TakenBack { .. })).count();
    assert_eq!(opened, 1);
}

#[test]
fn a_disk_that_fails_at_the_start_is_dropped_and_made_anew_when_it_works() {
    let settings = small(8, 64 << 10);
    for faults in [
        Faults { reads: Some(io::ErrorKind::Other), ..Faults::default() },
        Faults { writes: Some(io::ErrorKind::StorageFull), ..Faults::default() },
        Faults { syncs: Some(io::ErrorKind::Other), ..Faults::default() },
    ] {
        let faulty = Arc::new(FaultyDevice::new(Arc::new(SimulatedDevice::new(settings.bytes, 1))));
        faulty.set(faults);
        let mut stage = Stage::open(&settings, Arc::clone(&faulty) as Arc<dyn Device>, 1).recovered();
        assert_eq!(stage.log.disk.state(), DiskState::Dropped);
        assert_eq!(stage.put(digest(1), b"head", b"body", NO_FACTS), Err(Refused::Down));
        assert!(stage.invalidated(Invalidation::Number(4)).is_err() && !stage.log.probe());
        faulty.set(Faults::default());
        assert!(stage.log.probe());
        assert!(stage.put(digest(1), b"head", b"body", NO_FACTS).is_ok());
        let again = restarted(&mut stage);
        assert!(again.get(digest(1)).is_ok());
        assert_eq!(again.log.knowledge.number_max, 4);
    }
}

#[test]
fn short_and_interrupted_calls_go_on() {
    let settings = small(8, 64 << 10);
    let faulty = Arc::new(FaultyDevice::new(Arc::new(SimulatedDevice::new(settings.bytes, 1))));
    faulty.set(Faults { bytes_max: Some(1000), interrupts: true, ..Faults::default() });
    let mut stage = Stage::open(&settings, Arc::clone(&faulty) as Arc<dyn Device>, 1);
    for n in 0..5 {
        stage.put(digest(n), b"head", &body(n, 9000), NO_FACTS).expect("stored");
    }
    stage.close();
    let again = restarted(&mut stage);
    assert!((0..5).all(|n| again.get(digest(n)).is_ok_and(|found| found.1 == body(n, 9000))));
}

#[test]
fn a_write_that_is_lost_or_goes_elsewhere_costs_what_it_wrote() {
    // The nth write from now on: record, journal's mirror, journal, …
    for nth in 0..8 {
        for misdirected in [None, Some(512), Some(65_536)] {
            let (mut stage, faulty) = on_faulty();
            let puts = |stage: &mut Stage, numbers: std::ops::Range<u64>| {
                for n in numbers {
                    stage.put(digest(n), b"head", &body(n, 100_000), NO_FACTS).expect("it seems so");
                    stage.invalidated(Invalidation::Number(n)).expect("it seems so");
                }
            };
            puts(&mut stage, 10..10 + nth / 3);
            faulty.set(Faults {
                loses_write: misdirected.is_none(),
                misdirects_write: misdirected,
                ..Faults::default()
            });
            if nth % 3 == 1 {
                stage.invalidated(Invalidation::DeleteFamily(digest(1).family)).expect("it seems so");
            }
            puts(&mut stage, 20..22);
            stage.invalidated(Invalidation::DeleteFamily(digest(2).family)).expect("durable");
            let again = restarted(&mut stage);
            let what = format!("{nth}, {misdirected:?}");
            for n in (0..5).chain(10..13).chain(20..22) {
                if let Ok((head, bytes)) = again.get(digest(n)) {
                    assert!(head == "head" && bytes == body(n, 100_000), "{what}: {n}");
                }
            }
            assert!(!is_there(&again, 2) && (nth % 3 != 1 || !is_there(&again, 1)), "{what}: it came back");
        }
    }
}

#[test]
fn a_journal_with_a_hole_in_both_copies_is_not_believed() {
    let known = Known::new();
    let geometry = super::super::geometry::Geometry::of(&known.settings).expect("large enough");
    let mut content = known.content.clone();
    // The first block of the half that the checkpoint left.
    for mirror in [0, 1] {
        content[geometry.journal_at(1, mirror) as usize + 40] ^= 1;
    }
    let mut stage = known.open(content);
    let damaged = |event: &DiskEvent| matches!(event, DiskEvent::Discarded { why: WhyDiscarded::Damage(_), .. });
    assert!(stage.heard(damaged));
    assert_eq!(known.check(&stage, &"a hole"), 0);
    assert!(stage.put(digest(1), b"first, again", &body(1, 700), NO_FACTS).is_ok());
}

#[test]
fn a_damaged_page_of_the_index_is_said_and_costs_what_is_on_it() {
    let known = Known::new();
    let geometry = super::super::geometry::Geometry::of(&known.settings).expect("large enough");
    let page = geometry.page_at(1, 0) as usize;
    for at in [0, 4, 8, 16, 20, 24, 30, 43] {
        let mut content = known.content.clone();
        content[page + at] ^= 4;
        let stage = known.open(content);
        let said = |event: &DiskEvent| matches!(event, DiskEvent::Recovered { pages_damaged: 1, .. });
        assert!(stage.heard(said), "byte {at}");
        // What was stored or refreshed since is in the journal.
        assert_eq!(known.check(&stage, &"a page"), 2, "byte {at}");
        assert!(stage.get(digest(2)).is_err());
    }
}

#[test]
fn random_bytes_are_discarded() {
    let known = Known::new();
    for seed in 0..20u64 {
        let content = body(seed, known.content.len());
        let mut stage = known.open(content);
        assert!(stage.heard(|event| matches!(event, DiskEvent::Discarded { .. })));
        assert!(stage.put(digest(1), b"head", b"body", NO_FACTS).is_ok());
        // And with a good superblock before them.
        let mut content = body(seed, known.content.len());
        content[..8192].copy_from_slice(&known.content[..8192]);
        let stage = known.open(content);
        assert!(stage.heard(|event| matches!(event, DiskEvent::Discarded { why: WhyDiscarded::Damage(_), .. })));
    }
}
