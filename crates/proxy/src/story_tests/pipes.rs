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
fn a_client_that_leaves_in_the_middle_of_a_body_that_the_program_reads_gets_nothing_and_no_origin_is_asked() {
    let story = Story::vcl("import std; sub vcl_recv { std.cache_req_body(10KB); }");
    let bytes = b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9\r\n\r\npie";
    let reply = story.send_as(bytes, Manner { leaves: true, ..Manner::default() });
    assert_eq!((reply.status(), reply.verdict().1, reply.asked().len()), (0, "client-left", 0));
}
