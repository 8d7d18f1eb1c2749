//! A copy of a request for another origin. What comes is read to its end, for nobody.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;

use crate::fetch::Fetch;
use crate::fetch::begin::Requester;
use crate::fetch::broken::Broken;
use crate::fetch::purpose::Purpose;
use crate::upstream::OriginPiece;

/// Sends the copy, with this body. False: there was no whole answer in this time.
pub(crate) async fn send(requester: &Requester<'_>, body: Option<Bytes>, time_max: Duration) -> bool {
    let Ok(mut fetch) = Fetch::begin(requester, Purpose::Mirrored) else { return false };
    fetch.carried = body;
    let answered = tokio::time::timeout(time_max, ask(&mut fetch)).await;
    matches!(answered, Ok(Ok(())))
}

async fn ask(fetch: &mut Fetch) -> Result<(), Broken> {
    let mut body = fetch.ask().await?.body.into_body(fetch);
    loop {
        match poll_fn(|cx| body.poll_next(cx)).await {
            Ok(OriginPiece::Data(_) | OriginPiece::InBlock(_)) => {}
            Ok(OriginPiece::End(_)) => return Ok(()),
            Err(failure) => return Err(Broken::Origin(failure)),
        }
    }
}
