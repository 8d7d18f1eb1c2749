//! Any sequence of answers with and without Vary, marks, errors and 304s under a VCL, beside a plain model of Varnish's object
//! head: a list, newest first, of which a request is answered by the first fresh one that matches it, else by the newest that has
//! expired; what a fetch set out from leaves when it brings something.
//!
//! The model differs from Varnish's list in one thing: of one variant there is one object and one mark, and a new object ends the
//! mark, so that `req.hash_always_miss` leaves nothing behind that comes back when what it brought has expired.

use std::sync::Arc;

use bytes::Bytes;
use cache::{Answer, Description, LookupOptions, Mark, MarkKind, Object, Renewal, Ticket};
use message::{FieldName, Fields, ResponseHead, Status};
use rules::{Facts, Lifetimes};

use crate::stage::*;

const SEED: u64 = 0x5eed_0b1e_c7ed;
const STEPS: usize = 100_000;
const VARIES: [&str; 4] = ["", "X-A", "X-B", "X-A, X-B"];

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}

/// What a request says in X-A and X-B; 0 is an absent field.
type Asked = [usize; 2];

#[derive(Clone, Debug)]
struct Stored {
    id: u64,
    /// Number of its Vary, and what the origin was asked when it came.
    vary: usize,
    of: Asked,
    mark: Option<MarkKind>,
    came_ms: u64,
    life: Lifetimes,
}

impl Stored {
    fn matches(&self, asked: Asked) -> bool {
        (0..2).all(|field| self.vary >> field & 1 == 0 || self.of[field] == asked[field])
    }

    fn is_same_variant(&self, other: &Stored) -> bool {
        self.vary == other.vary && self.matches(other.of)
    }

    fn ttl_left_ms(&self, now_ms: u64) -> i64 {
        self.life.ttl_ms - (now_ms - self.came_ms) as i64
    }

    fn is_fresh(&self, now_ms: u64) -> bool {
        self.ttl_left_ms(now_ms) > 0
    }

    fn in_grace(&self, now_ms: u64) -> bool {
        self.ttl_left_ms(now_ms) + self.life.grace_ms as i64 > 0
    }

    fn is_over(&self, now_ms: u64) -> bool {
        self.ttl_left_ms(now_ms) + (self.life.grace_ms + self.life.keep_ms) as i64 <= 0
    }
}

/// What Varnish would do, and with what.
#[derive(Clone, Debug, PartialEq)]
enum Expected {
    Hit(u64),
    /// Stale, and somebody fetches: what is served.
    Grace(u64),
    /// With what is validated.
    Miss(Option<u64>),
    HitForMiss(u64),
    HitForPass(u64),
}

/// Newest first.
#[derive(Default)]
struct Head(Vec<Stored>);

impl Head {
    fn look_up(&mut self, asked: Asked, now_ms: u64) -> Expected {
        self.0.retain(|stored| !stored.is_over(now_ms));
        let matching = || self.0.iter().filter(|stored| stored.matches(asked));
        if let Some(fresh) = matching().find(|stored| stored.is_fresh(now_ms)) {
            return match fresh.mark {
                None => Expected::Hit(fresh.id),
                Some(MarkKind::Miss) => Expected::HitForMiss(fresh.id),
                Some(MarkKind::Pass) => Expected::HitForPass(fresh.id),
            };
        }
        match matching().next() {
            None => Expected::Miss(None),
            Some(expired) if expired.mark.is_some() => Expected::HitForMiss(expired.id),
            Some(expired) if expired.in_grace(now_ms) => Expected::Grace(expired.id),
            Some(expired) => Expected::Miss(Some(expired.id)),
        }
    }

    fn insert(&mut self, stored: Stored) {
        self.0.retain(|other| !other.is_same_variant(&stored) || stored.mark.is_some() && other.mark.is_none());
        self.0.insert(0, stored);
    }

    fn kill(&mut self, id: Option<u64>) {
        self.0.retain(|stored| Some(stored.id) != id);
    }
}

/// A fetch on its way, and what it set out from.
struct Fetch {
    ticket: Ticket,
    asked: Asked,
    from: Option<u64>,
}

struct World {
    stage: Stage,
    head: Head,
    dice: Dice,
    fetches: Vec<Fetch>,
    ids: u64,
}

impl World {
    fn options() -> LookupOptions {
        LookupOptions { newest_first: true, ..LookupOptions::default() }
    }

    fn step(&mut self) {
        match self.dice.below(10) {
            0..=4 => self.ask(),
            5..=7 if !self.fetches.is_empty() => {
                let at = self.dice.below(self.fetches.len());
                let fetch = self.fetches.swap_remove(at);
                self.answer(fetch);
                // Two answers of one millisecond would be in the order in which they were asked for.
                self.stage.advance_ms(1);
            }
            _ => {
                let ms = [1, 3, 50, 500, 2_000][self.dice.below(5)];
                self.stage.advance_ms(ms);
            }
        }
    }

    fn ask(&mut self) {
        let asked = [self.dice.below(3), self.dice.below(3)];
        let fields = asked_fields(asked);
        let (key, now_ms) = (self.stage.key("/"), self.stage.now.mono_ms);
        let expected = self.head.look_up(asked, now_ms);
        let always_miss = self.dice.below(20) == 0;
        let options = LookupOptions { always_miss, alone: always_miss, ..World::options() };
        let answer = self.stage.cache.ask(key, &request(&fields), &options, self.stage.now);
        let is_busy = !self.fetches.is_empty();
        let (ticket, from) = match (answer, &expected) {
            (Answer::Miss(ticket), _) if always_miss => (ticket, None),
            (Answer::Fresh(object), Expected::Hit(id)) => return assert_eq!(id_of(&object), *id),
            (Answer::Stale(object, None), Expected::Grace(id)) if is_busy => return assert_eq!(id_of(&object), *id),
            (Answer::Stale(object, Some(ticket)), Expected::Grace(id)) => {
                assert_eq!(id_of(&object), *id);
                (ticket, Some(*id))
            }
            (Answer::Miss(ticket), Expected::Miss(from)) => {
                assert_eq!(ticket.stale().map(id_of), *from);
                (ticket, *from)
            }
            (Answer::HitForMiss(ticket, Some(mark)), Expected::HitForMiss(id)) => {
                assert_eq!(id_of(&mark), *id);
                (ticket, Some(*id))
            }
            (Answer::HitForPass(mark), Expected::HitForPass(id)) => return assert_eq!(id_of(&mark), *id),
            (Answer::Busy(_), Expected::Miss(_)) if is_busy => return,
            (answer, expected) => panic!("{} for {asked:?}, not {expected:?}: {:#?}", kind(&answer), self.head.0),
        };
        self.fetches.push(Fetch { ticket, asked, from });
    }

    fn answer(&mut self, fetch: Fetch) {
        let Fetch { mut ticket, asked, from } = fetch;
        self.ids += 1;
        // What its program makes of the request is what the origin chooses by.
        let of = if self.dice.below(8) == 0 { [self.dice.below(3), 0] } else { asked };
        ticket.asked_as(request(&asked_fields(of)).to_head());
        let (vary, mut life) = (self.dice.below(VARIES.len()), self.life());
        let (id, came_ms) = (self.ids, self.stage.now.mono_ms);
        let stored = |life, mark| Stored { id, vary, of, mark, came_ms, life };
        match self.dice.below(8) {
            0 => ticket.fail(failure(0), self.stage.now),
            1 => {
                // An error that a program makes, without any life: who waited has it.
                let store_as = StoreOf { vary, life: Lifetimes::default() }.storable();
                let description = Description { supersedes: false, ..self.description(Some(store_as)) };
                ticket.describe(description).land(None);
            }
            2 => {
                life.ttl_ms = 0;
                life.age_ms = 0;
                self.store(ticket, vary, life);
                self.head.kill(from);
            }
            3 | 4 => {
                let kind = if self.dice.below(3) == 0 { MarkKind::Pass } else { MarkKind::Miss };
                let grace_ms = if kind == MarkKind::Pass { 0 } else { life.grace_ms };
                let life = Lifetimes { grace_ms, keep_ms: 0, ..life };
                let mark = Mark { kind, lifetimes: life, vary: vary_of(vary), tags: None };
                let description = Description { mark: Some(mark), ..self.description(None) };
                ticket.describe(description).land(None);
                self.head.kill(from);
                self.head.insert(stored(life, Some(kind)));
            }
            5 if ticket.stale().is_some() => {
                let head = (Arc::new(self.response()), Bytes::new());
                let vary_spec = vary_of(vary);
                let (lifetimes, facts) = (Some(life), Facts::default());
                let is_there = ticket.stale().is_some_and(|stale| stale.is_live());
                let renewal = Renewal { facts, lifetimes, vary: vary_spec, groups: None, tags: None };
                ticket.renewed(head, renewal, self.stage.now);
                self.head.kill(from);
                match is_there {
                    true => self.head.insert(stored(life, None)),
                    false => self.note_if_kept(stored(life, None)),
                }
            }
            _ => {
                self.store(ticket, vary, life);
                self.head.kill(from);
                self.head.insert(stored(life, None));
            }
        }
    }

    /// A 304 about what is gone is kept where nothing else came to its place.
    fn note_if_kept(&mut self, stored: Stored) {
        let fields = asked_fields(stored.of);
        let answer = self.stage.cache.ask(self.stage.key("/"), &request(&fields), &World::options(), self.stage.now);
        if let Answer::Fresh(object) = answer
            && id_of(&object) == stored.id
        {
            self.head.insert(stored);
        }
    }

    fn life(&mut self) -> Lifetimes {
        let times = [0, 10, 400, 3_000];
        Lifetimes {
            age_ms: 0,
            ttl_ms: [5, 60, 700, 5_000][self.dice.below(4)],
            grace_ms: times[self.dice.below(4)],
            keep_ms: times[self.dice.below(4)],
        }
    }

    fn store(&self, ticket: Ticket, vary: usize, life: Lifetimes) {
        let store_as = StoreOf { vary, life }.storable();
        let mut draft = ticket.describe(self.description(Some(store_as)));
        draft.append(Bytes::from_static(b"body"));
        draft.land(None);
    }

    fn description(&self, storable: Option<cache::StoreAs>) -> Description {
        let head = Arc::new(self.response());
        Description {
            shared_head: Arc::clone(&head),
            head,
            uncacheable_ms: 0,
            ..self.stage.description(storable, None)
        }
    }

    /// Its ETag is the number of the answer.
    fn response(&self) -> ResponseHead {
        let mut head = ResponseHead::new(Status::OK);
        head.fields.push(FieldName::Etag, self.ids.to_string());
        head
    }
}

struct StoreOf {
    vary: usize,
    life: Lifetimes,
}

impl StoreOf {
    fn storable(self) -> cache::StoreAs {
        cache::StoreAs { lifetimes: Some(self.life), vary: vary_of(self.vary), ..storable(0) }
    }
}

fn vary_of(number: usize) -> Option<rules::VarySpec> {
    (number > 0).then(|| spec(VARIES[number]))
}

fn asked_fields(asked: Asked) -> Fields {
    let names = ["X-A", "X-B"];
    let said: Vec<(&str, String)> = names
        .into_iter()
        .zip(asked)
        .filter(|(_, value)| *value > 0)
        .map(|(name, value)| (name, value.to_string()))
        .collect();
    fields_of(&said.iter().map(|(name, value)| (*name, value.as_str())).collect::<Vec<_>>())
}

fn id_of(object: &Arc<Object>) -> u64 {
    let etag = object.fields().get(FieldName::Etag).expect("each has one");
    std::str::from_utf8(etag).ok().and_then(|text| text.parse().ok()).expect("a number")
}

#[test]
fn a_key_under_a_vcl_is_looked_up_as_varnish_looks_its_object_head_through() {
    println!("seed {SEED:#x}, {STEPS} steps");
    let dice = Dice(SEED);
    let mut world = World { stage: Stage::new(), head: Head::default(), dice, fetches: Vec::new(), ids: 0 };
    for _ in 0..STEPS {
        world.step();
    }
    assert!(world.ids > 10_000, "only {} answers", world.ids);
}
