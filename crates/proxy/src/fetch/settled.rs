//! What a fetch comes to: an answer, where its body comes from, and what is decided about keeping it.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use cache::{EsiPage, Failure, Part};
use coding::Coding;
use message::{FieldName, Fields};
use rules::{Facts, Lifetimes, WhyNotStored};
use wire::{HopByHop, ResponseBody};

use crate::fetch::Fetch;
use crate::fetch::arrival::Arrival;
use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::fetch::esi_scan::{self, EsiWish};
use crate::fetch::fetched_body::FetchedBody;
use crate::fetch::origin_body::Arriving;
use crate::upstream::OriginPiece;
use crate::vcl_story::scope_heads::MadeHead;

/// An answer.
pub(crate) struct Settled {
    /// As the origin sent it, or as the program made it.
    pub(crate) made: MadeHead,
    pub(crate) body: SettledBody,
    pub(crate) arrival: Arrival,
    pub(crate) ruling: Ruling,
    /// Its head may go out before its body is here.
    pub(crate) streams: bool,
    /// Why the last attempt brought nothing, for the log; empty when it did.
    pub(crate) why: &'static str,
    /// It is to be looked through when it is here …
    pub(crate) esi: Option<EsiWish>,
    /// … and this was found.
    pub(crate) page: Option<Arc<EsiPage>>,
}

pub(crate) enum SettledBody {
    /// On its way from the origin.
    Origin(Arriving),
    /// The same, all of it: it was not to stream.
    Read(Bytes),
    /// What is stored: the origin confirmed it. `own`: what of the 304 its requester alone gets.
    Stored { own: Fields },
    /// The program's.
    Made(Bytes),
}

/// The facts of what may be stored by RFC 9111, and which part it is of a whole, if it is one; or why not.
pub(crate) type Storable = Result<(Facts, Option<Part>), WhyNotStored>;

/// What is decided about keeping an answer.
pub(crate) enum Ruling {
    /// RFC 9111 decides.
    Rules(Storable),
    /// The program does.
    Program { keeping: Keeping, lifetimes: Lifetimes },
}

/// Whether a program has an answer kept, or that it must not be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Keeping {
    Store,
    /// For its ttl requests for it go to the origin beside one another …
    HitForMiss,
    /// … or past the store.
    HitForPass,
    /// A pass.
    Not,
}

impl Keeping {
    /// What cannot be stored is hit-for-miss where it was to be stored.
    pub(crate) fn unless(self, cannot: bool) -> Keeping {
        match self {
            Keeping::Store if cannot => Keeping::HitForMiss,
            keeping => keeping,
        }
    }
}

impl Settled {
    /// Why RFC 9111 forbids to store it. `None`: it does not, or a program decides.
    pub(crate) fn why_not_stored(&self) -> Option<WhyNotStored> {
        match &self.ruling {
            Ruling::Rules(facts) => facts.as_ref().err().copied(),
            Ruling::Program { .. } => None,
        }
    }

    /// How long it lives by the word of a program.
    pub(crate) fn lifetimes(&self) -> Option<Lifetimes> {
        match self.ruling {
            Ruling::Rules(_) => None,
            Ruling::Program { lifetimes, .. } => Some(lifetimes),
        }
    }
}

impl SettledBody {
    /// If it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            SettledBody::Read(bytes) | SettledBody::Made(bytes) => Some(bytes.len() as u64),
            SettledBody::Origin(arriving) => arriving.length(),
            SettledBody::Stored { .. } => None,
        }
    }

    /// Nobody wants it. A connection on which little more comes can be used again.
    pub(crate) fn finish(self, fetch: &Fetch) {
        if let SettledBody::Origin(arriving) = self {
            arriving.into_body(fetch).finish();
        }
    }
}

impl Fetch {
    /// Without streaming the whole body comes before anybody sees the head.
    pub(super) async fn gather(
        &self,
        settled: Box<Settled>,
        client: &mut ClientLink<'_>,
    ) -> Result<Box<Settled>, Broken> {
        if settled.streams {
            return Ok(settled);
        }
        let Settled { made, body, .. } = *settled;
        let arriving = match body {
            SettledBody::Origin(arriving) if arriving.framing != ResponseBody::None => arriving,
            body => return Ok(Box::new(Settled { made, body, ..*settled })),
        };
        let mut reading = pin!(read_whole(self, arriving));
        let whole = poll_fn(|cx| match reading.as_mut().poll(cx) {
            Poll::Ready(read) => Poll::Ready(read.map_err(Broken::Origin)),
            Poll::Pending if client.has_left(cx) => Poll::Ready(Err(Broken::ClientLeft)),
            Poll::Pending => Poll::Pending,
        });
        let ((mut body, mut read), mut made) = (whole.await?, made);
        made.head.fields = HopByHop::end_to_end(made.head.fields.view());
        let (core, vcl, records) = (&self.core, &self.site.settings.vcl, self.records().map(|records| &**records));
        let mut page = None;
        if let Some(wish) = settled.esi {
            let scanned = esi_scan::scan((core, records), body, wish, vcl.gzip_level).await;
            (page, body) = (scanned.page, scanned.body);
            if scanned.is_gzipped {
                made.head.fields.push(FieldName::ContentEncoding, Coding::Gzip.name());
            }
        }
        read.record_end();
        Ok(Box::new(Settled { made, body: SettledBody::Read(body), page, ..*settled }))
    }
}

/// All of a body, whose end is not recorded yet.
async fn read_whole(fetch: &Fetch, arriving: Arriving) -> Result<(Bytes, FetchedBody), Failure> {
    let bytes_max = fetch.site.settings.limits.object_bytes_max;
    let mut body = arriving.into_body(fetch);
    body.record_end_later();
    let mut held = fetch.core.shared.cache.account().charge(0);
    let mut whole = BytesMut::new();
    loop {
        match poll_fn(|cx| body.poll_next(cx)).await? {
            OriginPiece::Data(bytes) | OriginPiece::InBlock(bytes) => {
                whole.extend_from_slice(&bytes);
                held.resize(whole.len());
                if whole.len() as u64 > bytes_max {
                    return Err(Failure {
                        status: 503,
                        token: "body-too-long",
                        text: "a body of unknown length, fetched without streaming, is longer than \
                               limits.object_bytes_max"
                            .into(),
                        remember_ms: 0,
                    });
                }
            }
            OriginPiece::End(_) => return Ok((whole.freeze(), body)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_to_be_stored_and_cannot_be_is_hit_for_miss() {
        assert_eq!(Keeping::Store.unless(true), Keeping::HitForMiss);
        for keeping in [Keeping::HitForMiss, Keeping::HitForPass, Keeping::Not] {
            assert_eq!(keeping.unless(true), keeping);
        }
        assert_eq!(Keeping::Store.unless(false), Keeping::Store);
    }

    #[test]
    fn a_body_that_is_here_has_its_length() {
        assert_eq!(SettledBody::Made(Bytes::from_static(b"hello")).length(), Some(5));
        assert_eq!(SettledBody::Read(Bytes::new()).length(), Some(0));
        assert_eq!(SettledBody::Stored { own: Fields::default() }.length(), None);
    }
}
