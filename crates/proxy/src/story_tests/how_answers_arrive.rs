//! In which pieces an answer comes of its origin, and what is sent before it.

use super::*;

/// Text of so many bytes that never repeats itself soon.
fn text(bytes: usize) -> String {
    (0..).map(|n| format!("{n} ")).flat_map(String::into_bytes).take(bytes).map(char::from).collect()
}

/// What a client gets and the next one after it, and how many requests an origin saw, when it answers so.
fn check_stored(text: &str, head: &str, body: &str) {
    let story = Story::builtin();
    story.origin([wire(&format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{head}\r\n{body}"), Then::Closes)]);
    let first = story.get("/", &[]);
    let second = story.get("/", &[]);
    assert!(first.body() == text, "{head:?}: {} bytes", first.body().len());
    assert!(second.body() == text, "{head:?}: {} bytes", second.body().len());
    assert_eq!((first.asked().len(), second.asked().len()), (1, 0), "{head:?}");
}

#[test]
fn a_body_of_many_blocks_arrives_as_it_was_sent_and_is_stored_however_it_is_framed() {
    let text = text(500_000);
    let chunks: String = text.as_bytes().chunks(40_007).map(chunk).collect();
    check_stored(&text, "Transfer-Encoding: chunked\r\n", &format!("{chunks}0\r\n\r\n"));
    check_stored(&text, "Content-Length: 500000\r\n", &text);
    check_stored(&text, "", &text);
}

fn chunk(bytes: &[u8]) -> String {
    format!("{:x}\r\n{}\r\n", bytes.len(), String::from_utf8_lossy(bytes))
}

#[test]
fn a_body_that_is_not_stored_arrives_whole_however_far_its_origin_is_ahead() {
    let text = text(1 << 20);
    let story = Story::builtin();
    story.origin([pooled(&["Cache-Control: no-store"], &text, Then::Closes)]);
    let reply = story.get("/", &[]);
    assert!(reply.status() == 200 && reply.body() == text, "{} bytes", reply.body().len());
}

#[test]
fn where_others_have_left_no_room_a_body_arrives_whole_by_small_pieces() {
    let text = text(300_000);
    let story = Story::with(|settings| settings.memory_bytes_max = 8 << 20);
    let _others = story.core.shared.cache.account().charge(9 << 20);
    for head in ["Content-Length: 300000\r\n", "Cache-Control: no-store\r\nContent-Length: 300000\r\n", ""] {
        story.origin([wire(&format!("HTTP/1.1 200 OK\r\n{head}\r\n{text}"), Then::Closes)]);
        let reply = story.get("/", &[]);
        assert!(reply.status() == 200 && reply.body() == text, "{head:?}: {} bytes", reply.body().len());
    }
}

#[test]
fn two_who_share_a_body_that_turns_out_too_long_to_be_kept_both_get_all_of_it() {
    let text = text(300_000);
    let story = Story::with(|settings| {
        settings.limits.object_bytes_max = 50_000;
        settings.limits.window_bytes_max = 1_000;
    });
    story.origin([wire(&format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\n{text}"), Then::Closes)]);
    let (bodies, asked) = story.get_together("/");
    assert!(bodies.iter().all(|body| *body == text), "{:?}", bodies.map(|body| body.len()));
    assert_eq!(asked, 1);
}

#[test]
fn early_hints_reach_the_client_before_the_answer_that_they_are_about() {
    for line in ["GET /", "POST /"] {
        let story = Story::builtin();
        let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
        story.origin([wire(&format!("{hints}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"), Then::Closes)]);
        let reply = story.ask(line, &[], "");
        assert_eq!((reply.status(), reply.body(), reply.interims.len()), (200, "page", 1), "{line}");
        let interim = &reply.interims[0];
        let link = ("Link".to_owned(), "</a.css>".to_owned());
        assert_eq!((interim.status, &interim.fields), (103, &vec![link]), "{line}");
    }
}

#[test]
fn a_100_that_nobody_waits_for_reaches_no_client() {
    let story = Story::builtin();
    story.origin([wire("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage", Then::Closes)]);
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.body(), reply.interims.len()), (200, "page", 0));
}
