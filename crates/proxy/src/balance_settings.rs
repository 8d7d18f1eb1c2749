//! How the addresses of an origin share what it is asked: by which rule, in which parts, who stands in for the others, how
//! they are probed, and where else a request may go that one of them failed.

use std::time::Duration;

use message::Method;

use crate::fleet::url_digest::DigestKey;

/// Who of several addresses is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BalanceSettings {
    pub kind: BalanceKind,
    /// Of each URL, in their order; for those behind the end of this list, [`UrlShare::default`].
    pub shares: Vec<UrlShare>,
    /// An address that comes back, or comes new beside others, gets its share over so long. Zero: at once.
    pub slow_start: Duration,
    /// When every address is left out, nobody is asked: the request fails. Else all of them are.
    pub breaks_circuit: bool,
    /// A client that was answered by an address comes back to it.
    pub sticky_cookie: Option<StickyCookie>,
}

/// By which a client is known to belong to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StickyCookie {
    pub name: String,
    /// Told beside the address where its value is made, so that nobody learns the address from it. It may be empty.
    pub secret: String,
}

/// The rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BalanceKind {
    /// Each in its turn, as often as its weight says.
    #[default]
    RoundRobin,
    /// The one that works on the fewest requests, by its weight.
    LeastConn,
    /// The better one of two that are drawn.
    TwoChoices,
    /// The same for the same key, as long as it is there.
    Hash(HashKey),
    /// The first that is there, in the order in which they are written.
    First,
}

/// What of a request says to which address it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashKey {
    /// Host, path and query.
    Url,
    /// The client's address.
    Client,
    Cookie(String),
    Header(String),
    /// What a stored response is found by, as all nodes of a fleet know it.
    Stored(DigestKey),
}

/// What a URL gets of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UrlShare {
    /// Beside those of the others; 0: nothing.
    pub weight: u32,
    /// Only asked when all others are out.
    pub is_backup: bool,
}

impl Default for UrlShare {
    fn default() -> UrlShare {
        UrlShare { weight: 1, is_backup: false }
    }
}

impl BalanceKind {
    pub const WORDS: [&str; 5] = ["round-robin", "least-conn", "two-choices", "hash", "first"];

    /// As an operator writes it.
    pub fn word(&self) -> &'static str {
        BalanceKind::WORDS[match self {
            BalanceKind::RoundRobin => 0,
            BalanceKind::LeastConn => 1,
            BalanceKind::TwoChoices => 2,
            BalanceKind::Hash(_) => 3,
            BalanceKind::First => 4,
        }]
    }

    /// Does it ask how many requests an address works on?
    pub(crate) fn compares_load(&self) -> bool {
        matches!(self, BalanceKind::LeastConn | BalanceKind::TwoChoices | BalanceKind::Hash(HashKey::Stored(_)))
    }
}

/// How each address of an origin is asked whether it is well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeSettings {
    /// Path and query.
    pub path: String,
    /// The Host that it is asked for.
    pub host: String,
    /// Between two probes of one address.
    pub interval: Duration,
    pub timeout: Duration,
    /// So many of the last probes count, 64 at most …
    pub window: u32,
    /// … of which so many have to be good.
    pub threshold: u32,
    /// So many are taken to have been good before the first.
    pub initial: u32,
    /// The statuses of a good answer.
    pub expected: Vec<u16>,
}

/// Where else a request goes that an address failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// Addresses beside the first.
    pub others_max: usize,
    /// Nobody could be connected to. Nothing was sent, so that any method may go elsewhere.
    pub on_connect: bool,
    /// No answer began in time.
    pub on_timeout: bool,
    /// The connection ended without an answer, or with one that is no HTTP.
    pub on_closed: bool,
    /// The answers that count as failures of their address.
    pub statuses: Vec<u16>,
    /// What of those that were sent may be sent once more.
    pub methods: Vec<Method>,
}

impl Default for RetrySettings {
    fn default() -> RetrySettings {
        RetrySettings {
            others_max: 2,
            on_connect: true,
            on_timeout: false,
            on_closed: false,
            statuses: Vec::new(),
            methods: vec![Method::Get, Method::Head],
        }
    }
}

impl RetrySettings {
    /// Is this an answer that an address is blamed for?
    #[inline]
    pub(crate) fn blames(&self, status: u16) -> bool {
        !self.statuses.is_empty() && self.statuses.contains(&status)
    }
}
