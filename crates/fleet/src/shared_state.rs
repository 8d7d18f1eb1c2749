//! What a node knows of its fleet, which its tasks share: how far it has heard, who the others are, and until when it may serve what it has.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot, watch};

use crate::backlog::{Backlog, Queued, WaitingOrder};
use crate::limits::{COMPLAINT_CHARS_MAX, REPLAYED_MAX, SAID_AGAIN_MS, WORDS_IN_A_LEASE};
use crate::node::Node;
use crate::order::{ORDER_KIND, OrderCounts};
use crate::position::{KeptPosition, Position, StreamId};
use crate::redis_log::{LogEnd, LogPlace, Speaker};
use crate::roll::{Roll, Word};

/// How long pledges that cannot be kept yet are remembered apart.
const PLEDGES_MAX: usize = 64;

/// What an operator decides.
#[derive(Clone)]
pub struct FleetSettings {
    /// What this node is called.
    pub name: String,
    /// Of this process: what nobody else comes to say.
    pub run: String,
    pub log: LogPlace,
    pub lease: Duration,
    /// Where the position is kept over a restart: beside what is stored. Without it nothing that is stored outlives the process.
    pub position_file: Option<PathBuf>,
    /// This program's.
    pub version: String,
    /// It finds what others keep, and has to know what was purged before it began.
    pub replays: bool,
}

/// What its tasks share.
pub(crate) struct Shared {
    pub node: Arc<dyn Node>,
    pub settings: FleetSettings,
    /// Orders that this node has given, for their tokens.
    pub given: AtomicU64,
    pub state: Mutex<State>,
    /// Changes with everything that somebody may wait for.
    pub changed: watch::Sender<u64>,
    /// A word is to be said now.
    pub says_now: Notify,
    /// Something waits for the log.
    pub has_backlog: Notify,
    pub ends: watch::Sender<bool>,
    /// The file of the position is another process's by now.
    pub is_followed: Mutex<bool>,
}

#[derive(Default)]
pub(crate) struct State {
    pub position: Position,
    /// Another number each time the position was set anew: what was read before that is nobody's.
    pub generation: u64,
    pub condemned: u64,
    /// It is known from before this start. Otherwise there was nothing that could have missed an order, or it was condemned.
    knows_position: bool,
    /// The log was heard of: where to read from is known.
    pub has_joined: bool,
    pledges: VecDeque<Pledge>,
    last_said: StreamId,
    pub roll: Roll,
    /// Orders of this node that are in the log, or on their way there, by their tokens.
    pub own: HashMap<String, oneshot::Sender<Result<String, String>>>,
    /// The token of the last order that was carried out here before it was in the log, until it has come back from there: all before it have, too.
    ahead: Option<String>,
    /// Carried out here, and not in the log yet.
    pub backlog: Backlog,
    pub speaker: Option<Speaker>,
    /// Why the log cannot be reached; and when that was said last.
    pub trouble: Option<String>,
    trouble_said_ms: Option<u64>,
    pub counts: OrderCounts,
}

/// Once this order has been applied the lease lasts until then.
struct Pledge {
    number: u64,
    until_ms: u64,
}

impl Shared {
    pub fn new(settings: FleetSettings, node: Arc<dyn Node>, state: State) -> Shared {
        Shared {
            node,
            settings,
            given: AtomicU64::new(0),
            state: Mutex::new(state),
            changed: watch::channel(0).0,
            is_followed: Mutex::new(false),
            says_now: Notify::new(),
            has_backlog: Notify::new(),
            ends: watch::channel(false).0,
        }
    }

    pub fn lease_ms(&self) -> u64 {
        self.settings.lease.as_millis() as u64
    }

    /// How long between two words where nothing happens.
    pub fn word_pause(&self) -> Duration {
        self.settings.lease / WORDS_IN_A_LEASE
    }

    pub fn word(&self, is_leaving: bool) -> Word {
        let (now_ms, figures) = (self.node.now_ms(), self.node.figures());
        let complaint = self.node.complaint().chars().take(COMPLAINT_CHARS_MAX).collect();
        let state = self.state.lock();
        Word {
            node: self.settings.name.clone(),
            run: self.settings.run.clone(),
            version: self.settings.version.clone(),
            applied: state.position.clone(),
            lease_ms: self.lease_ms(),
            figures,
            complaint,
            silent: state.roll.silent(now_ms),
            is_leaving,
        }
    }

    /// For an order: what its sender knows it by in the log.
    pub fn token(&self) -> String {
        format!("{}-{}", self.settings.run, self.given.fetch_add(1, Relaxed))
    }

    /// Is it the token of an order of this very process?
    pub fn is_own(&self, token: &str) -> bool {
        token.strip_prefix(&*self.settings.run).is_some_and(|rest| rest.starts_with('-'))
    }

    /// This node is about to carry out an order that is not in the log yet: it stands alone until that comes back from there. False: it
    /// found no room, and the others will be told that something is missing.
    pub fn queue(&self, text: String, token: String) -> bool {
        self.queue_by(|backlog| backlog.push(WaitingOrder { kind: ORDER_KIND, text: text.into(), token }))
    }

    /// Something is missing that was carried out here.
    pub fn queue_loss(&self, token: String) {
        self.queue_by(|backlog| backlog.note_loss(token));
    }

    fn queue_by(&self, push: impl FnOnce(&mut Backlog) -> Queued) -> bool {
        let mut state = self.state.lock();
        let queued = push(&mut state.backlog);
        let last = state.backlog.last_token().map(str::to_owned);
        if state.ahead.is_none() {
            self.node.stand_alone(true);
        }
        state.ahead = last.or(state.ahead.take());
        let is_lost = queued == Queued::Lost;
        state.counts.lost += u64::from(is_lost);
        drop(state);
        self.has_backlog.notify_one();
        !is_lost
    }

    pub fn note_change(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Does it begin, and want to know what was purged before?
    pub fn wants_replay(&self) -> bool {
        let state = self.state.lock();
        self.settings.replays && !state.has_joined && !state.knows_position
    }

    /// A word was answered that this node began to say at that time, standing there. It may have heard more since. `oldest`: the first order
    /// that the log remembers, for who carries out once more what there is.
    pub fn heard_end(&self, asked_ms: u64, stood: &Position, end: LogEnd, oldest: Option<&Position>) {
        let mut state = self.state.lock();
        let is_first = !state.has_joined;
        if is_first && !state.knows_position {
            // What was fetched since the start may have been purged since: those orders are not read any more.
            state.condemned = self.node.condemn();
            let from = oldest.map(Position::before).filter(|from| is_worth_it(from, &end.last));
            self.begin_at(&mut state, from.unwrap_or_else(|| end.last.clone()), None);
        } else if is_first && stood.leads_to(&end.last) {
            self.node.reach(state.position.reached(false));
        } else if !stood.leads_to(&end.last) {
            let why = "the log is not the one that was heard: it was emptied, or has lost its end";
            self.begin_at(&mut state, end.last.clone(), Some(why));
        }
        state.has_joined = true;
        state.roll.forget_the_silent(self.node.now_ms());
        // A word that is not behind the one before it stands in another stream.
        let last_said = std::mem::replace(&mut state.last_said, end.said);
        if is_first || end.said <= last_said {
            state.roll.begin(self.node.now_ms());
            state.generation += 1;
        }
        let pledge = Pledge { number: end.last.number, until_ms: asked_ms.saturating_add(self.lease_ms()) };
        if state.pledges.len() == PLEDGES_MAX || state.pledges.back().is_some_and(|last| last.number == pledge.number) {
            state.pledges.pop_back();
        }
        state.pledges.push_back(pledge);
        self.keep_pledges(&mut state);
        state.trouble = None;
        drop(state);
        self.note_change();
    }

    /// Goes on from there. `why` this node cannot know what it missed: then everything has to be confirmed.
    pub fn begin_at(&self, state: &mut State, position: Position, why: Option<&str>) {
        if let Some(why) = why {
            self.condemn(state, why);
        }
        self.node.reach(position.reached(false));
        state.position = position;
        state.generation += 1;
        state.pledges.clear();
        // What was said ahead of another log does not come back from this one.
        state.ahead = state.backlog.last_token().map(str::to_owned);
        self.node.stand_alone(state.ahead.is_some());
    }

    pub fn condemn(&self, state: &mut State, why: &str) {
        state.condemned = self.node.condemn();
        state.counts.condemned += 1;
        self.node.say(&format!(
            "warning: what is stored here is asked for at the origin before it is served again, for this node may have missed purges of others: {why}"
        ));
    }

    /// An order of this node has come back from the log.
    pub fn note_in_log(&self, state: &mut State, token: &str) {
        if state.ahead.as_deref() == Some(token) {
            state.ahead = None;
            self.node.stand_alone(false);
        }
    }

    /// The lease lasts as long as what was applied allows.
    pub fn keep_pledges(&self, state: &mut State) {
        while let Some(pledge) = state.pledges.front().filter(|pledge| pledge.number <= state.position.number) {
            self.node.extend_lease(pledge.until_ms);
            state.pledges.pop_front();
        }
    }

    /// It is said at once, and again after a while.
    pub fn note_trouble(&self, why: String) {
        let now_ms = self.node.now_ms();
        let mut state = self.state.lock();
        state.speaker = None;
        let said_ms = state.trouble_said_ms;
        if said_ms.is_none_or(|said_ms| now_ms.saturating_sub(said_ms) >= SAID_AGAIN_MS) {
            state.trouble_said_ms = Some(now_ms);
            let lease = self.settings.lease.as_secs_f64();
            self.node.say(&format!(
                "warning: [fleet] log cannot be used: {why}. After {lease} s without it everything is asked for at the origin before it is served"
            ));
        }
        state.trouble = Some(why);
    }
}

/// May all orders from there to the end be carried out once more?
fn is_worth_it(from: &Position, end: &Position) -> bool {
    from.leads_to(end) && end.number - from.number <= REPLAYED_MAX
}

impl State {
    /// Where the run before this one was.
    pub fn at(kept: KeptPosition) -> State {
        State { position: kept.position, condemned: kept.condemned, knows_position: true, ..State::default() }
    }

    /// At the end of the log, wherever that is.
    pub fn at_the_end(condemned: u64) -> State {
        State { condemned, ..State::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Figures, Reached};

    /// How often it had everything confirmed.
    #[derive(Default)]
    struct Counting(AtomicU64);

    impl Node for Counting {
        fn now_ms(&self) -> u64 {
            1_000
        }

        fn apply(&self, _: &str, _: bool) -> Result<String, String> {
            Ok(String::new())
        }

        fn condemn(&self) -> u64 {
            self.0.fetch_add(1, Relaxed) + 1
        }

        fn condemned(&self, _: u64) {}
        fn hear(&self, _: u64) {}
        fn reach(&self, _: Reached) {}
        fn stand_alone(&self, _: bool) {}
        fn extend_lease(&self, _: u64) {}
        fn say(&self, _: &str) {}

        fn settle(&self) -> Result<(), String> {
            Ok(())
        }

        fn complaint(&self) -> String {
            String::new()
        }

        fn figures(&self) -> Figures {
            Figures::default()
        }
    }

    fn at(number: u64) -> Position {
        Position { epoch: "e".to_owned(), number, id: StreamId(number, 0) }
    }

    /// Orders are heard beside the words: an answer may come late.
    #[test]
    fn an_end_that_was_overtaken_is_no_other_log() {
        let node = Arc::new(Counting::default());
        let settings = FleetSettings {
            name: "a".to_owned(),
            run: "run".to_owned(),
            log: LogPlace::new("redis://127.0.0.1:1", "larder", None).unwrap(),
            lease: Duration::from_secs(5),
            position_file: None,
            version: "1".to_owned(),
            replays: false,
        };
        let kept = KeptPosition { position: at(10), condemned: 0 };
        let shared = Shared::new(settings, Arc::clone(&node) as Arc<dyn Node>, State::at(kept));
        let end = |number, said| LogEnd { last: at(number), said: StreamId(said, 0) };
        shared.heard_end(0, &at(10), end(10, 1), None);
        shared.state.lock().position = at(12);
        shared.heard_end(0, &at(10), end(11, 2), None);
        assert_eq!((node.0.load(Relaxed), shared.state.lock().position.number), (0, 12));
        shared.heard_end(0, &at(12), end(11, 3), None);
        assert_eq!((node.0.load(Relaxed), shared.state.lock().position.number), (1, 11), "it has lost its end");
    }
    #[test]
    fn orders_from_before_are_carried_out_once_more_where_there_are_not_too_many() {
        for (oldest, end, expect) in [
            (1, 5, true),
            (5, 5, true),
            (1, REPLAYED_MAX, true),
            (1, REPLAYED_MAX + 1, false),
            (7, REPLAYED_MAX + 6, true),
        ] {
            assert_eq!(is_worth_it(&at(oldest).before(), &at(end)), expect, "{oldest} {end}");
        }
        let other = Position { epoch: "f".to_owned(), ..at(9) };
        assert!(!is_worth_it(&at(1).before(), &other));
    }
}
