//! Two nodes above one tier: what one has fetched serves the other, but for what was purged since, by whomever.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use cache::{
    Answer, AskedTier, BanSubject, BanTest, Beneath, Cache, CacheSettings, Description, FetchRight, Key, LookupOptions,
    Mark, MarkKind, Part, PlaceInLog, Purge, Release, SecondTier, SharedRecall, SharedTier, StoreAs, Tags, TierAnswer,
    TierFigures, TierName, TierRecord, TierServer,
};

use rules::Lifetimes;

use crate::stage::*;

/// A tier without a network: what is put there is there.
#[derive(Default)]
struct Shelf {
    records: Mutex<HashMap<TierName, TierRecord>>,
    rights: Arc<Mutex<Vec<TierName>>>,
    asked: AtomicU64,
}

impl Shelf {
    fn count(&self) -> usize {
        self.records.lock().unwrap().len()
    }

    fn taken(&self) -> usize {
        self.rights.lock().unwrap().len()
    }

    /// As somebody who writes there changes it.
    fn change(&self, change: impl Fn(&mut TierRecord)) {
        self.records.lock().unwrap().values_mut().for_each(change);
    }
}

impl SecondTier for Shelf {
    fn ask(&self, name: TierName, wants_right: bool) -> AskedTier<'_> {
        self.asked.fetch_add(1, SeqCst);
        let found = self.records.lock().unwrap().get(&name).cloned();
        let answer = match found {
            Some(record) => TierAnswer::Found(record),
            None => TierAnswer::Nothing(wants_right.then(|| {
                let rights = Arc::clone(&self.rights);
                rights.lock().unwrap().push(name);
                FetchRight::new(move || rights.lock().unwrap().retain(|taken| *taken != name))
            })),
        };
        Box::pin(std::future::ready(answer))
    }

    fn keep(&self, name: TierName, record: TierRecord, _: u64) {
        self.records.lock().unwrap().insert(name, record);
    }

    fn forget(&self, name: TierName) {
        self.records.lock().unwrap().remove(&name);
    }

    fn body_bytes_max(&self) -> u64 {
        1_000
    }

    fn figures(&self) -> TierFigures {
        TierFigures::default()
    }

    fn servers(&self) -> Vec<TierServer> {
        Vec::new()
    }
}

/// Nodes of a fleet, each with a stage of its own.
struct Nodes {
    shelf: Arc<Shelf>,
    nodes: Vec<Stage>,
    log: AtomicU64,
}

const EPOCH: u64 = 7;

impl Nodes {
    fn two() -> Nodes {
        let nodes = Nodes { shelf: Arc::default(), nodes: Vec::new(), log: AtomicU64::new(100) };
        nodes.joined(1).joined(2)
    }

    /// One more, which begins at the end of the log.
    fn joined(mut self, run: u64) -> Nodes {
        let tier = Arc::clone(&self.shelf) as Arc<dyn SecondTier>;
        let shared = Some(SharedTier { tier, seed: *b"the same for all", run });
        let post = Arc::new(Post::default());
        let cache = Cache::above(CacheSettings::default(), post.clone(), Beneath { shared, ..Beneath::default() });
        cache.note_log_place(self.place(), false);
        self.nodes.push(Stage { cache, post, now: at(1_000_000) });
        self
    }

    fn place(&self) -> PlaceInLog {
        PlaceInLog { epoch: EPOCH, position: self.log.load(SeqCst) }
    }

    /// An order of the log, which these carry out.
    fn order(&self, who: &[usize], carry_out: impl Fn(&Stage)) {
        self.log.fetch_add(1, SeqCst);
        for &node in who {
            carry_out(&self.nodes[node]);
            self.nodes[node].cache.note_log_place(self.place(), true);
        }
    }

    fn store(&self, node: usize, path: &str, store_as: StoreAs) {
        let stage = &self.nodes[node];
        stage.fill(stage.miss(path), store_as, path.as_bytes()).expect("it is stored");
    }

    /// What a request finds that this node has nothing for: beneath, or an origin.
    fn asks(&self, node: usize, path: &str) -> &'static str {
        self.asks_with(node, path, &[])
    }

    fn asks_with(&self, node: usize, path: &str, fields: &[(&str, &str)]) -> &'static str {
        let stage = &self.nodes[node];
        let options = LookupOptions::default();
        let Answer::Miss(ticket) = stage.ask_with(path, fields, &options) else { return "in memory" };
        ticket.give_back();
        match self.recall(node, path, fields) {
            SharedRecall::Stored => match stage.ask_with(path, fields, &options) {
                Answer::Fresh(object) => {
                    let body = body_of(&object);
                    assert_eq!(body, path.as_bytes());
                    "shared"
                }
                other => panic!("{other:?}"),
            },
            SharedRecall::NotThere(Some(_)) => "origin, for all",
            SharedRecall::NotThere(None) => "origin",
        }
    }

    fn recall(&self, node: usize, path: &str, fields: &[(&str, &str)]) -> SharedRecall {
        let (stage, fields) = (&self.nodes[node], fields_of(fields));
        let request = request(&fields);
        let mut asked = Box::pin(stage.cache.recall_shared(stage.key(path), &request, stage.now, true));
        let Poll::Ready(came) = asked.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("a shelf answers at once")
        };
        came
    }

    fn tag(&self, name: &str) -> Key {
        self.nodes[0].cache.key([&b"tag"[..], name.as_bytes()])
    }

    fn tagged(&self, name: &str) -> StoreAs {
        StoreAs { tags: Tags::new([self.tag(name)]).expect("few enough"), ..storable(MINUTE_MS) }
    }
}

struct All;

impl BanTest for All {
    fn text(&self) -> &str {
        "all"
    }

    fn needs_request(&self) -> bool {
        false
    }

    fn bans(&self, _: &BanSubject<'_>) -> bool {
        true
    }
}

#[test]
fn what_one_node_has_fetched_serves_another() {
    let nodes = Nodes::two();
    assert_eq!(nodes.asks(1, "/a"), "origin, for all");
    nodes.store(0, "/a", storable(MINUTE_MS));
    assert_eq!(
        [nodes.asks(1, "/a"), nodes.asks(1, "/a"), nodes.asks(1, "/b")],
        ["shared", "in memory", "origin, for all"]
    );
}

/// A purge that the log has not got yet, and a node that is further on in the log than the one that purged was then: it has not heard of it.
#[test]
fn what_others_fetch_before_they_have_heard_of_a_purge_is_not_taken_whatever_else_they_have_heard() {
    let nodes = Nodes::two();
    let alone = &nodes.nodes[0];
    alone.cache.stand_alone(true);
    alone.cache.purge(alone.key("/a"));
    nodes.order(&[0, 1], |_| {});
    nodes.store(1, "/a", storable(MINUTE_MS));
    assert_eq!(nodes.asks(0, "/a"), "origin, for all");
    nodes.order(&[0, 1], |stage| _ = stage.cache.purge(stage.key("/a")));
    alone.cache.stand_alone(false);
    nodes.order(&[0, 1], |_| {});
    nodes.store(1, "/a", storable(MINUTE_MS));
    assert_eq!(nodes.asks(0, "/a"), "shared", "what is fetched behind it is");
}

/// Each row: what is ordered at all nodes behind the fetch, and whether what was fetched is served after it.
#[test]
fn what_was_purged_since_is_forgotten_and_fetched_for_all() {
    type Order = fn(&Nodes, &Stage);
    let orders: [(&str, Order, &str); 7] = [
        ("its key", |_, stage| _ = stage.cache.purge(stage.key("/a")), "origin, for all"),
        (
            "its key, softly",
            |_, stage| _ = stage.cache.purge_as(stage.key("/a"), Purge::SOFT, stage.now),
            "origin, for all",
        ),
        (
            "its tag",
            |nodes, stage| _ = stage.cache.purge_tags(&[nodes.tag("t")], Purge::Hard, stage.now),
            "origin, for all",
        ),
        (
            "its tag, softly",
            |nodes, stage| _ = stage.cache.purge_tags(&[nodes.tag("t")], Purge::SOFT, stage.now),
            "origin, for all",
        ),
        ("all", |_, stage| stage.cache.ban(Arc::new(All), stage.now), "origin, for all"),
        ("another tag", |nodes, stage| _ = stage.cache.purge_tags(&[nodes.tag("u")], Purge::Hard, stage.now), "shared"),
        ("another key", |_, stage| _ = stage.cache.purge(stage.key("/another")), "shared"),
    ];
    for (what, order, expect) in orders {
        let nodes = Nodes::two();
        nodes.store(0, "/a", nodes.tagged("t"));
        // The node that fetched it has not heard of the order, and puts it there once more.
        let left = nodes.shelf.records.lock().unwrap().clone();
        nodes.order(&[1], |stage| order(&nodes, stage));
        *nodes.shelf.records.lock().unwrap() = left;
        assert_eq!(nodes.asks(1, "/a"), expect, "{what}");
        if expect != "shared" {
            assert_eq!(nodes.shelf.count(), 0, "{what}");
        }
    }
}

#[test]
fn what_was_fetched_behind_a_purge_is_served_by_who_has_not_carried_it_out_yet_and_by_who_has() {
    let nodes = Nodes::two();
    nodes.order(&[0], |stage| _ = stage.cache.purge(stage.key("/a")));
    nodes.store(0, "/a", storable(MINUTE_MS));
    assert_eq!(nodes.asks(1, "/a"), "shared");
    let nodes = Nodes::two();
    nodes.order(&[0, 1], |stage| _ = stage.cache.purge(stage.key("/a")));
    nodes.store(0, "/a", storable(MINUTE_MS));
    assert_eq!(nodes.asks(1, "/a"), "shared");
}

#[test]
fn what_a_node_has_purged_alone_it_takes_from_nobody_who_may_have_fetched_it_before() {
    let nodes = Nodes::two();
    nodes.store(0, "/a", storable(MINUTE_MS));
    let left = nodes.shelf.records.lock().unwrap().clone();
    // Such as by a POST to it.
    nodes.nodes[1].cache.invalidate(nodes.nodes[1].key("/a"));
    *nodes.shelf.records.lock().unwrap() = left;
    assert_eq!(nodes.asks(1, "/a"), "origin, for all");
    // What it has fetched itself since is younger than that.
    nodes.store(1, "/a", storable(MINUTE_MS));
    let left = nodes.shelf.records.lock().unwrap().clone();
    nodes.nodes[1].cache.purge_tags(&[nodes.tag("other")], Purge::Hard, nodes.nodes[1].now);
    nodes.nodes[1].cache.purge(nodes.nodes[1].key("/b"));
    assert_eq!(nodes.asks(1, "/a"), "in memory");
    nodes.nodes[1].cache.invalidate(nodes.nodes[1].key("/a"));
    *nodes.shelf.records.lock().unwrap() = left;
    assert_eq!(nodes.asks(1, "/a"), "origin, for all", "but for this purge, which came behind it");
}

#[test]
fn a_newcomer_believes_what_was_fetched_since_it_began_and_deletes_nothing() {
    let nodes = Nodes::two();
    nodes.store(0, "/before", storable(MINUTE_MS));
    nodes.order(&[0, 1], |stage| _ = stage.cache.purge(stage.key("/x")));
    nodes.store(0, "/after", storable(MINUTE_MS));
    let nodes = nodes.joined(3);
    assert_eq!([nodes.asks(2, "/before"), nodes.asks(2, "/after")], ["origin", "shared"]);
    assert_eq!(nodes.asks(1, "/before"), "shared", "others have it still");
}

#[test]
fn who_missed_an_order_or_has_another_log_believes_nothing_from_before() {
    let nodes = Nodes::two();
    nodes.store(0, "/a", storable(MINUTE_MS));
    nodes.nodes[1].cache.note_log_place(PlaceInLog { epoch: EPOCH, position: 120 }, false);
    assert_eq!(nodes.asks(1, "/a"), "origin");
    let nodes = Nodes::two();
    nodes.store(0, "/a", storable(MINUTE_MS));
    nodes.nodes[1].cache.note_log_place(PlaceInLog { epoch: EPOCH + 1, position: 120 }, true);
    assert_eq!(nodes.asks(1, "/a"), "origin");
}

#[test]
fn before_the_log_was_heard_nothing_is_believed_or_kept() {
    let mut nodes = Nodes { shelf: Arc::default(), nodes: Vec::new(), log: AtomicU64::new(100) };
    nodes = nodes.joined(1);
    nodes.store(0, "/a", storable(MINUTE_MS));
    let tier = Arc::clone(&nodes.shelf) as Arc<dyn SecondTier>;
    let shared = Some(SharedTier { tier, seed: *b"the same for all", run: 2 });
    let post = Arc::new(Post::default());
    let cache = Cache::above(CacheSettings::default(), post.clone(), Beneath { shared, ..Beneath::default() });
    nodes.nodes.push(Stage { cache, post, now: at(1_000_000) });
    assert_eq!(nodes.asks(1, "/a"), "origin");
    nodes.store(1, "/b", storable(MINUTE_MS));
    assert_eq!(nodes.shelf.count(), 1, "that of the node which knows where it stands");
}

#[test]
fn variants_lie_under_the_names_of_their_fields() {
    let nodes = Nodes::two();
    let german = [("accept-language", "de")];
    let stage = &nodes.nodes[0];
    let ticket = ticket(stage.ask_with("/a", &german, &LookupOptions::default()));
    let store_as = StoreAs { vary: Some(spec("accept-language")), ..storable(MINUTE_MS) };
    stage.fill(ticket, store_as, b"/a").expect("it is stored");
    assert_eq!(nodes.shelf.count(), 2);
    assert_eq!(nodes.asks_with(1, "/a", &[("accept-language", "fr")]), "origin, for all");
    assert_eq!(nodes.asks_with(1, "/a", &german), "shared");
    nodes.order(&[0, 1], |stage| _ = stage.cache.purge(stage.key("/a")));
    assert_eq!(nodes.asks_with(1, "/a", &german), "origin, for all");
}

#[test]
fn what_is_too_large_or_of_one_client_is_not_kept() {
    let nodes = Nodes::two();
    let stage = &nodes.nodes[0];
    stage.fill(stage.miss("/large"), storable(MINUTE_MS), &[b'x'; 1_001]).expect("it is stored");
    drop(stage.describe(stage.miss("/private"), None, Some(1)));
    assert_eq!(nodes.shelf.count(), 0);
}

#[test]
fn a_part_and_a_mark_take_nobodys_place() {
    let nodes = Nodes::two();
    nodes.store(0, "/a", storable(MINUTE_MS));
    let stage = &nodes.nodes[1];
    let part = Part { from: 0, to: 2, complete: Some(2) };
    stage.fill(stage.miss("/a"), StoreAs { partial: Some(part), ..storable(MINUTE_MS) }, b"/a");
    assert_eq!(nodes.shelf.count(), 1);
    let lifetimes = Lifetimes { age_ms: 0, ttl_ms: 10_000, grace_ms: 0, keep_ms: 0 };
    let mark = Mark { kind: MarkKind::Pass, lifetimes, vary: None, tags: None };
    drop(stage.miss("/a").describe(Description { mark: Some(mark), ..stage.description(None, Some(1)) }));
    assert_eq!(nodes.shelf.count(), 1);
}

#[test]
fn the_right_to_fetch_is_held_until_the_fetch_is_over_or_is_nobody_elses() {
    let nodes = Nodes::two();
    let held = |path: &str| {
        let mut ticket = nodes.nodes[0].miss(path);
        let SharedRecall::NotThere(Some(right)) = nodes.recall(0, path, &[]) else { panic!("nobody has it") };
        ticket.hold(right);
        assert_eq!(nodes.shelf.taken(), 1, "{path}");
        ticket
    };
    let stage = &nodes.nodes[0];
    let draft = stage.describe(held("/a"), Some(storable(MINUTE_MS)), Some(1));
    assert_eq!(nodes.shelf.taken(), 1, "its body is on its way");
    let mut draft = draft;
    draft.append(bytes::Bytes::from_static(b"a"));
    draft.land(None).expect("it is stored");
    assert_eq!((nodes.shelf.taken(), nodes.shelf.count()), (0, 1));
    let private = stage.describe(held("/private"), None, Some(1));
    assert_eq!(nodes.shelf.taken(), 0, "what is nobody else's nobody waits for");
    drop(private);
    drop(held("/given-up"));
    assert_eq!(nodes.shelf.taken(), 0);
}

/// What was found beneath is younger than the purge that condemned the fetch.
#[test]
fn who_waits_behind_a_fetch_that_was_condemned_and_given_back_asks_anew() {
    let nodes = Nodes::two();
    let stage = &nodes.nodes[1];
    let ticket = stage.miss("/a");
    let mut waiting = stage.busy("/a");
    nodes.order(&[0, 1], |stage| _ = stage.cache.purge(stage.key("/a")));
    nodes.store(0, "/a", storable(MINUTE_MS));
    assert!(matches!(nodes.recall(1, "/a", &[]), SharedRecall::Stored));
    assert!(head_of(&mut waiting).is_none());
    ticket.give_back();
    assert!(matches!(head_of(&mut waiting), Some(Err(Release::Private))));
    assert_eq!(kind(&stage.ask("/a")), "fresh");
}

#[test]
fn what_does_not_add_up_is_no_record() {
    let nodes = Nodes::two();
    nodes.store(0, "/a", storable(MINUTE_MS));
    nodes.shelf.change(|record| record.head = record.head.slice(..record.head.len() - 1));
    assert_eq!(nodes.asks(1, "/a"), "origin");
    nodes.shelf.change(|record| record.head = bytes::Bytes::new());
    assert_eq!(nodes.asks(1, "/a"), "origin");
}
