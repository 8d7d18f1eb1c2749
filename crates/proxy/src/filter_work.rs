//! A chain of filters at work: on the core of whoever pulls it, or on a coding thread where a step takes longer than is left of a turn.
//!
//! The chain moves to the thread with what it was pushed, and comes back with what it made; meanwhile there is nothing to pull, so order is
//! kept and one piece of a body is under way at a time. Whoever drops it drops what has not begun.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use coding::{Bounds, Flaw, GzipMarks};

use crate::coder_account::CoderCharge;
use crate::coding_threads::{CodingJob, CodingThreads};
use crate::core::Core;
use crate::filter_chain::{Delta, FilterChain, FilterFault, FilterKind, FilterTally, Filtered};
use crate::filter_turn::FilterTurn;
use crate::giving_way::give_way;
use crate::limits::FILTER_JOB_BYTES;

/// The filters of one body, and where they are.
pub(crate) struct FilterWork {
    chain: ChainAt,
    /// What came back from a thread and was not pulled.
    made: VecDeque<Bytes>,
    fault: Option<FilterFault>,
    /// What the core may still do before it goes on to others.
    turn: FilterTurn,
    threads: Arc<CodingThreads>,
    keeps_length: bool,
    /// What is to blame if a thread loses it.
    last_filter: Option<FilterKind>,
    _held: Option<CoderCharge>,
}

enum ChainAt {
    Core(FilterChain),
    Thread(CodingJob<Worked>),
    /// What a thread did with it ended in a panic.
    Lost,
}

/// What a job brings back.
struct Worked {
    chain: FilterChain,
    made: VecDeque<Bytes>,
    fault: Option<FilterFault>,
}

impl FilterWork {
    /// The filters of a body on its way: counted, and their memory accounted for. `text_bytes`: how long the text is that is coded, if
    /// that is known. The error says why there cannot be such.
    pub(crate) fn begin(
        core: &Core,
        kinds: &[FilterKind],
        bounds: Bounds,
        text_bytes: Option<u64>,
    ) -> Result<FilterWork, String> {
        let chain = FilterChain::counted(&core.counters, kinds, bounds, text_bytes)?;
        let memory_bytes = kinds.iter().map(|kind| kind.memory_bytes(text_bytes)).sum();
        Ok(FilterWork::holding(core, chain, memory_bytes))
    }

    /// The same with what differs from a dictionary in the end.
    pub(crate) fn begin_delta(
        core: &Core,
        kinds: &[FilterKind],
        delta: Delta,
        bounds: Bounds,
    ) -> Result<FilterWork, String> {
        let of_kinds: usize = kinds.iter().map(|kind| kind.memory_bytes(None)).sum();
        let memory_bytes = of_kinds + delta.memory_bytes();
        let chain = FilterChain::counted_delta(&core.counters, kinds, delta, bounds)?;
        Ok(FilterWork::holding(core, chain, memory_bytes))
    }

    fn holding(core: &Core, chain: FilterChain, memory_bytes: usize) -> FilterWork {
        let held = core.shared.coders.charge(memory_bytes);
        FilterWork { _held: Some(held), ..FilterWork::new(chain, &core.shared.coding_threads) }
    }

    pub(crate) fn new(chain: FilterChain, threads: &Arc<CodingThreads>) -> FilterWork {
        FilterWork {
            keeps_length: chain.keeps_length(),
            last_filter: chain.tallies().last().map(|tally| tally.filter),
            chain: ChainAt::Core(chain),
            made: VecDeque::new(),
            fault: None,
            turn: FilterTurn::of_core(),
            threads: Arc::clone(threads),
            _held: None,
        }
    }

    /// Is what comes out as long as what goes in?
    pub(crate) fn keeps_length(&self) -> bool {
        self.keeps_length
    }

    /// One more piece, for who was said to be hungry.
    pub(crate) fn push(&mut self, piece: Bytes) {
        if let ChainAt::Core(chain) = &mut self.chain {
            chain.push(piece);
        }
    }

    /// Nothing more will be pushed, for who was said to be hungry.
    pub(crate) fn end(&mut self) {
        if let ChainAt::Core(chain) = &mut self.chain {
            chain.end();
        }
    }

    /// The next piece, never [`Filtered::TurnOver`]. After `End` or an error it must not be asked again. Pending while a thread works on it.
    pub(crate) fn poll_pull(&mut self, cx: &mut Context<'_>) -> Poll<Result<Filtered, FilterFault>> {
        self.poll(cx, false)
    }

    /// The same where nothing more comes for now: who reads along gets what there is, unless that was so too often. If it is hungry
    /// still, the core goes on to others.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<Filtered, FilterFault>> {
        let polled = self.poll(cx, true);
        if let Poll::Ready(Ok(Filtered::Hungry)) = polled {
            self.turn = FilterTurn::of_core();
        }
        polled
    }

    fn poll(&mut self, cx: &mut Context<'_>, flushes: bool) -> Poll<Result<Filtered, FilterFault>> {
        loop {
            if let Some(piece) = self.made.pop_front() {
                return Poll::Ready(Ok(Filtered::Piece(piece)));
            }
            if let Some(fault) = self.fault {
                return Poll::Ready(Err(fault));
            }
            match &mut self.chain {
                ChainAt::Core(chain) => match chain.pull(&mut self.turn, flushes) {
                    Ok(Filtered::TurnOver) => {}
                    pulled => return Poll::Ready(pulled),
                },
                ChainAt::Thread(job) => {
                    match ready!(Pin::new(job).poll(cx)) {
                        Ok(worked) => self.take_back(worked),
                        Err(_) => self.chain = ChainAt::Lost,
                    }
                    continue;
                }
                ChainAt::Lost => {
                    self.fault = self.last_filter.map(|filter| FilterFault { filter, flaw: Flaw::Unready });
                    continue;
                }
            }
            self.turn = FilterTurn::of_core();
            if !self.hand_over(flushes) {
                // It was done here. Others have their turn before what follows.
                give_way(cx);
                return Poll::Pending;
            }
        }
    }

    /// Gives the chain to a thread. False where too much waits: then it was done here, a job's worth.
    fn hand_over(&mut self, flushes: bool) -> bool {
        let ChainAt::Core(chain) = std::mem::replace(&mut self.chain, ChainAt::Lost) else { return true };
        match self.threads.now(chain.waiting_bytes(), move || work(chain, flushes)) {
            Ok(job) => {
                self.chain = ChainAt::Thread(job);
                true
            }
            Err(work) => {
                self.take_back(work());
                false
            }
        }
    }

    fn take_back(&mut self, worked: Worked) {
        self.chain = ChainAt::Core(worked.chain);
        self.made = worked.made;
        self.fault = worked.fault;
    }

    /// What came back from a thread and waits to be pulled.
    #[cfg(test)]
    pub(crate) fn made_bytes(&self) -> usize {
        self.made.iter().map(Bytes::len).sum()
    }

    /// See [`FilterChain::gzip_marks`].
    pub(crate) fn gzip_marks(&self) -> Option<GzipMarks> {
        match &self.chain {
            ChainAt::Core(chain) => chain.gzip_marks(),
            ChainAt::Thread(_) | ChainAt::Lost => None,
        }
    }

    /// What went through each filter so far.
    pub(crate) fn tallies(&self) -> impl Iterator<Item = FilterTally> {
        let chain = match &self.chain {
            ChainAt::Core(chain) => Some(chain),
            ChainAt::Thread(_) | ChainAt::Lost => None,
        };
        chain.into_iter().flat_map(FilterChain::tallies)
    }
}

/// On a thread: goes on until there is enough, or nothing to do.
fn work(mut chain: FilterChain, flushes: bool) -> Worked {
    let (mut turn, mut made, mut made_bytes) = (FilterTurn::of_thread(), VecDeque::new(), 0);
    let mut fault = None;
    while made_bytes < FILTER_JOB_BYTES {
        match chain.pull(&mut turn, flushes) {
            Ok(Filtered::Piece(piece)) => {
                made_bytes += piece.len();
                made.push_back(piece);
            }
            // Whoever pulls it next is told the same.
            Ok(Filtered::Hungry | Filtered::TurnOver | Filtered::End) => break,
            Err(why) => {
                fault = Some(why);
                break;
            }
        }
    }
    Worked { chain, made, fault }
}
