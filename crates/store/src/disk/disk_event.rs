//! What an operator should hear of a disk. The caller logs it; each prints as one line that says what it costs.

use std::fmt;
use std::path::PathBuf;

/// Why what was on a disk is not used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WhyDiscarded {
    /// The format of another larder.
    Version(u32),
    /// It was made with another size, or other sizes of its parts.
    Geometry,
    /// What must be known to tell what is still valid cannot be read.
    Damage(&'static str),
    /// Its digests were made with another seed than the other disks'.
    Seed,
    /// The file was replaced by another.
    Replaced,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiskEvent {
    /// A store was made where there was none.
    Formatted {
        path: PathBuf,
        bytes: u64,
    },
    /// What there was is not used; an empty store takes its place.
    Discarded {
        path: PathBuf,
        why: WhyDiscarded,
    },
    /// Found, locked, and what was invalidated is known; its index is on its way.
    Opened {
        path: PathBuf,
        records: u64,
        journal_entries: u64,
    },
    /// The index is back.
    Recovered {
        path: PathBuf,
        objects: u64,
        pages_damaged: u64,
    },
    /// Not written any more, but still read.
    ReadOnly {
        path: PathBuf,
        error: String,
    },
    /// Neither read nor written any more.
    Dropped {
        path: PathBuf,
        error: String,
    },
    TakenBack {
        path: PathBuf,
    },
    /// What lies there is not what was written: the first of a row, others are only counted.
    Damaged {
        path: PathBuf,
        offset: u64,
    },
}

impl fmt::Display for WhyDiscarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyDiscarded::Version(version) => {
                write!(f, "its format is version {version}, and this is {}", super::geometry::FORMAT_VERSION)
            }
            WhyDiscarded::Geometry => f.write_str("it was made with another size"),
            WhyDiscarded::Damage(what) => write!(f, "{what}, so nothing tells what was invalidated"),
            WhyDiscarded::Seed => f.write_str("it was not made together with the other disks"),
            WhyDiscarded::Replaced => f.write_str("the file was replaced by another"),
        }
    }
}

impl fmt::Display for DiskEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiskEvent::Formatted { path, bytes } => write!(f, "disk {}: made, {bytes} bytes", path.display()),
            DiskEvent::Discarded { path, why } => {
                write!(f, "disk {}: what was stored is discarded: {why}", path.display())
            }
            DiskEvent::Opened { path, records, journal_entries } => {
                let path = path.display();
                write!(f, "disk {path}: opened: {records} records in its checkpoint, {journal_entries} changes since")
            }
            DiskEvent::Recovered { path, objects, pages_damaged: 0 } => {
                write!(f, "disk {}: the index is back: {objects} objects", path.display())
            }
            DiskEvent::Recovered { path, objects, pages_damaged } => {
                let path = path.display();
                write!(
                    f,
                    "disk {path}: the index is back: {objects} objects; {pages_damaged} of its pages were damaged"
                )
            }
            DiskEvent::ReadOnly { path, error } => {
                write!(
                    f,
                    "disk {}: not written any more, what it holds is served: {error} ([[disk]] path)",
                    path.display()
                )
            }
            DiskEvent::Dropped { path, error } => {
                write!(
                    f,
                    "disk {}: dropped, its objects are misses until it can be used again: {error} ([[disk]] path)",
                    path.display()
                )
            }
            DiskEvent::TakenBack { path } => write!(f, "disk {}: taken back", path.display()),
            DiskEvent::Damaged { path, offset } => {
                write!(f, "disk {}: damaged at byte {offset}; what lay there is a miss", path.display())
            }
        }
    }
}
