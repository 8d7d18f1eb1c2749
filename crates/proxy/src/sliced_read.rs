//! A body that lies in slices, read by one client: stretches of it, in order, each slice from memory, from its fetch while it
//! comes, or fetched for this reader. One slice is asked for ahead.
//!
//! Between `slicing`, which waits for the first bytes, and `transmit`, which sends. A slice that lies in the page file is
//! sent from there; all others by their pieces.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use cache::{BodyPiece, Failure, FlightState, Follower, Object, Release, SliceAnswer};

use crate::body::{self, BodyEvent, Wanted};
use crate::disk_read::DiskRead;
use crate::fetch::slice_fetch::SliceSource;
use crate::held_body::{HeldBody, Pages};
use crate::limits::SLICE_TRIES_MAX;
use crate::unsent::RestOfBody;

pub(crate) struct SlicedRead {
    source: SliceSource,
    /// What is still to be sent: part heads, and the stretches behind them.
    parts: VecDeque<(Vec<u8>, Range<u64>)>,
    reading: Option<Reading>,
    /// The next slice, on its way.
    ahead: Option<(u64, Follower)>,
    /// For the slice that is read.
    tries: u32,
}

/// The slice that is read.
enum Reading {
    /// `from..to` of it is still to be sent.
    Held {
        slice: HeldBody,
        from: u64,
        to: u64,
    },
    Followed {
        follower: Follower,
        is_headed: bool,
    },
}

impl SlicedRead {
    pub(crate) fn new(source: SliceSource, stretch: Range<u64>) -> SlicedRead {
        SlicedRead { source, parts: VecDeque::from([(Vec::new(), stretch)]), reading: None, ahead: None, tries: 0 }
    }

    /// What is to be sent, if that is not the one stretch. What was begun to be read stays so if it comes first.
    pub(crate) fn set_parts(&mut self, parts: VecDeque<(Vec<u8>, Range<u64>)>) {
        let begun = self.parts.front().map(|(_, stretch)| stretch.clone());
        let first = parts.front().map(|(_, stretch)| stretch);
        let goes_on =
            begun.zip(first).is_some_and(|(begun, first)| begun.start == first.start && begun.end <= first.end);
        if !goes_on {
            self.reading = None;
        }
        self.parts = parts;
    }

    /// Ready when the first bytes are there, or will not be.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        loop {
            match self.reading {
                None => self.open()?,
                Some(Reading::Held { .. } | Reading::Followed { is_headed: true, .. }) => return Poll::Ready(Ok(())),
                Some(Reading::Followed { is_headed: false, .. }) => ready!(self.poll_head(cx))?,
            }
        }
    }

    /// Puts the next bytes into the queue, or says what there is instead.
    pub(crate) fn poll_more(
        &mut self,
        queue: &mut VecDeque<Bytes>,
        cx: &mut Context<'_>,
        wanted: Wanted,
    ) -> Poll<Result<BodyEvent, Failure>> {
        // What has landed is held by the store: not by us until it is its turn.
        self.ahead = self.ahead.take().filter(|(_, follower)| follower.flight().state() != FlightState::Landed);
        loop {
            let Some((head, stretch)) = self.parts.front_mut() else { return Poll::Ready(Ok(BodyEvent::End(None))) };
            if !head.is_empty() {
                queue.push_back(Bytes::from(std::mem::take(head)));
                return Poll::Ready(Ok(BodyEvent::More));
            }
            if stretch.is_empty() {
                self.parts.pop_front();
                self.reading = None;
                continue;
            }
            match &mut self.reading {
                None => self.open()?,
                Some(Reading::Held { from, to, .. }) if from == to => {
                    let slice = self.source.sliced.range(self.source.sliced.number_at(stretch.start));
                    stretch.start = slice.start + *to;
                    self.reading = None;
                    self.tries = 0;
                }
                Some(Reading::Held { slice, .. }) if wanted == Wanted::BytesOrPages && slice.is_in_file() => {
                    return Poll::Ready(Ok(BodyEvent::Pages));
                }
                Some(Reading::Held { slice, from, to }) => {
                    return body::put(slice, queue, cx, from, *to).map(Ok);
                }
                Some(Reading::Followed { is_headed: false, .. }) => ready!(self.poll_head(cx))?,
                Some(Reading::Followed { .. }) => {
                    if ready!(self.poll_followed(queue, cx))? {
                        return Poll::Ready(Ok(BodyEvent::More));
                    }
                }
            }
        }
    }

    /// What comes next, if it is sent as it lies in the page file: where from, which moves, and where to.
    pub(crate) fn pages(&mut self) -> Option<(Pages<'_>, &mut u64, u64)> {
        self.parts.front().filter(|(head, stretch)| head.is_empty() && !stretch.is_empty())?;
        match &mut self.reading {
            Some(Reading::Held { slice, from, to }) if *from < *to => Some((slice.pages_at(*from)?, from, *to)),
            _ => None,
        }
    }

    /// Where the slice lies that is read.
    pub(crate) fn rest(&self) -> RestOfBody {
        match &self.reading {
            None => RestOfBody::Queued,
            Some(Reading::Held { slice, .. }) => slice.rest(),
            Some(Reading::Followed { follower, .. }) => RestOfBody::of_flight(follower.flight()),
        }
    }

    /// What of a slice is sent next, if it is sent from where it lies.
    pub(crate) fn next_in_file(&mut self) -> Option<(&mut HeldBody, Range<u64>)> {
        self.parts.front().filter(|(head, stretch)| head.is_empty() && !stretch.is_empty())?;
        match &mut self.reading {
            Some(Reading::Held { slice, from, to }) if *from < *to && slice.is_in_file() => Some((slice, *from..*to)),
            _ => None,
        }
    }

    /// The slice that the next byte is in, and the next slice behind it.
    fn open(&mut self) -> Result<(), Failure> {
        let Some((_, stretch)) = self.parts.front() else { return Ok(()) };
        let sliced = self.source.sliced;
        let (stretch, number) = (stretch.clone(), sliced.number_at(stretch.start));
        let slice = sliced.range(number);
        let follower = self.ahead.take().filter(|(ahead, _)| *ahead == number).map(|(_, follower)| follower);
        let answer = match follower {
            Some(follower) => Ok(follower),
            None => match self.source.ask(number) {
                SliceAnswer::Held(held) => Err(held),
                SliceAnswer::Failed(failure) => return Err(failure),
                SliceAnswer::Busy(follower) => Ok(follower),
                SliceAnswer::Fetch(ticket) => {
                    let follower = ticket.join(self.source.core.index);
                    self.source.fetch(number, ticket);
                    Ok(follower)
                }
            },
        };
        self.reading = Some(match answer {
            Ok(follower) => {
                follower.announce();
                Reading::Followed { follower, is_headed: false }
            }
            Err(held) => match self.held(&held, &stretch, &slice) {
                Some(reading) => reading,
                // It is looked for anew.
                None => return self.try_again(),
            },
        });
        if slice.end < stretch.end {
            self.prefetch(number + 1);
        }
        Ok(())
    }

    /// `None` if it lies on a disk and is there no more.
    fn held(&self, slice: &Arc<Object>, stretch: &Range<u64>, of: &Range<u64>) -> Option<Reading> {
        let leased = match slice.body().on_disk().map(|body| body.lease()) {
            None => None,
            Some(Some(leased)) => Some(DiskRead::new(leased, self.source.site.settings.limits.disk_read_timeout)),
            Some(None) => {
                self.source.core.shared.cache.release(slice);
                return None;
            }
        };
        self.source.core.counters.slices_held.add(1);
        let slice = HeldBody::stored(slice, leased.as_ref());
        Some(Reading::Held { slice, from: stretch.start - of.start, to: stretch.end.min(of.end) - of.start })
    }

    /// Where memory is short of room, what is wanted now goes before what will be.
    fn prefetch(&mut self, number: u64) {
        if !self.source.core.shared.cache.has_room_for_slice(self.source.sliced) {
            return self.ahead = None;
        }
        self.ahead = match self.source.ask(number) {
            SliceAnswer::Held(_) | SliceAnswer::Failed(_) => None,
            SliceAnswer::Busy(follower) => {
                follower.announce();
                Some((number, follower))
            }
            SliceAnswer::Fetch(ticket) => {
                let follower = ticket.join(self.source.core.index);
                self.source.fetch(number, ticket);
                Some((number, follower))
            }
        };
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let Some(Reading::Followed { follower, is_headed }) = &mut self.reading else { return Poll::Ready(Ok(())) };
        let Some((_, stretch)) = self.parts.front() else { return Poll::Ready(Ok(())) };
        let slice = self.source.sliced.range(self.source.sliced.number_at(stretch.start));
        match ready!(follower.poll_head(cx)) {
            Ok(headed) => match headed.object {
                Some(held) => match self.held(&held, &stretch.clone(), &slice) {
                    Some(reading) => self.reading = Some(reading),
                    None => self.try_again()?,
                },
                None => {
                    follower.seek(stretch.start - slice.start);
                    *is_headed = true;
                }
            },
            // It broke off on the way.
            Err(Release::Failed(_)) if follower.flight().is_described() => self.try_again()?,
            Err(Release::Failed(failure)) => return Poll::Ready(Err(failure)),
            // The body that was to bring it ended before.
            Err(Release::Private | Release::VaryMismatch | Release::OnDisk) => self.try_again()?,
        }
        Poll::Ready(Ok(()))
    }

    /// False if it has to be looked for anew.
    fn poll_followed(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>) -> Poll<Result<bool, Failure>> {
        let Some(Reading::Followed { follower, .. }) = &mut self.reading else { return Poll::Ready(Ok(false)) };
        let Some((_, stretch)) = self.parts.front_mut() else { return Poll::Ready(Ok(false)) };
        let BodyPiece::Data(pieces) = ready!(follower.poll_body(cx)) else {
            self.try_again()?;
            return Poll::Ready(Ok(false));
        };
        let slice = self.source.sliced.range(self.source.sliced.number_at(stretch.start));
        let end = slice.end.min(stretch.end);
        for piece in pieces {
            let taken = (end - stretch.start).min(piece.len() as u64);
            queue.push_back(piece.slice(..taken as usize));
            stretch.start += taken;
        }
        if stretch.start == end {
            self.reading = None;
            self.tries = 0;
        }
        Poll::Ready(Ok(true))
    }

    /// What was sent stays sent: the slice is looked for again, and read from there on.
    fn try_again(&mut self) -> Result<(), Failure> {
        self.reading = None;
        self.tries += 1;
        if self.tries <= SLICE_TRIES_MAX {
            return Ok(());
        }
        let text = format!("a part of this body did not come whole, asked for {SLICE_TRIES_MAX} times more");
        Err(Failure { status: 502, token: "slice-broken", text: text.into(), remember_ms: 0 })
    }
}
