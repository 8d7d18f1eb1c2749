//! A body that goes through filters on its way to one client, and what of the outcome that client wants.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use coding::{Flaw, GzipMarks};
use message::Fields;

use crate::body::{Body, BodyEvent, Wanted};
use crate::filter_chain::{FilterFault, Filtered};
use crate::filter_work::FilterWork;
use crate::send_outcome::{BODY_HAS_MORE, BODY_UNREADABLE, End};

pub(crate) struct FilteredSource {
    body: Body,
    /// What was taken of the body at once.
    taken: VecDeque<Bytes>,
    work: FilterWork,
    /// Of what comes out this much is not wanted, …
    skip: u64,
    /// … and then this much is; none where nobody knows how much there is.
    left: Option<u64>,
    trailers: Option<Arc<Fields>>,
}

impl FilteredSource {
    /// `length`: of what comes out, if that is known.
    pub(crate) fn new(body: Body, work: FilterWork, length: Option<u64>) -> FilteredSource {
        FilteredSource { body, taken: VecDeque::new(), work, skip: 0, left: length, trailers: None }
    }

    /// So many bytes from there, of what comes out.
    pub(crate) fn seek(&mut self, from: u64, length: u64) {
        (self.skip, self.left) = (from, Some(length));
    }

    /// See [`FilterChain::gzip_marks`](crate::filter_chain::FilterChain::gzip_marks).
    pub(crate) fn gzip_marks(&self) -> Option<GzipMarks> {
        self.work.gzip_marks()
    }

    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    /// Puts the next piece into the queue, or says what there is instead.
    pub(crate) fn poll(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>) -> Poll<BodyEvent> {
        loop {
            if self.left == Some(0) {
                return Poll::Ready(BodyEvent::End(None));
            }
            match ready!(self.work.poll_pull(cx)) {
                Ok(Filtered::Piece(piece)) => {
                    if let Some(piece) = self.wanted(piece) {
                        queue.push_back(piece);
                        return Poll::Ready(BodyEvent::More);
                    }
                    continue;
                }
                Ok(Filtered::Hungry | Filtered::TurnOver) => {}
                // More was promised than there is.
                Ok(Filtered::End) if self.left.is_some() => {
                    return Poll::Ready(BodyEvent::Broken(End::Cut(BODY_UNREADABLE)));
                }
                Ok(Filtered::End) => return Poll::Ready(BodyEvent::End(self.trailers.take())),
                Err(fault) => return Poll::Ready(broken(&fault)),
            }
            if let Some(piece) = self.taken.pop_front() {
                self.work.push(piece);
                continue;
            }
            let Poll::Ready(event) = self.body.poll_bytes(&mut self.taken, cx, Wanted::Bytes) else {
                return self.poll_flush(queue, cx);
            };
            match event {
                BodyEvent::More => {}
                BodyEvent::End(trailers) => {
                    self.trailers = trailers;
                    self.work.end();
                }
                BodyEvent::Broken(end) => return Poll::Ready(BodyEvent::Broken(end)),
                BodyEvent::Pages => unreachable!("bytes are asked for"),
            }
        }
    }

    /// Nothing more comes for now.
    fn poll_flush(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>) -> Poll<BodyEvent> {
        match ready!(self.work.poll_flush(cx)) {
            Ok(Filtered::Piece(piece)) => match self.wanted(piece) {
                Some(piece) => {
                    queue.push_back(piece);
                    Poll::Ready(BodyEvent::More)
                }
                None => Poll::Pending,
            },
            Ok(_) => Poll::Pending,
            Err(fault) => Poll::Ready(broken(&fault)),
        }
    }

    /// What of a piece is wanted, if anything is.
    fn wanted(&mut self, mut piece: Bytes) -> Option<Bytes> {
        let skipped = self.skip.min(piece.len() as u64);
        self.skip -= skipped;
        let mut piece = piece.split_off(skipped as usize);
        if let Some(left) = &mut self.left {
            piece.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= piece.len() as u64;
        }
        (!piece.is_empty()).then_some(piece)
    }
}

fn broken(fault: &FilterFault) -> BodyEvent {
    BodyEvent::Broken(End::Cut(if fault.flaw == Flaw::JunkBehind { BODY_HAS_MORE } else { BODY_UNREADABLE }))
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use coding::{Bounds, Coding, Encoder};

    use super::*;
    use crate::body::BodySource;
    use crate::coding_threads::CodingThreads;
    use crate::filter_chain::{FilterChain, FilterKind};

    fn gzip(text: &[u8]) -> Vec<u8> {
        let (mut encoder, mut out) = (Encoder::new(Coding::Gzip, 6).unwrap(), Vec::new());
        encoder.encode(text, &mut out).unwrap();
        encoder.finish(&mut out).unwrap();
        out
    }

    fn source(coded: Vec<u8>, length: Option<u64>) -> FilteredSource {
        let chain = FilterChain::new(&[FilterKind::Decode(Coding::Gzip)], Bounds::default(), None).unwrap();
        let work = FilterWork::new(chain, &Arc::new(CodingThreads::none()));
        FilteredSource::new(BodySource::Bytes(coded.into()).into(), work, length)
    }

    /// All that it gives; the error is how it broke.
    fn all(source: &mut FilteredSource) -> Result<Vec<u8>, End> {
        let (mut queue, mut cx) = (VecDeque::new(), Context::from_waker(Waker::noop()));
        // Between two polls others have their turn.
        for _ in 0..100 {
            match source.poll(&mut queue, &mut cx) {
                Poll::Ready(BodyEvent::More) => {}
                Poll::Ready(BodyEvent::End(_)) => {
                    return Ok(queue.iter().flat_map(|piece| piece.iter().copied()).collect());
                }
                Poll::Ready(BodyEvent::Broken(end)) => return Err(end),
                Poll::Ready(BodyEvent::Pages) => panic!("bytes are asked for"),
                Poll::Pending => {}
            }
        }
        panic!("all of it is there");
    }

    #[test]
    fn a_client_gets_the_text_or_a_part_of_it() {
        let text: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let coded = gzip(&text);
        for length in [None, Some(text.len() as u64)] {
            assert_eq!(all(&mut source(coded.clone(), length)).as_ref(), Ok(&text), "{length:?}");
        }
        for (from, to) in [(0, 1), (0, 100_000), (40_000, 90_000), (99_999, 100_000)] {
            let mut source = source(coded.clone(), Some(100_000));
            source.seek(from, to - from);
            assert_eq!(all(&mut source).as_deref(), Ok(&text[from as usize..to as usize]), "{from}..{to}");
        }
    }

    #[test]
    fn what_is_not_what_it_says_is_cut() {
        let coded = gzip(b"hello");
        assert_eq!(all(&mut source(coded.clone(), Some(6))), Err(End::Cut(BODY_UNREADABLE)));
        assert_eq!(all(&mut source(coded[..12].to_vec(), None)), Err(End::Cut(BODY_UNREADABLE)));
        assert_eq!(all(&mut source(b"hello".to_vec(), None)), Err(End::Cut(BODY_UNREADABLE)));
        // No more goes out than was promised.
        assert_eq!(all(&mut source(coded, Some(4))).as_deref(), Ok(&b"hell"[..]));
    }
}
