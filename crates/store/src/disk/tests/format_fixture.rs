//! The format as it was when it was given its number: `store_v1.hex` is a small store, byte by byte.
//!
//! Today's code must read it, and must write the very same bytes. Who changes the format on purpose raises
//! `FORMAT_VERSION`, keeps the old fixture as one that is discarded, and writes a new one with `LARDER_WRITE_FIXTURE=PATH`.

use super::*;
use crate::disk::{FORMAT_VERSION, WhyDiscarded};

const FIXTURE: &str = include_str!("store_v1.hex");

fn settings() -> DiskSettings {
    small(6, 64 << 10)
}

/// One of everything that the format has.
fn written() -> Vec<u8> {
    let (mut stage, device) = Stage::new(&settings());
    let facts = RecordFacts { expires: 1_800_000_000, number: 3 };
    let first = stage.put(digest(1), b"first head", b"first body", facts).expect("stored");
    stage.put(digest(2), b"second head", b"", facts).expect("stored");
    stage.put(digest(3), b"third head", b"third body", facts).expect("stored");
    let text = Bytes::from_static(b"obj.http.x == y");
    stage.invalidated(Invalidation::Ban { number: 4, text }).expect("durable");
    stage.invalidated(Invalidation::Slot { slot: 11, number: 5 }).expect("durable");
    stage.log.checkpoint_now().expect("written");
    stage.refresh(digest(1), first, b"first head, again", facts).expect("stored");
    stage.invalidated(Invalidation::DeleteFamily(digest(3).family)).expect("durable");
    stage.put(digest(4), b"fourth head", b"fourth body", facts).expect("stored");
    stage.log.seal_open().expect("sealed");
    stage.log.commit();
    device.content()
}

/// Sectors that are not zero, a line each: where, and what up to its last byte that is not zero.
fn to_hex(content: &[u8]) -> String {
    let mut text = String::new();
    for (index, sector) in content.chunks(512).enumerate() {
        let len = sector.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
        if len > 0 {
            let bytes: String = sector[..len].iter().map(|byte| format!("{byte:02x}")).collect();
            text.push_str(&format!("{} {bytes}\n", index * 512));
        }
    }
    text
}

fn from_hex(text: &str) -> Vec<u8> {
    let mut content = vec![0; settings().bytes as usize];
    for line in text.lines() {
        let (offset, bytes) = line.split_once(' ').expect("an offset and bytes");
        let offset: usize = offset.parse().expect("a number");
        for at in 0..bytes.len() / 2 {
            content[offset + at] = u8::from_str_radix(&bytes[at * 2..at * 2 + 2], 16).expect("hexadecimal");
        }
    }
    content
}

fn open_content(content: Vec<u8>) -> Stage {
    Stage::open(&settings(), Arc::new(SimulatedDevice::with_content(content, 1)), 2).recovered()
}

#[test]
fn the_format_of_version_1_is_read() {
    assert_eq!(FORMAT_VERSION, 1, "the fixture is of the version before: see the head of this file");
    let stage = open_content(from_hex(FIXTURE));
    let there = |n, head: &str, body: &str| {
        stage.get(digest(n)).is_ok_and(|found| found.0 == head.as_bytes() && found.1 == body.as_bytes())
    };
    assert!(there(1, "first head, again", "first body"));
    assert!(there(2, "second head", "") && there(4, "fourth head", "fourth body"));
    assert_eq!(stage.get(digest(3)), Err(Lost::Gone));
    let stored = stage.open_record(digest(2)).expect("there");
    assert_eq!(stored.facts(), RecordFacts { expires: 1_800_000_000, number: 3 });
    let knowledge = &stage.log.knowledge;
    let bans: Vec<_> = knowledge.bans().map(|ban| (ban.number, ban.text)).collect();
    assert_eq!(bans, [(4, Bytes::from_static(b"obj.http.x == y"))]);
    assert_eq!((knowledge.slots().collect::<Vec<_>>(), knowledge.number_max), (vec![(11, 5)], 5));
    assert!(!stage.heard(|event| matches!(event, DiskEvent::Discarded { .. })));
}

#[test]
fn the_format_of_version_1_is_written() {
    let text = to_hex(&written());
    if let Ok(path) = std::env::var("LARDER_WRITE_FIXTURE") {
        std::fs::write(path, &text).expect("the fixture can be written");
    }
    for (now, then) in text.lines().zip(FIXTURE.lines()) {
        assert_eq!(now, then);
    }
    assert_eq!(text.lines().count(), FIXTURE.lines().count());
}

#[test]
fn another_version_is_discarded_and_said_so() {
    let mut content = from_hex(FIXTURE);
    for superblock in [0, 4096] {
        content[superblock + 8] = 2;
    }
    let mut stage = open_content(content);
    let version = |event: &DiskEvent| matches!(event, DiskEvent::Discarded { why: WhyDiscarded::Version(2), .. });
    assert!(stage.heard(version));
    let line = stage.events.lock()[0].to_string();
    assert!(line.contains("its format is version 2, and this is 1"), "{line}");
    assert_eq!(stage.get(digest(1)), Err(Lost::Gone));
    assert!(stage.put(digest(1), b"new", b"body", NO_FACTS).is_ok());
}

#[test]
fn another_size_is_discarded_and_said_so() {
    let mut settings = settings();
    settings.segment_bytes = 32 << 10;
    let device = Arc::new(SimulatedDevice::with_content(from_hex(FIXTURE), 1));
    let stage = Stage::open(&settings, device, 2);
    assert!(stage.heard(|event| matches!(event, DiskEvent::Discarded { why: WhyDiscarded::Geometry, .. })));
}
