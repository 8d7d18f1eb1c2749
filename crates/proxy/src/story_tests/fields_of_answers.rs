//! Fields that a route takes out of answers or puts into them, of what is stored and of what is not.

use super::what_routes_say::{line, names, with};
use super::*;
use crate::settings::AnswerFields;

/// What a site says of its pages is not said of their errors, which a browser would keep as long.
#[test]
fn what_is_kept_to_success_is_said_of_no_error_stored_or_not() {
    let kept = |name: &str, value: &str| {
        let mut kept = line(name, value);
        kept.keep_to_success();
        kept
    };
    let answer_fields = AnswerFields {
        set: vec![kept("Cache-Control", "max-age=5"), line("X-All", "1")],
        added: vec![kept("X-Added", "1")],
        missing: vec![kept("X-Missing", "1")],
        ..AnswerFields::default()
    };
    let story = with(RouteRules { answer_fields, ..RouteRules::default() });
    for (status, path, is_said) in [(200, "/a", true), (404, "/b", false), (301, "/c", true), (500, "/d", false)] {
        story.origin([answer(status, &["Cache-Control: max-age=60"], "page")]);
        for asked in [1, 0] {
            let reply = story.get(path, &[]);
            let said = ["x-added", "x-missing", "x-all", "cache-control"].map(|name| reply.field(name));
            let expect = if is_said { ["1", "1", "1", "max-age=5"] } else { ["", "", "1", "max-age=60"] };
            assert_eq!(said, expect, "{path} asked {asked}");
        }
    }
}

#[test]
fn answers_get_fields_and_lose_them_stored_or_not() {
    let answer_fields = AnswerFields {
        removed: names(&["server", "x-powered-by", "via", "cache-status"]),
        set: vec![line("Cache-Control", "max-age=5"), line("X-Path", "$uri")],
        missing: vec![line("X-Frame-Options", "DENY"), line("Content-Type", "text/plain")],
        ..AnswerFields::default()
    };
    let story = with(RouteRules { answer_fields, ..RouteRules::default() });
    let lines = ["Cache-Control: max-age=60", "Server: x", "X-Powered-By: y", "Content-Type: text/html", "X-Path: z"];
    story.origin([answer(200, &lines, "page")]);
    for asked in [1, 0] {
        let reply = story.get("/p", &[]);
        let said = [
            "server",
            "x-powered-by",
            "via",
            "cache-status",
            "cache-control",
            "x-path",
            "x-frame-options",
            "content-type",
        ];
        let said = said.map(|name| reply.field(name));
        assert_eq!(reply.asked().len(), asked);
        assert_eq!(said, ["", "", "", "", "max-age=5", "/p", "DENY", "text/html"]);
    }
    let none = story.get("/p", &["If-None-Match: \"x\"", "Range: bytes=0-1"]);
    assert_eq!(
        (none.status(), none.field("cache-control"), none.field("server")),
        (206, "max-age=5".to_owned(), String::new())
    );
    story.origin([answer(500, &["Server: x"], "")]);
    let error = story.get("/q", &[]);
    assert_eq!(
        (error.status(), error.field("server"), error.field("x-frame-options")),
        (500, String::new(), "DENY".to_owned())
    );
}
