//! Which stored responses an unsafe request invalidates (RFC 9111 §4.4).

use message::{FieldName, Method, Request, Response};

use crate::reference::Location;

/// What is to be dropped, all variants of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invalidation {
    /// The request's own URI.
    pub target: bool,
    /// Location and Content-Location, as far as they are on the same origin and not the target itself.
    pub others: Vec<Location>,
}

/// A non-error answer to a method that is not known to be safe invalidates. PURGE is the operator's verb and has
/// its own way.
pub fn invalidated(request: &Request<'_>, response: Response<'_>) -> Invalidation {
    let unsafe_method = !request.method.is_safe() && !matches!(request.method, Method::Connect | Method::Purge);
    if !unsafe_method || !response.status.is_non_error() {
        return Invalidation::default();
    }
    let mut others = Vec::new();
    for name in [FieldName::Location, FieldName::ContentLocation] {
        let Some(location) = response.fields.get(name).and_then(|value| Location::resolve(request, value)) else {
            continue;
        };
        let is_target = location.path == request.path && location.query.as_deref() == request.query;
        if !is_target && !others.contains(&location) {
            others.push(location);
        }
    }
    Invalidation { target: true, others }
}
