//! What the front takes at most. A management port is open to whoever reaches it, until they have shown the secret.

use std::time::Duration;

/// A line of who has not shown the secret: more than `auth` with its digest needs.
pub const STRANGER_LINE_BYTES_MAX: usize = 1 << 10;
/// A line of who has; `vcl.inline` may carry a whole program in quotes.
pub const LINE_BYTES_MAX: usize = 4 << 20;
/// What stands between `<< WORD` and `WORD`.
pub const HERE_DOCUMENT_BYTES_MAX: usize = 4 << 20;
/// Words of one command.
pub const WORDS_MAX: usize = 1_024;
/// For a stranger to show the secret.
pub const STRANGER_PATIENCE: Duration = Duration::from_secs(30);
/// For an answer to be taken, and for a wrong guess to be closed.
pub const ANSWER_PATIENCE: Duration = Duration::from_secs(60);
/// Reads after a refusal, of 4 KiB, and how long they may take.
pub const LINGER_READS_MAX: usize = 64;
pub const LINGER_TIME: Duration = Duration::from_secs(1);
/// Connections to the management port held at once; the next one ends the oldest stranger, or is refused.
pub const SESSIONS_MAX: usize = 64;
/// The secret's file; a pipe must hold it.
pub const SECRET_BYTES_MAX: u64 = 32 << 10;
/// A file of `-I`.
pub const CLI_FILE_BYTES_MAX: u64 = 1 << 20;
/// `-f`, `-a`, `-s` and `-T` of one command line.
pub const ARGUMENTS_MAX: usize = 256;

const _: () = assert!(STRANGER_LINE_BYTES_MAX < LINE_BYTES_MAX);
