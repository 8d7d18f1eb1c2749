//! The records of a client's connection, each handed over as it happens: a session may last for hours.

use std::cell::Cell;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use wire::Refusal;
use wire::http2::{ConnectionError, ErrorCode};

use crate::clock::Moment;
use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::records::RecordKind;
use crate::records::request_records::received_as;
use crate::records::task_records::{Carried, TaskRecords};
use crate::vcl_story::xids;

/// Why a session ends, in Varnish's words.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SessionEnd {
    /// The client ended it.
    Remote,
    /// The client said that nothing more comes.
    Request,
    /// We did.
    Response,
    /// What came is no request, or more than is taken.
    Junk,
    Overflow,
    Timeout,
    /// The request's body is none, or longer than somebody takes.
    Body,
    TransmitFailed,
    Pipe,
    /// Of a range that was promised not all came.
    RangeShort,
    ProgramFailed,
    /// HTTP/2 where it is not spoken.
    Http2Refused,
    /// Over a limit of HTTP/2.
    Overload,
    /// Streams that were reset too soon and too often.
    RapidReset,
}

impl SessionEnd {
    pub(crate) fn of_refusal(refusal: &Refusal) -> SessionEnd {
        match refusal.status {
            408 => SessionEnd::Timeout,
            431 | 414 => SessionEnd::Overflow,
            _ => SessionEnd::Junk,
        }
    }

    /// Of an HTTP/2 connection that broke the rules.
    pub(crate) fn of_http2(error: &ConnectionError) -> SessionEnd {
        match error.code {
            _ if error.is_rapid_reset() => SessionEnd::RapidReset,
            ErrorCode::FlowControlError | ErrorCode::EnhanceYourCalm => SessionEnd::Overload,
            _ => SessionEnd::Junk,
        }
    }

    fn name(self) -> &'static str {
        match self {
            SessionEnd::Remote => "REM_CLOSE",
            SessionEnd::Request => "REQ_CLOSE",
            SessionEnd::Response => "RESP_CLOSE",
            SessionEnd::Junk => "RX_JUNK",
            SessionEnd::Overflow => "RX_OVERFLOW",
            SessionEnd::Timeout => "RX_TIMEOUT",
            SessionEnd::Body => "RX_BODY",
            SessionEnd::TransmitFailed => "TX_ERROR",
            SessionEnd::Pipe => "TX_PIPE",
            SessionEnd::RangeShort => "RANGE_SHORT",
            SessionEnd::ProgramFailed => "VCL_FAILURE",
            SessionEnd::Http2Refused => "REQ_HTTP20",
            SessionEnd::Overload => "OVERLOAD",
            SessionEnd::RapidReset => "RAPID_RESET",
        }
    }
}

/// Ends with the connection.
pub(crate) struct SessionRecords {
    task: Rc<TaskRecords>,
    began: Moment,
    /// Of the listener.
    name: Arc<str>,
    closing: Cell<SessionEnd>,
}

impl SessionRecords {
    /// Of a connection that has just been accepted, if anybody wants records.
    pub(crate) fn begin(
        core: &Core,
        addresses: impl FnOnce() -> ConnectionAddresses,
        name: Option<&Arc<str>>,
        is_proxied: bool,
    ) -> Option<SessionRecords> {
        core.records.as_ref()?;
        let (began, addresses) = (Moment::now(), addresses());
        let task = TaskRecords::begin(core, None, xids::next(&core.xids), began)?;
        let name = name.map_or_else(|| "a0".into(), Arc::clone);
        task.put(RecordKind::Begin, &[if is_proxied { b"sess 0 PROXY" } else { b"sess 0 HTTP/1" }]);
        let (remote, local) = (addresses.remote, addresses.local);
        let us = core.clock().wall_micros(began);
        task.write(
            RecordKind::SessOpen,
            format_args!(
                "{} {} {name} {} {} {}.{:06} {}",
                remote.ip(),
                remote.port(),
                local.ip(),
                local.port(),
                us / 1_000_000,
                us % 1_000_000,
                addresses.descriptor
            ),
        );
        task.hand_over();
        Some(SessionRecords { task, began, name, closing: Cell::new(SessionEnd::Remote) })
    }

    pub(crate) fn xid(&self) -> u64 {
        self.task.xid()
    }

    pub(crate) fn listener(&self) -> &str {
        &self.name
    }

    /// A request has come on it.
    pub(crate) fn link(&self, request: u64) {
        received_as(&self.task, RecordKind::Link, request);
        self.task.hand_over();
    }

    /// What a PROXY header said, of this version.
    pub(crate) fn proxied(&self, version: u8, said: Option<(SocketAddr, SocketAddr)>) {
        match said {
            None => self.task.write(RecordKind::Proxy, format_args!("{version} local local local local")),
            Some((client, server)) => self.task.write(
                RecordKind::Proxy,
                format_args!("{version} {} {} {} {}", client.ip(), client.port(), server.ip(), server.port()),
            ),
        }
        self.task.hand_over();
    }

    /// What is wrong with a PROXY header.
    pub(crate) fn proxy_garbage(&self, complaint: &str) {
        self.task.put(RecordKind::ProxyGarbage, &[complaint.as_bytes()]);
        self.task.hand_over();
    }

    /// Does anybody read such records?
    pub(crate) fn wants(&self, kind: RecordKind) -> bool {
        self.task.wants(kind)
    }

    /// A frame, as far as anybody reads them. It is handed over with others. False: nobody does.
    pub(crate) fn frame(&self, (head_kind, head): (RecordKind, &[u8]), (body_kind, body): (RecordKind, &[u8])) -> bool {
        let (wants_head, wants_body) = (self.wants(head_kind), self.wants(body_kind) && !body.is_empty());
        if wants_head {
            self.task.put(head_kind, &[head]);
        }
        if wants_body {
            self.task.put(body_kind, &[body]);
        }
        wants_head || wants_body
    }

    /// Something for those who look for a fault, unless nobody does.
    pub(crate) fn debug(&self, text: fmt::Arguments<'_>) {
        if self.wants(RecordKind::Debug) {
            self.task.write(RecordKind::Debug, text);
            self.task.hand_over();
        }
    }

    /// Why an HTTP/2 connection was ended.
    pub(crate) fn broke(&self, error: &ConnectionError) {
        self.task.put(RecordKind::Error, &[b"HTTP/2: ", error.token.as_bytes()]);
        self.closes(SessionEnd::of_http2(error));
    }

    /// What was carried beside the requests.
    pub(crate) fn account(&self, carried: Carried) {
        self.task.count(|account| *account = carried);
        self.task.say_account(RecordKind::ReqAcct);
    }

    pub(crate) fn hand_over(&self) {
        self.task.hand_over();
    }

    /// The last word counts.
    pub(crate) fn closes(&self, why: SessionEnd) {
        self.closing.set(why);
    }
}

impl Drop for SessionRecords {
    fn drop(&mut self) {
        let micros = self.began.micros_until(Moment::now());
        let name = self.closing.get().name();
        self.task
            .write(RecordKind::SessClose, format_args!("{name} {}.{:03}", micros / 1_000_000, micros / 1_000 % 1_000));
        self.task.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_http2_connection_ends_for_varnish_s_reasons() {
        for (code, token, name) in [
            (ErrorCode::EnhanceYourCalm, "flood-of-resets", "RAPID_RESET"),
            (ErrorCode::EnhanceYourCalm, "flood-of-stream-errors", "RAPID_RESET"),
            (ErrorCode::EnhanceYourCalm, "flood-of-pings", "OVERLOAD"),
            (ErrorCode::FlowControlError, "stream-window-overflow", "OVERLOAD"),
            (ErrorCode::CompressionError, "index-unknown", "RX_JUNK"),
            (ErrorCode::ProtocolError, "push-unasked", "RX_JUNK"),
        ] {
            assert_eq!(SessionEnd::of_http2(&ConnectionError { code, token }).name(), name, "{token}");
        }
    }
}
