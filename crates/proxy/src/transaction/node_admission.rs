//! What another node of the fleet asks waits at the door until the invalidations that it knows of are in force here, and is not let in where
//! this node asks another one for the same.

use crate::downstream::Downstream;
use crate::receive::Verdict;
use crate::transaction::admit::while_there;
use crate::transaction::synth::Synth;
use crate::transaction::{Step, Transaction};

pub(super) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>, then: Verdict) -> Result<Verdict, Step> {
    let Some(node) = tx.node.as_mut() else { return Err(Step::Synth(Synth::no_node())) };
    match while_there(downstream, tx.core.shared.log_position.reaches(node.position)).await {
        Some(true) => {}
        Some(false) => return Err(Step::Synth(Synth::node_behind())),
        None => return Err(Step::client_left(downstream)),
    }
    let key = node.fleet.key_of(&tx.head.request());
    node.crossing = node.fleet.crossings.answer(key);
    match node.crossing {
        Some(_) => Ok(then),
        None => Err(Step::Synth(Synth::node_crossed())),
    }
}
