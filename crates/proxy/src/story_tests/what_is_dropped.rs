//! What takes stored responses away.

use super::*;

fn stored(paths: &[&str]) -> Story {
    let story = Story::builtin();
    story.origin([fresh(60, "page")]);
    paths.iter().for_each(|path| assert_eq!(story.get(path, &[]).asked().len(), 1));
    story
}

fn is_stored(story: &Story, path: &str) -> bool {
    story.get(path, &["Cache-Control: only-if-cached"]).status() == 200
}

#[test]
fn a_purge_takes_one_url_and_no_other() {
    let story = stored(&["/a", "/b"]);
    assert!(story.ask("PURGE /a", &[], "").body().contains("dropped: 1"));
    assert!(!is_stored(&story, "/a") && is_stored(&story, "/b"));
}

#[test]
fn a_purge_takes_what_was_asked_for_by_the_other_scheme() {
    let story = Story::with(|settings| settings.trusted_proxies = crate::settings::Network::LOOPBACK.to_vec());
    story.origin([answer(200, &["Cache-Control: max-age=60", "Cache-Groups: \"a\""], "page")]);
    let secure = "X-Forwarded-Proto: https";
    let is_hit = |fields: &[&str]| story.get("/", fields).asked().is_empty();
    let purges: [&[&str]; 2] = [&[], &["Cache-Group-Invalidation: \"a\""]];
    for (stored, purged) in [(&[secure][..], &[][..]), (&[], &[secure])] {
        for groups in purges {
            story.get("/", stored);
            assert!(is_hit(stored), "{stored:?}");
            assert_eq!(story.ask("PURGE /", &[purged, groups].concat(), "").status(), 200);
            assert!(!is_hit(stored), "{stored:?} {groups:?}");
        }
    }
    // The port that goes without saying for the one is said to the other.
    story.get("/", &[secure]);
    assert_eq!(story.ask("PURGE http://a.test:443/", &[], "").status(), 200);
    assert!(!is_hit(&[secure]));
}

#[test]
fn a_purge_takes_all_variants() {
    let story = Story::builtin();
    story.origin([answer(200, &["Cache-Control: max-age=60", "Vary: X-A"], "page")]);
    story.get("/", &["X-A: 1"]);
    story.get("/", &["X-A: 2"]);
    assert!(story.ask("PURGE /", &[], "").body().contains("dropped: 2"));
}

#[test]
fn a_purge_from_elsewhere_is_refused_and_takes_nothing() {
    let story = Story::with(|settings| settings.policy.purge_from.clear());
    story.origin([fresh(60, "page")]);
    story.get("/", &[]);
    assert_eq!(story.ask("PURGE /", &[], "").status(), 403);
    assert!(is_stored(&story, "/"));
}

#[test]
fn a_purge_that_was_forwarded_by_nobody_we_trust_is_refused() {
    let story = stored(&["/"]);
    assert_eq!(story.ask("PURGE /", &["X-Forwarded-For: 192.0.2.7"], "").status(), 403);
    assert!(is_stored(&story, "/"));
}

#[test]
fn an_unsafe_request_that_succeeds_takes_its_target_away() {
    let story = stored(&["/"]);
    story.origin([answer(204, &[], "")]);
    assert_eq!(story.ask("POST /", &[], "x").status(), 204);
    assert!(!is_stored(&story, "/"));
}

#[test]
fn an_unsafe_request_that_fails_takes_nothing_away() {
    let story = stored(&["/"]);
    story.origin([answer(500, &[], "no")]);
    assert_eq!(story.ask("POST /", &[], "x").status(), 500);
    assert!(is_stored(&story, "/"));
}

#[test]
fn an_unsafe_request_takes_the_location_that_it_names_away() {
    let story = stored(&["/list", "/other"]);
    story.origin([answer(201, &["Location: /list"], "")]);
    story.ask("POST /new", &[], "x");
    assert!(!is_stored(&story, "/list") && is_stored(&story, "/other"));
}

#[test]
fn a_location_on_another_host_is_left_alone() {
    let story = stored(&["/list"]);
    story.origin([answer(201, &["Location: http://b.test/list"], "")]);
    story.ask("POST /new", &[], "x");
    assert!(is_stored(&story, "/list"));
}

#[test]
fn cache_groups_are_invalidated_by_their_names() {
    let story = Story::builtin();
    story.origin([answer(200, &["Cache-Control: max-age=60", "Cache-Groups: \"a\""], "page")]);
    story.get("/", &[]);
    let reply = story.ask("PURGE /", &["Cache-Group-Invalidation: \"a\""], "");
    assert!(reply.body().contains("groups invalidated on this host: 1"), "{}", reply.body());
    assert!(!is_stored(&story, "/"));
}

#[test]
fn groups_that_cannot_be_read_are_400() {
    assert_eq!(stored(&["/"]).ask("PURGE /", &["Cache-Group-Invalidation: a b"], "").status(), 400);
}
