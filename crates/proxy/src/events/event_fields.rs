//! The fields of an event, each told once: its name in queries and in JSON, what it is, and where it is found.

use std::borrow::Cow;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use message::Version;

use crate::access_log::CacheVerdict;
use crate::events::exchange_event::ExchangeEvent;
use crate::events::origin_try::{OriginTry, TryOutcome};
use crate::limits::LOG_TARGET_BYTES_MAX;
use crate::reason::Reason;

/// What a field holds, and so what it can be compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    Text,
    Number,
    /// A time span, in microseconds.
    Micros,
    /// A number of bytes.
    Bytes,
    /// An address of IPv4 or IPv6.
    Address,
}

/// What a field holds in one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue<'a> {
    Text(Cow<'a, [u8]>),
    /// Of a number, a time span or a number of bytes.
    Number(u64),
    Address(IpAddr),
}

/// One field.
#[derive(Debug)]
pub struct EventField {
    pub name: &'static str,
    pub kind: FieldKind,
    /// A sentence for people, without a full stop.
    pub says: &'static str,
    /// Absent where there is nothing to say.
    pub(crate) of: for<'e> fn(&'e ExchangeEvent<'e>) -> Option<FieldValue<'e>>,
}

fn text(text: &[u8]) -> Option<FieldValue<'_>> {
    (!text.is_empty()).then_some(FieldValue::Text(Cow::Borrowed(text)))
}

fn word(word: &str) -> Option<FieldValue<'_>> {
    text(word.as_bytes())
}

fn number(number: impl Into<u64>) -> Option<FieldValue<'static>> {
    Some(FieldValue::Number(number.into()))
}

/// Path and query as they were asked for, up to what the log shows of them.
fn target<'e>(event: &'e ExchangeEvent<'e>) -> Cow<'e, [u8]> {
    let Some(query) = event.query else { return Cow::Borrowed(event.path) };
    let mut target = Vec::with_capacity(event.path.len().min(LOG_TARGET_BYTES_MAX) + 1 + query.len());
    target.extend_from_slice(&event.path[..event.path.len().min(LOG_TARGET_BYTES_MAX)]);
    target.push(b'?');
    target.extend_from_slice(&query[..query.len().min(LOG_TARGET_BYTES_MAX)]);
    Cow::Owned(target)
}

fn url<'e>(event: &'e ExchangeEvent<'e>) -> Option<FieldValue<'e>> {
    let target = target(event);
    match event.host {
        // A forward proxy is asked for whole URLs.
        Some(host) if target.starts_with(b"/") => Some(FieldValue::Text(Cow::Owned([host, &target].concat()))),
        _ => (!target.is_empty()).then_some(FieldValue::Text(target)),
    }
}

fn last<'e>(event: &'e ExchangeEvent<'e>) -> Option<&'e OriginTry> {
    event.tries.last()
}

fn spent(micros: u32) -> Option<FieldValue<'static>> {
    (micros > 0).then_some(FieldValue::Number(micros.into()))
}

/// All fields, in the order in which they are written.
pub static EVENT_FIELDS: &[EventField] = &[
    EventField {
        name: "client",
        kind: FieldKind::Address,
        says: "the client's address; compared with an address or a network (`client == 10.0.0.0/8`)",
        of: |event| Some(FieldValue::Address(event.client)),
    },
    EventField {
        name: "user",
        kind: FieldKind::Text,
        says: "who has logged in, with basic_auth, auth_request or at the forward proxy",
        of: |event| text(event.user?),
    },
    EventField { name: "method", kind: FieldKind::Text, says: "the request's method", of: |event| text(event.method) },
    EventField {
        name: "host",
        kind: FieldKind::Text,
        says: "the Host that was asked for",
        of: |event| text(event.host?),
    },
    EventField {
        name: "path",
        kind: FieldKind::Text,
        says: "the path, without its query",
        of: |event| text(event.path),
    },
    EventField {
        name: "query",
        kind: FieldKind::Text,
        says: "what stands behind `?`, as the client sent it",
        of: |event| text(event.query?),
    },
    EventField { name: "url", kind: FieldKind::Text, says: "host, path and query in one", of: url },
    EventField {
        name: "protocol",
        kind: FieldKind::Text,
        says: "the version of HTTP: 1.0, 1.1 or 2.0",
        of: |event| if event.method.is_empty() { None } else { word(event.version.number()) },
    },
    EventField { name: "referer", kind: FieldKind::Text, says: "the field Referer", of: |event| text(event.referer?) },
    EventField {
        name: "agent",
        kind: FieldKind::Text,
        says: "the field User-Agent",
        of: |event| text(event.user_agent?),
    },
    EventField {
        name: "route",
        kind: FieldKind::Text,
        says: "the route that answered, as /metrics calls it",
        of: |event| word(event.route),
    },
    EventField {
        name: "status",
        kind: FieldKind::Number,
        says: "the status of the answer; 0 where the client left before there was one",
        of: |event| number(event.status),
    },
    EventField {
        name: "bytes",
        kind: FieldKind::Bytes,
        says: "bytes of the body that went out",
        of: |event| number(event.body_bytes),
    },
    EventField {
        name: "class",
        kind: FieldKind::Text,
        says: "how the answer came about: hit, stale, miss, pass, error …, the verdict of the access log",
        of: |event| word(event.verdict.token()),
    },
    EventField {
        name: "why",
        kind: FieldKind::Text,
        says: "the token of a refusal, of a failure, or of why it is not stored",
        of: |event| word(event.why),
    },
    EventField {
        name: "forwarded",
        kind: FieldKind::Text,
        says: "why an origin was asked: uri-miss, vary-miss, stale, request, method or bypass (RFC 9211)",
        of: |event| word(event.forwarded?),
    },
    EventField {
        name: "time.whole",
        kind: FieldKind::Micros,
        says: "from the first byte of the request to the last of the answer",
        of: |event| number(event.micros),
    },
    EventField {
        name: "time.first_byte",
        kind: FieldKind::Micros,
        says: "until the answer began to go out",
        of: |event| number(event.first_byte_micros?),
    },
    EventField {
        name: "origin",
        kind: FieldKind::Text,
        says: "the origin that was asked last, or the backend of a VCL",
        of: |event| word(&last(event)?.origin),
    },
    EventField {
        name: "origin.address",
        kind: FieldKind::Text,
        says: "which of its addresses",
        of: |event| word(last(event)?.address.as_deref()?),
    },
    EventField {
        name: "origin.status",
        kind: FieldKind::Number,
        says: "the status that it answered with",
        of: |event| match last(event)?.outcome {
            TryOutcome::Answered { status } => number(status),
            TryOutcome::Failed(_) | TryOutcome::GivenUp => None,
        },
    },
    EventField {
        name: "origin.error",
        kind: FieldKind::Text,
        says: "how it failed, by the token of the failure",
        of: |event| match last(event)?.outcome {
            TryOutcome::Failed(token) => word(token),
            TryOutcome::Answered { .. } | TryOutcome::GivenUp => None,
        },
    },
    EventField {
        name: "origin.reused",
        kind: FieldKind::Text,
        says: "yes or no: was its connection used before?",
        of: |event| {
            let tried = last(event)?;
            tried.address.as_ref()?;
            word(if tried.is_reused { "yes" } else { "no" })
        },
    },
    EventField {
        name: "origin.tries",
        kind: FieldKind::Number,
        says: "how often origins were asked for this request; 8 are told at most of each fetch",
        of: |event| if event.tries.is_empty() { None } else { number(event.tries.len() as u64) },
    },
    EventField {
        name: "time.lookup",
        kind: FieldKind::Micros,
        says: "of the last try: for the address of the origin's name",
        of: |event| spent(last(event)?.opening.lookup_micros),
    },
    EventField {
        name: "time.queue",
        kind: FieldKind::Micros,
        says: "for one of the connections that the origin may have (max_connections of the origin)",
        of: |event| spent(last(event)?.opening.queue_micros),
    },
    EventField {
        name: "time.connect",
        kind: FieldKind::Micros,
        says: "for the origin to take the connection",
        of: |event| spent(last(event)?.opening.connect_micros),
    },
    EventField {
        name: "time.tls",
        kind: FieldKind::Micros,
        says: "for the handshake of TLS with it",
        of: |event| spent(last(event)?.opening.tls_micros),
    },
    EventField {
        name: "time.origin",
        kind: FieldKind::Micros,
        says: "from a connection to the head of the origin's answer",
        of: |event| number(last(event)?.first_byte_micros?),
    },
    EventField {
        name: "tls",
        kind: FieldKind::Text,
        says: "the version of TLS that the client speaks: TLSv1.2 or TLSv1.3",
        of: |event| word(event.tls?.version),
    },
    EventField {
        name: "tls.sni",
        kind: FieldKind::Text,
        says: "the server that its handshake asked for",
        of: |event| word(event.tls?.server_name.as_deref()?),
    },
    EventField {
        name: "tls.resumed",
        kind: FieldKind::Text,
        says: "yes or no: was the handshake a short one?",
        of: |event| word(if event.tls?.is_resumed { "yes" } else { "no" }),
    },
    EventField {
        name: "id",
        kind: FieldKind::Text,
        says: "the number that the page of an error of larder's shows to its visitor",
        of: |event| Some(FieldValue::Text(Cow::Owned(event.error?.id.to_string().into_bytes()))),
    },
    EventField {
        name: "error.detail",
        kind: FieldKind::Text,
        says: "what failed, where, and which setting changes it",
        of: |event| word(event.error?.detail.as_deref()?),
    },
    EventField {
        name: "log",
        kind: FieldKind::Text,
        says: "what the VCL said by std.log, its texts joined by `; `",
        of: |event| Some(FieldValue::Text(Cow::Owned(event.logged?.joined()?))),
    },
];

impl EventField {
    /// By its name.
    pub fn named(name: &str) -> Option<&'static EventField> {
        EVENT_FIELDS.iter().find(|field| field.name == name)
    }

    /// All that it can hold, where that is one of a few words.
    pub fn words(&self) -> Option<Vec<&'static str>> {
        let versions = [Version::Http10, Version::Http11, Version::Http2];
        Some(match self.name {
            "class" => CacheVerdict::ALL.map(CacheVerdict::token).to_vec(),
            "protocol" => versions.map(Version::number).to_vec(),
            "forwarded" => vec!["uri-miss", "vary-miss", "stale", "request", "method", "bypass"],
            "origin.reused" | "tls.resumed" => vec!["yes", "no"],
            "tls" => vec!["TLSv1.2", "TLSv1.3"],
            _ => return None,
        })
    }

    /// What it is known to hold, each with a sentence or none: all its words, or those that it holds beside others.
    pub fn known_words(&self) -> Vec<(&'static str, &'static str)> {
        match self.name {
            // Refusals and failures have words of their own.
            "why" => {
                let reasons = Reason::ALL.iter().filter(|reason| !reason.is_forward_word());
                reasons.map(|reason| (reason.token(), reason.means())).collect()
            }
            _ => self.words().unwrap_or_default().into_iter().map(|word| (word, "")).collect(),
        }
    }

    /// The numbers that it can hold, where not any is one.
    pub fn can_be(&self, number: u64) -> bool {
        match self.name {
            "status" => number == 0 || STATUSES.contains(&number),
            "origin.status" => STATUSES.contains(&number),
            _ => true,
        }
    }
}

/// What a status line may say (RFC 9110 §15).
const STATUSES: RangeInclusive<u64> = 100..=999;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_note::{ErrorNote, RequestId};
    use crate::events::exchange_event::tests::sample;
    use crate::events::origin_try::tests::{answered, failed};
    use crate::origin::OpeningTimes;

    #[track_caller]
    fn check(event: &ExchangeEvent<'_>, name: &str, expect: Option<FieldValue<'_>>) {
        let field = EventField::named(name).unwrap_or_else(|| panic!("no field is called {name}"));
        assert_eq!((field.of)(event), expect, "{name}");
    }

    #[test]
    fn each_name_stands_once_and_says_something() {
        for (at, field) in EVENT_FIELDS.iter().enumerate() {
            assert!(EVENT_FIELDS[..at].iter().all(|other| other.name != field.name), "{}", field.name);
            assert!(field.says.len() > 10 && !field.says.ends_with('.'), "{}", field.name);
            assert!(field.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'.' || b == b'_'), "{}", field.name);
        }
    }

    #[test]
    fn what_a_field_of_few_words_holds_is_one_of_them() {
        let event = sample();
        for field in EVENT_FIELDS {
            let (Some(words), Some(FieldValue::Text(held))) = (field.words(), (field.of)(&event)) else { continue };
            assert!(words.iter().any(|word| word.as_bytes() == &*held), "{}: {held:?}", field.name);
            // The page says all of them, or where they are told.
            assert!(field.name == "class" || words.iter().all(|word| field.says.contains(word)), "{}", field.name);
        }
        let status = EventField::named("status").expect("there is one");
        assert!(status.can_be(0) && status.can_be(103) && status.can_be(599) && !status.can_be(5));
    }

    #[test]
    fn a_hit_has_no_origin_and_a_url_of_its_parts() {
        check(&sample(), "url", word("t.test/a?b=1"));
        check(&sample(), "class", word("hit"));
        for absent in ["origin", "origin.status", "time.connect", "user", "why", "log"] {
            check(&sample(), absent, None);
        }
        let proxied = ExchangeEvent { path: b"http://far.test/x", query: None, ..sample() };
        check(&proxied, "url", word("http://far.test/x"));
    }

    #[test]
    fn an_error_has_the_number_that_its_page_shows() {
        let note = ErrorNote { id: RequestId::of(0x2a), detail: None };
        check(&ExchangeEvent { error: Some(&note), ..sample() }, "id", word("000000000000002a"));
        check(&sample(), "id", None);
    }

    #[test]
    fn the_last_try_is_the_one_that_is_told() {
        let opening = OpeningTimes { connect_micros: 40, ..OpeningTimes::default() };
        let tries = [failed(), answered(503, opening, 1_200)];
        let event = ExchangeEvent { tries: &tries, ..sample() };
        check(&event, "origin", word("app"));
        check(&event, "origin.status", number(503u64));
        check(&event, "origin.error", None);
        check(&event, "origin.tries", number(2u64));
        check(&event, "origin.reused", word("no"));
        check(&event, "time.connect", number(40u64));
        check(&event, "time.origin", number(1_200u64));
        check(&ExchangeEvent { tries: &tries[..1], ..event }, "origin.error", word("origin-connect"));
    }
}
