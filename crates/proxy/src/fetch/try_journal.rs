//! What a fetch notes of its tries to be answered by an origin, while somebody reads along: who was asked where, how long each part took,
//! and what came of it.

use std::sync::Arc;

use crate::clock::Moment;
use crate::events::origin_try::{OriginTry, TryOutcome};
use crate::fetch::broken::Broken;
use crate::limits::ORIGIN_TRIES_TOLD_MAX;
use crate::origin::{OpeningTimes, OriginError, OriginErrorKind, clamped};
use crate::traces::trace_ids::SpanId;
use crate::traces::try_span::TrySpan;
use crate::upstream::Upstream;

/// Less is what it takes to take a connection that lies ready.
const WAIT_MICROS_MIN: u64 = 100;

fn end_span(tried: &mut OriginTry, now: Moment) {
    if let Some(span) = &mut tried.span {
        span.ended = now;
    }
}

/// The tries of one fetch, in order. Beyond the limit the last one is told in place of the one before.
pub(crate) struct TryJournal {
    is_kept: bool,
    tries: Vec<OriginTry>,
    /// When the last one began …
    begun: Moment,
    /// … and when it had its connection.
    opened: Moment,
}

impl TryJournal {
    /// `is_kept`: somebody reads along.
    pub(crate) fn new(is_kept: bool, now: Moment) -> TryJournal {
        TryJournal { is_kept, tries: Vec::new(), begun: now, opened: now }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// One more begins: a connection is looked for.
    pub(crate) fn begin(&mut self, origin: Arc<str>, span: Option<Box<TrySpan>>) {
        self.begun = Moment::now();
        if self.tries.len() == ORIGIN_TRIES_TOLD_MAX {
            self.tries.pop();
        }
        self.tries.push(OriginTry {
            origin,
            address: None,
            is_reused: false,
            opening: OpeningTimes::default(),
            first_byte_micros: None,
            outcome: TryOutcome::GivenUp,
            span,
        });
    }

    /// It has its connection, and the request is about to be sent.
    pub(crate) fn opened(&mut self, upstream: &Upstream, now: Moment) {
        self.opened = now;
        let Some(last) = self.tries.last_mut() else { return };
        last.address = Some(Arc::clone(upstream.label()));
        last.is_reused = upstream.is_reused();
        last.opening = upstream.opening_times();
        // Who is given a connection that another had, or a stream of one that is about to be there, has waited for it.
        let waited_micros = self.begun.micros_until(now);
        if last.opening == OpeningTimes::default() && waited_micros >= WAIT_MICROS_MIN {
            last.opening.queue_micros = clamped(waited_micros);
        }
    }

    /// There is no connection.
    pub(crate) fn unconnected(&mut self, error: &OriginError) {
        let Some(last) = self.tries.last_mut() else { return };
        last.address = error.address.clone();
        let waited_micros = clamped(self.begun.micros_until(Moment::now()));
        let opening = &mut last.opening;
        *match error.kind {
            OriginErrorKind::Resolve { .. } | OriginErrorKind::Forbidden => &mut opening.lookup_micros,
            OriginErrorKind::QueueFull { .. } | OriginErrorKind::QueueTimeout { .. } => &mut opening.queue_micros,
            _ => &mut opening.connect_micros,
        } = waited_micros;
    }

    /// A final head has come.
    pub(crate) fn answered(&mut self, status: u16) {
        let Some(last) = self.tries.last_mut() else { return };
        let now = Moment::now();
        last.first_byte_micros = Some(self.opened.micros_until(now));
        last.outcome = TryOutcome::Answered { status };
        end_span(last, now);
    }

    /// None will come.
    pub(crate) fn broken(&mut self, broken: &Broken) {
        let Some(last) = self.tries.last_mut() else { return };
        last.outcome = match broken {
            Broken::Origin(failure) => TryOutcome::Failed(failure.token),
            Broken::ClientLeft | Broken::ClientFault(_) => TryOutcome::GivenUp,
        };
        end_span(last, Moment::now());
    }

    /// What the origin that is asked is told to work for, if the try has a span.
    pub(crate) fn span(&self) -> Option<SpanId> {
        self.tries.last()?.span.as_ref().map(|span| span.id)
    }

    /// All of them; the journal is empty then.
    pub(crate) fn take(&mut self) -> Vec<OriginTry> {
        std::mem::take(&mut self.tries)
    }
}
