//! What a request becomes when a service has let its client in: the service's word stands in place of the client's, and the words of its route
//! are said over that. What was made of it before was made of what its client says of itself.

use std::rc::Rc;

use message::{Fields, Request, RequestHead};

use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::core::Core;
use crate::field_set::FieldSet;
use crate::parsed_request;
use crate::policy::WhyPassed;
use crate::route_rules::auth_request::AuthRequest;
use crate::route_rules::route_verdict::{self, RouteQuestion};
use crate::route_table::RouteAt;
use crate::site::Site;
use crate::vcl_story::completed_fields;

/// A request whose client may come in.
pub(super) struct AdmittedRequest {
    /// As its client sent it, but for what the service says of it.
    pub(super) came: Rc<RequestHead>,
    /// As it goes on; to a program, where one decides.
    pub(super) head: Rc<RequestHead>,
    /// Why it goes past the store, if what the service says sends it there.
    pub(super) bypass: Option<WhyPassed>,
}

/// Who asks, and who the service says that it is.
#[derive(Clone, Copy)]
pub(super) struct AdmittedClient<'a> {
    pub(super) identity: &'a ClientIdentity,
    pub(super) user: Option<&'a [u8]>,
    pub(super) since: Moment,
    /// A program decides what becomes of it.
    pub(super) is_program_s: bool,
}

/// `at`: the route that has the service.
pub(super) fn run(
    (core, site): (&Core, &Site),
    (came, client): (&RequestHead, AdmittedClient<'_>),
    (at, service, copied): (RouteAt, &AuthRequest, &Fields),
) -> AdmittedRequest {
    let came = Rc::new(service.admitted(&came.request(), copied));
    let received = parsed_request::without_body(came.request());
    let seen = FieldSet::of(received.request.fields);
    let asked = RouteQuestion { received: &received, seen, client: client.identity, moment: client.since, page: None };
    let mut room = core.room_to_rewrite();
    let bypass = route_verdict::of_admitted(site, &asked, (at, client.user), &mut room);
    let mut request = came.request();
    if let Some(rewritten) = room.rewritten() {
        rewritten.put_into(&mut request);
    }
    let head = match client.is_program_s {
        false => Rc::new(request.to_head()),
        true => {
            let completed = completed_fields::complete(request.fields, client.identity.peer.ip());
            Rc::new(Request { fields: completed.view(), ..request }.to_head())
        }
    };
    AdmittedRequest { came: Rc::clone(&came), head, bypass }
}
