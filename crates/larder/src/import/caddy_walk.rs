//! The way of all requests through the steps of a site. Where a step is for some of them the way parts in two: first those that it is for,
//! then the others. So the places where somebody answers come in an order in which the first that fits counts, as larder asks its routes,
//! and each of them asks only for what a route can ask.
//!
//! What a step says or answers is in `caddy_answers.rs`.

use proxy::settings::RoutePattern;

use crate::import::caddy_answers::{self, Hands, Taken};
use crate::import::caddy_condition::{Condition, paths_regex};
use crate::import::caddy_leaves::Leaf;
use crate::import::caddy_passage::{AskedRequests, Passage};
use crate::import::caddy_steps::Step;

/// Routes of one site for one host.
const ROUTES_MAX: usize = 2_000;
/// Steps that are taken, over all ways.
const STEPS_TAKEN_MAX: usize = 100_000;

/// The walk for one host.
pub struct Walk<'w> {
    hands: Hands<'w>,
    /// `None`: for those that no other site is for.
    host: Option<&'w str>,
    taken: usize,
    leaves: usize,
}

/// The steps of a block, and how far they are.
#[derive(Clone)]
struct Frame<'s> {
    steps: &'s [Step<'s>],
    at: usize,
    /// Of these one has been taken.
    done: Vec<&'static str>,
}

type Further<'f, 'w> = &'f dyn Fn(&mut Walk<'w>, AskedRequests) -> Vec<Leaf>;

/// A step whose requests are told from others.
#[derive(Clone, Copy)]
struct At<'f, 'w> {
    step: &'f Step<'f>,
    passage: &'f Passage,
    /// Where nobody can tell for whom it is, and it guards nothing.
    unsaid: Further<'f, 'w>,
}

impl<'w> Walk<'w> {
    pub fn new(hands: Hands<'w>, host: Option<&'w str>) -> Walk<'w> {
        Walk { hands, host, taken: 0, leaves: 0 }
    }

    /// All places of a site. `None`: there are more than a site may have.
    pub fn leaves(&mut self, steps: &[Step<'_>]) -> Option<Vec<Leaf>> {
        let frame = Frame { steps, at: 0, done: Vec::new() };
        let leaves = self.go(vec![frame], &Passage::default(), AskedRequests::default());
        (!self.is_too_long()).then_some(leaves)
    }

    fn is_too_long(&self) -> bool {
        self.taken > STEPS_TAKEN_MAX || self.leaves > ROUTES_MAX
    }

    fn go<'s>(&mut self, mut frames: Vec<Frame<'s>>, passage: &Passage, asked: AskedRequests) -> Vec<Leaf> {
        loop {
            if self.is_too_long() {
                return vec![Leaf::closed(asked)];
            }
            self.taken += 1;
            let Some(frame) = frames.last_mut() else {
                self.leaves += 1;
                return vec![Leaf::of(caddy_answers::nothing(&mut self.hands, passage), asked)];
            };
            let Some(step) = frame.steps.get(frame.at) else {
                frames.pop();
                continue;
            };
            frame.at += 1;
            let is_done = step.one_of.is_some_and(|one| frame.done.contains(&one));
            if is_done && !step.may_be_several {
                continue;
            }
            let mut with = frames.clone();
            if let (Some(one), Some(frame)) = (step.one_of, with.last_mut()) {
                frame.done.push(one);
            }
            let yes = |walk: &mut Walk<'w>, asked: AskedRequests| walk.take(step, with.clone(), passage, asked);
            let no = |walk: &mut Walk<'w>, asked: AskedRequests| walk.go(frames.clone(), passage, asked);
            let left = caddy_answers::left_unsaid(step, passage);
            let unsaid = |walk: &mut Walk<'w>, asked: AskedRequests| walk.go(frames.clone(), &left, asked);
            let at = At { step, passage, unsaid: &unsaid };
            let leaves = self.split(step.when(), at, asked.clone(), (&yes, &no));
            if !is_done || leaves == no(self, asked.clone()) {
                return leaves;
            }
            self.hands.findings.leave(step.directive, "closed: Caddy's versions take one or all of these in a route");
            return vec![Leaf::closed(asked)];
        }
    }

    /// What a step makes of requests that it is for.
    fn take<'s>(
        &mut self,
        step: &'s Step<'s>,
        mut frames: Vec<Frame<'s>>,
        passage: &Passage,
        asked: AskedRequests,
    ) -> Vec<Leaf> {
        if step.is_merged {
            frames.push(Frame { steps: step.members(), at: 0, done: Vec::new() });
            return self.go(frames, passage, asked);
        }
        match caddy_answers::take(&mut self.hands, step, passage, &asked) {
            Taken::Goes(passage) => {
                if let Some(inside) = &step.inside {
                    frames.push(Frame { steps: inside, at: 0, done: Vec::new() });
                }
                self.go(frames, &passage, asked)
            }
            Taken::GoesWhere(condition, changed) => {
                let yes = |walk: &mut Walk<'w>, asked: AskedRequests| walk.go(frames.clone(), &changed, asked);
                let no = |walk: &mut Walk<'w>, asked: AskedRequests| walk.go(frames.clone(), passage, asked);
                self.split(&condition, At { step, passage, unsaid: &no }, asked, (&yes, &no))
            }
            Taken::Answered(answer) => {
                self.leaves += 1;
                vec![Leaf::of(answer, asked)]
            }
        }
    }

    /// Where a condition holds, and where it does not.
    fn split(
        &mut self,
        condition: &Condition,
        at: At<'_, 'w>,
        asked: AskedRequests,
        (yes, no): (Further<'_, 'w>, Further<'_, 'w>),
    ) -> Vec<Leaf> {
        match condition {
            Condition::Always => yes(self, asked),
            Condition::Never => no(self, asked),
            Condition::Not(of) => self.split(of, at, asked, (no, yes)),
            Condition::All(all) => match all.split_first() {
                None => yes(self, asked),
                Some((first, rest)) => {
                    let rest = Condition::All(rest.to_vec());
                    let and = |walk: &mut Walk<'w>, asked: AskedRequests| walk.split(&rest, at, asked, (yes, no));
                    self.split(first, at, asked, (&and, no))
                }
            },
            Condition::Host(hosts) => match hosts.iter().any(|host| is_of(self.host, host)) {
                true => yes(self, asked),
                false => no(self, asked),
            },
            Condition::Secure => match self.hands.is_secure {
                Some(true) => yes(self, asked),
                Some(false) => no(self, asked),
                None => self.unknown(at, asked, (yes, no)),
            },
            Condition::Unknown => self.unknown(at, asked, (yes, no)),
            Condition::Peer(_) if self.hands.believes_proxies => self.unknown(at, asked, (yes, no)),
            Condition::Client(networks) | Condition::Peer(networks) => self.of_client(networks, at, asked, (yes, no)),
            Condition::Path(_) | Condition::PathRegex(..) | Condition::Method(_) | Condition::Field(..) => {
                self.sayable(condition, at, asked, (yes, no))
            }
        }
    }

    fn sayable(
        &mut self,
        condition: &Condition,
        at: At<'_, 'w>,
        asked: AskedRequests,
        (yes, no): (Further<'_, 'w>, Further<'_, 'w>),
    ) -> Vec<Leaf> {
        let passage = at.passage;
        if passage.fallback.as_ref().is_some_and(|file| {
            passage.path.is_own() && !passage.is_path_unsure && holds_for(condition, file) == Some(false)
        }) {
            return self.of_own_or_fallback(condition, at, asked, (yes, no));
        }
        let condition = match condition {
            Condition::Path(_) | Condition::PathRegex(..) if passage.fallback.is_some() || passage.is_path_unsure => {
                None
            }
            Condition::Path(_) | Condition::PathRegex(..) => passage.path.of_own(condition),
            Condition::Field(name, _) if !self.hands.asks_fields || passage.requests.names(name) => None,
            other => Some(other.clone()),
        };
        let condition = match condition {
            Some(Condition::Always) => return yes(self, asked),
            Some(Condition::Never) => return no(self, asked),
            Some(condition) => condition,
            None => return self.unknown(at, asked, (yes, no)),
        };
        match asked.is_known(&condition) {
            Some(true) => return yes(self, asked),
            Some(false) => return no(self, asked),
            None => {}
        }
        let Some(with) = asked.with(&condition) else { return self.unknown(at, asked, (yes, no)) };
        let first = yes(self, with);
        let then = no(self, asked.without(&condition));
        let is_same =
            |(one, other): (&Leaf, &Leaf)| one.answers_as(other) && one.asked.is_but_for(&other.asked, &condition);
        match first.len() == then.len() && first.iter().zip(&then).all(is_same) {
            true => then,
            false => first.into_iter().chain(then).collect(),
        }
    }

    /// A condition that does not hold for the file that may answer: it holds for none but paths of its own, and nobody can tell which of
    /// these have files.
    fn of_own_or_fallback(
        &mut self,
        condition: &Condition,
        at: At<'_, 'w>,
        asked: AskedRequests,
        (yes, no): (Further<'_, 'w>, Further<'_, 'w>),
    ) -> Vec<Leaf> {
        let with = match asked.is_known(condition) {
            Some(false) => return no(self, asked),
            Some(true) => return self.unknown(at, asked, (yes, no)),
            None => asked.with(condition),
        };
        let Some(with) = with else { return self.unknown(at, asked, (yes, no)) };
        let first = self.unknown(at, with, (yes, no));
        first.into_iter().chain(no(self, asked.without(condition))).collect()
    }

    /// Nobody can tell for whom a step is: where that makes a difference nobody is answered.
    fn unknown(
        &mut self,
        at: At<'_, 'w>,
        asked: AskedRequests,
        (yes, no): (Further<'_, 'w>, Further<'_, 'w>),
    ) -> Vec<Leaf> {
        if at.step.members().iter().all(|member| caddy_answers::is_harmless(&member.directive.name)) {
            self.hands.findings.leave(at.step.directive, "not said: larder cannot ask what its matcher asks");
            return (at.unsaid)(self, asked);
        }
        let (first, then) = (yes(self, asked.clone()), no(self, asked.clone()));
        if first == then {
            return then;
        }
        self.hands.findings.leave(at.step.directive, "closed: larder cannot ask what its matcher asks");
        vec![Leaf::closed(asked)]
    }

    /// Networks say who is let in, where all others are refused; or who is refused.
    fn of_client(
        &mut self,
        networks: &[String],
        at: At<'_, 'w>,
        asked: AskedRequests,
        (yes, no): (Further<'_, 'w>, Further<'_, 'w>),
    ) -> Vec<Leaf> {
        let (mut first, mut then) = (yes(self, asked.clone()), no(self, asked.clone()));
        if first == then {
            return then;
        }
        let refuse = |leaves: &[Leaf]| leaves.iter().all(Leaf::refuses);
        match (refuse(&first), refuse(&then)) {
            (false, true) => {
                for leaf in first.iter_mut().filter(|leaf| !leaf.refuses()) {
                    match &leaf.allow {
                        None => leaf.allow = Some(networks.to_vec()),
                        Some(known) if known == networks => {}
                        Some(_) => *leaf = Leaf::closed(leaf.asked.clone()),
                    }
                }
                self.hands.findings.note(at.step.directive, "who is not let in is told 403");
                first
            }
            (true, false) => {
                then.iter_mut().for_each(|leaf| leaf.deny.extend(networks.iter().cloned()));
                self.hands.findings.note(at.step.directive, "who is refused is told 403");
                then
            }
            _ => {
                self.hands
                    .findings
                    .leave(at.step.directive, "closed: networks of clients say who is let in, and choose no answer");
                vec![Leaf::closed(asked)]
            }
        }
    }
}

/// Does a condition hold for this path? `None`: it is about something else.
fn holds_for(condition: &Condition, path: &str) -> Option<bool> {
    let regex = match condition {
        Condition::Path(paths) => paths_regex(paths)?,
        Condition::PathRegex(_, regex) => regex.clone(),
        _ => return None,
    };
    Some(RoutePattern::new(&regex).ok()?.is_match(path.as_bytes()))
}

/// Is a host, or every host beneath a `*`, one of those that a matcher names?
fn is_of(host: Option<&str>, named: &str) -> bool {
    let Some(host) = host else { return false };
    match named.strip_prefix('*') {
        Some(suffix) => host == named || host.split_once('.').is_some_and(|(_, rest)| suffix == format!(".{rest}")),
        None => host == named,
    }
}
