//! What the log asks of the node that it works for.

/// The node. All of it may block but `now_ms`, `extend_lease` and `say`; orders come one after another, in the log's order.
pub trait Node: Send + Sync + 'static {
    /// The clock that freshness counts in, in milliseconds.
    fn now_ms(&self) -> u64;

    /// Carries an order out. What it says is for who ordered it; an error is a sentence about an order that this node does not understand.
    /// `was_done`: this node has carried it out before it was in the log.
    fn apply(&self, order: &str, was_done: bool) -> Result<String, String>;

    /// Has everything that is stored now confirmed by the origin before it is served; the mark that [`Node::condemned`] takes.
    fn condemn(&self) -> u64;

    /// The same up to a mark of the run before this one.
    fn condemned(&self, mark: u64);

    /// The order there is about to be carried out: a number that grows with each.
    fn hear(&self, position: u64);

    /// Orders up to there are in force here.
    fn reach(&self, reached: Reached);

    /// Whether orders are in force here that are not in the log yet.
    fn stand_alone(&self, is_alone: bool);

    /// Everything that was purged by anybody up to a lease before `until_ms` has been applied.
    fn extend_lease(&self, until_ms: u64);

    /// Ready when what was applied survives a crash; an error is a sentence.
    fn settle(&self) -> Result<(), String>;

    /// What this node has answered since its start.
    fn figures(&self) -> Figures;

    /// What of the orders that it understood this node could not do, for all to see; empty where there is nothing. An order that is refused so
    /// by one node stands at the others.
    fn complaint(&self) -> String;

    /// A line for the operator.
    fn say(&self, sentence: &str);
}

/// A place in the log, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Of this life of the log: another one has another number. 0: none is known.
    pub epoch: u64,
    /// It grows with each order.
    pub position: u64,
    /// All orders between the place that was reached before and this one were carried out. Otherwise this node does not know what they were.
    pub is_followed: bool,
}

/// What a node says of itself with each word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub requests: u64,
    pub hits: u64,
}
