//! By what a record on a disk is found.

/// The name of a record: made by the caller, who alone knows of what.
///
/// All members of a family lie on one disk, are found together and are deleted together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Digest {
    pub family: u64,
    pub member: u64,
}

/// As much of a name as the index knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct ShortName {
    pub family: u64,
    pub member: u32,
}

impl Digest {
    pub fn short(self) -> ShortName {
        ShortName { family: self.family, member: self.member as u32 }
    }
}
