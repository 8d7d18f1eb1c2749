//! Sending a reply over HTTP/1.1, and all that can be done to it on the way: cut, reset, stopped, dripped, wrong, too much.
//!
//! A body is made by the block while it is sent. Whoever reads nothing for long is given up.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::ready;

use tokio::io::AsyncWrite;
use tokio::time::{sleep, timeout};
use wire::{CHUNK_END, LAST_CHUNK_AND_END};

use crate::fake_origin::body_blocks::BodyBlocks;
use crate::fake_origin::origin_desk::OriginDesk;
use crate::fake_origin::origin_plan::{Ending, Place};
use crate::fake_origin::origin_reply::Reply;
use crate::fake_origin::origin_socket::OriginSocket;
use crate::lab_clock::Nanos;
use crate::limits::ORIGIN_WRITE_PATIENCE;

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All was sent that was to be.
    Whole,
    /// As a fault has it; the connection is over.
    Faulty(Ending),
    /// The client left, or reads nothing.
    Gone,
    /// Over HTTP/2: refused, or left undone by a GOAWAY.
    Undone,
}

impl Ended {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Ended::Whole => "whole",
            Ended::Faulty(Ending::Cut) => "cut",
            Ended::Faulty(Ending::Reset) => "reset",
            Ended::Faulty(Ending::Stop) => "stopped",
            Ended::Gone => "gone",
            Ended::Undone => "undone",
        }
    }
}

/// What was delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    pub(crate) ended: Ended,
    pub(crate) body_bytes: u64,
    /// When the last piece was about to be given to the kernel: no client can have had it before.
    pub(crate) answered: Nanos,
}

/// Sends it, but for an end by fault, which is the socket's.
pub(crate) async fn deliver(socket: &mut OriginSocket, desk: &OriginDesk, reply: &Reply) -> Delivered {
    let answered = Nanos::now();
    if let Some((ending, Place::Head)) = reply.faults.ending {
        return Delivered { ended: Ended::Faulty(ending), body_bytes: 0, answered };
    }
    let date_and_end = desk.date_and_end();
    if send(socket, [&reply.head, &date_and_end, &[]]).await.is_err() {
        return Delivered { ended: Ended::Gone, body_bytes: 0, answered };
    }
    let mut delivered = Delivered { ended: Ended::Whole, body_bytes: 0, answered };
    let outcome = send_body(socket, desk, reply, &mut delivered).await;
    delivered.ended = match (outcome, reply.faults.ending) {
        (Err(_), _) => Ended::Gone,
        (Ok(()), Some((ending, _))) => Ended::Faulty(ending),
        (Ok(()), None) => Ended::Whole,
    };
    delivered
}

async fn send_body(
    socket: &mut OriginSocket,
    desk: &OriginDesk,
    reply: &Reply,
    delivered: &mut Delivered,
) -> io::Result<()> {
    let (mut body, mut block) = (BodyBlocks::of(reply), Vec::new());
    if body.is_empty() && reply.faults.ending.is_none() {
        append_end(&mut block, reply);
        return send(socket, [&block, &[], &[]]).await;
    }
    while let Some(length) = body.due(desk).await {
        block.clear();
        if reply.chunked {
            block.extend_from_slice(format!("{length:x}\r\n").as_bytes());
        }
        body.append(length, &mut block);
        if reply.chunked {
            block.extend_from_slice(CHUNK_END);
        }
        if body.is_whole() {
            append_end(&mut block, reply);
        }
        delivered.answered = Nanos::now();
        send(socket, [&block, &[], &[]]).await?;
        delivered.body_bytes = body.sent;
    }
    Ok(())
}

/// The last chunk, and what a fault puts behind the end: with the last bytes before it, so that it cannot be taken for
/// something that answers the next request.
fn append_end(block: &mut Vec<u8>, reply: &Reply) {
    if reply.chunked && !reply.bodiless {
        block.extend_from_slice(LAST_CHUNK_AND_END);
    }
    block.resize(block.len() + reply.faults.extra as usize, b'+');
}

/// Nothing is answered while the origin stalls; another stall may begin as one ends.
pub(crate) async fn wait_for_stall(desk: &OriginDesk) {
    while let Some(rest) = desk.stall() {
        sleep(rest).await;
    }
}

/// All of the parts, as one segment where that is possible.
#[inline]
pub(crate) async fn send(socket: &mut OriginSocket, mut parts: [&[u8]; 3]) -> io::Result<()> {
    let all = poll_fn(|cx| {
        while parts.iter().any(|part| !part.is_empty()) {
            let mut written = ready!(Pin::new(&mut *socket).poll_write_vectored(cx, &parts.map(IoSlice::new)))?;
            for part in &mut parts {
                let of_this = written.min(part.len());
                *part = &part[of_this..];
                written -= of_this;
            }
        }
        // What TLS has taken, the kernel may not have yet.
        Pin::new(&mut *socket).poll_flush(cx)
    });
    timeout(ORIGIN_WRITE_PATIENCE, all).await?
}
