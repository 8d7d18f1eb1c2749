//! A request that nobody sent, as far as the words of its route: for who is told what would become of it, and for who names a URL to have what
//! is stored of it purged. The same functions in the same order as `exchange_opening.rs`, on a core that only looks.

use std::sync::Arc;

use message::{Request, Scheme};
use wire::{ReceivedRequest, Refusal, read_request, refusals};

use crate::asker::Asker;
use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::core::Core;
use crate::exchange_opening::ruled;
use crate::field_set::FieldSet;
use crate::receive;
use crate::route_rules::route_verdict::RouteVerdict;
use crate::site::Site;

/// What its route makes of it.
pub(crate) struct RuledRequest<'a, 'r> {
    pub(crate) received: &'a ReceivedRequest<'r>,
    /// As it came to the route.
    pub(crate) came: &'a Request<'r>,
    pub(crate) seen: FieldSet,
    pub(crate) client: ClientIdentity,
    pub(crate) ruling: RouteVerdict,
}

/// The error is what is refused of its bytes.
pub(crate) fn with<T>(
    (core, site): (&Core, &Arc<Site>),
    asker: &Asker<'_>,
    (head, scheme): (&[u8], Scheme),
    then: impl FnOnce(RuledRequest<'_, '_>) -> T,
) -> Result<T, Refusal> {
    let mut spans = Vec::new();
    let received = read_request(head, &mut spans, &site.settings.limits.request_head, scheme)?;
    // All of it is there: a head without an end has a line that does not end.
    let received = received.ok_or(refusals::LINE_END_INVALID)?;
    Ok(of_received((core, site), asker, received, then))
}

/// The same of one that has been read.
pub(crate) fn of_received<T>(
    (core, site): (&Core, &Arc<Site>),
    asker: &Asker<'_>,
    received: ReceivedRequest<'_>,
    then: impl FnOnce(RuledRequest<'_, '_>) -> T,
) -> T {
    let mut received = received;
    let fields_at_origin = receive::fields_at_origin(site, asker, &received);
    receive::at_origin(&mut received.request, fields_at_origin.as_ref());
    let mut room = core.room_to_rewrite();
    let (mut seen, client, ruling) = ruled(core, site, asker, (&mut received, Moment::now()), &mut room);
    let came = received.request.clone();
    if room.rewritten().is_some_and(|rewritten| rewritten.put_into(&mut received.request)) {
        seen = FieldSet::of(received.request.fields);
    }
    then(RuledRequest { received: &received, came: &came, seen, client, ruling })
}
