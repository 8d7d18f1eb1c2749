//! Encodings: each is made once and read by whoever asks meanwhile; it lives with the response that it was made of, and goes before that.

use std::sync::Arc;

use bytes::Bytes;
use cache::{BodyPiece, CacheSettings, EncodingAnswer, EncodingDraft, EncodingState, Follower, HotTable, Object};
use message::{FieldName, ResponseHead, Status};
use rules::ContentCoding::{Brotli, Gzip, Identity, Zstd};
use rules::{AcceptedCodings, ContentCoding};

use crate::stage::*;

/// What asks for an encoding of a stored response.
fn ask(stage: &Stage, primary: &Arc<Object>, coding: ContentCoding) -> EncodingAnswer {
    let head = || ResponseHead { fields: primary.fields().to_fields(), ..ResponseHead::new(Status::OK) };
    stage.cache.encoding(primary.encodings_or_new(), coding, (primary.key(), 0), head)
}

fn begin(stage: &Stage, primary: &Arc<Object>, coding: ContentCoding) -> (EncodingDraft, Follower) {
    match ask(stage, primary, coding) {
        EncodingAnswer::Make(draft, follower) => (draft, follower),
        other => panic!("{other:?}"),
    }
}

fn encode(stage: &Stage, primary: &Arc<Object>, coding: ContentCoding, body: &[u8]) -> Option<Arc<Object>> {
    let (mut draft, _) = begin(stage, primary, coding);
    draft.append(Bytes::copy_from_slice(body));
    draft.land(Some(primary))
}

fn state(primary: &Object, coding: ContentCoding) -> EncodingState {
    primary.encodings().expect("it has some").states()[coding as usize]
}

fn lines(object: &Object) -> String {
    let mut out = Vec::new();
    object.fields().write_lines(&mut out, |_| true);
    String::from_utf8(out).unwrap()
}

#[test]
fn it_is_made_once_and_read_from_its_first_byte_by_all_who_ask() {
    let stage = Stage::new();
    let primary = stage.store("/", &[7; 3_000]);
    let (mut draft, mut first) = begin(&stage, &primary, Gzip);
    draft.append(Bytes::from_static(b"half "));
    assert_eq!(read_body(&mut first).0, b"half ");
    let EncodingAnswer::UnderWay(mut second) = ask(&stage, &primary, Gzip) else { panic!("somebody makes it") };
    draft.append(Bytes::from_static(b"whole"));
    assert_eq!(read_body(&mut second).0, b"half whole");
    assert_eq!(state(&primary, Gzip), EncodingState::UnderWay);
    let made = draft.land(Some(&primary)).expect("it is kept");
    assert_eq!((whole_body(&mut first), whole_body(&mut second)), (b"whole".to_vec(), b"".to_vec()));
    let EncodingAnswer::Made(found) = ask(&stage, &primary, Gzip) else { panic!("it is made") };
    assert!(Arc::ptr_eq(&found, &made) && made.is_live());
    assert_eq!(body_of(&made), b"half whole");
    assert_eq!((stage.cache.stats().encodings_made, stage.cache.stats().objects), (1, 1));
}

#[test]
fn its_head_says_what_it_is_and_is_rendered_so() {
    let stage = Stage::new();
    let primary = stage.store("/", &[7; 3_000]);
    let made = encode(&stage, &primary, Brotli, b"short").unwrap();
    assert_eq!(lines(&made), "ETag: W/\"1\"\r\nContent-Encoding: br\r\nVary: Accept-Encoding\r\n");
    assert_eq!(made.rendered(), format!("HTTP/1.1 200 OK\r\n{}", lines(&made)).as_bytes());
    assert_eq!((made.length(), made.age_s(stage.now)), (5, primary.age_s(stage.now)));
    assert_eq!(lines(&primary), "ETag: \"1\"\r\n", "what it was made of is what it was");
}

#[test]
fn what_takes_the_primary_takes_its_encodings() {
    let stage = Stage::new();
    for size in [2_000, 60_000] {
        let primary = stage.store("/", &[7; 70_000]);
        let made = encode(&stage, &primary, Gzip, &vec![7; size]).unwrap();
        stage.cache.purge(stage.key("/"));
        assert!(!made.is_live() && !primary.is_live());
        assert!(matches!(ask(&stage, &primary, Zstd), EncodingAnswer::None), "nobody begins another");
        drop((made, primary));
        assert_eq!(stage.cache.account().used(), 0);
    }
}

#[test]
fn what_lands_after_its_primary_is_gone_is_read_and_not_kept() {
    let stage = Stage::new();
    let primary = stage.store("/", &[7; 3_000]);
    let (mut draft, mut reader) = begin(&stage, &primary, Gzip);
    draft.append(Bytes::from_static(b"text"));
    stage.cache.purge(stage.key("/"));
    assert!(draft.land(Some(&primary)).is_none());
    assert_eq!(whole_body(&mut reader), b"text");
    drop((reader, primary));
    assert_eq!(stage.cache.account().used(), 0);
}

#[test]
fn what_breaks_off_is_truncated_for_its_readers_and_may_be_tried_again() {
    let stage = Stage::new();
    let primary = stage.store("/", &[7; 3_000]);
    for for_good in [false, true] {
        let (mut draft, mut reader) = begin(&stage, &primary, Gzip);
        draft.append(Bytes::from_static(b"half"));
        draft.abort(failure(0), for_good);
        assert!(matches!(read_body(&mut reader), (body, Some(BodyPiece::Truncated(_))) if body == b"half"));
    }
    assert!(matches!(ask(&stage, &primary, Gzip), EncodingAnswer::None));
    let (draft, mut reader) = begin(&stage, &primary, Zstd);
    drop(draft);
    assert!(matches!(read_body(&mut reader), (_, Some(BodyPiece::Truncated(_)))));
    assert_eq!(state(&primary, Zstd), EncodingState::Free);
}

#[test]
fn what_is_no_shorter_than_its_text_is_kept_by_nobody() {
    let stage = Stage::new();
    let primary = stage.store("/", &[7; 3_000]);
    assert!(encode(&stage, &primary, Gzip, &[7; 3_000]).is_none());
    assert_eq!(state(&primary, Gzip), EncodingState::Pointless);
    assert!(encode(&stage, &primary, Zstd, &[7; 2_999]).is_some());
}

#[test]
fn what_was_made_in_a_hurry_gives_way_to_what_was_made_with_time_if_that_is_shorter() {
    let stage = Stage::new();
    for (with_time, is_better) in [(1_000, true), (140_000, true), (150_000, false), (160_000, false)] {
        let primary = stage.store("/", &[7; 200_000]);
        let quick = encode(&stage, &primary, Gzip, &[7; 150_000]).unwrap();
        let encodings = Arc::clone(primary.encodings().unwrap());
        assert_eq!(state(&primary, Gzip), EncodingState::Quick);
        assert!(encodings.promise(Gzip) && !encodings.promise(Gzip), "one at a time");
        encodings.break_promise(Gzip, false);
        assert_eq!(state(&primary, Gzip), EncodingState::Quick);
        assert!(encodings.promise(Gzip), "it may be tried again");
        let added = stage.cache.add_encoding(&primary, Gzip, vec![Bytes::from(vec![7; with_time])]);
        encodings.break_promise(Gzip, true);
        let found = primary.encoding(Gzip).unwrap();
        assert_eq!((added, quick.is_live(), found.is_live()), (is_better, !is_better, true));
        assert_eq!(found.length(), if is_better { with_time as u64 } else { 150_000 });
        let pieces = found.body().pieces(0, u64::MAX);
        assert_eq!(pieces.map(|piece| piece.len() as u64).sum::<u64>(), found.length());
        assert_eq!(state(&primary, Gzip), EncodingState::Made);
        assert!(!encodings.promise(Gzip), "it is as short as it gets");
        stage.cache.purge(stage.key("/"));
        drop((primary, quick, found, encodings));
        assert_eq!(stage.cache.account().used(), 0);
    }
}

#[test]
fn what_is_made_of_a_shorter_coding_may_be_longer() {
    let stage = Stage::new();
    let mut description = stage.description(Some(storable(MINUTE_MS)), None);
    let mut head = ResponseHead::new(Status::OK);
    head.fields.push(FieldName::ContentEncoding, "br");
    (description.head, description.shared_head) = (Arc::new(head.clone()), Arc::new(head));
    let mut draft = stage.miss("/").describe(description);
    draft.append(Bytes::from_static(b"short"));
    let primary = draft.land(None).unwrap();
    for coding in [Identity, Gzip] {
        let made = encode(&stage, &primary, coding, &[7; 3_000]).expect("who takes no brotli has no other");
        assert_eq!(made.fields().get(FieldName::ContentEncoding), (coding == Gzip).then_some(&b"gzip"[..]));
    }
}

#[test]
fn a_304_gives_them_its_head_too() {
    let mut stage = Stage::new();
    for size in [100, 60_000] {
        let primary = stage.store("/", &[7; 70_000]);
        let made = encode(&stage, &primary, Gzip, &vec![1; size]).unwrap();
        encode(&stage, &primary, Zstd, &[7; 80_000]);
        stage.advance_ms(2 * MINUTE_MS);
        let ticket = stage.miss("/");
        let mut head = ResponseHead::new(Status::OK);
        head.fields.push(FieldName::Etag, "\"1\"");
        head.fields.push_named(b"X-Refreshed", b"yes");
        let rendered = Bytes::from_static(b"HTTP/1.1 200 OK\r\nETag: \"1\"\r\nX-Refreshed: yes\r\nVia: us\r\n");
        let fresh = ticket.refreshed((Arc::new(head), rendered), facts(MINUTE_MS), None, stage.now);
        let inherited = fresh.encoding(Gzip).expect("it was made before");
        assert!(!made.is_live() && inherited.is_live());
        assert_eq!(body_of(&inherited), vec![1; size]);
        let expect = "X-Refreshed: yes\r\nETag: W/\"1\"\r\nContent-Encoding: gzip\r\nVary: Accept-Encoding\r\n";
        assert_eq!(lines(&inherited), expect);
        assert_eq!(inherited.rendered(), format!("HTTP/1.1 200 OK\r\n{expect}Via: us\r\n").as_bytes());
        drop((made, primary));
        stage.cache.purge(stage.key("/"));
        drop((fresh, inherited));
        assert_eq!(stage.cache.account().used(), 0, "{size}");
    }
}

#[test]
fn they_go_before_their_primaries_unless_they_were_used() {
    let stage = Stage::with(CacheSettings { memory_bytes_max: 1 << 20, ..CacheSettings::default() });
    let used = stage.store("/used", &[7; 40_000]);
    let used_encoding = encode(&stage, &used, Gzip, &[1; 30_000]).unwrap();
    let unused = stage.store("/unused", &[7; 40_000]);
    let unused_encoding = encode(&stage, &unused, Gzip, &[1; 30_000]).unwrap();
    for index in 0..100 {
        (0..3).for_each(|_| used_encoding.touch(stage.now));
        stage.store(&format!("/{index}"), &[7; 40_000]);
        assert!(!unused_encoding.is_live() || unused.is_live());
        assert!(stage.cache.account().used() <= (1 << 20) + (200 << 10), "{}", stage.cache.account().used());
    }
    assert!(used.is_live() && used_encoding.is_live());
    assert!(!unused.is_live() && !unused_encoding.is_live());
}

#[test]
fn what_finds_no_room_goes_by_its_readers_and_the_primary_stays() {
    let stage = Stage::with(CacheSettings { memory_bytes_max: 1 << 20, ..CacheSettings::default() });
    let primary = stage.store("/", &[7; 40_000]);
    let (mut draft, mut reader) = begin(&stage, &primary, Gzip);
    let taken = stage.cache.account().charge(2 << 20);
    draft.append(Bytes::from(vec![1; 9_000]));
    assert_eq!(read_body(&mut reader).0.len(), 9_000);
    drop(taken);
    draft.append(Bytes::from(vec![1; 100]));
    assert!(!draft.is_for_nobody());
    assert!(draft.land(Some(&primary)).is_none());
    assert_eq!(whole_body(&mut reader).len(), 100);
}

#[test]
fn an_encoding_begun_on_a_fetch_is_kept_with_what_lands() {
    let stage = Stage::new();
    let ticket = stage.miss("/");
    let leader = ticket.follow(0);
    let mut landing = stage.describe(ticket, Some(storable(MINUTE_MS)), None);
    let encodings = leader.encodings().expect("it is kept");
    let head = || ResponseHead::new(Status::OK);
    let asked = stage.cache.encoding(&encodings, Zstd, (stage.key("/"), 0), head);
    let EncodingAnswer::Make(mut draft, _follower) = asked else { panic!("nobody has begun") };
    landing.append(Bytes::from(vec![7; 2_000]));
    let primary = landing.land(None).expect("it is stored");
    draft.append(Bytes::from_static(b"short"));
    assert!(Arc::ptr_eq(&leader.flight().landed().unwrap(), &primary));
    let made = draft.land(leader.flight().landed().as_ref()).expect("it is kept");
    assert!(Arc::ptr_eq(&primary.encoding(Zstd).unwrap(), &made));
}

#[test]
fn what_was_promised_is_made_by_one_and_takes_the_place_of_what_was_made_in_a_hurry() {
    let stage = Stage::new();
    let primary = stage.store("/", &[7; 3_000]);
    let quick = encode(&stage, &primary, Zstd, &[1; 900]).unwrap();
    let encodings = Arc::clone(primary.encodings_or_new());
    assert!(encodings.promise(Brotli) && !encodings.promise(Brotli));
    assert!(matches!(ask(&stage, &primary, Brotli), EncodingAnswer::None));
    assert!(stage.cache.add_encoding(
        &primary,
        Brotli,
        vec![Bytes::from_static(b"best "), Bytes::from_static(b"of all")]
    ));
    assert_eq!(body_of(&primary.encoding(Brotli).unwrap()), b"best of all");
    assert!(!quick.is_live() && state(&primary, Zstd) == EncodingState::Free);
    stage.cache.purge(stage.key("/"));
    drop((primary, quick, encodings));
    assert_eq!(stage.cache.account().used(), 0);
}

#[test]
fn a_hot_table_knows_for_whom_it_remembers() {
    let stage = Stage::new();
    let primary = stage.store("/", &[7; 3_000]);
    let made = encode(&stage, &primary, Gzip, b"short").unwrap();
    let (mut hot, key) = (HotTable::new(&stage.cache), stage.key("/"));
    let [plain, gzip, br] = [&[][..], &[("Accept-Encoding", "gzip")], &[("Accept-Encoding", "br")]].map(fields_of);
    let accepted = |fields: &message::Fields| AcceptedCodings::of(fields.view());
    hot.remember(key, accepted(&plain), &primary);
    hot.remember(key, accepted(&gzip), &made);
    let mut found = |fields| hot.get(key, accepted(fields), &request(fields)).cloned();
    assert!(Arc::ptr_eq(&found(&plain).unwrap(), &primary) && Arc::ptr_eq(&found(&gzip).unwrap(), &made));
    assert!(found(&br).is_none());
    stage.cache.watch_for_bans();
    assert!(found(&gzip).is_some(), "there is no ban yet");
    stage.cache.purge(key);
    assert!(found(&plain).is_none() && found(&gzip).is_none());
}

#[test]
fn who_gave_up_keeping_takes_no_place_from_who_began_after() {
    let stage = Stage::with(CacheSettings { memory_bytes_max: 1 << 20, ..CacheSettings::default() });
    let ticket = stage.miss("/");
    let leader = ticket.follow(0);
    let _landing = stage.describe(ticket, Some(storable(MINUTE_MS)), None);
    let encodings = leader.encodings().expect("it is kept");
    let begin = || match stage.cache.encoding(&encodings, Gzip, (stage.key("/"), 0), || ResponseHead::new(Status::OK)) {
        EncodingAnswer::Make(draft, follower) => (draft, follower),
        other => panic!("{other:?}"),
    };
    let (mut first, _reader) = begin();
    let taken = stage.cache.account().charge(2 << 20);
    first.append(Bytes::from(vec![1; 9_000]));
    drop(taken);
    let (_second, _other) = begin();
    assert!(first.land(None).is_none());
    assert_eq!(encodings.states()[Gzip as usize], EncodingState::UnderWay);
}
