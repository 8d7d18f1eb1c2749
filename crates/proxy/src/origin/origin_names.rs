//! What an origin's URLs stand for: fixed addresses, and names with what was last heard about them. It says which
//! names have to be looked up and makes the list of places out of the answers; it asks nobody itself, and `now` is an
//! argument.
//!
//! A name's life:
//!
//! | phase | how it is left |
//! |---|---|
//! | `Unknown` | the first request asks: `Asking` |
//! | `Asking` | the answer comes: `Heard` or `Failed`. Meanwhile old addresses may be used, for some after a short wait |
//! | `Heard` | its time to live ends (or nearly, if it is in use): `Asking` |
//! | `Failed` | the pause ends: `Asking`. Meanwhile old addresses are used, or the failure is everybody's answer |

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::AddressGate;
use super::dial::DialAddress;
use super::limits::{
    ADDRESSES_PER_NAME_MAX, QUESTION_LOST_MS, RESOLVE_RETRY_MS, STALE_WAIT_MS, TTL_MAX_MS, TTL_MIN_MS,
};
use super::service_name::{self, FoundAddress, ServicePart};
use crate::settings::OriginUrl;

#[derive(Debug)]
pub struct OriginNames {
    parts: Vec<Part>,
    gate: Option<Arc<dyn AddressGate>>,
}

#[derive(Debug)]
enum Part {
    Fixed(DialAddress),
    /// An address that the gate does not let through.
    Forbidden(Arc<str>),
    Named(OriginName),
}

#[derive(Debug)]
struct OriginName {
    host: Arc<str>,
    port: u16,
    spoken: Spoken,
    phase: NamePhase,
    /// The last addresses heard, used as long as nothing newer is known.
    addresses: Vec<FoundAddress>,
    /// It stands for addresses of which the gate lets none through.
    forbidden: bool,
}

#[derive(Debug)]
enum NamePhase {
    Unknown,
    Asking { since_ms: u64, after: Option<Arc<str>> },
    Heard { until_ms: u64, renew_from_ms: u64 },
    Failed { until_ms: u64, why: Arc<str> },
}

/// What a name server, a hosts file or the settings say about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameAnswer {
    pub addresses: Vec<FoundAddress>,
    pub ttl_ms: u64,
}

/// Where connections can be opened to, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPlace {
    pub at: DialAddress,
    /// Which URL stands for it.
    pub url: usize,
    /// What an SRV record says of it.
    pub service: Option<ServicePart>,
}

/// A name without an address, or a forbidden address.
#[derive(Debug, PartialEq, Eq)]
pub struct Nameless {
    pub host: Arc<str>,
    pub why: Option<Arc<str>>,
    pub forbidden: bool,
}

/// A name that is to be looked up now.
#[derive(Debug, PartialEq, Eq)]
pub struct DueName {
    pub index: usize,
    pub host: Arc<str>,
}

impl OriginNames {
    pub fn new(urls: &[OriginUrl], gate: Option<Arc<dyn AddressGate>>) -> OriginNames {
        let admits = |ip| gate.as_ref().is_none_or(|gate| gate.admits(ip));
        let part = |url: &OriginUrl| match url {
            OriginUrl::Unix(path) => Part::Fixed(DialAddress::Unix(path.clone())),
            OriginUrl::Mocked(origin) => Part::Fixed(DialAddress::Mocked(origin.clone())),
            OriginUrl::Tcp { host, port } | OriginUrl::Tls { host, port } | OriginUrl::Http2 { host, port } => {
                let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
                let spoken = match url {
                    OriginUrl::Tls { .. } => Spoken::Tls(Arc::from(service_name::domain_of(bare).unwrap_or(bare))),
                    OriginUrl::Http2 { .. } => Spoken::Http2,
                    _ => Spoken::Http1,
                };
                match bare.parse::<IpAddr>() {
                    Ok(ip) if !admits(ip) => Part::Forbidden(host.as_str().into()),
                    Ok(ip) => Part::Fixed(spoken.at(SocketAddr::new(ip, *port))),
                    Err(_) => Part::Named(OriginName {
                        host: host.as_str().into(),
                        port: *port,
                        spoken,
                        phase: NamePhase::Unknown,
                        addresses: Vec::new(),
                        forbidden: false,
                    }),
                }
            }
        };
        OriginNames { parts: urls.iter().map(part).collect(), gate }
    }

    /// The names that are due at `now_ms`, `ahead` also those whose answer ends soon. They count as asked from here on.
    pub fn ask(&mut self, now_ms: u64, ahead: bool) -> Vec<DueName> {
        let mut questions = Vec::new();
        for (index, name) in self.names() {
            let (due, after) = match &name.phase {
                NamePhase::Unknown => (true, None),
                NamePhase::Asking { since_ms, after } => (now_ms >= since_ms + QUESTION_LOST_MS, after.clone()),
                NamePhase::Heard { until_ms, renew_from_ms } => {
                    (now_ms >= if ahead { *renew_from_ms } else { *until_ms }, None)
                }
                NamePhase::Failed { until_ms, why } => (now_ms >= *until_ms, Some(Arc::clone(why))),
            };
            if due {
                name.phase = NamePhase::Asking { since_ms: now_ms, after };
                questions.push(DueName { index, host: Arc::clone(&name.host) });
            }
        }
        questions
    }

    /// The answer to a question. Addresses stay when the lookup failed.
    pub fn heard(&mut self, index: usize, answer: Result<NameAnswer, Arc<str>>, now_ms: u64) {
        let gate = self.gate.clone();
        let Some((_, name)) = self.names().find(|(i, _)| *i == index) else { return };
        name.phase = match answer {
            Ok(mut answer) if !answer.addresses.is_empty() => {
                let ttl_ms = answer.ttl_ms.clamp(TTL_MIN_MS, TTL_MAX_MS);
                // Sorted, so that the rotation that name servers practise does not look like a change, and of more than are taken all
                // larders take the same ones.
                answer.addresses.sort_unstable();
                answer.addresses.dedup();
                answer.addresses.truncate(ADDRESSES_PER_NAME_MAX);
                if let Some(gate) = gate {
                    answer.addresses.retain(|address| gate.admits(address.ip));
                    name.forbidden = answer.addresses.is_empty();
                }
                name.addresses = answer.addresses;
                NamePhase::Heard { until_ms: now_ms + ttl_ms, renew_from_ms: now_ms + ttl_ms - ttl_ms / 8 }
            }
            Ok(_) => NamePhase::Failed { until_ms: now_ms + RESOLVE_RETRY_MS, why: "it has no address".into() },
            Err(why) => NamePhase::Failed { until_ms: now_ms + RESOLVE_RETRY_MS, why },
        };
    }

    /// Every place the URLs stand for now, in their order, each once.
    pub fn places(&self) -> Vec<NamedPlace> {
        let mut places = Vec::new();
        for (url, part) in self.parts.iter().enumerate() {
            match part {
                Part::Fixed(at) => places.push(NamedPlace { at: at.clone(), url, service: None }),
                Part::Forbidden(_) => {}
                Part::Named(name) => {
                    let place = |found: &FoundAddress| {
                        let port = found.service.map_or(name.port, |service| service.port);
                        NamedPlace { at: name.spoken.at(SocketAddr::new(found.ip, port)), url, service: found.service }
                    };
                    places.extend(name.addresses.iter().map(place));
                }
            }
        }
        #[allow(clippy::mutable_key_type, reason = "a mocked place is told by its name, which does not change")]
        let mut seen = HashSet::new();
        places.retain(|place| seen.insert(place.at.clone()));
        places
    }

    /// Until when nothing has to be asked, and from when it may be asked ahead of need.
    pub fn fresh_until_ms(&self) -> (u64, u64) {
        let bounds = |part: &Part| match part {
            Part::Fixed(_) | Part::Forbidden(_) => (u64::MAX, u64::MAX),
            Part::Named(name) => match name.phase {
                NamePhase::Unknown | NamePhase::Asking { .. } => (0, 0),
                NamePhase::Heard { until_ms, renew_from_ms } => (until_ms, renew_from_ms),
                NamePhase::Failed { until_ms, .. } => (until_ms, until_ms),
            },
        };
        self.parts.iter().map(bounds).fold((u64::MAX, u64::MAX), |a, b| (a.0.min(b.0), a.1.min(b.1)))
    }

    /// How long a request that came at `now_ms` waits for answers: `None`, there is nothing to wait for.
    ///
    /// Without any address it has to; with old ones only a little, and not at all when the last lookup failed too:
    /// a name server that is down must not slow every request down.
    pub fn wait_ms(&self, now_ms: u64, patience_ms: u64) -> Option<u64> {
        let nowhere_to_go = self.places().is_empty();
        let wait = |part: &Part| match part {
            Part::Named(OriginName { phase: NamePhase::Asking { since_ms, after }, .. }) => {
                let patience_ms = if nowhere_to_go { patience_ms } else { STALE_WAIT_MS };
                let left_ms = (since_ms + patience_ms).saturating_sub(now_ms);
                (left_ms > 0 && (nowhere_to_go || after.is_none())).then_some(left_ms)
            }
            _ => None,
        };
        self.parts.iter().filter_map(wait).max()
    }

    /// The first name without an address, and why it has none.
    pub fn failure(&self) -> Option<Nameless> {
        self.parts.iter().find_map(|part| match part {
            Part::Named(name) if name.addresses.is_empty() => {
                let why = match &name.phase {
                    NamePhase::Failed { why, .. } => Some(Arc::clone(why)),
                    NamePhase::Asking { after, .. } => after.clone(),
                    NamePhase::Unknown | NamePhase::Heard { .. } => None,
                };
                Some(Nameless { host: Arc::clone(&name.host), why, forbidden: name.forbidden })
            }
            Part::Forbidden(host) => Some(Nameless { host: Arc::clone(host), why: None, forbidden: true }),
            _ => None,
        })
    }

    fn names(&mut self) -> impl Iterator<Item = (usize, &mut OriginName)> {
        self.parts.iter_mut().enumerate().filter_map(|(index, part)| match part {
            Part::Named(name) => Some((index, name)),
            Part::Fixed(_) | Part::Forbidden(_) => None,
        })
    }
}

/// What a URL says is spoken where it leads.
#[derive(Clone, Debug)]
enum Spoken {
    Http1,
    Http2,
    /// With the server of this name; what goes on inside is agreed upon there.
    Tls(Arc<str>),
}

impl Spoken {
    fn at(&self, address: SocketAddr) -> DialAddress {
        match self {
            Spoken::Http1 => DialAddress::Tcp(address),
            Spoken::Http2 => DialAddress::Http2(address),
            Spoken::Tls(name) => DialAddress::Tls(address, Arc::clone(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> OriginUrl {
        OriginUrl::Tcp { host: host.into(), port }
    }

    fn answer(addresses: &[&str], ttl_ms: u64) -> Result<NameAnswer, Arc<str>> {
        let found = |text: &&str| FoundAddress::from(text.parse::<IpAddr>().unwrap());
        Ok(NameAnswer { addresses: addresses.iter().map(found).collect(), ttl_ms })
    }

    fn check(names: &OriginNames, expect: &[&str]) {
        assert_eq!(names.places().iter().map(|place| place.at.to_string()).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn addresses_and_sockets_need_no_questions() {
        let mut names = OriginNames::new(
            &[
                tcp("10.0.0.1", 80),
                tcp("::1", 81),
                tcp("[::2]", 82),
                OriginUrl::Unix("/run/a".into()),
                tcp("10.0.0.1", 80),
            ],
            None,
        );
        check(&names, &["10.0.0.1:80", "[::1]:81", "[::2]:82", "unix:/run/a"]);
        assert_eq!((names.ask(u64::MAX, true), names.fresh_until_ms().0), (vec![], u64::MAX));
    }

    #[test]
    fn a_name_is_asked_for_once_until_its_answer_ends() {
        let mut names = OriginNames::new(&[tcp("10.0.0.9", 80), tcp("a.test", 80)], None);
        let question = || vec![DueName { index: 1, host: "a.test".into() }];
        assert_eq!((names.ask(0, false), names.ask(1, false)), (question(), vec![]));
        names.heard(1, answer(&["10.0.0.2", "10.0.0.1", "10.0.0.2", "fd00::1"], 8_000), 100);
        check(&names, &["10.0.0.9:80", "10.0.0.1:80", "10.0.0.2:80", "[fd00::1]:80"]);
        assert_eq!(names.fresh_until_ms(), (8_100, 7_100));
        assert_eq!((names.ask(8_099, false), names.ask(7_099, true)), (vec![], vec![]));
        assert_eq!(names.ask(7_100, true), question());
    }

    /// A hundred pods behind one name: name servers turn their answers, and all that ask have to take the same ones.
    #[test]
    fn of_more_addresses_than_are_taken_everybody_takes_the_same() {
        let all: Vec<String> = (1..=100).map(|n| format!("10.0.0.{n}")).collect();
        let places = |turned: usize| {
            let mut names = OriginNames::new(&[tcp("a.test", 80)], None);
            let mut turn: Vec<&str> = all.iter().map(String::as_str).collect();
            turn.rotate_left(turned);
            names.ask(0, false);
            names.heard(0, answer(&turn, 8_000), 0);
            names.places().iter().map(|place| place.at.to_string()).collect::<Vec<_>>()
        };
        assert_eq!((places(0).len(), places(0)), (ADDRESSES_PER_NAME_MAX, places(50)));
    }

    #[test]
    fn a_time_to_live_is_bounded_on_both_sides() {
        for (ttl_ms, expect_ms) in [(0, TTL_MIN_MS), (5_000, 5_000), (u64::MAX, TTL_MAX_MS)] {
            let mut names = OriginNames::new(&[tcp("a.test", 80)], None);
            names.heard(0, answer(&["10.0.0.1"], ttl_ms), 0);
            assert_eq!(names.fresh_until_ms().0, expect_ms, "of {ttl_ms}");
        }
    }

    #[test]
    fn old_addresses_stay_while_a_lookup_fails() {
        let mut names = OriginNames::new(&[tcp("a.test", 80)], None);
        names.heard(0, answer(&["10.0.0.1"], 1_000), 0);
        for failed in [Err("no such name".into()), answer(&[], 1_000)] {
            let now_ms = names.fresh_until_ms().0;
            assert_eq!(names.ask(now_ms, false).len(), 1);
            names.heard(0, failed, now_ms);
            check(&names, &["10.0.0.1:80"]);
            assert_eq!(names.fresh_until_ms().0, now_ms + RESOLVE_RETRY_MS);
        }
    }

    #[test]
    fn only_who_has_nowhere_to_go_waits_for_a_name_server_that_is_down() {
        let mut names = OriginNames::new(&[tcp("a.test", 80)], None);
        names.ask(0, false);
        assert_eq!((names.wait_ms(0, 5_000), names.wait_ms(4_000, 5_000)), (Some(5_000), Some(1_000)));
        assert_eq!(names.wait_ms(5_000, 5_000), None, "patience ends");
        names.heard(0, answer(&["10.0.0.1"], 1_000), 0);
        assert_eq!(names.wait_ms(0, 5_000), None, "nothing is asked");
        names.ask(1_000, false);
        assert_eq!((names.wait_ms(1_000, 5_000), names.wait_ms(1_500, 5_000)), (Some(STALE_WAIT_MS), None));
        names.heard(0, Err("down".into()), 3_000);
        names.ask(4_000, false);
        assert_eq!(names.wait_ms(4_000, 5_000), None, "it failed before");
    }

    #[test]
    fn a_question_that_was_lost_is_asked_again() {
        let mut names = OriginNames::new(&[tcp("a.test", 80)], None);
        names.ask(5, false);
        assert_eq!(
            (names.ask(QUESTION_LOST_MS + 4, false).len(), names.ask(QUESTION_LOST_MS + 5, false).len()),
            (0, 1)
        );
    }

    #[test]
    fn the_name_without_an_address_is_the_one_that_is_blamed() {
        let mut names = OriginNames::new(&[tcp("a.test", 80), tcp("b.test", 80)], None);
        names.heard(0, answer(&["10.0.0.1"], 1_000), 0);
        names.heard(1, Err("no such name".into()), 0);
        let nameless = Nameless { host: "b.test".into(), why: Some("no such name".into()), forbidden: false };
        assert_eq!(names.failure(), Some(nameless));
    }

    /// Lets through what does not begin with 10.
    #[derive(Debug)]
    struct NotTen;

    impl AddressGate for NotTen {
        fn admits(&self, address: IpAddr) -> bool {
            !address.to_string().starts_with("10.")
        }
    }

    #[test]
    fn what_the_gate_holds_back_is_no_place() {
        let mut names = OriginNames::new(&[tcp("a.test", 80)], Some(Arc::new(NotTen)));
        names.heard(0, answer(&["10.0.0.1", "192.0.2.1"], 8_000), 0);
        check(&names, &["192.0.2.1:80"]);
        // The next answer leads inside: nothing that was heard before is used in its place.
        names.heard(0, answer(&["10.0.0.1"], 8_000), 8_000);
        check(&names, &[]);
        assert_eq!(names.failure().map(|nameless| nameless.forbidden), Some(true));
        assert_eq!(names.fresh_until_ms().0, 16_000, "asked again when the answer ends");
        names.heard(0, answer(&["192.0.2.7"], 8_000), 16_000);
        check(&names, &["192.0.2.7:80"]);
        let names = OriginNames::new(&[tcp("10.0.0.1", 80)], Some(Arc::new(NotTen)));
        check(&names, &[]);
        let nameless = Nameless { host: "10.0.0.1".into(), why: None, forbidden: true };
        assert_eq!(names.failure(), Some(nameless));
    }
}
