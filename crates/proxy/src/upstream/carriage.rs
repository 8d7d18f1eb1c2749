//! Where an exchange comes from: a connection of its own, or a stream of one that the core shares, by what the origin speaks and by what
//! the request needs.

use std::rc::Rc;

use crate::core::Core;
use crate::http2_asking;
use crate::origin::{Call, Connected, OpeningTimes, Origin, OriginError};
use crate::upstream::Upstream;
use crate::upstream::fastcgi_exchange::FastCgiExchange;
use crate::upstream::http2_exchange::Http2Exchange;

/// What a request needs of who carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carriage {
    /// That it is asked and answered.
    Any,
    /// A connection whose bytes flow freely once the origin says so, which over HTTP/2 is a stream that does (RFC 8441).
    WebSocket,
    /// A connection of HTTP/1, which ends with it, or whose bytes nobody frames.
    Http1,
}

/// Dropping the future gives everything back.
pub(crate) async fn open(
    core: &Rc<Core>,
    origin: &Origin,
    call: Call<'_>,
    carriage: Carriage,
) -> Result<Upstream, OriginError> {
    let handle = core.handle();
    if let Some(fastcgi) = origin.fastcgi() {
        let connection = origin.call(&handle, call).await?;
        return Ok(Upstream::FastCgi(Box::new(FastCgiExchange::new(connection, fastcgi))));
    }
    if carriage == Carriage::Http1 || !origin.may_speak_http2() {
        return origin.call(&handle, call).await.map(Upstream::from);
    }
    let exchange = match origin.share(&handle, call).await? {
        Connected::Alone(connection) => return Ok(Upstream::from(connection)),
        Connected::Stream(stream) => Http2Exchange::new(stream, OpeningTimes::default()),
        Connected::Shareable(connection, begun) => {
            let opening = connection.opening;
            Http2Exchange::new(http2_asking::begin(core, connection, begun), opening)
        }
    };
    if carriage == Carriage::WebSocket
        && !tokio::time::timeout(call.connect_timeout, exchange.takes_websockets()).await.unwrap_or(false)
    {
        drop(exchange);
        // The origin that speaks no HTTP/1 says so itself.
        return origin.call(&core.handle(), call).await.map(Upstream::from);
    }
    Ok(Upstream::Http2(Box::new(exchange)))
}
