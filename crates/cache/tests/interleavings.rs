//! Interleavings of ask, land, fail, purge, 304 and eviction, on threads whose schedule shuttle decides: every lock
//! and atomic of `store` and `cache` is a point where another thread may go on.
//!
//! Run by `cargo test --release -p cache --features shuttle --test interleavings`.
#![cfg(feature = "shuttle")]

#[path = "story/schedules.rs"]
mod schedules;
#[path = "story/stage.rs"]
mod stage;

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use cache::{Answer, BanSubject, BanTest, CacheSettings, Purge, Release};
use rules::Lifetimes;
use schedules::*;
use shuttle::future::block_on;
use shuttle::sync::atomic::Ordering::SeqCst;
use shuttle::thread;
use stage::*;

#[test]
fn many_ask_one_fetches_all_are_served() {
    let acts = || (0..4).map(visitor).collect();
    check(CacheSettings::default(), acts, |site| {
        assert_eq!(site.fetches.load(SeqCst), 1);
        assert_eq!(kind(&site.ask(0, false)), "fresh");
    });
}

#[test]
fn what_was_fetched_before_a_purge_is_gone_after_it() {
    let purge = || {
        act(|site| {
            site.version.store(2, SeqCst);
            site.cache.purge(site.key());
            assert_eq!(site.visit(2), 2, "an answer from before the purge");
        })
    };
    check(CacheSettings::default(), move || vec![visitor(0), visitor(1), purge()], |site| assert_eq!(site.visit(0), 2));
}

#[test]
fn what_was_fetched_before_its_group_was_invalidated_is_gone_after_it() {
    let invalidate = || {
        act(|site| {
            site.version.store(2, SeqCst);
            site.cache.invalidate_group(site.group());
            assert_eq!(site.visit(2), 2, "an answer from before the invalidation");
        })
    };
    let acts = move || vec![visitor(0), visitor(1), invalidate()];
    check(CacheSettings::default(), acts, |site| assert_eq!(site.visit(0), 2));
}

#[test]
fn two_fetches_and_a_purge_leave_the_newest_or_nothing() {
    let hidden = |site: Arc<Site>| {
        let Answer::Miss(ticket) = site.ask(1, true) else { panic!("always_miss misses") };
        site.fetch(ticket);
    };
    let purge = |site: Arc<Site>| {
        site.version.store(2, SeqCst);
        site.cache.invalidate(site.key());
    };
    let acts = move || vec![visitor(0), act(hidden), act(purge)];
    check(CacheSettings::default(), acts, |site| assert_eq!(site.visit(0), 2));
}

#[test]
fn a_failure_reaches_everybody() {
    let acts = || {
        let asker = |core| {
            act(move |site: Arc<Site>| match site.ask(core, false) {
                Answer::Miss(ticket) => {
                    site.fetches.fetch_add(1, SeqCst);
                    let follower = ticket.follow(core);
                    ticket.fail(failure(1_000), at(1_000));
                    assert_eq!(follow(follower), Err(Release::Failed(failure(1_000))));
                }
                Answer::Busy(follower) => assert_eq!(follow(follower), Err(Release::Failed(failure(1_000)))),
                Answer::RecentFailure(again) => assert_eq!(again, failure(1_000)),
                other => panic!("{other:?}"),
            })
        };
        (0..4).map(asker).collect()
    };
    // One alone may have been about its request.
    check(CacheSettings::default(), acts, |site| {
        let fetches = site.fetches.load(SeqCst);
        assert!(fetches <= 2, "{fetches}");
        assert_eq!(kind(&site.ask(0, false)), if fetches == 1 { "miss" } else { "recent failure" });
    });
}

#[test]
fn a_leader_that_gives_up_is_followed_by_another() {
    let quitter = || {
        act(|site| match site.ask(0, false) {
            Answer::Miss(ticket) => drop(ticket.describe(description(Some(storable(MINUTE_MS))))),
            other => drop(other),
        })
    };
    let acts = move || vec![quitter(), visitor(1), visitor(2)];
    check(CacheSettings::default(), acts, |site| assert_eq!(site.fetches.load(SeqCst), 1));
}

#[test]
fn a_private_answer_holds_nobody() {
    let acts = || {
        let asker = |core| {
            act(move |site: Arc<Site>| {
                loop {
                    match site.ask(core, false) {
                        Answer::Miss(ticket) | Answer::HitForMiss(ticket, _) => {
                            let follower = ticket.follow(core);
                            let mut draft = ticket.describe(description(None));
                            draft.append(Bytes::from(vec![core as u8]));
                            draft.land(None);
                            assert_eq!(follow(follower), Ok(vec![core as u8]), "somebody else's answer");
                            return;
                        }
                        Answer::Busy(follower) => assert_eq!(follow(follower), Err(Release::Private)),
                        other => panic!("{other:?}"),
                    }
                }
            })
        };
        (0..4).map(asker).collect()
    };
    check(CacheSettings::default(), acts, |site| assert_eq!(kind(&site.ask(0, false)), "hit for miss"));
}

#[test]
fn what_was_fetched_before_its_tag_was_purged_is_gone_after_it() {
    for how in [Purge::Hard, Purge::SOFT] {
        let purge = move || {
            act(move |site: Arc<Site>| {
                site.version.store(2, SeqCst);
                let hit = site.cache.purge_tags(&[site.tag()], how, at(1_000));
                assert!(hit <= 1, "one key");
                assert_eq!(site.visit(2), 2, "an answer from before the purge");
            })
        };
        let acts = move || vec![visitor(0), visitor(1), purge()];
        check(CacheSettings::default(), acts, |site| assert_eq!(site.visit(0), 2));
    }
}

#[test]
fn a_purge_of_a_tag_races_with_what_takes_a_place_and_with_what_clears_it() {
    let purge = |site: Arc<Site>| {
        site.version.store(2, SeqCst);
        let hit = site.cache.purge_tags(&[site.tag()], Purge::Hard, at(1_000));
        assert!(hit <= 1, "one key");
        assert_eq!(site.visit(2), 2, "an answer from before the purge");
    };
    let soften = |site: Arc<Site>| {
        site.cache.purge_as(site.key(), Purge::SOFT, at(1_000));
    };
    let clear = |site: Arc<Site>| {
        site.cache.set_memory(0);
        site.cache.set_memory(1 << 20);
        site.cache.take_out_purged(1);
    };
    let acts = move || vec![visitor(0), act(soften), act(purge), act(clear)];
    let settings = CacheSettings { memory_bytes_max: 1 << 20, ..CacheSettings::default() };
    check(settings, acts, |site| {
        site.cache.take_out_purged(usize::MAX);
        assert_eq!(site.visit(0), 2);
        assert_eq!(site.cache.stats().tags, site.cache.stats().objects);
    });
}

#[test]
fn what_freshens_during_a_purge_of_its_tag_brings_nothing_back() {
    // As an answer to HEAD does: the same body under a new head, from before the purge.
    let freshen = |site: Arc<Site>| {
        site.visit(1);
        let began = site.cache.began();
        if let Answer::Fresh(object) = site.ask(1, false) {
            site.cache.freshen(&object, None, facts(MINUTE_MS), (began, at(1_000)));
        }
    };
    for how in [Purge::Hard, Purge::SOFT] {
        let purge = move |site: Arc<Site>| {
            site.version.store(2, SeqCst);
            site.cache.purge_tags(&[site.tag()], how, at(1_000));
            assert_eq!(site.visit(2), 2, "an answer from before the purge");
        };
        let acts = move || vec![act(freshen), act(purge)];
        check(CacheSettings::default(), acts, |site| assert_eq!(site.visit(0), 2));
    }
}

#[test]
fn a_soft_purge_races_with_everything_and_leaves_nothing_behind() {
    let settings = CacheSettings { memory_bytes_max: 1 << 20, ..CacheSettings::default() };
    let by_key = |site: &Site| site.cache.purge_as(site.key(), Purge::SOFT, at(1_000));
    let by_tag = |site: &Site| site.cache.purge_tags(&[site.tag()], Purge::SOFT, at(1_000));
    let squeeze = |site: Arc<Site>| {
        site.cache.set_memory(0);
        site.cache.set_memory(1 << 20);
    };
    let replace = |site: Arc<Site>| match site.ask(3, true) {
        Answer::Miss(ticket) => drop(site.fetch(ticket)),
        other => panic!("{other:?}"),
    };
    for order in [by_key as fn(&Site) -> usize, by_tag] {
        let soften = move |site: Arc<Site>| {
            site.version.store(2, SeqCst);
            order(&site);
            assert_eq!(site.visit(2), 2, "an answer from before the purge");
        };
        let acts = move || vec![visitor(0), act(soften), act(squeeze), act(replace)];
        check(settings.clone(), acts, |site| assert_eq!(site.cache.stats().tags, site.cache.stats().objects));
    }
}

/// Hits everything; asks for nothing.
struct All(bool);

impl BanTest for All {
    fn text(&self) -> &str {
        if self.0 { "request" } else { "all" }
    }

    fn needs_request(&self) -> bool {
        self.0
    }

    fn bans(&self, _: &BanSubject<'_>) -> bool {
        true
    }
}

#[test]
fn what_was_fetched_before_a_ban_is_gone_after_it() {
    for needs_request in [false, true] {
        let ban = move || {
            act(move |site| {
                site.version.store(2, SeqCst);
                site.cache.ban(Arc::new(All(needs_request)), at(1_000));
                assert_eq!(site.visit(2), 2, "an answer from before the ban");
            })
        };
        let acts = move || vec![visitor(0), visitor(1), ban()];
        check(CacheSettings::default(), acts, |site| assert_eq!(site.visit(0), 2));
    }
}

/// The lurker, a hot table of another core, a fetch and a ban at once: nothing from before the ban is served after it,
/// though the ban may have left the list.
#[test]
fn what_lands_while_a_ban_is_worked_off_is_gone_after_it() {
    let ban = |site: Arc<Site>| {
        site.version.store(2, SeqCst);
        site.cache.ban(Arc::new(All(false)), at(1_000));
        while !site.cache.work_off_bans(200).is_idle {}
    };
    check(CacheSettings::default(), move || vec![visitor(0), act(ban)], |site| assert_eq!(site.visit(0), 2));
}

#[test]
fn a_304_during_a_ban_brings_nothing_back() {
    // So that the ban itself waits for no shard.
    let before = |site: &Site| {
        site.cache.watch_for_bans();
        store_stale(site);
    };
    let validate = |site: Arc<Site>| {
        let Answer::Miss(ticket) = site.ask(1, false) else { return };
        // Its origin changed nothing: only the ban says that the body is no good.
        match ticket.stale().map(|stale| Arc::new(stale.response().to_head())) {
            Some(head) => drop(ticket.refreshed((head, Bytes::new()), facts(MINUTE_MS), None, at(1_000))),
            _ => drop(site.fetch(ticket)),
        }
    };
    let ban = |site: Arc<Site>| {
        site.version.store(2, SeqCst);
        site.cache.ban(Arc::new(All(false)), at(1_000));
        while !site.cache.work_off_bans(200).is_idle {}
    };
    let acts = move || vec![act(validate), act(validate), act(ban)];
    check_after(before, SCHEDULES, CacheSettings::default(), acts, |site| assert_eq!(site.visit(0), 2));
}

#[test]
fn a_ban_that_was_worked_off_has_missed_nothing() {
    let ban = || {
        act(|site: Arc<Site>| {
            let mut hot = cache::HotTable::with_entries(&site.cache, 4);
            site.visit(3);
            if let Answer::Fresh(object) = site.ask(3, false) {
                hot.remember(site.key(), Default::default(), &object);
            }
            site.version.store(2, SeqCst);
            site.cache.ban(Arc::new(All(false)), at(1_000));
            let fields = fields_of(&[]);
            if let Some(object) = hot.get(site.key(), Default::default(), &request(&fields)) {
                assert_eq!(body_of(object)[0], 2, "a hot table missed a ban");
            }
            while !site.cache.work_off_bans(200).is_idle {}
            assert_eq!(site.visit(2), 2, "an answer from before the ban");
        })
    };
    check_after(
        |_| (),
        1_000,
        CacheSettings::default(),
        move || vec![visitor(0), ban()],
        |site| {
            assert_eq!(site.visit(0), 2);
            assert!(site.cache.work_off_bans(1).is_idle);
            assert_eq!(site.cache.bans(), []);
        },
    );
}

/// What comes in the place of an object that the lurker has taken to test is no older than the ban, or tested, too.
#[test]
fn what_a_soft_purge_puts_in_its_place_escapes_no_ban() {
    let before = |site: &Site| {
        site.cache.watch_for_bans();
        let Answer::Miss(ticket) = site.ask(0, false) else { panic!("nothing is stored") };
        drop(site.fetch(ticket));
    };
    let soften = |site: Arc<Site>| {
        let how = Purge::Soft { ttl_ms: MINUTE_MS, grace_ms: None, keep_ms: None };
        site.cache.purge_as(site.key(), how, at(1_000));
    };
    let ban = |site: Arc<Site>| {
        site.version.store(2, SeqCst);
        site.cache.ban(Arc::new(All(false)), at(1_000));
        while !site.cache.work_off_bans(200).is_idle {}
    };
    let acts = move || vec![act(soften), act(ban)];
    check_after(before, SCHEDULES, CacheSettings::default(), acts, |site| assert_eq!(site.visit(0), 2));
}

/// A mark comes, a response that can be stored comes, and a purge: whoever asks is answered, and nothing old is left.
#[test]
fn a_mark_holds_nobody_and_does_not_outlive_a_purge() {
    let acts = || {
        let asker = |core: usize| {
            act(move |site: Arc<Site>| {
                loop {
                    match site.ask(core, false) {
                        Answer::Miss(ticket) => {
                            let follower = ticket.follow(core);
                            ticket.describe(cache::Description { mark: Some(pass_mark()), ..description(None) });
                            drop(follow(follower));
                            return;
                        }
                        Answer::Busy(follower) => drop(follow(follower)),
                        Answer::HitForPass(_) | Answer::Fresh(_) => return,
                        other => panic!("{other:?}"),
                    }
                }
            })
        };
        let storer = act(|site| match site.ask(2, true) {
            Answer::Miss(ticket) => drop(site.fetch(ticket)),
            other => panic!("{other:?}"),
        });
        vec![asker(0), asker(1), storer]
    };
    check(CacheSettings::default(), acts, |site| {
        assert!(matches!(kind(&site.ask(0, false)), "fresh" | "hit for pass"));
        site.cache.purge(site.key());
        assert_eq!(kind(&site.ask(0, false)), "miss");
    });
}

fn pass_mark() -> cache::Mark {
    let lifetimes = Lifetimes { age_ms: 0, ttl_ms: 10_000, grace_ms: 0, keep_ms: 0 };
    cache::Mark { kind: cache::MarkKind::Pass, lifetimes, vary: None, tags: None }
}

#[test]
fn a_window_gives_every_reader_every_byte() {
    let settings = CacheSettings { object_bytes_max: 1, window_bytes_max: 1, ..CacheSettings::default() };
    check(settings, || (0..3).map(visitor).collect(), |_| {});
}

/// Stores an object that is stale by the time the acts run.
fn store_stale(site: &Site) {
    let Answer::Miss(ticket) = site.ask(0, false) else { panic!("nothing is stored yet") };
    let mut draft = ticket.describe(description(Some(storable(0))));
    draft.append(Bytes::from(vec![1; BODY_BYTES]));
    draft.land(None).expect("stored");
}

#[test]
fn a_304_during_a_purge_or_another_fetch_brings_nothing_back() {
    shuttle::check_random(
        || {
            let site = Site::new(CacheSettings::default());
            store_stale(&site);
            let validate = |site: Arc<Site>| {
                let Answer::Miss(ticket) = site.ask(1, false) else { return };
                match ticket.stale().map(|stale| Arc::new(stale.response().to_head())) {
                    // The origin says 304 only while it has nothing else to say.
                    Some(head) if site.version.load(SeqCst) == 1 => {
                        ticket.refreshed((head, Bytes::new()), facts(MINUTE_MS), None, at(1_000));
                    }
                    _ => drop(site.fetch(ticket)),
                }
            };
            let replace = |site: Arc<Site>| {
                site.version.store(2, SeqCst);
                let Answer::Miss(ticket) = site.ask(2, true) else { panic!("always_miss misses") };
                site.fetch(ticket);
            };
            let purge = |site: Arc<Site>| {
                site.version.store(2, SeqCst);
                site.cache.purge(site.key());
            };
            let purges = shuttle::rand::Rng::r#gen::<bool>(&mut shuttle::rand::thread_rng());
            let other: Act = if purges { act(purge) } else { act(replace) };
            let spawn = |act: Act| {
                let site = site.clone();
                thread::spawn(move || act(site))
            };
            let threads = [spawn(act(validate)), spawn(other), spawn(visitor(3))];
            threads.into_iter().for_each(|thread| thread.join().expect("no act panics"));
            assert_eq!(site.visit(0), 2);
            site.close();
        },
        SCHEDULES,
    );
}

#[test]
fn eviction_races_with_everything_and_leaves_nothing_behind() {
    let settings = CacheSettings { memory_bytes_max: 1 << 20, ..CacheSettings::default() };
    let squeeze = |site: Arc<Site>| {
        site.cache.set_memory(0);
        site.cache.set_memory(1 << 20);
    };
    let purge = |site: Arc<Site>| {
        site.cache.purge(site.key());
    };
    let acts = move || vec![visitor(0), visitor(1), act(squeeze), act(purge)];
    check(settings, acts, |_| {});
}

#[test]
fn a_reader_that_leaves_holds_no_writer_up() {
    let settings = CacheSettings { object_bytes_max: 1, window_bytes_max: 1, ..CacheSettings::default() };
    let leaver = || {
        act(|site| {
            if let Answer::Busy(mut follower) = site.ask(2, false) {
                drop(block_on(poll_fn(|cx| follower.poll_head(cx))));
            }
        })
    };
    let stays = || {
        act(|site| {
            if let Answer::Miss(ticket) = site.ask(0, false) {
                // A fetch without a reader of its own, as a background refresh is.
                site.fetch(ticket);
            }
        })
    };
    check(settings, move || vec![stays(), leaver(), visitor(1)], |_| {});
}

#[test]
fn figures_are_read_while_others_store_and_the_limit_moves() {
    let look = || act(|site: Arc<Site>| assert!(site.cache.stats().keys <= 1 && site.cache.stats().objects <= 1));
    let resize = || act(|site: Arc<Site>| (1..3).for_each(|part| site.cache.set_memory((1 << 20) / part)));
    check(CacheSettings::default(), move || vec![visitor(0), look(), resize()], |_| ());
}
