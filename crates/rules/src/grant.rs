//! What an operator says of the responses of a route: lifetimes for those that say none, and which of the origin's words do not count.
//!
//! It stands beside RFC 9111, not in place of it: without a word here everything is as the two peers said.

use std::sync::Arc;

use message::Status;

/// Beside what the origin says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// How long responses are fresh that do not say so. The first that is for a status counts.
    pub lifetimes: Arc<[GrantedLifetime]>,
    /// Where the response does not say it, in seconds (RFC 5861).
    pub stale_while_revalidate_s: Option<u64>,
    /// The same.
    pub stale_if_error_s: Option<u64>,
    /// Cache-Control, Expires and their kin of the origin are not heard, nor Cache-Control of the client.
    pub ignores_directives: bool,
    /// A response with Set-Cookie is stored, without it.
    pub ignores_set_cookie: bool,
}

/// How long responses with these statuses are fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantedLifetime {
    /// The first and the last of the statuses. `None`: all that say by themselves that the page is there, or has moved for good: 200, 203, 300,
    /// 301 and 308.
    pub statuses: Option<(u16, u16)>,
    pub seconds: u64,
}

impl GrantedLifetime {
    fn is_for(&self, status: Status) -> bool {
        match self.statuses {
            Some((first, last)) => (first..=last).contains(&status.0),
            None => is_page(status),
        }
    }
}

/// Does the status say by itself that the page is there, or has moved for good?
fn is_page(status: Status) -> bool {
    matches!(status.0, 200 | 203 | 300 | 301 | 308)
}

impl Grant {
    /// How long a response with this status is fresh that does not say it.
    pub fn lifetime_s(&self, status: Status) -> Option<u64> {
        self.lifetimes.iter().find(|lifetime| lifetime.is_for(status)).map(|lifetime| lifetime.seconds)
    }

    /// How long what is stale may be served meanwhile, and if the origin fails, where the response says neither. `has_lifetime`: somebody has said,
    /// or it may be guessed, how long it is fresh. An error of which nobody says that comes to no store only to be served stale.
    pub(crate) fn stale_windows_s(&self, status: Status, has_lifetime: bool) -> (Option<u64>, Option<u64>) {
        match has_lifetime || is_page(status) {
            true => (self.stale_while_revalidate_s, self.stale_if_error_s),
            false => (None, None),
        }
    }

    /// Are there responses that are stored by the operator's word alone? Then nothing has been said of who may have them.
    pub fn gives_lifetimes(&self) -> bool {
        !self.lifetimes.is_empty()
    }

    /// Do words of origins count, too, that are no part of RFC 9111 any more?
    pub(crate) fn hears_older_words(&self) -> bool {
        self.gives_lifetimes() && !self.ignores_directives
    }
}

#[cfg(test)]
mod tests {
    use message::{Authority, FieldName, Fields, Method, Request, ResponseHead, Scheme, TargetForm, Version};

    use super::*;
    use crate::storing::{Exchange, StoreDefaults, Withholding, may_store};
    use crate::{Facts, WhyNotStored};

    fn judged(
        grant: &Grant,
        status: u16,
        asked: &[(&str, &str)],
        said: &[(&str, &str)],
    ) -> Result<Facts, WhyNotStored> {
        let fields = |all: &[(&str, &str)]| {
            let mut fields = Fields::default();
            all.iter().for_each(|(name, value)| fields.push_named(name.as_bytes(), value.as_bytes()));
            fields
        };
        let asked = fields(asked);
        let request = Request {
            method: Method::Get,
            method_text: b"GET",
            version: Version::Http11,
            form: TargetForm::Origin,
            scheme: Scheme::Http,
            authority: Authority::EMPTY,
            path: b"/",
            query: None,
            fields: asked.view(),
        };
        let head = ResponseHead { fields: fields(said), ..ResponseHead::new(Status(status)) };
        let defaults = StoreDefaults { grant: grant.clone(), ..StoreDefaults::default() };
        let (response_wall_ms, response_delay_ms) = (1_767_268_800_000, 0);
        may_store(&Exchange {
            request: &request,
            response: head.response(),
            response_wall_ms,
            response_delay_ms,
            defaults: &defaults,
        })
    }

    fn granted(statuses: Option<(u16, u16)>, seconds: u64) -> Grant {
        Grant { lifetimes: [GrantedLifetime { statuses, seconds }].into(), ..Grant::default() }
    }

    fn lifetime_s(grant: &Grant, status: u16, said: &[(&str, &str)]) -> Option<u64> {
        judged(grant, status, &[], said).ok().map(|facts| facts.lifetime_ms / 1000)
    }

    #[test]
    fn a_lifetime_is_for_responses_that_say_none() {
        let grant = granted(None, 300);
        assert_eq!(lifetime_s(&grant, 200, &[]), Some(300));
        assert_eq!(lifetime_s(&grant, 301, &[]), Some(300));
        for status in [302, 404, 500, 503] {
            assert_eq!(lifetime_s(&grant, status, &[]), None, "{status}");
        }
        assert_eq!(lifetime_s(&grant, 200, &[("Cache-Control", "max-age=7")]), Some(7));
        assert_eq!(judged(&grant, 200, &[], &[("Cache-Control", "private")]), Err(WhyNotStored::Private));
        assert_eq!(judged(&grant, 200, &[], &[("Cache-Control", "no-store")]), Err(WhyNotStored::NoStore));
        assert_eq!(lifetime_s(&grant, 200, &[("Set-Cookie", "a=1")]), None);
        assert_eq!(lifetime_s(&granted(Some((400, 499)), 5), 404, &[]), Some(5));
    }

    /// What is badly written, is nginx's or is older than Cache-Control prohibits, too, where the operator's word alone would store it.
    #[test]
    fn a_lifetime_is_not_for_what_its_application_keeps_from_others() {
        let grant = granted(None, 300);
        let control = |value| ("Cache-Control", value);
        let prohibited = [
            (control("private;max-age=60"), WhyNotStored::Private),
            (control("\"private\""), WhyNotStored::Private),
            (control("no-store;"), WhyNotStored::NoStore),
            (control("no-store;private"), WhyNotStored::NoStore),
            (("X-Accel-Expires", "0"), WhyNotStored::NoStore),
            (("x-accel-expires", "@0"), WhyNotStored::NoStore),
            (("Pragma", "No-Cache"), WhyNotStored::NoStore),
        ];
        for (said, why) in prohibited {
            assert_eq!(judged(&grant, 200, &[], &[said]), Err(why), "{said:?}");
        }
        let forced = Grant { ignores_directives: true, ..granted(None, 300) };
        for (said, _) in prohibited {
            assert_eq!(lifetime_s(&forced, 200, &[said]), Some(300), "{said:?}");
        }
        for said in [("X-Accel-Expires", "60"), ("X-Accel-Expires", "off"), ("Pragma", "public")] {
            assert_eq!(lifetime_s(&grant, 200, &[said]), Some(300), "{said:?}");
        }
        assert_eq!(lifetime_s(&grant, 200, &[control("max-age=7"), ("Pragma", "no-cache")]), Some(7));
        let to_caches = [("CDN-Cache-Control", "max-age=7"), ("X-Accel-Expires", "0")];
        assert_eq!(lifetime_s(&grant, 200, &to_caches), Some(7));
        // Without the operator's word they are no words at all.
        let said = [control("max-age=7"), ("X-Accel-Expires", "0")];
        assert_eq!(lifetime_s(&Grant::default(), 200, &said), Some(7));
    }

    #[test]
    fn what_the_origin_says_may_count_for_nothing() {
        let grant = Grant { ignores_directives: true, ignores_set_cookie: true, ..granted(None, 60) };
        for value in ["private", "no-store", "no-cache", "max-age=0", "max-age=9999, s-maxage=3"] {
            assert_eq!(lifetime_s(&grant, 200, &[("Cache-Control", value), ("Expires", "0")]), Some(60), "{value}");
        }
        assert_eq!(lifetime_s(&grant, 200, &[("Set-Cookie", "a=1")]), Some(60));
        assert!(judged(&grant, 200, &[("Cache-Control", "no-store")], &[]).is_ok());
        // Not for whom a response was made.
        let login = [("Authorization", "Basic YTph")];
        assert_eq!(judged(&grant, 200, &login, &[]), Err(WhyNotStored::Authorization));
        let mut said = Fields::default();
        said.push(FieldName::SetCookie, "a=1");
        let defaults = StoreDefaults { share_set_cookie: true, grant, ..StoreDefaults::default() };
        assert_eq!(Withholding::stored(said.view(), &defaults).view().count(), 0);
    }

    #[test]
    fn stale_windows_are_for_responses_that_say_none() {
        let windows = Grant { stale_while_revalidate_s: Some(10), stale_if_error_s: Some(20), ..granted(None, 60) };
        let facts = judged(&windows, 200, &[], &[]).unwrap();
        assert_eq!((facts.stale_while_revalidate_ms, facts.stale_if_error_ms), (10_000, Some(20_000)));
        let facts = judged(&windows, 200, &[], &[("Cache-Control", "max-age=5, stale-while-revalidate=1")]).unwrap();
        assert_eq!((facts.stale_while_revalidate_ms, facts.stale_if_error_ms), (1_000, Some(20_000)));
        let facts = judged(&windows, 200, &[], &[("Cache-Control", "max-age=5, must-revalidate")]).unwrap();
        assert_eq!((facts.stale_while_revalidate_ms, facts.stale_if_error_ms), (0, None));
    }

    #[test]
    fn an_error_without_a_lifetime_is_not_stored_to_be_stale() {
        let windows = Grant { stale_while_revalidate_s: Some(10), stale_if_error_s: Some(20), ..granted(None, 60) };
        for status in [204, 404, 405, 410, 501] {
            assert_eq!(judged(&windows, status, &[], &[]), Err(WhyNotStored::NeverReusable), "{status}");
            let facts = judged(&windows, status, &[], &[("ETag", "\"a\"")]).unwrap();
            assert_eq!((facts.stale_while_revalidate_ms, facts.stale_if_error_ms), (0, None), "{status}");
            let facts = judged(&windows, status, &[], &[("Cache-Control", "max-age=5")]).unwrap();
            assert_eq!((facts.lifetime_ms, facts.stale_while_revalidate_ms), (5_000, 10_000), "{status}");
        }
        let of_errors = Grant { lifetimes: granted(Some((404, 404)), 5).lifetimes, ..windows.clone() };
        let facts = judged(&of_errors, 404, &[], &[]).unwrap();
        assert_eq!((facts.lifetime_ms, facts.stale_while_revalidate_ms), (5_000, 10_000));
        // A page of which nobody says it is served stale, where the operator says no more than that.
        let only_windows = Grant { lifetimes: [].into(), ..windows };
        let facts = judged(&only_windows, 200, &[], &[]).unwrap();
        assert_eq!((facts.lifetime_ms, facts.stale_while_revalidate_ms), (0, 10_000));
        assert_eq!(judged(&only_windows, 404, &[], &[]), Err(WhyNotStored::NeverReusable));
    }
}
