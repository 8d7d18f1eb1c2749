//! The supervisor's limits. None is a setting: they are about two processes of one program.

use std::time::Duration;

/// A word over the link: a name of a socket, a sentence for a person, a datagram for the service manager.
pub const WORD_BYTES_MAX: usize = 8 << 10;
/// Sockets that go with one word. The kernel takes 253 (SCM_MAX_FD).
pub const SOCKETS_PER_WORD_MAX: usize = 128;
/// Names that are kept, and sockets of one name: addresses times cores.
pub const NAMES_MAX: usize = 4096;
pub const SOCKETS_PER_NAME_MAX: usize = 1024;

/// A link on which the other side takes nothing for so long is given up.
pub const LINK_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a serving process that comes after another has until it serves.
pub const UPGRADE_MAX: Duration = Duration::from_secs(120);

/// One that has served for so long and dies is replaced at once; else pauses grow from the first to the last.
pub const LIVED_WELL: Duration = Duration::from_secs(10);
pub const FIRST_PAUSE: Duration = Duration::from_millis(100);
pub const LAST_PAUSE: Duration = Duration::from_secs(10);

/// How long one may take from its start to its first sign of life: a config may lie on a file system that does not answer.
pub const START_MAX: Duration = Duration::from_secs(600);
/// No word of a serving process lets it be silent for longer.
pub const PATIENCE_MAX: Duration = Duration::from_secs(3_600);
/// One that said nothing in time has this much more: the supervisor itself may have been held up.
pub const DOUBT: Duration = Duration::from_secs(5);
/// Beyond the time that a process which leaves has for its requests: disks are closed, lines of logs written.
pub const LEAVING_MARGIN: Duration = Duration::from_secs(60);
/// Words of one process that are heard before anybody else has a turn.
pub const WORDS_A_TURN_MAX: usize = 64;

/// What is kept of defects and deaths: lines, and bytes of one. Few enough for all of them to wait unread on a link.
pub const REPORTS_MAX: usize = 8;
pub const REPORT_BYTES_MAX: usize = 4 << 10;

/// Between asking one that says nothing to end (SIGABRT) and ending it (SIGKILL).
pub const ABORT_PATIENCE: Duration = Duration::from_secs(5);

/// Former serving processes that still finish requests. When there are more, the oldest is told to end.
pub const LEAVING_MAX: usize = 8;
