//! Bodies of every framing, good and bad, whole and in pieces.
//!
//! Ids are those of the list of bad inputs, groups C and E. Every body is decoded whole, cut in two at every place, and
//! byte by byte; a marker request stands behind it and must be left alone or never be reached.

use super::*;
use crate::bytes_of::{bytes_of, cuts};

const MARKER: &[u8] = b"GET /marker HTTP/1.1\r\nHost: t.test\r\n\r\n";

/// Data, what is left behind the end, and the end: `ended`, `more` or the refusal.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    data: Vec<u8>,
    left: Vec<u8>,
    end: String,
    trailers: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Feeds `pieces` one after another, keeping what is not consumed in front of the next.
fn decode<'a>(mut decoder: BodyDecoder, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut outcome = Outcome { data: Vec::new(), left: Vec::new(), end: String::from("more"), trailers: Vec::new() };
    for piece in pieces {
        outcome.left.extend_from_slice(piece);
        while outcome.end == "more" {
            let consumed = match decoder.decode(&outcome.left) {
                Ok(Decoded::Data { from, to }) => {
                    assert!(from < to);
                    outcome.data.extend_from_slice(&outcome.left[from..to]);
                    to
                }
                Ok(Decoded::More { consumed }) => {
                    outcome.left.drain(..consumed);
                    assert!(outcome.left.is_empty(), "More means that all is consumed");
                    break;
                }
                Ok(Decoded::End { consumed }) => {
                    outcome.end = String::from("ended");
                    assert!(decoder.is_end() && decoder.end_of_input().is_ok());
                    consumed
                }
                Err(refusal) => {
                    outcome.end = format!("{} {}", refusal.status, refusal.token);
                    break;
                }
            };
            outcome.left.drain(..consumed);
        }
    }
    if let Some(trailers) = decoder.trailers() {
        outcome.trailers = trailers.view().iter().map(|f| (f.name_text.to_vec(), f.value.to_vec())).collect();
    }
    outcome
}

fn chunked() -> BodyDecoder {
    BodyDecoder::for_request(RequestBody::Chunked, &ChunkedLimits::DEFAULT)
}

/// Decodes a chunked body in all ways; returns the outcome of the whole.
fn check_chunked(id: &str, bytes: &[u8], data: &[u8], end: &str) -> Outcome {
    let followed = [bytes, MARKER].concat();
    let whole = decode(chunked(), [&followed[..]]);
    assert_eq!((&whole.end[..], &whole.data[..]), (end, data), "{id}: {}", bytes.escape_ascii());
    if end == "ended" {
        assert_eq!(whole.left, MARKER, "{id}: what is behind the body is not touched");
    }
    let bytewise = decode(chunked(), followed.chunks(1));
    assert_eq!((&bytewise.end, &bytewise.data, &bytewise.trailers), (&whole.end, &whole.data, &whole.trailers), "{id}");
    for cut in cuts(bytes.len()) {
        let (first, second) = followed.split_at(cut);
        let pieces = decode(chunked(), [first, second]);
        assert_eq!(
            (&pieces.end, &pieces.data, &pieces.trailers),
            (&whole.end, &whole.data, &whole.trailers),
            "{id} {cut}"
        );
    }
    whole
}

/// A body that is fine and whose data is `hello`.
fn check_good(id: &str, text: &str) {
    check_chunked(id, &bytes_of(text), b"hello", "ended");
}

/// A body that is refused, after this much data.
fn check_bad(id: &str, text: &str, data: &str, end: &str) {
    check_chunked(id, &bytes_of(text), data.as_bytes(), end);
}

#[test]
fn chunks_are_joined() {
    check_good("E01", "5¶hello¶0¶¶");
    check_good("E01", "00005¶hello¶0¶¶");
    check_good("E01", "0000000000000005¶hello¶0000000000000000¶¶");
    check_good("E01", "2¶he¶1¶l¶2¶lo¶0¶¶");
    check_chunked("E01", b"A\r\n0123456789\r\na\r\n0123456789\r\n000\r\n\r\n", b"01234567890123456789", "ended");
    check_chunked("E01", b"0\r\n\r\n", b"", "ended");
    check_chunked("E01", b"2\r\n\r\n\r\n0\r\n\r\n", b"\r\n", "ended");
}

#[test]
fn sizes_are_plain_and_bounded() {
    for size in ["FFFFFFFFFFFFFFED", "FFFFFFFFFFFFFFFF0", "8000000000000000", "111111113", "100000000"] {
        check_bad("E02", &format!("{size}¶hello¶0¶¶"), "", "400 chunk-size-too-large");
    }
    check_bad("E01", "00000000000000005¶hello¶0¶¶", "", "400 chunk-size-too-large");
    let largest = decode(chunked(), [&b"ffffffff\r\nx"[..]]);
    assert_eq!((&largest.end[..], &largest.data[..]), ("more", &b"x"[..]));
    for size in ["0x5", "+5", "-1", "-0x0", "1_0", "0_2e", "5h", "z", "3z", "1these-bytes", "5,", "5\u{b2}", "5\0"] {
        check_bad("E03", &format!("{size}¶hello¶0¶¶"), "", "400 chunk-size-invalid");
    }
    for size in [" 5", "\t5", "                    0", "", "¶5", "\n5", ";a=b"] {
        check_bad("E04 E05", &format!("{size}¶hello¶0¶¶"), "", "400 chunk-size-invalid");
    }
    for size in ["5 ", "5\t", "5 \t "] {
        check_bad("E04", &format!("{size}¶hello¶0¶¶"), "", "400 chunk-extension-invalid");
    }
    check_bad("E22", "INVALID!!!¶", "", "400 chunk-size-invalid");
}

#[test]
fn data_is_followed_by_crlf_alone() {
    for (id, behind) in
        [("E06", "0¶¶"), ("E07", "!!¶0¶¶"), ("E08", "XX0¶¶"), ("E10", "\n0¶¶"), ("E11", "\r\r0¶¶"), ("E08", "\rX0¶¶")]
    {
        check_bad(id, &format!("5¶hello{behind}"), "hello", "400 chunk-end-invalid");
    }
    check_bad("E09", "1¶¶¶0¶¶", "\r", "400 chunk-end-invalid");
    check_bad("E09", "d¶Spurious CRLF¶¶¶0¶¶", "Spurious CRLF", "400 chunk-size-invalid");
}

#[test]
fn lines_end_with_crlf_alone() {
    check_bad("E10", "5\nhello\n0\n\n", "", "400 chunk-size-invalid");
    check_bad("E10", "5¶hello\n0¶¶", "hello", "400 chunk-end-invalid");
    check_bad("E10", "0\n¶", "", "400 chunk-size-invalid");
    check_bad("E10", "0¶\n", "", "400 trailer-invalid");
    check_bad("E11", "5\rhello¶0¶¶", "", "400 chunk-size-invalid");
    check_bad("E11", "5\r\r;A¶hello¶0¶¶", "", "400 chunk-size-invalid");
    check_bad("E11", "2\r\r;a¶he¶0¶¶", "", "400 chunk-size-invalid");
    check_bad("E10", "0¶\rX", "", "400 trailer-invalid");
}

#[test]
fn extensions_are_checked_and_dropped() {
    for extension in [
        ";a=b",
        ";a=\"q\\\"x\"",
        ";a;b;c",
        " ;a",
        "\t; a",
        ";a =b",
        ";a= b",
        ";a = \"\" ;b",
        ";a=\"\u{ff}\t;\"",
        ";a=b ;c",
        ";a ;b",
        ";a=\"b\";c",
        ";a=\"\\\t\"",
        ";a=\"~\"",
    ] {
        check_good("E14", &format!("5{extension}¶hello¶0{extension}¶¶"));
    }
    for extension in [
        ";\n",
        ";a=b\nX",
        ";",
        "; =",
        ";a[=b",
        ";a=\"",
        ";\0x",
        ";a\rX",
        ";a=\"b\r\nc\"",
        ";a=",
        ";a=b c",
        ";=b",
        ";a b",
        ";;a",
        ";a ",
        ";a=b ",
        ";a=\"b\" ",
        ";a=\"b\"c",
        ";a=\"b\"c;d",
        ";a=b\";c",
        ";a=\"\\\0\"",
        ";a=\"\u{7f}\"",
        ";a==b",
        ";a=b=c",
        " a",
        ";a=b\t",
    ] {
        let whole = decode(chunked(), [&bytes_of(&format!("5{extension}¶hello¶0¶¶"))[..]]);
        let expect = if extension == ";a\rX" { "400 chunk-size-invalid" } else { "400 chunk-extension-invalid" };
        assert_eq!(whole.end, expect, "{extension:?}");
        check_bad("E12 E13", &format!("5{extension}¶hello¶0¶¶"), "", expect);
    }
}

#[test]
fn overhead_has_a_budget() {
    let long = format!("5;{}¶hello¶0¶¶", "a".repeat(65_536));
    check_bad("E15", &long, "", "413 chunk-extensions-too-large");
    check_good("E15", &format!("5;{}¶hello¶0¶¶", "a".repeat(16_382)));
    let run = |chunk: &str, count: usize| {
        let bytes = bytes_of(chunk).repeat(count);
        let outcome = decode(chunked(), bytes.chunks(8 << 10));
        (outcome.end, outcome.data.len())
    };
    let (end, data) = run(&format!("1;{}¶x¶", "e".repeat(99)), 1_000_000 / 100);
    assert_eq!((&end[..], data), ("413 chunk-extensions-too-large", 163), "E16");
    let (end, data) = run("1¶x¶", 20_000);
    assert_eq!((&end[..], data), ("more", 20_000), "E24: small chunks alone are fine");
    let (end, data) = run("0000000000000001¶x¶", 20_000);
    assert_eq!(end, "413 chunk-overhead-too-large", "E16, by leading zeros");
    assert!(data < 6_000, "{data}");
}

/// Three bytes of an extension with its line end, and eleven of framing for five of data.
#[test]
fn budgets_are_exact() {
    let end = |extension_bytes_max, overhead_bytes_free, overhead_per_data_byte| {
        let of_framing = ChunkedLimits { overhead_bytes_free, overhead_per_data_byte, ..ChunkedLimits::DEFAULT };
        let limits = ChunkedLimits { extension_bytes_max, ..of_framing };
        let decoder = BodyDecoder::for_request(RequestBody::Chunked, &limits);
        decode(decoder, [&b"5;ab\r\nhello\r\n0\r\n\r\n"[..]]).end
    };
    assert_eq!(end(3, 6, 1), "ended");
    assert_eq!(end(3, 11, 0), "ended");
    assert_eq!(end(2, 6, 1), "413 chunk-extensions-too-large");
    assert_eq!(end(3, 10, 0), "413 chunk-overhead-too-large");
    assert_eq!(end(3, 5, 1), "413 chunk-overhead-too-large", "nothing is earned before there is data");
}

#[test]
fn trailers_are_filtered() {
    let text = "0¶X-Sum: 1¶Content-Length: 50¶Transfer-Encoding: chunked¶Host: evil¶Authorization: x¶Cookie: a¶\
         X-Forwarded-For: 1.1.1.1¶True-Client-IP: 1.1.1.1¶Client_Cert: x¶Content_Length: 7¶Content-Type: x¶Cache-Control: no-store¶Set-Cookie: a¶WWW-Authenticate: x¶\
         ETag: \"e\"¶x-Own:\t a \u{ff} ¶Empty:¶¶";
    let outcome = check_chunked("E19", &bytes_of(text), b"", "ended");
    let trailers: Vec<_> = outcome.trailers.iter().map(|(name, value)| (&name[..], &value[..])).collect();
    let expect: [(&[u8], &[u8]); 4] = [(b"X-Sum", b"1"), (b"ETag", b"\"e\""), (b"x-Own", b"a \xff"), (b"Empty", b"")];
    assert_eq!(trailers, expect);
    let outcome = check_chunked("none left", b"0\r\nHost: evil\r\n\r\n", b"", "ended");
    assert!(outcome.trailers.is_empty());
}

#[test]
fn the_section_of_trailers_is_counted_to_its_last_byte() {
    let end = |trailer_bytes_max| {
        let limits = ChunkedLimits { trailer_bytes_max, ..ChunkedLimits::DEFAULT };
        decode(BodyDecoder::for_request(RequestBody::Chunked, &limits), [&b"0\r\nX: ~\r\n\r\n"[..]]).end
    };
    assert_eq!(end(7), "ended", "its last line feed ends it before it counts");
    assert_eq!(end(6), "431 trailers-too-large");
}

#[test]
fn trailers_obey_the_grammar_and_limits() {
    for line in
        ["NoColon", "X : v", ": v", " X: v", "X: a¶ b", "X: a\0", "X: a\nY: b", "X: a\rb", "X: a\n", "X\u{e9}: v"]
    {
        check_bad("E20", &format!("0¶{line}¶¶"), "", "400 trailer-invalid");
    }
    check_bad("E20", &format!("0¶{}¶", "X: v¶".repeat(100_000)), "", "431 trailers-too-many");
    check_bad("E20", &format!("0¶X: {}¶¶", "v".repeat(100_000)), "", "431 trailers-too-large");
    check_chunked("64", &bytes_of(&format!("0¶{}¶", "X: v¶".repeat(64))), b"", "ended");
    // A request line behind `X:` is that trailer's value: the message is valid and swallows it (E21).
    let swallowed = decode(chunked(), [&bytes_of("0¶X:GET /x HTTP/1.1¶Host: t¶¶")[..], MARKER]);
    assert_eq!((&swallowed.end[..], &swallowed.left[..]), ("ended", MARKER));
    check_bad("E21", "0¶X:¶GET /marker HTTP/1.1¶¶", "", "400 trailer-invalid");
}

#[test]
fn a_body_without_its_last_byte_is_truncated() {
    let whole = bytes_of("5;a¶hello¶0¶X: v¶¶");
    for cut in 0..whole.len() {
        let mut decoder = chunked();
        let mut rest = &whole[..cut];
        while let Decoded::Data { to: consumed, .. } = decoder.decode(rest).expect("nothing is wrong so far") {
            rest = &rest[consumed..];
        }
        assert_eq!(decoder.end_of_input(), Err(Truncated { missing_bytes: None }), "E18 {cut}");
        assert!(!decoder.is_end() && decoder.remaining().is_none() && decoder.trailers().is_none());
    }
}

#[test]
fn lengths_are_counted_down() {
    let of = |length| BodyDecoder::for_request(RequestBody::Length(length), &ChunkedLimits::DEFAULT);
    let followed = [b"abc", MARKER].concat();
    let whole = decode(of(3), [&followed[..]]);
    assert_eq!((&whole.data[..], &whole.left[..], &whole.end[..]), (&b"abc"[..], MARKER, "ended"), "C12");
    assert_eq!(decode(of(3), followed.chunks(1)).data, b"abc");
    assert_eq!(of(0).remaining(), Some(0));
    let none = decode(of(0), [MARKER]);
    assert_eq!((&none.data[..], &none.left[..], &none.end[..]), (&b""[..], MARKER, "ended"));
    let mut short = of(10);
    assert_eq!(short.decode(b"hello"), Ok(Decoded::Data { from: 0, to: 5 }));
    assert_eq!(short.end_of_input(), Err(Truncated { missing_bytes: Some(5) }), "C11");
    assert_eq!((short.remaining(), short.is_end()), (Some(5), false));
    let mut huge = of(i64::MAX as u64);
    assert_eq!(huge.decode(b"x"), Ok(Decoded::Data { from: 0, to: 1 }));
    assert_eq!(huge.remaining(), Some(i64::MAX as u64 - 1));
}

#[test]
fn bodies_of_responses() {
    let of = |body| BodyDecoder::for_response(body, &ChunkedLimits::DEFAULT);
    let until_close = decode(of(ResponseBody::UntilClose), [&b"any"[..], b"thing"]);
    assert_eq!((&until_close.data[..], &until_close.end[..]), (&b"anything"[..], "more"));
    assert_eq!(of(ResponseBody::UntilClose).end_of_input(), Ok(()));
    let none = decode(of(ResponseBody::None), [&b"HTTP/1.1 200 OK"[..]]);
    assert_eq!((&none.left[..], &none.end[..]), (&b"HTTP/1.1 200 OK"[..], "ended"), "O-07");
    let broken = decode(of(ResponseBody::Chunked), [&b"5\r\nhelloXX"[..]]);
    assert_eq!((&broken.data[..], &broken.end[..]), (&b"hello"[..], "502 chunk-end-invalid"), "O-08");
    let longer = decode(of(ResponseBody::Length(3)), [&b"abcdef"[..]]);
    assert_eq!((&longer.data[..], &longer.left[..]), (&b"abc"[..], &b"def"[..]), "O-05");
}

#[test]
fn what_is_encoded_is_decoded() {
    let data: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
    let mut encoded = Vec::new();
    for piece in data.chunks(7_001) {
        let mut head = [0; crate::CHUNK_HEAD_BYTES_MAX];
        let head_bytes = crate::chunk_head(piece.len(), &mut head);
        encoded.extend_from_slice(&head[..head_bytes]);
        encoded.extend_from_slice(piece);
        encoded.extend_from_slice(crate::CHUNK_END);
    }
    encoded.extend_from_slice(crate::LAST_CHUNK_AND_END);
    check_chunked("round trip", &encoded, &data, "ended");
}
