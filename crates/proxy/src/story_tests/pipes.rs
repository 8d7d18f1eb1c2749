//! Where bytes flow both ways, and clients that leave while they are read from.

use super::*;

const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const UPGRADE: [&str; 2] = ["Connection: Upgrade", "Upgrade: websocket"];

#[test]
fn an_origin_that_switches_protocols_is_piped_to() {
    let story = Story::builtin();
    story.origin([wire(SWITCHING, Then::Closes)]);
    let reply = story.get("/", &UPGRADE);
    assert_eq!((reply.interims[0].status, reply.verdict()), (101, (CacheVerdict::Pipe, "")));
    assert_eq!((reply.asked(), reply.asked_with("upgrade")), (vec!["GET /".to_owned()], Some("websocket")));
}

#[test]
fn a_tunnel_that_has_ended_makes_room_for_the_next() {
    let story = Story::with(|settings| settings.limits.tunnels_max = 1);
    story.origin([wire(SWITCHING, Then::Closes)]);
    for _ in 0..2 {
        let reply = story.get("/", &UPGRADE);
        assert_eq!((reply.interims.len(), reply.verdict()), (1, (CacheVerdict::Pipe, "")));
    }
    let none = Story::with(|settings| settings.limits.tunnels_max = 0).get("/", &UPGRADE);
    assert_eq!((none.status(), none.verdict().1, none.asked().len()), (503, "tunnels-too-many", 0));
}

#[test]
fn a_connection_that_was_piped_in_place_of_varnishd_carries_no_other_request() {
    let story = Story::vcl_with("sub vcl_recv { return (pipe); }", |settings| settings.as_varnishd = true);
    story.origin([answer(200, &[], "plain")]);
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.verdict().0), (0, CacheVerdict::Pipe));
    let (goes_on, why) = reply.ended.expect("it has ended");
    assert_eq!((goes_on, format!("{why:?}").as_str()), (false, "Pipe"));
}

#[test]
fn a_body_that_nobody_wants_is_read_in_place_of_varnishd_or_ends_the_connection_where_it_is_too_long() {
    let story = Story::vcl_with("sub vcl_recv { return (synth(200)); }", |settings| {
        settings.as_varnishd = true;
        settings.limits.linger_bytes_max = 3;
    });
    assert_eq!(story.ask("POST /", &[], "pie").field("connection"), "");
    assert_eq!(story.ask("POST /", &[], "pies").field("connection"), "close");
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_body_that_the_program_reads_gets_nothing_and_no_origin_is_asked() {
    let story = Story::vcl("import std; sub vcl_recv { std.cache_req_body(10KB); }");
    let bytes = b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9\r\n\r\npie";
    let reply = story.send_as(bytes, Manner { leaves: true, ..Manner::default() });
    assert_eq!((reply.status(), reply.verdict().1, reply.asked().len()), (0, "client-left", 0));
}

#[test]
fn an_origin_that_hangs_up_instead_of_switching_is_502() {
    let story = Story::builtin();
    story.origin([wire("", Then::Closes)]);
    assert_eq!(story.get("/", &["Connection: Upgrade", "Upgrade: echo"]).status(), 502);
}
