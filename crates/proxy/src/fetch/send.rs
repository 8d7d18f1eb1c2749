//! Send: a connection to the origin and the head of the request on it. The body, if there is one, goes up while the
//! reply is awaited.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use crate::clock::Moment;
use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::fetch::retry::{Lost, LostBy};
use crate::fetch::{Fetch, affinity, failed};
use crate::in_time::in_time;
use crate::origin::{Call, OriginFailure, Reuse};
use crate::records::fetch_records;
use crate::upstream::carriage;
use crate::upstream::{NoAnswer, Upstream};

/// Connects and writes the head.
pub(crate) async fn run(fetch: &mut Fetch, client: &mut ClientLink<'_>) -> Result<Upstream, Lost> {
    if fetch.tries.is_kept() {
        let (origin, span) = (Arc::clone(&fetch.origin().name), fetch.try_span());
        fetch.tries.begin(origin, span);
    }
    let reuse = if fetch.wants_fresh_connection { Reuse::Fresh } else { Reuse::Allowed };
    let connected = {
        let affinity = affinity::of(fetch.origin(), &fetch.head, fetch.client);
        let avoid = fetch.owner.as_ref().map_or(&fetch.failed_at[..], |owner| &owner.avoid);
        let call =
            Call { reuse, affinity, avoid, connect_timeout: fetch.timeouts.connect.after, parties: fetch.parties() };
        let mut connecting = pin!(carriage::open(&fetch.core, fetch.origin(), call, fetch.carriage()));
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
        Some(Err(error)) => {
            fetch.tries.unconnected(&error);
            return Err(Lost::unconnected(Broken::Origin(failed::unconnected(&error, fetch.timeouts.connect))));
        }
        Some(Ok(upstream)) => upstream,
    };
    if let Some(records) = fetch.records() {
        fetch_records::opened(records, &fetch.origin().name, &upstream);
    }
    match fetch.owner {
        None => fetch.core.counters.origin_requests.add(1),
        Some(_) => fetch.core.counters.fleet_fetches.add(1),
    }
    fetch.origin().was_asked();
    fetch.sent = Moment::now();
    fetch.tries.opened(&upstream, fetch.sent);
    let limit = fetch.timeouts.first_byte.after;
    let written = in_time(limit, pin!(write_request(fetch, &mut upstream))).await;
    match written {
        Ok(Ok(head_bytes)) => {
            if let Some(records) = fetch.records() {
                fetch_records::sent(records, head_bytes, fetch.body);
            }
            Ok(upstream)
        }
        Ok(Err(why)) => Err(unanswered(fetch, upstream, why, false)),
        Err(_) => {
            upstream.failed(&fetch.core.handle(), OriginFailure::FirstByte);
            Err(silent(fetch, &upstream, false))
        }
    }
}

/// No answer began in time.
pub(crate) fn silent(fetch: &Fetch, upstream: &Upstream, body_was_taken: bool) -> Lost {
    let broken = Broken::Origin(failed::silent(fetch.origin(), upstream, fetch.timeouts.first_byte));
    Lost { broken, by: LostBy::Silence, body_was_taken, at: Some(Arc::clone(upstream.address())) }
}

/// Writes the request as its connection has it. Returns how many bytes that are.
async fn write_request(fetch: &Fetch, upstream: &mut Upstream) -> Result<usize, NoAnswer> {
    match upstream {
        Upstream::Http1(exchange) => {
            let request = fetch.asked().to_bytes();
            let sent = exchange.send(&request).await;
            sent.map(|()| request.len()).map_err(|_| NoAnswer::Ended { heard: false })
        }
        Upstream::Http2(exchange) => {
            let request = fetch.asked().to_stream(exchange.scheme()).map_err(NoAnswer::Unsendable)?;
            exchange.send(request)
        }
        Upstream::FastCgi(exchange) => {
            let records = fetch.asked_of_script();
            let sent = exchange.send(&records).await;
            sent.map(|()| records.len()).map_err(|_| NoAnswer::Ended { heard: false })
        }
    }
}

/// The exchange came to nothing before its final head.
pub(crate) fn unanswered(fetch: &Fetch, upstream: Upstream, why: NoAnswer, body_was_taken: bool) -> Lost {
    let origin = fetch.origin();
    let at = Arc::clone(upstream.address());
    let lost = |by, failure| Lost { broken: Broken::Origin(failure), by, body_was_taken, at: Some(at) };
    let (failure, broken) = match why {
        NoAnswer::Ended { heard: false } => return died(fetch, upstream, body_was_taken),
        NoAnswer::Ended { heard: true } => (OriginFailure::Truncated, failed::hung_up(origin, &upstream)),
        NoAnswer::Garbled(refusal) => {
            (OriginFailure::Protocol, failed::garbled(origin, &upstream, &refusal.of_origin()))
        }
        NoAnswer::Reset(code) => (OriginFailure::Truncated, failed::reset(origin, &upstream, code)),
        // The origin is well.
        NoAnswer::Unprocessed => return lost(LostBy::Unprocessed, failed::unprocessed(origin, &upstream)),
        NoAnswer::WantsHttp1 if origin.may_speak_http1() => {
            return lost(LostBy::WrongProtocol, failed::wants_http1(origin, &upstream));
        }
        NoAnswer::WantsHttp1 => return lost(LostBy::Other, failed::wants_http1(origin, &upstream)),
        NoAnswer::Unsendable(refusal) => return lost(LostBy::Other, failed::unsendable(origin, &refusal)),
    };
    upstream.failed(&fetch.core.handle(), failure);
    lost(LostBy::NoAnswer, broken)
}

/// The connection ended before a byte of an answer.
fn died(fetch: &Fetch, upstream: Upstream, body_was_taken: bool) -> Lost {
    fetch_records::lost(fetch.records(), &fetch.origin().name, &upstream);
    if !upstream.is_reused() {
        upstream.failed(&fetch.core.handle(), OriginFailure::FirstByte);
    }
    Lost {
        broken: Broken::Origin(failed::hung_up(fetch.origin(), &upstream)),
        by: if upstream.is_reused() { LostBy::DeadConnection } else { LostBy::NoAnswer },
        body_was_taken,
        at: Some(Arc::clone(upstream.address())),
    }
}
