//! The request to the origin as a program first sees it: `bereq` in vcl_backend_fetch.

use std::sync::Arc;

use cache::Object;
use message::{Field, FieldName, Fields, FieldsView, Method, Request, RequestHead, Status};
use rules::conditions;
use wire::HopByHop;

use crate::fetch::origin_request;
use crate::fetch::purpose::Purpose;
use crate::site::Site;

/// What the request to the origin is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BereqOf {
    /// One client: it goes as that has asked.
    Pass,
    /// The store.
    Store { asks_gzip: bool },
}

impl BereqOf {
    pub(crate) fn of(is_pass: bool, site: &Site) -> BereqOf {
        match is_pass {
            true => BereqOf::Pass,
            false => BereqOf::Store { asks_gzip: site.settings.vcl.http_gzip_support },
        }
    }
}

/// The request to the origin before the program sees it: of the client's fields those that are not for one connection
/// or one client's conditions, and, where something stored may be confirmed, ours. What Connection names goes as it came in
/// `original`; what the program set since is meant for the origin.
pub(crate) fn bereq_of(
    request: &Request<'_>,
    original: Option<FieldsView<'_>>,
    stale: Option<&Arc<Object>>,
    of: BereqOf,
) -> RequestHead {
    let is_pass = of == BereqOf::Pass;
    let hop_by_hop = HopByHop::of(request.fields);
    let is_of_the_program = |field: &Field<'_>| {
        let came = original.is_none_or(|came| came.get_all_named(field.name_text).any(|value| value == field.value));
        !came && field.name == FieldName::Other
    };
    let mut fields = Fields::default();
    for field in request.fields.iter() {
        let framing = matches!(field.name, FieldName::ContentLength | FieldName::Expect);
        let is_kept_back = !is_pass && is_one_client_s(field.name);
        if !framing && !is_kept_back && (!hop_by_hop.drops(&field) || is_of_the_program(&field)) {
            fields.push_named(field.name_text, field.value);
        }
    }
    if of == (BereqOf::Store { asks_gzip: true }) {
        // What is stored is for those too who do not take it: it is gunzipped for them.
        fields.set(FieldName::AcceptEncoding, "gzip");
    }
    // As in Varnish: what builtin.vcl refuses to confirm is not asked about, and nothing is confirmed that has no body.
    if let Some(stale) = stale.filter(|stale| stale.status() == Status::OK && stale.length() > 0) {
        origin_request::add_conditions(stale.response(), &stale.facts(), &mut fields);
    }
    let (method, method_text) =
        if is_pass { (request.method, request.method_text) } else { (Method::Get, &b"GET"[..]) };
    Request { method, method_text, fields: fields.view(), ..request.clone() }.to_head()
}

/// The same for a slice: its program sees what is asked for.
pub(crate) fn with_range(request: &Request<'_>, purpose: &Purpose) -> RequestHead {
    let mut fields = Fields::default();
    request.fields.iter().for_each(|field| fields.push_named(field.name_text, field.value));
    origin_request::add_range(purpose, &mut fields);
    Request { fields: fields.view(), ..request.clone() }.to_head()
}

/// The same with the number of another transaction.
pub(crate) fn with_xid(request: &Request<'_>, xid: u64) -> RequestHead {
    let mut fields = Fields::default();
    for field in request.fields.iter().filter(|field| !field.name_text.eq_ignore_ascii_case(b"x-varnish")) {
        fields.push_named(field.name_text, field.value);
    }
    fields.push_named(b"X-Varnish", xid.to_string().as_bytes());
    Request { fields: fields.view(), ..request.clone() }.to_head()
}

/// What a fetch for many does not ask.
fn is_one_client_s(name: FieldName) -> bool {
    conditions::is_condition(name)
        || matches!(name, FieldName::Range | FieldName::IfRange | FieldName::CacheControl | FieldName::ContentRange)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::fetch_test_messages::{lines, request};

    /// The lines of the request to the origin beside Host.
    fn check(asked: &RequestHead, original: Option<&RequestHead>, is_pass: bool, expect: &[&str]) {
        let original = original.map(|original| original.fields());
        let of = if is_pass { BereqOf::Pass } else { BereqOf::Store { asks_gzip: false } };
        let bereq = bereq_of(&asked.request(), original, None, of);
        assert_eq!(lines(&bereq.fields().to_fields())[1..], *expect);
    }

    const CONDITIONS: &[&str] = &["If-None-Match: \"v1\"", "Range: bytes=0-9", "Cache-Control: no-cache", "X-A: 1"];

    #[test]
    fn what_one_client_has_or_wants_is_no_matter_of_a_fetch_for_many() {
        check(&request("GET", CONDITIONS), None, false, &["X-A: 1"]);
        check(&request("GET", CONDITIONS), None, true, CONDITIONS);
    }

    #[test]
    fn a_fetch_for_many_is_a_get() {
        let method = |of| bereq_of(&request("HEAD", &[]).request(), None, None, of).method;
        let stored = BereqOf::Store { asks_gzip: false };
        assert_eq!((method(stored), method(BereqOf::Pass)), (Method::Get, Method::Head));
    }

    #[test]
    fn what_is_stored_is_asked_for_in_gzip_whatever_its_client_takes() {
        let asked = |of| {
            lines(&bereq_of(&request("GET", &["Accept-Encoding: br"]).request(), None, None, of).fields().to_fields())
                [1..]
                .join("")
        };
        assert_eq!(asked(BereqOf::Store { asks_gzip: true }), "Accept-Encoding: gzip");
        assert_eq!(asked(BereqOf::Store { asks_gzip: false }), "Accept-Encoding: br");
        assert_eq!(asked(BereqOf::Pass), "Accept-Encoding: br");
    }

    #[test]
    fn what_connection_names_stays_here_unless_the_program_set_it_since() {
        let came = request("GET", &["Connection: X-Hop", "X-Hop: client"]);
        check(&came, Some(&came), true, &[]);
        let changed = request("GET", &["Connection: X-Hop", "X-Hop: program"]);
        check(&changed, Some(&came), true, &["X-Hop: program"]);
    }

    #[test]
    fn how_a_body_comes_is_not_for_the_program() {
        let posted = request("POST", &["Content-Length: 5", "Expect: 100-continue", "X-A: 1"]);
        check(&posted, None, true, &["X-A: 1"]);
    }

    #[test]
    fn a_slice_shows_its_range() {
        let purpose = Purpose::Slice { range: 10..20, if_range: Some("\"v1\"".into()) };
        let asked = with_range(&request("GET", &["X-A: 1"]).request(), &purpose);
        let got = lines(&asked.fields().to_fields());
        assert_eq!(got[1..], ["X-A: 1", "Range: bytes=10-19", "If-Range: \"v1\""]);
    }

    #[test]
    fn a_retry_has_a_number_of_its_own() {
        let first = with_xid(&request("GET", &["X-Varnish: 7 8"]).request(), 9);
        let again = with_xid(&first.request(), 10);
        assert_eq!(lines(&again.fields().to_fields())[1..], ["X-Varnish: 10"]);
    }
}
