//! What an operator may decide about traces.

/// `[traces]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSettings {
    /// Which part of the exchanges is told of, in millionths, where nobody in front of us who is trusted has decided.
    pub sample_millionths: u64,
    /// They are gathered for who exports them.
    pub exports: bool,
    /// Of the others, those that took so long are told of all the same …
    pub slow_micros: Option<u64>,
    /// … and those that failed.
    pub errors: bool,
}

impl TraceSettings {
    /// All of them.
    pub const WHOLE: u64 = 1_000_000;
}

impl Default for TraceSettings {
    fn default() -> TraceSettings {
        TraceSettings { sample_millionths: TraceSettings::WHOLE / 100, exports: false, slow_micros: None, errors: true }
    }
}
