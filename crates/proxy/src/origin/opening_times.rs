//! How long it took to come to a connection, by what was waited for.

/// In microseconds; all zero where a connection lay ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpeningTimes {
    /// For the addresses of the origin's names.
    pub lookup_micros: u32,
    /// For one of the connections that the origin may have.
    pub queue_micros: u32,
    /// For the origin to take the connection, failed attempts at other addresses included.
    pub connect_micros: u32,
    /// For the handshake of TLS.
    pub tls_micros: u32,
}

/// More than 71 minutes are said as these.
pub fn clamped(micros: u64) -> u32 {
    u32::try_from(micros).unwrap_or(u32::MAX)
}
