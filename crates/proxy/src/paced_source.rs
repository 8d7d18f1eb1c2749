//! A body that goes to its client no faster than its route says (`bandwidth`): what comes of it is held until it is due.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Sleep;

use crate::body::{Body, BodyEvent, Wanted};
use crate::clock::Moment;
use crate::limits::PACED_PIECE_BYTES_MAX;
use crate::route_rules::bandwidth::Bandwidth;

pub(crate) struct PacedSource {
    body: Body,
    /// Taken of it, and not due yet.
    held: VecDeque<Bytes>,
    pace: Bandwidth,
    begun: Moment,
    given_bytes: u64,
    timer: Option<Pin<Box<Sleep>>>,
}

impl PacedSource {
    pub(crate) fn new(body: Body, pace: Bandwidth) -> PacedSource {
        PacedSource { body, held: VecDeque::new(), pace, begun: Moment::now(), given_bytes: 0, timer: None }
    }

    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    pub(crate) fn poll(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>) -> Poll<BodyEvent> {
        while self.held.is_empty() {
            match ready!(self.body.poll_bytes(&mut self.held, cx, Wanted::Bytes)) {
                BodyEvent::More => self.held.retain(|piece| !piece.is_empty()),
                event => return Poll::Ready(event),
            }
        }
        ready!(self.poll_due(cx));
        let due = self.pace.due(self.begun.micros_until(Moment::now())).saturating_sub(self.given_bytes);
        let mut left = usize::try_from(due.min(PACED_PIECE_BYTES_MAX)).unwrap_or(usize::MAX);
        while left > 0
            && let Some(piece) = self.held.front_mut()
        {
            let given = piece.split_to(piece.len().min(left));
            left -= given.len();
            self.given_bytes += given.len() as u64;
            if piece.is_empty() {
                self.held.pop_front();
            }
            queue.push_back(given);
        }
        Poll::Ready(BodyEvent::More)
    }

    /// Ready when the next piece is due, or as much as is there.
    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let there: u64 = self.held.iter().map(|piece| piece.len() as u64).sum();
        let wanted = self.given_bytes + there.min(self.pace.piece_bytes());
        loop {
            if let Some(timer) = &mut self.timer {
                ready!(timer.as_mut().poll(cx));
                self.timer = None;
            }
            let (passed, until) = (self.begun.micros_until(Moment::now()), self.pace.micros_of(wanted));
            if until <= passed {
                return Poll::Ready(());
            }
            self.timer = Some(Box::pin(tokio::time::sleep(Duration::from_micros(until - passed))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_takes_as_long_as_its_pace_says_and_arrives_whole() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let text = Bytes::from((0..=255).cycle().take(3_000).collect::<Vec<u8>>());
        let body: Body = crate::body::BodySource::Bytes(text.clone()).into();
        let mut source = PacedSource::new(body, Bandwidth { bytes_per_second: 10_000, after_bytes: 1_000 });
        let (began, mut got, mut pieces) = (Moment::now(), Vec::new(), 0);
        runtime.block_on(async {
            let mut queue = VecDeque::new();
            loop {
                match std::future::poll_fn(|cx| source.poll(&mut queue, cx)).await {
                    BodyEvent::End(_) => break,
                    BodyEvent::More => pieces += 1,
                    BodyEvent::Pages | BodyEvent::Broken(_) => panic!("bytes are there"),
                }
                queue.drain(..).for_each(|piece: Bytes| got.extend_from_slice(&piece));
            }
        });
        assert_eq!(got, text);
        assert!(began.micros_until(Moment::now()) >= 200_000 && pieces >= 3, "{pieces}");
    }
}
