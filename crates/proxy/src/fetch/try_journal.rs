//! What a fetch notes of its tries to be answered by an origin, while somebody reads along: who was asked where, how long each part took,
//! and what came of it.

use std::sync::Arc;

use crate::clock::Moment;
use crate::events::origin_try::{OriginTry, TryOutcome};
use crate::fetch::broken::Broken;
use crate::limits::ORIGIN_TRIES_TOLD_MAX;
use crate::origin::OpeningTimes;
use crate::upstream::Upstream;

/// The tries of one fetch, in order. Beyond the limit the last one is told in place of the one before.
pub(crate) struct TryJournal {
    is_kept: bool,
    tries: Vec<OriginTry>,
    /// When the last one had its connection.
    opened: Moment,
}

impl TryJournal {
    /// `is_kept`: somebody reads along.
    pub(crate) fn new(is_kept: bool, now: Moment) -> TryJournal {
        TryJournal { is_kept, tries: Vec::new(), opened: now }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// One more begins: a connection is looked for.
    pub(crate) fn begin(&mut self, origin: Arc<str>) {
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
        });
    }

    /// It has its connection, and the request is about to be sent.
    pub(crate) fn opened(&mut self, upstream: &Upstream, now: Moment) {
        self.opened = now;
        let Some(last) = self.tries.last_mut() else { return };
        last.address = Some(Arc::clone(upstream.label()));
        last.is_reused = upstream.is_reused();
        last.opening = upstream.opening_times();
    }

    /// A final head has come.
    pub(crate) fn answered(&mut self, status: u16) {
        let Some(last) = self.tries.last_mut() else { return };
        last.first_byte_micros = Some(self.opened.micros_until(Moment::now()));
        last.outcome = TryOutcome::Answered { status };
    }

    /// None will come.
    pub(crate) fn broken(&mut self, broken: &Broken) {
        let Some(last) = self.tries.last_mut() else { return };
        last.outcome = match broken {
            Broken::Origin(failure) => TryOutcome::Failed(failure.token),
            Broken::ClientLeft | Broken::ClientFault(_) => TryOutcome::GivenUp,
        };
    }

    /// All of them; the journal is empty then.
    pub(crate) fn take(&mut self) -> Vec<OriginTry> {
        std::mem::take(&mut self.tries)
    }
}
