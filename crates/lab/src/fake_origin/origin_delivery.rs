//! Sending a reply, and all that can be done to it on the way: cut, reset, stopped, dripped, wrong, too much.
//!
//! A body is made by the block while it is sent. Whoever reads nothing for long is given up.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::ready;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use wire::{CHUNK_END, LAST_CHUNK_AND_END};

use crate::constructed_body::append_constructed;
use crate::fake_origin::origin_desk::OriginDesk;
use crate::fake_origin::origin_plan::{Ending, Place};
use crate::fake_origin::origin_reply::Reply;
use crate::lab_clock::Nanos;
use crate::limits::{DRIP_STEP, ORIGIN_BLOCK_BYTES, ORIGIN_IDLE, ORIGIN_LINGER, ORIGIN_WRITE_PATIENCE};

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All was sent that was to be.
    Whole,
    /// As a fault has it; the connection is over.
    Faulty(Ending),
    /// The client left, or reads nothing.
    Gone,
}

impl Ended {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Ended::Whole => "whole",
            Ended::Faulty(Ending::Cut) => "cut",
            Ended::Faulty(Ending::Reset) => "reset",
            Ended::Faulty(Ending::Stop) => "stopped",
            Ended::Gone => "gone",
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

/// Sends it, but for an end by fault, which is `end_by_fault`'s.
pub(crate) async fn deliver(stream: &mut TcpStream, desk: &OriginDesk, reply: &Reply) -> Delivered {
    let answered = Nanos::now();
    if let Some((ending, Place::Head)) = reply.faults.ending {
        return Delivered { ended: Ended::Faulty(ending), body_bytes: 0, answered };
    }
    let date_and_end = desk.date_and_end();
    if send(stream, [&reply.head, &date_and_end, &[]]).await.is_err() {
        return Delivered { ended: Ended::Gone, body_bytes: 0, answered };
    }
    let whole = reply.to - reply.from;
    let most = match reply.faults.ending {
        Some((_, Place::Body(most))) => whole.min(most),
        _ => whole,
    };
    let mut delivered = Delivered { ended: Ended::Whole, body_bytes: 0, answered };
    let outcome = send_body(stream, desk, reply, most, &mut delivered).await;
    delivered.ended = match (outcome, reply.faults.ending) {
        (Err(_), _) => Ended::Gone,
        (Ok(()), Some((ending, _))) => Ended::Faulty(ending),
        (Ok(()), None) => Ended::Whole,
    };
    delivered
}

async fn send_body(
    stream: &mut TcpStream,
    desk: &OriginDesk,
    reply: &Reply,
    most: u64,
    delivered: &mut Delivered,
) -> io::Result<()> {
    let block_bytes = match reply.faults.drip {
        Some(rate) => ((rate as f64 * DRIP_STEP.as_secs_f64()) as u64).clamp(1, ORIGIN_BLOCK_BYTES),
        None => ORIGIN_BLOCK_BYTES,
    };
    let begun = Nanos::now();
    let (mut sent, mut block) = (0, Vec::new());
    if most == 0 && reply.faults.ending.is_none() {
        append_end(&mut block, reply);
        return send(stream, [&block, &[], &[]]).await;
    }
    while sent < most {
        if let Some(rate) = reply.faults.drip {
            let due = begun.after(Duration::from_secs_f64(sent as f64 / rate as f64));
            sleep(Nanos::now().until(due)).await;
        }
        if sent > 0 {
            wait_for_stall(desk).await;
        }
        let from = reply.from + sent;
        let to = from + block_bytes.min(most - sent);
        block.clear();
        if reply.chunked {
            block.extend_from_slice(format!("{:x}\r\n", to - from).as_bytes());
        }
        let data_at = block.len();
        append_constructed(&mut block, reply.seed, from, to);
        if let Some(flip) = reply.faults.flip.filter(|flip| (from..to).contains(flip)) {
            block[data_at + (flip - from) as usize] ^= 1;
        }
        if reply.chunked {
            block.extend_from_slice(CHUNK_END);
        }
        if to == reply.to && reply.faults.ending.is_none() {
            append_end(&mut block, reply);
        }
        delivered.answered = Nanos::now();
        send(stream, [&block, &[], &[]]).await?;
        sent = to - reply.from;
        delivered.body_bytes = sent;
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

/// The end of a connection, as a fault has it.
pub(crate) async fn end_by_fault(mut stream: TcpStream, ending: Ending) {
    match ending {
        // A reset may overtake what was sent, if that is still on its way: the client must read it first.
        Ending::Cut => linger(stream).await,
        Ending::Reset => {
            let _ = set_socket_linger(&stream, Some(Duration::ZERO));
        }
        Ending::Stop => {
            let mut rest = [0; 1_024];
            let until_gone = async { while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {} };
            let _ = timeout(ORIGIN_IDLE, until_gone).await;
        }
    }
}

/// Closes so that what was sent arrives, although the client may still be sending.
pub(crate) async fn linger(mut stream: TcpStream) {
    let mut rest = [0; 1_024];
    let closing = async {
        let _ = stream.shutdown().await;
        while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
    };
    let _ = timeout(ORIGIN_LINGER, closing).await;
}

/// All of the parts, as one segment where that is possible.
#[inline]
pub(crate) async fn send(stream: &mut TcpStream, mut parts: [&[u8]; 3]) -> io::Result<()> {
    let all = poll_fn(|cx| {
        while parts.iter().any(|part| !part.is_empty()) {
            let mut written = ready!(Pin::new(&mut *stream).poll_write_vectored(cx, &parts.map(IoSlice::new)))?;
            for part in &mut parts {
                let of_this = written.min(part.len());
                *part = &part[of_this..];
                written -= of_this;
            }
        }
        io::Result::Ok(()).into()
    });
    timeout(ORIGIN_WRITE_PATIENCE, all).await?
}
