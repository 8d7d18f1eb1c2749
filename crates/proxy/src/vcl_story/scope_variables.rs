//! What the variables of VCL are in a scope, and what setting them does.
//!
//! Sorted as docs/vcl-variables.md is. What has no meaning in larder (ESI, storage choice) reads as its
//! type's nothing and takes any value.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;

use message::{Status, Version};
use rules::Lifetimes;
use rules::lifetimes::announced;
use vcl::{BackendRef, Fault, Ip, Plain, VariableId as V};

use crate::core::Core;
use crate::records::request_records;
use crate::server_names::{server_hostname, server_identity};
use crate::vcl_story::backend_task::BackendTask;
use crate::vcl_story::client_state::{ClientState, Remembered};
use crate::vcl_story::filter_names::{self, BodyChanges};
use crate::vcl_story::listener_name::listener_name;
use crate::vcl_story::log_notes::LifeBy;
use crate::vcl_story::program_scope::{Scope, Side};
use crate::vcl_story::scope_heads::{sent_status, usual_reason};

type Read<'a> = Option<Plain<'a>>;

pub(crate) fn read<'a>(scope: &Scope<'a>, of: V) -> Plain<'a> {
    common(scope, of)
        .or_else(|| match scope.side {
            Side::Client(_) => request(scope, of).or_else(|| response(scope, of)),
            Side::Fetch(state) => fetch(scope, state, of).or_else(|| backend_response(scope, state, of)),
        })
        .or_else(|| stored(scope, of))
        .or_else(|| parameter(scope, of))
        .unwrap_or_else(|| of.nothing())
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

fn ip<'a>(of: SocketAddr) -> Read<'a> {
    Some(Plain::Ip(Ip { address: of.ip(), port: of.port() }))
}

fn text<'a>(bytes: &'a [u8]) -> Read<'a> {
    Some(Plain::Text(Some(bytes)))
}

/// What is the same on both sides.
fn common<'a>(scope: &Scope<'a>, of: V) -> Read<'a> {
    let addresses = match scope.side {
        Side::Client(state) => &state.addresses,
        Side::Fetch(state) => &state.made_for.addresses,
    };
    let identity = || match scope.side {
        Side::Client(state) => state.identity.borrow().as_deref().map(|id| scope.arena.copy(id)),
        Side::Fetch(state) => state.made_for.identity.as_deref().map(Ok),
    };
    Some(match of {
        V::NOW => Plain::Time(seconds(scope.now.wall_ms)),
        V::CLIENT_IP => return ip(addresses.client),
        V::REMOTE_IP => return ip(addresses.remote),
        V::SERVER_IP => return ip(addresses.server),
        V::LOCAL_IP => return ip(addresses.local),
        V::CLIENT_IDENTITY => match identity() {
            Some(Ok(identity)) => Plain::Text(Some(identity)),
            _ => {
                let address = addresses.client.ip().to_string();
                Plain::Text(scope.arena.copy(address.as_bytes()).ok())
            }
        },
        V::SERVER_HOSTNAME => return text(server_hostname().as_bytes()),
        V::SERVER_IDENTITY => return text(server_identity().as_bytes()),
        V::LOCAL_ENDPOINT => Plain::Text(match &addresses.unix_path {
            Some(path) => scope.arena.copy(path.as_os_str().as_bytes()).ok(),
            None => {
                let local = SocketAddr::new(addresses.local.ip().to_canonical(), addresses.local.port());
                scope.arena.copy(local.to_string().as_bytes()).ok()
            }
        }),
        V::LOCAL_SOCKET => {
            let name = listener_name(&scope.site.settings.listeners, addresses.local, addresses.unix_path.as_deref());
            Plain::Text(scope.arena.copy(name.as_bytes()).ok())
        }
        _ => return None,
    })
}

/// Of a store, whatever its name: there is one. Nothing is kept in Transient, so there is no end to it.
pub(crate) fn storage<'a>(core: &Core, name: &[u8], of: V) -> Plain<'a> {
    let is_transient = name.eq_ignore_ascii_case(b"Transient");
    let account = core.shared.cache.account();
    let used = if is_transient { 0 } else { account.used() };
    match of {
        V::STORAGE_FREE_SPACE if is_transient => Plain::Bytes(BYTES_WITHOUT_END),
        V::STORAGE_FREE_SPACE => Plain::Bytes(account.limit().saturating_sub(used) as i64),
        V::STORAGE_USED_SPACE => Plain::Bytes(used as i64),
        V::STORAGE_HAPPY => Plain::Bool(true),
        other => other.nothing(),
    }
}

/// The largest number that VCL can write.
const BYTES_WITHOUT_END: i64 = 999_999_999_999_999;

/// `req.*`, and in vcl_pipe some of `bereq.*`.
fn request<'a>(scope: &Scope<'a>, of: V) -> Read<'a> {
    let Side::Client(state) = scope.side else { return None };
    let duration = |set: Option<f64>| Plain::Duration(set.unwrap_or(-1.0));
    Some(match of {
        V::REQ_METHOD => return text(scope.req.method.get()),
        V::REQ_URL => return text(scope.req.url.get()),
        V::REQ_TOP_METHOD => return text(scope.top().method.get()),
        V::REQ_TOP_URL => return text(scope.top().url.get()),
        V::REQ_TOP_PROTO if state.top.is_some() => return text(scope.top().proto()),
        V::REQ_PROTO | V::REQ_TOP_PROTO => match &*state.proto.borrow() {
            Some(set) => Plain::Text(scope.arena.copy(set).ok()),
            None => return text(scope.req.proto()),
        },
        V::REQ_STORAGE => {
            let set = state.storage.borrow();
            Plain::Storage(set.as_deref().and_then(|name| scope.arena.copy(name).ok()))
        }
        V::REQ_TIME => Plain::Time(state.started_s),
        V::REQ_TOP_TIME => Plain::Time(state.top.as_ref().map_or(state.started_s, |top| top.started_s)),
        V::REQ_ESI_LEVEL => Plain::Int(i64::from(state.esi_level)),
        V::REQ_CAN_GZIP => Plain::Bool(filter_names::takes_gzip(scope.req.fields.to_fields().view())),
        V::REQ_RESTARTS => Plain::Int(i64::from(state.restarts.get())),
        V::REQ_XID => Plain::Int(state.xid.get() as i64),
        V::SESS_XID => Plain::Int(state.addresses.session_xid as i64),
        V::REQ_BACKEND_HINT | V::BEREQ_BACKEND => Plain::Backend(state.backend_hint.get()),
        V::REQ_TTL => duration(state.ttl_s.get()),
        V::REQ_GRACE => duration(state.grace_s.get()),
        V::REQ_MAX_AGE => duration(state.age_max_s.get()),
        V::REQ_HASH_ALWAYS_MISS => Plain::Bool(state.hash_always_miss.get()),
        V::REQ_HASH_IGNORE_BUSY => Plain::Bool(state.hash_ignore_busy.get()),
        V::REQ_HASH_IGNORE_VARY => Plain::Bool(state.hash_ignore_vary.get()),
        V::REQ_IS_HITMISS => Plain::Bool(state.remembered.get() == Remembered::HitForMiss),
        V::REQ_IS_HITPASS => Plain::Bool(state.remembered.get() == Remembered::HitForPass),
        V::REQ_TRANSPORT => {
            let is_http2 = scope.req.proto() == request_records::version_text(Version::Http2);
            return text(if is_http2 { b"HTTP/2" } else { b"HTTP/1" });
        }
        V::REQ_ESI => Plain::Bool(state.esi.get()),
        V::REQ_HASH => hash(scope, state.hash.get()),
        // Without a bereq nothing of it is empty: its method is.
        V::BEREQ_HASH => hash(scope, state.hash.get().filter(|_| !scope.bereq().method.get().is_empty())),
        V::BEREQ_METHOD => return text(scope.bereq().method.get()),
        V::BEREQ_URL => return text(scope.bereq().url.get()),
        V::BEREQ_PROTO => return text(scope.bereq().proto()),
        V::BEREQ_XID => Plain::Int(state.xid.get() as i64),
        _ => return None,
    })
}

/// `resp.*`.
fn response<'a>(scope: &Scope<'a>, of: V) -> Read<'a> {
    let Side::Client(state) = scope.side else { return None };
    Some(match of {
        V::RESP_STATUS => Plain::Int(i64::from(scope.response.status.get())),
        V::RESP_REASON => return text(scope.response.reason_text()),
        V::RESP_PROTO => return text(scope.response.proto()),
        V::RESP_TIME => Plain::Time(seconds(scope.now.wall_ms)),
        V::RESP_IS_STREAMING => Plain::Bool(state.is_streaming.get()),
        V::RESP_DO_ESI => Plain::Bool(state.esi.get()),
        V::RESP_FILTERS => Plain::Text(delivery_filters(scope, state)),
        _ => return None,
    })
}

/// `resp.filters`: what the program named, or what will be done without that.
fn delivery_filters<'a>(scope: &Scope<'a>, state: &ClientState) -> Option<&'a [u8]> {
    if let Some(named) = state.filters.borrow().as_deref() {
        return scope.arena.copy(named).ok();
    }
    let is_gzip = scope.stored.get().is_some_and(|stored| filter_names::is_gzip(stored.fields));
    let (asked, status) = (scope.req.fields.to_fields(), Status(scope.response.status.get()));
    let includes = state.esi.get() && scope.stored.get().is_some_and(|stored| stored.can_esi);
    let names = filter_names::of_delivery_usually(&scope.site.settings.vcl, (is_gzip, includes), asked.view(), status);
    Some(names.as_bytes())
}

/// Without one (the request was not hashed yet, or the program was not known to ask) there is no blob.
fn hash<'a>(scope: &Scope<'a>, hash: Option<[u8; 32]>) -> Plain<'a> {
    Plain::Blob(hash.and_then(|hash| scope.arena.copy(&hash).ok()))
}

/// `bereq.*`.
fn fetch<'a>(scope: &Scope<'a>, state: &'a BackendTask, of: V) -> Read<'a> {
    let limits = &scope.site.settings.limits;
    let duration = |set: Option<f64>, usual: std::time::Duration| Plain::Duration(set.unwrap_or(usual.as_secs_f64()));
    Some(match of {
        V::BEREQ_METHOD => return text(scope.bereq().method.get()),
        V::BEREQ_URL => return text(scope.bereq().url.get()),
        V::BEREQ_PROTO => return text(scope.bereq().proto()),
        V::BEREQ_XID => Plain::Int(state.xid.get() as i64),
        V::SESS_XID => Plain::Int(state.made_for.addresses.session_xid as i64),
        V::BEREQ_TIME => Plain::Time(state.started_s),
        V::BEREQ_RETRIES => Plain::Int(i64::from(state.retries.get())),
        V::BEREQ_BACKEND => Plain::Backend(state.backend.get()),
        V::BEREQ_CONNECT_TIMEOUT => duration(state.connect_timeout_s.get(), limits.connect_timeout),
        V::BEREQ_FIRST_BYTE_TIMEOUT => duration(state.first_byte_timeout_s.get(), limits.first_byte_timeout),
        V::BEREQ_BETWEEN_BYTES_TIMEOUT => duration(state.between_bytes_timeout_s.get(), limits.between_bytes_timeout),
        V::BEREQ_IS_BGFETCH => Plain::Bool(state.is_background),
        V::BEREQ_UNCACHEABLE => Plain::Bool(state.uncacheable.get()),
        V::BEREQ_IS_HITMISS => Plain::Bool(state.made_for.remembered == Remembered::HitForMiss),
        V::BEREQ_IS_HITPASS => Plain::Bool(state.made_for.remembered == Remembered::HitForPass),
        V::BEREQ_HASH => hash(scope, state.made_for.hash),
        _ => return None,
    })
}

/// `beresp.*`.
fn backend_response<'a>(scope: &Scope<'a>, state: &'a BackendTask, of: V) -> Read<'a> {
    let lives = state.lifetimes.get();
    let chosen = state.chosen.get().map_or(BackendRef::None, BackendRef::Named);
    Some(match of {
        V::BERESP_STATUS => Plain::Int(i64::from(scope.response.status.get())),
        V::BERESP_REASON => return text(scope.response.reason_text()),
        V::BERESP_PROTO => return text(scope.response.proto()),
        V::BERESP_TIME => Plain::Time(state.responded_s.get()),
        V::BERESP_TTL => Plain::Duration(ttl_left_s(&lives)),
        V::BERESP_GRACE => Plain::Duration(seconds(lives.grace_ms)),
        V::BERESP_KEEP => Plain::Duration(seconds(lives.keep_ms)),
        V::BERESP_AGE => Plain::Duration(seconds(lives.age_ms)),
        V::BERESP_UNCACHEABLE => Plain::Bool(state.uncacheable.get()),
        V::BERESP_WAS_304 => Plain::Bool(state.was_304.get()),
        V::BERESP_DO_STREAM => Plain::Bool(state.do_stream.get()),
        V::BERESP_DO_ESI => Plain::Bool(state.changes.get().esi),
        V::BERESP_DO_GZIP => Plain::Bool(state.changes.get().gzip),
        V::BERESP_DO_GUNZIP => Plain::Bool(state.changes.get().gunzip),
        V::BERESP_FILTERS => Plain::Text(fetch_filters(scope, state)),
        V::BERESP_BACKEND => Plain::Backend(chosen),
        V::BERESP_BACKEND_NAME => {
            let name = state.made_for.site.loaded.backend_name(chosen);
            Plain::Text(scope.arena.copy(name.as_bytes()).ok())
        }
        _ => return None,
    })
}

/// `beresp.filters`: what the program named, or what will be done without that.
fn fetch_filters<'a>(scope: &Scope<'a>, state: &BackendTask) -> Option<&'a [u8]> {
    if let Some(named) = state.filters.borrow().as_deref() {
        return scope.arena.copy(named).ok();
    }
    let fields = scope.response.fields.to_fields();
    let supports = scope.site.settings.vcl.http_gzip_support;
    Some(filter_names::of_fetch_usually(&fields, state.changes.get(), supports).as_bytes())
}

/// `obj.*` and `obj_stale.*`.
fn stored<'a>(scope: &Scope<'a>, of: V) -> Read<'a> {
    let stored = scope.stored.get()?;
    let lives = stored.lifetimes;
    Some(match of {
        V::OBJ_STATUS | V::OBJ_STALE_STATUS => Plain::Int(i64::from(stored.status.0)),
        V::OBJ_REASON | V::OBJ_STALE_REASON => {
            return text(stored.reason.unwrap_or_else(|| usual_reason(stored.status.0)));
        }
        V::OBJ_PROTO | V::OBJ_STALE_PROTO => return text(b"HTTP/1.1"),
        V::OBJ_HITS | V::OBJ_STALE_HITS => Plain::Int(i64::from(stored.hits)),
        V::OBJ_TTL | V::OBJ_STALE_TTL => Plain::Duration(ttl_left_s(&lives)),
        V::OBJ_GRACE | V::OBJ_STALE_GRACE => Plain::Duration(seconds(lives.grace_ms)),
        V::OBJ_KEEP | V::OBJ_STALE_KEEP => Plain::Duration(seconds(lives.keep_ms)),
        V::OBJ_AGE | V::OBJ_STALE_AGE => Plain::Duration(seconds(lives.age_ms)),
        V::OBJ_TIME | V::OBJ_STALE_TIME => Plain::Time(seconds(scope.now.wall_ms.saturating_sub(stored.resident_ms))),
        V::OBJ_CAN_ESI | V::OBJ_STALE_CAN_ESI => Plain::Bool(stored.can_esi),
        V::OBJ_UNCACHEABLE | V::OBJ_STALE_UNCACHEABLE => Plain::Bool(stored.is_uncacheable),
        V::OBJ_STALE_IS_VALID => Plain::Bool(stored.is_live),
        _ => return None,
    })
}

/// What has no ttl began with 0, whatever word stands for that.
fn ttl_left_s(lives: &Lifetimes) -> f64 {
    lives.ttl_ms.max(-i64::try_from(lives.age_ms).unwrap_or(i64::MAX)) as f64 / 1_000.0
}

/// `param.*` and `sess.*`.
fn parameter<'a>(scope: &Scope<'a>, of: V) -> Read<'a> {
    let (limits, vcl) = (&scope.site.settings.limits, &scope.site.settings.vcl);
    let duration = |of: std::time::Duration| Some(Plain::Duration(of.as_secs_f64()));
    match of {
        V::PARAM_DEFAULT_TTL => duration(vcl.default_ttl),
        V::PARAM_DEFAULT_GRACE => duration(vcl.default_grace),
        V::PARAM_DEFAULT_KEEP => duration(vcl.default_keep),
        V::PARAM_UNCACHEABLE_TTL => duration(vcl.uncacheable_ttl),
        V::PARAM_MAX_RESTARTS => Some(Plain::Int(i64::from(vcl.max_restarts))),
        V::PARAM_MAX_RETRIES => Some(Plain::Int(i64::from(vcl.max_retries))),
        V::PARAM_CONNECT_TIMEOUT => duration(limits.connect_timeout),
        V::PARAM_FIRST_BYTE_TIMEOUT => duration(limits.first_byte_timeout),
        V::PARAM_BETWEEN_BYTES_TIMEOUT => duration(limits.between_bytes_timeout),
        V::PARAM_BACKEND_IDLE_TIMEOUT => duration(limits.origin_idle_timeout),
        V::PARAM_TIMEOUT_IDLE => duration(limits.idle_timeout),
        V::SESS_TIMEOUT_IDLE => {
            let set = match scope.side {
                Side::Client(state) => state.addresses.idle_s.get(),
                Side::Fetch(_) => None,
            };
            Some(Plain::Duration(set.unwrap_or(limits.idle_timeout.as_secs_f64())))
        }
        V::PARAM_SEND_TIMEOUT | V::SESS_SEND_TIMEOUT => duration(limits.send_timeout),
        V::PARAM_IDLE_SEND_TIMEOUT | V::SESS_IDLE_SEND_TIMEOUT => duration(limits.send_timeout),
        _ => None,
    }
}

/// Sets a variable. What has no meaning here takes any value.
pub(crate) fn write<'a>(scope: &Scope<'a>, of: V, to: Plain<'a>) -> Result<(), Fault> {
    match scope.side {
        Side::Client(_) => write_client(scope, of, to),
        Side::Fetch(state) => write_fetch(scope, state, of, to),
    }
}

fn write_client<'a>(scope: &Scope<'a>, of: V, to: Plain<'a>) -> Result<(), Fault> {
    let Side::Client(state) = scope.side else { return Ok(()) };
    match of {
        V::REQ_METHOD => scope.req.set_method(word(to, "req.method")?),
        V::REQ_URL => scope.req.set_url(word(to, "req.url")?),
        V::BEREQ_METHOD => scope.bereq().set_method(word(to, "bereq.method")?),
        V::BEREQ_URL => scope.bereq().set_url(word(to, "bereq.url")?),
        V::REQ_BACKEND_HINT | V::BEREQ_BACKEND => state.backend_hint.set(to.backend()),
        V::REQ_TTL => state.ttl_s.set(Some(to.real())),
        V::REQ_GRACE => state.grace_s.set(Some(to.real())),
        V::REQ_MAX_AGE => state.age_max_s.set(Some(to.real())),
        V::REQ_HASH_ALWAYS_MISS => state.hash_always_miss.set(to.truth()),
        V::REQ_HASH_IGNORE_BUSY => state.hash_ignore_busy.set(to.truth()),
        V::REQ_HASH_IGNORE_VARY => state.hash_ignore_vary.set(to.truth()),
        V::SESS_TIMEOUT_IDLE => state.addresses.idle_s.set(Some(to.real())),
        V::CLIENT_IDENTITY => *state.identity.borrow_mut() = to.text().map(Into::into),
        // VCL 4.0 may say what it likes; what goes over the wire is what larder speaks.
        // As in Varnish only of what the client itself asked: a page that is on its way would be half of each.
        V::REQ_ESI if state.esi_level > 0 => {}
        V::REQ_ESI => state.esi.set(to.truth()),
        V::RESP_DO_ESI => {
            unless_fixed(&state.filters, "resp", "do_esi")?;
            state.esi.set(to.truth());
        }
        V::REQ_STORAGE => *state.storage.borrow_mut() = to.text().map(Into::into),
        V::REQ_PROTO => *state.proto.borrow_mut() = Some(word(to, "req.proto")?.into()),
        V::RESP_STATUS => set_status(scope, to)?,
        V::RESP_FILTERS => *state.filters.borrow_mut() = to.text().map(Into::into),
        V::RESP_REASON => scope.response.reason.set(Some(line(to, "resp.reason")?)),
        _ => {}
    }
    Ok(())
}

fn write_fetch<'a>(scope: &Scope<'a>, state: &BackendTask, of: V, to: Plain<'a>) -> Result<(), Fault> {
    let lives = state.lifetimes.get();
    match of {
        V::BEREQ_METHOD => scope.bereq().set_method(word(to, "bereq.method")?),
        V::BEREQ_URL => scope.bereq().set_url(word(to, "bereq.url")?),
        V::BEREQ_BACKEND => state.backend.set(to.backend()),
        V::BEREQ_CONNECT_TIMEOUT => state.connect_timeout_s.set(Some(to.real())),
        V::BEREQ_FIRST_BYTE_TIMEOUT => state.first_byte_timeout_s.set(Some(to.real())),
        V::BEREQ_BETWEEN_BYTES_TIMEOUT => state.between_bytes_timeout_s.set(Some(to.real())),
        V::BERESP_STATUS => set_status(scope, to)?,
        V::BERESP_REASON => scope.response.reason.set(Some(line(to, "beresp.reason")?)),
        // A time is counted from now, and the age it came with is of no account any more.
        V::BERESP_TTL => state.lifetimes.set(Lifetimes { ttl_ms: (to.real() * 1_000.0) as i64, ..lives }),
        V::BERESP_GRACE => state.lifetimes.set(Lifetimes { grace_ms: ms(to), ..lives }),
        V::BERESP_KEEP => state.lifetimes.set(Lifetimes { keep_ms: ms(to), ..lives }),
        // Once it is not to be cached, it stays so: to set it back has no effect, as in Varnish.
        V::BERESP_UNCACHEABLE => state.uncacheable.set(state.uncacheable.get() || to.truth()),
        V::BERESP_DO_STREAM => state.do_stream.set(to.truth()),
        V::BERESP_FILTERS => *state.filters.borrow_mut() = to.text().map(Into::into),
        V::BERESP_DO_GZIP | V::BERESP_DO_GUNZIP | V::BERESP_DO_ESI => {
            let changes = state.changes.get();
            let (name, changes) = match of {
                V::BERESP_DO_GZIP => ("do_gzip", BodyChanges { gzip: to.truth(), ..changes }),
                V::BERESP_DO_GUNZIP => ("do_gunzip", BodyChanges { gunzip: to.truth(), ..changes }),
                _ => ("do_esi", BodyChanges { esi: to.truth(), ..changes }),
            };
            unless_fixed(&state.filters, "beresp", name)?;
            state.changes.set(changes);
        }
        _ => {}
    }
    Ok(())
}

/// Filters that were named are what they are, as in Varnish: whatever else a program wishes for would not come.
fn unless_fixed(filters: &RefCell<Option<Box<[u8]>>>, of: &str, wish: &str) -> Result<(), Fault> {
    match filters.borrow().is_some() {
        true => Err(Fault::new(format!("{of}.filters are already fixed, {of}.{wish} is undefined"))),
        false => Ok(()),
    }
}

pub(crate) fn unset(scope: &Scope<'_>, of: V) {
    match (of, scope.side) {
        (V::REQ_TTL, Side::Client(state)) => state.ttl_s.set(None),
        (V::REQ_GRACE, Side::Client(state)) => state.grace_s.set(None),
        (V::REQ_MAX_AGE, Side::Client(state)) => state.age_max_s.set(None),
        (V::SESS_TIMEOUT_IDLE, Side::Client(state)) => state.addresses.idle_s.set(None),
        (V::BEREQ_BODY, Side::Fetch(state)) => state.without_body.set(true),
        (V::BEREQ_CONNECT_TIMEOUT, Side::Fetch(state)) => state.connect_timeout_s.set(None),
        (V::BEREQ_FIRST_BYTE_TIMEOUT, Side::Fetch(state)) => state.first_byte_timeout_s.set(None),
        (V::BEREQ_BETWEEN_BYTES_TIMEOUT, Side::Fetch(state)) => state.between_bytes_timeout_s.set(None),
        _ => {}
    }
}

/// `std.rfc_ttl()`: what beresp's fields say, as they are now.
pub(crate) fn rfc_ttl(scope: &Scope<'_>) -> Result<(), Fault> {
    let Side::Fetch(state) = scope.side else {
        return Err(Fault::new("std.rfc_ttl() is for vcl_backend_response"));
    };
    let head = scope.response.to_made().head;
    let now_s = (scope.now.wall_ms / 1_000) as i64;
    let defaults = scope.site.settings.vcl.lifetimes();
    let announced = announced(head.status, head.fields.view(), now_s, &defaults);
    state.lifetimes.set(announced.lifetimes);
    state.life_by.set(LifeBy::announced(&announced));
    Ok(())
}

/// Another status has another reason, until that is set too.
fn set_status(scope: &Scope<'_>, to: Plain<'_>) -> Result<(), Fault> {
    scope.response.status.set(status(to)?);
    scope.response.reason.set(None);
    Ok(())
}

/// A duration, which is not below zero.
fn ms(to: Plain<'_>) -> u64 {
    (to.real() * 1_000.0) as u64
}

fn status(to: Plain<'_>) -> Result<u16, Fault> {
    let number = to.int();
    match u16::try_from(number).ok().filter(|&status| sent_status(status) >= 200) {
        Some(status) => Ok(status),
        None => Err(Fault::new(format!(
            "{number} is no status: it must be 200 to 999, or such a number plus thousands: 1xx is never a final answer"
        ))),
    }
}

/// A part of the first line: no blanks, or it would be two parts.
fn word<'a>(to: Plain<'a>, what: &str) -> Result<&'a [u8], Fault> {
    let text = to.text().unwrap_or_default();
    // To the end without a branch: many bytes at once.
    if text.is_empty() || text.iter().fold(false, |bad, &byte| bad | (byte <= b' ') | (byte == 0x7f)) {
        let text = String::from_utf8_lossy(text).into_owned();
        return Err(Fault::new(format!("{what} cannot be \"{}\": empty, or with a blank", text.escape_debug())));
    }
    Ok(text)
}

fn line<'a>(to: Plain<'a>, what: &str) -> Result<&'a [u8], Fault> {
    let text = to.text().unwrap_or_default();
    if text.iter().any(|&byte| byte < b' ' && byte != b'\t') {
        return Err(Fault::new(format!("{what} must be one line")));
    }
    Ok(text)
}
