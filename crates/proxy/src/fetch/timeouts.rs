//! How long a fetch waits.

use std::time::Duration;

use crate::limits::Limits;

/// How long this fetch waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    pub(crate) connect: Duration,
    pub(crate) first_byte: Duration,
    pub(crate) between_bytes: Duration,
}

impl Timeouts {
    pub(crate) fn of(limits: &Limits) -> Timeouts {
        Timeouts {
            connect: limits.connect_timeout,
            first_byte: limits.first_byte_timeout,
            between_bytes: limits.between_bytes_timeout,
        }
    }
}
