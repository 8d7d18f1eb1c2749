//! Any sequence of everything that can happen to five keys: what is served is never older than the last purge, no
//! body mixes two versions, nobody waits for ever, and in the end the account is back at zero.

use crate::stage::*;
use bytes::Bytes;
use cache::{Answer, CacheSettings, LookupOptions};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Ask { key: usize, anew: bool },
    Describe { at: usize, how: usize },
    Append { at: usize, bytes: usize },
    Land { at: usize },
    Abort { at: usize },
    Fail { at: usize },
    Refresh { at: usize },
    Read { at: usize },
    Leave { at: usize },
    Purge { key: usize },
    Resize { kib: usize },
    Advance { ms: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let at = || 0usize..64;
    prop_oneof![
        6 => (0usize..5, any::<bool>()).prop_map(|(key, anew)| Step::Ask { key, anew: anew && key == 0 }),
        4 => (at(), 0usize..4).prop_map(|(at, how)| Step::Describe { at, how }),
        4 => (at(), 0usize..150_000).prop_map(|(at, bytes)| Step::Append { at, bytes }),
        3 => at().prop_map(|at| Step::Land { at }),
        1 => at().prop_map(|at| Step::Abort { at }),
        1 => at().prop_map(|at| Step::Fail { at }),
        1 => at().prop_map(|at| Step::Refresh { at }),
        3 => at().prop_map(|at| Step::Read { at }),
        2 => at().prop_map(|at| Step::Leave { at }),
        1 => (0usize..5).prop_map(|key| Step::Purge { key }),
        1 => (0usize..600).prop_map(|kib| Step::Resize { kib }),
        2 => (0u64..40_000).prop_map(|ms| Step::Advance { ms }),
    ]
}

/// Everything under way at once; each body byte is the version that the origin had when the fetch began.
struct World {
    stage: Stage,
    versions: [u8; 5],
    tickets: Vec<(cache::Ticket, usize, u8)>,
    drafts: Vec<(cache::Draft, u8)>,
    followers: Vec<(cache::Follower, Option<u8>)>,
}

fn pick<T>(list: &mut Vec<T>, at: usize) -> Option<T> {
    (!list.is_empty()).then(|| list.swap_remove(at % list.len()))
}

impl World {
    fn new() -> World {
        let settings = CacheSettings { memory_bytes_max: 600 * 1024, ..CacheSettings::default() };
        let stage = Stage::with(settings);
        World { stage, versions: [1; 5], tickets: Vec::new(), drafts: Vec::new(), followers: Vec::new() }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Ask { key, anew } => self.ask(key, anew),
            Step::Describe { at, how } => {
                if let Some((ticket, _, version)) = pick(&mut self.tickets, at) {
                    let storable =
                        [Some(storable(30_000)), Some(storable(30_000)), Some(varying("A")), None][how].clone();
                    self.drafts.push((self.stage.describe(ticket, storable, None), version));
                }
            }
            Step::Append { at, bytes } => {
                let count = self.drafts.len().max(1);
                if let Some((draft, version)) = self.drafts.get_mut(at % count) {
                    draft.append(Bytes::from(vec![*version; bytes]));
                }
            }
            Step::Land { at } => drop(pick(&mut self.drafts, at).and_then(|(draft, _)| draft.land(None))),
            Step::Abort { at } => {
                if let Some((draft, _)) = pick(&mut self.drafts, at) {
                    draft.abort(failure(0), self.stage.now);
                }
            }
            Step::Fail { at } => {
                if let Some((ticket, ..)) = pick(&mut self.tickets, at) {
                    ticket.fail(failure(1_000), self.stage.now);
                }
            }
            Step::Refresh { at } => {
                if let Some((ticket, ..)) = pick(&mut self.tickets, at)
                    && let Some(head) = ticket.stale().map(|stale| std::sync::Arc::new(stale.response().to_head()))
                {
                    ticket.refreshed((head, Bytes::new()), facts(30_000), None, self.stage.now);
                }
            }
            Step::Read { at } => {
                let count = self.followers.len().max(1);
                if let Some((follower, seen)) = self.followers.get_mut(at % count) {
                    let (body, _) = read_body(follower);
                    let first = seen.or(body.first().copied());
                    assert!(body.iter().all(|byte| Some(*byte) == first), "two versions in one body");
                    *seen = first;
                }
            }
            Step::Leave { at } => drop(pick(&mut self.followers, at)),
            Step::Purge { key } => {
                self.versions[key] += 1;
                self.stage.cache.purge(self.stage.key(&format!("/{key}")));
            }
            Step::Resize { kib } => self.stage.cache.set_memory(kib * 1024),
            Step::Advance { ms } => self.stage.advance_ms(ms),
        }
    }

    fn ask(&mut self, key: usize, always_miss: bool) {
        let options = LookupOptions { always_miss, ..LookupOptions::default() };
        let version = self.versions[key];
        let is_current = |object: &std::sync::Arc<cache::Object>| body_of(object).iter().all(|byte| *byte == version);
        match self.stage.ask_with(&format!("/{key}"), &[], &options) {
            Answer::Fresh(object) => assert!(is_current(&object), "an invalidated object came back"),
            Answer::Stale(object, _) => assert!(is_current(&object), "an invalidated object came back"),
            Answer::Miss(ticket) | Answer::HitForMiss(ticket, _) => {
                assert!(ticket.stale().is_none_or(is_current));
                self.followers.push((ticket.follow(0), None));
                self.tickets.push((ticket, key, version));
            }
            Answer::Busy(follower) => self.followers.push((follower, None)),
            Answer::RecentFailure(again) => assert_eq!(again, failure(1_000)),
            Answer::HitForPass(_) => panic!("nothing was marked"),
            Answer::Uncacheable => panic!("nobody wished to pass"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_happens_nothing_old_comes_back_and_the_account_returns_to_zero(
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let mut world = World::new();
        steps.into_iter().for_each(|step| world.take(step));
        let World { stage, tickets, drafts, followers, .. } = world;
        drop((tickets, drafts));
        for (mut follower, _) in followers {
            prop_assert!(head_of(&mut follower).is_some(), "nobody waits for ever");
            prop_assert!(read_body(&mut follower).1.is_some(), "no body stays open");
        }
        for key in 0..5 {
            stage.cache.purge(stage.key(&format!("/{key}")));
        }
        let stats = stage.cache.stats();
        prop_assert_eq!((stats.memory_bytes, stats.leaving_bytes, stats.objects, stats.keys), (0, 0, 0, 0));
    }
}
