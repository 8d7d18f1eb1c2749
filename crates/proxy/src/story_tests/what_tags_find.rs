//! Tags of responses without a program, and bans on the URL that a response was fetched for.

use cache::Purge;

use super::*;
use crate::response_tags;
use crate::vcl_story::bans;

fn purged(story: &Story, tag: &str) -> usize {
    let cache = &story.core.shared.cache;
    cache.purge_tags(&response_tags::keys_of(cache, tag), Purge::Hard, story.core.now())
}

#[test]
fn what_carries_a_tag_goes_by_it_and_the_client_sees_the_field() {
    for (field, tag) in [("Surrogate-Key", "Menu"), ("Cache-Tag", "menu"), ("xkey", "Menu")] {
        let story = Story::builtin();
        let line = format!("{field}: product-7 Menu");
        story.origin([answer(200, &["Cache-Control: max-age=60", &line], "page"), fresh(60, "other")]);
        assert_eq!(story.get("/a", &[]).field(field), "product-7 Menu");
        story.get("/b", &[]);
        let hit = story.get("/a", &[]);
        assert!(hit.asked().is_empty() && hit.field(field) == "product-7 Menu", "{field}");
        assert_eq!(story.core.shared.cache.stats().tags, 2, "{field}");
        assert_eq!((purged(&story, "menus"), purged(&story, tag), purged(&story, tag)), (0, 1, 0), "{field}");
        assert_eq!([story.get("/a", &[]).asked().len(), story.get("/b", &[]).asked().len()], [1, 0], "{field}");
    }
}

#[test]
fn what_was_confirmed_carries_the_tags_that_it_says_then() {
    let story = Story::builtin();
    let first = answer(200, &["Cache-Control: max-age=1", "ETag: \"a\"", "Surrogate-Key: old"], "page");
    let confirmed = answer(304, &["Cache-Control: max-age=60", "ETag: \"a\"", "Surrogate-Key: new"], "");
    story.origin([first, confirmed]);
    story.get("/", &[]);
    story.pass_seconds(5);
    assert_eq!(story.get("/", &[]).asked().len(), 1);
    assert_eq!((purged(&story, "old"), purged(&story, "new")), (0, 1));
}

#[test]
fn what_has_too_many_tags_is_not_stored_and_says_so() {
    let story = Story::builtin();
    let tags: Vec<String> = (0..=cache::limits::TAGS_MAX).map(|n| format!("t{n}")).collect();
    let line = format!("Surrogate-Key: {}", tags.join(" "));
    story.origin([answer(200, &["Cache-Control: max-age=60", &line], "page")]);
    let reply = story.get("/", &[]);
    assert!(reply.field("cache-status").contains("tags-too-many"), "{}", reply.field("cache-status"));
    assert_eq!(story.get("/", &[]).asked().len(), 1);
}

#[test]
fn a_ban_on_the_url_needs_no_request() {
    let ban =
        |story: &Story, text: &str| bans::ban(&story.core.shared, text.as_bytes(), story.core.now()).expect("a ban");
    for (text, expect) in [
        ("obj.url ~ ^/a", [1, 0]),
        ("obj.url == /b?x=1", [0, 1]),
        ("obj.host == a.test", [1, 1]),
        ("obj.host == b.test", [0, 0]),
        ("obj.full_url ~ ^a\\.test/b", [0, 1]),
        ("obj.url !~ ^/a", [0, 1]),
    ] {
        let story = Story::builtin();
        story.origin([fresh(60, "page")]);
        ["/a", "/b?x=1"].iter().for_each(|path| drop(story.get(path, &[])));
        ban(&story, text);
        while !story.core.shared.cache.work_off_bans(100).is_idle {}
        assert_eq!(story.core.shared.cache.stats().banned, expect.iter().sum::<u64>(), "{text}: worked off behind");
        let asked = ["/a", "/b?x=1"].map(|path| story.get(path, &[]).asked().len() as u64);
        assert_eq!(asked, expect, "{text}");
    }
}
