//! What `read_response` makes of every response head that a pure codec can judge.
//!
//! Ids are those of the list of bad inputs: group O, and the rows of groups B, C and D as an origin would send them. Every
//! row is read whole, with another response behind it, and cut at every place.

use super::*;
use crate::bytes_of::{bytes_of, cuts};

const STUFFED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";

fn outcome(bytes: &[u8], method: Method, upgrade_sent: bool) -> Option<String> {
    let mut spans = Vec::new();
    let received = match read_response(bytes, &mut spans, &HeadLimits::RESPONSE, method, upgrade_sent) {
        Ok(received) => received?,
        Err(refusal) => return Some(format!("{} {}", refusal.status, refusal.token)),
    };
    let response = &received.response;
    let close = if received.persistent { "" } else { " close" };
    Some(format!("{} {} {:?}{close}", response.status.0, response.version.number(), received.body))
}

fn check_answer(id: &str, method: Method, upgrade_sent: bool, text: &str, expect: &str) {
    let bytes = bytes_of(text);
    let read = |bytes: &[u8]| outcome(bytes, method, upgrade_sent);
    assert_eq!(read(&bytes).as_deref().unwrap_or("incomplete"), expect, "{id}: {}", bytes.escape_ascii());
    let early = cuts(bytes.len()).find_map(|cut| read(&bytes[..cut])).or_else(|| read(&bytes));
    assert_eq!(early.as_deref().unwrap_or("incomplete"), expect, "{id} in pieces: {}", bytes.escape_ascii());
    if expect != "incomplete" {
        let followed = [&bytes, STUFFED].concat();
        assert_eq!(read(&followed).as_deref(), Some(expect), "{id} before another response");
    }
}

fn check(id: &str, text: &str, expect: &str) {
    check_answer(id, Method::Get, false, text, expect);
}

/// A 200 to a GET with these field lines.
fn check_fields(id: &str, lines: &str, expect: &str) {
    check(id, &format!("HTTP/1.1 200 OK¶{lines}¶¶"), expect);
}

#[test]
fn status_lines_obey_the_grammar() {
    check("O-01", "HTTP/1.1 200 OK¶Content-Length: 5¶¶", "200 1.1 Length(5)");
    check("O-01", "HTTP/1.1 200 ¶Content-Length: 5¶¶", "200 1.1 Length(5)");
    check("O-01", "HTTP/1.1 299 \u{e9}\t x¶Content-Length: 5¶¶", "299 1.1 Length(5)");
    check("O-01", "HTTP/1.1 999 ?¶Content-Length: 5¶¶", "999 1.1 Length(5)");
    for line in [
        "HTTP/1.1 2OO OK",
        "HTTP/1.1 99",
        "HTTP/1.1 99 x",
        "HTTP/1.1 099 x",
        "HTTP/1.1 1000 x",
        "HTTP/1.1 200",
        "HTTP/1.1  200 OK",
        "HTTP/1.1 200 a\rb",
        "HTTP/1.1 200 a\0",
        "HTTP/1.1 200 a\nX: 1",
        "HTTP/1.1 200\tOK",
        "HTTP/1.1 -20 x",
    ] {
        check("O-01", &format!("{line}¶Content-Length: 5¶¶"), "502 status-line-invalid");
    }
    for line in
        ["HTTP/2.0 200 OK", "HTTP/0.9 200 OK", "HTTP/1.10 200 OK", "http/1.1 200 OK", "ICY 200 OK", "HTTP/1.1\t200 OK"]
    {
        check("O-01", &format!("{line}¶Content-Length: 5¶¶"), "502 version-invalid");
    }
    check("O-01 0.9", "<html>hello</html>", "502 version-invalid");
    check("O-01 binary", "\u{16}\u{3}\u{1}\u{2}\0", "502 version-invalid");
    check("O-06", "¶HTTP/1.1 200 OK¶¶", "502 status-line-invalid");
    check("O-06", "\nHTTP/1.1 200 OK¶¶", "502 status-line-invalid");
    check("bare LF", "HTTP/1.1 200 OK\nContent-Length: 5\n\n", "502 status-line-invalid");
    check("bare LF", "HTTP/1.1 200 OK¶Content-Length: 5\n¶", "502 line-end-invalid");
    check("bare LF", "HTTP/1.1 200 OK¶Content-Length: 5¶\n", "502 line-end-invalid");
    check("incomplete", "HTTP/1.1 200 OK¶Content-Length: 5¶", "incomplete");
}

#[test]
fn heads_are_bounded() {
    let reason = |bytes: usize| format!("HTTP/1.1 200 {}¶Content-Length: 5¶¶", "r".repeat(bytes));
    check("O-01", &reason(8 << 10), "200 1.1 Length(5)");
    check("O-01", &reason((8 << 10) + 1), "502 reason-too-long");
    check("O-01", &reason((8 << 10) + 1).replace('r', "~"), "502 reason-too-long");
    check("O-01", &reason(64 << 10), "502 reason-too-long");
    check("O-01", &reason(1 << 20), "502 reason-too-long");
    check_fields("O-02", &"X: v¶".repeat(100_000), "502 response-fields-too-many");
    check_fields("O-02", &format!("{}Content-Length: 5", "X: v¶".repeat(255)), "200 1.1 Length(5)");
    check_fields("O-02", &format!("{}Content-Length: 5", "X: v¶".repeat(256)), "502 response-fields-too-many");
    check_fields("O-02", &format!("X: {}", "v".repeat(64 << 10)), "502 response-field-too-large");
    check_fields("J14", &format!("X: {}¶Content-Length: 5", "v".repeat(32_000)), "200 1.1 Length(5)");
    check_fields("O-02", &format!("X: {}", "v".repeat(1 << 20)), "502 response-head-too-large");
    check_fields("O-11", &format!("Cache-Control: {}", "a,".repeat(35_000)), "502 response-field-too-large");
    check_fields("O-10", &format!("Connection: {}", "a,".repeat(65)), "502 connection-options-too-many");
}

#[test]
fn a_full_head_without_an_end_is_refused_at_once() {
    let read = |text: &str, limits: HeadLimits| {
        let received = read_response(&bytes_of(text), &mut Vec::new(), &limits, Method::Get, false)?.is_some();
        Ok(received)
    };
    let of_bytes = |head_bytes_max| HeadLimits { head_bytes_max, ..HeadLimits::RESPONSE };
    assert_eq!(read("HTTP/1.1 200 OK¶A", of_bytes(18)), Err(refusals::RESPONSE_HEAD_TOO_LARGE));
    assert_eq!(read("HTTP/1.1 200 OK¶A", of_bytes(19)), Ok(false));
    let of_fields = |fields_max| HeadLimits { fields_max, ..HeadLimits::RESPONSE };
    assert_eq!(read("HTTP/1.1 200 OK¶A: 1¶B: 2¶¶", of_fields(2)), Ok(true));
    assert_eq!(read("HTTP/1.1 200 OK¶A: 1¶B: 2¶¶", of_fields(1)), Err(refusals::RESPONSE_FIELDS_TOO_MANY.of_origin()));
}

#[test]
fn field_lines_obey_the_grammar() {
    for line in ["X : v", ": v", "NoColon", "X: a¶ b", " X: v", "Bad[: v", "X\u{ef}: v"] {
        check_fields("B08-B14", line, "502 field-name-invalid");
    }
    for line in ["X: a\0b", "X: a\rb", "X: \u{7f}", "Transfer-Encoding: \u{b}chunked"] {
        check_fields("B15 B17 D13", line, "502 field-value-invalid");
    }
}

#[test]
fn framing_has_one_meaning_or_none() {
    check_fields("§6.3", "X: v", "200 1.1 UntilClose close");
    check_fields("§6.3", "Transfer-Encoding: Chunked", "200 1.1 Chunked");
    check_fields("§6.3", "Content-Length: 0", "200 1.1 Length(0)");
    check_fields("O-04 D01", "Content-Length: 5¶Transfer-Encoding: chunked", "502 length-and-transfer-encoding");
    check_fields("O-04 D01", "Transfer-Encoding: chunked¶Content-Length: 5", "502 length-and-transfer-encoding");
    check_fields("O-04 C05", "Content-Length: 5¶Content-Length: 5", "502 content-length-repeated");
    for value in ["+5", "-1", "0x5", "", "5, 5", "005", "9223372036854775808", "5.0", "\u{a0}5"] {
        check_fields("O-04 C", &format!("Content-Length: {value}"), "502 content-length-invalid");
    }
    for value in ["xchunked", "gzip", "chunked, chunked", "identity", "", ",chunked", "chunked;q=1", "chunked, gzip"] {
        check_fields("O-04 D", &format!("Transfer-Encoding: {value}"), "502 transfer-encoding-invalid");
    }
    check_fields("O-04 D04", "Transfer-Encoding: gzip, chunked", "502 transfer-encoding-unsupported");
    check_fields("O-04 D06", "Transfer-Encoding: chunked¶Transfer-Encoding: chunked", "502 transfer-encoding-repeated");
    check("O-04 D16", "HTTP/1.0 200 OK¶Transfer-Encoding: chunked¶¶", "502 transfer-encoding-in-http10");
}

#[test]
fn some_answers_have_no_body_whatever_they_say() {
    let length = "Content-Length: 5";
    let to_head = |lines: &str, expect: &str| {
        check_answer("O-07 HEAD", Method::Head, false, &format!("HTTP/1.1 200 OK¶{lines}¶¶"), expect);
    };
    to_head(length, "200 1.1 None");
    to_head("Transfer-Encoding: chunked", "200 1.1 None");
    to_head("X: v", "200 1.1 None");
    to_head("Content-Length: +5", "502 content-length-invalid");
    check("O-07", "HTTP/1.1 304 Not Modified¶Content-Length: 5¶¶", "304 1.1 None");
    check("O-07", "HTTP/1.1 204 No Content¶¶", "204 1.1 None");
    check("O-07", "HTTP/1.1 204 No Content¶Content-Length: 0¶¶", "204 1.1 None");
    check("O-07", "HTTP/1.1 204 No Content¶Content-Length: 1¶¶", "204 1.1 None close");
    check("O-07", "HTTP/1.1 204 No Content¶Content-Length: 5¶¶", "204 1.1 None close");
    check("O-07", "HTTP/1.1 204 No Content¶Transfer-Encoding: chunked¶¶", "204 1.1 None close");
    check("O-07", "HTTP/1.1 205 Reset Content¶Content-Length: 0¶¶", "205 1.1 Length(0)");
}

#[test]
fn interim_answers_and_switching() {
    check("O-03", "HTTP/1.1 100 Continue¶¶", "100 1.1 None");
    check("O-03", "HTTP/1.1 100 Continue¶Date: junk¶¶", "100 1.1 None");
    check("O-03", "HTTP/1.1 103 Early Hints¶Link: </a>¶¶", "103 1.1 None");
    check("O-03", "HTTP/1.1 103 Early Hints¶Content-Length: 3¶¶", "103 1.1 None close");
    let switching = "HTTP/1.1 101 Switching Protocols¶Upgrade: websocket¶Connection: Upgrade¶¶";
    check("F13", switching, "502 switching-unasked");
    check_answer("F11", Method::Get, true, switching, "101 1.1 Tunnel close");
    check_answer("F10", Method::Get, true, "HTTP/1.1 200 OK¶Content-Length: 5¶¶", "200 1.1 Length(5)");
    check_answer("F17", Method::Connect, false, "HTTP/1.1 200 OK¶Content-Length: 5¶¶", "200 1.1 Tunnel close");
    check_answer("F15", Method::Connect, false, "HTTP/1.1 403 No¶Content-Length: 5¶¶", "403 1.1 Length(5)");
}

#[test]
fn persistence_follows_version_and_connection() {
    let fine = "200 1.1 Length(5)";
    let close = "200 1.1 Length(5) close";
    check_fields("§9.3", "Content-Length: 5¶Connection: keep-alive", fine);
    check_fields("§9.3", "Content-Length: 5¶Connection: close", close);
    check_fields("§9.3", "Content-Length: 5¶Connection: x, CLOSE", close);
    check_fields("O-10", "Connection: Set-Cookie, Content-Length¶Content-Length: 5", fine);
    check_fields("O-10", "Connection: \"junk\" x¶Content-Length: 5", fine);
    check("§9.3", "HTTP/1.0 200 OK¶Content-Length: 5¶¶", "200 1.0 Length(5) close");
    check("§9.3", "HTTP/1.0 200 OK¶Content-Length: 5¶Connection: keep-alive¶¶", "200 1.0 Length(5)");
}

#[test]
fn lookalikes_are_dropped_and_the_rest_is_kept() {
    let bytes = bytes_of("HTTP/1.1 200 OK¶Content_Length: 9¶X:¶Set-Cookie: a¶Set-Cookie: b\u{ff}¶¶");
    let mut spans = Vec::new();
    let received = read_response(&bytes, &mut spans, &HeadLimits::RESPONSE, Method::Get, false).unwrap().unwrap();
    let fields: Vec<_> = received.response.fields.iter().map(|f| (f.name_text, f.value)).collect();
    let expect: [(&[u8], &[u8]); 3] = [(b"X", b""), (b"Set-Cookie", b"a"), (b"Set-Cookie", b"b\xff")];
    assert_eq!(fields, expect, "B18 B24");
    assert_eq!(received.head_bytes, bytes.len());
}

/// What a server that stands in for Varnish takes beyond that.
#[test]
fn lenient_heads_may_end_lines_with_lf_and_lack_a_reason() {
    let lenient = HeadLimits { lenient: true, ..HeadLimits::RESPONSE };
    let read = |text: &str| {
        let (bytes, mut spans) = (bytes_of(text), Vec::new());
        read_response(&bytes, &mut spans, &lenient, Method::Get, false).map(|received| {
            received.map(|received| (received.response.reason.map(<[u8]>::to_vec), received.head_bytes))
        })
    };
    assert_eq!(read("HTTP/1.0 200 OK\nA: b\n\nrest"), Ok(Some((None, 22))));
    assert_eq!(read("HTTP/1.0 200\nA: b\n\n"), Ok(Some((None, 19))));
    assert_eq!(read("HTTP/1.0 200¶A: b¶¶"), Ok(Some((None, 22))));
    assert_eq!(read("HTTP/1.1 200 Fine¶¶"), Ok(Some((Some(b"Fine".to_vec()), 21))));
    assert_eq!(read("HTTP/1.1 200 Fine\n\n"), Ok(Some((Some(b"Fine".to_vec()), 19))));
}

#[test]
fn lenient_heads_may_say_their_length_twice_and_with_zeros_before_it() {
    let read = |text: &str, lenient: bool| {
        let (bytes, mut spans) = (bytes_of(text), Vec::new());
        let limits = HeadLimits { lenient, ..HeadLimits::RESPONSE };
        let read = read_response(&bytes, &mut spans, &limits, Method::Get, false);
        read.map(|received| received.map(|received| received.body)).map_err(|refusal| refusal.token)
    };
    let length = |length| Ok(Some(ResponseBody::Length(length)));
    let check = |lines: &str, expect: Result<Option<ResponseBody>, &str>, strict: &str| {
        let text = format!("HTTP/1.1 200 OK¶{lines}¶");
        assert_eq!(read(&text, true), expect, "{lines}");
        assert_eq!(read(&text, false), Err(strict), "{lines}");
    };
    check("Content-Length: 3¶Content-Length: 3¶", length(3), "content-length-repeated");
    check("Content-Length: 03¶Content-Length: 3¶", length(3), "content-length-invalid");
    check("Content-Length: 000¶", length(0), "content-length-invalid");
    check("Content-Length: 3¶Content-Length: 4¶", Err("content-length-repeated"), "content-length-repeated");
    check("Content-Length: 3, 3¶", Err("content-length-invalid"), "content-length-invalid");
    check("Content-Length: 0x3¶", Err("content-length-invalid"), "content-length-invalid");
    check("Content-Length: ¶", Err("content-length-invalid"), "content-length-invalid");
}
