//! What the reader of replies makes of replies, of their starts, and of what is none.

use super::*;

const VALUE_BYTES_MAX: usize = 1_000;

fn asked(expected: Expected) -> Asked<'static> {
    Asked { expected, key: b"k", value_bytes_max: VALUE_BYTES_MAX }
}

/// The reply, however the bytes come: no shorter start of it is one, and what follows is left alone.
fn check(expected: Expected, text: &str, reply: Reply) {
    let asked = asked(expected);
    let bytes = text.as_bytes();
    for end in 0..bytes.len() {
        match read_reply(&bytes[..end], &asked) {
            Ok(Progress::More { whole_bytes_min }) => {
                assert!((end + 1..=bytes.len()).contains(&whole_bytes_min), "{text:?} cut at {end}");
            }
            other => panic!("{text:?} cut at {end}: {other:?}"),
        }
    }
    let whole = Ok(Progress::Whole { reply, consumed: bytes.len() });
    for behind in ["", "\r\n", "END\r\n", "VALUE k 0 1\r\nx\r\nEND\r\n"] {
        let input = [bytes, behind.as_bytes()].concat();
        assert_eq!(read_reply(&input, &asked), whole, "{text:?} before {behind:?}");
    }
}

/// The fault shows in the whole text, and in no start of it does a reply.
fn check_fault(expected: Expected, text: &str, fault: ReplyFault) {
    let asked = asked(expected);
    assert_eq!(read_reply(text.as_bytes(), &asked), Err(fault), "{text:?}");
    for end in 0..text.len() {
        match read_reply(&text.as_bytes()[..end], &asked) {
            Ok(Progress::More { .. }) => {}
            Err(early) => assert_eq!(early, fault, "{text:?} cut at {end}"),
            Ok(whole) => panic!("{text:?} cut at {end}: {whole:?}"),
        }
    }
}

fn item(flags: u32, value: Range<usize>) -> Item {
    let value_bytes = value.len() as u64;
    Item { flags, value, value_bytes, ..Item::default() }
}

#[test]
fn values_are_read() {
    check(Expected::Value, "END\r\n", Reply::Miss);
    check(Expected::Value, "VALUE k 0 4\r\na\r\nb\r\nEND\r\n", Reply::Item(item(0, 13..17)));
    check(Expected::Value, "VALUE k 4294967295 0\r\n\r\nEND\r\n", Reply::Item(item(u32::MAX, 22..22)));
    let gets = Item { cas: Some(77), ..item(1, 16..17) };
    check(Expected::Value, "VALUE k 1 1 77\r\nx\r\nEND\r\n", Reply::Item(gets));
    check(Expected::MetaValue, "EN\r\n", Reply::Miss);
    check(Expected::MetaValue, "EN kk\r\n", Reply::Miss);
    let meta = Item { cas: Some(9), ttl_s: Some(-1), ..item(3, 19..21) };
    check(Expected::MetaValue, "VA 2 f3 c9 t-1 kk\r\nxy\r\n", Reply::Item(meta.clone()));
    let stale = Item { is_stale: true, is_won: true, value: 22..24, ttl_s: Some(5), ..meta };
    check(Expected::MetaValue, "VA 2 f3 c9 t5 kk W X\r\nxy\r\n", Reply::Item(stale));
}

#[test]
fn facts_are_read_without_a_value() {
    check(Expected::MetaFacts, "EN\r\n", Reply::Miss);
    check(Expected::MetaFacts, "EN kk\r\n", Reply::Miss);
    let facts = Item { cas: Some(9), ttl_s: Some(-1), value_bytes: 1 << 40, ..item(3, 0..0) };
    check(Expected::MetaFacts, "HD s1099511627776 f3 c9 t-1 kk\r\n", Reply::Item(facts.clone()));
    let stale = Item { is_stale: true, is_won: true, ..facts };
    check(Expected::MetaFacts, "HD s1099511627776 f3 c9 t-1 kk X W\r\n", Reply::Item(stale));
    check_fault(Expected::MetaFacts, "HD f3 c9 t-1 kk\r\n", ReplyFault::ValueLine);
    check_fault(Expected::MetaFacts, "HD s1 f3 c9 t-1 kl\r\n", ReplyFault::OtherKey);
    check_fault(Expected::MetaFacts, "HD s1 f3 c9 t-1\r\n", ReplyFault::OtherKey);
    check_fault(Expected::MetaFacts, "HDs1 f3 c9 t-1 kk\r\n", ReplyFault::Unexpected);
    check_fault(Expected::MetaFacts, "VA 1 f0 c1 t1 kk\r\n", ReplyFault::Unexpected);
    check_fault(Expected::MetaValue, "VA 1 s2 f0 c1 t1 kk\r\n", ReplyFault::ValueLine);
}

#[test]
fn a_key_in_base64_is_compared_with_the_one_that_was_asked_for() {
    let asked = Asked { expected: Expected::MetaValue, key: b"a b\r\n", value_bytes_max: VALUE_BYTES_MAX };
    let read = |text: &str| read_reply(text.as_bytes(), &asked).map(|_| ());
    assert_eq!(read("VA 1 f0 c1 t-1 kYSBiDQo= b\r\nx\r\n"), Ok(()));
    assert_eq!(read("EN kYSBiDQo= b\r\n"), Ok(()));
    assert_eq!(read("VA 1 f0 c1 t-1 kYSBiDQo=\r\nx\r\n"), Err(ReplyFault::OtherKey));
    assert_eq!(read("VA 1 f0 c1 t-1 kYSBiDQ== b\r\nx\r\n"), Err(ReplyFault::OtherKey));
    check_fault(Expected::MetaValue, "VA 1 f0 c1 t-1 kaw== b\r\n", ReplyFault::OtherKey);
}

#[test]
fn silence_ends_with_the_word_that_was_asked_for_behind_it() {
    check(Expected::Silence, "MN\r\n", Reply::Done);
    check(Expected::Silence, "NS c0\r\nMN\r\n", Reply::NotStored);
    check(Expected::Silence, "NF\r\nMN\r\n", Reply::NotFound);
    let error = Reply::Error { of: Blame::Server, text: 0..26 };
    check(Expected::Silence, "SERVER_ERROR out of memory\r\nMN\r\n", error);
    check_fault(Expected::Silence, "VALUE k 0 1\r\n", ReplyFault::Unexpected);
    check_fault(Expected::Silence, &"NF\r\n".repeat(600), ReplyFault::LinesTooLong);
}

#[test]
fn words_are_read() {
    check(Expected::Stored, "STORED\r\n", Reply::Stored { cas: None });
    check(Expected::Stored, "NOT_STORED\r\n", Reply::NotStored);
    check(Expected::Stored, "EXISTS\r\n", Reply::Exists);
    check(Expected::Stored, "NOT_FOUND\r\n", Reply::NotFound);
    check(Expected::Deleted, "DELETED\r\n", Reply::Deleted);
    check(Expected::Deleted, "NOT_FOUND\r\n", Reply::NotFound);
    check(Expected::Number, "18446744073709551615\r\n", Reply::Number { digits: 0..20 });
    check(Expected::Number, "NOT_FOUND\r\n", Reply::NotFound);
    check(Expected::Done, "OK\r\n", Reply::Done);
    check(Expected::Lines, "STAT a 1\r\nSTAT b 2\r\nEND\r\n", Reply::Lines);
    check(Expected::Lines, "END\r\n", Reply::Lines);
    check(Expected::Lines, "RESET\r\n", Reply::Lines);
    check(Expected::Version, "VERSION 1.6.18\r\n", Reply::Version { text: 8..14 });
    check(Expected::MetaStatus, "HD\r\n", Reply::Stored { cas: None });
    check(Expected::MetaStatus, "HD c12\r\n", Reply::Stored { cas: Some(12) });
    check(Expected::MetaStatus, "NS c0\r\n", Reply::NotStored);
    check(Expected::MetaStatus, "EX\r\n", Reply::Exists);
    check(Expected::MetaStatus, "NF\r\n", Reply::NotFound);
    check(Expected::MetaStatus, "EN\r\n", Reply::Miss);
    check(Expected::MetaStatus, "HD Z X\r\n", Reply::Stored { cas: None });
    check(Expected::MetaNumber, "VA 2 c7\r\n12\r\n", Reply::Number { digits: 9..11 });
    check(Expected::MetaNumber, "NF\r\n", Reply::NotFound);
    check(Expected::Noop, "MN\r\n", Reply::Done);
    check(Expected::MetaDebug, "EN\r\n", Reply::Miss);
    check(Expected::MetaDebug, "ME k exp=-1 la=0\r\n", Reply::Debug { text: 3..16 });
}

#[test]
fn errors_answer_anything() {
    for expected in [Expected::Value, Expected::MetaValue, Expected::Stored, Expected::Lines, Expected::MetaNumber] {
        check(expected, "ERROR\r\n", Reply::Error { of: Blame::Command, text: 0..5 });
        check(expected, "CLIENT_ERROR bad\r\n", Reply::Error { of: Blame::Client, text: 0..16 });
        check(expected, "SERVER_ERROR out of memory\r\n", Reply::Error { of: Blame::Server, text: 0..26 });
    }
}

#[test]
fn what_is_no_reply_is_a_fault() {
    use Expected::{MetaNumber, MetaStatus, MetaValue, Number, Stored, Value};
    check_fault(Value, "VALUE l 0 1\r\n", ReplyFault::OtherKey);
    check_fault(Value, "VALUE  0 1\r\n", ReplyFault::OtherKey);
    for line in [
        "VALUE k 0\r\n",
        "VALUE k x 1\r\n",
        "VALUE k 4294967296 1\r\n",
        "VALUE k 0 1 x\r\n",
        "VALUE k 0 1 1 1\r\n",
        "VALUE k -0 1\r\n",
        "VALUE k 0 99999999999999999999\r\n",
    ] {
        check_fault(Value, line, ReplyFault::ValueLine);
    }
    check_fault(Value, "VALUE k 0 1001\r\n", ReplyFault::ValueTooLarge);
    check_fault(Value, "VALUE k 0 18446744073709551615\r\n", ReplyFault::ValueTooLarge);
    check_fault(Value, "VALUE k 0 1\r\nab\r\n", ReplyFault::ValueEnd);
    check_fault(Value, "VALUE k 0 3\r\na\r\nEND\r\n", ReplyFault::ValueEnd);
    check_fault(Value, "VALUE k 0 1\r\na\r\nVALUE", ReplyFault::ValueEnd);
    check_fault(Value, "STORED\r\n", ReplyFault::Unexpected);
    check_fault(Value, "EN\r\n", ReplyFault::Unexpected);
    check_fault(Value, "END\n", ReplyFault::LineEnd);
    check_fault(Value, "\n", ReplyFault::LineEnd);
    check_fault(Stored, "HTTP/1.1 400 Bad\r\n", ReplyFault::Unexpected);
    check_fault(Stored, "DELETED\r\n", ReplyFault::Unexpected);
    check_fault(Number, "-1\r\n", ReplyFault::Unexpected);
    check_fault(Expected::Lines, "STAT a 1\r\nPID 1\r\n", ReplyFault::Unexpected);
    check_fault(MetaValue, "VA 1 f0 c1 t-1 kl\r\n", ReplyFault::OtherKey);
    check_fault(MetaValue, "VA 1 f0 c1 t-1\r\n", ReplyFault::OtherKey);
    check_fault(MetaValue, "EN kl\r\n", ReplyFault::OtherKey);
    check_fault(MetaValue, "ENk\r\n", ReplyFault::Unexpected);
    for line in ["VA 1 f0 c1 kk\r\n", "VA 1 f0 f0 c1 t1 kk\r\n", "VA 1 f0 c1 t-2 kk\r\n", "VA x kk\r\n", "VA 1  kk\r\n"]
    {
        check_fault(MetaValue, line, ReplyFault::ValueLine);
    }
    check_fault(MetaValue, "VA 1 f0 c1 t1 kk\r\nab", ReplyFault::ValueEnd);
    check_fault(MetaStatus, "HDx\r\n", ReplyFault::Unexpected);
    check_fault(MetaStatus, "HD  c1\r\n", ReplyFault::Unexpected);
    check_fault(MetaNumber, "VA 2 c7\r\n1x\r\n", ReplyFault::ValueEnd);
    check_fault(MetaNumber, "VA 21 c7\r\n", ReplyFault::ValueLine);
    check_fault(Value, &"x".repeat(MEMCACHED_LINE_BYTES_MAX), ReplyFault::LineTooLong);
    let stats = "STAT a 1\r\n".repeat(MEMCACHED_LINES_BYTES_MAX / 10 + 1);
    assert_eq!(read_reply(stats.as_bytes(), &asked(Expected::Lines)), Err(ReplyFault::LinesTooLong));
}

/// Bytes that differ a little from replies: nothing panics, and nothing that is read lies outside the input.
#[test]
fn any_bytes_are_read_or_refused() {
    const SEEDS: [&str; 8] = [
        "VALUE k 1 12 77\r\nabcdefghijkl\r\nEND\r\n",
        "VA 12 f3 c9 t5 kk W X\r\nabcdefghijkl\r\n",
        "VA 2 c7\r\n12\r\n",
        "STAT a 1\r\nSTAT b 2\r\nEND\r\n",
        "HD c12\r\n",
        "SERVER_ERROR out of memory\r\n",
        "HD s12 f3 c9 t5 kk W X\r\n",
        "NS c0\r\nMN\r\n",
    ];
    let every = [
        Expected::Value,
        Expected::MetaValue,
        Expected::Stored,
        Expected::Deleted,
        Expected::Number,
        Expected::Done,
        Expected::Lines,
        Expected::Version,
        Expected::MetaStatus,
        Expected::MetaNumber,
        Expected::MetaFacts,
        Expected::MetaDebug,
        Expected::Noop,
        Expected::Silence,
    ];
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    for round in 0..60_000 {
        let mut bytes = SEEDS[round % SEEDS.len()].as_bytes().to_vec();
        for _ in 0..1 + draw(3) {
            let at = draw(bytes.len());
            match draw(3) {
                0 => bytes[at] = b"\r\n 0918kfVAENDx"[draw(15)],
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, draw(256) as u8),
            }
        }
        let asked = asked(every[draw(every.len())]);
        if let Ok(Progress::Whole { reply, consumed }) = read_reply(&bytes, &asked) {
            assert!(consumed <= bytes.len());
            if let Reply::Item(item) = reply {
                assert!(item.value.end <= consumed && item.value.len() <= VALUE_BYTES_MAX);
            }
            let again = read_reply(&bytes[..consumed], &asked);
            assert!(matches!(again, Ok(Progress::Whole { consumed: same, .. }) if same == consumed));
            assert!(matches!(read_reply(&bytes[..consumed - 1], &asked), Ok(Progress::More { .. })));
        }
    }
}
