//! Requests that bring the field of `[admin] explain_header`.

use super::*;
use crate::settings::ExplainField;

const TOKEN: &str = "0123456789abcdef";
const RIGHT: &str = "X-Why: 0123456789abcdef";
const WRONG: &str = "X-Why: 0123456789abcdeg";

fn explains(settings: &mut Settings) {
    settings.explain_field = Some(Arc::new(ExplainField { name: "x-why".into(), token: TOKEN.into() }));
}

fn told(reply: &Reply) -> String {
    reply.field("larder-explain")
}

#[test]
fn who_brings_the_token_is_told_and_nobody_else() {
    let story = Story::with(explains);
    story.origin([fresh(60, "page")]);
    let miss = story.get("/a?b=1", &[RIGHT]);
    let text = told(&miss);
    assert!(text.starts_with("class=miss, would-be=miss, route=\"/\", target=\"origin "), "{text}");
    assert!(text.contains("key=\"http://a.test/a?b=1\"") && text.contains("because=\"uri-miss\""), "{text}");
    assert_eq!((miss.asked().len(), miss.asked_with("x-why")), (1, None), "no origin sees it");
    let hit = story.get("/a?b=1", &[RIGHT]);
    let text = told(&hit);
    assert!(text.starts_with("class=hit, would-be=hit, ") && text.contains("fresh-by=\"Cache-Control: max-age=60\""));
    assert!(text.contains("fresh-until=\"") && hit.asked().is_empty() && hit.body() == "page", "{text}");
    assert_eq!(hit.field("cache-control"), "max-age=60, private", "no cache on the way keeps it for others");
    for lines in [&[][..], &[WRONG], &["X-Why: "], &[RIGHT, RIGHT]] {
        let reply = story.get("/a?b=1", lines);
        assert_eq!(reply.field("cache-control"), "max-age=60");
        assert_eq!((told(&reply).as_str(), reply.verdict().0, reply.body()), ("", CacheVerdict::Hit, "page"));
    }
}

#[test]
fn nothing_of_it_is_stored_or_selects_what_is() {
    let story = Story::with(explains);
    story.origin([answer(200, &["Cache-Control: max-age=60", "Vary: X-Why"], "page")]);
    assert!(!told(&story.get("/", &[RIGHT])).is_empty());
    for lines in [&[][..], &[WRONG], &[RIGHT]] {
        let reply = story.get("/", lines);
        assert!(reply.asked().is_empty(), "{lines:?}");
        assert_eq!(told(&reply).is_empty(), lines != [RIGHT]);
    }
    let wrong = story.get("/other", &[WRONG]);
    assert_eq!((wrong.asked().len(), wrong.asked_with("x-why")), (1, None));
}

#[test]
fn the_reason_is_told_with_what_it_is_about() {
    let story = Story::with(explains);
    story.origin([answer(200, &["Cache-Control: no-store"], "page")]);
    let text = told(&story.get("/", &[RIGHT]));
    assert!(text.contains(", why=no-store, would-be=miss") && text.contains("because=\"uri-miss\""), "{text}");
    let text = told(&story.get("/", &[RIGHT]));
    assert!(text.starts_with("class=pass, why=hit-for-miss, would-be=pass, "), "{text}");
    assert!(text.contains("because=\"hit-for-miss\", means=\"The last answer"), "{text}");
    let refused = story.ask("BREW /", &[RIGHT], "");
    assert!(told(&refused).contains("would-be="), "{}", told(&refused));
}

#[test]
fn a_program_never_sees_it() {
    let text = "sub vcl_recv { if (req.http.x-why) { return (synth(500)); } } \
                sub vcl_deliver { if (req.http.x-why) { set resp.status = 500; } }";
    let story = Story::vcl_with(text, explains);
    story.origin([fresh(60, "page")]);
    for (lines, begins) in
        [(&[RIGHT][..], "class=miss, would-be=program"), (&[RIGHT], "class=hit, would-be=program"), (&[WRONG], "")]
    {
        let reply = story.get("/", lines);
        assert_eq!((reply.status(), reply.asked_with("x-why")), (200, None));
        assert!(told(&reply).starts_with(begins) && told(&reply).is_empty() == begins.is_empty(), "{}", told(&reply));
    }
}

#[test]
fn without_the_setting_the_field_is_as_any_other() {
    let story = Story::builtin();
    story.origin([fresh(60, "page")]);
    let reply = story.get("/", &[RIGHT]);
    assert_eq!((told(&reply).as_str(), reply.asked_with("x-why")), ("", Some(TOKEN)));
}
