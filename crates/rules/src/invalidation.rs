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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{head, request};

    fn check(line: &str, status: u16, lines: &str, target: bool, others: &[&str]) {
        let (none, head) = (message::Fields::default(), head(status, lines));
        let got = invalidated(&request(line, &none), head.response());
        let paths: Vec<_> = got.others.iter().map(|other| String::from_utf8_lossy(&other.path).into_owned()).collect();
        assert_eq!(got.target, target, "{line} {status} {lines:?}");
        assert_eq!(paths, others, "{line} {status} {lines:?}");
    }

    /// RFC 9111 §4.4.
    #[test]
    fn a_successful_unsafe_request_invalidates() {
        for line in ["POST /a", "PUT /a", "DELETE /a", "PATCH /a", "M-SEARCH /a"] {
            check(line, 200, "", true, &[]);
            check(line, 303, "", true, &[]);
            check(line, 404, "", false, &[]);
            check(line, 500, "Location: /b", false, &[]);
        }
        for line in ["GET /a", "HEAD /a", "OPTIONS /a", "TRACE /a", "CONNECT /a", "PURGE /a"] {
            check(line, 200, "Location: /b", false, &[]);
        }
    }

    #[test]
    fn what_it_names_on_the_same_origin_goes_too() {
        check("POST /a", 201, "Location: /a/1\nContent-Location: /a/2", true, &["/a/1", "/a/2"]);
        check("POST /a", 201, "Location: /a/1\nContent-Location: 1", true, &["/a/1", "/1"]);
        check("POST /a", 200, "Location: /b\nContent-Location: http://t.test/b", true, &["/b"]);
        check("POST /a", 200, "Location: /a", true, &[]);
        check("POST /a?b", 200, "Location: /a", true, &["/a"]);
        check("POST /a", 200, "Location: http://other.test/b", true, &[]);
    }
}
