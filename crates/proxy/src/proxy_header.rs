//! The PROXY protocol header in front of the first request, on listeners that expect one: it says who the client is.

use std::net::SocketAddr;
use std::rc::Rc;

use message::Version;
use rules::forwarded::UNKNOWN_ADDRESS;
use wire::proxy_triples::ProxyTriples;
use wire::{ProxyHeader, Refusal, proxy_complaint, read_proxy_header, refusals};

use crate::access_log::CacheVerdict;
use crate::connection::Connection;
use crate::peer::Peer;
use crate::records::session_records::SessionEnd;
use crate::slots::Phase;
use crate::transaction::log;

/// Reads the header. False when there is none: the connection is closed without an answer.
pub(crate) async fn read(connection: &mut Connection) -> bool {
    connection.slot.phase.set(Phase::Reading);
    loop {
        match read_proxy_header(&connection.pending, connection.is_varnishd_s()) {
            Ok(Some(header)) => {
                take(connection, &header);
                connection.slot.phase.set(Phase::Waiting);
                return true;
            }
            Ok(None) => {}
            Err(refusal) => {
                refuse(connection, &refusal);
                return false;
            }
        }
        if !connection.read_first_bytes().await {
            return false;
        }
    }
}

fn take(connection: &mut Connection, header: &ProxyHeader) {
    let is_text = connection.pending.starts_with(b"PROXY ");
    if let Some(session) = connection.session() {
        let version = if is_text { 1 } else { 2 };
        match proxy_complaint(&connection.pending).filter(|_| !is_text) {
            Some(complaint) => session.proxy_garbage(&complaint),
            None => session.proxied(version, header.source.zip(header.destination)),
        }
    }
    let said = ProxyTriples::of(&connection.pending[..header.bytes]);
    connection.pending.drain(..header.bytes);
    if !header.is_local {
        connection.peer = header.source.map_or(Peer::UNNAMED, Peer::of);
    }
    if !header.is_local || said.is_some() {
        let mut addresses = connection.own_addresses();
        if !header.is_local {
            addresses.client = header.source.unwrap_or(SocketAddr::new(UNKNOWN_ADDRESS, 0));
        }
        addresses.server = header.destination.unwrap_or(addresses.server);
        addresses.said = said.map(Rc::new);
        addresses.is_by_header = !header.is_local;
        connection.addresses = Some(Rc::new(addresses));
    }
}

fn refuse(connection: &Connection, refusal: &Refusal) {
    let core = &connection.core;
    core.counters.answered(CacheVerdict::Refused);
    log::refused(core, (connection.peer, None), (refusal, None), (Version::Http11, 0));
    let is_too_large = *refusal == refusals::PROXY_HEADER_TOO_LARGE;
    connection.closes(if is_too_large { SessionEnd::Overflow } else { SessionEnd::Junk });
    if let (Some(session), Some(complaint)) = (connection.session(), proxy_complaint(&connection.pending)) {
        session.proxy_garbage(&complaint);
    }
}
