//! What a codec is asked for, and what it says of a step: the same words for all of them.

/// Where a codec stands after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It wants more input, or more room: whichever is used up.
    Going,
    /// The text is whole.
    Ended,
}

/// What a codec did with a piece of the input and a piece of room.
pub(crate) struct CodecStep {
    pub(crate) taken: usize,
    pub(crate) made: usize,
    pub(crate) progress: Progress,
}

/// What a codec is to do with what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Keep what it likes for a better ratio.
    Open,
    /// Say all that it has: who reads along gets it now.
    Flushed,
    /// The same, and forget all that was said: what follows can be read by itself. gzip alone can.
    Apart,
    Finished,
}
