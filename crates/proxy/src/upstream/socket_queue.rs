//! What is on its way to an origin that has a connection of its own: written as fast as the socket takes it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::AsyncWrite;

use crate::origin::OriginConnection;

/// Writes all of it. A request nearly always fits into what the kernel takes at once, and a connection that was just opened would be waited for
/// until the runtime has looked at it.
pub(super) async fn write_all(connection: &mut OriginConnection, bytes: &[u8]) -> io::Result<()> {
    let mut sent = match connection.stream.write_at_once(bytes) {
        Ok(written) => {
            connection.carried().sent(written);
            written
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(error) => return Err(error),
    };
    poll_fn(|cx| {
        while sent < bytes.len() {
            match ready!(Pin::new(&mut connection.stream).poll_write(cx, &bytes[sent..])) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(written) => {
                    connection.carried().sent(written);
                    sent += written;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    })
    .await
}

/// Ready when the socket has all of the queue.
pub(super) fn poll_queue(
    connection: &mut OriginConnection,
    queue: &mut VecDeque<Bytes>,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while let Some(first) = queue.front_mut() {
        match ready!(Pin::new(&mut connection.stream).poll_write(cx, first))? {
            0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            written => {
                connection.carried().sent(written);
                let _ = first.split_to(written);
                if first.is_empty() {
                    queue.pop_front();
                }
            }
        }
    }
    Poll::Ready(Ok(()))
}
