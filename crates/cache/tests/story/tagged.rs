//! Tags: what carries one is purged wherever it is, hard or soft, and counted once.

use std::sync::Arc;

use bytes::Bytes;
use cache::limits::TAGS_MAX;
use cache::{Description, Key, LookupOptions, Mark, MarkKind, Purge, Release, Renewal, StoreAs, Tags, TooManyTags};
use message::{ResponseHead, Status};
use rules::Lifetimes;

use crate::stage::*;

fn tag(stage: &Stage, name: &str) -> Key {
    stage.cache.key([&b"tag"[..], name.as_bytes()])
}

fn tags(stage: &Stage, names: &[&str]) -> Option<Tags> {
    Tags::new(names.iter().map(|name| tag(stage, name))).expect("few enough")
}

fn carrying(stage: &Stage, names: &[&str]) -> StoreAs {
    StoreAs { tags: tags(stage, names), ..living(10_000, 10_000, 10_000) }
}

fn store(stage: &Stage, path: &str, names: &[&str]) {
    stage.fill(stage.miss(path), carrying(stage, names), path.as_bytes()).expect("stored");
}

fn purge(stage: &Stage, names: &[&str], how: Purge) -> usize {
    let tags: Vec<Key> = names.iter().map(|name| tag(stage, name)).collect();
    stage.cache.purge_tags(&tags, how, stage.now)
}

fn kinds(stage: &Stage) -> [&'static str; 3] {
    ["/a", "/b", "/c"].map(|path| kind(&stage.ask(path)))
}

fn three() -> Stage {
    let stage = Stage::new();
    store(&stage, "/a", &["product", "all"]);
    store(&stage, "/b", &["page", "all", "all"]);
    store(&stage, "/c", &[]);
    stage
}

fn check(names: &[&str], how: Purge, hit: usize, expect: [&str; 3]) {
    let stage = three();
    assert_eq!(purge(&stage, names, how), hit, "{names:?}");
    assert_eq!(kinds(&stage), expect, "{names:?}");
}

#[test]
fn what_carries_a_tag_is_purged_and_counted_once() {
    const STALE: &str = "stale and refresh";
    check(&["product"], Purge::Hard, 1, ["miss", "fresh", "fresh"]);
    check(&["all"], Purge::Hard, 2, ["miss", "miss", "fresh"]);
    check(&["product", "all", "page"], Purge::Hard, 2, ["miss", "miss", "fresh"]);
    check(&["nobody's"], Purge::Hard, 0, ["fresh"; 3]);
    check(&["page"], Purge::SOFT, 1, ["fresh", STALE, "fresh"]);
    check(&["page", "all", "page"], Purge::SOFT, 2, [STALE, STALE, "fresh"]);
}

#[test]
fn it_is_told_which_tags_there_are_and_what_carries_them() {
    let stage = three();
    store(&stage, "/d", &["all"]);
    let uses = stage.cache.tags_in_use();
    let of = |name: &str| uses.iter().find(|it| it.bits == tag(&stage, name).bits()).map(|it| (it.keys, it.objects));
    assert_eq!((uses.len(), of("product"), of("all"), of("nobody's")), (3, Some((1, 1)), Some((3, 3)), None));
    let bodies = |names: &[&str]| {
        let tags: Vec<Key> = names.iter().map(|name| tag(&stage, name)).collect();
        let mut bodies: Vec<_> = stage.cache.tagged(&tags).iter().map(body_of).collect();
        bodies.sort_unstable();
        bodies
    };
    assert_eq!(bodies(&["product", "all"]), [b"/a", b"/b", b"/d"]);
    assert!(bodies(&["nobody's"]).is_empty());
    let none = Stage::new();
    assert!(none.cache.tags_in_use().is_empty() && none.cache.tagged(&[tag(&none, "x")]).is_empty());
}

#[test]
fn what_is_stale_is_not_purged_softly_again() {
    let mut stage = three();
    assert_eq!([purge(&stage, &["all"], Purge::SOFT), purge(&stage, &["all"], Purge::SOFT)], [2, 0]);
    stage.advance_ms(11_000);
    assert_eq!(purge(&stage, &["all"], Purge::Hard), 2, "but gone all the same");
}

#[test]
fn an_index_entry_lives_as_long_as_its_object() {
    let stage = three();
    assert_eq!(stage.cache.stats().tags, 4);
    store(&stage, "/d", &["page"]);
    stage.cache.purge(stage.key("/d"));
    purge(&stage, &["page"], Purge::SOFT);
    assert_eq!(stage.cache.stats().tags, 4, "softened, with its tags");
    let anew = LookupOptions { always_miss: true, ..LookupOptions::default() };
    stage.fill(ticket(stage.ask_with("/b", &[], &anew)), carrying(&stage, &["other"]), b"newer").expect("stored");
    assert_eq!((stage.cache.stats().tags, purge(&stage, &["page"], Purge::Hard)), (3, 0));
    stage.cache.set_memory(0);
    let stats = stage.cache.stats();
    assert_eq!((stats.tags, stats.objects, stats.memory_bytes), (0, 0, 0));
}

#[test]
fn every_variant_with_the_tag_goes_and_no_other() {
    let stage = Stage::new();
    let ask = |of: &str| stage.ask_with("/", &[("X-Of", of)], &LookupOptions::default());
    for (of, names) in [("a", &["x"][..]), ("b", &["x", "y"]), ("c", &["y"])] {
        let store_as = StoreAs { vary: Some(spec("X-Of")), ..carrying(&stage, names) };
        stage.fill(ticket(ask(of)), store_as, b"body").expect("stored");
    }
    let lifetimes = Lifetimes { age_ms: 0, ttl_ms: 10_000, grace_ms: 0, keep_ms: 0 };
    let mark = Mark { kind: MarkKind::Pass, lifetimes, vary: Some(spec("X-Of")), tags: tags(&stage, &["x"]) };
    let description = Description { mark: Some(mark), uncacheable_ms: 0, ..stage.description(None, None) };
    ticket(ask("d")).describe(description).land(None);
    assert_eq!(purge(&stage, &["x"], Purge::Hard), 3);
    assert_eq!(["a", "b", "c", "d"].map(|of| kind(&ask(of))), ["miss", "miss", "fresh", "miss"]);
}

#[test]
fn a_fetch_under_way_that_carries_it_is_not_stored() {
    for how in [Purge::Hard, Purge::SOFT] {
        let stage = Stage::new();
        let leader = stage.miss("/");
        let mut early = stage.busy("/");
        assert_eq!(purge(&stage, &["x"], how), 0);
        let mut late = stage.busy("/");
        let mut draft = stage.describe(leader, Some(carrying(&stage, &["x"])), None);
        assert!(head_of(&mut early).unwrap().is_ok());
        assert_eq!(head_of(&mut late).unwrap().err(), Some(Release::VaryMismatch));
        draft.append("old".into());
        assert!(draft.land(None).is_none());
        assert_eq!((whole_body(&mut early), kind(&stage.ask("/"))), (b"old".to_vec(), "miss"));

        let draft = stage.describe(stage.miss("/b"), Some(carrying(&stage, &["x"])), None);
        purge(&stage, &["x"], how);
        assert_eq!(kind(&stage.ask("/b")), "miss", "nobody joins it any more");
        assert!(draft.land(None).is_none());
        let other = stage.describe(stage.miss("/c"), Some(carrying(&stage, &["y"])), None);
        purge(&stage, &["x"], how);
        assert!(other.land(None).is_some());
        assert_eq!(stage.cache.stats().tags, 1);
    }
}

#[test]
fn a_304_gives_other_tags() {
    for (purged, expect) in [("old", "fresh"), ("new", "miss")] {
        let mut stage = Stage::new();
        store(&stage, "/", &["old"]);
        stage.advance_ms(25_000);
        let ticket = stage.miss("/");
        assert!(ticket.stale().is_some());
        let StoreAs { facts, lifetimes, tags, .. } = carrying(&stage, &["new"]);
        let head = Arc::new(ResponseHead::new(Status::OK));
        ticket.renewed((head, Bytes::new()), Renewal { facts, lifetimes, vary: None, groups: None, tags }, stage.now);
        purge(&stage, &[purged], Purge::Hard);
        assert_eq!(kind(&stage.ask("/")), expect, "{purged}");
    }
}

#[test]
fn a_304_is_not_stored_when_its_old_or_new_tag_was_purged_meanwhile() {
    for (purged, expect) in [("old", "miss"), ("new", "miss"), ("other", "fresh")] {
        let mut stage = Stage::new();
        store(&stage, "/", &["old"]);
        stage.advance_ms(25_000);
        let ticket = stage.miss("/");
        purge(&stage, &[purged], Purge::Hard);
        let StoreAs { facts, lifetimes, tags, .. } = carrying(&stage, &["new"]);
        let head = Arc::new(ResponseHead::new(Status::OK));
        ticket.renewed((head, Bytes::new()), Renewal { facts, lifetimes, vary: None, groups: None, tags }, stage.now);
        assert_eq!(kind(&stage.ask("/")), expect, "{purged}");
    }
}

#[test]
fn tags_are_bounded_and_charged() {
    let stage = Stage::new();
    let names: Vec<String> = (0..TAGS_MAX + 1).map(|index| index.to_string()).collect();
    let keys = |count: usize| names[..count].iter().map(|name| tag(&stage, name)).collect::<Vec<Key>>();
    assert_eq!(Tags::new(keys(TAGS_MAX + 1)).err(), Some(TooManyTags));
    assert!(Tags::new([]).expect("few enough").is_none());
    let plain = stage.store("/plain", b"body");
    let used = stage.cache.account().used();
    let store_as = StoreAs { tags: Tags::new(keys(TAGS_MAX)).expect("few enough"), ..living(1, 0, 0) };
    stage.fill(stage.miss("/many"), store_as, b"body").expect("stored");
    assert!(stage.cache.account().used() - used > TAGS_MAX * 100);
    assert!(plain.is_live());
}
