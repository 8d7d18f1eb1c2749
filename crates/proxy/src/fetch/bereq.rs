//! The request to the origin as a program first sees it: `bereq` in vcl_backend_fetch.

use std::sync::Arc;

use cache::Object;
use message::{Field, FieldName, Fields, FieldsView, Method, Request, RequestHead, Status};
use rules::conditions;
use wire::HopByHop;

use crate::fetch::{Purpose, prepare};

/// The request to the origin before the program sees it: of the client's fields those that are not for one connection
/// or one client's conditions, and, where something stored may be confirmed, ours. What Connection names goes as it came in
/// `original`; what the program set since is meant for the origin.
pub(crate) fn bereq_of(
    request: &Request<'_>,
    original: Option<FieldsView<'_>>,
    stale: Option<&Arc<Object>>,
    is_pass: bool,
) -> RequestHead {
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
    // As in Varnish: what builtin.vcl refuses to confirm is not asked about, and nothing is confirmed that has no body.
    let stale = stale.filter(|stale| stale.status() == Status::OK && stale.length() > 0);
    if let Some(stale) = stale {
        prepare::add_conditions(stale.response(), &stale.facts(), &mut fields);
    }
    let (method, method_text) =
        if is_pass { (request.method, request.method_text) } else { (Method::Get, &b"GET"[..]) };
    Request { method, method_text, fields: fields.view(), ..request.clone() }.to_head()
}

/// The same for a slice: its program sees what is asked for.
pub(crate) fn with_range(request: &Request<'_>, purpose: &Purpose) -> RequestHead {
    let mut fields = Fields::default();
    request.fields.iter().for_each(|field| fields.push_named(field.name_text, field.value));
    prepare::add_range(purpose, &mut fields);
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
