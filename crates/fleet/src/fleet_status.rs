//! What can be seen of a fleet from one of its nodes.

use crate::node::Figures;
use crate::order::OrderCounts;
use crate::roll::KnownNode;
use crate::shared_state::Shared;

/// How a fleet stands.
#[derive(Clone, Debug)]
pub struct FleetStatus {
    pub node: String,
    pub lease_ms: u64,
    /// The last order that this node has carried out.
    pub number: u64,
    /// Why the log cannot be used.
    pub trouble: Option<String>,
    /// Orders that wait for it.
    pub backlog: usize,
    pub counts: OrderCounts,
    /// This one, too, once the log has told of it.
    pub nodes: Vec<NodeStatus>,
}

/// One node, as it said of itself.
#[derive(Clone, Debug)]
pub struct NodeStatus {
    pub name: String,
    pub run: String,
    pub is_this: bool,
    pub version: String,
    pub number: u64,
    /// Orders that the furthest has carried out and it has not.
    pub lag: u64,
    /// How long ago its last word was read.
    pub silent_ms: u64,
    pub lease_ms: u64,
    /// Its lease is over, as far as is known here: what it holds it asks the origin for.
    pub has_lapsed: bool,
    pub figures: Figures,
    /// What it could not do as it was ordered; empty where there is nothing.
    pub complaint: String,
}

impl FleetStatus {
    pub(crate) fn of(shared: &Shared) -> FleetStatus {
        let now_ms = shared.node.now_ms();
        let state = shared.state.lock();
        let furthest = state.roll.nodes().map(|node| node.word.applied.number).max().unwrap_or(0);
        let shown = |KnownNode { word, read_ms, .. }: &KnownNode| {
            let silent_ms = now_ms.saturating_sub(*read_ms);
            NodeStatus {
                name: word.node.clone(),
                run: word.run.clone(),
                is_this: word.run == shared.settings.run,
                version: word.version.clone(),
                number: word.applied.number,
                lag: furthest - word.applied.number,
                silent_ms,
                lease_ms: word.lease_ms,
                has_lapsed: silent_ms > word.lease_ms,
                figures: word.figures,
                complaint: word.complaint.clone(),
            }
        };
        FleetStatus {
            node: shared.settings.name.clone(),
            lease_ms: shared.lease_ms(),
            number: state.position.number,
            trouble: state.trouble.clone(),
            backlog: state.backlog.len(),
            counts: state.counts,
            nodes: state.roll.nodes().map(shown).collect(),
        }
    }
}
