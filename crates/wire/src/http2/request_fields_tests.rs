//! Requests in header blocks: what reads as in HTTP/1, and each row of the bad inputs of group G that concerns heads.

use super::*;
use crate::bytes_of::bytes_of;

const CONTEXT: BlockContext<'_> = BlockContext {
    limits: &HeadLimits::REQUEST,
    scheme: Scheme::Https,
    believes_scheme: false,
    ends_stream: true,
    extended_connect: false,
};

/// Lines as a block of literals, each name and value as it stands.
fn block_of(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in lines {
        block.push(0);
        for text in [bytes_of(name), bytes_of(value)] {
            assert!(text.len() < 127);
            block.push(text.len() as u8);
            block.extend_from_slice(&text);
        }
    }
    block
}

fn with<T>(block: &[u8], context: BlockContext<'_>, look: impl Fn(Http2Request<'_>) -> T) -> Result<T, &'static str> {
    let mut arena = HeadArena::default();
    let read = read_request_block(&mut BlockDecoder::new(), block, context, &mut arena).expect("the block is valid");
    read.map(look).map_err(|refusal| refusal.token)
}

fn lines_of(fields: FieldsView<'_>) -> String {
    let line = |field: message::Field<'_>| {
        format!("{}: {}\n", String::from_utf8_lossy(field.name_text), String::from_utf8_lossy(field.value))
    };
    fields.iter().map(line).collect()
}

/// Of a GET with these lines in place of its own, and these behind them.
fn check(replaced: &[(&str, &str)], more: &[(&str, &str)], expect: Result<(), &str>) {
    let pseudo = [(":method", "GET"), (":scheme", "https"), (":path", "/a?b"), (":authority", "t.test")];
    let mut lines: Vec<(&str, &str)> = Vec::new();
    for (name, value) in pseudo {
        match replaced.iter().find(|other| other.0 == name) {
            Some((_, "<none>")) => {}
            Some(other) => lines.push(*other),
            None => lines.push((name, value)),
        }
    }
    lines.extend(more);
    assert_eq!(with(&block_of(&lines), CONTEXT, |_| ()), expect, "{replaced:?} {more:?}");
}

#[test]
fn it_is_said_whether_names_are_odd() {
    let has_odd = |name: &str| {
        let block =
            block_of(&[(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "t"), (name, "1")]);
        with(&block, CONTEXT, |head| head.received.has_odd_names)
    };
    assert_eq!(
        [has_odd("x-own"), has_odd("accept"), has_odd("x_own"), has_odd("own-")],
        [false, false, true, true].map(Ok)
    );
}

#[test]
fn a_request_reads_as_in_http_1() {
    let block = block_of(&[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/a?b"),
        (":authority", "T.test:443"),
        ("accept", "*/*"),
        ("cookie", "a=1"),
        ("x-own", "1"),
        ("cookie", "b=2"),
        ("te", "trailers"),
        ("x_forwarded_for", "::1"),
    ]);
    let seen = with(&block, CONTEXT, |head| {
        let request = &head.received.request;
        assert_eq!((request.method, request.form, request.scheme), (Method::Get, TargetForm::Origin, Scheme::Https));
        assert_eq!((request.path, request.query), (&b"/a"[..], Some(&b"b"[..])));
        assert_eq!((request.authority.host.as_ref(), request.authority.port), (&b"t.test"[..], None));
        assert_eq!((head.received.given_port, head.received.body), (Some(443), RequestBody::None));
        lines_of(request.fields)
    });
    let lines = "host: T.test:443\naccept: */*\ncookie: a=1; b=2\nx-own: 1\nte: trailers\n";
    assert_eq!(seen.as_deref(), Ok(lines));
}

/// bad-inputs G16.
#[test]
fn pseudo_fields_are_there_once_and_first() {
    for name in [":method", ":scheme", ":path"] {
        check(&[(name, "<none>")], &[], Err("pseudo-field-missing"));
    }
    check(&[(":authority", "<none>")], &[], Err("host-missing"));
    check(&[(":authority", "<none>")], &[("host", "t.test")], Ok(()));
    for (name, value) in [(":method", "GET"), (":scheme", "https"), (":path", "/a"), (":authority", "t.test")] {
        check(&[], &[(name, value)], Err("pseudo-field-repeated"));
        check(&[(name, "<none>")], &[("a", "b"), (name, value)], Err("pseudo-field-late"));
    }
    for name in [":status", ":x", ":", ":Method", ":method "] {
        check(&[], &[(name, "200")], Err("pseudo-field-unknown"));
    }
    check(&[], &[(":protocol", "websocket")], Err("extended-connect-invalid"));
}

#[test]
fn where_heads_are_read_leniently_the_place_of_pseudo_fields_is_free_and_nobody_need_be_named() {
    const LENIENT: BlockContext<'_> =
        BlockContext { limits: &HeadLimits { lenient: true, ..HeadLimits::REQUEST }, ..CONTEXT };
    let lenient =
        |fields: &[(&str, &str)]| with(&block_of(fields), LENIENT, |head| head.received.request.authority.host.len());
    let late = [("x-own", "1"), (":path", "/"), (":method", "GET"), (":scheme", "https")];
    assert_eq!(lenient(&late), Ok(0));
    assert_eq!(lenient(&[&late[..], &[(":authority", "t.test")]].concat()), Ok(6));
    assert_eq!(lenient(&[&late[..], &[(":path", "/b")]].concat()), Err("pseudo-field-repeated"));
    assert_eq!(
        lenient(&[&late[..], &[(":authority", "t.test"), ("host", "o.test")]].concat()),
        Err("host-differs-from-authority")
    );
}

/// bad-inputs G17 to G19.
#[test]
fn who_ended_the_clients_tls_may_say_so() {
    let said = |scheme: &str, believes_scheme: bool| {
        let lines = [(":method", "GET"), (":scheme", scheme), (":path", "/"), (":authority", "t.test:80")];
        let context = BlockContext { scheme: Scheme::Http, believes_scheme, ..CONTEXT };
        with(&block_of(&lines), context, |head| (head.received.request.scheme, head.received.request.authority.port))
    };
    assert_eq!(said("http", true), Ok((Scheme::Http, None)));
    assert_eq!(said("https", true), Ok((Scheme::Https, Some(80))), "80 is not the port of https");
    assert_eq!(said("https", false), Err("target-scheme-mismatch"));
    assert_eq!(said("ftp", true), Err("target-scheme-unsupported"));
}

#[test]
fn targets_methods_and_schemes_are_checked() {
    for (path, expect) in [
        ("/", Ok(())),
        ("", Err("target-form")),
        (" /", Err("target-form")),
        ("hello-world", Err("target-form")),
        ("https://t.test/", Err("target-form")),
        ("*", Err("target-form")),
        ("/a#b", Err("target-fragment")),
        ("/a b", Err("target-invalid")),
        ("/a HTTP/1.1", Err("target-invalid")),
        ("/\u{e9}", Err("target-invalid")),
        ("/a\t", Err("target-invalid")),
        ("/a\n", Err("field-value-invalid")),
        ("/a\0", Err("field-value-invalid")),
    ] {
        check(&[(":path", path)], &[], expect);
    }
    check(&[(":method", "OPTIONS"), (":path", "*")], &[], Ok(()));
    for scheme in ["", " ", "https://localhost/?", "ftp", "https "] {
        check(&[(":scheme", scheme)], &[], Err("target-scheme-unsupported"));
    }
    check(&[(":scheme", "http")], &[], Err("target-scheme-mismatch"));
    check(&[(":scheme", "HTTPS")], &[], Ok(()));
    for method in ["", " ", "GET /", "G\u{e9}T", "GET\t"] {
        check(&[(":method", method)], &[], Err("method-invalid"));
    }
    check(&[(":method", "GET / HTTP/1.1¶X: y")], &[], Err("field-value-invalid"));
    check(&[(":method", "A-METHOD-LONGER-THAN-ANY-THAT-IS-KNOWN")], &[], Err("method-too-long"));
}

/// bad-inputs G20.
#[test]
fn one_authority_is_named() {
    check(&[], &[("host", "T.test:443")], Ok(()));
    check(&[], &[("host", "t.test:80")], Err("host-differs-from-authority"));
    check(&[], &[("host", "other.test")], Err("host-differs-from-authority"));
    check(&[], &[("host", "t.test"), ("host", "t.test")], Err("host-repeated"));
    check(&[], &[("host", "")], Err("host-invalid"));
    check(&[(":authority", "u@t.test")], &[], Err("target-userinfo"));
    for authority in ["", "a b", "t.test/x", "t.test, u.test", "t.test:0", "t.test:1:2"] {
        check(&[(":authority", authority)], &[], Err("target-authority-invalid"));
    }
}

/// bad-inputs G21, G22 and G43: what a reader of HTTP/1 behind us would read as something else.
#[test]
fn nothing_is_smuggled_by_a_downgrade() {
    for name in ["", "A", "x y", "x:", "x¶", "x\0", "x\u{e9}", "x¶evil: 1", " x", "content-length "] {
        check(&[], &[(name, "v")], Err("field-name-invalid"));
    }
    for value in ["a\rb", "a\nb", "a\0b", "a¶evil: 1", "a¶¶GET / HTTP/1.1", " a", "a ", "\ta", "a\t", "\u{7f}", "\u{1}"]
    {
        check(&[], &[("x", value)], Err("field-value-invalid"));
        check(&[], &[("cookie", value)], Err("field-value-invalid"));
    }
    for value in ["", "a b", "a\tb", "\u{e9}", "\u{80}"] {
        check(&[], &[("x", value)], Ok(()));
    }
    for (name, value) in [
        ("connection", "close"),
        ("connection", ""),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("transfer-encoding", "chunked"),
        ("transfer-encoding", "identity"),
        ("transfer-encoding", ""),
        ("upgrade", "h2c"),
        ("upgrade", "websocket"),
        ("http2-settings", "AAMAAABkAAQAAP__"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
        ("te", ""),
    ] {
        check(&[], &[(name, value)], Err("connection-field-in-http2"));
    }
    check(&[], &[("te", "trailers")], Ok(()));
    check(&[], &[("expect", "200-maybe")], Err("expectation-unknown"));
    check(&[], &[("authorization", "a"), ("authorization", "b")], Err("field-repeated"));
}

/// bad-inputs G24, G25.
#[test]
fn lengths_are_plain_and_true() {
    let of = |lines: &[(&str, &str)], ends_stream: bool| {
        let mut all = vec![(":method", "POST"), (":scheme", "https"), (":path", "/"), (":authority", "t")];
        all.extend(lines);
        with(&block_of(&all), BlockContext { ends_stream, ..CONTEXT }, |head| head.received.body)
    };
    assert_eq!(of(&[], true), Ok(RequestBody::None));
    assert_eq!(of(&[], false), Ok(RequestBody::Chunked));
    assert_eq!(of(&[("content-length", "0")], true), Ok(RequestBody::Length(0)));
    assert_eq!(of(&[("content-length", "5")], false), Ok(RequestBody::Length(5)));
    assert_eq!(of(&[("content-length", "5")], true), Err("content-length-untrue"));
    for value in ["+5", "5, 5", "05", "", "-1", "0x5", "5 5", "9223372036854775808"] {
        assert_eq!(of(&[("content-length", value)], false), Err("content-length-invalid"), "{value}");
    }
    let twice = [("content-length", "5"), ("content-length", "5")];
    assert_eq!(of(&twice, false), Err("content-length-repeated"));
}

/// bad-inputs G26.
#[test]
fn connect_names_an_authority_and_extended_connect_all() {
    let of = |lines: &[(&str, &str)], extended_connect: bool| {
        let context = BlockContext { ends_stream: false, extended_connect, ..CONTEXT };
        with(&block_of(lines), context, |head| {
            let request = &head.received.request;
            assert_eq!((request.method, head.received.body), (Method::Connect, RequestBody::None));
            (request.form, request.authority.port, head.protocol.map(<[u8]>::to_vec))
        })
    };
    let plain = [(":method", "CONNECT"), (":authority", "t.test:443")];
    assert_eq!(of(&plain, true), Ok((TargetForm::Authority, Some(443), None)));
    assert_eq!(of(&[plain[0], (":authority", "t.test")], true), Err("target-authority-invalid"));
    assert_eq!(of(&[plain[0], plain[1], (":path", "/")], true), Err("target-form"));
    assert_eq!(of(&[plain[0], plain[1], (":scheme", "https")], true), Err("target-form"));
    assert_eq!(of(&plain[..1], true), Err("pseudo-field-missing"));
    assert_eq!(of(&[plain[0], plain[1], ("content-length", "1")], true), Err("connect-with-body"));
    let extended =
        [plain[0], (":protocol", "websocket"), (":scheme", "https"), (":path", "/chat"), (":authority", "t.test")];
    assert_eq!(of(&extended, true), Ok((TargetForm::Origin, None, Some(b"websocket".to_vec()))));
    assert_eq!(of(&extended, false), Err("extended-connect-invalid"));
    assert_eq!(of(&extended[..4], true), Err("host-missing"));
    assert_eq!(of(&[plain[0], plain[1], extended[1]], true), Err("pseudo-field-missing"));
}

/// bad-inputs G31, G32, G34.
#[test]
fn every_line_counts_against_the_limits() {
    let mut lines = vec![(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "t")];
    lines.resize(101, ("cookie", "a"));
    assert_eq!(with(&block_of(&lines), CONTEXT, |_| ()), Err("request-fields-too-many"));
    lines.truncate(100);
    assert_eq!(with(&block_of(&lines), CONTEXT, |_| ()), Ok(()));
    let small = HeadLimits { head_bytes_max: 3000, field_bytes_max: 80, target_bytes_max: 20, ..HeadLimits::REQUEST };
    let context = BlockContext { limits: &small, ..CONTEXT };
    assert_eq!(with(&block_of(&lines), context, |_| ()), Err("request-head-too-large"));
    let value = "v".repeat(80);
    lines.splice(4.., [("x", value.as_str())]);
    assert_eq!(with(&block_of(&lines), context, |_| ()), Err("request-field-too-large"));
    lines[2].1 = "/aaaaaaaaaaaaaaaaaaaa";
    assert_eq!(with(&block_of(&lines[..4]), context, |_| ()), Err("target-too-long"));
    check(&[], &[("", "")], Err("field-name-invalid"));
}

/// bad-inputs G42.
#[test]
fn trailers_are_fields_that_may_trail() {
    let of = |lines: &[(&str, &str)]| {
        let mut arena = HeadArena::default();
        let limits = ChunkedLimits { trailer_fields_max: 3, ..ChunkedLimits::DEFAULT };
        let read = read_trailer_block(&mut BlockDecoder::new(), &block_of(lines), &limits, &mut arena);
        read.expect("the block is valid").map(lines_of).map_err(|refusal| refusal.token)
    };
    assert_eq!(of(&[("etag", "\"a\""), ("content-length", "5"), ("x", "y")]).as_deref(), Ok("etag: \"a\"\nx: y\n"));
    assert_eq!(of(&[(":path", "/")]), Err("trailer-invalid"));
    assert_eq!(of(&[("x", "y"), ("connection", "close")]), Err("trailer-invalid"));
    assert_eq!(of(&[("X", "y")]), Err("trailer-invalid"));
    assert_eq!(of(&[("x", "y\n")]), Err("trailer-invalid"));
    assert_eq!(of(&[("x", "y"); 4]), Err("trailers-too-many"));
}
