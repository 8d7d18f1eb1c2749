//! What is said on a fresh connection before anything else: a preamble, a PROXY header with the client's address, and the handshake of
//! TLS. It counts as part of connecting; what it means to the origin is not known here.

use tls::ClientTls;
use tokio::io::AsyncWriteExt;
use wire::{Parties, ProxyVersion, write_proxy_header};

use super::Call;
use super::dial::{DialAddress, dial, failed};
use super::opening_times::clamped;
use super::origin_error::OriginErrorKind;
use crate::clock::Moment;
use crate::settings::Greeting;
use crate::socket::Socket;

/// A connection on which all of that has been said.
pub struct Greeted {
    pub socket: Socket,
    /// How long the handshake of TLS took, if there was one.
    pub tls_micros: u32,
}

pub async fn dial_and_greet(
    place: &DialAddress,
    greeting: &Greeting,
    tls: Option<&ClientTls>,
    call: &Call<'_>,
) -> Result<Greeted, OriginErrorKind> {
    dial(place, call.connect_timeout, async |mut stream| {
        let mut words = greeting.preamble.clone();
        if let Some(version) = greeting.proxy_header {
            write_proxy_header(version, call.parties.or_else(|| own_parties(version, &stream)), &mut words);
        }
        if !words.is_empty() {
            stream.write_all(&words).await.map_err(failed)?;
        }
        match tls {
            None => Ok(Greeted { socket: stream, tls_micros: 0 }),
            Some(tls) => {
                let began = Moment::now();
                // Boxed, so that a connection in the clear carries none of it.
                let socket =
                    Box::pin(stream.agreed(tls.begin())).await.map_err(|fault| OriginErrorKind::Tls { fault })?;
                Ok(Greeted { socket, tls_micros: clamped(began.micros_until(Moment::now())) })
            }
        }
    })
    .await
}

/// Version 2 has a word for a connection that is nobody's but ours. Version 1 has only "unknown", which some servers
/// refuse: there we are the client.
fn own_parties(version: ProxyVersion, stream: &Socket) -> Option<Parties> {
    match (version, stream) {
        (ProxyVersion::One, stream) if stream.is_tcp() => {
            let (destination, source) = stream.addresses();
            Some(Parties { source, destination })
        }
        _ => None,
    }
}
