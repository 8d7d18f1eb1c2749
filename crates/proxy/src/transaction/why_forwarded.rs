//! Why an origin is asked for what is looked up (RFC 9211 §2.2), found out when the cache has been asked: what was selected and had to be
//! confirmed is no miss, whatever comes of that.

use cache::{Now, Object, Ticket};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forwarded {
    /// Nothing was stored under this URL.
    Nothing,
    /// Something was, and its Vary selects it for other requests.
    OtherVariant,
    /// It was not fresh.
    Stale,
    /// It was, and the request wanted it confirmed.
    Request,
}

impl Forwarded {
    pub(crate) fn with(ticket: &Ticket, now: Now) -> Forwarded {
        Forwarded::of(ticket.stale().map(|stale| &**stale), ticket.meets_other_variants(), now)
    }

    /// With what is stored that may be confirmed; or else, is something stored that Vary selects for others?
    pub(crate) fn of(stale: Option<&Object>, meets_others: bool, now: Now) -> Forwarded {
        match stale {
            Some(stale) => Forwarded::to_confirm(stale, now),
            None if meets_others => Forwarded::OtherVariant,
            None => Forwarded::Nothing,
        }
    }

    /// For a request that what is stored did not answer.
    pub(crate) fn to_confirm(stored: &Object, now: Now) -> Forwarded {
        let facts = stored.facts();
        match !facts.always_validate && facts.fresh_for_ms(stored.resident_ms(now)) > 0 {
            true => Forwarded::Request,
            false => Forwarded::Stale,
        }
    }

    /// As Cache-Status says it, behind `fwd=`.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Forwarded::Nothing => "uri-miss",
            Forwarded::OtherVariant => "vary-miss",
            Forwarded::Stale => "stale",
            Forwarded::Request => "request",
        }
    }
}
