//! Which word of a response says how long it is fresh (RFC 9111 §4.2.1), or who says it where the response does not.

use message::{FieldName, FieldsView};

use crate::date::parse_date;
use crate::limits::DELTA_SECONDS_MAX;
use crate::targeted::{Policy, Source};

/// By what a response is fresh for as long as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimeSource {
    /// `s-maxage` of this field.
    SharedMaxAge(Source),
    /// `max-age` of this field.
    MaxAge(Source),
    Expires,
    /// The operator says it of what says nothing itself.
    Granted,
    /// Nobody says it: a fraction of the time since Last-Modified (RFC 9111 §4.2.2).
    Heuristic,
    /// Nobody says it, and nothing may be guessed.
    Nothing,
}

impl LifetimeSource {
    /// Does the response say it itself?
    pub fn is_origin_s(self) -> bool {
        matches!(self, LifetimeSource::SharedMaxAge(_) | LifetimeSource::MaxAge(_) | LifetimeSource::Expires)
    }

    /// Was it said, and not guessed?
    pub fn is_said(self) -> bool {
        self.is_origin_s() || self == LifetimeSource::Granted
    }

    /// What a response says itself, as a shared cache reads it. An Expires that cannot be read is in the past (RFC 9111 §5.3).
    pub(crate) fn explicit(
        fields: FieldsView<'_>,
        policy: &Policy,
        date: i64,
        now_s: i64,
    ) -> Option<(LifetimeSource, u64)> {
        if let Some(seconds) = policy.directives.shared_lifetime_s() {
            let rule = match policy.directives.s_maxage_s {
                Some(_) => LifetimeSource::SharedMaxAge(policy.source),
                None => LifetimeSource::MaxAge(policy.source),
            };
            return Some((rule, seconds));
        }
        let expires = fields.get(FieldName::Expires).filter(|_| policy.source == Source::CacheControl)?;
        let seconds = parse_date(expires, now_s).map_or(0, |expires| seconds_between(date, expires));
        Some((LifetimeSource::Expires, seconds))
    }
}

/// From one time to a later one; 0 the other way round.
pub(crate) fn seconds_between(from_s: i64, to_s: i64) -> u64 {
    (to_s.saturating_sub(from_s).max(0) as u64).min(DELTA_SECONDS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreDefaults;
    use crate::storing::{lifetime_source, may_store};
    use crate::tests::{exchange, fields, head, request};

    /// RFC 9111 §4.2.1: which word counts.
    #[test]
    fn it_is_said_by_which_word_a_response_is_fresh() {
        let check = |lines: &str, expect: (LifetimeSource, u64)| {
            let (asked, head, defaults) = (fields(""), head(200, lines), StoreDefaults::default());
            let request = request("GET /", &asked);
            let exchange = exchange(&request, head.response(), &defaults);
            assert_eq!(lifetime_source(&exchange), expect, "{lines:?}");
            if let Ok(facts) = may_store(&exchange) {
                assert_eq!(facts.lifetime_ms, expect.1 * 1000, "{lines:?}: as it is stored");
            }
        };
        let ours = Source::CacheControl;
        check("Cache-Control: max-age=60, s-maxage=9", (LifetimeSource::SharedMaxAge(ours), 9));
        check("Cache-Control: max-age=60\nExpires: {+9}\nDate: {0}", (LifetimeSource::MaxAge(ours), 60));
        check(
            "CDN-Cache-Control: max-age=7\nCache-Control: max-age=60",
            (LifetimeSource::MaxAge(Source::CdnCacheControl), 7),
        );
        check("Surrogate-Control: max-age=8", (LifetimeSource::MaxAge(Source::SurrogateControl), 8));
        check("Expires: {+99}\nDate: {0}", (LifetimeSource::Expires, 99));
        check("Expires: 0\nETag: \"a\"", (LifetimeSource::Expires, 0));
        check("Last-Modified: {-1000}\nDate: {0}", (LifetimeSource::Heuristic, 100));
        check("ETag: \"a\"", (LifetimeSource::Nothing, 0));
    }
}
