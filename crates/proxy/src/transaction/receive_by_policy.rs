//! Receive under a policy, where its vcl_recv looks at the request's body: that is read first, whole, up to what the
//! program says it wants, so that it can be sent again by restarts and retries.

use std::future::poll_fn;

use bytes::{Bytes, BytesMut};
use wire::RequestBody;

use crate::connection::Connection;
use crate::fetch::Broken;
use crate::request_body::BodyRead;
use crate::transaction::synth::Synth;
use crate::transaction::{Step, Transaction, transmit};
use crate::vcl_story::client_steps;

/// Whether a body is to be read before vcl_recv runs, and how much of it.
pub(crate) fn body_wanted(tx: &Transaction) -> Option<u64> {
    let state = tx.vcl.as_deref()?;
    let bytes_max = state.site.loaded.request_body_bytes_wanted()?;
    match tx.body {
        _ if state.body.is_some() => None,
        RequestBody::None => None,
        // Too long to be kept: it goes by as it comes, and the program hears that it is not there.
        RequestBody::Length(length) if length > bytes_max => None,
        _ => Some(bytes_max),
    }
}

pub(crate) async fn run(tx: &mut Transaction, connection: &mut Connection) -> Step {
    let Some(bytes_max) = body_wanted(tx) else { return client_steps::recv(tx) };
    // Who has begun to send does not wait.
    let waits = tx.expects_continue && connection.pending.is_empty();
    if waits && !connection.send_interim(tx.head.version, b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()).await {
        connection.exchange(wire::Event::AnswerCut);
        return Step::Log(transmit::End::ClientLeft);
    }
    tx.expects_continue = false;
    match read_whole(connection, bytes_max).await {
        Ok(Some(body)) => {
            if let Some(state) = tx.vcl.as_deref_mut() {
                if let Some(records) = &state.records {
                    records.stamp("ReqBody");
                }
                state.body = Some(body);
            }
            client_steps::recv(tx)
        }
        Ok(None) => Step::Synth(Synth::body_not_kept(bytes_max)),
        Err(Broken::ClientFault(refusal)) => {
            connection.exchange(wire::Event::ReadBroken);
            tx.persistent = false;
            Step::Synth(Synth::refused(&refusal))
        }
        Err(Broken::ClientLeft | Broken::Origin(_)) => {
            connection.exchange(wire::Event::AnswerCut);
            Step::Log(transmit::End::ClientLeft)
        }
    }
}

/// `None`: it is longer.
pub(crate) async fn read_whole(connection: &mut Connection, bytes_max: u64) -> Result<Option<Bytes>, Broken> {
    let mut body = BytesMut::new();
    loop {
        match poll_fn(|cx| connection.poll_body(cx)).await? {
            BodyRead::Data(bytes) => {
                body.extend_from_slice(&bytes);
                if body.len() as u64 > bytes_max {
                    return Ok(None);
                }
            }
            BodyRead::End(_) => return Ok(Some(body.freeze())),
        }
    }
}
