//! Another node that asks, for as long as it is answered.

use std::sync::Arc;

use message::{Fields, Request};

use super::Fleet;
use super::crossings::Crossing;
use super::node_proof::{NODE_FIELD, NodeWord, Proof};

/// What is known of a node that asks.
pub(crate) struct AskingNode {
    pub(crate) fleet: Arc<Fleet>,
    /// Of its request; what it is answered proves that it is about this.
    pub(crate) proof: Proof,
    pub(crate) position: u64,
    /// While it is answered.
    pub(crate) crossing: Option<Crossing>,
}

impl AskingNode {
    /// False: this node asks another one for the same, and what would be answered is that one's answer.
    pub(crate) fn comes_in(&mut self, request: &Request<'_>) -> bool {
        self.crossing = self.fleet.crossings.answer(self.fleet.key_of(request));
        self.crossing.is_some()
    }

    /// Says beside the answer what it is. What an origin says in that field it says to nobody.
    pub(crate) fn tell(&self, word: NodeWord, fields: &mut Fields) {
        let name = NODE_FIELD.as_bytes();
        fields.retain(|field| !field.name_text.eq_ignore_ascii_case(name));
        fields.push_named(name, word.said(&self.fleet.settings.secret, &self.proof).as_bytes());
    }
}
