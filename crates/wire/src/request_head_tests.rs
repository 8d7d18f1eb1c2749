//! What `read_request` makes of every request head that a pure codec can judge.
//!
//! Ids are those of the list of bad inputs (docs/security.md says where it comes from); a row that is good stands beside
//! the bad ones it resembles. Every row is read whole, with a marker request behind it, and cut at every place.

use message::TargetForm;

use super::*;
use crate::bytes_of::{bytes_of, cuts};

const MARKER: &[u8] = b"GET /marker HTTP/1.1\r\nHost: t.test\r\n\r\n";

/// `text` as one line says it: method, URI, version, body, and then what is said of the connection.
fn outcome(bytes: &[u8], scheme: Scheme) -> Option<String> {
    let mut spans = Vec::new();
    let received = match read_request(bytes, &mut spans, &HeadLimits::REQUEST, scheme) {
        Ok(received) => received?,
        Err(refusal) => return Some(format!("{} {}", refusal.status, refusal.token)),
    };
    let request = &received.request;
    let mut uri = request.scheme.text().as_bytes().to_vec();
    uri.extend_from_slice(b"://");
    request.authority.write_to(&mut uri);
    uri.push(match request.form {
        TargetForm::Origin => b' ',
        TargetForm::Absolute if request.path == b"*" => b'!',
        TargetForm::Absolute => b' ',
        TargetForm::Asterisk => b'!',
        TargetForm::Authority => b'@',
    });
    request.write_target(&mut uri);
    let method = request.method_text.escape_ascii();
    let mut text = format!("{method} {} {} {:?}", uri.escape_ascii(), request.version.number(), received.body);
    for (flag, name) in
        [(!received.persistent, " close"), (received.expects_continue, " continue"), (received.upgrade, " upgrade")]
    {
        text.push_str(if flag { name } else { "" });
    }
    Some(text)
}

fn check_bytes_over(scheme: Scheme, id: &str, bytes: &[u8], expect: &str) {
    assert_eq!(outcome(bytes, scheme).as_deref().unwrap_or("incomplete"), expect, "{id}: {}", bytes.escape_ascii());
    let early = cuts(bytes.len()).find_map(|cut| outcome(&bytes[..cut], scheme)).or_else(|| outcome(bytes, scheme));
    assert_eq!(early.as_deref().unwrap_or("incomplete"), expect, "{id} in pieces: {}", bytes.escape_ascii());
    if expect != "incomplete" {
        let mut followed = bytes.to_vec();
        followed.extend_from_slice(MARKER);
        assert_eq!(outcome(&followed, scheme).as_deref(), Some(expect), "{id} before a marker request");
    }
}

fn check(id: &str, text: &str, expect: &str) {
    check_bytes_over(Scheme::Http, id, &bytes_of(text), expect);
}

/// A GET with one more field line.
fn check_field(id: &str, line: &str, expect: &str) {
    check(id, &format!("GET /g HTTP/1.1¶Host: t.test¶{line}¶¶"), expect);
}

/// A POST with one more field line.
fn check_post(id: &str, line: &str, expect: &str) {
    check(id, &format!("POST /p HTTP/1.1¶Host: t.test¶{line}¶¶"), expect);
}

/// A GET for this target.
fn check_target(id: &str, target: &str, expect: &str) {
    check(id, &format!("GET {target} HTTP/1.1¶Host: t.test¶¶"), expect);
}

const GOOD: &str = "GET http://t.test /g 1.1 None";

#[test]
fn request_lines_have_single_spaces_and_a_token() {
    check("A01", "GET  / HTTP/1.1¶Host: t¶¶", "400 request-line-invalid");
    check("A01", "GET /  HTTP/1.1¶Host: t¶¶", "400 version-invalid");
    check("A01", "GET / HTTP/1.1 ¶Host: t¶¶", "400 line-end-invalid");
    check("A01", " GET / HTTP/1.1¶Host: t¶¶", "400 request-line-invalid");
    check("A02", "GET\t/\tHTTP/1.1¶Host: t¶¶", "400 request-line-invalid");
    check("A02", "GET /\tHTTP/1.1¶Host: t¶¶", "400 request-line-invalid");
    check("A03", "GET /a b HTTP/1.1¶Host: t¶¶", "400 version-invalid");
    check("A04", "GET HTTP/1.1¶Host: t¶¶", "400 request-line-invalid");
    check("A15", "get / HTTP/1.1¶Host: t¶¶", "get http://t / 1.1 None");
    check("A16", "G=\":<>(e),[T];?\" /x HTTP/1.1¶Host: t¶¶", "400 request-line-invalid");
    check("A17", &format!("{} / HTTP/1.1¶Host: t¶¶", "A".repeat(65_536)), "501 method-too-long");
    check(
        "A17",
        &format!("{} / HTTP/1.1¶Host: t¶¶", "A".repeat(32)),
        &format!("{} http://t / 1.1 None", "A".repeat(32)),
    );
    check("A18", "XYZZY / HTTP/1.1¶Host: t¶¶", "XYZZY http://t / 1.1 None");
    check("PURGE", "PURGE /x HTTP/1.1¶Host: t¶¶", "PURGE http://t /x 1.1 None");
}

#[test]
fn lines_end_with_crlf_alone() {
    check("A05", "GET / HTTP/1.1\rHost: t¶¶", "400 line-end-invalid");
    check("A06", "GET / HTTP/1.1\nHost: t\n\n", "400 line-end-invalid");
    check("A06", "GET / HTTP/1.1\nHost: t¶¶", "400 line-end-invalid");
    check("A06", "GET / HTTP/1.1¶Host: t\n¶", "400 line-end-invalid");
    check("A06", "GET / HTTP/1.1¶Host: t \t\n¶", "400 line-end-invalid");
    check("A06", "GET / HTTP/1.1¶Host: t¶X:\n¶", "400 line-end-invalid");
    check("A06", "GET / HTTP/1.1¶Host: t¶X: \n¶", "400 line-end-invalid");
    check("A06", "GET / HTTP/1.1¶Host: t¶\n", "400 line-end-invalid");
    check("A07", "GET /\nHTTP/1.1¶¶", "400 request-line-invalid");
    check("A08", "GET /¶", "400 request-line-invalid");
    check("trailing blanks", "GET / HTTP/1.1¶Host: t \t ¶¶", "GET http://t / 1.1 None");
    check("empty value", "GET / HTTP/1.1¶Host: t¶X:¶Y: ¶¶", "GET http://t / 1.1 None");
}

#[test]
fn versions_are_one_digit_dot_one_digit() {
    for version in [
        "HTTP/1",
        "HTTP/01.01",
        "HTTP/ 1.1",
        "http/1.1",
        "HTTP/1.10",
        "HTTP/1.1.1",
        "HTTP/4294967297.1",
        "HTTP/\r\r1.1",
    ] {
        let bytes = bytes_of(&format!("GET / {version}¶Host: t¶¶"));
        let got = outcome(&bytes, Scheme::Http).expect("refused");
        assert!(["400 version-invalid", "400 line-end-invalid"].contains(&got.as_str()), "A09 {version}: {got}");
        check("A09", &format!("GET / {version}¶Host: t¶¶"), &got);
    }
    check("A10", "GET / HTTP/2.0¶Host: t¶¶", "505 version-unsupported");
    check("A10", "GET / HTTP/2.0¶", "505 version-unsupported");
    check("A10", "GET / HTTP/9.9¶Host: t¶¶", "505 version-unsupported");
    check("A10", "GET / HTTP/0.9¶Host: t¶¶", "505 version-unsupported");
    check("A11", "GET / HTTP/1.2¶Host: t¶¶", "GET http://t / 1.1 None");
    check("A11", "¶POST /a?b HTTP/1.9¶Host: t¶Content-Length: 5¶¶", "POST http://t /a?b 1.1 Length(5)");
    check("A11", "GET / HTTP/1.2\nHost: t¶¶", "400 version-invalid");
    check("A11", "GET / HTTP/1.2¶Host: t\n\n", "400 line-end-invalid");
    check("A11", "GET / HTTP/1.2¶¶", "400 host-missing");
    check("A12", "PRI * HTTP/2.0¶¶SM¶¶", "505 version-unsupported");
}

#[test]
fn one_empty_line_is_skipped_and_no_more() {
    check("A13", "¶GET /g HTTP/1.1¶Host: t.test¶¶", GOOD);
    check("A13", "¶¶GET /g HTTP/1.1¶Host: t.test¶¶", "400 empty-lines");
    check("A13", &"¶".repeat(100_000), "400 empty-lines");
    check("A13", "\nGET / HTTP/1.1¶Host: t¶¶", "400 empty-lines");
    check("A13", "¶\nGET / HTTP/1.1¶Host: t¶¶", "400 empty-lines");
    check("A13", "\rGET / HTTP/1.1¶Host: t¶¶", "400 line-end-invalid");
    check("A14", "   ¶¶", "400 request-line-invalid");
    check("A34", "GET / HTTP/1.1¶Host: t¶", "incomplete");
    check("A35", "", "incomplete");
    check("A35", "¶", "incomplete");
}

#[test]
fn what_is_not_http_is_refused_at_once() {
    check("A33", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}", "400 request-line-invalid");
    check("A33", "\u{8f}\u{1}\u{ff}GET / HTTP/1.1¶¶", "400 request-line-invalid");
    check("A33", "\0", "400 request-line-invalid");
}

#[test]
fn targets_are_bounded() {
    let long = "x".repeat(7_999);
    check_target("A19", &format!("/{long}"), &format!("GET http://t.test /{long} 1.1 None"));
    let longest = "x".repeat((16 << 10) - 1);
    check_target("A20", &format!("/{longest}"), &format!("GET http://t.test /{longest} 1.1 None"));
    for follows in ["", " HTTP/1"] {
        check("A20", &format!("GET /{longest}{follows}"), "incomplete");
    }
    check_target("A20", &format!("/{}", "x".repeat(99_999)), "414 target-too-long");
    check_target("A20", &format!("/{}", "x".repeat(16_384)), "414 target-too-long");
    let bytes = bytes_of(&format!("GET /{}", "x".repeat(16_384)));
    assert_eq!(outcome(&bytes, Scheme::Http).as_deref(), Some("414 target-too-long"), "without waiting for its end");
}

#[test]
fn targets_hold_only_what_a_uri_may() {
    check_target("A21", "/p#frag", "400 target-fragment");
    check_target("A21", "/p?q#", "400 target-fragment");
    check_target("A21", "http://t.test#frag", "400 target-fragment");
    check_target("delimiters", "http://t.test<", "400 target-invalid");
    check_target("unreserved", "/~user?~", "GET http://t.test /~user?~ 1.1 None");
    for target in ["admin", "admin/a/b", "t.test:80", "?x", "hello-world", "*", "*/x", "http:/t.test/"] {
        check_target("A22", target, "400 target-form");
    }
    check("A23", "OPTIONS */x HTTP/1.1¶Host: t¶¶", "400 target-form");
    check("A24", "OPTIONS * HTTP/1.1¶Host: t¶¶", "OPTIONS http://t!* 1.1 None");
    for target in ["/\0x", "/\u{1}", "/\u{1b}", "/\u{7f}", "/\u{c0}\u{af}"] {
        check_target("A25", target, "400 request-line-invalid");
    }
    check_target("A26", "/caf\u{c3}\u{a9}", "400 target-invalid");
    check_target("A27", "/a\\b", "400 target-invalid");
    check_target("A27", "/a?b\\c", "GET http://t.test /a?b\\\\c 1.1 None");
    for target in ["/\"", "/<", "/a?>"] {
        check_target("delimiters", target, "400 target-invalid");
    }
    check_target("as browsers send it", "/a?f=A|B&{x}^`[]'", "GET http://t.test /a?f=A|B&{x}^`[]\\' 1.1 None");
    check_target("J04", "/x?", "GET http://t.test /x? 1.1 None");
    check_target("J04", "/x??a=1&%61=%zz", "GET http://t.test /x??a=1&%61=%zz 1.1 None");
    check_target("J05", "/a//b/../%2e%2E/%2fA", "GET http://t.test /a//b/../%2e%2E/%2fA 1.1 None");
    check_target("A32", "//t.test/x", "GET http://t.test //t.test/x 1.1 None");
}

#[test]
fn who_is_asked_as_a_proxy_can_tell() {
    let form = |target: &str| {
        let bytes = format!("OPTIONS {target} HTTP/1.1\r\nHost: t\r\n\r\n");
        let mut spans = Vec::new();
        let received = read_request(bytes.as_bytes(), &mut spans, &HeadLimits::REQUEST, Scheme::Http).unwrap().unwrap();
        (received.request.form, received.request.form.at_origin(received.request.path))
    };
    assert_eq!(form("/a"), (TargetForm::Origin, TargetForm::Origin));
    assert_eq!(form("http://o.test/a"), (TargetForm::Absolute, TargetForm::Origin));
    assert_eq!(form("http://o.test"), (TargetForm::Absolute, TargetForm::Asterisk));
    assert_eq!(form("*"), (TargetForm::Asterisk, TargetForm::Asterisk));
}

#[test]
fn absolute_form_is_resolved() {
    check_target("A28", "http://other.test/", "GET http://other.test / 1.1 None");
    check_target("A28", "HTTP://Other.Test.:80/a?b", "GET http://other.test /a?b 1.1 None");
    check_target("A28", "http://other.test:81/a", "GET http://other.test:81 /a 1.1 None");
    check_target("A29", "http://t.test", "GET http://t.test / 1.1 None");
    check_target("A29", "http://t.test?x", "GET http://t.test /?x 1.1 None");
    check_target("A30", "http://u:p@t.test/", "400 target-userinfo");
    check_target("A30", "http://t.test/@x", "GET http://t.test /@x 1.1 None");
    for target in ["http:///x", "http://", "http://:80/", "http://t:99999/", "http://a,b/", "http://[::1/"] {
        check_target("A31", target, "400 target-authority-invalid");
    }
    check_target("A27", "http://t.test\\@evil/", "400 target-userinfo");
    check_target("A27", "http://t.test\\evil/", "400 target-authority-invalid");
    check_target("A31", "https://:443/", "400 target-scheme-mismatch");
    check_target("L07", "https://t.test/", "400 target-scheme-mismatch");
    for target in ["ftp://t/", "file:///etc/passwd", "gopher://t", "cache_object://t/info", "://t/", "ws://t/"] {
        check_target("L06", target, "400 target-scheme-unsupported");
    }
    for target in ["urn:x", "javascript:alert(1)", "mailto:a@b"] {
        check_target("L06", target, "400 target-form");
    }
    check("§3.2.4", "OPTIONS http://t.test:8001 HTTP/1.1¶Host: t¶¶", "OPTIONS http://t.test:8001!* 1.1 None");
    check("§3.2.4", "OPTIONS http://t.test/ HTTP/1.1¶Host: t¶¶", "OPTIONS http://t.test / 1.1 None");
    check("A28 1.0", "GET http://o.test/x HTTP/1.0¶¶", "GET http://o.test /x 1.0 None close");
    check("A28 no Host", "GET http://o.test/x HTTP/1.1¶¶", "400 host-missing");
    check("A28 bad Host", "GET http://o.test/x HTTP/1.1¶Host: a b¶¶", "400 host-invalid");
    let https = |target: &str, expect: &str| {
        let bytes = bytes_of(&format!("GET {target} HTTP/1.1¶Host: t:443¶¶"));
        check_bytes_over(Scheme::Https, "https", &bytes, expect);
    };
    https("/x", "GET https://t /x 1.1 None");
    https("https://o.test:80/x", "GET https://o.test:80 /x 1.1 None");
    https("http://o.test/x", "400 target-scheme-mismatch");
}

#[test]
fn connect_names_host_and_port() {
    let connect = |id: &str, target: &str, expect: &str| {
        check(id, &format!("CONNECT {target} HTTP/1.1¶Host: t.test¶¶"), expect);
    };
    connect("F14", "T.test:443", "CONNECT http://t.test:443@ 1.1 None");
    connect("F14", "t.test:80", "CONNECT http://t.test:80@ 1.1 None");
    connect("F14", "[::1]:80", "CONNECT http://[::1]:80@ 1.1 None");
    for target in ["t.test", "t.test:", "t.test:0", "t.test:65536", "t:443:80", ":443", "[::1]", "http://t:443/", "*"] {
        connect("L02", target, "400 target-authority-invalid");
    }
    connect("L02", "u@t:443", "400 target-userinfo");
    connect("L02", "/x", "400 target-form");
    check("F16", "CONNECT t:443 HTTP/1.1¶Host: t¶Content-Length: 5¶¶", "400 connect-with-body");
    check("F16", "CONNECT t:443 HTTP/1.1¶Host: t¶Transfer-Encoding: chunked¶¶", "400 connect-with-body");
}

#[test]
fn there_is_exactly_one_valid_host() {
    check("B01", "GET / HTTP/1.1¶¶", "400 host-missing");
    check("B01", "GET / HTTP/1.1¶X: Host: t¶¶", "400 host-missing");
    check_field("B02", "Host: other.test", "400 host-repeated");
    check_field("B03", "hOST: t.test", "400 host-repeated");
    let host = |id: &str, value: &str, expect: &str| check(id, &format!("GET /g HTTP/1.1¶Host:{value}¶¶"), expect);
    for value in [" a, b", " u@t", " t/x", " t?x", " t#x", " a b", " t\u{e9}"] {
        host("B04", value, "400 host-invalid");
    }
    host("B04", " t\0.evil", "400 field-value-invalid");
    for value in [" t:8080:9090:1234", " t:99999", " t:abc", " [::1", " t:-1"] {
        host("B05", value, "400 host-invalid");
    }
    host("B06", "", "400 host-invalid");
    host("B06", " ", "400 host-invalid");
    host("B06", " :80", "400 host-invalid");
    host("normal form", "T.TEST.:80\t ", GOOD);
    host("normal form", " t.test:8080", "GET http://t.test:8080 /g 1.1 None");
    check("B07", "GET / HTTP/1.0¶¶", "GET http:// / 1.0 None close");
    check("B07", "GET / HTTP/1.0¶Host: T¶¶", "GET http://t / 1.0 None close");
    check("B07", "GET / HTTP/1.0¶Host:¶¶", "400 host-invalid");
}

#[test]
fn field_lines_obey_the_grammar() {
    for line in ["X : v", "X\t: v", ": v", ":", "NoColon", "Content-Length 10", "Transfer-Encoding : chunked"] {
        check_field("B08 B12 B13", line, "400 field-name-invalid");
    }
    for line in
        ["X: a¶ b", "X: a¶\tb", "Transfer-Encoding:¶ chunked", "Content-Length:¶ 5", "Transfer-¶Encoding: chunked"]
    {
        check_field("B09 B10 D18", line, "400 field-name-invalid");
    }
    check("B11", "GET / HTTP/1.1¶ Host: t¶¶", "400 field-name-invalid");
    check("B11", "GET / HTTP/1.1¶\tContent-Length: 1¶Host: t¶¶", "400 field-name-invalid");
    for line in ["Bad[Name: v", "X\u{ef}Y: v", "X\u{85}: v", "X\0Y: v", "\"X\": v", "Transfer\rEncoding: chunked"] {
        check_field("B14 D19", line, "400 field-name-invalid");
    }
    for line in
        ["X: a\0b", "X: a\rb", "X: a\u{7}b", "X: a\u{b}b", "X: a\u{c}b", "X: a\u{1b}b", "X: a\u{7f}b", "X:\u{b}"]
    {
        check_field("B15 B17", line, "400 field-value-invalid");
    }
    check_field("B16", "X: a\nEvil: 1", "400 line-end-invalid");
    check_field("B16", "X: a\n", "400 line-end-invalid");
}

#[test]
fn values_keep_their_bytes() {
    let bytes = bytes_of("GET / HTTP/1.1¶Host: t¶X:\t \u{a0}v\u{85}\t ¶Y: \u{ff}¶Z:¶W: a  b,\"c¶¶");
    let mut spans = Vec::new();
    let received = read_request(&bytes, &mut spans, &HeadLimits::REQUEST, Scheme::Http).unwrap().unwrap();
    let fields: Vec<_> = received.request.fields.iter().map(|f| (f.name_text, f.value)).collect();
    let expect: [(&[u8], &[u8]); 5] =
        [(b"Host", b"t"), (b"X", b"\xa0v\x85"), (b"Y", b"\xff"), (b"Z", b""), (b"W", b"a  b,\"c")];
    assert_eq!(fields, expect, "B18");
    assert_eq!(received.head_bytes, bytes.len());
}

#[test]
fn heads_are_bounded() {
    let many = |count: usize| format!("GET /g HTTP/1.1¶Host: t.test¶{}¶", "X: v¶".repeat(count - 1));
    check("B19", &many(100), GOOD);
    for count in [101, 1_000, 100_000] {
        check("B19", &many(count), "431 request-fields-too-many");
    }
    check_field("B20", &format!("X: {}", "v".repeat(8_191)), GOOD);
    check_field("B20", &format!("X: {}", "v".repeat(8_192)), "431 request-field-too-large");
    check_field("B20", &format!("X: {}", "v".repeat(100_000)), "431 request-head-too-large");
    check_field("B20", &format!("{}: v", "X".repeat(100_000)), "431 request-head-too-large");
    check_field("B20", &format!("X: {}¶", "v".repeat(8_000)).repeat(100), "431 request-head-too-large");
    let exactly = |bytes: usize| {
        let start = "GET /g HTTP/1.1¶Host: t.test¶A: 1¶";
        let mut text = start.to_owned();
        let mut missing = bytes - bytes_of(start).len() - 2;
        while missing > 0 {
            let line = if missing > 8_000 { 4_000 } else { missing };
            text.push_str(&format!("X: {}¶", "v".repeat(line - 5)));
            missing -= line;
        }
        text + "¶"
    };
    check("32 KiB", &exactly(32 << 10), GOOD);
    check("32 KiB + 1", &exactly((32 << 10) + 1), "431 request-head-too-large");
    for version in ["1.1", "1.2"] {
        check("B19", &many(101).replace("1.1", version), "431 request-fields-too-many");
    }
}

#[test]
fn a_full_head_without_an_end_is_refused_at_once() {
    for text in ["GET / HTTP/1.1¶A", "GET / HTTP/1.2¶A", "GET / HTTP/1.2"] {
        let bytes = bytes_of(text);
        let read = |head_bytes_max| {
            let limits = HeadLimits { head_bytes_max, ..HeadLimits::REQUEST };
            read_request(&bytes, &mut Vec::new(), &limits, Scheme::Http).map(|received| received.is_some())
        };
        assert_eq!(read(bytes.len()), Err(refusals::REQUEST_HEAD_TOO_LARGE), "{text}");
        assert_eq!(read(bytes.len() + 1), Ok(false), "{text}");
    }
}

#[test]
fn connection_may_not_name_what_frames_the_message() {
    for option in ["Content-Length", "Host", "transfer-encoding", "close, HOST", "x,,content-length"] {
        check_field("B21", &format!("Connection: {option}"), "400 connection-names-framing");
    }
    check_field("B22", "Connection: X-Forwarded-For, X-Real-IP, Via, Authorization", GOOD);
    check_field("B23", &format!("Connection: {}", "a,".repeat(50_000)), "431 request-head-too-large");
    check_field("B23", &format!("Connection: {}", "a,".repeat(65)), "431 connection-options-too-many");
    check_field("B23", &format!("Connection: {}", "a,".repeat(64)), GOOD);
    check_field("token", "Connection: \"close\"", "400 connection-invalid");
    check_field("token", "Connection: a b", "400 connection-invalid");
    check_field("empty", "Connection:", GOOD);
}

#[test]
fn persistence_follows_version_and_connection() {
    let close = "GET http://t.test /g 1.1 None close";
    check_field("F03", "Connection: close", close);
    check_field("F03", "Connection: keep-alive, Close", close);
    check_field("F03", "Connection: keep-alive¶Connection: close", close);
    check_field("F03", "Connection: Keep-Alive", GOOD);
    check_field("F04", "Proxy-Connection: close", GOOD);
    let old = |line: &str, expect: &str| check("F04", &format!("GET / HTTP/1.0¶Host: t¶{line}¶¶"), expect);
    old("Connection: Keep-Alive", "GET http://t / 1.0 None");
    old("Connection: keep-alive, x", "GET http://t / 1.0 None");
    old("Connection: keep-alive, close", "GET http://t / 1.0 None close");
    old("Proxy-Connection: keep-alive", "GET http://t / 1.0 None close");
}

#[test]
fn lookalikes_are_dropped_and_never_frame() {
    let left = |line: &str| {
        let bytes = bytes_of(&format!("GET /g HTTP/1.1¶Host: t.test¶{line}¶¶"));
        assert_eq!(outcome(&bytes, Scheme::Http).as_deref(), Some(GOOD), "{line}");
        let mut spans = Vec::new();
        let received = read_request(&bytes, &mut spans, &HeadLimits::REQUEST, Scheme::Http).unwrap().unwrap();
        received.request.fields.count() - 1
    };
    for line in ["Content_Length: 5", "Transfer_Encoding: chunked", "transfer_ENCODING: x"] {
        assert_eq!(left(line), 0, "B24 {line}");
    }
    for line in ["X_Forwarded_For: 1.2.3.4", "X_Forwarded-Proto: https", "X_Real_IP: 1.2.3.4"] {
        assert_eq!(left(line), 0, "B24, as CGI reads it: {line}");
    }
    for line in ["X-Forwarded_Host: a", "X.Forwarded.Host: a", "X~Forwarded~For: a", "Content.Length: 5", "Host_: a"] {
        assert_eq!(left(line), 0, "B24, whatever stands between the letters: {line}");
    }
    for line in ["X_Own: 1", "Content_Lengths: 5", "_: 1", "a_b: 1"] {
        assert_eq!(left(line), 1, "{line}");
    }
}

#[test]
fn it_is_said_whether_names_are_odd() {
    let has_odd = |lines: &str| {
        let bytes = bytes_of(&format!("GET / HTTP/1.1¶Host: t.test¶{lines}¶"));
        let mut spans = Vec::new();
        read_request(&bytes, &mut spans, &HeadLimits::REQUEST, Scheme::Http).unwrap().unwrap().has_odd_names
    };
    assert!(!has_odd("") && !has_odd("Accept: */*¶X-Own: 1¶"));
    assert!(has_odd("X_Own: 1¶") && has_odd("x.own: 1¶Accept: */*¶") && has_odd("X-Own-: 1¶X-Other: 1¶"));
}

#[test]
fn singletons_stand_once() {
    for name in ["Authorization", "Content-Type", "Range", "If-Range", "If-Modified-Since", "Max-Forwards"] {
        check_field("B30", &format!("{name}: a¶{name}: a"), "400 field-repeated");
        check_field("B30", &format!("{name}: a"), GOOD);
    }
    check_field("B30", "Authorization: a¶Range: a¶Authorization: a", "400 field-repeated");
    check_field("lists", "Accept: a¶Accept: b¶Cookie: a¶Cookie: b¶Authorization: a¶Content-Type: a", GOOD);
}

#[test]
fn junk_in_other_fields_is_not_the_codecs_business() {
    check_field("B25", &format!("X-Forwarded-For: ,1{}", ",1".repeat(2_000)), GOOD);
    check_field("B26", "If-Modified-Since: S000 00 0000000000: 00000 c¶Date: x¶If-Range: ", GOOD);
    check_field("B28", "Accept-Encoding: ;;q=¶Accept-Encoding: gzip;q=9", GOOD);
    check_field("B29", "Cache-Control: max-age=99999999999999999999, max-age=\"1, max-age=-1", GOOD);
    check_field("B31", "Upgrade-Insecure-Requests: 1¶Via: 1.1 ourselves", GOOD);
    check_field("D21", "TE: chunked¶TE: trailers, deflate;q=0.5", GOOD);
}

#[test]
fn expectations() {
    let waits = "POST http://t.test /p 1.1 Length(5) continue";
    check_post("F05", "Expect: 100-continue¶Content-Length: 5", waits);
    check_post("F09", "Expect: 100-Continue¶Content-Length: 5", waits);
    check_post("F08", "Expect: 100-continue¶Expect: 100-continue¶Content-Length: 5", waits);
    check_post("F05", "Expect: 100-continue", "POST http://t.test /p 1.1 None");
    check_post("F05", "Expect: 100-continue¶Content-Length: 0", "POST http://t.test /p 1.1 Length(0)");
    for value in ["200-ok", "y 100-continue", "100-continue, x", "", "\"100-continue\"", "100-continue;a=b"] {
        check_post("B27 F09", &format!("Expect: {value}¶Content-Length: 5"), "417 expectation-unknown");
    }
    check(
        "F08",
        "POST / HTTP/1.0¶Host: t¶Expect: 100-continue¶Content-Length: 5¶¶",
        "POST http://t / 1.0 Length(5) close",
    );
}

#[test]
fn upgrades() {
    let asks = "GET http://t.test /g 1.1 None upgrade";
    check_field("F10", "Upgrade: websocket¶Connection: Upgrade", asks);
    check_field("F10", "Connection: upgrade, keep-alive¶Upgrade: websocket", asks);
    check_field("F10", "Connection: keep-alive, upgrade¶Upgrade: websocket, x/1", asks);
    for lines in [
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Connection: Upgrade¶Upgrade:",
        "Connection: Upgrade, HTTP2-Settings¶Upgrade: h2c¶HTTP2-Settings: AAMAAABkAAQAAP__",
        "Connection: Upgrade¶Upgrade: websocket, H2C",
        "Connection: Upgrade¶Upgrade: websocket¶Upgrade: h2c",
        "Connection: Upgrade¶Upgrade: h2c¶Upgrade: websocket",
    ] {
        check_field("F12", lines, GOOD);
    }
    check_post(
        "F12",
        "Upgrade: websocket¶Connection: Upgrade¶Content-Length: 3",
        "POST http://t.test /p 1.1 Length(3)",
    );
    check(
        "F12",
        "GET / HTTP/1.0¶Host: t¶Upgrade: websocket¶Connection: Upgrade, keep-alive¶¶",
        "GET http://t / 1.0 None",
    );
}

#[test]
fn a_head_sent_byte_by_byte_is_parsed_once_a_line() {
    let bytes = bytes_of(&format!("GET /g HTTP/1.1¶Host: t.test¶{}¶", "X-Field: some value¶".repeat(90)));
    let (mut seen, mut parses) = (0, 0);
    for end in 1..=bytes.len() {
        if may_end_now(&bytes[..end], seen, &HeadLimits::REQUEST) {
            parses += 1;
            seen = end;
            let found = outcome(&bytes[..end], Scheme::Http);
            assert_eq!(found.is_some(), end == bytes.len());
        }
    }
    assert!(parses < 110, "{parses}");
    let may_end = |text: &str, seen, head_bytes_max| {
        may_end_now(text.as_bytes(), seen, &HeadLimits { head_bytes_max, ..HeadLimits::REQUEST })
    };
    assert!(may_end("GET /abcde", 5, 100), "twice as much is there");
    assert!(!may_end("GET /abcd", 5, 100));
    assert!(may_end("GET /abcd", 8, 9), "no more can come");
}

#[path = "request_framing_tests.rs"]
mod framing;

/// What a server that stands in for Varnish takes beyond that, and what not even it takes.
#[test]
fn lenient_heads_may_end_lines_with_lf_and_lack_a_host() {
    let lenient = HeadLimits { lenient: true, ..HeadLimits::REQUEST };
    let read = |text: &str| {
        let (bytes, mut spans) = (bytes_of(text), Vec::new());
        read_request(&bytes, &mut spans, &lenient, Scheme::Http)
            .map(|received| received.map(|received| (received.head_bytes, received.request.fields.iter().count())))
    };
    assert_eq!(read("GET / HTTP/1.1\nHost: t\nA: b\n\nrest"), Ok(Some((29, 2))));
    assert_eq!(read("¶\n \t¶GET / HTTP/1.1¶Host: t¶¶"), Ok(Some((34, 1))));
    assert_eq!(read("GET / HTTP/1.1¶¶"), Ok(Some((18, 0))));
    assert_eq!(read("¶¶"), Ok(None));
    assert_eq!(leading_blanks(b"\r\n\n \tG"), 5);
    let refused = |text: &str, refusal| assert_eq!(read(text), Err(refusal), "{text}");
    let folded = b"GET / HTTP/1.1\r\nA: b\r\n c\n \r\n\r\n x";
    assert_eq!(unfolded(folded).unwrap(), b"GET / HTTP/1.1\r\nA: b   c  \r\n\r\n x");
    assert_eq!(unfolded(b"GET / HTTP/1.1\r\nA: b\r\n\r\n x"), None);
    assert_eq!(unfolded(b"GET / HTTP/1.1\r\n A: b\r\n\r\n"), None, "the first line is no field's");
    assert_eq!(unfolded(b"GET / HTTP/1.1\nA: b\n\n x\n y\n\n"), None, "behind the head");
    assert_eq!(read("GET / HTTP/1.1¶Host: t¶Connection: close¶¶"), Ok(Some((46, 2))));
    refused("GET / HTTP/1.1¶Host: t¶Connection: Age¶¶", refusals::CONNECTION_NAMES_FRAMING);
    refused("GET / HTTP/1.1¶Host: t¶Connection: close, Age¶¶", refusals::CONNECTION_NAMES_FRAMING);
    refused("GET / HTTP/1.2¶Host: t¶¶", refusals::VERSION_INVALID);
    refused("GET / HTTP/2.0¶Host: t¶¶", refusals::VERSION_INVALID);
    refused("POST / HTTP/1.0¶¶", refusals::CONTENT_LENGTH_MISSING);
    refused("GET / HTTP/1.1\nHost: t\nHost: t\n\n", refusals::HOST_REPEATED);
    refused("GET / HTTP/1.1\nHost: t\nA: b\rc\n\n", refusals::FIELD_VALUE_INVALID);
}
