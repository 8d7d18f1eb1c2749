//! Leaving a connection on which the client may still be sending.
//!
//! Closing with unread bytes makes the kernel send a reset, which destroys the answer on its way (RFC 9112 §9.6). So
//! our side is shut first, and what still comes is read and thrown away, for a while and up to an amount.

use std::future::poll_fn;
use std::task::Poll;

use crate::clock::deadline_now_ms;
use crate::connection::Connection;
use crate::request_body::BodyRead;

/// Reads the rest of a request's body and throws it away. True when all of it was short enough and came in time.
pub(crate) async fn drain(connection: &mut Connection) -> bool {
    let (timeout_ms, bytes_max) = limits(connection);
    drain_within(connection, timeout_ms, bytes_max).await
}

/// The same within other limits.
pub(crate) async fn drain_within(connection: &mut Connection, timeout_ms: u64, bytes_max: u64) -> bool {
    let end_ms = deadline_now_ms() + timeout_ms;
    connection.slot.set_deadline(end_ms);
    connection.lingers = true;
    let mut left = bytes_max;
    let drained = poll_fn(|cx| {
        loop {
            match connection.poll_body(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(BodyRead::End(_))) => return Poll::Ready(true),
                // The slot is looked at a few times a second only.
                Poll::Ready(Ok(BodyRead::Data(_))) if deadline_now_ms() > end_ms => return Poll::Ready(false),
                Poll::Ready(Ok(BodyRead::Data(data))) => match left.checked_sub(data.len() as u64) {
                    Some(rest) => left = rest,
                    None => return Poll::Ready(false),
                },
                Poll::Ready(Err(_)) => return Poll::Ready(false),
            }
        }
    })
    .await;
    connection.lingers = false;
    drained
}

/// Shuts our side and waits for the client's end.
pub(crate) async fn close(connection: &mut Connection) {
    let (timeout_ms, bytes_max) = limits(connection);
    connection.slot.set_deadline(deadline_now_ms() + timeout_ms);
    connection.pending = Vec::new();
    let mut left = bytes_max;
    let core = std::rc::Rc::clone(&connection.core);
    let mut shut = false;
    poll_fn(|cx| {
        if !shut {
            match connection.socket.poll_shutdown(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(_) => shut = true,
            }
        }
        loop {
            let mut scratch = core.scratch.borrow_mut();
            match connection.socket.poll_read(cx, &mut scratch) {
                Poll::Ready(Ok(read)) if read > 0 => match left.checked_sub(read as u64) {
                    Some(rest) => left = rest,
                    None => return Poll::Ready(()),
                },
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending if connection.slot.must_end() => return Poll::Ready(()),
                Poll::Pending => {
                    connection.slot.park(cx.waker());
                    return Poll::Pending;
                }
            }
        }
    })
    .await
}

fn limits(connection: &Connection) -> (u64, u64) {
    let limits = &connection.core.site_ref().settings.limits;
    (limits.linger_timeout.as_millis() as u64, limits.linger_bytes_max)
}
