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

use super::dial::Place;
use super::limits::{ADDRESSES_PER_NAME_MAX, RESOLVE_RETRY_MS, STALE_WAIT_MS, TTL_MAX_MS, TTL_MIN_MS};
use crate::settings::OriginUrl;

#[derive(Debug)]
pub struct OriginNames {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Fixed(Place),
    Named(Name),
}

#[derive(Debug)]
struct Name {
    host: Arc<str>,
    port: u16,
    phase: Phase,
    /// The last addresses heard, used as long as nothing newer is known.
    addresses: Vec<IpAddr>,
}

#[derive(Debug)]
enum Phase {
    Unknown,
    Asking { since_ms: u64, after: Option<Arc<str>> },
    Heard { until_ms: u64, renew_from_ms: u64 },
    Failed { until_ms: u64, why: Arc<str> },
}

/// What a name server, a hosts file or the settings say about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameAnswer {
    pub addresses: Vec<IpAddr>,
    pub ttl_ms: u64,
}

/// A name that is to be looked up now.
#[derive(Debug, PartialEq, Eq)]
pub struct Question {
    pub index: usize,
    pub host: Arc<str>,
}

impl OriginNames {
    pub fn new(urls: &[OriginUrl]) -> OriginNames {
        let part = |url: &OriginUrl| match url {
            OriginUrl::Unix(path) => Part::Fixed(Place::Unix(path.clone())),
            OriginUrl::Tcp { host, port } => {
                let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
                match bare.parse::<IpAddr>() {
                    Ok(ip) => Part::Fixed(Place::Tcp(SocketAddr::new(ip, *port))),
                    Err(_) => Part::Named(Name {
                        host: host.as_str().into(),
                        port: *port,
                        phase: Phase::Unknown,
                        addresses: Vec::new(),
                    }),
                }
            }
        };
        OriginNames { parts: urls.iter().map(part).collect() }
    }

    /// The names that are due at `now_ms`, `ahead` also those whose answer ends soon. They count as asked from here on.
    pub fn ask(&mut self, now_ms: u64, ahead: bool) -> Vec<Question> {
        let mut questions = Vec::new();
        for (index, name) in self.names() {
            let (due, after) = match &name.phase {
                Phase::Unknown => (true, None),
                Phase::Asking { .. } => (false, None),
                Phase::Heard { until_ms, renew_from_ms } => {
                    (now_ms >= if ahead { *renew_from_ms } else { *until_ms }, None)
                }
                Phase::Failed { until_ms, why } => (now_ms >= *until_ms, Some(Arc::clone(why))),
            };
            if due {
                name.phase = Phase::Asking { since_ms: now_ms, after };
                questions.push(Question { index, host: Arc::clone(&name.host) });
            }
        }
        questions
    }

    /// The answer to a question. Addresses stay when the lookup failed.
    pub fn heard(&mut self, index: usize, answer: Result<NameAnswer, Arc<str>>, now_ms: u64) {
        let Some((_, name)) = self.names().find(|(i, _)| *i == index) else { return };
        name.phase = match answer {
            Ok(answer) if !answer.addresses.is_empty() => {
                let ttl_ms = answer.ttl_ms.clamp(TTL_MIN_MS, TTL_MAX_MS);
                name.addresses = answer.addresses;
                // Sorted, so that the rotation that name servers practise does not look like a change.
                name.addresses.sort_unstable();
                name.addresses.dedup();
                name.addresses.truncate(ADDRESSES_PER_NAME_MAX);
                Phase::Heard { until_ms: now_ms + ttl_ms, renew_from_ms: now_ms + ttl_ms - ttl_ms / 8 }
            }
            Ok(_) => Phase::Failed { until_ms: now_ms + RESOLVE_RETRY_MS, why: "it has no address".into() },
            Err(why) => Phase::Failed { until_ms: now_ms + RESOLVE_RETRY_MS, why },
        };
    }

    /// Every place the URLs stand for now, in their order, each once.
    pub fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for part in &self.parts {
            match part {
                Part::Fixed(place) => places.push(place.clone()),
                Part::Named(name) => {
                    places.extend(name.addresses.iter().map(|&ip| Place::Tcp(SocketAddr::new(ip, name.port))));
                }
            }
        }
        let mut seen = HashSet::new();
        places.retain(|place| seen.insert(place.clone()));
        places
    }

    /// Until when nothing has to be asked, and from when it may be asked ahead of need.
    pub fn fresh_until_ms(&self) -> (u64, u64) {
        let bounds = |part: &Part| match part {
            Part::Fixed(_) => (u64::MAX, u64::MAX),
            Part::Named(name) => match name.phase {
                Phase::Unknown | Phase::Asking { .. } => (0, 0),
                Phase::Heard { until_ms, renew_from_ms } => (until_ms, renew_from_ms),
                Phase::Failed { until_ms, .. } => (until_ms, until_ms),
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
            Part::Named(Name { phase: Phase::Asking { since_ms, after }, .. }) => {
                let patience_ms = if nowhere_to_go { patience_ms } else { STALE_WAIT_MS };
                let left_ms = (since_ms + patience_ms).saturating_sub(now_ms);
                (left_ms > 0 && (nowhere_to_go || after.is_none())).then_some(left_ms)
            }
            _ => None,
        };
        self.parts.iter().filter_map(wait).max()
    }

    /// The first name without an address, and why it has none.
    pub fn failure(&self) -> Option<(Arc<str>, Option<Arc<str>>)> {
        self.parts.iter().find_map(|part| match part {
            Part::Named(name) if name.addresses.is_empty() => {
                let why = match &name.phase {
                    Phase::Failed { why, .. } => Some(Arc::clone(why)),
                    Phase::Asking { after, .. } => after.clone(),
                    Phase::Unknown | Phase::Heard { .. } => None,
                };
                Some((Arc::clone(&name.host), why))
            }
            _ => None,
        })
    }

    fn names(&mut self) -> impl Iterator<Item = (usize, &mut Name)> {
        self.parts.iter_mut().enumerate().filter_map(|(index, part)| match part {
            Part::Named(name) => Some((index, name)),
            Part::Fixed(_) => None,
        })
    }
}
