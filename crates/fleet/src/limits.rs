//! What this crate bounds, and at how much.

use std::time::Duration;

/// Orders that the log remembers, about: a node that was away for longer has everything confirmed that it holds.
pub const LOG_ENTRIES_MAX: u64 = 100_000;

/// Orders of the log that a node carries out once more when it begins, if it finds what others keep.
pub const REPLAYED_MAX: u64 = 10_000;

/// Words of nodes that are remembered, about: at four a lease of each node, and one for each batch of orders that somebody waits for.
pub const WORDS_MAX: u64 = 10_000;

/// Letters of what a node says that it could not do as it was ordered.
pub const COMPLAINT_CHARS_MAX: usize = 200;

/// Bytes of an order.
pub const ORDER_BYTES_MAX: usize = 1 << 20;

/// Orders that are carried out here and wait for the log to be reachable.
pub const BACKLOG_MAX: usize = 10_000;

/// Bytes of their texts.
pub const BACKLOG_BYTES_MAX: usize = 16 << 20;

/// Orders that are on their way into the log at once, or wait to be confirmed.
pub const ORDERS_UNDER_WAY_MAX: usize = 4_096;

/// Entries that are read at once.
pub const READ_AT_ONCE: usize = 128;

/// How long one read waits for something to come; where to read from is looked at between reads.
pub const READ_WAIT: Duration = Duration::from_millis(500);

/// How long a connection to the log may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the log may take to answer what is no wait. An order that gets no answer is not known to be in the log.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause after a connection failed, at first and at most.
pub const PAUSE_MIN: Duration = Duration::from_millis(100);
pub const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Words in a lease: two may be lost.
pub const WORDS_IN_A_LEASE: u32 = 4;

/// How long an order waits for the nodes to confirm it, whatever their leases.
pub const CONFIRMED_WITHIN_MAX: Duration = Duration::from_secs(60);

/// How long this node may take to come to an order of its own in the log.
pub const OWN_ORDER_WAIT: Duration = Duration::from_secs(10);

/// Of a lease, for clocks that do not run equally fast.
pub const CLOCK_MARGIN: u64 = 100;

/// How long a node that says nothing is shown.
pub const FORGOTTEN_AFTER_MS: u64 = 600_000;

/// Nodes of a fleet that are kept track of.
pub const NODES_MAX: usize = 1_000;

/// A log that goes on failing is told of again after so long.
pub const SAID_AGAIN_MS: u64 = 60_000;

/// Silent nodes that a word tells of.
pub const SILENT_TOLD_MAX: usize = 100;

/// How often what this node has heard is written down, where it keeps what it stores.
pub const SAVED_EVERY: Duration = Duration::from_secs(1);

/// Orders of the backlog that go into the log at once, and bytes of their texts; one order goes in any case.
pub const BACKLOG_AT_ONCE: usize = 64;
pub const BACKLOG_BYTES_AT_ONCE: usize = 256 << 10;
