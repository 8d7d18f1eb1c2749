//! What a request would come to, asked of the running proxy: by which route, under which key, what is stored there, what is chosen of it and
//! why, and what would have to change. Nothing is done: no origin is asked, nothing is counted, stored or taken out.
//!
//! The steps up to the look-up are those of a request, on a core of its own that only looks (`opened.rs`); the look-up is the cache's plan
//! (`looked_up.rs`), which is what `ask` carries out.

mod file_explained;
mod held_refusal;
mod held_rule;
mod looked_up;
mod opened;
mod stored_response;
mod told_in_answer;

use std::net::IpAddr;
use std::sync::Arc;

use message::Scheme;
use wire::{ReceivedRequest, Refusal};

use crate::asker::Asker;
use crate::core::{Core, Shared};
pub use crate::explain::held_rule::HeldRule;
pub use crate::explain::stored_response::StoredResponse;
pub(crate) use crate::explain::told_in_answer::line;
use crate::reason::Reason;

/// A request that might come.
#[derive(Clone, Debug)]
pub struct ExplainQuestion {
    /// Its head, as it goes over the wire.
    pub head: Vec<u8>,
    pub scheme: Scheme,
    pub client: IpAddr,
    /// So much later than now.
    pub ahead_ms: u64,
}

/// Where a request ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WouldBe {
    /// Answered from the store, fresh.
    Hit,
    /// Answered from the store, stale: it may be. `refreshes`: somebody asks the origin meanwhile.
    Stale {
        refreshes: bool,
    },
    /// The origin is asked whether what is stored still holds.
    Revalidated,
    /// The origin is asked, and what comes may be stored.
    Miss,
    /// It waits for a fetch that is under way.
    Coalesced,
    /// The origin is asked past the store.
    Pass,
    /// A disk is read first: it has something under this key.
    Disk,
    /// larder answers by itself: its status, the word of the log, and a sentence if there is one.
    Answered {
        status: u16,
        token: &'static str,
        text: String,
    },
    /// A file answers, or the listing of a directory: this one.
    File(String),
    Memcached,
    /// What is stored is dropped.
    Purge,
    /// Bytes flow both ways.
    Tunnel,
    /// The VCL of this name decides.
    Program(String),
}

impl WouldBe {
    /// The stable word; where the access log has one for it, that.
    pub fn word(&self) -> &'static str {
        match self {
            WouldBe::Hit => "hit",
            WouldBe::Stale { .. } => "stale",
            WouldBe::Revalidated => "revalidated",
            WouldBe::Miss => "miss",
            WouldBe::Coalesced => "coalesced",
            WouldBe::Pass => "pass",
            WouldBe::Disk => "disk",
            WouldBe::Answered { .. } => "answered",
            WouldBe::File(_) => "file",
            WouldBe::Memcached => "memcached",
            WouldBe::Purge => "purge",
            WouldBe::Tunnel => "pipe",
            WouldBe::Program(_) => "program",
        }
    }
}

/// A reason, and what of this request it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenReason {
    pub reason: Reason,
    /// Names of fields, cookies or parameters, never a value.
    pub about: Option<String>,
    /// The rule that holds of all that the reason may mean, where that is known.
    pub rule: Option<HeldRule>,
}

/// The route of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedRoute {
    /// As `/metrics` names it.
    pub name: String,
    /// Who answers.
    pub target: String,
}

/// What a request would come to.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub would_be: WouldBe,
    /// Why it is no hit, the nearest reason first.
    pub reasons: Vec<GivenReason>,
    /// What else is to be known: sentences.
    pub notes: Vec<String>,
    pub route: Option<ExplainedRoute>,
    /// The URL under which it is looked up.
    pub key: Option<String>,
    /// All that is stored there, newest first.
    pub stored: Vec<StoredResponse>,
    /// The place among those of the one that it selects, and by what.
    pub chosen: Option<(usize, String)>,
    /// The moment that is asked about, since 1970.
    pub wall_ms: u64,
}

impl Explanation {
    fn new(would_be: WouldBe, wall_ms: u64) -> Explanation {
        Explanation {
            would_be,
            reasons: Vec::new(),
            notes: Vec::new(),
            route: None,
            key: None,
            stored: Vec::new(),
            chosen: None,
            wall_ms,
        }
    }

    fn because(&mut self, reason: Reason, about: Option<String>) {
        self.reasons.push(GivenReason { reason, about, rule: None });
    }
}

impl GivenReason {
    /// What it means: of the rule that holds, or in general.
    pub fn means(&self) -> &str {
        self.rule.as_ref().map_or(self.reason.means(), |rule| &rule.means)
    }

    /// What changes it. `None`: nothing should.
    pub fn way_out(&self) -> Option<&str> {
        self.rule.as_ref().map(|rule| &*rule.way_out).or(self.reason.way_out())
    }
}

/// What a request that has come would come to, told before anything is done of it.
pub(crate) fn of_received(core: &Core, asker: &Asker<'_>, received: &ReceivedRequest<'_>) -> Explanation {
    opened::of_received(core, asker, received)
}

/// What a request that nobody sent would come to. The error is what is refused of its bytes.
pub(crate) fn of_question(shared: Arc<Shared>, question: &ExplainQuestion) -> Result<Explanation, Refusal> {
    opened::explain(shared, question)
}
