//! Restart: the same request from the start, as the policy left it. Only a program asks for it.

use crate::transaction::{Step, Transaction};
use crate::vcl_story::client_steps;

pub(crate) fn run(tx: &mut Transaction) -> Step {
    tx.outcome = crate::transaction::Outcome::NONE;
    client_steps::restart(tx)
}
