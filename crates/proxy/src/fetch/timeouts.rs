//! How long a fetch waits, by whose word: its route's, its origin's, or that of the limits.

use std::time::Duration;

use crate::limits::Limits;
use crate::origin::Origin;
use crate::settings::{OriginTimeouts, RouteTimeouts};

/// How long this fetch waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    pub(crate) connect: Timeout,
    pub(crate) first_byte: Timeout,
    pub(crate) between_bytes: Timeout,
}

/// How long something is waited for, and the setting that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeout {
    pub(crate) after: Duration,
    pub(crate) setting: &'static str,
}

pub(crate) const CONNECT: &str = "limits.connect_timeout";
const FIRST_BYTE: &str = "limits.first_byte_timeout";
const BETWEEN_BYTES: &str = "limits.between_bytes_timeout";

impl Timeouts {
    pub(crate) fn of(limits: &Limits) -> Timeouts {
        Timeouts {
            connect: Timeout { after: limits.connect_timeout, setting: CONNECT },
            first_byte: Timeout { after: limits.first_byte_timeout, setting: FIRST_BYTE },
            between_bytes: Timeout { after: limits.between_bytes_timeout, setting: BETWEEN_BYTES },
        }
    }

    /// Of what is asked of this origin by this route: where the one says nothing the other counts, and then the limits.
    pub(crate) fn asked(route: &RouteTimeouts, origin: &Origin, limits: &Limits) -> Timeouts {
        let (usual, own, route) = (Timeouts::of(limits), origin.timeouts(), route.of_origin);
        let pick = |of: fn(&OriginTimeouts) -> Option<Duration>, settings: [&'static str; 2], usual: Timeout| {
            let said = |timeouts: &OriginTimeouts, setting| of(timeouts).map(|after| Timeout { after, setting });
            said(&route, settings[0]).or_else(|| said(own, settings[1])).unwrap_or(usual)
        };
        Timeouts {
            connect: pick(
                |timeouts| timeouts.connect,
                ["timeouts.connect of the [[route]]", "timeouts.connect of the origin"],
                usual.connect,
            ),
            first_byte: pick(
                |timeouts| timeouts.first_byte,
                ["timeouts.first_byte of the [[route]]", "timeouts.first_byte of the origin"],
                usual.first_byte,
            ),
            between_bytes: pick(
                |timeouts| timeouts.between_bytes,
                ["timeouts.between_bytes of the [[route]]", "timeouts.between_bytes of the origin"],
                usual.between_bytes,
            ),
        }
    }
}
