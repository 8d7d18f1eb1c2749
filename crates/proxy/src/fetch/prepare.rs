//! Prepare: the request as the origin gets it. The head is generated: nothing that frames a message or belongs to a
//! connection is ever copied.

use message::{Field, FieldName, Fields, FieldsView, Method, Request, TargetForm, Version};
use rules::conditions::{self, Validators};
use rules::forwarded;
use wire::{HopByHop, RequestBody, write_field, write_number_field};

use crate::fetch::{Fetch, Purpose};
use crate::limits::HEAD_BYTES_USUAL;
use crate::records::request_records;

/// The bytes of the head.
pub(crate) fn render(fetch: &Fetch) -> Vec<u8> {
    let request = fetch.head.request();
    let mut out = Vec::with_capacity(HEAD_BYTES_USUAL);
    if fetch.vcl.is_some() {
        render_by_policy(fetch, &mut out);
        return out;
    }
    out.extend_from_slice(request.method_text);
    out.push(b' ');
    write_target(fetch, &request, &mut out);
    out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    match &fetch.origin().host {
        Some(host) => out.extend_from_slice(host.as_bytes()),
        None => request.authority.write_to(&mut out),
    }
    out.extend_from_slice(b"\r\n");
    if let Some(login) = fetch.parent_login() {
        write_field(&mut out, b"Proxy-Authorization", login.credentials());
    }
    write_client_fields(fetch, &mut out);
    write_validators(fetch, &mut out);
    write_forwarding(fetch, &mut out);
    write_framing(fetch, &mut out);
    out.extend_from_slice(b"\r\n");
    out
}

/// RFC 9112 §3.2: a proxy is asked for the whole URL.
fn write_target(fetch: &Fetch, request: &Request<'_>, out: &mut Vec<u8>) {
    if request.form == TargetForm::Authority {
        return request.authority.write_to(out);
    }
    if fetch.parent.is_some() {
        out.extend_from_slice(request.scheme.text().as_bytes());
        out.extend_from_slice(b"://");
        request.authority.write_to(out);
    }
    match request.form.at_origin(request.path) {
        TargetForm::Asterisk if fetch.parent.is_some() => {}
        TargetForm::Asterisk => out.push(b'*'),
        _ => request.write_target(out),
    }
}

/// Under a policy the head is what the program made of it: only framing, the connection's fields and Via are ours.
fn render_by_policy(fetch: &Fetch, out: &mut Vec<u8>) {
    let request = fetch.head.request();
    out.extend_from_slice(request.method_text);
    out.push(b' ');
    request.write_target(out);
    // Who answers to an unframed connection must know what its other end understands.
    let version = if fetch.is_raw() { request.version } else { Version::Http11 };
    out.push(b' ');
    out.extend_from_slice(request_records::version_text(version));
    out.extend_from_slice(b"\r\n");
    if let Some(host) = fetch.origin().host.as_ref().filter(|_| !request.fields.contains(FieldName::Host)) {
        write_field(out, b"Host", host.as_bytes());
    }
    let hop_by_hop = HopByHop::of(request.fields);
    for field in request.fields.iter() {
        let is_ours = matches!(
            field.name,
            FieldName::ContentLength | FieldName::TransferEncoding | FieldName::Expect | FieldName::Via
        );
        // Of what is piped the program alone says what its connection is.
        if !is_ours && (fetch.is_raw() || !hop_by_hop.drops(&field)) {
            write_field(out, field.name_text, field.value);
        }
    }
    out.extend_from_slice(b"Via: ");
    forwarded::write_via(request.fields, request.version, &fetch.site.pseudonym, out);
    out.extend_from_slice(b"\r\n");
    write_framing(fetch, out);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(fetch.carried.as_deref().unwrap_or_default());
}

/// What the client sent, less what is not for the origin.
fn write_client_fields(fetch: &Fetch, out: &mut Vec<u8>) {
    let request = fetch.head.request();
    let for_store = fetch.is_for_many();
    let trusted = fetch.client.is_some_and(|client| client.peer_is_trusted);
    let hop_by_hop = HopByHop::of(request.fields);
    for field in request.fields.iter() {
        if hop_by_hop.drops(&field) || is_ours_to_write(field.name) {
            continue;
        }
        if for_store && (is_kept_from_shared_fetch(field.name) || reads_as_one_of(&field, ON_SHARED_FETCHES)) {
            continue;
        }
        if reads_as_one_of(&field, OF_STRANGERS) && !(trusted && is_one_of(&field, OF_STRANGERS)) {
            continue;
        }
        if !trusted && (field.name == FieldName::XRealIp || message::is_forwarding_name(field.name_text)) {
            continue;
        }
        if field.name == FieldName::MaxForwards && request.method == Method::Options {
            write_fewer_forwards(field.value, out);
            continue;
        }
        write_field(out, field.name_text, field.value);
    }
}

/// What only a proxy in front of us may say of a client; applications believe these (and `Proxy` becomes an
/// environment variable of CGI programs).
const OF_STRANGERS: &[&str] = &["proxy", "surrogate-capability", "true-client-ip", "x-client-ip"];

/// Fields that some applications obey and no key holds: what one client sends in them must not be in everybody's answer.
const ON_SHARED_FETCHES: &[&str] = &["x-host", "x-http-method", "x-method-override", "surrogate-capability"];

/// Is the field one of those, or does its name read as if it were?
fn reads_as_one_of(field: &Field<'_>, names: &[&str]) -> bool {
    names.iter().any(|name| message::reads_as(field.name_text, name))
}

fn is_one_of(field: &Field<'_>, names: &[&str]) -> bool {
    names.iter().any(|name| field.name_text.eq_ignore_ascii_case(name.as_bytes()))
}

/// Fields that every forwarded head gets anew.
fn is_ours_to_write(name: FieldName) -> bool {
    matches!(
        name,
        FieldName::Host
            | FieldName::ContentLength
            | FieldName::TransferEncoding
            | FieldName::Expect
            | FieldName::Via
            | FieldName::Forwarded
            | FieldName::XForwardedFor
            | FieldName::XForwardedHost
            | FieldName::XForwardedProto
            | FieldName::XForwardedPort
            | FieldName::Upgrade
    )
}

/// A response that many will get must not depend on one client's conditions, nor on fields that applications obey
/// and keys do not hold (bad-inputs J02).
fn is_kept_from_shared_fetch(name: FieldName) -> bool {
    conditions::is_condition(name)
        || matches!(
            name,
            FieldName::Range
                | FieldName::IfRange
                | FieldName::XOriginalUrl
                | FieldName::XRewriteUrl
                | FieldName::XHttpMethodOverride
        )
}

/// RFC 9110 §7.6.2: one fewer.
fn write_fewer_forwards(value: &[u8], out: &mut Vec<u8>) {
    let left = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(left) = left {
        write_number_field(out, "Max-Forwards", left.saturating_sub(1));
    }
}

/// RFC 9111 §4.3.1.
fn write_validators(fetch: &Fetch, out: &mut Vec<u8>) {
    let mut ranges = Fields::default();
    add_range(&fetch.purpose, &mut ranges);
    ranges.view().iter().for_each(|field| write_field(out, field.name_text, field.value));
    let Purpose::Store(Some(stale)) = &fetch.purpose else { return };
    let Some(validators) = Validators::of(stale.response(), &stale.facts()) else { return };
    if let Some(etag) = validators.if_none_match {
        write_field(out, b"If-None-Match", etag);
    }
    if let Some(date) = validators.if_modified_since {
        write_field(out, b"If-Modified-Since", date);
    }
}

/// What a slice is asked for by (RFC 9110 §13.1.5, §14.2).
pub(crate) fn add_range(purpose: &Purpose, fields: &mut Fields) {
    let Purpose::Slice { range, if_range } = purpose else { return };
    fields.push(FieldName::Range, format!("bytes={}-{}", range.start, range.end - 1));
    if let Some(etag) = if_range {
        fields.push(FieldName::IfRange, etag);
    }
}

/// Who asked, through whom. An untrusted peer's own claims are replaced.
fn write_forwarding(fetch: &Fetch, out: &mut Vec<u8>) {
    let mut request = fetch.head.request();
    let kept = without_nominated(request.fields);
    if let Some(kept) = &kept {
        request.fields = kept.view();
    }
    if fetch.is_forwarded() {
        write_via(fetch, &request, out);
        return;
    }
    if let Some(client) = &fetch.client {
        let (peer, trusted) = (client.peer.ip(), client.peer_is_trusted);
        out.extend_from_slice(b"X-Forwarded-For: ");
        forwarded::write_forwarded_for(peer, trusted, request.fields, out);
        out.extend_from_slice(b"\r\nForwarded: ");
        let mut host = Vec::new();
        request.authority.write_to(&mut host);
        forwarded::write_forwarded(peer, trusted, request.fields, &host, request.scheme, out);
        out.extend_from_slice(b"\r\n");
    }
    if fetch.is_for_many() {
        // Edge Architecture 1.0: origins that know it answer with a Surrogate-Control meant for us.
        let name = &fetch.site.settings.server_name;
        write_field(out, b"Surrogate-Capability", format!("{name}=\"Surrogate/1.0\"").as_bytes());
    }
    out.extend_from_slice(b"X-Forwarded-Proto: ");
    out.extend_from_slice(request.scheme.text().as_bytes());
    out.extend_from_slice(b"\r\n");
    let trusted = fetch.client.is_some_and(|client| client.peer_is_trusted);
    match request.fields.get(FieldName::XForwardedHost).filter(|_| trusted) {
        Some(host) => write_field(out, b"X-Forwarded-Host", host),
        None if request.authority.host.is_empty() => {}
        None => {
            out.extend_from_slice(b"X-Forwarded-Host: ");
            request.authority.write_to(out);
            out.extend_from_slice(b"\r\n");
        }
    }
    write_via(fetch, &request, out);
}

fn write_via(fetch: &Fetch, request: &Request<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Via: ");
    forwarded::write_via(request.fields, request.version, &fetch.site.pseudonym, out);
    out.extend_from_slice(b"\r\n");
}

/// What Connection names ends here, forwarding fields included, before ours are added (RFC 9110 §7.6.1). `None` when
/// it names none of them.
fn without_nominated(fields: FieldsView<'_>) -> Option<Fields> {
    let hop_by_hop = HopByHop::of(fields);
    let tells_the_way = |name| {
        matches!(
            name,
            FieldName::Via
                | FieldName::Forwarded
                | FieldName::XForwardedFor
                | FieldName::XForwardedHost
                | FieldName::XForwardedProto
        )
    };
    if !fields.iter().any(|field| tells_the_way(field.name) && hop_by_hop.drops(&field)) {
        return None;
    }
    Some(HopByHop::end_to_end(fields))
}

fn write_framing(fetch: &Fetch, out: &mut Vec<u8>) {
    match fetch.body {
        RequestBody::None => {
            if let Some(carried) = &fetch.carried {
                write_number_field(out, "Content-Length", carried.len() as u64);
            }
        }
        RequestBody::Length(length) => write_number_field(out, "Content-Length", length),
        RequestBody::Chunked => write_field(out, b"Transfer-Encoding", b"chunked"),
    }
    if fetch.expects_continue && fetch.body != RequestBody::None {
        write_field(out, b"Expect", b"100-continue");
    }
    if matches!(fetch.purpose, Purpose::Piped) || fetch.is_last() {
        write_field(out, b"Connection", b"close");
    }
    if fetch.is_upgrade() {
        write_field(out, b"Connection", b"Upgrade");
        for protocol in fetch.head.request().fields.get_all(FieldName::Upgrade) {
            write_field(out, b"Upgrade", protocol);
        }
    }
}
