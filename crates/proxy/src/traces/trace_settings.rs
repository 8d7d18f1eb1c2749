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
    /// Which of those that are told of have a log record, beside their spans.
    pub logs: ExportedLogs,
}

/// Which exchanges have a log record, of those that have spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportedLogs {
    #[default]
    None,
    Errors,
    All,
}

impl ExportedLogs {
    /// Is there one of an exchange that failed, or of one that did not?
    pub(crate) fn have(self, is_error: bool) -> bool {
        match self {
            ExportedLogs::None => false,
            ExportedLogs::Errors => is_error,
            ExportedLogs::All => true,
        }
    }
}

impl TraceSettings {
    /// All of them.
    pub const WHOLE: u64 = 1_000_000;
}

impl Default for TraceSettings {
    fn default() -> TraceSettings {
        TraceSettings {
            sample_millionths: TraceSettings::WHOLE / 100,
            exports: false,
            slow_micros: None,
            errors: true,
            logs: ExportedLogs::None,
        }
    }
}
