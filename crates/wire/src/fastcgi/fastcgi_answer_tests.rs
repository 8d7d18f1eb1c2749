//! Records of answers, good and bad, whole and in pieces.

use proptest::prelude::*;

use super::*;
use crate::bytes_of::cuts;

/// A record of any kind.
fn record(kind: u8, id: u16, content: &[u8], padding: u8) -> Vec<u8> {
    let (id, length) = (id.to_be_bytes(), (content.len() as u16).to_be_bytes());
    let head = [1, kind, id[0], id[1], length[0], length[1], padding, 0];
    [&head[..], content, &vec![0xaa; usize::from(padding)]].concat()
}

fn out(text: &str) -> Vec<u8> {
    record(6, 1, text.as_bytes(), 0)
}

fn err(text: &str) -> Vec<u8> {
    record(7, 1, text.as_bytes(), 3)
}

fn end(status: u8) -> Vec<u8> {
    record(3, 1, &[0, 0, 0, 9, status, 0, 0, 0], 0)
}

/// What of an answer was read.
#[derive(Debug, Default, PartialEq, Eq)]
struct AnswerRead {
    output: Vec<u8>,
    errors: Vec<u8>,
    /// The end, `more`, or a refusal's token.
    end: String,
}

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> AnswerRead {
    let (mut reader, mut outcome) =
        (AnswerReader::default(), AnswerRead { end: "more".into(), ..AnswerRead::default() });
    for piece in pieces {
        let mut at = 0;
        loop {
            match reader.read(&piece[at..]) {
                Ok(AnswerPart::Output { from, to }) => {
                    assert!(from < to);
                    outcome.output.extend_from_slice(&piece[at + from..at + to]);
                    at += to;
                }
                Ok(AnswerPart::Errors { from, to }) => {
                    assert!(from < to);
                    outcome.errors.extend_from_slice(&piece[at + from..at + to]);
                    at += to;
                }
                Ok(AnswerPart::More) => break,
                Ok(AnswerPart::End { consumed, status }) => {
                    assert!(reader.has_ended());
                    outcome.end = format!("{status:?}");
                    at += consumed;
                }
                Err(refusal) => {
                    assert_eq!(refusal.status, 502);
                    outcome.end = refusal.token.into();
                    return outcome;
                }
            }
        }
    }
    outcome
}

/// However the records are split, they say the same.
fn check(records: &[Vec<u8>], output: &str, errors: &str, end: &str) {
    let bytes = records.concat();
    let expect = AnswerRead { output: output.into(), errors: errors.into(), end: end.into() };
    assert_eq!(read([&bytes[..]]), expect, "whole");
    for cut in cuts(bytes.len()) {
        let (first, second) = bytes.split_at(cut);
        assert_eq!(read([first, second]), expect, "cut at {cut}");
    }
    assert_eq!(read(bytes.chunks(1)), expect, "byte by byte");
}

#[test]
fn output_and_errors_are_told_apart_and_padding_is_nobodys() {
    check(&[out("one "), err("a notice"), record(6, 1, b"two", 7), end(0)], "one two", "a notice", "Complete");
    check(&[out("a"), record(6, 1, b"", 0), record(7, 1, b"", 5), end(0)], "a", "", "Complete");
    check(&[end(0)], "", "", "Complete");
    check(&[err("only"), record(3, 1, &[0; 8], 255)], "", "only", "Complete");
}

#[test]
fn an_answer_that_has_not_ended_has_not() {
    check(&[], "", "", "more");
    check(&[out("half")], "half", "", "more");
    check(&[out("all"), record(6, 1, b"", 0)], "all", "", "more");
    check(&[out("all"), end(0)[..15].to_vec()], "all", "", "more");
    // The record promises more than comes.
    check(&[record(6, 1, b"promised", 0)[..12].to_vec()], "prom", "", "more");
    check(&[record(3, 1, &[0; 8], 4)[..18].to_vec()], "", "", "more");
}

#[test]
fn how_it_ended_is_said() {
    check(&[end(1)], "", "", "CannotMultiplex");
    check(&[end(2)], "", "", "Overloaded");
    check(&[end(3)], "", "", "UnknownRole");
    check(&[out("x"), end(2)], "x", "", "Overloaded");
    check(&[end(4)], "", "", "fastcgi-end-invalid");
    check(&[record(3, 1, &[0; 7], 0)], "", "", "fastcgi-end-invalid");
    check(&[record(3, 1, &[0; 9], 0)], "", "", "fastcgi-end-invalid");
}

#[test]
fn what_is_no_record_of_the_answer_is_refused() {
    let wrong_version = || [&[2], &out("x")[1..]].concat();
    check(&[wrong_version()], "", "", "fastcgi-version-wrong");
    check(&[out("x"), wrong_version()], "x", "", "fastcgi-version-wrong");
    for id in [0, 2, 256, u16::MAX] {
        check(&[record(6, id, b"x", 0)], "", "", "fastcgi-id-wrong");
    }
    // A management record, and what only a server sends.
    for kind in [0, 1, 2, 4, 5, 8, 9, 10, 11, 255] {
        check(&[out("x"), record(kind, 1, &[0; 8], 0)], "x", "", "fastcgi-record-unexpected");
    }
    check(&[b"HTTP/1.1 200 OK\r\n\r\n".to_vec()], "", "", "fastcgi-version-wrong");
}

#[test]
fn nothing_comes_behind_an_end() {
    check(&[out("x"), end(0), out("y")], "x", "", "fastcgi-behind-end");
    check(&[end(0), vec![0]], "", "", "fastcgi-behind-end");
    check(&[end(0), end(0)], "", "", "fastcgi-behind-end");
    check(&[record(6, 1, b"", 0), out("y")], "", "", "fastcgi-stream-goes-on");
    check(&[record(6, 1, b"", 0), record(6, 1, b"", 0)], "", "", "fastcgi-stream-goes-on");
    check(&[record(7, 1, b"", 0), out("x"), err("e")], "x", "", "fastcgi-stream-goes-on");
}

#[test]
fn who_says_nothing_in_many_records_is_not_listened_to() {
    let mut reader = AnswerReader::default();
    let notice = err("n");
    let mut last = Ok(AnswerPart::More);
    for _ in 0..=FASTCGI_RECORDS_WITHOUT_OUTPUT_MAX {
        let mut at = 0;
        last = reader.read(&notice);
        while let Ok(AnswerPart::Errors { to, .. }) = last {
            at += to;
            last = reader.read(&notice[at..]);
        }
        if last.is_err() {
            break;
        }
    }
    assert_eq!(last, Err(refusals::FASTCGI_RECORDS_IDLE));
    let many = vec![out("x"); 1_000].concat();
    assert_eq!(read([&many[..]]).output.len(), 1_000);
}

proptest! {
    #[test]
    fn what_was_put_into_records_comes_out(
        pieces in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 1..600), any::<u8>()), 0..20),
        cut in 1_usize..700,
    ) {
        let mut bytes = Vec::new();
        let mut expect = AnswerRead { end: "Complete".into(), ..AnswerRead::default() };
        for (is_output, content, padding) in &pieces {
            bytes.extend(record(if *is_output { 6 } else { 7 }, 1, content, *padding));
            if *is_output { &mut expect.output } else { &mut expect.errors }.extend(content);
        }
        bytes.extend(end(0));
        prop_assert_eq!(read(bytes.chunks(cut)), expect);
    }

    #[test]
    fn any_bytes_mean_the_same_however_they_are_split(bytes in proptest::collection::vec(0_u8..12, 0..200), cut in 1_usize..50) {
        prop_assert_eq!(read(bytes.chunks(cut)), read([&bytes[..]]));
    }
}
