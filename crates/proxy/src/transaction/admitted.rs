//! What a request becomes when a service has let its client in: the service's word stands in place of the client's, and the words of its route
//! are said over that. What was made of it before was made of what its client says of itself.

use std::rc::Rc;
use std::sync::Arc;

use message::{Fields, Request};

use crate::field_set::FieldSet;
use crate::policy::WhyPassed;
use crate::receive;
use crate::route_rules::auth_request::AuthRequest;
use crate::route_rules::route_verdict::{self, RouteQuestion};
use crate::route_table::RouteAt;
use crate::transaction::Transaction;
use crate::vcl_story::client_steps;

/// Returns why it goes past the store, if what the service says sends it there.
pub(super) fn run(tx: &mut Transaction, at: RouteAt, service: &AuthRequest, copied: &Fields) -> Option<WhyPassed> {
    if let Some(user) = service.user_in(copied) {
        tx.user = Some(user.into());
    }
    if service.copied.is_empty() {
        return None;
    }
    let came = Rc::new(service.admitted(&tx.as_it_came().request(), copied));
    let (core, site, client) = (Rc::clone(&tx.core), Arc::clone(&tx.site), tx.client);
    let received = receive::without_body(came.request());
    let seen = FieldSet::of(received.request.fields);
    let asked = RouteQuestion { received: &received, seen, client: &client, moment: tx.started, page: None };
    let mut room = core.room_to_rewrite();
    let bypass = route_verdict::of_admitted(&site, &asked, (at, tx.user.as_deref()), &mut room);
    let mut request = came.request();
    if let Some(rewritten) = room.rewritten() {
        rewritten.put_into(&mut request);
    }
    match tx.policy.program_mut() {
        None => tx.head = Rc::new(request.to_head()),
        // A program sees it so from its start, and when it begins anew.
        Some(state) => {
            let completed = client_steps::complete(request.fields, client.peer.ip());
            tx.head = Rc::new(Request { fields: completed.view(), ..request }.to_head());
            state.original = Some(Rc::clone(&tx.head));
        }
    }
    tx.seen = FieldSet::of(tx.head.fields());
    tx.came = Some(Rc::clone(&came));
    bypass
}
