//! A tag that many carry is purged: nobody is served any of it from then on, and it is taken out behind the order, piece by piece,
//! whatever else happens to it meanwhile.

use std::sync::Arc;

use cache::limits::PURGED_OUT_AT_ONCE;
use cache::{EncodingAnswer, HotTable, Key, LookupOptions, Object, Purge, StoreAs, Tags};
use message::{ResponseHead, Status};
use rules::ContentCoding::Gzip;

use crate::stage::*;

const MANY: usize = 3 * PURGED_OUT_AT_ONCE;

fn tag(stage: &Stage, name: &str) -> Key {
    stage.cache.key([&b"tag"[..], name.as_bytes()])
}

fn carrying(stage: &Stage, names: &[&str]) -> StoreAs {
    let tags = Tags::new(names.iter().map(|name| tag(stage, name))).expect("few enough");
    StoreAs { tags, ..storable(MINUTE_MS) }
}

fn store(stage: &Stage, path: &str, names: &[&str]) -> Arc<Object> {
    stage.fill(stage.miss(path), carrying(stage, names), path.as_bytes()).expect("stored")
}

fn purge(stage: &Stage, name: &str) -> usize {
    stage.cache.purge_tags(&[tag(stage, name)], Purge::Hard, stage.now)
}

/// Many that carry two tags, and one that carries the second alone.
fn many() -> (Stage, Vec<String>) {
    let stage = Stage::new();
    let paths: Vec<String> = (0..MANY).map(|number| format!("/{number}")).collect();
    paths.iter().for_each(|path| drop(store(&stage, path, &["x", "all"])));
    store(&stage, "/other", &["all"]);
    (stage, paths)
}

fn take_out_all(stage: &Stage) -> usize {
    stage.cache.take_out_purged(usize::MAX)
}

#[test]
fn none_of_it_is_served_or_shown_from_then_on() {
    let (stage, paths) = many();
    let mut hot = HotTable::new(&stage.cache);
    paths.iter().for_each(|path| hot.remember(stage.key(path), Default::default(), &stage.fresh(path)));
    assert_eq!(purge(&stage, "x"), MANY);
    assert!(stage.cache.stats().objects > 1, "it is not all taken out");
    assert!(paths.iter().all(|path| hot.get_plain(stage.key(path)).is_none()));
    let fields = fields_of(&[]);
    for path in &paths {
        let key = stage.key(path);
        assert!(!stage.cache.holds(key) && stage.cache.stored_under(key).is_empty(), "{path}");
        assert!(stage.cache.find(key, &request(&fields)).is_none(), "{path}");
    }
    let mut seen = 0;
    stage.cache.look_through(
        |_| {
            seen += 1;
            true
        },
        || (),
    );
    assert_eq!((seen, stage.cache.tagged(&[tag(&stage, "x"), tag(&stage, "all")]).len()), (1, 1));
    assert!(stage.cache.tags_in_use().iter().all(|tags| tags.bits != tag(&stage, "x").bits()));
    take_out_all(&stage);
    let stats = stage.cache.stats();
    assert_eq!((stats.objects, stats.tags, stats.invalidated), (1, 1, MANY as u64));
    assert_eq!(kind(&stage.ask("/other")), "fresh");
}

#[test]
fn a_look_up_that_comes_first_is_a_miss_and_stores_anew() {
    let (stage, paths) = many();
    assert_eq!(purge(&stage, "x"), MANY);
    for path in &paths {
        stage.fill(stage.miss(path), carrying(&stage, &["x", "all"]), b"newer").expect("stored");
    }
    take_out_all(&stage);
    assert!(paths.iter().all(|path| body_of(&stage.fresh(path)) == b"newer"));
    let stats = stage.cache.stats();
    assert_eq!((stats.objects, stats.tags, stats.invalidated), (MANY as u64 + 1, 2 * MANY as u64 + 1, MANY as u64));
    assert_eq!(purge(&stage, "x"), MANY, "the newer ones are found by the tag");
}

#[test]
fn what_is_purged_twice_counts_once() {
    let (stage, paths) = many();
    assert_eq!(purge(&stage, "x"), MANY);
    assert_eq!([purge(&stage, "x"), purge(&stage, "all")], [0, 1]);
    let soft = stage.cache.purge_tags(&[tag(&stage, "all")], Purge::SOFT, stage.now);
    let of_keys: usize = paths.iter().map(|path| stage.cache.purge(stage.key(path))).sum();
    let softly: usize = paths.iter().map(|path| stage.cache.purge_as(stage.key(path), Purge::SOFT, stage.now)).sum();
    assert_eq!((soft, of_keys, softly), (0, 0, 0));
    take_out_all(&stage);
    let stats = stage.cache.stats();
    assert_eq!((stats.objects, stats.tags, stats.invalidated, stats.evictions), (0, 0, MANY as u64 + 1, 0));
    assert_eq!((stats.memory_bytes, stats.leaving_bytes), (0, 0));
}

#[test]
fn whoever_needs_room_takes_that_first() {
    let (stage, paths) = many();
    // Asked for last, and often: it would stay longest anyway; the purged ones were, too.
    for _ in 0..3 {
        paths.iter().for_each(|path| stage.fresh(path).touch(stage.now));
    }
    assert_eq!(purge(&stage, "x"), MANY);
    let left = stage.cache.stats().objects - 1;
    assert!(left > 0);
    let used = stage.cache.account().used();
    stage.cache.set_memory(used - 1);
    let stats = stage.cache.stats();
    assert!(stats.objects < left + 1 && stats.evictions == 0, "{stats:?}");
    assert_eq!(kind(&stage.ask("/other")), "fresh");
    stage.cache.set_memory(0);
    let stats = stage.cache.stats();
    assert_eq!((stats.objects, stats.tags, stats.memory_bytes, stats.evictions), (0, 0, 0, 1));
}

#[test]
fn who_reads_it_reads_to_its_end_and_the_account_is_even_then() {
    let (stage, paths) = many();
    let read = stage.fresh(&paths[MANY - 1]);
    assert_eq!(purge(&stage, "x"), MANY);
    assert!(!read.is_live());
    take_out_all(&stage);
    assert_eq!(body_of(&read), paths[MANY - 1].as_bytes());
    assert!(stage.cache.stats().leaving_bytes > 0);
    drop(read);
    assert_eq!(stage.cache.stats().leaving_bytes, 0);
}

#[test]
fn its_encodings_go_with_it_and_none_is_kept_any_more() {
    let (stage, paths) = many();
    let primaries: Vec<Arc<Object>> = paths.iter().map(|path| stage.fresh(path)).collect();
    let begin = |primary: &Arc<Object>| {
        let head = || ResponseHead { fields: primary.fields().to_fields(), ..ResponseHead::new(Status::OK) };
        match stage.cache.encoding(primary.encodings_or_new(), Gzip, (primary.key(), 0), head) {
            EncodingAnswer::Make(mut draft, _) => {
                draft.append("s".into());
                draft
            }
            other => panic!("{other:?}"),
        }
    };
    let (made, under_way) = primaries.split_at(MANY / 2);
    let made: Vec<Arc<Object>> =
        made.iter().map(|primary| begin(primary).land(Some(primary)).expect("it is kept")).collect();
    let drafts: Vec<_> = under_way.iter().map(|primary| (begin(primary), primary)).collect();
    assert!(made.iter().all(|encoding| encoding.is_live()));
    assert_eq!(purge(&stage, "x"), MANY);
    assert!(made.iter().all(|encoding| !encoding.is_live()));
    assert!(drafts.into_iter().all(|(draft, primary)| draft.land(Some(primary)).is_none()));
}

#[test]
fn a_variant_that_is_purged_stands_in_no_others_way() {
    let stage = Stage::new();
    (0..MANY).for_each(|number| drop(store(&stage, &format!("/{number}"), &["x"])));
    let anew = LookupOptions { always_miss: true, ..LookupOptions::default() };
    let ask = |of: &str, options: &LookupOptions| stage.ask_with("/", &[("X-Of", of)], options);
    let older = ticket(ask("a", &anew));
    for (of, names) in [("a", &["x"][..]), ("b", &["y"])] {
        let store_as = StoreAs { vary: Some(spec("X-Of")), ..carrying(&stage, names) };
        stage.fill(ticket(ask(of, &anew)), store_as, of.as_bytes()).expect("stored");
    }
    assert_eq!(purge(&stage, "x"), MANY + 1);
    assert_eq!(
        [kind(&ask("a", &LookupOptions::default())), kind(&ask("b", &LookupOptions::default()))],
        ["miss", "fresh"]
    );
    let store_as = StoreAs { vary: Some(spec("X-Of")), ..carrying(&stage, &["y"]) };
    stage.fill(older, store_as, b"untagged").expect("the purged one was newer, and is gone");
    assert_eq!(body_of(&fresh(ask("a", &LookupOptions::default()))), b"untagged");
}
