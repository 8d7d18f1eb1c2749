//! What a script is told of a request, from the text of the request to the variables.

use std::collections::BTreeMap;

use message::Scheme;
use wire::limits::HeadLimits;
use wire::read_request;

use super::*;
use crate::client_identity::ClientIdentity;
use crate::fetch::purpose::Purpose;
use crate::peer::Peer;

/// The variables, and the body behind them with its end.
struct Told {
    variables: BTreeMap<String, String>,
    body: String,
    has_ended: bool,
}

impl Told {
    fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }
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

/// As an application reads them. No variable may be said twice.
fn read(mut records: &[u8]) -> Told {
    let mut told = Told { variables: BTreeMap::new(), body: String::new(), has_ended: false };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    while let [1, kind, 0, 1, high, low, 0, 0, rest @ ..] = records {
        let (mut content, behind) = rest.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        match kind {
            4 => {
                while !content.is_empty() {
                    let (name, value) = (length(&mut content), length(&mut content));
                    let before = told.variables.insert(text(&content[..name]), text(&content[name..name + value]));
                    assert_eq!(before, None, "{} twice", text(&content[..name]));
                    content = &content[name + value..];
                }
            }
            5 if content.is_empty() => told.has_ended = true,
            5 => told.body += &text(content),
            _ => assert_eq!(*kind, 1),
        }
        records = behind;
    }
    assert!(records.is_empty());
    told
}

fn settings() -> FastCgiSettings {
    FastCgiSettings::default()
}

fn told(asked: &str, settings: &FastCgiSettings, path_info: &str, change: impl FnOnce(&mut OriginRequest<'_>)) -> Told {
    let (text, mut spans) = (format!("{asked}\r\n"), Vec::new());
    let received = read_request(text.as_bytes(), &mut spans, &HeadLimits::REQUEST, Scheme::Http);
    let received = received.expect("nothing is wrong with it").expect("it is whole");
    let client = ClientIdentity::of_peer(Peer::of(([192, 0, 2, 1], 4_321).into()));
    let mut request = OriginRequest {
        request: received.request.clone(),
        purpose: &Purpose::Pass,
        is_program_s: false,
        client: Some(client),
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
    let script = ScriptPath { relative: b"app/run.php".to_vec(), path_info: path_info.as_bytes().to_vec() };
    let call = ScriptCall {
        settings,
        script: &script,
        document_root: "/srv/www",
        server_address: Some([192, 0, 2, 9].into()),
    };
    read(&request.to_records(&call))
}

fn check(asked: &str, expect: &[(&str, Option<&str>)]) {
    let told = told(asked, &settings(), "", |_| {});
    for (name, value) in expect {
        assert_eq!(told.get(name), *value, "{name} of {asked:?}");
    }
}

const GET: &str = "GET /app/run.php/a%20b?x=1&y HTTP/1.1\r\nHost: Shop.test:8080\r\n";

#[test]
fn a_request_is_told_by_the_variables_of_cgi() {
    let told = told(GET, &settings(), "/a b", |_| {});
    let expect = [
        ("CONTENT_LENGTH", ""),
        ("CONTENT_TYPE", ""),
        ("DOCUMENT_ROOT", "/srv/www"),
        ("DOCUMENT_URI", "/app/run.php"),
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("HTTP_HOST", "shop.test:8080"),
        ("PATH_INFO", "/a b"),
        ("PATH_TRANSLATED", "/srv/www/a b"),
        ("QUERY_STRING", "x=1&y"),
        ("REDIRECT_STATUS", "200"),
        ("REMOTE_ADDR", "192.0.2.1"),
        ("REMOTE_PORT", "4321"),
        ("REQUEST_METHOD", "GET"),
        ("REQUEST_SCHEME", "http"),
        ("REQUEST_URI", "/app/run.php/a%20b?x=1&y"),
        ("SCRIPT_FILENAME", "/srv/www/app/run.php"),
        ("SCRIPT_NAME", "/app/run.php"),
        ("SERVER_ADDR", "192.0.2.9"),
        ("SERVER_NAME", "shop.test"),
        ("SERVER_PORT", "8080"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("SERVER_SOFTWARE", "larder"),
    ];
    let got: Vec<_> = told.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(got, expect);
    assert!(told.has_ended && told.body.is_empty());
}

#[test]
fn no_field_becomes_what_is_not_its_own() {
    let fields = "Proxy: http://evil.test\r\nContent_Length: 9\r\nX_Under: 1\r\nX.Dot: 1\r\nX!Odd: 1\r\nVia: 1.1 a\r\n\
                  X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\nForwarded: for=1.2.3.4\r\nConnection: X-Hop\r\n\
                  X-Hop: 1\r\nX-Fine: 1\r\nAuthorization: Basic x\r\n";
    let told = told(&format!("{GET}{fields}"), &settings(), "", |_| {});
    let of_fields: Vec<_> = told.variables.keys().filter(|name| name.starts_with("HTTP_")).collect();
    assert_eq!(of_fields, ["HTTP_AUTHORIZATION", "HTTP_HOST", "HTTP_X_FINE"]);
    assert_eq!((told.get("CONTENT_LENGTH"), told.get("PATH_INFO")), (Some(""), None));
    let trusted = |request: &mut OriginRequest<'_>| {
        request.client.as_mut().unwrap().peer_is_trusted = true;
    };
    // Not by the word of a proxy that is trusted, either.
    let told = self::told(&format!("{GET}{fields}"), &settings(), "", trusted);
    assert_eq!((told.get("HTTP_PROXY"), told.get("HTTP_X_FORWARDED_FOR")), (None, None));
}

#[test]
fn fields_that_come_twice_are_one_variable() {
    let fields = "Cookie: a=1\r\nAccept: text/html\r\ncookie: b=2\r\nACCEPT: */*\r\n";
    check(&format!("{GET}{fields}"), &[("HTTP_COOKIE", Some("a=1; b=2")), ("HTTP_ACCEPT", Some("text/html, */*"))]);
}

#[test]
fn who_asks_is_whoever_a_trusted_proxy_says() {
    let told = told(GET, &settings(), "", |request| {
        request.client.as_mut().unwrap().ip = [198, 51, 100, 7].into();
        request.request.scheme = Scheme::Https;
    });
    assert_eq!((told.get("REMOTE_ADDR"), told.get("REMOTE_PORT")), (Some("198.51.100.7"), Some("0")));
    assert_eq!((told.get("HTTPS"), told.get("REQUEST_SCHEME")), (Some("on"), Some("https")));
    let nobody = self::told(GET, &settings(), "", |request| request.client = None);
    assert_eq!((nobody.get("REMOTE_ADDR"), nobody.get("HTTPS")), (Some("0.0.0.0"), None));
    check("GET / HTTP/1.1\r\nHost: shop.test\r\n", &[("SERVER_PORT", Some("80"))]);
}

#[test]
fn a_body_is_told_by_its_length_and_ends_when_it_is_here() {
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\n";
    check(
        &format!("{post}Content-Length: 5\r\n"),
        &[
            ("CONTENT_LENGTH", Some("5")),
            ("CONTENT_TYPE", Some("text/plain")),
            ("HTTP_CONTENT_TYPE", None),
            ("HTTP_CONTENT_LENGTH", None),
        ],
    );
    assert!(!told(&format!("{post}Content-Length: 5\r\n"), &settings(), "", |_| {}).has_ended);
    assert!(told(&format!("{post}Content-Length: 0\r\n"), &settings(), "", |_| {}).has_ended);
    let body = Bytes::from_static(b"hello");
    let carried = told(post, &settings(), "", |request| {
        let body: &'static Bytes = Box::leak(Box::new(body));
        request.carried = Some(body);
    });
    assert_eq!((&*carried.body, carried.has_ended), ("hello", true));
    assert_eq!(carried.get("CONTENT_LENGTH"), Some("5"));
}

#[test]
fn what_the_operator_says_is_said_in_place_of_ours() {
    let params = [("SERVER_SOFTWARE", "nginx"), ("APP_ENV", "prod"), ("HTTP_X_REAL", "ours"), ("HTTPS", "on")];
    let params = params.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let settings = FastCgiSettings { params, ..settings() };
    let told =
        told(&format!("{GET}X-Real: theirs\r\n"), &settings, "", |request| request.request.scheme = Scheme::Https);
    for (name, value) in &settings.params {
        assert_eq!(told.get(name), Some(value.as_str()));
    }
}

#[test]
fn what_is_stored_is_fetched_without_one_clients_conditions() {
    let asked = format!("{GET}If-None-Match: \"a\"\r\nRange: bytes=0-1\r\n");
    let told = told(&asked, &settings(), "", |request| request.purpose = &Purpose::Store(None));
    assert_eq!((told.get("HTTP_IF_NONE_MATCH"), told.get("HTTP_RANGE")), (None, None));
    assert_eq!(told.get("HTTP_SURROGATE_CAPABILITY"), Some("larder=\"Surrogate/1.0\""));
    check(&asked, &[("HTTP_IF_NONE_MATCH", Some("\"a\"")), ("HTTP_SURROGATE_CAPABILITY", None)]);
}
