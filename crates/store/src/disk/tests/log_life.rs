//! What is stored is found again: in this life, in the next, with a new head, after a reclaim.

use super::*;
use crate::disk::disk_stats::DiskStats;
use crate::disk::limits::HEAD_BYTES_MAX;
use crate::limits::BLOCK_BYTES;

#[test]
fn bodies_of_any_size_come_back_in_this_life_and_the_next() {
    let settings = small(12, 1 << 20);
    let (mut stage, device) = Stage::new(&settings);
    let sizes =
        [0, 1, 511, 512, 6221, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 300_000, (1 << 20) - 7, 3_000_001];
    for (n, size) in sizes.into_iter().enumerate() {
        let n = n as u64;
        stage.put(digest(n), format!("head {n}").as_bytes(), &body(n, size), NO_FACTS).expect("stored");
    }
    let check = |stage: &Stage| {
        for (n, size) in sizes.into_iter().enumerate() {
            let (head, bytes) = stage.get(digest(n as u64)).expect("there");
            assert_eq!(head, format!("head {n}"));
            assert!(bytes == body(n as u64, size), "{size}");
        }
        assert_eq!(stage.get(digest(99)), Err(Lost::Gone));
    };
    check(&stage);
    stage.log.commit();
    // As if killed: what was written is there, nothing else was done.
    let killed = Stage::open(&settings, Arc::new(SimulatedDevice::with_content(device.content(), 1)), 2).recovered();
    check(&killed);
    stage.close();
    let closed = Stage::open(&settings, Arc::new(SimulatedDevice::with_content(device.content(), 1)), 2).recovered();
    check(&closed);
    assert_eq!(closed.log.disk.index.count(), sizes.len() as u64);
}

#[test]
fn a_disk_says_how_much_of_its_index_is_back() {
    let settings = DiskSettings { objects_max: 100_000, ..small(12, 4 << 20) };
    let (mut stage, device) = Stage::new(&settings);
    let figures = |stage: &Stage| {
        let stats = DiskStats::of(&stage.log.disk, 0);
        (stats.index_is_back, stats.index_percent)
    };
    assert_eq!(figures(&stage), (true, 100));
    // More records than are read in one step.
    for n in 0..56_000 {
        stage.put(digest(n), b"", b"", NO_FACTS).expect("stored");
    }
    stage.close();
    let mut again = Stage::open(&settings, Arc::new(SimulatedDevice::with_content(device.content(), 1)), 2);
    assert_eq!(figures(&again), (false, 0));
    assert!(again.log.work());
    let (is_back, percent) = figures(&again);
    assert!(!is_back && (1..100).contains(&percent), "{percent}");
    assert_eq!(figures(&again.recovered()), (true, 100));
}

#[test]
fn a_refresh_writes_a_head_and_no_body() {
    let settings = small(8, 256 << 10);
    let (mut stage, device) = Stage::new(&settings);
    let big = body(1, 200_000);
    let sequence = stage.put(digest(1), b"old", &big, NO_FACTS).expect("stored");
    let written = stage.log.disk.counters.bytes_written.load(Relaxed);
    let facts = RecordFacts { expires: 9, number: 4 };
    assert_eq!(stage.refresh(digest(1), sequence, b"new", facts), Ok(()));
    assert!(stage.log.disk.counters.bytes_written.load(Relaxed) - written <= 1024);
    assert_eq!(stage.refresh(digest(1), sequence + 50, b"other", facts), Err(Refused::Overtaken));
    assert_eq!(stage.refresh(digest(2), sequence, b"none", facts), Err(Refused::NotThere));
    // Twice: the second finds the body by the first one's table.
    assert_eq!(stage.refresh(digest(1), sequence, b"newer", facts), Ok(()));
    stage.close();
    let again = Stage::open(&settings, Arc::new(SimulatedDevice::with_content(device.content(), 1)), 2).recovered();
    let stored = again.open_record(digest(1)).expect("there");
    assert_eq!((stored.head().as_ref(), stored.facts(), stored.sequence()), (&b"newer"[..], facts, sequence));
    assert!(body_of(&stored).expect("whole") == big);
    assert_eq!(again.log.knowledge.number_max, 4);
}

#[test]
fn the_oldest_leave_but_for_those_that_were_asked_for() {
    let settings = small(8, 64 << 10);
    let (mut stage, _device) = Stage::new(&settings);
    for n in 0..200u64 {
        // Two are asked for all the time; one of them has expired.
        for asked in [0, 1] {
            stage.log.disk.index.ask(digest(asked).short(), true, |_| ());
        }
        let facts = RecordFacts { expires: if n == 1 { 5 } else { u64::MAX }, number: n };
        stage.put(digest(n), b"head", &body(n, 4000), facts).expect("stored");
        stage.log.disk.now.store(10, Relaxed);
        while stage.log.work() {}
    }
    assert!(stage.log.disk.counters.reclaimed_segments.load(Relaxed) > 3);
    assert!(stage.get(digest(0)).is_ok_and(|(_, bytes)| bytes == body(0, 4000)));
    assert_eq!(stage.get(digest(1)), Err(Lost::Gone));
    assert_eq!(stage.get(digest(2)), Err(Lost::Gone));
    let there: Vec<u64> = (0..200).filter(|n| stage.get(digest(*n)).is_ok()).collect();
    assert!(there.len() > 60 && there[1..].windows(2).all(|pair| pair[1] == pair[0] + 1), "{there:?}");
    for n in there {
        assert!(stage.get(digest(n)).expect("there").1 == body(n, 4000), "{n}");
    }
    assert!(stage.log.disk.index.count() < 200);
}

#[test]
fn an_object_that_lies_in_many_segments_survives_their_reclaim() {
    let settings = small(16, 128 << 10);
    let (mut stage, _device) = Stage::new(&settings);
    let large = body(1, 300_000);
    stage.put(digest(1), b"large", &large, NO_FACTS).expect("stored");
    for n in 10..400u64 {
        stage.put(digest(n), b"head", &body(n, 9000), NO_FACTS).expect("stored");
        stage.log.disk.index.ask(digest(1).short(), true, |_| ());
        while stage.log.work() {}
        assert!(stage.get(digest(1)).is_ok_and(|(_, bytes)| bytes == large), "after {n}");
    }
    assert!(stage.log.disk.counters.reinserted.load(Relaxed) > 3);
}

#[test]
fn what_has_no_room_in_a_segment_is_refused_and_leaves_nothing() {
    let settings = small(6, 64 << 10);
    let (mut stage, _device) = Stage::new(&settings);
    // A segment of 64 KiB has room for less than a whole block.
    assert_eq!(stage.put(digest(1), b"head", &body(1, 3 * BLOCK_BYTES), NO_FACTS), Err(Refused::TooLarge));
    assert_eq!(stage.put(digest(1), &body(1, 2 << 20), b"", NO_FACTS), Err(Refused::TooLarge));
    assert_eq!(stage.get(digest(1)), Err(Lost::Gone));
    assert!(stage.put(digest(1), b"head", &body(1, 50_000), NO_FACTS).is_ok());
}

#[test]
fn a_reader_of_a_large_body_pins_its_segments() {
    let settings = small(6, 256 << 10);
    let (mut stage, _device) = Stage::new(&settings);
    let large = body(1, 400_000);
    stage.put(digest(1), b"large", &large, NO_FACTS).expect("stored");
    let held = stage.open_record(digest(1)).expect("there");
    assert!(held.body().is_none());
    let mut stored = 0;
    for n in 10..400u64 {
        stored += u64::from(stage.put(digest(n), b"head", &body(n, 9000), NO_FACTS).is_ok());
    }
    assert!(stored > 300, "{stored}");
    assert!(body_of(&held).expect("still there") == large);
    // All that is left is pinned too: new ones are refused, and nothing else happens.
    let holding: Vec<Stored> = (10..400).filter_map(|n| stage.open_record(digest(n)).ok()).collect();
    let refused = (500..700u64).filter(|n| stage.put(digest(*n), b"x", &body(*n, 9000), NO_FACTS).is_err()).count();
    assert!(refused > 100);
    assert!(stage.log.disk.is_up());
    drop((holding, held));
    assert!(stage.put(digest(900), b"x", &body(900, 9000), NO_FACTS).is_ok());
}

#[test]
fn what_should_have_been_replaced_is_gone_though_its_successor_was_refused() {
    let settings = small(6, 64 << 10);
    let (mut stage, device) = Stage::new(&settings);
    stage.put(digest(1), b"old", &body(1, 100), NO_FACTS).expect("stored");
    stage.put(digest(2), b"other", &body(2, 100), NO_FACTS).expect("stored");
    assert_eq!(stage.put(digest(1), b"new", &body(1, 3 * BLOCK_BYTES), NO_FACTS), Err(Refused::TooLarge));
    // And a body whose new head could not be written.
    let sequence = stage.put(digest(3), b"old", &body(3, 100), NO_FACTS).expect("stored");
    assert_eq!(stage.refresh(digest(3), sequence, &[b'x'; HEAD_BYTES_MAX + 1], NO_FACTS), Err(Refused::TooLarge));
    stage.log.commit();
    let check = |stage: &Stage| {
        assert_eq!(stage.get(digest(1)), Err(Lost::Gone));
        assert_eq!(stage.get(digest(3)), Err(Lost::Gone));
        assert!(stage.get(digest(2)).is_ok());
    };
    check(&stage);
    check(&Stage::open(&settings, Arc::new(SimulatedDevice::with_content(device.content(), 1)), 2).recovered());
}

#[test]
fn invalidations_hold_in_this_life_and_the_next() {
    let settings = small(8, 64 << 10);
    let (mut stage, device) = Stage::new(&settings);
    let member = |n, member| Digest { family: digest(n).family, member };
    for n in 0..4 {
        for m in 0..3 {
            let facts = RecordFacts { expires: u64::MAX, number: 3 };
            stage.put(member(n, m), b"head", &body(n, 100), facts).expect("stored");
        }
    }
    let ban = |number| Invalidation::Ban { number, text: Bytes::from(format!("ban {number}")) };
    let all = [
        Invalidation::Delete(member(0, 1)),
        Invalidation::DeleteFamily(member(1, 0).family),
        Invalidation::Slot { slot: 7, number: 4 },
        ban(5),
        ban(6),
        Invalidation::Number(8),
        Invalidation::RetireBans { through: 5 },
    ];
    for what in all {
        assert_eq!(stage.invalidated(what), Ok(()));
    }
    let check = |stage: &Stage| {
        let there = |n, m| stage.get(member(n, m)).is_ok();
        assert_eq!([there(0, 0), there(0, 1), there(0, 2)], [true, false, true]);
        assert_eq!([there(1, 0), there(1, 1), there(1, 2)], [false; 3]);
        assert!(there(2, 0) && there(3, 2));
        let knowledge = &stage.log.knowledge;
        assert_eq!(knowledge.slots().collect::<Vec<_>>(), [(7, 4)]);
        // Number 3 was not tested against ban 5: it is needed still.
        assert_eq!(knowledge.bans().map(|ban| ban.number).collect::<Vec<_>>(), [5, 6]);
        assert_eq!(knowledge.number_max, 8);
    };
    check(&stage);
    check(&Stage::open(&settings, Arc::new(SimulatedDevice::with_content(device.content(), 1)), 2).recovered());
    stage.close();
    let mut again = Stage::open(&settings, Arc::new(SimulatedDevice::with_content(device.content(), 1)), 2).recovered();
    check(&again);
    assert_eq!(again.invalidated(Invalidation::Clear), Ok(()));
    assert_eq!(again.log.disk.index.count(), 0);
    assert!(again.put(member(0, 0), b"head", b"new", NO_FACTS).is_ok());
}

#[test]
fn what_is_invalidated_after_a_checkpoint_does_not_come_back_with_it() {
    let settings = small(8, 64 << 10);
    let others = Digest { member: 8, ..digest(2) };
    let all = [Invalidation::Clear, Invalidation::DeleteFamily(digest(2).family), Invalidation::Delete(digest(2))];
    for what in all {
        let (mut stage, device) = Stage::new(&settings);
        for name in [digest(1), digest(2), others] {
            stage.put(name, b"head", b"body", NO_FACTS).expect("stored");
        }
        stage.log.commit();
        stage.log.checkpoint_now().expect("written");
        stage.invalidated(what.clone()).expect("durable");
        stage.put(digest(3), b"head", b"body", NO_FACTS).expect("stored");
        stage.log.commit();
        let content = device.content();
        let again = Stage::open(&settings, Arc::new(SimulatedDevice::with_content(content, 1)), 2).recovered();
        let there = [digest(1), digest(2), others, digest(3)].map(|name| again.get(name).is_ok());
        let expected = match what {
            Invalidation::Clear => [false, false, false, true],
            Invalidation::DeleteFamily(_) => [true, false, false, true],
            _ => [true, false, true, true],
        };
        assert_eq!(there, expected, "{what:?}");
    }
}

#[test]
fn checkpoints_that_are_never_finished_cost_nothing() {
    let settings = small(8, 64 << 10);
    let mut content = vec![0; settings.bytes as usize];
    for life in 0..6u64 {
        let device = Arc::new(SimulatedDevice::with_content(content, life));
        let mut stage = Stage::open(&settings, Arc::clone(&device) as Arc<dyn Device>, life).recovered();
        assert!(!stage.heard(|event| matches!(event, DiskEvent::Discarded { .. })), "life {life}");
        assert!((0..life * 2).all(|n| stage.get(digest(n)).is_ok()), "life {life}");
        stage.put(digest(life * 2), b"head", b"body", NO_FACTS).expect("stored");
        stage.log.commit();
        stage.log.begin_checkpoint().expect("begun");
        stage.put(digest(life * 2 + 1), b"head", b"body", NO_FACTS).expect("stored");
        stage.log.commit();
        content = device.lose_power();
        // What was not synced may be lost; the bodies are not what this is about.
        let from = stage.log.disk.geometry.segment_at(0) as usize;
        content[from..].copy_from_slice(&device.content()[from..]);
    }
}

#[test]
fn many_restarts_leave_the_journal_and_the_segments_in_order() {
    let settings = small(10, 64 << 10);
    let mut content = vec![0; settings.bytes as usize];
    for life in 0..40u64 {
        let device = Arc::new(SimulatedDevice::with_content(content, life));
        let mut stage = Stage::open(&settings, Arc::clone(&device) as Arc<dyn Device>, life).recovered();
        for n in 0..life * 5 {
            if let Ok((head, bytes)) = stage.get(digest(n)) {
                assert!(head == "head" && bytes == body(n, 700), "life {life}, {n}");
            }
        }
        let last = (life * 5).saturating_sub(1);
        assert!(life == 0 || stage.get(digest(last)).is_ok(), "life {life}");
        for n in life * 5..life * 5 + 5 {
            stage.put(digest(n), b"head", &body(n, 700), NO_FACTS).expect("stored");
        }
        while stage.log.work() {}
        if life % 3 == 0 {
            stage.close();
        } else {
            stage.log.commit();
        }
        content = device.content();
    }
}

#[test]
fn a_journal_that_is_full_makes_a_checkpoint() {
    let settings = small(8, 1 << 20);
    let (mut stage, device) = Stage::new(&settings);
    for round in 0..40 {
        for n in 0..100 {
            stage.put(digest(n), b"head", &body(n + round, 50), NO_FACTS).expect("stored");
        }
        stage.log.commit();
        if round % 2 == 0 {
            stage.log.work();
        }
    }
    assert!(stage.log.disk.counters.checkpoints.load(Relaxed) >= 2);
    let again = Stage::open(&settings, Arc::new(SimulatedDevice::with_content(device.content(), 1)), 2).recovered();
    for n in 0..100 {
        assert!(again.get(digest(n)).expect("there").1 == body(n + 39, 50));
    }
}
