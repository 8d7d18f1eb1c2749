//! What a disk's log is asked: to write, to forget, to remember, and to end.

use bytes::Bytes;

use super::disk_digest::Digest;
use super::disk_invalidation::Invalidation;
use super::head_record::RecordFacts;
use super::promise::Promise;
use super::refused::{NotDurable, Refused};
use crate::Blocks;

/// The rest of a body, as it comes with its head.
pub enum Rest {
    Pieces(Vec<Bytes>),
    Whole(Blocks),
}

/// A body at its end: how long it is in all, and what of it was not sent before.
pub struct Body {
    pub bytes: u64,
    pub rest: Rest,
}

/// What is asked of the log.
pub enum Command {
    /// A stretch of a body whose head is not known yet; whole blocks.
    Extent {
        digest: Digest,
        sequence: u64,
        pieces: Vec<Bytes>,
    },
    Finish {
        digest: Digest,
        sequence: u64,
        body: Body,
        head: Bytes,
        facts: RecordFacts,
        done: Placed,
    },
    /// What was written of a body is not needed.
    GiveUp {
        sequence: u64,
    },
    Refresh {
        digest: Digest,
        body_sequence: u64,
        head: Bytes,
        facts: RecordFacts,
        done: Placed,
    },
    Invalidate {
        what: Invalidation,
        done: Promise<Result<(), NotDurable>>,
    },
    /// Everything is written and synced, and another process may have the disk: what is told behind this holds in this process alone.
    HandOver {
        done: Promise<()>,
    },
    /// Nobody has it after all.
    TakeBack,
    /// Everything is written and synced; the log ends.
    Close {
        done: Promise<()>,
    },
}

pub type Placed = Promise<Result<(), Refused>>;
