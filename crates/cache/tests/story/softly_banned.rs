//! Bans that shorten lives in place of ending them, bans that are worked off at once, and a look at all that is stored.

use std::sync::Arc;

use cache::{BanSubject, BanTest, HotTable, Purge, Release, StoreAs};

use crate::banned::{ban, store};
use crate::stage::*;

const STALE: &str = "stale and refresh";

/// Hits what has this body's tag; every text that begins with `all` hits everything.
struct Soft(&'static str, Purge);

impl BanTest for Soft {
    fn text(&self) -> &str {
        self.0
    }

    fn needs_request(&self) -> bool {
        false
    }

    fn purges(&self) -> Purge {
        self.1
    }

    fn bans(&self, subject: &BanSubject<'_>) -> bool {
        let tag = self.0.strip_prefix("tag ");
        tag.is_none_or(|tag| subject.head.fields.get_all_named(b"X-Tag").any(|it| it == tag.as_bytes()))
    }
}

fn soften(stage: &Stage, text: &'static str) {
    stage.cache.ban(Arc::new(Soft(text, Purge::SOFT)), stage.now);
}

fn long_lived() -> StoreAs {
    living(10_000, 10_000, 10_000)
}

fn keep(stage: &Stage, path: &str) -> Arc<cache::Object> {
    stage.fill(stage.miss(path), long_lived(), path.as_bytes()).expect("stored")
}

fn work_off(stage: &Stage) {
    while !stage.cache.work_off_bans(100).is_idle {}
}

#[test]
fn what_a_soft_ban_hits_is_stale_from_when_it_was_issued() {
    let mut stage = Stage::new();
    let (a, fields) = (keep(&stage, "/a"), fields_of(&[]));
    let mut hot = HotTable::new(&stage.cache);
    hot.remember(stage.key("/a"), Default::default(), &a);
    soften(&stage, "all");
    assert!(
        hot.get(stage.key("/a"), Default::default(), &request(&fields)).is_none(),
        "no hot table serves it as fresh"
    );
    stage.advance_ms(4_000);
    assert_eq!(kind(&stage.ask("/a")), STALE);
    stage.advance_ms(5_999);
    assert_eq!(kind(&stage.ask("/a")), STALE, "its grace counts from the ban");
    stage.advance_ms(1);
    assert_eq!(kind(&stage.ask("/a")), "miss");
    keep(&stage, "/b");
    assert_eq!(kind(&stage.ask("/b")), "fresh", "what is younger stays");
    let entries = stage.cache.bans();
    assert!(entries.len() == 1 && entries[0].is_soft && entries[0].matched == 1, "{entries:?}");
}

#[test]
fn it_hits_no_other_and_condemns_what_is_under_way() {
    let stage = Stage::new();
    store(&stage, "/a", "red");
    store(&stage, "/b", "blue");
    let leader = stage.miss("/c");
    let mut early = stage.busy("/c");
    soften(&stage, "tag red");
    soften(&stage, "all under way");
    work_off(&stage);
    let mut late = stage.busy("/c");
    let mut draft = stage.describe(leader, Some(long_lived()), None);
    assert!(head_of(&mut early).unwrap().is_ok());
    assert_eq!(head_of(&mut late).unwrap().err(), Some(Release::VaryMismatch));
    draft.append("old".into());
    assert!(draft.land(None).is_none());
}

/// The lurker does not come back for what a soft ban has put in its place.
#[test]
fn a_hard_ban_behind_a_soft_one_hits_what_that_has_softened() {
    for hard_first in [false, true] {
        let stage = Stage::new();
        (0..200).for_each(|n| drop(store(&stage, &format!("/{n}"), "red")));
        if hard_first {
            ban(&stage, "tag red");
        }
        soften(&stage, "all");
        if !hard_first {
            ban(&stage, "tag red");
        }
        work_off(&stage);
        let stats = stage.cache.stats();
        assert_eq!((stats.objects, stats.banned), (0, 200), "{hard_first}");
        assert_eq!(kind(&stage.ask("/7")), "miss");
    }
}

#[test]
fn a_soft_ban_takes_no_hard_ones_place() {
    let stage = Stage::new();
    keep(&stage, "/a");
    let issue = |how| stage.cache.ban(Arc::new(Soft("all", how)), stage.now);
    issue(Purge::Hard);
    issue(Purge::SOFT);
    assert_eq!(stage.cache.bans().len(), 2);
    assert_eq!(kind(&stage.ask("/a")), "miss");
    issue(Purge::Hard);
    assert_eq!(stage.cache.bans().len(), 1, "a hard one does what both did");
}

#[test]
fn a_ban_is_worked_off_before_it_returns_and_counted() {
    let stage = Stage::new();
    (0..3_000).for_each(|n| drop(store(&stage, &format!("/{n}"), if n % 3 == 0 { "red" } else { "blue" })));
    let mut pauses = 0;
    let outcome = stage.cache.ban_at_once(Arc::new(Soft("tag red", Purge::Hard)), stage.now, || pauses += 1);
    assert_eq!((outcome.matched, stage.cache.stats().objects), (Some(1_000), 2_000));
    assert_eq!(outcome.number, stage.cache.sequence());
    assert_eq!(
        (stage.cache.work_off_bans(usize::MAX).tested, stage.cache.bans().len()),
        (0, 0),
        "nothing is left to do"
    );
    assert!(pauses > 0);
    let outcome = stage.cache.ban_at_once(Arc::new(Soft("tag blue", Purge::SOFT)), stage.now, || ());
    assert_eq!((outcome.matched, stage.cache.stats().objects), (Some(2_000), 2_000));
}

#[test]
fn a_look_through_the_store_sees_everything_once_and_may_end_early() {
    let stage = Stage::new();
    (0..500).for_each(|n| drop(keep(&stage, &format!("/{n}"))));
    let mut seen = Vec::new();
    stage.cache.look_through(
        |object| {
            seen.push(body_of(object));
            true
        },
        || (),
    );
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 500);
    let mut looks = 0;
    stage.cache.look_through(
        |_| {
            looks += 1;
            looks < 3
        },
        || (),
    );
    assert_eq!(looks, 3);
    let under: Vec<_> = stage.cache.stored_under(stage.key("/7")).iter().map(body_of).collect();
    assert_eq!((under, stage.cache.stored_under(stage.key("/none")).len()), (vec![b"/7".to_vec()], 0));
}

#[test]
fn a_response_knows_the_url_that_it_was_fetched_for_whatever_becomes_of_it() {
    let stage = Stage::new();
    keep(&stage, "/a");
    let url = |stage: &Stage| stage.cache.stored_under(stage.key("/a"))[0].url().map(<[u8]>::to_vec);
    assert_eq!(url(&stage), Some(b"http:///".to_vec()));
    assert_eq!(stage.cache.purge_as(stage.key("/a"), Purge::SOFT, stage.now), 1);
    assert_eq!(url(&stage), Some(b"http:///".to_vec()));
    let hits = |test: &'static str| {
        stage.cache.would_hit(&Soft(test, Purge::Hard), &stage.cache.stored_under(stage.key("/a"))[0])
    };
    assert!(hits("all") && !hits("tag red"));
}
