//! What a route answers by itself: a redirect, a text, or that the site is being worked on.

use std::sync::Arc;

use crate::network::Network;
use crate::route_rules::field_template::FieldTemplate;

/// An answer that a route has for every request.
#[derive(Clone, Debug)]
pub struct OwnAnswer {
    pub status: u16,
    /// Where the client is sent.
    pub location: Option<FieldTemplate>,
    pub body: Option<FieldTemplate>,
    /// The Content-Type of the body.
    pub kind: Arc<str>,
    /// After how many seconds it may be worth while to ask again.
    pub retry_after: Option<u32>,
    /// Who asks from here is answered as if there were no such answer.
    pub but_for: Vec<Network>,
}
