//! How much TLS may ask of us.

/// What may have come of a handshake and be no whole message yet. A hello with a post-quantum key has some 2 KiB; the certificates
/// of a client or of an origin some 6.
pub const HANDSHAKE_BYTES_MAX: usize = 64 << 10;
/// The text of a record at most (RFC 8446 §5.1).
pub const RECORD_TEXT_BYTES_MAX: usize = 16 << 10;
/// What a record adds to its text at most: its head, the type and the tag; a nonce too in TLS 1.2.
pub const RECORD_OVERHEAD_BYTES: usize = 5 + 1 + 16 + 8;
/// How long the keys of tickets stand: a ticket is good for this long and at most twice as long.
pub const TICKET_EPOCH_S: u64 = 3_600;
/// A ticket that is longer is none of ours.
pub const TICKET_BYTES_MAX: usize = 8 << 10;
/// What a client may send before the handshake is over, of a listener that takes early data.
pub const EARLY_DATA_BYTES_MAX: u32 = 16 << 10;
/// What sessions may take that are resumed once, of all listeners that take early data …
pub const EARLY_SESSIONS_BYTES_MAX: usize = 8 << 20;
/// … and for how long one may be resumed.
pub const EARLY_SESSION_S: u64 = 2 * TICKET_EPOCH_S;
/// Names of origins whose sessions are remembered, for each of our settings towards one.
pub const CLIENT_SESSIONS_MAX: usize = 256;
