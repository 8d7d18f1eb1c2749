//! The head towards the origin by purpose and policy, from the text of a request to the text that goes out.

use message::{Scheme, Status};
use wire::http2::hpack::{BlockDecoder, ListLimits};
use wire::limits::HeadLimits;
use wire::read_request;

use super::*;
use crate::peer::Peer;

static HELLO: Bytes = Bytes::from_static(b"hello");
const SHOP: &str = "GET /a?x=1 HTTP/1.1\r\nHost: shop.test\r\n";

/// What a request becomes for a purpose, by the built-in policy, for a client that is nobody's proxy.
fn check_builtin(purpose: &Purpose, asked: &str, expect: &[&str]) {
    check(asked, purpose, |_| {}, expect);
}

/// The same where the program made the head.
fn check_program(purpose: &Purpose, asked: &str, expect: &[&str]) {
    check(asked, purpose, |request| request.is_program_s = true, expect);
}

fn check(asked: &str, purpose: &Purpose, change: impl FnOnce(&mut OriginRequest<'_>), expect: &[&str]) {
    let got = rendered(asked, purpose, change);
    let expect = expect.iter().map(|line| format!("{line}\r\n")).collect::<String>() + "\r\n";
    assert_eq!(got, expect, "for {purpose:?}");
}

/// The lines for `Purpose::Pass` beside those that the built-in policy always adds.
fn lines_of_pass(asked: &str, change: impl FnOnce(&mut OriginRequest<'_>)) -> Vec<String> {
    lines(&rendered(asked, &Purpose::Pass, change))
}

fn lines(text: &str) -> Vec<String> {
    text.split("\r\n").filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn rendered(asked: &str, purpose: &Purpose, change: impl FnOnce(&mut OriginRequest<'_>)) -> String {
    let bytes = with_request(asked, purpose, change, |request| request.to_bytes());
    String::from_utf8(bytes).expect("all of it is text")
}

fn with_request<T>(
    asked: &str,
    purpose: &Purpose,
    change: impl FnOnce(&mut OriginRequest<'_>),
    make: impl FnOnce(&OriginRequest<'_>) -> T,
) -> T {
    let (text, mut spans) = (format!("{asked}\r\n"), Vec::new());
    let received = read_request(text.as_bytes(), &mut spans, &HeadLimits::REQUEST, Scheme::Http);
    let received = received.expect("nothing is wrong with it").expect("it is whole");
    let mut request = OriginRequest {
        request: received.request.clone(),
        purpose,
        is_program_s: false,
        client: Some(ClientIdentity::of_peer(Peer::of(([192, 0, 2, 1], 4_321).into()))),
        trace: None,
        parent: None,
        node: None,
        host: None,
        accept_encoding: None,
        server_name: "larder",
        pseudonym: "larder-1",
        speaks_esi: false,
        body: received.body,
        carried: None,
        expects_continue: received.expects_continue,
        rules: None,
    };
    change(&mut request);
    make(&request)
}

/// The same as a stream has it: the lines of its block, without the fields about the way, and what else is known of it.
fn streamed(
    asked: &str,
    purpose: &Purpose,
    change: impl FnOnce(&mut OriginRequest<'_>),
) -> Result<(Vec<String>, StreamRequest), &'static str> {
    let made = with_request(asked, purpose, change, |request| request.to_stream(Scheme::Https));
    let request = made.map_err(|refusal| refusal.token)?;
    let wide = ListLimits { list_bytes_max: 1 << 20, lines_max: 1000 };
    let mut lines = Vec::new();
    let excess = BlockDecoder::new().decode(&request.block, wide, &mut Vec::new(), |line, text| {
        let (name, value) = (&text[line.at..line.value_at()], &text[line.value_at()..line.end()]);
        lines.push(format!("{} {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
        true
    });
    assert_eq!(excess, Ok(None));
    lines.retain(|line| !["via", "forwarded", "x-forwarded"].iter().any(|way| line.starts_with(way)));
    Ok((lines, request))
}

fn slice() -> Purpose {
    Purpose::Slice { range: 10..20, if_range: Some("\"v1\"".into()) }
}

#[test]
fn an_origin_hears_of_esi_where_its_pages_may_have_parts() {
    for purpose in [Purpose::Store(None), Purpose::Pass] {
        let bytes = with_request(SHOP, &purpose, |request| request.speaks_esi = true, |request| request.to_bytes());
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("\r\nSurrogate-Capability: larder=\"Surrogate/1.0 ESI/1.0\"\r\n"), "{text}");
    }
}

#[test]
fn a_miss_asks_for_the_whole_whatever_its_client_has_or_wants_of_it() {
    let conditions = "If-None-Match: \"v1\"\r\nIf-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT\r\n";
    let asked = format!("{SHOP}Range: bytes=0-9\r\nIf-Range: \"v1\"\r\n{conditions}Accept: text/html\r\n");
    check_builtin(
        &Purpose::Store(None),
        &asked,
        &[
            "GET /a?x=1 HTTP/1.1",
            "Host: shop.test",
            "Accept: text/html",
            "X-Forwarded-For: 192.0.2.1",
            "Forwarded: for=192.0.2.1;host=\"shop.test\";proto=http",
            "Surrogate-Capability: larder=\"Surrogate/1.0\"",
            "X-Forwarded-Proto: http",
            "X-Forwarded-Host: shop.test",
            "Via: 1.1 larder-1",
        ],
    );
}

#[test]
fn a_pass_asks_as_its_client_asks() {
    check_builtin(
        &Purpose::Pass,
        &format!("{SHOP}Range: bytes=0-9\r\nIf-None-Match: \"v1\"\r\n"),
        &[
            "GET /a?x=1 HTTP/1.1",
            "Host: shop.test",
            "Range: bytes=0-9",
            "If-None-Match: \"v1\"",
            "X-Forwarded-For: 192.0.2.1",
            "Forwarded: for=192.0.2.1;host=\"shop.test\";proto=http",
            "X-Forwarded-Proto: http",
            "X-Forwarded-Host: shop.test",
            "Via: 1.1 larder-1",
        ],
    );
}

#[test]
fn a_slice_is_asked_for_by_its_range_and_the_tag_of_the_others() {
    let text = rendered(&format!("{SHOP}Range: bytes=0-99\r\n"), &slice(), |_| {});
    assert!(text.contains("Range: bytes=10-19\r\nIf-Range: \"v1\"\r\n"), "{text}");
    assert!(!text.contains("0-99"), "{text}");
}

#[test]
fn what_is_stored_is_to_be_confirmed_by_both_of_its_validators() {
    let check = |fields: &[(FieldName, &str)], last_modified, expect: &[(FieldName, &str)]| {
        let (mut stored, mut expected, mut added) = (Fields::default(), Fields::default(), Fields::default());
        fields.iter().for_each(|(name, value)| stored.push(*name, value));
        expect.iter().for_each(|(name, value)| expected.push(*name, value));
        let facts = Facts { last_modified, ..Facts::default() };
        add_conditions(
            Response { status: Status::OK, version: Version::Http11, reason: None, fields: stored.view() },
            &facts,
            &mut added,
        );
        let lines =
            |fields: &Fields| fields.view().iter().map(|field| (field.name, field.value.to_vec())).collect::<Vec<_>>();
        assert_eq!(lines(&added), lines(&expected));
    };
    let date = "Mon, 01 Jan 2024 00:00:00 GMT";
    let (etag, modified) = ((FieldName::Etag, "\"v1\""), (FieldName::LastModified, date));
    let (none_match, since) = ((FieldName::IfNoneMatch, "\"v1\""), (FieldName::IfModifiedSince, date));
    check(&[etag, modified], Some(1), &[none_match, since]);
    check(&[etag], None, &[none_match]);
    check(&[modified], Some(1), &[since]);
    // One that is no date confirms nothing.
    check(&[modified], None, &[]);
    check(&[(FieldName::Etag, "")], None, &[]);
}

#[test]
fn what_connection_names_ends_here() {
    let asked =
        format!("{SHOP}Connection: X-Hop, Via\r\nX-Hop: 1\r\nVia: 1.1 evil\r\nKeep-Alive: 5\r\nTE: trailers\r\n");
    for text in
        [rendered(&asked, &Purpose::Pass, |_| {}), rendered(&asked, &Purpose::Pass, |it| it.is_program_s = true)]
    {
        let kept = lines(&text);
        assert!(kept.contains(&"Via: 1.1 larder-1".to_owned()), "{text}");
        assert!(!kept.iter().any(|line| line.starts_with("X-Hop") || line.starts_with("Keep-Alive")), "{text}");
    }
}

#[test]
fn a_stranger_says_nothing_of_who_stands_behind_it() {
    let claims = "X-Forwarded-For: 10.0.0.1\r\nX-Real-IP: 10.0.0.1\r\nTrue-Client-IP: 10.0.0.1\r\nProxy: evil\r\n";
    let asked = format!("{SHOP}{claims}");
    let got = lines_of_pass(&asked, |_| {});
    assert!(!got.iter().any(|line| line.contains("10.0.0.1") || line.contains("evil")), "{got:?}");
    let got = lines_behind_a_proxy(&asked, [10, 0, 0, 1]);
    assert!(got.contains(&"X-Forwarded-For: 10.0.0.1, 192.0.2.1".to_owned()), "{got:?}");
    assert!(got.contains(&"True-Client-IP: 10.0.0.1".to_owned()), "{got:?}");
    assert!(got.contains(&"X-Real-IP: 10.0.0.1".to_owned()), "{got:?}");
}

/// What a trusted proxy has the origin told, which says who its client is.
fn lines_behind_a_proxy(asked: &str, client: [u8; 4]) -> Vec<String> {
    lines_of_pass(asked, |request| {
        let identity = request.client.as_mut().expect("there is one");
        (identity.peer_is_trusted, identity.ip) = (true, client.into());
    })
}

/// A proxy that writes X-Forwarded-For and hands on what came in X-Real-IP says nothing by that.
#[test]
fn an_address_that_a_trusted_proxy_contradicts_reaches_no_origin() {
    let names = ["X-Real-IP", "True-Client-IP", "X-Client-IP"];
    for name in names {
        let tells = |fields: &str, value: &str| {
            let asked = format!("{SHOP}{fields}{name}: {value}\r\n");
            let line = format!("{name}: {value}");
            lines_behind_a_proxy(&asked, [198, 51, 100, 7]).contains(&line)
        };
        for said in ["X-Forwarded-For: 198.51.100.7\r\n", "Forwarded: for=198.51.100.7\r\n"] {
            assert!(tells(said, "198.51.100.7"), "{name} {said}");
            assert!(!tells(said, "10.0.0.1") && !tells(said, "nobody"), "{name} {said}");
        }
        assert!(tells("", "198.51.100.7"), "{name}");
        // By what named the client its route may have taken out since.
        assert!(!tells("", "10.0.0.1"), "{name}");
    }
}

#[test]
fn what_applications_obey_and_no_key_holds_is_in_nobodys_shared_answer() {
    for field in ["X-Host: evil", "X_Host: evil", "X-Original-URL: /evil", "X-HTTP-Method-Override: evil"] {
        let asked = format!("{SHOP}{field}\r\n");
        assert!(!rendered(&asked, &Purpose::Store(None), |_| {}).contains("evil"), "{field}");
        assert!(rendered(&asked, &Purpose::Pass, |_| {}).contains("evil"), "{field}");
    }
}

#[test]
fn a_refresh_for_nobody_names_no_client() {
    let text = rendered(SHOP, &Purpose::Store(None), |request| request.client = None);
    assert!(!text.contains("X-Forwarded-For") && !text.contains("\r\nForwarded"), "{text}");
    assert!(text.contains("X-Forwarded-Proto: http\r\nX-Forwarded-Host: shop.test\r\n"), "{text}");
}

#[test]
fn a_proxy_is_asked_for_the_whole_url_with_its_login() {
    let login: &ParentLogin = Box::leak(Box::new(ParentLogin::of("ann:secret").expect("it has a name")));
    let asks = |asked: &str| lines_of_pass(asked, |request| request.parent = Some(Some(login)));
    let got = asks("GET http://far.test/a?b HTTP/1.1\r\nHost: far.test\r\n");
    let expect = [
        "GET http://far.test/a?b HTTP/1.1",
        "Host: far.test",
        "Proxy-Authorization: Basic YW5uOnNlY3JldA==",
        "Via: 1.1 larder-1",
    ];
    assert_eq!(got, expect, "a destination is told nothing of who asks");
    assert_eq!(asks("OPTIONS http://far.test HTTP/1.1\r\nHost: far.test\r\n")[0], "OPTIONS http://far.test HTTP/1.1");
    assert_eq!(asks("CONNECT far.test:443 HTTP/1.1\r\nHost: far.test:443\r\n")[0], "CONNECT far.test:443 HTTP/1.1");
}

#[test]
fn a_destination_is_asked_for_the_path_alone() {
    let got = lines_of_pass("GET http://far.test/a?b HTTP/1.1\r\nHost: far.test\r\n", |_| {});
    assert_eq!(got, ["GET /a?b HTTP/1.1", "Host: far.test", "Via: 1.1 larder-1"]);
    let got = lines_of_pass("OPTIONS http://far.test HTTP/1.1\r\nHost: far.test\r\n", |_| {});
    assert_eq!(got[0], "OPTIONS * HTTP/1.1");
}

#[test]
fn the_host_of_an_origin_goes_before_the_clients_and_behind_the_programs() {
    let got = lines_of_pass(SHOP, |request| request.host = Some("inner.test"));
    assert!(got.contains(&"Host: inner.test".to_owned()) && !got.contains(&"Host: shop.test".to_owned()), "{got:?}");
    let by_program =
        |asked: &str| lines_of_pass(asked, |request| (request.is_program_s, request.host) = (true, Some("inner.test")));
    assert_eq!(by_program(SHOP), ["GET /a?x=1 HTTP/1.1", "Host: shop.test", "Via: 1.1 larder-1"]);
    assert_eq!(by_program("GET / HTTP/1.0\r\n"), ["GET / HTTP/1.1", "Host: inner.test", "Via: 1.0 larder-1"]);
}

#[test]
fn max_forwards_counts_down_for_options_alone() {
    let got = lines_of_pass("OPTIONS /a HTTP/1.1\r\nHost: shop.test\r\nMax-Forwards: 3\r\n", |_| {});
    assert!(got.contains(&"Max-Forwards: 2".to_owned()), "{got:?}");
    let got = lines_of_pass(&format!("{SHOP}Max-Forwards: 3\r\n"), |_| {});
    assert!(got.contains(&"Max-Forwards: 3".to_owned()), "{got:?}");
}

#[test]
fn an_upload_is_framed_as_it_came() {
    let framing = |fields: &str, change: &dyn Fn(&mut OriginRequest<'_>)| {
        let asked = format!("POST / HTTP/1.1\r\nHost: shop.test\r\n{fields}");
        let got = rendered(&asked, &Purpose::Pass, |request| {
            request.is_program_s = true;
            change(request);
        });
        let (head, body) = got.split_once("\r\n\r\n").expect("it has an end");
        let lines = head.split("\r\n").skip(2).filter(|line| !line.starts_with("Via")).map(str::to_owned);
        (lines.collect::<Vec<_>>(), body.to_owned())
    };
    let as_it_came = |_: &mut OriginRequest<'_>| {};
    assert_eq!(framing("Content-Length: 5\r\n", &as_it_came).0, ["Content-Length: 5"]);
    assert_eq!(framing("Transfer-Encoding: chunked\r\n", &as_it_came).0, ["Transfer-Encoding: chunked"]);
    let expects = framing("Content-Length: 5\r\nExpect: 100-continue\r\n", &as_it_came).0;
    assert_eq!(expects, ["Content-Length: 5", "Expect: 100-continue"]);
    assert_eq!(framing("", &|request| request.expects_continue = true).0, [""; 0], "nothing is to follow");
    let carried = framing("Content-Length: 5\r\n", &|request| {
        (request.body, request.carried) = (RequestBody::None, Some(&HELLO));
    });
    assert_eq!(carried, (vec!["Content-Length: 5".to_owned()], "hello".to_owned()), "it was read before");
}

#[test]
fn a_program_s_head_goes_out_as_the_program_left_it() {
    check_program(
        &Purpose::Store(None),
        &format!("{SHOP}X-Forwarded-For: 10.0.0.1\r\nX-Host: mine\r\nIf-None-Match: \"v1\"\r\nMax-Forwards: 3\r\n"),
        &[
            "GET /a?x=1 HTTP/1.1",
            "Host: shop.test",
            "X-Forwarded-For: 10.0.0.1",
            "X-Host: mine",
            "If-None-Match: \"v1\"",
            "Max-Forwards: 3",
            "Via: 1.1 larder-1",
        ],
    );
}

#[test]
fn a_connect_that_a_program_passes_asks_for_host_and_port() {
    let got = lines_of_pass("CONNECT far.test:443 HTTP/1.1\r\nHost: far.test:443\r\n", |request| {
        request.is_program_s = true;
    });
    assert_eq!(got[0], "CONNECT far.test:443 HTTP/1.1");
}

#[test]
fn the_last_request_on_a_connection_says_so() {
    let closes = "Connection: close";
    let check = |purpose: &Purpose, fields: &str, expect: usize| {
        let text = rendered(&format!("{SHOP}{fields}"), purpose, |request| request.is_program_s = true);
        assert_eq!(lines(&text).iter().filter(|line| *line == closes).count(), expect, "{text}");
    };
    check(&Purpose::Pass, "", 0);
    check(&Purpose::Pass, "Connection: close\r\n", 1);
    check(&Purpose::Piped, "", 1);
    check(&Purpose::Piped, "Connection: close\r\n", 1);
    // Of what is piped as it comes the program alone says what its connection is.
    check(&Purpose::Raw, "", 0);
    check(&Purpose::Raw, "Connection: close\r\n", 1);
    // A client that wants to close its own connection says nothing of ours.
    let text = rendered(&format!("{SHOP}Connection: close\r\n"), &Purpose::Pass, |_| {});
    assert!(!text.contains(closes), "{text}");
}

#[test]
fn what_is_piped_as_it_comes_keeps_its_version_and_its_connection() {
    let asked = "GET /a HTTP/1.0\r\nConnection: X-Hop\r\nX-Hop: 1\r\n";
    check_program(&Purpose::Raw, asked, &["GET /a HTTP/1.0", "Connection: X-Hop", "X-Hop: 1", "Via: 1.0 larder-1"]);
    check_program(&Purpose::Piped, asked, &["GET /a HTTP/1.1", "Via: 1.0 larder-1", "Connection: close"]);
}

#[test]
fn an_upgrade_names_its_protocols() {
    let asked = format!("{SHOP}Connection: Upgrade\r\nUpgrade: websocket\r\n");
    for is_program_s in [false, true] {
        let text = rendered(&asked, &Purpose::Upgrade, |request| request.is_program_s = is_program_s);
        assert!(text.ends_with("Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"), "{text}");
        assert!(!rendered(&asked, &Purpose::Pass, |_| {}).contains("Upgrade"));
    }
}

#[test]
fn a_stream_says_in_its_first_lines_what_http1_says_in_host_and_of_its_connection_nothing() {
    let connection = "Connection: X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n";
    let asked = format!("POST /a?x=1 HTTP/1.1\r\nHost: Shop.test:81\r\n{connection}Cookie: a=b\r\n");
    let (lines, request) = streamed(&asked, &Purpose::Pass, |_| {}).expect("HTTP/2 can say it");
    let expect =
        [":method POST", ":scheme https", ":path /a?x=1", ":authority shop.test:81", "cookie a=b", "te trailers"];
    assert_eq!(lines, expect);
    assert!(request.goes_on && request.carried.is_none() && request.method == Method::Post);
    let (lines, request) = streamed(SHOP, &slice(), |request| request.host = Some("www.test")).expect("it can");
    assert_eq!(lines[3..5], [":authority www.test", "range bytes=10-19"]);
    assert!(!request.goes_on);
    let (lines, request) = streamed(SHOP, &Purpose::Pass, |request| {
        (request.is_program_s, request.carried) = (true, Some(&HELLO));
    })
    .expect("it can");
    assert!(lines.contains(&"content-length 5".to_owned()) && request.carried.as_deref() == Some(&b"hello"[..]));
}

#[test]
fn an_upgrade_to_a_websocket_is_an_extended_connect() {
    let asked = format!(
        "{SHOP}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    );
    let (lines, request) = streamed(&asked, &Purpose::Upgrade, |_| {}).expect("HTTP/2 can say it");
    let expect = [
        ":method CONNECT",
        ":scheme https",
        ":path /a?x=1",
        ":authority shop.test",
        ":protocol websocket",
        "sec-websocket-version 13",
    ];
    assert_eq!(lines, expect);
    assert!(request.goes_on && request.method == Method::Connect);
    assert_eq!(request.proof.as_deref(), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
}

#[test]
fn what_http2_cannot_say_is_not_sent() {
    for host in ["shop.test\r\nX-A: b", "shop test", ""] {
        let said = streamed(SHOP, &Purpose::Pass, |request| request.host = Some(host));
        assert_eq!(said.map(drop), Err("host-invalid"), "{host:?}");
    }
    let said = streamed(SHOP, &Purpose::Pass, |request| request.request.method_text = b"GET /b HTTP/1.1\r\nX:");
    assert_eq!(said.map(drop), Err("method-invalid"));
    let said = streamed(SHOP, &Purpose::Pass, |request| request.request.path = b"/a b");
    assert_eq!(said.map(drop), Err("target-invalid"));
}
