//! Send: a connection to the origin and the head of the request on it. The body, if there is one, goes up while the
//! reply is awaited.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;

use tokio::io::AsyncWrite;

use crate::clock::Moment;
use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::fetch::retry::Lost;
use crate::fetch::{Fetch, failed};
use crate::origin::{Call, OriginConnection, OriginFailure, Reuse};
use crate::records::fetch_records;

/// Connects and writes the head.
pub(crate) async fn run(fetch: &mut Fetch, client: &mut ClientLink<'_>, head: &[u8]) -> Result<OriginConnection, Lost> {
    let reuse = if fetch.wants_fresh_connection { Reuse::Fresh } else { Reuse::Allowed };
    let handle = fetch.core.handle();
    let connected = {
        let call = Call { reuse, connect_timeout: fetch.timeouts.connect, parties: fetch.parties() };
        let mut connecting = pin!(fetch.origin().call(&handle, call));
        poll_fn(|cx| {
            if let Poll::Ready(connected) = connecting.as_mut().poll(cx) {
                return Poll::Ready(Some(connected));
            }
            if client.has_left(cx) { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    };
    let mut connection = match connected {
        None => return Err(Lost::for_good(Broken::ClientLeft)),
        Some(Err(error)) => return Err(Lost::unconnected(Broken::Origin(failed::unconnected(&error)))),
        Some(Ok(connection)) => connection,
    };
    if let Some(records) = fetch.records() {
        fetch_records::opened(records, &fetch.origin().name, &connection);
    }
    fetch.core.counters.origin_requests.add(1);
    fetch.sent = Moment::now();
    let limit = fetch.timeouts.first_byte;
    match tokio::time::timeout(limit, write_all(&mut connection, head)).await {
        Ok(Ok(())) => {
            if let Some(records) = fetch.records() {
                fetch_records::sent(records, head.len(), fetch.body);
            }
            Ok(connection)
        }
        Ok(Err(_)) => Err(died(fetch, connection, false)),
        Err(_) => {
            connection.failed(&fetch.core.handle(), OriginFailure::FirstByte);
            Err(Lost::for_good(Broken::Origin(failed::silent(fetch.origin(), &connection, limit))))
        }
    }
}

/// The connection ended before a byte of an answer.
pub(crate) fn died(fetch: &Fetch, connection: OriginConnection, body_was_taken: bool) -> Lost {
    fetch_records::lost(fetch.records(), &fetch.origin().name, &connection);
    if !connection.reused {
        connection.failed(&fetch.core.handle(), OriginFailure::FirstByte);
    }
    Lost {
        broken: Broken::Origin(failed::hung_up(fetch.origin(), &connection)),
        on_dead_pooled_connection: connection.reused,
        body_was_taken,
        unconnected: false,
    }
}

async fn write_all(connection: &mut OriginConnection, bytes: &[u8]) -> io::Result<()> {
    let mut sent = 0;
    poll_fn(|cx| {
        while sent < bytes.len() {
            match Pin::new(&mut connection.stream).poll_write(cx, &bytes[sent..]) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => sent += written,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    })
    .await
}
