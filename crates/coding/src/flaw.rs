//! Why a coded text cannot be read.

use std::fmt;

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It is not in this coding, or was damaged on the way: what it says of itself does not hold.
    Corrupt,
    /// It ended before its end.
    Truncated,
    /// More comes behind its end.
    JunkBehind,
    /// It becomes more than it may: see [`Bounds`](crate::Bounds).
    TooLong,
    /// It becomes many times what it is: a bomb.
    TooDense,
    /// The codec could not be set up; memory, most likely.
    Unready,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Flaw::Corrupt => "it is not in the coding that it says, or it was damaged",
            Flaw::Truncated => "it ends too early",
            Flaw::JunkBehind => "something comes behind its end",
            Flaw::TooLong => "it becomes longer than it may",
            Flaw::TooDense => "it becomes many times longer than it is, as a bomb does",
            Flaw::Unready => "the codec could not be set up",
        })
    }
}

impl std::error::Error for Flaw {}
