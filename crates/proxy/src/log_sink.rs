//! Where finished lines of the access log go: what the program that embeds the proxy implements.

/// Where finished access log lines go. Must not block.
pub trait LogSink: Send + Sync {
    /// Takes whole lines, each ended by a line feed. `Err` gives them back when they could not be taken at once.
    fn write(&self, lines: Vec<u8>, lines_count: u64) -> Result<(), Vec<u8>>;

    /// Is there anywhere to write to at the moment? A reload may switch the log on and off.
    fn is_on(&self) -> bool {
        true
    }
}
