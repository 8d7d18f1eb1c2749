//! Texts as dictionaries: each is found by its hash and its origin as long as its response is stored, and after that within bounds; and what
//! differs from one is kept beside the response that it was made of.

use std::sync::Arc;

use bytes::Bytes;
use cache::{
    CacheSettings, DictionaryBounds, DictionaryQuestion, DictionaryScope, EncodingAnswer, EncodingName, EncodingState,
    Object,
};
use message::{ResponseHead, Status};
use rules::{ContentCoding, DeltaCoding, DictionaryUse, PatternBase, UrlPattern};

use crate::stage::*;

const BOUNDS: DictionaryBounds = DictionaryBounds { texts_max: 8, bytes_max: 1 << 20, age_ms_max: 10 * MINUTE_MS };

fn stage_with(bounds: DictionaryBounds) -> Stage {
    let stage = Stage::with(CacheSettings { memory_bytes_max: 1 << 20, ..CacheSettings::default() });
    stage.cache.set_dictionary_bounds(bounds);
    stage
}

fn scope(stage: &Stage, pattern: &str) -> DictionaryScope {
    let base = PatternBase { origin: b"https://t.test", path: b"/" };
    let pattern = UrlPattern::parse(pattern.as_bytes(), base).unwrap();
    DictionaryScope { origin: stage.key("origin"), used_for: DictionaryUse { pattern, id: "".into() } }
}

/// Stores a text of this byte, which is its hash, too.
fn note(stage: &Stage, path: &str, pattern: &str, byte: u8, length: usize) -> Arc<Object> {
    let object = stage.store(path, &vec![byte; length]);
    stage.cache.note_dictionary([byte; 32], scope(stage, pattern), &object);
    object
}

fn find(stage: &Stage, path: &str, byte: u8) -> Option<usize> {
    let (hash, origin) = ([byte; 32], stage.key("origin"));
    let question = DictionaryQuestion { hash, id: "", origin, path: path.as_bytes(), query: None };
    let (coding, pieces) = stage.cache.dictionary(&question)?.coded();
    let text = pieces.concat();
    assert!(coding == ContentCoding::Identity && text.iter().all(|&it| it == byte));
    Some(text.len())
}

fn purge(stage: &Stage, path: &str) {
    stage.cache.purge(stage.key(path));
}

#[test]
fn a_text_is_found_while_it_is_stored_and_when_another_has_come() {
    for length in [100, 70_000] {
        let mut stage = stage_with(BOUNDS);
        drop(note(&stage, "/a", "/a*", 1, length));
        assert_eq!(
            (find(&stage, "/a.js", 1), find(&stage, "/b", 1), find(&stage, "/a", 2)),
            (Some(length), None, None)
        );
        stage.advance_ms(2 * MINUTE_MS);
        // Replaced by what has come, and found all the time: at once, and when it was copied.
        let second = stage.store("/a", &[2; 50]);
        assert_eq!(find(&stage, "/a", 1), Some(length));
        stage.cache.note_time(stage.now);
        assert_eq!((find(&stage, "/a", 1), stage.cache.stats().dictionary_bytes), (Some(length), length as u64));
        // A version that comes back is where it is stored, and once.
        stage.advance_ms(2 * MINUTE_MS);
        drop(second);
        drop(note(&stage, "/a", "/a*", 1, length));
        assert_eq!((find(&stage, "/a", 1), stage.cache.stats().dictionary_bytes), (Some(length), 0));
        purge(&stage, "/a");
        stage.cache.note_time(stage.now);
        assert_eq!((find(&stage, "/a", 1), stage.cache.stats().dictionary_bytes), (Some(length), length as u64));
        stage.advance_ms(10 * MINUTE_MS + 1);
        stage.cache.note_time(stage.now);
        assert_eq!((find(&stage, "/a", 1), stage.cache.account().used()), (None, 0));
    }
}

#[test]
fn a_text_under_a_new_head_is_the_same() {
    for length in [100, 70_000] {
        let mut stage = stage_with(BOUNDS);
        let first = note(&stage, "/a", "/a*", 1, length);
        stage.advance_ms(2 * MINUTE_MS);
        let ticket = stage.miss("/a");
        let rendered = Bytes::from_static(b"HTTP/1.1 200 OK\r\n");
        let head = Arc::new(ResponseHead::new(Status::OK));
        let fresh = ticket.refreshed((head, rendered), facts(MINUTE_MS), None, stage.now);
        stage.cache.note_time(stage.now);
        let figures = || (stage.cache.stats().dictionaries, stage.cache.stats().dictionary_bytes);
        assert_eq!((find(&stage, "/a", 1), figures()), (Some(length), (1, 0)), "it is not copied");
        drop((first, fresh));
        purge(&stage, "/a");
        stage.cache.note_time(stage.now);
        assert_eq!((find(&stage, "/a", 1), figures()), (Some(length), (1, length as u64)));
    }
}

#[test]
fn a_text_whose_response_left_while_it_was_read_is_kept() {
    let stage = stage_with(BOUNDS);
    let object = stage.store("/a", &[1; 100]);
    purge(&stage, "/a");
    stage.cache.note_dictionary([1; 32], scope(&stage, "/a"), &object);
    drop(object);
    stage.cache.note_time(stage.now);
    assert_eq!((find(&stage, "/a", 1), stage.cache.stats().dictionary_bytes), (Some(100), 100));
}

#[test]
fn two_responses_with_one_text_are_one_dictionary() {
    let stage = stage_with(BOUNDS);
    note(&stage, "/a", "/a", 1, 100);
    note(&stage, "/b", "/b", 1, 100);
    purge(&stage, "/a");
    stage.cache.note_time(stage.now);
    let figures = |stage: &Stage| (stage.cache.stats().dictionaries, stage.cache.stats().dictionary_bytes);
    assert_eq!(figures(&stage), (1, 0), "the other is stored");
    assert_eq!((find(&stage, "/a", 1), find(&stage, "/b", 1)), (Some(100), Some(100)));
    purge(&stage, "/b");
    stage.cache.note_time(stage.now);
    assert_eq!((figures(&stage), find(&stage, "/a", 1)), ((1, 100), Some(100)));
}

#[test]
fn what_is_kept_is_bounded_and_the_oldest_goes_unless_it_was_asked_for() {
    let kept = |bounds: DictionaryBounds, asks: &[u8]| {
        let stage = stage_with(bounds);
        for byte in 1..=6 {
            note(&stage, "/a", "/a", byte, 1_000);
            purge(&stage, "/a");
            stage.cache.note_time(stage.now);
            asks.iter().for_each(|&byte| {
                find(&stage, "/a", byte);
            });
        }
        (1..=6).filter(|&byte| find(&stage, "/a", byte).is_some()).collect::<Vec<u8>>()
    };
    assert_eq!(kept(BOUNDS, &[]), [1, 2, 3, 4, 5, 6]);
    assert_eq!(kept(DictionaryBounds { texts_max: 2, ..BOUNDS }, &[]), [5, 6]);
    assert_eq!(kept(DictionaryBounds { bytes_max: 3_500, ..BOUNDS }, &[]), [4, 5, 6]);
    assert_eq!(kept(DictionaryBounds { bytes_max: 3_500, ..BOUNDS }, &[1]), [1, 5, 6]);
    assert_eq!(kept(DictionaryBounds { bytes_max: 3_500, ..BOUNDS }, &[1, 2, 3, 4, 5, 6]), [4, 5, 6]);
    assert_eq!(kept(DictionaryBounds { bytes_max: 999, ..BOUNDS }, &[]), [0; 0]);
    assert_eq!(kept(DictionaryBounds::default(), &[]), [0; 0]);
}

#[test]
fn when_memory_is_short_what_is_kept_goes_before_any_response() {
    let stage = stage_with(BOUNDS);
    note(&stage, "/a", "/a", 1, 250_000);
    purge(&stage, "/a");
    stage.cache.note_time(stage.now);
    let stored: Vec<Arc<Object>> = (0..4).map(|n| stage.store(&format!("/{n}"), &[0; 200_000])).collect();
    assert_eq!((find(&stage, "/a", 1), stage.cache.stats().dictionaries_given_up), (None, 1));
    assert!(stored.iter().all(|object| object.is_live()) && stage.cache.stats().evictions == 0);
    // What is evicted itself says nothing of another to come.
    let evicted = note(&stage, "/b", "/b", 2, 100_000);
    let taken = stage.cache.account().charge(2 << 20);
    stage.cache.sheds();
    assert!(!evicted.is_live() && find(&stage, "/b", 2).is_none());
    drop((taken, evicted));
}

fn delta(stage: &Stage, primary: &Arc<Object>, byte: u8, body: &[u8]) -> Option<Arc<Object>> {
    let name = EncodingName::Delta(DeltaCoding::Zstd, [byte; 32]);
    let head = || ResponseHead { fields: primary.fields().to_fields(), ..ResponseHead::new(Status::OK) };
    match stage.cache.encoding(primary.encodings_or_new(), name, (primary.key(), 0), head) {
        EncodingAnswer::Make(mut draft, _follower) => {
            assert_eq!(draft.name(), name);
            draft.append(Bytes::copy_from_slice(body));
            draft.land(Some(primary))
        }
        EncodingAnswer::Made(object) => Some(object),
        _ => None,
    }
}

#[test]
fn what_differs_is_kept_by_its_dictionary_and_coding() {
    let stage = stage_with(BOUNDS);
    let primary = stage.store("/", &[7; 3_000]);
    let [one, two] = [1, 2].map(|byte| delta(&stage, &primary, byte, &[byte; 10]).unwrap());
    assert!(Arc::ptr_eq(&one, &delta(&stage, &primary, 1, b"another").unwrap()));
    assert_eq!((body_of(&one), body_of(&two)), (vec![1; 10], vec![2; 10]));
    let mut lines = Vec::new();
    one.fields().write_lines(&mut lines, |_| true);
    let expect = "ETag: W/\"1\"\r\nContent-Encoding: dcz\r\nVary: Accept-Encoding, Available-Dictionary\r\n";
    assert_eq!(String::from_utf8(lines).unwrap(), expect);
    let states = |byte| primary.encodings().unwrap().delta_states([byte; 32]);
    assert_eq!(states(1), [EncodingState::Free, EncodingState::Made]);
    assert!(delta(&stage, &primary, 3, &[3; 3_000]).is_none(), "it is no shorter");
    assert_eq!(states(3), [EncodingState::Free, EncodingState::Pointless]);
    assert_eq!((stage.cache.stats().deltas_made, stage.cache.stats().encodings_made), (2, 2));
    purge(&stage, "/");
    assert!(!one.is_live() && !two.is_live() && delta(&stage, &primary, 4, b"late").is_none());
    drop((one, two, primary));
    assert_eq!(stage.cache.account().used(), 0);
}

#[test]
fn a_response_has_so_many_deltas_and_gives_them_up_before_itself() {
    let stage = stage_with(BOUNDS);
    let primary = stage.store("/", &[7; 3_000]);
    let deltas_max = cache::limits::DELTAS_MAX as u8;
    // A place that came to nothing is another's.
    assert!(delta(&stage, &primary, 0, &[3; 3_000]).is_none());
    let made: Vec<_> = (1..=deltas_max).map(|byte| delta(&stage, &primary, byte, b"short").unwrap()).collect();
    assert!(delta(&stage, &primary, deltas_max + 1, b"short").is_none());
    let taken = stage.cache.account().charge((1 << 20) - 3_500);
    stage.cache.sheds();
    assert!(primary.is_live() && made.iter().all(|delta| !delta.is_live()));
    drop(taken);
    assert!(delta(&stage, &primary, deltas_max + 1, b"short").is_some());
}
