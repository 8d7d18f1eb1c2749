//! What is said on a fresh connection before anything else: a preamble, and a PROXY header with the client's address.
//! It counts as part of connecting; what it means to the origin is not known here.

use tokio::io::AsyncWriteExt;
use wire::{Parties, ProxyVersion, write_proxy_header};

use super::Call;
use super::dial::{DialAddress, dial};
use super::origin_error::OriginErrorKind;
use super::origin_stream::OriginStream;
use crate::settings::Greeting;

pub async fn dial_and_greet(
    place: &DialAddress,
    greeting: &Greeting,
    call: &Call,
) -> Result<OriginStream, OriginErrorKind> {
    dial(place, call.connect_timeout, async |mut stream| {
        let mut words = greeting.preamble.clone();
        if let Some(version) = greeting.proxy_header {
            write_proxy_header(version, call.parties.or_else(|| own_parties(version, &stream)), &mut words);
        }
        if !words.is_empty() {
            stream.write_all(&words).await?;
        }
        Ok(stream)
    })
    .await
}

/// Version 2 has a word for a connection that is nobody's but ours. Version 1 has only "unknown", which some servers
/// refuse: there we are the client.
fn own_parties(version: ProxyVersion, stream: &OriginStream) -> Option<Parties> {
    match (version, stream) {
        (ProxyVersion::One, OriginStream::Tcp(stream)) => {
            Some(Parties { source: stream.local_addr().ok()?, destination: stream.peer_addr().ok()? })
        }
        _ => None,
    }
}
