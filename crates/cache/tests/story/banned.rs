//! Bans: what is older than one and hit by it is never served again, whether it lies in a shard, in a hot table or in a
//! fetch under way; and what they cost ends when everything was tested.

use std::sync::Arc;

use bytes::Bytes;
use cache::limits::{BANS_MAX, SHARDS};
use cache::{BanSubject, BanTest, Description, HotTable, LookupOptions, Mark, MarkKind, Release, StoreAs, Ticket};
use message::{ResponseHead, Status};
use rules::Lifetimes;

use crate::stage::*;

/// Hits objects with a tag, or what a request says.
struct Words {
    text: String,
    is_timeless: bool,
}

impl BanTest for Words {
    fn text(&self) -> &str {
        &self.text
    }

    fn needs_request(&self) -> bool {
        self.text.starts_with("request ")
    }

    fn is_timeless(&self) -> bool {
        self.is_timeless
    }

    /// `tag X`, `request X`, `unhit`, `keep`, or `all`.
    fn bans(&self, subject: &BanSubject<'_>) -> bool {
        let (word, of) = self.text.split_once(' ').unwrap_or((&self.text, ""));
        let said = |fields: message::FieldsView<'_>, name: &str| {
            fields.get_all_named(name.as_bytes()).any(|it| it == of.as_bytes())
        };
        match word {
            "tag" => said(subject.head.fields, "X-Tag"),
            "request" => said(subject.request.expect("it needs one").fields, "X-Asks"),
            "unhit" => subject.last_hit_ms.is_none(),
            "keep" => subject.lifetimes(subject.received).keep_ms > 0,
            _ => true,
        }
    }
}

pub fn ban(stage: &Stage, text: &str) {
    stage.cache.ban(Arc::new(Words { text: text.to_owned(), is_timeless: true }), stage.now);
}

fn tagged(stage: &Stage, tag: &str, storable: Option<StoreAs>) -> Description {
    let mut head = ResponseHead::new(Status::OK);
    head.fields.push_named(b"X-Tag", tag.as_bytes());
    let head = Arc::new(head);
    Description { shared_head: Arc::clone(&head), head, ..stage.description(storable, None) }
}

fn fill(stage: &Stage, ticket: Ticket, tag: &str) -> Option<Arc<cache::Object>> {
    let mut draft = ticket.describe(tagged(stage, tag, Some(storable(MINUTE_MS))));
    draft.append(Bytes::copy_from_slice(tag.as_bytes()));
    draft.land(None)
}

pub fn store(stage: &Stage, path: &str, tag: &str) -> Arc<cache::Object> {
    fill(stage, stage.miss(path), tag).expect("stored")
}

fn kinds<const N: usize>(stage: &Stage, paths: [&str; N]) -> [&'static str; N] {
    paths.map(|path| kind(&stage.ask(path)))
}

fn work_off(stage: &Stage) -> usize {
    let mut dropped = 0;
    for _ in 0..10_000 {
        let progress = stage.cache.work_off_bans(100);
        dropped += progress.dropped;
        if progress.is_idle {
            return dropped;
        }
    }
    panic!("the bans are never worked off");
}

#[test]
fn what_is_older_than_a_ban_and_hit_by_it_is_gone() {
    let stage = Stage::new();
    for (path, tag) in [("/a", "red"), ("/b", "blue"), ("/c", "red")] {
        store(&stage, path, tag);
    }
    ban(&stage, "tag red");
    assert_eq!(kinds(&stage, ["/a", "/b", "/c"]), ["miss", "fresh", "miss"]);
    store(&stage, "/a", "red");
    assert_eq!(kinds(&stage, ["/a", "/b"]), ["fresh", "fresh"], "what is younger stays");
    assert_eq!((stage.cache.stats().banned, stage.cache.stats().objects), (2, 2));
    let entries = stage.cache.bans();
    assert_eq!((entries.len(), entries[0].tested, entries[0].matched), (1, 3, 2));
}

#[test]
fn a_hot_table_misses_no_ban() {
    let stage = Stage::new();
    // Stored before there ever was a ban, and after.
    let before = store(&stage, "/a", "red");
    let (mut hot, fields) = (HotTable::new(&stage.cache), fields_of(&[]));
    let mut served = |path: &str| hot.get(stage.key(path), Default::default(), &request(&fields)).is_some();
    assert!(!served("/a"));
    hot.remember(stage.key("/a"), Default::default(), &before);
    ban(&stage, "tag blue");
    let mut served = |path: &str| hot.get(stage.key(path), Default::default(), &request(&fields)).is_some();
    assert!(!served("/a"), "it was not tested yet");
    assert_eq!(kind(&stage.ask("/a")), "fresh");
    assert!(served("/a"), "it was, and nothing is newer");
    let after = store(&stage, "/b", "green");
    hot.remember(stage.key("/b"), Default::default(), &after);
    for (text, expect) in
        [("tag yellow", ["fresh", "fresh"]), ("tag red", ["miss", "fresh"]), ("tag green", ["miss"; 2])]
    {
        ban(&stage, text);
        let mut served = |path: &str| hot.get(stage.key(path), Default::default(), &request(&fields)).is_some();
        assert!(!served("/a") && !served("/b"), "{text}");
        assert_eq!(kinds(&stage, ["/a", "/b"]), expect, "{text}");
    }
    assert!(!before.is_live() && !after.is_live());
}

#[test]
fn a_ban_on_requests_hits_when_such_a_request_comes_first() {
    let stage = Stage::new();
    let ask = |path: &str, says: &str| kind(&stage.ask_with(path, &[("X-Asks", says)], &LookupOptions::default()));
    store(&stage, "/a", "red");
    store(&stage, "/b", "red");
    ban(&stage, "request now");
    assert_eq!(work_off(&stage), 0, "nothing to be done without a request");
    assert_eq!([ask("/a", "now"), ask("/b", "later"), ask("/b", "now")], ["miss", "fresh", "fresh"]);
}

#[test]
fn a_fetch_that_began_before_is_not_stored_if_the_ban_hits_it() {
    for (text, stores) in [("tag red", false), ("tag blue", true), ("request x", false)] {
        let stage = Stage::new();
        stage.cache.watch_for_bans();
        let leader = || ticket(stage.ask_with("/", &[("X-Asks", "x")], &LookupOptions::default()));
        // Before its head is known.
        let unheaded = leader();
        let mut first = unheaded.follow(0);
        ban(&stage, text);
        assert_eq!(fill(&stage, unheaded, "red").is_some(), stores, "{text} before the head");
        assert!(head_of(&mut first).unwrap().is_ok());
        assert_eq!(whole_body(&mut first), b"red");
        stage.cache.purge(stage.key("/"));
        // While its body comes.
        let mut draft = leader().describe(tagged(&stage, "red", Some(storable(MINUTE_MS))));
        draft.append("re".into());
        ban(&stage, text);
        draft.append("d".into());
        assert_eq!(draft.land(None).is_some(), stores, "{text} during the body");
        assert_eq!(kind(&stage.ask("/")), if stores { "fresh" } else { "miss" });
    }
}

#[test]
fn who_comes_after_the_ban_does_not_get_what_began_before() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let mut early = stage.busy("/");
    ban(&stage, "tag red");
    let mut late = stage.busy("/");
    let mut draft = leader.describe(tagged(&stage, "red", Some(storable(MINUTE_MS))));
    assert!(head_of(&mut early).unwrap().is_ok());
    assert_eq!(head_of(&mut late).unwrap().err(), Some(Release::VaryMismatch));
    assert_eq!(kind(&stage.ask("/")), "miss", "nobody joins it any more");
    draft.append("old".into());
    assert!(draft.land(None).is_none());
    assert_eq!(whole_body(&mut early), b"old");

    // Known by now, and hit while it fills.
    let mut draft = stage.miss("/b").describe(tagged(&stage, "blue", Some(storable(MINUTE_MS))));
    ban(&stage, "tag green");
    let mut early = stage.busy("/b");
    ban(&stage, "tag blue");
    assert_eq!(kind(&stage.ask("/b")), "miss");
    draft.append("old".into());
    assert!(draft.land(None).is_none());
    assert!(head_of(&mut early).unwrap().is_ok());
    assert_eq!(whole_body(&mut early), b"old");
}

/// The second takes the first one's place, and not its time: whoever came between the two came after the first.
#[test]
fn an_equal_ban_behind_it_gives_nobody_what_began_before_the_first() {
    let stage = Stage::new();
    let leader = stage.miss("/");
    let mut before = stage.busy("/");
    ban(&stage, "tag a");
    let mut between = stage.busy("/");
    ban(&stage, "tag b");
    ban(&stage, "tag a");
    let mut after = stage.busy("/");
    let mut first = leader.follow(0);
    let _draft = leader.describe(tagged(&stage, "a", Some(storable(MINUTE_MS))));
    assert!(head_of(&mut first).unwrap().is_ok() && head_of(&mut before).unwrap().is_ok());
    for late in [&mut between, &mut after] {
        assert_eq!(head_of(late).unwrap().err(), Some(Release::VaryMismatch));
    }
}

#[test]
fn a_304_during_a_ban_is_stored_unless_it_hits_the_old_head_or_the_new() {
    for (old, new, expect) in [("red", "blue", "miss"), ("blue", "red", "miss"), ("blue", "green", "fresh")] {
        let mut stage = Stage::new();
        store(&stage, "/", old);
        stage.advance_ms(2 * MINUTE_MS);
        ban(&stage, "tag green");
        let validating = stage.miss("/");
        assert!(validating.stale().is_some());
        ban(&stage, "tag red");
        let head = tagged(&stage, new, None).head;
        validating.refreshed((head, Bytes::new()), facts(MINUTE_MS), None, stage.now);
        assert_eq!(kind(&stage.ask("/")), expect, "{old} {new}");
    }
}

#[test]
fn a_mark_is_banned_like_a_response() {
    let stage = Stage::new();
    let lifetimes = Lifetimes { age_ms: 0, ttl_ms: 10_000, grace_ms: 0, keep_ms: 7 };
    let mark = || Some(Mark { kind: MarkKind::Pass, lifetimes, vary: None, tags: None });
    let leave = |ticket: Ticket| {
        ticket.describe(Description { mark: mark(), uncacheable_ms: 0, ..tagged(&stage, "red", None) }).land(None)
    };
    leave(stage.miss("/"));
    assert_eq!(kind(&stage.ask("/")), "hit for pass");
    ban(&stage, "keep");
    let late = stage.miss("/");
    ban(&stage, "tag red");
    leave(late);
    assert_eq!(kind(&stage.ask("/")), "miss", "it began before the ban");
}

#[test]
fn parts_are_banned_and_joined_only_as_far_as_they_were_tested() {
    let stage = Stage::new();
    let part = |from, to| {
        let partial = Some(cache::Part { from, to, complete: Some(100) });
        let alone = LookupOptions { always_miss: true, ..LookupOptions::default() };
        let store_as = StoreAs { partial, ..storable(MINUTE_MS) };
        stage.fill(ticket(stage.ask_with("/", &[], &alone)), store_as, &[1; 10]).expect("stored")
    };
    part(0, 10);
    ban(&stage, "all");
    let joined = part(10, 20).partial().expect("a part");
    assert_eq!((joined.from, joined.to), (10, 20), "what the ban hits is not taken along");
    assert_eq!(kind(&stage.ask("/")), "miss");
    assert_eq!((stage.cache.stats().banned, stage.cache.stats().objects), (1, 1));
}

#[test]
fn bans_on_objects_are_worked_off_in_the_background() {
    let stage = Stage::new();
    for index in 0..2_000 {
        store(&stage, &format!("/{index}"), if index % 4 == 0 { "red" } else { "blue" });
    }
    ban(&stage, "tag red");
    ban(&stage, "request never");
    ban(&stage, "tag yellow");
    let step = stage.cache.work_off_bans(100);
    assert!(!step.is_idle && step.tested < 300, "{step:?}");
    assert_eq!(step.dropped + work_off(&stage), 500);
    assert_eq!(stage.cache.stats().objects, 1_500);
    let left: Vec<String> = stage.cache.bans().into_iter().map(|entry| entry.text).collect();
    assert_eq!(left, ["request never"], "the others are done");
    let asks = [("X-Asks", "never")];
    assert_eq!(kind(&stage.ask_with("/1", &asks, &LookupOptions::default())), "miss");
    assert!(stage.cache.work_off_bans(1).is_idle);
}

#[test]
fn a_ban_that_is_done_waits_for_what_began_before_it() {
    let stage = Stage::new();
    let slow = stage.miss("/slow");
    ban(&stage, "tag red");
    work_off(&stage);
    let entries = stage.cache.bans();
    assert!(entries.len() == 1 && entries[0].is_done);
    assert!(fill(&stage, slow, "red").is_none());
    assert!(stage.cache.work_off_bans(1).is_idle);
    assert_eq!(stage.cache.bans(), []);
    // Fetched past the store: nobody knew of it.
    let began = stage.cache.began();
    ban(&stage, "tag blue");
    work_off(&stage);
    assert_eq!(stage.cache.bans(), []);
    let options = LookupOptions { always_miss: true, began: Some(began), ..LookupOptions::default() };
    assert!(
        fill(&stage, ticket(stage.ask_with("/late", &[], &options)), "red").is_none(),
        "it cannot be tested any more"
    );
}

#[test]
fn an_equal_ban_takes_the_place_of_the_older_one() {
    let stage = Stage::new();
    store(&stage, "/a", "red");
    for _ in 0..3 {
        ban(&stage, "tag red");
        ban(&stage, "request x");
        stage.cache.ban(Arc::new(Words { text: "keep".into(), is_timeless: false }), stage.now);
    }
    let texts: Vec<String> = stage.cache.bans().into_iter().map(|entry| entry.text).collect();
    assert_eq!(texts, ["keep", "request x", "tag red", "keep", "keep"]);
    assert_eq!(kind(&stage.ask("/a")), "miss");
}

#[test]
fn too_many_bans_hit_more_and_never_less() {
    let stage = Stage::new();
    store(&stage, "/a", "red");
    for index in 0..BANS_MAX {
        ban(&stage, &format!("request {index}"));
    }
    assert_eq!(kind(&stage.ask_with("/a", &[], &LookupOptions::default())), "fresh");
    store(&stage, "/b", "red");
    let flight = stage.miss("/c");
    for index in 0..BANS_MAX + 1 {
        ban(&stage, &format!("request other {index}"));
    }
    let stats = stage.cache.stats();
    assert_eq!((stats.bans, stats.bans_overflowed), (BANS_MAX as u64, BANS_MAX as u64 + 1));
    assert_eq!(kinds(&stage, ["/a", "/b"]), ["miss", "miss"]);
    assert!(fill(&stage, flight, "red").is_none());
    assert!(stage.cache.account().used() > BANS_MAX * 40, "they are charged");
}

#[test]
fn looking_for_nothing_is_bounded_too() {
    let stage = Stage::new();
    ban(&stage, "tag red");
    let mut calls = 0;
    while !stage.cache.work_off_bans(10).is_idle {
        calls += 1;
    }
    assert!((SHARDS / 10..SHARDS).contains(&calls), "{calls}");
    assert_eq!(stage.cache.account().used(), 0);
}

#[test]
fn the_last_hit_is_noted_for_who_asks_for_it() {
    let mut stage = Stage::new();
    let object = store(&stage, "/a", "red");
    store(&stage, "/b", "red");
    assert_eq!(object.last_hit_ms(), None);
    stage.advance_ms(1_500);
    object.touch(stage.now);
    assert_eq!(object.last_hit_ms(), Some(1_001_000));
    ban(&stage, "unhit");
    assert_eq!(kinds(&stage, ["/a", "/b"]), ["fresh", "miss"]);
}
