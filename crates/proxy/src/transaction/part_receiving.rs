//! Receive, for what a page includes by the word of the built-in policy: routes, closed paths and the verdict are those of a request that a
//! client sends.

use std::rc::Rc;

use crate::field_set::FieldSet;
use crate::parsed_request;
use crate::policy;
use crate::receive;
use crate::route_rules::rewritten_request::RewrittenRequest;
use crate::route_rules::route_verdict::{self, RouteQuestion};
use crate::transaction::{Step, Transaction};

pub(crate) fn run(tx: &mut Transaction) -> Step {
    let head = Rc::clone(&tx.head);
    let mut received = parsed_request::without_body(head.request());
    let seen = FieldSet::of(received.request.fields);
    let core = Rc::clone(&tx.core);
    let mut room = core.room_to_rewrite();
    let page = tx.place_in_page.page().cloned();
    let asked =
        RouteQuestion { received: &received, seen, client: &tx.client, moment: tx.started, page: page.as_deref() };
    let ruling = route_verdict::of_request(&tx.core, &tx.site, &asked, &mut room);
    if ruling.is_user {
        tx.user = Some(core.user().as_slice().into());
    }
    let seen = match room.rewritten().is_some_and(|room| room.put_into(&mut received.request)) {
        true => FieldSet::of(received.request.fields),
        false => seen,
    };
    if room.rewritten().is_some_and(RewrittenRequest::changes_anything) {
        tx.came = Some(Rc::clone(&tx.head));
        tx.head = Rc::new(received.request.to_head());
    }
    let found = receive::judge(&tx.core, &tx.site, &received, (seen, tx.client), ruling);
    tx.seen = found.seen;
    tx.routed = found.routed;
    tx.directives = policy::directives(&tx.site.settings.policy, &received.request, found.seen);
    if let Some(why) = found.verdict.why_passed() {
        tx.outcome.why = why.token();
    }
    found.verdict.into_step()
}
