//! Why something was not done. Each is counted, and each costs a hit at most.

/// Why a record is not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Refused {
    /// The queue to the disk is full: it is slower than what comes.
    Busy,
    /// No room can be made: all there is is being read, or the index is full.
    Full,
    /// Larger than the store, or its head than a head may be.
    TooLarge,
    /// The disk is not written to at the moment.
    Down,
    /// The family has as many members as it may.
    FamilyFull,
    /// It was invalidated or replaced while it was on its way.
    Overtaken,
    /// There is nothing that could be refreshed.
    NotThere,
    /// There is no disk.
    NoDisk,
}

impl Refused {
    pub const ALL: [Refused; 8] = [
        Refused::Busy,
        Refused::Full,
        Refused::TooLarge,
        Refused::Down,
        Refused::FamilyFull,
        Refused::Overtaken,
        Refused::NotThere,
        Refused::NoDisk,
    ];

    /// As counters and logs call it.
    pub const fn token(self) -> &'static str {
        match self {
            Refused::Busy => "busy",
            Refused::Full => "full",
            Refused::TooLarge => "too-large",
            Refused::Down => "down",
            Refused::FamilyFull => "family-full",
            Refused::Overtaken => "overtaken",
            Refused::NotThere => "not-there",
            Refused::NoDisk => "no-disk",
        }
    }
}

/// Why a record cannot be had: a miss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Lost {
    /// It was invalidated, replaced or reclaimed.
    Gone,
    /// What lies there is not what was written.
    Damaged,
    /// More is being read than may wait.
    Busy,
    /// The disk failed, or was dropped.
    Failed,
}

impl Lost {
    pub const fn token(self) -> &'static str {
        match self {
            Lost::Gone => "gone",
            Lost::Damaged => "damaged",
            Lost::Busy => "busy",
            Lost::Failed => "failed",
        }
    }
}

/// An invalidation holds in this process, but would not survive its end. Says where, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotDurable(pub String);

impl std::fmt::Display for NotDurable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "in force, but not safe from a crash: {}", self.0)
    }
}
