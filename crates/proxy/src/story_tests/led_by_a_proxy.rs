//! What a forward proxy is asked, with and without credentials. It asks another proxy, which is mocked.

use base64::Engine;

use super::*;
use crate::settings::{ListenMode, ParentSettings};
use crate::static_files::finding::tests::TestFolder;

/// `htpasswd -nbB -C 4 ann secret`, behind the name.
const HASH: &str = "$2y$04$5NSSZIpLDFpBBYhR/Sbade1CozX8FF/a1rpjazVCxqeWISC5WrWKC";

/// A proxy for everybody.
fn proxy(change: impl FnOnce(&mut Settings)) -> Story {
    Story::with(|settings| {
        let url = settings.origins[0].urls[0].clone();
        settings.forward.parents = vec![ParentSettings { url, weight: 1, login_file: None, login: None }];
        settings.forward.never_direct = true;
        change(settings);
    })
}

/// A file of users, whose password is `secret`.
pub(super) fn write_users(folder: &TestFolder, users: &[&str]) {
    folder.write("users", &users.iter().map(|user| format!("{user}:{HASH}\n")).collect::<String>());
}

/// A proxy for users of this file, whose password is `secret`.
pub(super) fn proxy_of_users(folder: &TestFolder, users: &[&str]) -> Story {
    write_users(folder, users);
    proxy(|settings| settings.forward.password_file = Some(folder.path("users")))
}

/// Asks the proxy; who is not known has no name.
pub(super) fn ask(story: &Story, line: &str, user: &str, leaves: bool) -> Reply {
    let login = base64::engine::general_purpose::STANDARD.encode(format!("{user}:secret"));
    let login = if user.is_empty() { String::new() } else { format!("Proxy-Authorization: Basic {login}\r\n") };
    let bytes = format!("{line} HTTP/1.1\r\nHost: a.test\r\n{login}\r\n");
    story.send_as(bytes.as_bytes(), Manner { leaves, mode: ListenMode::Forward })
}

#[test]
fn a_url_is_fetched_by_the_next_proxy_and_stored() {
    let story = proxy(|_| {});
    story.origin([fresh(60, "page")]);
    let reply = ask(&story, "GET http://a.test/x", "", false);
    assert_eq!((reply.status(), reply.body(), reply.verdict().0), (200, "page", CacheVerdict::Miss));
    assert_eq!((reply.asked(), reply.asked_with("host")), (vec!["GET /x".to_owned()], Some("a.test")));
    let hit = ask(&story, "GET http://a.test/x", "", false);
    assert_eq!((hit.body(), hit.verdict().0, hit.asked().len()), ("page", CacheVerdict::Hit, 0));
}

#[test]
fn a_tunnel_is_asked_of_the_next_proxy_and_opened_behind_its_200() {
    let story = proxy(|_| {});
    story.origin([wire("HTTP/1.1 200 OK\r\n\r\n", Then::Closes)]);
    let reply = ask(&story, "CONNECT a.test:443", "", false);
    assert_eq!((reply.asked().len(), reply.asked_with("host")), (1, Some("a.test:443")));
    assert_eq!((reply.interims[0].status, reply.verdict()), (200, (CacheVerdict::Pipe, "")));
}

#[test]
fn a_tunnel_that_the_next_proxy_refuses_is_refused() {
    let story = proxy(|_| {});
    story.origin([answer(403, &[], "no")]);
    let reply = ask(&story, "CONNECT a.test:443", "", false);
    assert_eq!((reply.status(), reply.verdict()), (403, (CacheVerdict::Refused, "forward-parent-refused")));
}

#[test]
fn what_is_no_whole_url_is_400_and_asks_nobody() {
    let reply = ask(&proxy(|_| {}), "GET /x", "", false);
    assert_eq!((reply.status(), reply.verdict().1), (400, "forward-wants-absolute-form"));
    assert!(reply.asked().is_empty());
}

#[test]
fn a_user_is_led_wherever_anybody_is_and_the_password_stays_here() {
    let folder = TestFolder::new("story-users");
    let story = proxy_of_users(&folder, &["ann", "bob", "cid", "dan"]);
    story.origin([fresh(60, "page")]);
    let reply = ask(&story, "GET http://a.test/x", "ann", false);
    assert_eq!((reply.status(), reply.body(), reply.asked().len()), (200, "page", 1));
    assert_eq!(reply.asked_with("proxy-authorization"), None);
    let posted = ask(&story, "POST http://a.test/x", "bob", false);
    assert_eq!((posted.status(), posted.verdict()), (200, (CacheVerdict::Pass, "method")));
    assert_eq!(ask(&story, "PURGE http://a.test/x", "cid", false).status(), 200);
    story.origin([wire("HTTP/1.1 200 OK\r\n\r\n", Then::Closes)]);
    assert_eq!(ask(&story, "CONNECT a.test:443", "dan", false).interims[0].status, 200);
}

#[test]
fn who_is_no_user_is_407_with_a_challenge_and_nobody_is_asked() {
    let folder = TestFolder::new("story-strangers");
    let story = proxy_of_users(&folder, &["ann"]);
    for user in ["", "eve"] {
        let reply = ask(&story, "GET http://a.test/x", user, false);
        assert_eq!((reply.status(), reply.asked().len()), (407, 0), "{user}");
        assert!(reply.field("proxy-authenticate").starts_with("Basic "), "{user}");
    }
}

#[test]
fn a_user_who_leaves_while_the_password_is_verified_asks_nobody() {
    let folder = TestFolder::new("story-leaver");
    let reply = ask(&proxy_of_users(&folder, &["ann"]), "GET http://a.test/x", "ann", true);
    assert_eq!((reply.status(), reply.verdict().1, reply.asked().len()), (0, "client-left", 0));
}
