//! Slice stream: a large body that was asked for as a whole, or from somewhere on, and arrives: poured into its slices one
//! after another.
//!
//! It keeps one slice ahead of whoever reads furthest ahead, and reserves the next before the last bytes of one are out, so
//! that nobody asks the origin for what is about to come. When nobody comes for the next slice it waits, with the
//! origin's connection held back, for a while; then it ends, and the rest is fetched slice by slice when it is wanted.

use std::future::poll_fn;

use bytes::Bytes;
use cache::{Draft, Failure, Ticket};

use crate::fetch::Fetch;
use crate::fetch::fetched_body::FetchedBody;
use crate::fetch::fill::wait_for_room;
use crate::fetch::slice_fetch::{SliceSource, room_for_slice};
use crate::limits::SLICE_STREAM_PATIENCE;
use crate::upstream::OriginPiece;

/// From which slice to which a body reaches, and the rights to bring the first two.
pub(crate) struct SliceStream {
    pub(crate) source: SliceSource,
    pub(crate) number: u64,
    /// Behind the last slice that the body brings.
    pub(crate) end: u64,
    pub(crate) first: Ticket,
    pub(crate) second: Option<Ticket>,
}

/// What comes of the origin, cut as slices need it.
struct Incoming {
    body: FetchedBody,
    rest: Bytes,
}

impl Incoming {
    /// At most so many bytes, and whether they were read into a block of the draft; `None` where the body ends.
    async fn next(&mut self, draft: &Draft, bytes_max: u64) -> Result<Option<(Bytes, bool)>, Failure> {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        while self.rest.is_empty() {
            let piece = poll_fn(|cx| match draft.is_kept() {
                true => self.body.poll_next_kept(cx, draft.block_bytes_left().min(bytes_max)),
                false => self.body.poll_next(cx),
            });
            match piece.await? {
                OriginPiece::Data(bytes) => self.rest = bytes,
                OriginPiece::InBlock(bytes) => return Ok(Some((bytes, true))),
                OriginPiece::End(_) => return Ok(None),
            }
        }
        Ok(Some((self.rest.split_to(bytes_max.min(self.rest.len())), false)))
    }

    /// Does the body end here?
    async fn is_over(&mut self) -> bool {
        self.rest.is_empty() && matches!(poll_fn(|cx| self.body.poll_next(cx)).await, Ok(OriginPiece::End(_)))
    }
}

impl SliceStream {
    /// True when all of the body came, and the origin's connection may be used again.
    pub(crate) async fn pour(self, fetch: &Fetch, body: FetchedBody) -> bool {
        let SliceStream { source, mut number, end, first, second } = self;
        let mut incoming = Incoming { body, rest: Bytes::new() };
        let (mut ticket, mut next) = (first, second);
        let mut room = fetch.core.shared.cache.slice_under_way(source.sliced);
        room.goes_to_disk(source.sliced);
        loop {
            let now = fetch.core.now();
            let mut draft = ticket.describe_within(room, source.description(number, now));
            let range = source.sliced.range(number);
            let mut left = range.end - range.start;
            let mut after = None;
            while left > 0 {
                wait_for_room(fetch, &mut draft).await;
                let (piece, is_own) = match incoming.next(&draft, left).await {
                    Ok(Some(piece)) => piece,
                    Ok(None) => return broken_off(fetch, draft, next, too_short()),
                    Err(failure) => return broken_off(fetch, draft, next, failure),
                };
                left -= piece.len() as u64;
                if left == 0 && next.is_some() && number + 2 < end {
                    after = source.reserve(number + 2);
                }
                match is_own {
                    true => draft.append_own(piece),
                    false => draft.append(piece),
                }
            }
            draft.land(None);
            number += 1;
            if number == end {
                return incoming.is_over().await;
            }
            // Somebody else has it, or brings it.
            let Some(mut wanted) = next else { return false };
            if tokio::time::timeout(SLICE_STREAM_PATIENCE, poll_fn(|cx| wanted.poll_wanted(cx))).await.is_err() {
                give_back([Some(wanted), after]);
                return false;
            }
            room = room_for_slice(&source, number).await;
            (ticket, next) = (wanted, after);
        }
    }
}

/// Those who wait for what comes behind ask for it anew.
fn broken_off(fetch: &Fetch, draft: Draft, next: Option<Ticket>, failure: Failure) -> bool {
    draft.abort(failure, fetch.core.now());
    give_back([next, None]);
    false
}

pub(crate) fn give_back(tickets: [Option<Ticket>; 2]) {
    tickets.into_iter().flatten().for_each(Ticket::give_back);
}

fn too_short() -> Failure {
    let text = "the body was shorter than its head said".into();
    Failure { status: 502, token: "origin-body-length", text, remember_ms: 0 }
}
