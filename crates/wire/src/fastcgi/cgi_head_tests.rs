//! Heads as programs write them, and as they must not.

use super::*;

/// What a head says: status, fields and framing.
type Said<'a> = (u16, &'a [(&'a str, &'a str)], ResponseBody);

/// Status, fields and framing of a head, or the refusal's token; and `more` when it is cut anywhere.
fn check(head: &str, method: Method, expect: Result<Said<'_>, &str>) {
    let mut spans = Vec::new();
    let got = read_cgi_head(head.as_bytes(), &mut spans, &HeadLimits::RESPONSE, method);
    match (got, expect) {
        (Ok(Some(received)), Ok((status, fields, body))) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let got: Vec<_> =
                received.response.fields.iter().map(|field| (text(field.name_text), text(field.value))).collect();
            let fields: Vec<_> = fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            assert_eq!((received.response.status.0, got, received.body), (status, fields, body), "{head:?}");
            assert_eq!(received.head_bytes, head.len(), "{head:?}");
        }
        (Err(refusal), Err(token)) => assert_eq!((refusal.token, refusal.status), (token, 502), "{head:?}"),
        (got, expect) => panic!("{head:?}: {got:?} instead of {expect:?}"),
    }
    if expect.is_ok() {
        for end in 0..head.len() {
            let early = read_cgi_head(&head.as_bytes()[..end], &mut spans, &HeadLimits::RESPONSE, method);
            assert!(matches!(early, Ok(None)), "{:?}: {early:?}", &head[..end]);
        }
    }
}

const HTML: (&str, &str) = ("Content-Type", "text/html");

#[test]
fn the_status_is_a_field_or_follows() {
    let get = Method::Get;
    check("Content-Type: text/html\r\n\r\n", get, Ok((200, &[HTML], ResponseBody::Chunked)));
    check("Status: 404 Not Found\r\nContent-Type: text/html\r\n\r\n", get, Ok((404, &[HTML], ResponseBody::Chunked)));
    check("Content-Type: text/html\nstatus: 500\n\n", get, Ok((500, &[HTML], ResponseBody::Chunked)));
    let location = ("Location", "/elsewhere");
    check("Location: /elsewhere\r\n\r\n", get, Ok((302, &[location], ResponseBody::Chunked)));
    check("Status: 201 Created\r\nLocation: /elsewhere\r\n\r\n", get, Ok((201, &[location], ResponseBody::Chunked)));
    check("Status: 999 \r\n\r\n", get, Ok((999, &[], ResponseBody::Chunked)));
    // Output without a field.
    check("\r\n", get, Ok((200, &[], ResponseBody::Chunked)));
    check("\n", get, Ok((200, &[], ResponseBody::Chunked)));
    // No status, though it reads like one.
    check("X-Status: 404\r\n\r\n", get, Ok((200, &[("X-Status", "404")], ResponseBody::Chunked)));
}

#[test]
fn the_reason_is_told_where_it_is_a_programs_own() {
    let reason = |head: &str| {
        let mut spans = Vec::new();
        let received = read_cgi_head(head.as_bytes(), &mut spans, &HeadLimits::RESPONSE, Method::Get);
        received.unwrap().unwrap().response.reason.map(<[u8]>::to_vec)
    };
    assert_eq!(reason("Status: 404 Not Found\r\n\r\n"), None);
    assert_eq!(reason("Status: 404\r\n\r\n"), None);
    assert_eq!(reason("Status: 404 Gone fishing\r\n\r\n").as_deref(), Some(&b"Gone fishing"[..]));
    let long = format!("Status: 404 {}\r\n\r\n", "x".repeat(9_000));
    check(&long, Method::Get, Err("reason-too-long"));
}

#[test]
fn a_body_is_framed_by_its_length_or_by_records() {
    let length = ("Content-Length", "5");
    let head = "Content-Length: 5\r\n\r\n";
    check(head, Method::Get, Ok((200, &[length], ResponseBody::Length(5))));
    check(head, Method::Head, Ok((200, &[length], ResponseBody::None)));
    check("Status: 304\r\nContent-Length: 5\r\n\r\n", Method::Get, Ok((304, &[length], ResponseBody::None)));
    check("Status: 204\r\n\r\n", Method::Get, Ok((204, &[], ResponseBody::None)));
    check("X: 1\r\n\r\n", Method::Head, Ok((200, &[("X", "1")], ResponseBody::None)));
}

#[test]
fn what_an_http1_head_may_not_have_this_may_not_either() {
    let get = Method::Get;
    for (head, token) in [
        ("Status: 99\r\n\r\n", "cgi-status-invalid"),
        ("Status: 100 Continue\r\n\r\n", "cgi-status-invalid"),
        ("Status: 101 Switching\r\n\r\n", "cgi-status-invalid"),
        ("Status: 2000\r\n\r\n", "cgi-status-invalid"),
        ("Status: OK\r\n\r\n", "cgi-status-invalid"),
        ("Status: \r\n\r\n", "cgi-status-invalid"),
        ("Status: 200/1\r\n\r\n", "cgi-status-invalid"),
        ("Status: +20\r\n\r\n", "cgi-status-invalid"),
        ("Status: 200\r\nstatus: 200\r\n\r\n", "cgi-status-repeated"),
        ("Transfer-Encoding: chunked\r\n\r\n", "cgi-transfer-encoding"),
        ("Content-Length: 5\r\nContent-Length: 5\r\n\r\n", "content-length-repeated"),
        ("Content-Length: 05\r\n\r\n", "content-length-invalid"),
        ("Content-Length: -1\r\n\r\n", "content-length-invalid"),
        ("HTTP/1.1 200 OK\r\nX: 1\r\n\r\n", "field-name-invalid"),
        ("X : 1\r\n\r\n", "field-name-invalid"),
        ("X: 1\r\n folded\r\n\r\n", "field-name-invalid"),
        ("X: a\0b\r\n\r\n", "field-value-invalid"),
        ("X: a\rY: b\r\n\r\n", "field-value-invalid"),
        ("<html>\n", "field-name-invalid"),
    ] {
        check(head, get, Err(token));
    }
}

#[test]
fn heads_are_bounded_as_those_of_http1_are() {
    let limits = HeadLimits { head_bytes_max: 200, fields_max: 4, field_bytes_max: 60, ..HeadLimits::RESPONSE };
    let token =
        |head: String| read_cgi_head(head.as_bytes(), &mut Vec::new(), &limits, Method::Get).err().map(|r| r.token);
    assert_eq!(token("A: 1\r\n".repeat(4) + "\r\n"), None);
    assert_eq!(token("A: 1\r\n".repeat(5) + "\r\n"), Some("response-fields-too-many"));
    assert_eq!(token(format!("A: {}\r\n\r\n", "x".repeat(59))), None);
    assert_eq!(token(format!("A: {}\r\n\r\n", "x".repeat(60))), Some("response-field-too-large"));
    assert_eq!(token(format!("A: {}", "x".repeat(196))), None);
    assert_eq!(token(format!("A: {}", "x".repeat(197))), Some("response-head-too-large"));
    assert_eq!(token(format!("A: 1\n\n{}", "body ".repeat(100))), None);
}

#[test]
fn a_head_may_have_as_many_fields_as_the_limit_says() {
    let fields: Vec<_> = (0..HeadLimits::RESPONSE.fields_max).map(|n| (format!("X-{n}"), n.to_string())).collect();
    for count in [FIELDS_USUAL - 1, FIELDS_USUAL, FIELDS_USUAL + 1, fields.len()] {
        let said: Vec<_> = fields[..count].iter().map(|(name, value)| (&name[..], &value[..])).collect();
        let head: String = said.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        check(&format!("{head}\r\n"), Method::Get, Ok((200, &said, ResponseBody::Chunked)));
    }
    let head: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    check(&format!("{head}X-More: 1\r\n\r\n"), Method::Get, Err(refusals::RESPONSE_FIELDS_TOO_MANY.token));
}
