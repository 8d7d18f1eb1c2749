//! Requests as records, read again as an application reads them.

use proptest::prelude::*;

use super::*;

type Variables = Vec<(Vec<u8>, Vec<u8>)>;

/// The records of a request: type and content.
fn records(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut all = Vec::new();
    while let [1, kind, 0, 1, high, low, padding, 0, rest @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        all.push((*kind, rest[..length].to_vec()));
        bytes = &rest[length + usize::from(*padding)..];
    }
    assert!(bytes.is_empty(), "{bytes:?} is no record");
    all
}

fn length(bytes: &mut &[u8]) -> usize {
    let (length, rest) = match bytes {
        [short @ 0..=127, rest @ ..] => (usize::from(*short), rest),
        [a, b, c, d, rest @ ..] => (u32::from_be_bytes([a & 0x7f, *b, *c, *d]) as usize, rest),
        _ => panic!("no length"),
    };
    *bytes = rest;
    length
}

fn variables(mut bytes: &[u8]) -> Variables {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (name, value) = (length(&mut bytes), length(&mut bytes));
        all.push((bytes[..name].to_vec(), bytes[name..name + value].to_vec()));
        bytes = &bytes[name + value..];
    }
    all
}

fn written(variables: &Variables) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = RequestWriter::begin(&mut out, true);
    variables.iter().for_each(|(name, value)| writer.variable(name, [&value[..]].into_iter()));
    writer.end();
    out
}

#[test]
fn a_request_begins_says_its_variables_and_ends_them() {
    let mut out = Vec::new();
    let mut writer = RequestWriter::begin(&mut out, false);
    writer.variable(b"REQUEST_METHOD", [&b"GET"[..]].into_iter());
    writer.variable(b"EMPTY", [].into_iter());
    assert!(writer.field(b"X-Some-Field", [&b"a"[..], b", ", b"b"].into_iter()));
    writer.end();
    let all = records(&out);
    assert_eq!(all[0], (1, vec![0, 1, 0, 0, 0, 0, 0, 0]));
    assert_eq!(all.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [1, 4, 4]);
    assert!(all[2].1.is_empty());
    let expect = [("REQUEST_METHOD", "GET"), ("EMPTY", ""), ("HTTP_X_SOME_FIELD", "a, b")];
    let expect = expect.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
    assert_eq!(variables(&all[1].1), expect);
    let mut out = Vec::new();
    RequestWriter::begin(&mut out, true).end();
    assert_eq!(records(&out), [(1, vec![0, 1, 1, 0, 0, 0, 0, 0]), (4, Vec::new())]);
}

#[test]
fn no_variable_begins_in_one_record_and_ends_in_the_next() {
    let large = |n: usize| (format!("V{n}").into_bytes(), vec![b'x'; 30_000]);
    let all = [large(0), large(1), large(2), large(3), large(4)].to_vec();
    let records = records(&written(&all));
    assert_eq!(records.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [1, 4, 4, 4, 4]);
    let read: Variables = records[1..].iter().flat_map(|(_, content)| variables(content)).collect();
    assert_eq!(read, all);
    // What fits into no record is split all the same: it is the application's to refuse.
    let huge = [(b"V".to_vec(), vec![b'y'; 200_000])].to_vec();
    let records = self::records(&written(&huge));
    assert_eq!(variables(&records[1..].iter().flat_map(|(_, content)| content.clone()).collect::<Vec<_>>()), huge);
}

fn check(name: &str, expect: bool) {
    assert_eq!(is_variable_field(name.as_bytes()), expect, "{name}");
    let (mut out, mut none) = (Vec::new(), Vec::new());
    RequestWriter::begin(&mut none, true).end();
    let mut writer = RequestWriter::begin(&mut out, true);
    assert_eq!(writer.field(name.as_bytes(), [&b"v"[..]].into_iter()), expect);
    writer.end();
    assert_eq!(out != none, expect, "{name}");
}

#[test]
fn a_field_never_becomes_anothers_variable() {
    for name in ["Accept", "X-Forwarded-Proto", "Authorization", "x-1", "Proxy-Foo", "XProxy"] {
        check(name, true);
    }
    for name in
        ["Proxy", "proxy", "PROXY", "Content-Length", "content-type", "Content_Length", "X_A", "X.A", "X[a]", ""]
    {
        check(name, false);
    }
    for name in ["X A", "X\0", "X=A", "X+A", "X!A", "X\u{e9}"] {
        check(name, false);
    }
}

#[test]
fn pieces_of_a_body_say_how_long_they_are() {
    let bytes = [&stdin_head(3)[..], b"abc", &stdin_head(65_535), &vec![b'x'; 65_535], &STDIN_END].concat();
    let lengths: Vec<_> = records(&bytes).into_iter().map(|(kind, content)| (kind, content.len())).collect();
    assert_eq!(lengths, [(5, 3), (5, 65_535), (5, 0)]);
}

proptest! {
    #[test]
    fn variables_are_read_as_they_were_written(
        all in proptest::collection::vec(
            (proptest::collection::vec(any::<u8>(), 0..200), proptest::collection::vec(any::<u8>(), 0..20_000)), 0..30),
    ) {
        let records = records(&written(&all));
        prop_assert_eq!(records.last().map(|(kind, content)| (*kind, content.len())), Some((4, 0)));
        let read: Variables = records[1..].iter().flat_map(|(_, content)| variables(content)).collect();
        prop_assert_eq!(read, all);
        prop_assert!(records[1..records.len() - 1].iter().all(|(_, content)| !content.is_empty()));
    }
}
