//! What a program settled on: an answer, its body, how long it lives and whether it is kept.

use bytes::Bytes;
use cache::Now;
use message::FieldName;
use rules::Lifetimes;
use wire::ResponseBody;

use crate::fetch::Fetch;
use crate::fetch::origin_body::Arriving;
use crate::records::fetch_records;
use crate::vcl_story::log_notes::{self, DecidedBy, LifeBy};
use crate::vcl_story::scope_heads::MadeHead;

/// What a program settled on.
pub(crate) struct Settled {
    pub(crate) made: MadeHead,
    pub(crate) body: SettledBody,
    pub(crate) keeping: Keeping,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) received: Now,
    pub(crate) streams: bool,
    /// Why the last attempt brought nothing, for the log; empty when it did.
    pub(crate) why: &'static str,
}

pub(crate) enum SettledBody {
    Origin(Box<Arriving>, ResponseBody),
    /// What is stored: the origin confirmed it.
    Stored,
    Program(Bytes),
}

/// Whether an answer is kept, or that it must not be.
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

impl Fetch {
    /// What is made of a response that the program lets go.
    pub(crate) fn settled(
        &self,
        made: MadeHead,
        mut body: SettledBody,
        pass_for: Option<f64>,
        received: Now,
    ) -> Settled {
        if let SettledBody::Origin(arriving, _) = &mut body {
            // What the origin said of it is not here any more: this is the program's.
            arriving.persistent &= !made.head.fields.view().has_token(FieldName::Connection, "close");
        }
        let policy = self.policy();
        let (mut lifetimes, mut by) = (policy.lifetimes.get(), policy.life_by.get());
        let keeping = if policy.is_pass {
            by.uncacheable = Some(DecidedBy::Pass);
            Keeping::Not
        } else if let Some(seconds) = pass_for {
            lifetimes = Lifetimes { ttl_ms: (seconds * 1_000.0) as i64, grace_ms: 0, keep_ms: 0, ..lifetimes };
            by = LifeBy::VERDICT;
            Keeping::HitForPass
        } else if policy.uncacheable.get() {
            Keeping::HitForMiss
        } else {
            // Even one without any time: who waited for it gets it, and nobody after them.
            Keeping::Store
        };
        self.record_settled(&body, pass_for, &lifetimes, (keeping, received));
        self.note_life(&lifetimes, &by, keeping);
        let streams = policy.do_stream.get();
        let why = match body {
            SettledBody::Program(_) => policy.why_failed.get(),
            _ => "",
        };
        Settled { made, body, keeping, lifetimes, received, streams, why }
    }

    fn record_settled(
        &self,
        body: &SettledBody,
        pass_for: Option<f64>,
        lifetimes: &Lifetimes,
        (keeping, received): (Keeping, Now),
    ) {
        let Some(records) = self.records() else { return };
        if pass_for.is_some() {
            fetch_records::life(records, "HFP", lifetimes, true, received);
        }
        let framing = match body {
            SettledBody::Origin(_, framing) => Some(*framing),
            SettledBody::Stored => Some(ResponseBody::None),
            SettledBody::Program(_) => None,
        };
        fetch_records::body_begins(records, framing, self.policy().do_stream.get(), keeping == Keeping::Store);
        if let SettledBody::Program(body) = body {
            records.count(|carried| carried.body_in += body.len() as u64);
            fetch_records::body_ended(records);
        }
    }

    /// For the request's log line, if there is one to be, and for who watches.
    fn note_life(&self, lifetimes: &Lifetimes, by: &LifeBy, keeping: Keeping) {
        let policy = self.policy();
        if policy.log_notes.is_none() && self.core.watch.is_none() {
            return;
        }
        let life = log_notes::life(lifetimes, by, keeping, policy.made_for.site.loaded.sources());
        if let Some(watch) = &self.core.watch {
            watch.settled(&life, policy.is_background);
        }
        if let Some(notes) = &policy.log_notes {
            notes.note_life(life);
        }
    }
}
