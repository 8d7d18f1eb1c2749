//! The fields of a request as a program sees them from its start.

use std::net::IpAddr;

use message::{FieldName, Fields, FieldsView};

/// The request as the program first sees it: one Cache-Control, the client behind those who forwarded it, and us in Via.
pub(crate) fn complete(fields: FieldsView<'_>, client: IpAddr) -> Fields {
    let mut completed = Fields::default();
    let is_collected = |name| matches!(name, FieldName::CacheControl | FieldName::XForwardedFor);
    for field in fields.iter().filter(|field| !is_collected(field.name)) {
        completed.push_named(field.name_text, field.value);
    }
    let collect = |name| fields.get_all(name).collect::<Vec<_>>().join(&b", "[..]);
    if fields.contains(FieldName::CacheControl) {
        completed.push(FieldName::CacheControl, collect(FieldName::CacheControl));
    }
    let mut forwarded_for = collect(FieldName::XForwardedFor);
    if !forwarded_for.is_empty() {
        forwarded_for.extend_from_slice(b", ");
    }
    rules::forwarded::write_node(client, &mut forwarded_for);
    completed.push(FieldName::XForwardedFor, forwarded_for);
    completed
}
