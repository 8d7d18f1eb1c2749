//! A hit under a program that leaves vcl_recv, vcl_hash, vcl_hit and vcl_deliver to builtin.vcl, as many do that only
//! say how long things are stored: what builtin.vcl says of it is said here, and no scope is made.
//!
//! Whatever is not such a hit is none of this file's business: nothing has been done then.

use std::rc::Rc;
use std::sync::Arc;

use cache::{Key, Now, Object};
use message::{FieldName, Method, Request, Status};
use rules::{Freshness, RequestDirectives};
use wire::has_length;

use crate::core::Core;
use crate::field_set::FieldSet;
use crate::head_form::{ACCEPT_RANGES, AGE, CONTENT_LENGTH, HeadForm, X_VARNISH};
use crate::instant_answer::{BegunStep, HitResponse, InstantClient, InstantHead, InstantOutcome};
use crate::parsed_request::ParsedRequest;
use crate::records::task_records::TaskRecords;
use crate::site::Site;
use crate::stored_head;
use crate::transaction::transaction_states::State;
use crate::vcl_story::hashed_parts::HashedParts;
use crate::vcl_story::{filter_names, hit_records};

/// What builtin.vcl passes.
const PERSONAL: FieldSet = FieldSet::mask(&[FieldName::Authorization, FieldName::Cookie]);

/// Answers a hit. `None`: it is something else.
pub(crate) fn run<C: InstantClient>(
    client: &mut C,
    core: &Rc<Core>,
    site: &Arc<Site>,
    parsed: &ParsedRequest<'_>,
    (xid, records): (u64, Option<&Rc<TaskRecords>>),
) -> Option<InstantOutcome<BegunStep>> {
    let request = &parsed.received.request;
    let is_plain = matches!(request.method, Method::Get | Method::Head)
        && !parsed.is_conditional()
        && !parsed.seen.has_any(PERSONAL)
        && request.path.starts_with(b"/");
    if !is_plain {
        return None;
    }
    let key = key_by_builtin(core, request)?;
    let now = core.now_at(parsed.moment);
    let mut hot = core.hot.borrow_mut();
    let object = hot.get_plain(key)?;
    let is_fresh = object.freshness(now, &RequestDirectives::default()) == Freshness::Fresh;
    let gunzips = || {
        site.settings.vcl.http_gzip_support
            && filter_names::is_gzip(object.fields())
            && !filter_names::takes_gzip(request.fields)
    };
    if !is_fresh || !can_go_as_stored(object) || object.esi().is_some() || gunzips() {
        return None;
    }
    if let Some(records) = records {
        hit_records::builtin(records, (site, &core.fresh_arena()), parsed, object, (xid, now)).ok()?;
    }
    core.edges.take(State::Receive, State::Lookup);
    core.edges.take(State::Lookup, State::Hit);
    core.edges.take(State::Hit, State::Deliver);
    object.touch(now);
    let mut tail = core.tail.borrow_mut();
    tail.clear();
    write_tail::<C::Form>(&mut tail, site, object, xid, now, parsed);
    let response = HitResponse::to(parsed);
    let head_only = response.head_only || !has_length(object.status());
    let response = HitResponse { head_only, records, ..response };
    Some(client.send(core, site, &response, object, InstantHead::Stored { tail: &tail }))
}

/// By vcl_builtin_hash: URL and host. `None` where there is no host, or one that vcl_builtin_recv writes anew.
fn key_by_builtin(core: &Core, request: &Request<'_>) -> Option<Key> {
    let host = request.fields.get(FieldName::Host)?;
    if host.iter().any(u8::is_ascii_uppercase) {
        return None;
    }
    let mut hashed = HashedParts::new();
    match request.query {
        None => hashed.add(Some(request.path)),
        Some(query) => [request.path, b"?", query].into_iter().for_each(|part| hashed.add(Some(part))),
    }
    hashed.end();
    hashed.add(Some(host));
    hashed.end();
    Some(hashed.key(core))
}

/// Is the head as it is stored the one that goes out, when no program edits it?
pub(crate) fn can_go_as_stored(object: &Object) -> bool {
    object.reason().is_none()
}

/// What a hit adds to the stored head.
pub(crate) fn write_tail<F: HeadForm>(
    out: &mut Vec<u8>,
    site: &Site,
    object: &Object,
    xid: u64,
    now: Now,
    parsed: &ParsedRequest<'_>,
) {
    let (status, fields) = (object.status(), object.fields());
    if has_length(status) {
        F::number(out, CONTENT_LENGTH, object.body_len());
    }
    F::made(out, X_VARNISH, |out| {
        message::write_decimal(out, xid);
        if let Some(fetch) = fields.get_named(FieldName::Other, b"x-varnish") {
            out.push(b' ');
            out.extend_from_slice(fetch);
        }
    });
    F::number(out, AGE, object.age_s(now));
    if status == Status::OK && site.settings.vcl.http_range_support {
        F::field(out, ACCEPT_RANGES, b"bytes");
    } else {
        fields.get_all(FieldName::AcceptRanges).for_each(|line| F::field(out, ACCEPT_RANGES, line));
    }
    stored_head::write_end::<F>(out, site, (status, fields), (parsed, None));
}
