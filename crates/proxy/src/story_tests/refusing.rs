//! What is answered without an origin, and what is refused.

use super::*;
use crate::settings::{Bandwidth, StatusPageSettings};

/// Status and token of the answer to these bytes, and that no origin is asked.
fn check(bytes: &str, status: u16) {
    let reply = Story::builtin().send(bytes.as_bytes());
    assert_eq!((reply.status(), reply.asked().len()), (status, 0), "{bytes:?}");
    assert_eq!(reply.field("cache-control"), "no-store", "{bytes:?}");
}

#[test]
fn requests_that_can_be_read_in_two_ways_are_400() {
    check("GET / HTTP/1.1\r\n\r\n", 400);
    check("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400);
    check("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
    check("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400);
}

#[test]
fn options_of_the_server_itself_is_answered_here() {
    let reply = Story::builtin().send(b"OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!((reply.status(), reply.asked().len()), (200, 0));
    assert!(reply.field("allow").contains("GET"));
}

#[test]
fn options_is_answered_here_for_the_server_and_by_the_origin_for_a_page() {
    let ours = Story::builtin().send(b"OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!((ours.status(), ours.body(), ours.asked().len()), (200, "", 0));
    let story = Story::builtin();
    story.origin([answer(204, &["Allow: GET"], "")]);
    let theirs = story.ask("OPTIONS /page", &[], "");
    assert_eq!(
        (theirs.status(), theirs.field("allow"), theirs.asked()),
        (204, "GET".into(), vec!["OPTIONS /page".into()])
    );
}

#[test]
fn connect_to_a_server_is_405_and_closes() {
    let reply = Story::builtin().send(b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n");
    assert_eq!((reply.status(), reply.field("connection")), (405, "close".to_owned()));
}

#[test]
fn a_request_that_was_here_before_is_a_loop() {
    let story = Story::builtin();
    let via = format!("Via: 1.1 {}", story.core.site().pseudonym);
    assert_eq!(story.get("/", &[&via]).status(), 508);
}

/// However its route makes it wait, and whatever its program would do with the refusal.
#[test]
fn a_request_that_was_here_before_is_refused_before_a_program_sees_it() {
    let program = "sub vcl_recv { return (pass); } sub vcl_synth { return (restart); }";
    let bandwidth = Bandwidth { bytes_per_second: 1_000_000, after_bytes: 0 };
    for rules in [RouteRules::default(), RouteRules { bandwidth: Some(bandwidth), ..RouteRules::default() }] {
        let story = Story::vcl_with(program, |settings| settings.routes[0].rules = Arc::new(rules));
        let via = format!("Via: 1.1 {}", story.core.site().pseudonym);
        let reply = story.get("/", &[&via]);
        assert_eq!((reply.status(), reply.asked().len()), (508, 0));
    }
}

#[test]
fn a_body_longer_than_the_limit_is_413() {
    let story = Story::with(|settings| settings.limits.request_body_bytes_max = 3);
    assert_eq!(story.ask("POST /", &[], "four").status(), 413);
}

#[test]
fn a_host_that_no_route_has_is_404() {
    let story = Story::with(|settings| settings.routes[0].host = Some("b.test".to_owned()));
    assert_eq!(story.get("/", &[]).status(), 404);
}

#[test]
fn a_closed_route_is_403() {
    let story = Story::with(|settings| settings.routes[0].target = RouteTarget::Closed);
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.asked().len()), (403, 0));
}

#[test]
fn an_authority_is_answered_before_a_closed_route_and_nobody_else_is() {
    let story = Story::with(|settings| settings.routes[0].target = RouteTarget::Closed);
    let challenges = std::sync::Arc::clone(&story.core.shared.http_challenges);
    let path = "/.well-known/acme-challenge/token-1";
    assert_eq!(story.get(path, &[]).status(), 403);
    challenges.offer("token-1", "token-1.thumb");
    let reply = story.get(path, &[]);
    assert_eq!((reply.status(), reply.body(), reply.asked().len()), (200, "token-1.thumb", 0));
    assert_eq!(reply.field("content-type"), "application/octet-stream");
    for other in ["/.well-known/acme-challenge/token-2", "/.well-known/acme-challenge/", "/token-1"] {
        assert_eq!(story.get(other, &[]).status(), 403, "{other}");
    }
    assert_eq!(story.ask(&format!("POST {path}"), &[], "").status(), 403);
    challenges.withdraw("token-1");
    assert_eq!(story.get(path, &[]).status(), 403);
}

#[test]
fn the_servers_numbers_are_a_page_of_text() {
    let story = Story::with(|settings| {
        settings.status_pages = vec![StatusPageSettings::default()];
        settings.routes[0].target = RouteTarget::StatusPage(0);
    });
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.field("content-type")), (200, "text/plain".to_owned()));
    assert!(reply.body().starts_with("Active connections: 0 \nserver accepts handled requests\n 0 0 1 \n"));
}

#[test]
fn an_error_tells_strangers_a_number_and_operators_the_cause() {
    let stranger = Story::builtin();
    stranger.origin([MockedAnswer::Refused]);
    let text = stranger.get("/", &[]).body().to_owned();
    assert!(text.contains("Request id: ") && !text.contains("shop"), "{text}");
    let operator = Story::with(|settings| settings.details_to = crate::settings::Network::LOOPBACK.to_vec());
    operator.origin([MockedAnswer::Refused]);
    assert!(operator.get("/", &[]).body().contains("shop"));
}

#[test]
fn an_error_is_html_for_who_prefers_it() {
    let story = Story::builtin();
    story.origin([MockedAnswer::Refused]);
    let reply = story.get("/", &["Accept: text/html, */*;q=0.1"]);
    assert!(reply.field("content-type").starts_with("text/html"));
}

#[test]
fn an_operator_reads_which_origin_refused() {
    let story = Story::with(|settings| settings.details_to = crate::settings::Network::LOOPBACK.to_vec());
    story.origin([MockedAnswer::Refused]);
    let reply = story.get("/", &[]);
    assert!(reply.body().contains("origin \"shop\"") && reply.body().contains(": connect failed"), "{}", reply.body());
    assert!(reply.field("cache-status").starts_with("larder"), "{}", reply.field("cache-status"));
}
