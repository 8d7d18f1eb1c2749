//! What may happen to a file behind the back of who uses it.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::disk::file_device::FileDevice;
use crate::disk::{DiskState, WhyDiscarded};

struct Ground {
    path: PathBuf,
    settings: DiskSettings,
    stage: Stage,
}

impl Ground {
    fn new(name: &str) -> Ground {
        let path = std::env::temp_dir().join(format!("larder-file-{}-{name}", std::process::id()));
        let settings = DiskSettings { path: path.clone(), ..small(8, 256 << 10) };
        let device = FileDevice::open(&path, settings.bytes).expect("it can be opened");
        device.reserve().expect("there is room");
        let mut stage = Stage::open(&settings, Arc::new(device), 1);
        for n in 0..4 {
            stage.put(digest(n), b"head", &body(n, 150_000), NO_FACTS).expect("stored");
        }
        stage.log.commit();
        Ground { path, settings, stage }
    }

    fn there(&self) -> usize {
        let right = |n: &u64| match self.stage.get(digest(*n)) {
            Ok((head, bytes)) => {
                assert!(head == "head" && bytes == body(*n, 150_000), "{n}");
                true
            }
            Err(_) => false,
        };
        (0..4).filter(right).count()
    }

    /// The look-around that its thread would do, and the probe after it.
    fn look_around(&mut self) {
        self.stage.log.look_after();
        self.stage.log.probe();
    }

    fn takes_new(&mut self) {
        assert_eq!(self.stage.log.disk.state(), DiskState::Up);
        self.stage.put(digest(9), b"head", b"new", NO_FACTS).expect("stored");
        assert!(self.stage.invalidated(Invalidation::Number(9)).is_ok());
        assert!(self.stage.get(digest(9)).is_ok());
        let bytes = fs::metadata(&self.path).expect("there").len();
        assert_eq!(bytes, self.settings.bytes);
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[test]
fn a_file_that_is_cut_costs_what_was_cut_off() {
    let mut ground = Ground::new("cut");
    assert_eq!(ground.there(), 4);
    let first = ground.stage.log.disk.geometry.segment_at(1);
    fs::File::options().write(true).open(&ground.path).and_then(|file| file.set_len(first)).expect("cut");
    let left = ground.there();
    assert!((1..4).contains(&left), "{left}");
    ground.look_around();
    assert!(ground.stage.heard(|event| matches!(event, DiskEvent::Dropped { .. })));
    assert_eq!(ground.there(), left);
    ground.takes_new();
}

#[test]
fn a_file_that_is_cut_to_nothing_is_written_anew() {
    let mut ground = Ground::new("nothing");
    fs::File::options().write(true).open(&ground.path).and_then(|file| file.set_len(0)).expect("cut");
    assert_eq!(ground.there(), 0);
    ground.look_around();
    ground.takes_new();
}

#[test]
fn a_file_that_grows_does_not_matter() {
    let mut ground = Ground::new("grown");
    let more = ground.settings.bytes + 10_000;
    fs::File::options().write(true).open(&ground.path).and_then(|file| file.set_len(more)).expect("grown");
    ground.look_around();
    assert_eq!((ground.there(), ground.stage.log.disk.state()), (4, DiskState::Up));
}

#[test]
fn a_file_that_is_deleted_is_made_anew_and_what_replaced_it_is_left_alone() {
    for with in [None, Some("somebody's letter")] {
        let mut ground = Ground::new("deleted");
        fs::remove_file(&ground.path).expect("deleted");
        if let Some(letter) = with {
            fs::write(&ground.path, letter).expect("written");
        }
        // It lives as long as somebody has it.
        assert_eq!(ground.there(), 4);
        ground.look_around();
        if let Some(letter) = with {
            assert_eq!(ground.stage.log.disk.state(), DiskState::Dropped);
            assert_eq!(fs::read_to_string(&ground.path).expect("there"), letter);
            fs::remove_file(&ground.path).expect("deleted");
            ground.look_around();
        }
        let replaced = |event: &DiskEvent| matches!(event, DiskEvent::Discarded { why: WhyDiscarded::Replaced, .. });
        assert!(ground.stage.heard(replaced));
        assert_eq!(ground.there(), 0);
        ground.takes_new();
    }
}
