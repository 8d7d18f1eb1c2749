//! Receive, for what a page includes by the word of the built-in policy: routes, closed paths and the verdict are those of a request that a
//! client sends.

use std::rc::Rc;

use message::Request;
use wire::{ReceivedRequest, RequestBody};

use crate::policy;
use crate::receive;
use crate::transaction::{Step, Transaction};

pub(crate) fn run(tx: &mut Transaction) -> Step {
    let head = Rc::clone(&tx.head);
    let mut received = ReceivedRequest {
        request: head.request(),
        given_port: None,
        body: RequestBody::None,
        persistent: true,
        expects_continue: false,
        upgrade: false,
        head_bytes: 0,
    };
    let trimmed = receive::trimmed(&tx.site.settings, &received);
    if let Some(query) = &trimmed {
        let query = (!query.is_empty()).then_some(&query[..]);
        received.request = Request { query, ..received.request };
        tx.head = Rc::new(received.request.to_head());
    }
    let found = receive::of_part(&tx.core, &tx.site, &received, tx.client);
    tx.seen = found.seen;
    tx.backend = found.backend;
    tx.directives = policy::directives(&tx.site.settings.policy, &received.request, found.seen);
    if let Some(why) = found.verdict.why_passed() {
        tx.outcome.why = why.token();
    }
    found.verdict.into_step()
}
