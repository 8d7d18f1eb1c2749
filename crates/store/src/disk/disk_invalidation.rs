//! What a disk is told of invalidations, and remembers.

use bytes::Bytes;

use super::disk_digest::Digest;

/// What is to be remembered, come what may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalidation {
    Delete(Digest),
    /// All members of it.
    DeleteFamily(u64),
    /// The slot of a tag or a group has this number now, if it had none greater.
    Slot {
        slot: u32,
        number: u64,
    },
    Ban {
        number: u64,
        text: Bytes,
    },
    /// Bans up to this number are not needed any more. Those that something stored was not tested against stay.
    RetireBans {
        through: u64,
    },
    /// This number was given out.
    Number(u64),
    Clear,
}
