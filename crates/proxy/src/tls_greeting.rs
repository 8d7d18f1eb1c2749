//! The handshake of TLS in front of the first request, on listeners that speak it.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use message::{Status, Version};
use tls::{Fault, Protocol};
use wire::{Persistence, Refusal, whole_answer};

use crate::access_log::CacheVerdict;
use crate::clock::deadline_now_ms;
use crate::connection::{Connection, DRAIN_IDLE_MS};
use crate::counters::CoreCounters;
use crate::records::session_records::SessionEnd;
use crate::slots::Phase;
use crate::tls_facts;
use crate::transaction::log;

const NOT_TLS: Refusal = Refusal { status: 400, token: "not-tls", limit: None };
/// What somebody reads who speaks HTTP where TLS is spoken.
const SPEAK_TLS: &str = "This address speaks HTTPS. Write https:// in front of it.\n";

/// Agrees with the client upon a session. False where that fails: the connection is closed.
pub(crate) async fn run(connection: &mut Connection) -> bool {
    let core = Rc::clone(&connection.core);
    let (timeout_ms, head_ms) = {
        let limits = &core.site_ref().settings.limits;
        (limits.tls_handshake_timeout.as_millis() as u64, limits.request_head_timeout.as_millis() as u64)
    };
    connection.slot.phase.set(Phase::Reading);
    connection.slot.set_deadline(deadline_now_ms() + timeout_ms);
    // What came behind a PROXY header.
    let mut early = std::mem::take(&mut connection.pending);
    let agreed = poll_fn(|cx| {
        let Some(tls) = connection.socket.tls_mut() else { return Poll::Ready(Ok(())) };
        match tls.poll_handshake(cx, &mut std::mem::take(&mut early)) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            Poll::Ready(Err(_)) => Poll::Ready(Err(tls.fault())),
            Poll::Pending if connection.slot.must_end() => Poll::Ready(Err(None)),
            Poll::Pending => {
                connection.slot.park(cx.waker());
                Poll::Pending
            }
        }
    })
    .await;
    if let Err(fault) = agreed {
        failed(connection, &core.counters, fault);
        return false;
    }
    core.counters.tls_handshakes.add(1);
    if let Some(tls) = connection.socket.tls_mut() {
        tls.settle();
    }
    if connection.socket.tls().is_some_and(|tls| tls.session().protocol() == Some(Protocol::AcmeChallenge)) {
        // RFC 8737 §3: there is nothing to be spoken inside.
        core.counters.acme_challenges_tls.add(1);
        connection.closes(SessionEnd::Response);
        return false;
    }
    if connection.socket.tls().is_some_and(|tls| tls.facts().is_some_and(|facts| facts.is_resumed)) {
        core.counters.tls_resumed.add(1);
    }
    if connection.is_early() {
        core.counters.tls_early.add(1);
    }
    if let (Some(addresses), Some(tls)) = (&mut connection.addresses, connection.socket.tls()) {
        // Of what a proxy told beside addresses nothing is nearer to the client than this.
        Rc::make_mut(addresses).said = Some(Rc::new(tls_facts::triples(tls.session())));
    }
    connection.slot.phase.set(Phase::Waiting);
    let patience_ms = if core.draining() { DRAIN_IDLE_MS } else { head_ms };
    connection.slot.set_deadline(deadline_now_ms() + patience_ms);
    true
}

/// Waits for the end of the handshake, for a request whose story must not begin before. False: it does not come.
pub(crate) async fn establish(connection: &mut Connection) -> bool {
    let core = Rc::clone(&connection.core);
    let timeout_ms = core.site_ref().settings.limits.tls_handshake_timeout.as_millis() as u64;
    connection.slot.set_deadline(deadline_now_ms() + timeout_ms);
    let ended = poll_fn(|cx| {
        let Some(tls) = connection.socket.tls_mut() else { return Poll::Ready(Ok(())) };
        match tls.poll_established(cx) {
            Poll::Ready(ended) => Poll::Ready(ended.map_err(|_| tls.fault())),
            Poll::Pending if connection.slot.must_end() => Poll::Ready(Err(None)),
            Poll::Pending => {
                connection.slot.park(cx.waker());
                Poll::Pending
            }
        }
    })
    .await;
    connection.slot.set_deadline(u64::MAX);
    ended.inspect_err(|fault| failed(connection, &core.counters, *fault)).is_ok()
}

/// `None`: the client has left, or took too long.
fn failed(connection: &mut Connection, counters: &CoreCounters, fault: Option<Fault>) {
    let Some(fault) = fault else {
        counters.tls_failed_left.add(1);
        return connection.closes(SessionEnd::Timeout);
    };
    match fault {
        Fault::NotTls => counters.tls_failed_not_tls.add(1),
        Fault::NothingInCommon => counters.tls_failed_nothing_in_common.add(1),
        Fault::NothingToShow => counters.tls_failed_no_certificate.add(1),
        Fault::Ended => counters.tls_failed_left.add(1),
        // What a client says that does not believe us.
        Fault::Alert(_) => counters.tls_failed_alert.add(1),
        Fault::NoCertificate
        | Fault::UnknownAuthority
        | Fault::Certificate
        | Fault::Expired
        | Fault::NotYetValid
        | Fault::OtherName => counters.tls_failed_client_certificate.add(1),
        Fault::Protocol | Fault::TooLarge => counters.tls_failed_protocol.add(1),
    }
    connection.closes(SessionEnd::Junk);
    if fault == Fault::NotTls {
        refuse_clear(connection);
    }
}

/// What came is no TLS.
fn refuse_clear(connection: &Connection) {
    let core = &connection.core;
    core.counters.answered(CacheVerdict::Refused);
    let fields = [("Content-Type", "text/plain; charset=utf-8")];
    let answer = whole_answer(Status(400), &fields, SPEAK_TLS.as_bytes(), true, Persistence::Close);
    // Who does not take so much is not waited for.
    let sent = connection.socket.try_write_clear(&answer).unwrap_or(0);
    core.counters.bytes_out.add(sent as u64);
    let body_bytes = if sent == answer.len() { SPEAK_TLS.len() as u64 } else { 0 };
    log::refused(core, (connection.peer, None), (&NOT_TLS, None), (Version::Http11, body_bytes));
}
