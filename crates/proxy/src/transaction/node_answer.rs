//! What is said to another node of the fleet beside the answer: whether it is the origin's, or an error of this node's own, which the other
//! one must not take for the origin's.

use crate::answer_head::AnswerHead;
use crate::fleet::node_proof::{NODE_FIELD, NodeWord};
use crate::transaction::Transaction;
use crate::transaction::deliver::Answer;
use crate::transaction::synth::{NODE_BEHIND, NODE_CROSSED, Synth};

/// `None`: it is for no node.
pub(super) fn word_of(tx: &Transaction, answer: &Answer) -> Option<NodeWord> {
    tx.node.as_ref()?;
    Some(match answer {
        Answer::Synth(synth) | Answer::ErrorPage { synth, .. } => of_synth(synth),
        Answer::Stored { .. } | Answer::Followed { .. } | Answer::Origin { .. } | Answer::Made(_) => NodeWord::Answer,
        Answer::File(_) | Answer::Item(_) | Answer::Piped(_) => NodeWord::Unable,
    })
}

fn of_synth(synth: &Synth) -> NodeWord {
    match (synth.token, synth.status) {
        (NODE_BEHIND, _) => NodeWord::Behind,
        (NODE_CROSSED, _) => NodeWord::Crossed,
        (_, 502 | 504) => NodeWord::Failed,
        _ => NodeWord::Unable,
    }
}

pub(super) fn say(tx: &Transaction, word: NodeWord, head: &mut AnswerHead) {
    let Some(node) = &tx.node else { return };
    if word == NodeWord::Answer {
        tx.core.counters.fleet_answers.add(1);
    }
    // What an origin says in this field it says to nobody.
    let name = NODE_FIELD.as_bytes();
    head.fields.retain(|field| !field.name_text.eq_ignore_ascii_case(name));
    head.fields.push_named(name, word.said(&node.fleet.settings.secret, &node.proof).as_bytes());
}
