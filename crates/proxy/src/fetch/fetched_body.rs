//! A body as its fetch hands it on: what comes from the origin, through the filters that the policy wants it to have.

use std::task::{Context, Poll, ready};

use cache::Failure;
use message::Fields;
use wire::ResponseBody;

use crate::fetch::failed;
use crate::fetch::origin_body::{OriginBody, RecordedEnd};
use crate::filter_chain::{FilterFault, Filtered};
use crate::filter_work::FilterWork;
use crate::records::fetch_records;
use crate::upstream::OriginPiece;

pub(crate) struct FetchedBody {
    origin: OriginBody,
    filters: Option<Box<Filters>>,
    /// Somebody does more to it before its end is recorded.
    records_later: bool,
}

struct Filters {
    work: FilterWork,
    /// Behind the origin's last byte.
    trailers: Option<Fields>,
}

impl FetchedBody {
    /// `work`: none where it goes by as it comes.
    pub(crate) fn new(mut origin: OriginBody, work: Option<FilterWork>) -> FetchedBody {
        if work.is_some() {
            origin.end = RecordedEnd::Later;
        }
        let filters = work.map(|work| Box::new(Filters { work, trailers: None }));
        FetchedBody { origin, filters, records_later: false }
    }

    /// Its end is recorded when [`FetchedBody::record_end`] says so, behind what is done to it elsewhere.
    pub(super) fn record_end_later(&mut self) {
        self.records_later = true;
        self.origin.end = RecordedEnd::Later;
    }

    /// All that was done to it is recorded.
    pub(super) fn record_end(&mut self) {
        if let Some(filters) = &self.filters {
            filters.record(&self.origin);
        }
        self.origin.record_end();
    }

    /// If it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        match self.origin.framing() {
            ResponseBody::None => Some(0),
            ResponseBody::Length(length) if self.keeps_length() => Some(length),
            _ => None,
        }
    }

    fn keeps_length(&self) -> bool {
        self.filters.as_ref().is_none_or(|filters| filters.work.keeps_length())
    }

    /// It has none, and its end is still to be seen.
    pub(crate) fn is_none(&self) -> bool {
        self.origin.framing() == ResponseBody::None
    }

    /// Nobody wants more of it: see [`OriginBody::finish`].
    pub(crate) fn finish(self) {
        self.origin.finish();
    }

    /// The next piece. After `End` or an error it must not be asked again.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<OriginPiece, Failure>> {
        let Some(filters) = &mut self.filters else { return self.origin.poll_next(cx) };
        let polled = filters.poll_next(&mut self.origin, cx);
        if matches!(polled, Poll::Ready(Ok(OriginPiece::End(_)))) && !self.records_later {
            self.record_end();
        }
        polled
    }

    /// The same of a body that is kept, of which `block_bytes_left` more come before the next block begins.
    pub(crate) fn poll_next_kept(
        &mut self,
        cx: &mut Context<'_>,
        block_bytes_left: usize,
    ) -> Poll<Result<OriginPiece, Failure>> {
        match self.filters.is_none() {
            true => self.origin.poll_next_kept(cx, block_bytes_left),
            false => self.poll_next(cx),
        }
    }
}

impl Filters {
    fn poll_next(&mut self, origin: &mut OriginBody, cx: &mut Context<'_>) -> Poll<Result<OriginPiece, Failure>> {
        loop {
            match ready!(self.work.poll_pull(cx)) {
                Ok(Filtered::Piece(piece)) => return Poll::Ready(Ok(OriginPiece::Data(piece))),
                Ok(Filtered::Hungry | Filtered::TurnOver) => {}
                Ok(Filtered::End) => return Poll::Ready(Ok(OriginPiece::End(self.trailers.take()))),
                Err(fault) => return Poll::Ready(Err(self.fail(origin, fault))),
            }
            let Poll::Ready(piece) = origin.poll_next(cx) else {
                return match ready!(self.work.poll_flush(cx)) {
                    Ok(Filtered::Piece(piece)) => Poll::Ready(Ok(OriginPiece::Data(piece))),
                    Ok(_) => Poll::Pending,
                    Err(fault) => Poll::Ready(Err(self.fail(origin, fault))),
                };
            };
            match piece? {
                OriginPiece::Data(bytes) | OriginPiece::InBlock(bytes) => self.work.push(bytes),
                OriginPiece::End(trailers) => {
                    self.trailers = trailers;
                    self.work.end();
                }
            }
        }
    }

    fn record(&self, origin: &OriginBody) {
        if let Some(records) = &origin.records {
            self.work.tallies().for_each(|tally| fetch_records::filtered(records, &tally));
        }
    }

    fn fail(&self, origin: &mut OriginBody, fault: FilterFault) -> Failure {
        self.record(origin);
        origin.refuse(|origin, label| failed::unfilterable(origin, label, &fault))
    }
}
