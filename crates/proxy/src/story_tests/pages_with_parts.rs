//! Pages with parts (ESI) by the built-in policy: who may have them, what their parts are asked with, and where they end.

use super::led_by_a_proxy::write_users;
use super::what_routes_say::ANN;
use super::*;
use crate::settings::{CookieRules, EsiPages, EsiSettings, FieldEdits, FieldLine, FieldTemplate, Login, RouteAccess};
use crate::static_files::finding::tests::TestFolder;

const ASKS: &str = "Surrogate-Control: max-age=60, content=\"ESI/1.0\"";

/// Pages that ask for it may have parts, which are asked for one after the other.
fn surrogate(change: impl FnOnce(&mut Settings)) -> Story {
    Story::with(|settings| {
        settings.esi.pages = EsiPages::Surrogate;
        settings.limits.esi_ahead_max = 1;
        change(settings);
    })
}

fn page(body: &str) -> MockedAnswer {
    answer(200, &[ASKS, "Cache-Control: max-age=5", "ETag: \"page\""], body)
}

fn check_end(reply: &Reply, body: &str, end: End, why: &str) {
    assert_eq!((reply.body(), reply.end(), reply.verdict().1), (body, end, why));
}

const FAILED: End = End::Cut("esi-include-failed");

#[test]
fn a_page_that_asks_for_it_is_put_together_and_each_part_lives_by_its_own_rules() {
    let story = surrogate(|_| {});
    let part = |text: &str| answer(200, &["Cache-Control: no-store"], text);
    story.origin([page("a<esi:include src=\"/part?x=1\"/>b"), part("[1]"), part("[2]"), part("[3]")]);
    let reply = story.get("/page", &[]);
    assert_eq!(
        (reply.status(), reply.body(), reply.asked()),
        (200, "a[1]b", vec!["GET /page".into(), "GET /part?x=1".into()])
    );
    assert_eq!(reply.asked_with("surrogate-capability"), Some("larder=\"Surrogate/1.0 ESI/1.0\""));
    assert_eq!((reply.field("surrogate-control"), reply.field("cache-control")), (String::new(), "max-age=5".into()));
    let reply = story.get("/page", &[]);
    assert_eq!((reply.body(), reply.asked()), ("a[2]b", vec!["GET /part?x=1".to_owned()]), "the page is stored");
    assert_eq!(reply.log_lines.lines().count(), 1, "a part has no line of its own: {}", reply.log_lines);
    // Its origin's tag is that of the text alone.
    let reply = story.get("/page", &["If-None-Match: \"page\"", "Range: bytes=0-0"]);
    assert_eq!((reply.status(), reply.body(), reply.field("etag")), (200, "a[3]b", String::new()));
    story.pass_seconds(61);
    let asked = story.get("/page", &[]).asked;
    let asked = asked[0].request.as_ref().unwrap();
    assert_eq!(asked.field("if-none-match"), Some("\"page\""), "the text is confirmed by its tag");
}

#[test]
fn a_page_that_is_stored_has_no_parts_from_where_they_are_turned_off() {
    let story = surrogate(|_| {});
    const TEXT: &str = "a<esi:include src=\"/part\"/>b";
    story.origin([page(TEXT), answer(200, &["Cache-Control: no-store"], "[1]")]);
    assert_eq!(story.get("/page", &[]).body(), "a[1]b");
    story.reload(|settings| settings.esi.pages = EsiPages::None);
    let reply = story.get("/page", &[]);
    assert_eq!((reply.body(), reply.asked().len()), (TEXT, 0));
    story.reload(|settings| settings.esi.pages = EsiPages::Surrogate);
    assert_eq!(story.get("/page", &[]).body(), "a[1]b");
}

#[test]
fn what_did_not_ask_is_not_looked_through_nor_is_anything_where_it_is_not_allowed() {
    const TEXT: &str = "<p>a<esi:include src=\"/part\"/>b";
    let story = surrogate(|_| {});
    story.origin([answer(200, &["Cache-Control: max-age=60", "Content-Type: text/html"], TEXT)]);
    assert_eq!(story.get("/page", &[]).body(), TEXT, "a stranger's text");
    story.origin([answer(200, &["Cache-Control: max-age=60", "Surrogate-Control: content=\"ESI/1.0\";other"], TEXT)]);
    assert_eq!(story.get("/aimed-elsewhere", &[]).body(), TEXT);
    story.origin([answer(200, &[ASKS, "Content-Encoding: br"], TEXT)]);
    assert_eq!(story.get("/coded", &["Accept-Encoding: br"]).body(), TEXT);
    let story = Story::builtin();
    story.origin([page(TEXT)]);
    let reply = story.get("/page", &[]);
    assert_eq!((reply.body(), reply.asked_with("surrogate-capability")), (TEXT, Some("larder=\"Surrogate/1.0\"")));
    assert_eq!(reply.field("surrogate-control"), "max-age=60, content=\"ESI/1.0\"");
    let story = surrogate(|settings| settings.routes[0].esi = Some(EsiPages::None));
    story.origin([page(TEXT)]);
    let reply = story.get("/page", &[]);
    assert_eq!((reply.body(), reply.asked_with("surrogate-capability")), (TEXT, Some("larder=\"Surrogate/1.0\"")));
}

#[test]
fn a_route_may_have_all_its_markup_looked_through() {
    let check = |lines: &[&str], expect: &str| {
        let story = surrogate(|settings| settings.routes[0].esi = Some(EsiPages::All));
        story.origin([answer(200, lines, "a<esi:remove>-</esi:remove>b")]);
        assert_eq!(story.get("/page", &[]).body(), expect, "{lines:?}");
    };
    check(&["Content-Type: text/html"], "ab");
    check(&["Content-Type: application/json"], "a<esi:remove>-</esi:remove>b");
    check(&["Content-Type: text/html", "Cache-Control: no-transform"], "a<esi:remove>-</esi:remove>b");
}

#[test]
fn a_page_that_is_not_stored_has_parts_whenever_it_is_asked_for() {
    let story = surrogate(|_| {});
    for _ in 0..2 {
        let lines = ["Surrogate-Control: no-store, content=\"ESI/1.0\"", "ETag: \"1\""];
        story.origin([answer(200, &lines, "a<esi:include src=\"/part\"/>b"), fresh(60, "[1]")]);
        let reply = story.get("/page", &[]);
        assert_eq!((reply.status(), reply.body(), reply.field("etag")), (200, "a[1]b", String::new()));
        assert_eq!(reply.asked_with("surrogate-capability"), Some("larder=\"Surrogate/1.0 ESI/1.0\""));
    }
    assert_eq!(story.get("/page", &[]).verdict().1, "hit-for-miss");
    let reply = story.ask("HEAD /page", &[], "");
    assert_eq!((reply.status(), reply.body(), reply.field("surrogate-control")), (200, "", String::new()));
}

#[test]
fn a_part_is_asked_for_without_what_says_who_the_client_is_unless_that_is_said() {
    let lines = ["Cookie: a=1", "Authorization: Basic eDp5", "Accept-Language: de", "If-None-Match: \"x\""];
    let sent = |settings: EsiSettings, src: &str| {
        let story = surrogate(|site| site.esi = EsiSettings { pages: EsiPages::Surrogate, ..settings });
        story.origin([page(&format!("<esi:include src=\"{src}\"/>")), answer(200, &[], "part")]);
        let reply = story.get("/page", &lines);
        let part = reply.asked[1].request.as_ref().expect("a part is asked for");
        let names = ["host", "cookie", "authorization", "accept-language", "if-none-match"];
        names.map(|name| part.field(name).unwrap_or("-").to_owned()).join(" ")
    };
    let none = EsiSettings::default();
    let all = EsiSettings {
        hosts: vec!["b.test".to_owned()],
        passes_cookies: true,
        passes_authorization: true,
        ..EsiSettings::default()
    };
    assert_eq!(sent(none.clone(), "/part"), "a.test - - de -");
    assert_eq!(sent(EsiSettings { passes_cookies: true, ..none }, "/part"), "a.test a=1 - de -");
    assert_eq!(sent(all.clone(), "http://a.test/part"), "a.test a=1 Basic eDp5 de -");
    assert_eq!(sent(all, "https://b.test/part"), "b.test - - de -", "another host is not who the client speaks to");
}

#[test]
fn a_part_that_was_asked_for_with_a_cookie_is_nobody_else_s() {
    let story = surrogate(|settings| settings.esi.passes_cookies = true);
    let part = |text: &str| answer(200, &["Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT"], text);
    story.origin([page("<esi:include src=\"/part\"/>"), part("[1]"), part("[2]")]);
    assert_eq!(story.get("/page", &["Cookie: a=1"]).body(), "[1]");
    assert_eq!(story.get("/page", &["Cookie: a=2"]).body(), "[2]");
}

/// A route beside the first one.
fn beside(settings: &mut Settings, path: &str, rules: RouteRules) {
    let route = RouteSettings { path_prefix: path.to_owned(), rules: Arc::new(rules), ..settings.routes[0].clone() };
    settings.routes.push(route);
}

fn asked_with<'a>(reply: &'a Reply, at: usize, name: &str) -> Option<&'a str> {
    reply.asked[at].request.as_ref().and_then(|head| head.field(name))
}

#[test]
fn what_is_cut_of_the_request_for_a_page_is_not_cut_for_its_parts() {
    let story = surrogate(|settings| {
        settings.esi.passes_cookies = true;
        let cookies = CookieRules { kept: Some(Vec::new()), ..CookieRules::default() };
        settings.routes[0].rules = Arc::new(RouteRules { cookies, ..RouteRules::default() });
        beside(settings, "/mine", RouteRules::default());
    });
    let part = |text: &str| answer(200, &["Cache-Control: no-store"], text);
    story.origin([page("a<esi:include src=\"/mine\"/><esi:include src=\"/all\"/>b"), part("[1]"), part("[2]")]);
    let reply = story.get("/page", &["Cookie: sid=1"]);
    assert_eq!(reply.body(), "a[1][2]b");
    assert_eq!([0, 1, 2].map(|at| asked_with(&reply, at, "cookie")), [None, Some("sid=1"), None]);
    story.origin([part("[3]"), part("[4]")]);
    let reply = story.get("/page", &["Cookie: sid=2"]);
    assert_eq!((reply.body(), asked_with(&reply, 0, "cookie")), ("a[3][4]b", Some("sid=2")), "of the stored page, too");
}

#[test]
fn who_has_come_in_to_a_page_is_in_for_its_parts_that_want_the_same() {
    let folder = TestFolder::new("parts-behind-a-login");
    write_users(&folder, &["ann"]);
    let of = |realm: &str| {
        let login = Some(Login { file: folder.path("users"), realm: realm.to_owned() });
        RouteRules { access: RouteAccess { login, ..RouteAccess::default() }, ..RouteRules::default() }
    };
    let story = surrogate(|settings| {
        settings.esi.passes_authorization = true;
        settings.routes[0].rules = Arc::new(of("the house"));
        beside(settings, "/cellar", of("the cellar"));
        beside(settings, "/street", RouteRules::default());
    });
    let include = |path: &str| format!("<esi:include src=\"{path}\" onerror=\"continue\"/>");
    let text = ["/room", "/cellar", "/street"].map(include).concat();
    story.origin([page(&text), answer(200, &[], "room "), answer(200, &[], "street ")]);
    let reply = story.get("/page", &[ANN]);
    assert_eq!(reply.body(), "room street ", "the cellar has a door of its own");
    assert_eq!([1, 2].map(|at| asked_with(&reply, at, "authorization")), [None, None], "it was for the door");
    assert_eq!(story.get("/page", &[]).status(), 401);
}

#[test]
fn who_is_known_to_a_page_is_nobody_to_a_part_that_wants_no_login() {
    let folder = TestFolder::new("parts-for-nobody");
    write_users(&folder, &["ann"]);
    let named = || FieldEdits {
        set: vec![FieldLine::new("X-User", FieldTemplate::parse("$remote_user").expect("a template"))],
        ..FieldEdits::default()
    };
    let story = surrogate(|settings| {
        let login = Some(Login { file: folder.path("users"), realm: "the house".to_owned() });
        let access = RouteAccess { login, ..RouteAccess::default() };
        settings.routes[0].rules = Arc::new(RouteRules { access, request_fields: named(), ..RouteRules::default() });
        beside(settings, "/greeting", RouteRules { request_fields: named(), ..RouteRules::default() });
    });
    story.origin([
        page("<esi:include src=\"/greeting\"/><esi:include src=\"/room\"/>"),
        fresh(60, "hello"),
        fresh(60, "r"),
    ]);
    let reply = story.get("/page", &[ANN]);
    assert_eq!([0, 1, 2].map(|at| asked_with(&reply, at, "x-user")), [Some("ann"), None, Some("ann")]);
}

#[test]
fn who_is_found_out_in_a_part_is_known_to_parts_of_that() {
    let folder = TestFolder::new("parts-within-parts");
    write_users(&folder, &["ann"]);
    let login = Some(Login { file: folder.path("users"), realm: "the house".to_owned() });
    let rules = RouteRules {
        access: RouteAccess { login, ..RouteAccess::default() },
        request_fields: FieldEdits {
            set: vec![FieldLine::new("X-User", FieldTemplate::parse("$remote_user").expect("a template"))],
            ..FieldEdits::default()
        },
        ..RouteRules::default()
    };
    let story = surrogate(|settings| {
        settings.esi.passes_authorization = true;
        beside(settings, "/own", rules);
    });
    let include = |path: &str| page(&format!("<esi:include src=\"{path}\"/>"));
    // The password has to be verified the first time, and is known the second.
    for _ in 0..2 {
        let part = |text: &str| answer(200, &["Cache-Control: no-store", ASKS], text);
        story.origin([include("/own"), part("<esi:include src=\"/own/inner\"/>"), part("inner")]);
        let reply = story.get("/page", &[ANN, "Cache-Control: no-cache"]);
        let told: Vec<_> = (0..reply.asked.len()).map(|at| asked_with(&reply, at, "x-user")).collect();
        assert_eq!((reply.body(), &told[told.len() - 2..]), ("inner", &[Some("ann"), Some("ann")][..]));
        story.pass_seconds(61);
    }
}

#[test]
fn a_page_whose_parts_know_its_user_is_for_no_cache_behind() {
    let folder = TestFolder::new("parts-of-users");
    write_users(&folder, &["ann"]);
    let story = surrogate(|settings| {
        let login = Some(Login { file: folder.path("users"), realm: "the house".to_owned() });
        let access = RouteAccess { login, ..RouteAccess::default() };
        settings.routes[0].rules = Arc::new(RouteRules { access, ..RouteRules::default() });
    });
    let lines = ["Cache-Control: public, max-age=60, s-maxage=600", ASKS];
    story.origin([
        answer(200, &lines, "<esi:include src=\"/own\"/>"),
        answer(200, &["Cache-Control: no-store"], "ann's"),
    ]);
    let reply = story.get("/page", &[ANN]);
    assert_eq!((reply.body(), reply.field("cache-control")), ("ann's", "max-age=60, private".to_owned()));
}

#[test]
fn a_page_whose_parts_are_made_for_a_cookie_is_for_no_cache_behind() {
    let story = surrogate(|settings| settings.esi.passes_cookies = true);
    let part = || answer(200, &["Cache-Control: no-store"], "[p]");
    story.origin([page("<esi:include src=\"/part\"/>"), part(), part()]);
    let said = |lines: &[&str]| story.get("/page", lines).field("cache-control");
    assert_eq!((said(&["Cookie: a=1"]), said(&[])), ("max-age=5, private".to_owned(), "max-age=5".to_owned()));
}

#[test]
fn another_host_is_asked_only_if_it_is_allowed() {
    for src in ["http://169.254.169.254/latest/", "http://b.test/", "https://b.test/", "http://a.test:8080/"] {
        let story = surrogate(|settings| settings.esi.hosts = vec!["c.test".to_owned()]);
        story.origin([page(&format!("a<esi:include src=\"{src}\"/>b"))]);
        let reply = story.get("/page", &[]);
        check_end(&reply, "a", FAILED, "esi-host");
        assert_eq!(reply.asked(), ["GET /page"], "{src}");
    }
}

#[test]
fn an_endless_include_ends_and_the_log_says_so() {
    let story = surrogate(|_| {});
    story.origin([page("a<esi:include src=\"/page\"/>b")]);
    let reply = story.get("/page", &[]);
    check_end(&reply, "aaaaaa", FAILED, "esi-depth");
    assert!(reply.log_lines.contains("esi-depth"), "{}", reply.log_lines);
    assert_eq!(reply.asked(), ["GET /page"]);
    let story = surrogate(|settings| settings.limits.esi_depth_max = 1);
    story.origin([page("a<esi:include src=\"/page\" onerror=\"continue\"/>b")]);
    check_end(&story.get("/page", &[]), "aabb", End::Sent, "esi-depth");
}

#[test]
fn a_page_has_no_more_parts_than_it_may_and_none_that_has_no_address() {
    let story = surrogate(|settings| settings.limits.esi_parts_max = 2);
    let include = "<esi:include src=\"/part\" onerror=\"continue\"/>";
    story.origin([page(&include.repeat(4)), fresh(60, "[p]")]);
    check_end(&story.get("/page", &[]), "[p][p]", End::Sent, "esi-count");
    let story = surrogate(|_| {});
    story.origin([page("a<esi:include src=\"/x#y\" onerror=\"continue\"/>b")]);
    let reply = story.get("/page", &[]);
    assert_eq!((reply.body(), reply.asked().len()), ("ab", 1), "a fragment is no part of an address");
    story.origin([page("a<esi:include src=\"/b\" alt=\"/x#y\"/>c"), answer(404, &[], "none")]);
    check_end(&story.get("/alternative", &[]), "a", FAILED, "esi-address");
}

#[test]
fn a_page_is_no_longer_than_it_may_be() {
    let story = surrogate(|settings| settings.limits.esi_page_bytes_max = 1 << 10);
    story.origin([page("a<esi:include src=\"/part\"/>b"), fresh(60, &"x".repeat(2_000))]);
    let reply = story.get("/page", &[]);
    assert_eq!((reply.end(), reply.verdict().1), (End::Cut("esi-page-bytes"), "esi-page-bytes"));
}

#[test]
fn a_part_is_routed_as_any_request() {
    let story = surrogate(|settings| {
        let closed = RouteSettings {
            path_prefix: "/closed".to_owned(),
            target: RouteTarget::Closed,
            ..settings.routes[0].clone()
        };
        settings.routes.push(closed);
        ignore_query(settings, "utm_*");
    });
    story.origin([
        page("a<esi:include src=\"/closed/x\" onerror=\"continue\"/>b<esi:include src=\"/p?utm_a=1&amp;b=2\"/>"),
        fresh(60, "[p]"),
    ]);
    let reply = story.get("/page", &[]);
    assert_eq!((reply.body(), reply.asked()), ("ab[p]", vec!["GET /page".into(), "GET /p?b=2".to_owned()]));
}

#[test]
fn a_part_in_gzip_is_taken_as_its_text_and_one_in_another_coding_is_none() {
    let mut gzip = Vec::new();
    let mut encoder = coding::Encoder::new(coding::Coding::Gzip, 6).unwrap();
    encoder.encode(b"[part]", &mut gzip).unwrap();
    encoder.finish(&mut gzip).unwrap();
    let part = |coding: &str| {
        let fields = vec![("Content-Encoding".to_owned(), coding.to_owned())];
        MockedAnswer::Given(AnswerParts { status: 200, reason: "OK".to_owned(), fields, body: gzip.clone() })
    };
    let story = surrogate(|_| {});
    story.origin([page("a<esi:include src=\"/part\"/>b"), part("gzip"), part("br")]);
    check_end(&story.get("/page", &["Accept-Encoding: gzip"]), "a[part]b", End::Sent, "");
    assert_eq!(story.get("/page", &[]).end(), FAILED);
}

#[test]
fn a_page_in_gzip_goes_out_in_gzip_to_who_takes_it() {
    let mut gzip = Vec::new();
    let mut encoder = coding::Encoder::new(coding::Coding::Gzip, 6).unwrap();
    encoder.encode(b"a<esi:include src=\"/part\"/>b", &mut gzip).unwrap();
    encoder.finish(&mut gzip).unwrap();
    let fields = [ASKS, "Content-Encoding: gzip"].map(|line| line.split_once(": ").unwrap());
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let page = MockedAnswer::Given(AnswerParts { status: 200, reason: "OK".to_owned(), fields, body: gzip });
    let story = surrogate(|_| {});
    story.origin([page.clone(), fresh(60, "[part]"), page]);
    let reply = story.get("/page", &["Accept-Encoding: gzip"]);
    assert_eq!(
        (reply.field("content-encoding"), reply.field("vary")),
        ("gzip".to_owned(), "Accept-Encoding".to_owned())
    );
    let coded = &reply.answer.as_ref().unwrap().body;
    let mut text = Vec::new();
    let mut decoder = coding::Decoder::new(coding::Coding::Gzip, coding::Bounds::default()).unwrap();
    decoder.decode(coded, 1 << 20, &mut text).unwrap();
    decoder.finish().unwrap();
    assert_eq!(text, b"a[part]b");
    let reply = story.get("/page", &[]);
    assert_eq!((reply.body(), reply.field("content-encoding")), ("a[part]b", String::new()));
}

#[test]
fn what_the_request_says_stands_in_a_page_only_where_that_is_switched_on() {
    let text = "<esi:vars>$(HTTP_HOST)</esi:vars><esi:choose><esi:when test=\"$(QUERY_STRING{a})=='1'\">one</esi:when>\
                <esi:otherwise><esi:include src=\"/part?$(HTTP_COOKIE{id})\"/></esi:otherwise></esi:choose>";
    let story = surrogate(|settings| settings.esi.has_variables = true);
    story.origin([page(text), page(text), fresh(60, "[part]")]);
    assert_eq!(story.get("/page?a=1", &[]).body(), "a.testone");
    let reply = story.get("/page?a=2", &["Cookie: id=<7>"]);
    assert_eq!((reply.body(), reply.asked()[1].as_str()), ("a.test[part]", "GET /part?%3C7%3E"));
    let story = surrogate(|_| {});
    story.origin([page(text), fresh(60, "[part]")]);
    let reply = story.get("/page?a=1", &[]);
    assert_eq!((reply.body(), reply.asked()[1].as_str()), ("$(HTTP_HOST)one[part]", "GET /part?$(HTTP_COOKIE{id})"));
}

/// A text in gzip, as an origin sends it.
fn zipped(lines: &[&str], text: &str) -> MockedAnswer {
    let (mut encoder, mut body) = (coding::Encoder::new(coding::Coding::Gzip, 6).unwrap(), Vec::new());
    encoder.encode(text.as_bytes(), &mut body).unwrap();
    encoder.finish(&mut body).unwrap();
    let fields = lines.iter().chain(&["Content-Encoding: gzip"]).map(|line| line.split_once(": ").unwrap());
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    MockedAnswer::Given(AnswerParts { status: 200, reason: "OK".to_owned(), fields, body })
}

fn decoded(reply: &Reply, coding: coding::Coding) -> String {
    let mut text = Vec::new();
    let mut decoder = coding::Decoder::new(coding, coding::Bounds::default()).unwrap();
    decoder.decode(&reply.answer.as_ref().unwrap().body, 1 << 20, &mut text).unwrap();
    decoder.finish().unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn what_is_stored_in_gzip_is_joined_and_never_coded_again() {
    let story = surrogate(|_| {});
    let inner = "[inner<esi:include src=\"/deep\"/>]";
    let life = "Cache-Control: max-age=60";
    story.origin([
        zipped(&[ASKS], "a<esi:include src=\"/part\"/>b<esi:include src=\"/inner\"/>c<esi:include src=\"/text\"/>"),
        zipped(&[life], "[part]"),
        zipped(&[ASKS], inner),
        zipped(&[life], "[deep]"),
        fresh(60, "[text]"),
    ]);
    for nth in 0..5 {
        let reply = story.get("/page", &["Accept-Encoding: gzip"]);
        assert_eq!(reply.field("content-encoding"), "gzip");
        assert_eq!(decoded(&reply, coding::Coding::Gzip), "a[part]b[inner[deep]]c[text]", "{nth}");
    }
    let counters = &story.core.counters;
    // Each page when it came, and each part while it came and once from the store.
    assert_eq!((counters.bodies_encoded.get(), counters.gzips_cut.get()), (2, 4));
    assert_eq!(story.get("/page", &[]).body(), "a[part]b[inner[deep]]c[text]");
}

#[test]
fn a_page_that_came_as_text_is_coded_for_its_client_unless_there_are_secrets() {
    let story = surrogate(|_| {});
    let html = "Content-Type: text/html";
    story.origin([
        answer(200, &[ASKS, html, "Cache-Control: max-age=5"], "a<esi:include src=\"/part\"/>b"),
        fresh(60, "[part]"),
    ]);
    for (takes, coding) in
        [("zstd", coding::Coding::Zstd), ("br", coding::Coding::Brotli), ("gzip", coding::Coding::Gzip)]
    {
        let reply = story.get("/page", &[&format!("Accept-Encoding: {takes}")]);
        assert_eq!((reply.field("content-encoding"), decoded(&reply, coding).as_str()), (takes.to_owned(), "a[part]b"));
        assert_eq!(reply.field("vary"), "Accept-Encoding");
    }
    let reply = story.get("/page", &["Accept-Encoding: zstd", "Cookie: a=1"]);
    assert_eq!((reply.body(), reply.field("content-encoding")), ("a[part]b", String::new()));
}
