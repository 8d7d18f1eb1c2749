//! A scope that somebody looks at while a subroutine runs over it.
//!
//! Every fetch runs over one, because the log says which statement decided how long a response lives. A dry run runs
//! everything over one and hears of each statement, change and verdict; and where records are wanted, what a record is made of
//! is told to them. It does nothing of its own: what it is asked for the scope does.

use std::cell::Cell;
use std::fmt;

use vcl::source_files::Span;
use vcl::subroutines::Method;
use vcl::typed_program::BackendId;
use vcl::{
    Arena, BackendRef, Fault, HeaderName, Health, Host, KeptName, LogKind, Message, Plain, ProxyField, Purge, Purged,
    Task, UnixPeer, VariableId, World, header_value,
};

use crate::dry_runner::heard::{Event, Ran};
use crate::dry_runner::mocked_exchange::RanHead;
use crate::dry_runner::mocked_exchange::lossy;
use crate::dry_runner::watch::Watch;
use crate::records::record_kind::HeadPart;
use crate::records::task_records::TaskRecords;
use crate::records::{RecordKind, fetch_records, request_records};
use crate::vcl_story::log_notes::DecidedBy;
use crate::vcl_story::program_scope::{Scope, Side};

/// Runs a subroutine of the client's side over a scope: a watched one if somebody watches.
macro_rules! run_over {
    ($scope:expr, $program:ident . $subroutine:ident) => {
        match $scope.core.is_heard() {
            false => $program.$subroutine($scope),
            true => $program.$subroutine(&$crate::vcl_story::watched_scope::Watched::over($scope)),
        }
    };
}
pub(crate) use run_over;

pub(crate) struct Watched<'s, 'a> {
    scope: &'s Scope<'a>,
    watch: Option<&'a Watch>,
    records: Option<&'s TaskRecords>,
    at: Cell<Option<Span>>,
}

impl<'s, 'a> Watched<'s, 'a> {
    pub(crate) fn over(scope: &'s Scope<'a>) -> Watched<'s, 'a> {
        let records = match scope.side {
            Side::Client(state) => state.records.as_deref(),
            Side::Fetch(state) => state.records.as_deref(),
        };
        Watched { scope, watch: scope.core.watch.as_deref(), records, at: Cell::new(None) }
    }

    /// The lines of a field that is about to change.
    fn record_unset(&self, of: Message, name: KeptName<'_>) {
        let Some((records, kind)) = self.records.zip(RecordKind::of_head(of, HeadPart::Unset)) else { return };
        if !self.scope.has_header(of, name) {
            return;
        }
        self.scope.all_headers(of, &mut |known, value| {
            if known.eq_ignore_ascii_case(name.written()) {
                records.field(kind, known, value);
            }
        });
    }

    fn record_header(&self, of: Message, name: KeptName<'_>, value: &[u8]) {
        if let Some((records, kind)) = self.records.zip(RecordKind::of_head(of, HeadPart::Header)) {
            records.field(kind, name.written(), header_value(value));
        }
    }

    /// A variable that has changed.
    fn record_variable(&self, of: VariableId) {
        let Some(records) = self.records else { return };
        let scope = self.scope;
        match of {
            VariableId::REQ_METHOD => records.put(RecordKind::ReqMethod, &[scope.req.method.get()]),
            VariableId::REQ_URL => records.put(RecordKind::ReqUrl, &[scope.req.url.get()]),
            VariableId::BEREQ_METHOD => records.put(RecordKind::BereqMethod, &[scope.bereq().method.get()]),
            VariableId::BEREQ_URL => records.put(RecordKind::BereqUrl, &[scope.bereq().url.get()]),
            VariableId::RESP_STATUS | VariableId::BERESP_STATUS => {
                let of = if of == VariableId::RESP_STATUS { Message::Resp } else { Message::Beresp };
                request_records::status_line(records, of, scope.response.status.get(), scope.response.reason.get());
            }
            VariableId::RESP_REASON => records.put(RecordKind::RespReason, &[scope.response.reason_text()]),
            VariableId::BERESP_REASON => records.put(RecordKind::BerespReason, &[scope.response.reason_text()]),
            VariableId::BERESP_TTL | VariableId::BERESP_GRACE | VariableId::BERESP_KEEP => {
                if let Side::Fetch(state) = scope.side {
                    fetch_records::life(records, "VCL", &state.lifetimes.get(), state.uncacheable.get(), scope.now);
                }
            }
            _ => {}
        }
    }

    fn hear(&self, event: impl FnOnce() -> Event) {
        if let Some(watch) = self.watch {
            watch.hear(event());
        }
    }

    /// A value for people; `None` when it is absent.
    fn shown(&self, value: Plain<'_>) -> Option<String> {
        let loaded = self.loaded();
        Some(match value {
            Plain::Text(text) | Plain::Storage(text) => String::from_utf8_lossy(text?).into_owned(),
            Plain::Blob(bytes) => format!("{} bytes", bytes?.len()),
            Plain::Bool(truth) => truth.to_string(),
            Plain::Int(number) | Plain::Bytes(number) => number.to_string(),
            Plain::Real(number) => number.to_string(),
            Plain::Duration(seconds) => format!("{seconds}s"),
            Plain::Time(seconds) => format!("{seconds:.3}"),
            Plain::Ip(ip) => ip.address.to_string(),
            Plain::Backend(backend) => loaded.backend_name(backend).into_owned(),
        })
    }

    fn loaded(&self) -> &std::sync::Arc<vcl::Loaded> {
        match self.scope.side {
            Side::Client(state) => &state.vcl_site.loaded,
            Side::Fetch(state) => &state.made_for.site.loaded,
        }
    }

    fn header_now(&self, of: Message, name: KeptName<'_>) -> Option<String> {
        self.scope.header(of, &HeaderName::new(name.written())).map(lossy)
    }

    /// Which statement decides is noted with what it decides.
    fn note_decision(&self, of: VariableId, to: Plain<'a>) {
        let (Side::Fetch(state), Some(at)) = (self.scope.side, self.at.get()) else { return };
        let (mut by, now) = (state.life_by.get(), DecidedBy::Statement(at));
        match of {
            VariableId::BERESP_TTL => by.ttl = now,
            VariableId::BERESP_GRACE => by.grace = now,
            VariableId::BERESP_KEEP => by.keep = now,
            VariableId::BERESP_UNCACHEABLE if to.truth() && by.uncacheable.is_none() => by.uncacheable = Some(now),
            _ => return,
        }
        state.life_by.set(by);
    }

    fn head(&self, of: Message) -> RanHead {
        let mut fields = Vec::new();
        self.scope.all_headers(of, &mut |name, value| fields.push((lossy(name), lossy(value))));
        let (method, url) = match of {
            Message::Req => (self.scope.req.method.get(), self.scope.req.url.get()),
            Message::Bereq => (self.scope.bereq().method.get(), self.scope.bereq().url.get()),
            _ => (&b""[..], &b""[..]),
        };
        RanHead { method: lossy(method), url: lossy(url), status: self.scope.response.status.get(), fields }
    }
}

fn label(of: Message, name: KeptName<'_>) -> String {
    let message = match of {
        Message::Req => "req",
        Message::ReqTop => "req_top",
        Message::Bereq => "bereq",
        Message::Beresp => "beresp",
        Message::Obj => "obj",
        Message::ObjStale => "obj_stale",
        Message::Resp => "resp",
    };
    format!("{message}.http.{}", lossy(name.written()))
}

impl<'a> Host<'a> for Watched<'_, 'a> {
    fn arena(&self) -> &'a Arena {
        self.scope.arena
    }

    fn task(&self) -> &Task {
        self.scope.task()
    }

    fn waits_later(&self) -> bool {
        true
    }

    fn world(&self) -> &dyn World {
        self.scope.world()
    }

    fn header(&self, of: Message, name: &HeaderName) -> Option<&'a [u8]> {
        self.scope.header(of, name)
    }

    fn header_lines(&self, of: Message, name: &HeaderName, each: &mut dyn FnMut(&'a [u8])) {
        self.scope.header_lines(of, name, each);
    }

    fn all_headers(&self, of: Message, each: &mut dyn FnMut(&'a [u8], &'a [u8])) {
        self.scope.all_headers(of, each);
    }

    fn set_header(&self, of: Message, name: KeptName<'a>, value: &'a [u8]) -> Result<(), Fault> {
        let before = self.watch.and_then(|_| self.header_now(of, name));
        self.record_unset(of, name);
        self.scope.set_header(of, name, value)?;
        self.record_header(of, name, value);
        self.hear(|| Event::Set { name: label(of, name), before, after: lossy(value) });
        Ok(())
    }

    fn add_header(&self, of: Message, name: KeptName<'a>, value: &'a [u8]) -> Result<(), Fault> {
        self.scope.add_header(of, name, value)?;
        self.record_header(of, name, value);
        self.hear(|| Event::Added { name: label(of, name), line: lossy(value) });
        Ok(())
    }

    fn unset_header(&self, of: Message, name: KeptName<'a>) {
        let before = self.watch.and_then(|_| self.header_now(of, name));
        self.record_unset(of, name);
        self.scope.unset_header(of, name);
        if let Some(before) = before {
            self.hear(|| Event::Unset { name: label(of, name), before });
        }
    }

    fn rollback(&self, of: Message) -> Result<(), Fault> {
        self.scope.rollback(of)?;
        self.hear(|| Event::RolledBack(if of == Message::Bereq { "bereq" } else { "req" }));
        Ok(())
    }

    fn variable(&self, of: VariableId) -> Plain<'a> {
        self.scope.variable(of)
    }

    fn set_variable(&self, of: VariableId, to: Plain<'a>) -> Result<(), Fault> {
        let before = self.watch.and_then(|_| self.shown(self.scope.variable(of)));
        self.scope.set_variable(of, to)?;
        self.note_decision(of, to);
        self.record_variable(of);
        self.hear(|| {
            let after = self.shown(self.scope.variable(of)).unwrap_or_default();
            Event::Set { name: of.get().name.to_owned(), before, after }
        });
        Ok(())
    }

    fn unset_variable(&self, of: VariableId) -> Result<(), Fault> {
        let before = self.watch.and_then(|_| self.shown(self.scope.variable(of)));
        self.scope.unset_variable(of)?;
        self.hear(|| Event::Unset { name: of.get().name.to_owned(), before: before.unwrap_or_default() });
        Ok(())
    }

    fn hash_data(&self, part: Option<&[u8]>) {
        self.scope.hash_data(part);
        if let Some(records) = self.records {
            records.put(RecordKind::Hash, &[part.unwrap_or_default()]);
        }
        self.hear(|| Event::Hashed(part.map(lossy)));
    }

    fn hash_data_ends(&self) {
        self.scope.hash_data_ends();
    }

    fn synthetic(&self, part: &'a [u8]) -> Result<(), Fault> {
        self.hear(|| Event::Body(lossy(part)));
        self.scope.synthetic(part)
    }

    fn clear_synthetic(&self) {
        self.scope.clear_synthetic();
    }

    fn ban(&self, expression: &[u8]) -> Result<(), String> {
        let done = self.scope.ban(expression);
        self.hear(|| Event::Banned { expression: lossy(expression), refused: done.clone().err() });
        done
    }

    fn purge(&self, what: Purged<'_>, how: Purge) -> Result<u64, Fault> {
        let count = self.scope.purge(what, how)?;
        let tag = match what {
            Purged::This => None,
            Purged::Tag(tag) => Some(lossy(tag)),
        };
        self.hear(|| Event::Purged { tag, is_soft: how != Purge::Hard, count });
        Ok(count)
    }

    fn log(&self, kind: LogKind, text: &[u8]) {
        self.hear(|| Event::Logged(kind, lossy(text)));
        if let Some(records) = self.records {
            match RecordKind::of_program(kind) {
                Some(kind) => records.put(kind, &[text]),
                None if kind == LogKind::Timestamp => records.stamp(&String::from_utf8_lossy(text)),
                None => {}
            }
        }
        if self.watch.is_none() || kind == LogKind::Program {
            self.scope.log(kind, text);
        }
    }

    /// Two records: what programs and people search for, and where it was.
    fn log_fault(&self, why: &Fault, placed: &Fault) {
        let text = placed.reason().as_bytes();
        self.hear(|| Event::Logged(LogKind::Error, lossy(text)));
        if let Some(records) = self.records {
            records.put(RecordKind::VclError, &[why.reason().as_bytes()]);
            records.put(RecordKind::VclError, &[text]);
        }
        if self.watch.is_none() {
            self.scope.log(LogKind::Error, text);
        }
    }

    fn rfc_ttl(&self) -> Result<(), Fault> {
        self.scope.rfc_ttl()?;
        self.hear(|| {
            let now = |of: VariableId| self.shown(self.scope.variable(of)).unwrap_or_default();
            let (ttl, grace) = (now(VariableId::BERESP_TTL), now(VariableId::BERESP_GRACE));
            Event::Set { name: "beresp.ttl, beresp.grace".to_owned(), before: None, after: format!("{ttl}, {grace}") }
        });
        Ok(())
    }

    fn backend_health(&self, of: BackendId) -> Health {
        self.scope.backend_health(of)
    }

    fn backend_chosen(&self, of: BackendRef) {
        self.scope.backend_chosen(of);
    }

    fn request_body(&self) -> Option<&'a [u8]> {
        self.scope.request_body()
    }

    /// It was read before, and is recorded where it is asked for.
    fn cache_request_body(&self, bytes_max: u64) -> Result<bool, Fault> {
        if let (Some(records), Side::Client(state)) = (self.records, self.scope.side)
            && let Some(read) = state.body_was_read.take()
        {
            request_records::body_begins(records);
            if read.continued {
                request_records::continued(records);
            }
            records.stamp_at("ReqBody", read.by);
        }
        self.scope.cache_request_body(bytes_max)
    }

    fn late_100_continue(&self, late: bool) {
        self.scope.late_100_continue(late);
    }

    /// A dry run goes the same way every time.
    fn random(&self) -> u64 {
        self.watch.map_or_else(|| self.scope.random(), Watch::draw)
    }

    #[inline]
    fn unix_peer(&self) -> Option<UnixPeer> {
        self.scope.unix_peer()
    }

    fn storage(&self, name: &[u8], property: VariableId) -> Plain<'a> {
        self.scope.storage(name, property)
    }

    fn proxy_field(&self, of: ProxyField) -> Plain<'a> {
        self.scope.proxy_field(of)
    }

    fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    fn tells_changes(&self) -> bool {
        self.watch.is_some() || self.records.is_some()
    }

    fn statement(&self, at: Span) {
        self.at.set(Some(at));
        self.hear(|| Event::Statement(at));
    }

    fn condition(&self, at: Span, holds: bool) {
        self.hear(|| Event::Condition { at, holds });
    }

    fn begun(&self, method: Method) {
        if let Some(records) = self.records {
            let name = method.name();
            let name = name.strip_prefix("vcl_").unwrap_or(name);
            records.record(RecordKind::VclCall, |text| text.extend(name.bytes().map(|byte| byte.to_ascii_uppercase())));
        }
    }

    fn ended(&self, method: Method, action: &'static str, how: &dyn fmt::Display) {
        if let Some(records) = self.records {
            records.word(RecordKind::VclReturn, action.as_bytes());
        }
        let Some(watch) = self.watch else { return };
        let (is_background, request) = match self.scope.side {
            Side::Client(_) => (false, self.head(Message::Req)),
            Side::Fetch(state) => (state.is_background, self.head(Message::Bereq)),
        };
        let response = match method {
            Method::Deliver | Method::Synth => Some(self.head(Message::Resp)),
            Method::BackendResponse | Method::BackendError => Some(self.head(Message::Beresp)),
            _ => None,
        };
        let loaded = std::sync::Arc::clone(self.loaded());
        watch.ended(|events| Ran {
            method,
            loaded,
            verdict: how.to_string(),
            is_background,
            events,
            request,
            response,
        });
    }
}
