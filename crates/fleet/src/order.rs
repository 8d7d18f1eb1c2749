//! What is ordered, and what its acknowledgement means.

/// An order that each node carries out.
pub(crate) const ORDER_KIND: &str = "purge";

/// A node has carried out orders of which nobody else will hear: who hears that cannot know what it missed.
pub(crate) const LOST_KIND: &str = "lost";

/// What must have happened before an order is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Acknowledge {
    /// This node has carried it out. The others hear of it as soon as the log can be reached.
    Local,
    /// It is in the log, and this node has carried it out.
    #[default]
    Logged,
    /// Every node has carried it out, or can no longer serve what is older.
    Applied,
}

impl Acknowledge {
    pub const ALL: [Acknowledge; 3] = [Acknowledge::Local, Acknowledge::Logged, Acknowledge::Applied];

    pub fn word(self) -> &'static str {
        match self {
            Acknowledge::Local => "local",
            Acknowledge::Logged => "logged",
            Acknowledge::Applied => "applied",
        }
    }

    pub fn of(word: &str) -> Option<Acknowledge> {
        Acknowledge::ALL.into_iter().find(|known| known.word() == word)
    }
}

/// What has become of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordered {
    /// What this node said of it; an error is a sentence.
    pub told: Result<String, String>,
    /// How far it came.
    pub acknowledged: Acknowledge,
    /// Its number in the log, if it is known to be there.
    pub number: Option<u64>,
    /// Nodes that did not confirm it, and serve nothing older because their leases are over.
    pub lapsed: Vec<String>,
    /// Why it came no further than that.
    pub why_less: Option<String>,
}

impl Ordered {
    /// It was not even begun.
    pub(crate) fn refused(why: String) -> Ordered {
        Ordered {
            told: Err(why.clone()),
            acknowledged: Acknowledge::Local,
            number: None,
            lapsed: Vec::new(),
            why_less: Some(why),
        }
    }
}

/// What became of orders since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderCounts {
    /// Orders of this node that were acknowledged as asked, by [`Acknowledge`].
    pub acknowledged: [u64; Acknowledge::ALL.len()],
    /// Those that were not.
    pub fell_short: u64,
    /// What this node told the others without anybody's waiting for it ([`Fleet::tell`](crate::Fleet::tell)).
    pub told: u64,
    /// Orders of this node that found no room while they waited for the log: the others have everything confirmed in their place.
    pub lost: u64,
    /// Orders of all nodes that this one has carried out from the log.
    pub applied: u64,
    /// How often everything that is stored here had to be confirmed, because orders were missed.
    pub condemned: u64,
}
