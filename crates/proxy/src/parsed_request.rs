//! A request that has been received and not yet copied.

use std::sync::Arc;

use message::Request;
use wire::{ReceivedRequest, RequestBody};

use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::field_set::{CONDITIONAL, FieldSet};
use crate::route_table::RouteAt;
use crate::tls_facts::TlsFacts;

/// A request as it goes on, and what is known of who asks.
#[derive(Clone)]
pub(crate) struct ParsedRequest<'a> {
    pub(crate) received: &'a ReceivedRequest<'a>,
    /// As it came, where its route has made another of it and that matters.
    pub(crate) came: Option<&'a Request<'a>>,
    pub(crate) seen: FieldSet,
    pub(crate) client: ClientIdentity,
    /// May the client ask again the same way?
    pub(crate) persistent: bool,
    /// Where it came over TLS of ours.
    pub(crate) tls: Option<Arc<TlsFacts>>,
    pub(crate) moment: Moment,
    pub(crate) route: Option<RouteAt>,
}

impl<'a> ParsedRequest<'a> {
    /// The query as its client sent it.
    #[inline]
    pub(crate) fn query_sent(&self) -> Option<&'a [u8]> {
        self.came.unwrap_or(&self.received.request).query
    }

    /// May conditions or ranges make the answer another than the whole stored one?
    #[inline]
    pub(crate) fn is_conditional(&self) -> bool {
        self.seen.has_any(CONDITIONAL)
    }
}

/// A request that has come whole: nothing of it follows on a connection.
pub(crate) fn without_body(request: Request<'_>) -> ReceivedRequest<'_> {
    ReceivedRequest {
        request,
        given_port: None,
        body: RequestBody::None,
        persistent: true,
        expects_continue: false,
        upgrade: false,
        has_odd_names: false,
        head_bytes: 0,
    }
}
