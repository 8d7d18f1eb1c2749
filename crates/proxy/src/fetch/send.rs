//! Send: a connection to the origin and the head of the request on it. The body, if there is one, goes up while the
//! reply is awaited.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;

use crate::clock::Moment;
use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::fetch::retry::Lost;
use crate::fetch::{Fetch, failed};
use crate::origin::{Call, OriginFailure, Reuse};
use crate::records::fetch_records;
use crate::upstream::{Unanswered, Upstream};

/// Connects and writes the head.
pub(crate) async fn run(fetch: &mut Fetch, client: &mut ClientLink<'_>) -> Result<Upstream, Lost> {
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
    let mut upstream = match connected {
        None => return Err(Lost::for_good(Broken::ClientLeft)),
        Some(Err(error)) => return Err(Lost::unconnected(Broken::Origin(failed::unconnected(&error)))),
        Some(Ok(connection)) => Upstream::from(connection),
    };
    if let Some(records) = fetch.records() {
        fetch_records::opened(records, &fetch.origin().name, &upstream);
    }
    fetch.core.counters.origin_requests.add(1);
    fetch.sent = Moment::now();
    let limit = fetch.timeouts.first_byte;
    match tokio::time::timeout(limit, write_request(fetch, &mut upstream)).await {
        Ok(Ok(head_bytes)) => {
            if let Some(records) = fetch.records() {
                fetch_records::sent(records, head_bytes, fetch.body);
            }
            Ok(upstream)
        }
        Ok(Err(_)) => Err(unanswered(fetch, upstream, Unanswered::Ended { heard: false }, false)),
        Err(_) => {
            upstream.failed(&fetch.core.handle(), OriginFailure::FirstByte);
            Err(Lost::for_good(Broken::Origin(failed::silent(fetch.origin(), &upstream, limit))))
        }
    }
}

/// Writes the request as its connection has it. Returns how many bytes that are.
async fn write_request(fetch: &Fetch, upstream: &mut Upstream) -> io::Result<usize> {
    match upstream {
        Upstream::Http1(exchange) => {
            let request = fetch.asked().to_bytes();
            exchange.send(&request).await.map(|()| request.len())
        }
    }
}

/// The exchange came to nothing before its final head.
pub(crate) fn unanswered(fetch: &Fetch, upstream: Upstream, why: Unanswered, body_was_taken: bool) -> Lost {
    let (failure, broken) = match why {
        Unanswered::Ended { heard: false } => return died(fetch, upstream, body_was_taken),
        Unanswered::Ended { heard: true } => (OriginFailure::Truncated, failed::hung_up(fetch.origin(), &upstream)),
        Unanswered::Garbled(refusal) => {
            (OriginFailure::Protocol, failed::garbled(fetch.origin(), &upstream, &refusal.of_origin()))
        }
    };
    upstream.failed(&fetch.core.handle(), failure);
    Lost::for_good(Broken::Origin(broken))
}

/// The connection ended before a byte of an answer.
fn died(fetch: &Fetch, upstream: Upstream, body_was_taken: bool) -> Lost {
    fetch_records::lost(fetch.records(), &fetch.origin().name, &upstream);
    if !upstream.is_reused() {
        upstream.failed(&fetch.core.handle(), OriginFailure::FirstByte);
    }
    Lost {
        broken: Broken::Origin(failed::hung_up(fetch.origin(), &upstream)),
        on_dead_pooled_connection: upstream.is_reused(),
        body_was_taken,
        unconnected: false,
    }
}
