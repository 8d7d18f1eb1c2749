//! What a route says beside who answers it: before the policy, and after everything.

use super::led_by_a_proxy::write_users;
use super::*;
use crate::settings::{
    AnswerFields, CachingRules, CookieRules, CrossOrigin, FieldEdits, FieldLine, FieldTemplate, Grant, GrantedLifetime,
    Login, OwnAnswer, Rate, RateLimit, RootSettings, RouteAccess, Selector, TargetRewrite,
};
use crate::static_files::finding::tests::TestFolder;

/// What ann sends, whose password is `secret`.
pub(super) const ANN: &str = "Authorization: Basic YW5uOnNlY3JldA==";

pub(super) fn users(folder: &TestFolder) -> RouteRules {
    write_users(folder, &["ann"]);
    let login = Some(Login { file: folder.path("users"), realm: "the house".to_owned() });
    RouteRules { access: RouteAccess { login, ..RouteAccess::default() }, ..RouteRules::default() }
}

/// The files of a folder, for its users.
pub(super) fn files_of_users(folder: &TestFolder) -> Story {
    let rules = users(folder);
    Story::with(|settings| {
        settings.roots = vec![RootSettings::of(folder.path(""))];
        settings.routes[0].target = RouteTarget::Root(0);
        settings.routes[0].rules = Arc::new(rules);
    })
}

/// What a program makes, for them.
pub(super) fn program_of_users(folder: &TestFolder) -> Story {
    under("sub vcl_recv { return (synth(299, \"Mine\")); }", users(folder))
}

pub(super) fn with(rules: RouteRules) -> Story {
    Story::with(|settings| settings.routes[0].rules = Arc::new(rules))
}

fn under(program: &str, rules: RouteRules) -> Story {
    Story::vcl_with(program, |settings| settings.routes[0].rules = Arc::new(rules))
}

pub(super) fn names(names: &[&str]) -> Vec<NamePattern> {
    names.iter().map(|name| NamePattern::new(name)).collect()
}

pub(super) fn line(name: &str, value: &str) -> FieldLine {
    FieldLine::new(name, FieldTemplate::parse(value).expect("a template"))
}

fn lives(seconds: u64) -> CachingRules {
    let lifetimes = [GrantedLifetime { statuses: None, seconds }].into();
    CachingRules { grant: Grant { lifetimes, ..Grant::default() }, ..CachingRules::default() }
}

/// How many requests an origin sees of these, one after the other.
fn asked(story: &Story, requests: &[&[&str]]) -> usize {
    requests.iter().map(|lines| story.get("/", lines).asked().len()).sum()
}

#[test]
fn a_lifetime_of_the_route_is_for_pages_that_say_none() {
    let story = with(RouteRules { caching: lives(60), ..RouteRules::default() });
    story.origin([answer(200, &[], "page")]);
    assert_eq!(asked(&story, &[&[], &[]]), 1);
    story.pass_seconds(61);
    assert_eq!(asked(&story, &[&[]]), 1);
}

#[test]
fn where_pages_live_by_the_route_cookies_and_credentials_go_past_the_store() {
    let story = with(RouteRules { caching: lives(60), ..RouteRules::default() });
    story.origin([answer(200, &[], "page")]);
    assert_eq!(asked(&story, &[&[]]), 1);
    for own in ["Cookie: sid=1", "Authorization: Basic YTph", "X-Api-Key: 7", "X-User: ann", "X-Acme-Session: 7"] {
        assert_eq!(asked(&story, &[&[own], &[own]]), 2, "{own}");
    }
    // What they were told is nobody else's either.
    story.origin([answer(200, &["Cache-Control: max-age=60"], "for sid 1")]);
    assert_eq!(story.get("/other", &["Cookie: sid=1"]).body(), "for sid 1");
    story.origin([answer(200, &[], "for all")]);
    assert_eq!(story.get("/other", &[]).body(), "for all");
}

/// A secret by which the origin knows larder is nobody's; what the route makes of the request may be somebody's.
#[test]
fn what_a_route_says_to_all_makes_no_page_personal() {
    for (value, expect) in [(FieldTemplate::of_text("s"), 1), (FieldTemplate::parse("$http_x_who").unwrap(), 2)] {
        let request_fields =
            FieldEdits { set: vec![FieldLine::new("X-Origin-Secret", value)], ..FieldEdits::default() };
        let story = with(RouteRules { request_fields, caching: lives(60), ..RouteRules::default() });
        story.origin([answer(200, &[], "page")]);
        assert_eq!(asked(&story, &[&["X-Who: ann"], &["X-Who: ann"]]), expect);
    }
}

#[test]
fn a_page_that_gives_its_client_a_cookie_is_no_page_for_all() {
    let story = with(RouteRules { caching: lives(60), ..RouteRules::default() });
    story.origin([answer(200, &["Set-Cookie: sid=7"], "page")]);
    assert_eq!(asked(&story, &[&[], &[]]), 2);
    let grant = Grant { ignores_set_cookie: true, ..lives(60).grant };
    let story = with(RouteRules { caching: CachingRules { grant, ..lives(60) }, ..RouteRules::default() });
    story.origin([answer(200, &["Set-Cookie: sid=7"], "page")]);
    assert_eq!(story.get("/", &[]).field("set-cookie"), "sid=7");
    let hit = story.get("/", &[]);
    assert_eq!((hit.asked().len(), hit.field("set-cookie")), (0, String::new()));
}

/// HEAD is answered by what a GET has brought, and what a POST brings may answer a GET: not where somebody else answers these.
#[test]
fn what_one_route_has_brought_answers_no_method_of_another() {
    for (methods, expect) in
        [(&[][..], [1, 0, 1, 0]), (&["GET"], [1, 1, 1, 1]), (&["HEAD"], [1, 1, 1, 0]), (&["POST"], [1, 0, 1, 1])]
    {
        let story = Story::with(|settings| {
            if !methods.is_empty() {
                let methods = methods.iter().map(|&method| method.into()).collect();
                settings.routes.push(RouteSettings { methods, ..settings.routes[0].clone() });
            }
        });
        let count = |line: &str, body: &str| {
            let path = line.split(' ').nth(1).unwrap_or_default();
            story.origin([answer(200, &["Cache-Control: max-age=60", &format!("Content-Location: {path}")], "page")]);
            story.ask(line, &[], body).asked().len()
        };
        let asked = [count("GET /a", ""), count("HEAD /a", ""), count("POST /b", "x"), count("GET /b", "")];
        assert_eq!(asked, expect, "{methods:?}");
    }
}

#[test]
fn cookies_by_which_visits_are_counted_make_no_difference() {
    let story = with(RouteRules { caching: lives(60), ..RouteRules::default() });
    story.origin([answer(200, &[], "page")]);
    let first = story.get("/?utm_source=x", &["Cookie: _ga=GA1.2; _gid=3"]);
    assert_eq!((first.asked(), first.asked_with("cookie")), (vec!["GET /".to_owned()], None));
    assert_eq!(asked(&story, &[&["Cookie: _fbp=1"]]), 0);
    // What is written keeps them.
    let posted = story.ask("POST /?utm_source=x", &["Cookie: _ga=1"], "a");
    assert_eq!((posted.asked(), posted.asked_with("cookie")), (vec!["POST /?utm_source=x".to_owned()], Some("_ga=1")));
}

#[test]
fn a_program_sees_all_that_visitors_bring() {
    let story = Story::vcl("");
    story.origin([answer(200, &[], "page")]);
    let first = story.get("/?utm_source=x", &["Cookie: _ga=1"]);
    assert_eq!((first.asked(), first.asked_with("cookie")), (vec!["GET /?utm_source=x".to_owned()], Some("_ga=1")));
}

#[test]
fn who_is_logged_in_goes_past_the_store_and_nothing_of_it_is_kept() {
    let cookies = CookieRules { bypass: names(&["login_*"]), kept: Some(Vec::new()), ..CookieRules::default() };
    let story = with(RouteRules { cookies, ..RouteRules::default() });
    story.origin([fresh(60, "for ann"), fresh(60, "for all"), fresh(60, "again for ann")]);
    let ann = story.get("/", &["Cookie: login_7=ann; a=1"]);
    assert_eq!(
        (ann.body(), ann.verdict(), ann.asked_with("cookie")),
        ("for ann", (CacheVerdict::Pass, "cookie"), Some("login_7=ann; a=1"))
    );
    let other = story.get("/", &["Cookie: a=1"]);
    assert_eq!((other.body(), other.asked_with("cookie")), ("for all", None));
    assert_eq!(story.get("/", &["Cookie: a=2"]).body(), "for all");
    assert_eq!(story.get("/", &["Cookie: login_7=ann"]).body(), "again for ann");
    assert_eq!(story.get("/", &[]).body(), "for all");
}

#[test]
fn where_nothing_is_stored_the_origin_sees_all_cookies() {
    let cookies = CookieRules { bypass: names(&["login_*"]), kept: Some(Vec::new()), ..CookieRules::default() };
    let caching = CachingRules { is_off: true, ..CachingRules::default() };
    let story = with(RouteRules { cookies, caching, ..RouteRules::default() });
    story.origin([answer(200, &[], "the form")]);
    // A token that belongs to the form, before anybody has a session.
    assert_eq!(story.get("/", &["Cookie: reset=7; a=1"]).asked_with("cookie"), Some("reset=7; a=1"));
}

#[test]
fn what_a_head_says_to_one_client_changes_nothing_for_others() {
    let cookies = CookieRules { bypass: names(&["login_*"]), ..CookieRules::default() };
    let story = with(RouteRules { cookies, ..RouteRules::default() });
    story.origin([answer(200, &["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Length: 4"], "page")]);
    story.get("/", &[]);
    story.origin([answer(200, &["Cache-Control: private", "ETag: \"b\"", "X-Of: ann"], "")]);
    story.ask("HEAD /", &["Cookie: login_7=ann"], "");
    let hit = story.get("/", &[]);
    assert_eq!((hit.asked().len(), hit.field("etag"), hit.field("x-of")), (0, "\"a\"".to_owned(), String::new()));
}

#[test]
fn who_shows_a_key_beside_kept_cookies_is_answered_alone() {
    let cookies = CookieRules { kept: Some(names(&["lang"])), ..CookieRules::default() };
    let story = with(RouteRules { cookies, caching: lives(60), ..RouteRules::default() });
    story.origin([answer(200, &[], "secret"), answer(200, &[], "for all")]);
    assert_eq!(story.get("/", &["Cookie: lang=de", "X-Api-Key: s"]).body(), "secret");
    assert_eq!(story.get("/", &["Cookie: lang=de"]).body(), "for all");
}

#[test]
fn no_client_takes_out_what_its_route_puts_in() {
    let request_fields = FieldEdits { set: vec![line("X-Tenant", "a")], ..FieldEdits::default() };
    let story = with(RouteRules { request_fields, ..RouteRules::default() });
    story.origin([fresh(60, "page")]);
    let reply = story.get("/", &["Connection: X-Tenant, X-Own", "X-Own: 1"]);
    assert_eq!((reply.asked_with("x-tenant"), reply.asked_with("x-own")), (Some("a"), None));
}

#[test]
fn cookies_that_are_kept_select_the_page() {
    let cookies = CookieRules { kept: Some(names(&["lang"])), ..CookieRules::default() };
    let story = with(RouteRules { cookies, caching: lives(60), ..RouteRules::default() });
    story.origin([answer(200, &[], "de"), answer(200, &[], "en"), answer(200, &[], "none")]);
    let german = story.get("/", &["Cookie: lang=de; x=1"]);
    assert_eq!(
        (german.body(), german.asked_with("cookie"), german.field("vary")),
        ("de", Some("lang=de"), "Cookie".to_owned())
    );
    assert_eq!(story.get("/", &["Cookie: lang=en"]).body(), "en");
    assert_eq!(story.get("/", &[]).body(), "none");
    for (cookie, expect) in [("lang=de; y=2", "de"), ("y=1; lang=en", "en"), ("y=1", "none")] {
        let hit = story.get("/", &[&format!("Cookie: {cookie}")]);
        assert_eq!((hit.body(), hit.asked().len()), (expect, 0), "{cookie}");
    }
}

#[test]
fn a_page_may_be_another_for_each_device() {
    let caching = CachingRules { selected_by: vec![Selector::Device], ..lives(60) };
    let story = with(RouteRules { caching, ..RouteRules::default() });
    story.origin([answer(200, &[], "small"), answer(200, &[], "large")]);
    let phone = story.get("/", &["User-Agent: Mozilla/5.0 (iPhone) Mobile/15E148"]);
    let said = (phone.body(), phone.asked_with("x-device"), phone.field("vary"));
    assert_eq!(said, ("small", Some("mobile"), "User-Agent".to_owned()));
    assert_eq!(story.get("/", &["User-Agent: Mozilla/5.0 (X11; Linux)", "X-Device: mobile"]).body(), "large");
    let android = story.get("/", &["User-Agent: Mozilla/5.0 (Linux; Android 14) Mobile"]);
    assert_eq!((android.body(), android.asked().len()), ("small", 0));
    // What is not stored here may be stored behind us, whichever way it came.
    story.origin([answer(200, &["Cache-Control: private"], "mine"), answer(200, &["Cache-Control: private"], "mine")]);
    for verdict in [CacheVerdict::Miss, CacheVerdict::Pass] {
        let own = story.get("/own", &[]);
        assert_eq!((own.verdict().0, own.field("vary")), (verdict, "User-Agent".to_owned()));
    }
}

#[test]
fn nothing_is_stored_where_the_route_says_so() {
    let caching = CachingRules { is_off: true, ..CachingRules::default() };
    let story = with(RouteRules { caching, ..RouteRules::default() });
    story.origin([fresh(60, "page")]);
    assert_eq!(asked(&story, &[&[], &[]]), 2);
    assert_eq!(story.get("/", &[]).verdict(), (CacheVerdict::Pass, "route"));
}

#[test]
fn an_error_without_a_lifetime_is_not_kept_to_be_served_stale() {
    let mut caching = lives(60);
    caching.grant.stale_while_revalidate_s = Some(600);
    caching.grant.stale_if_error_s = Some(600);
    let story = with(RouteRules { caching, ..RouteRules::default() });
    story.origin([answer(404, &[], "not yet"), answer(200, &[], "there")]);
    assert_eq!((story.get("/new", &[]).status(), story.get("/new", &[]).body()), (404, "there"));
    story.origin([answer(404, &["Cache-Control: max-age=5"], "gone")]);
    assert_eq!((story.get("/old", &[]).status(), story.get("/old", &[]).asked().len()), (404, 0));
}

#[test]
fn queries_are_cut_and_sorted_before_anybody_sees_them() {
    let query = QueryRules { kept: Some(names(&["id", "page"])), sorts: true, ..QueryRules::default() };
    let story = with(RouteRules { query, ..RouteRules::default() });
    story.origin([fresh(60, "page")]);
    assert_eq!(story.get("/a?page=2&x=1&id=7", &[]).asked(), ["GET /a?id=7&page=2"]);
    assert_eq!(story.get("/a?id=7&y=1&page=2", &[]).asked().len(), 0);
}

#[test]
fn a_query_that_makes_no_difference_leaves_no_question_mark() {
    let query = QueryRules { kept: Some(Vec::new()), ..QueryRules::default() };
    let story = with(RouteRules { query, ..RouteRules::default() });
    story.origin([fresh(60, "page")]);
    assert_eq!(story.get("/a?", &[]).asked(), ["GET /a"]);
    for same in ["/a", "/a?", "/a?x=1", "/a?&"] {
        assert_eq!(story.get(same, &[]).asked().len(), 0, "{same}");
    }
    story.ask("PURGE /a?", &[], "");
    story.origin([fresh(60, "new")]);
    assert_eq!(story.get("/a", &[]).body(), "new");
}

#[test]
fn the_origin_may_be_asked_for_another_path() {
    let target = TargetRewrite { stripped_prefix: Some("/api".into()), target: None };
    let story = with(RouteRules { target, ..RouteRules::default() });
    story.origin([fresh(60, "page")]);
    let reply = story.get("/api/v1?a=b", &[]);
    assert_eq!(reply.asked(), ["GET /v1?a=b"]);
    assert!(reply.log_lines.contains("GET /api/v1?a=b HTTP"), "{}", reply.log_lines);
    assert_eq!(story.get("/api", &[]).asked(), ["GET /"]);
    let target = TargetRewrite { stripped_prefix: None, target: Some(FieldTemplate::parse("/x$uri").unwrap()) };
    let story = with(RouteRules { target, ..RouteRules::default() });
    story.origin([fresh(60, "page")]);
    assert_eq!(story.get("/y?a=b", &[]).asked(), ["GET /x/y?a=b"]);
}

#[test]
fn two_routes_to_the_same_path_of_two_applications_are_two_pages() {
    let story = Story::with(|settings| {
        let target = TargetRewrite { stripped_prefix: Some("/api".into()), target: None };
        let rules = Arc::new(RouteRules { target, ..RouteRules::default() });
        let api = RouteSettings { path_prefix: "/api".to_owned(), rules, ..settings.routes[0].clone() };
        settings.routes.push(api);
    });
    story.origin([fresh(60, "of the site"), fresh(60, "of the interface")]);
    assert_eq!([story.get("/x", &[]).body(), story.get("/api/x", &[]).body()], ["of the site", "of the interface"]);
    assert_eq!([story.get("/x", &[]).body(), story.get("/api/x", &[]).body()], ["of the site", "of the interface"]);
    story.ask("PURGE /api/x", &[], "");
    story.origin([fresh(60, "new")]);
    assert_eq!([story.get("/x", &[]).body(), story.get("/api/x", &[]).body()], ["of the site", "new"]);
}

#[test]
fn what_one_route_brought_is_not_what_another_with_a_condition_gives() {
    let story = Story::with(|settings| {
        let condition = crate::settings::FieldCondition::present("X-Beta");
        let beta = RouteSettings { fields: vec![condition], ..settings.routes[0].clone() };
        settings.routes.push(beta);
    });
    story.origin([fresh(60, "old"), fresh(60, "beta")]);
    for asked in [1, 0] {
        let (old, beta) = (story.get("/", &[]), story.get("/", &["X-Beta: 1"]));
        assert_eq!(
            [(old.body(), old.asked().len()), (beta.body(), beta.asked().len())],
            [("old", asked), ("beta", asked)]
        );
        assert_eq!(old.field("vary"), "x-beta");
    }
}

#[test]
fn requests_get_fields_and_lose_them() {
    let request_fields = FieldEdits {
        set: vec![line("X-Site", "$host"), line("X-Lang", "$http_none")],
        added: vec![line("X-Way", "here")],
        removed: names(&["x-debug-*"]),
        request_id: None,
    };
    let story = with(RouteRules { request_fields, ..RouteRules::default() });
    story.origin([fresh(60, "page")]);
    let reply = story.get("/", &["X-Debug-A: 1", "X-Site: forged", "X-Lang: de", "X-Way: there"]);
    let seen = ["x-debug-a", "x-site", "x-lang", "x-way"].map(|name| reply.asked_with(name).map(str::to_owned));
    assert_eq!(seen, [None, Some("a.test".to_owned()), None, Some("there".to_owned())]);
}

/// What nginx's `proxy_set_header X-Real-IP $remote_addr` says. A client's own word on it reaches nobody, said by the route or not.
#[test]
fn an_origin_is_told_a_clients_address_by_its_route() {
    let claims = &["X-Real-IP: 10.0.0.1", "True-Client-IP: 10.0.0.1"][..];
    let told = |reply: &Reply| ["x-real-ip", "true-client-ip"].map(|name| reply.asked_with(name).map(str::to_owned));
    let silent = with(RouteRules::default());
    silent.origin([fresh(60, "page")]);
    assert_eq!(told(&silent.get("/", claims)), [None, None]);
    let set = vec![line("X-Real-IP", "$remote_addr"), line("True-Client-IP", "$remote_addr")];
    let story =
        with(RouteRules { request_fields: FieldEdits { set, ..FieldEdits::default() }, ..RouteRules::default() });
    story.origin([fresh(60, "page"), answer(200, &[], "posted")]);
    let reply = story.get("/", claims);
    let address = reply.asked_with("x-forwarded-for").map(str::to_owned);
    assert!(address.is_some() && told(&reply) == [address.clone(), address.clone()], "{:?}", told(&reply));
    assert_eq!(told(&story.ask("POST /", claims, "x")), [address.clone(), address]);
}

#[test]
fn what_the_route_answers_asks_nobody() {
    let redirect = |status, to: &str| OwnAnswer {
        status,
        location: Some(FieldTemplate::parse(to).unwrap()),
        body: None,
        kind: "text/plain".into(),
        retry_after: None,
        but_for: Vec::new(),
    };
    let own = |answer| with(RouteRules { answer: Some(answer), ..RouteRules::default() });
    let reply = own(redirect(301, "https://www.a.test$request_uri")).get("/x?y=z", &[]);
    assert_eq!((reply.status(), reply.field("location")), (301, "https://www.a.test/x?y=z".to_owned()));
    assert!(reply.asked().is_empty());
    let text = OwnAnswer {
        location: None,
        body: Some(FieldTemplate::parse("Hello $remote_addr\n").unwrap()),
        ..redirect(200, "/")
    };
    let reply = own(text.clone()).get("/", &[]);
    assert_eq!(
        (reply.status(), reply.body(), reply.field("content-type")),
        (200, "Hello 127.0.0.1\n", "text/plain".to_owned())
    );
    let closed = OwnAnswer { status: 503, retry_after: Some(600), ..text };
    let reply = own(closed.clone()).get("/", &[]);
    assert_eq!((reply.status(), reply.field("retry-after")), (503, "600".to_owned()));
    let story = own(OwnAnswer { but_for: vec!["127.0.0.0/8".parse().unwrap()], ..closed });
    story.origin([fresh(60, "page")]);
    assert_eq!(story.get("/", &[]).body(), "page");
}

#[test]
fn only_who_shows_a_name_and_its_password_is_answered() {
    let folder = TestFolder::new("story-logins");
    folder.write("page", "hello");
    let story = files_of_users(&folder);
    for lines in [&[][..], &["Authorization: Basic YW5uOndyb25n"], &["Authorization: Bearer x"]] {
        let reply = story.get("/page", lines);
        let asks = "Basic realm=\"the house\", charset=\"UTF-8\"".to_owned();
        assert_eq!((reply.status(), reply.field("www-authenticate")), (401, asks), "{lines:?}");
        assert_eq!(reply.body().contains("not right"), !lines.is_empty(), "{lines:?}: {}", reply.body());
    }
    for _ in 0..2 {
        assert_eq!(story.get("/page", &[ANN]).body(), "hello");
    }
    let program = program_of_users(&folder);
    assert_eq!([program.get("/", &[]).status(), program.get("/", &[ANN]).status()], [401, 299]);
}

#[test]
fn what_a_route_answers_itself_is_for_its_users() {
    let folder = TestFolder::new("story-login-answer");
    let answer = OwnAnswer {
        status: 200,
        location: None,
        body: Some(FieldTemplate::parse("for $remote_user").unwrap()),
        kind: "text/plain".into(),
        retry_after: None,
        but_for: Vec::new(),
    };
    let story = with(RouteRules { answer: Some(answer), ..users(&folder) });
    assert_eq!(story.get("/", &[]).status(), 401);
    // The first time it has to be verified, and then it is known.
    for _ in 0..2 {
        assert_eq!(story.get("/", &[ANN]).body(), "for ann");
    }
}

#[test]
fn what_is_written_is_answered_to_its_writer_alone() {
    let story = with(RouteRules { caching: lives(60), ..RouteRules::default() });
    story.origin([answer(200, &["Content-Location: /"], "for ann"), answer(200, &[], "for all")]);
    assert_eq!(story.ask("POST /", &["Cookie: sid=ann"], "x").body(), "for ann");
    assert_eq!(story.get("/", &[]).body(), "for all");
}

#[test]
fn a_password_of_a_route_goes_no_further_and_its_pages_are_stored() {
    let folder = TestFolder::new("story-login-store");
    let story = with(RouteRules { caching: lives(60), ..users(&folder) });
    story.origin([answer(200, &[], "page")]);
    let first = story.get("/", &[ANN]);
    assert_eq!((first.body(), first.asked_with("authorization")), ("page", None));
    let hit = story.get("/", &[ANN]);
    assert_eq!((hit.body(), hit.asked().len()), ("page", 0));
    assert_eq!(story.get("/", &[]).status(), 401);
}

fn guarded(allowed: Option<&str>, denied: &[&str]) -> RouteAccess {
    let network = |text: &str| text.parse().expect("a network");
    RouteAccess {
        allowed: allowed.map(|it| vec![network(it)]),
        denied: denied.iter().map(|it| network(it)).collect(),
        ..RouteAccess::default()
    }
}

#[test]
fn only_those_who_are_allowed_are_answered() {
    for (access, expect) in [
        (guarded(Some("10.0.0.0/8"), &[]), 403),
        (guarded(Some("127.0.0.0/8"), &[]), 200),
        (guarded(None, &["127.0.0.1"]), 403),
        (guarded(Some("127.0.0.0/8"), &["127.0.0.1"]), 403),
        (guarded(None, &["10.0.0.0/8"]), 200),
    ] {
        let story = with(RouteRules { access: access.clone(), ..RouteRules::default() });
        story.origin([fresh(60, "page")]);
        // Also from the store.
        assert_eq!([story.get("/", &[]).status(), story.get("/", &[]).status()], [expect; 2], "{access:?}");
        // Who speaks for somebody unknown may be anybody.
        if !access.denied.is_empty() {
            assert_eq!(story.get("/", &["X-Forwarded-For: 10.1.1.1"]).status(), 403);
        }
    }
}

#[test]
fn no_spelling_is_a_way_round_a_guard() {
    let story = Story::with(|settings| {
        let rules = RouteRules { access: guarded(Some("10.0.0.0/8"), &[]), ..RouteRules::default() };
        let admin =
            RouteSettings { path_prefix: "/admin".to_owned(), rules: Arc::new(rules), ..settings.routes[0].clone() };
        settings.routes.push(admin);
    });
    story.origin([fresh(60, "page")]);
    for path in [
        "/admin",
        "/admin/x",
        "/%61dmin",
        "//admin",
        "/x/../admin/y",
        "/x/%2e%2e/admin",
        "/./admin",
        "/admin//../admin",
    ] {
        let reply = story.get(path, &[]);
        assert_eq!((reply.status(), reply.asked().len()), (403, 0), "{path}");
    }
    assert_eq!(story.get("/administrator", &[]).status(), 200);
}

#[test]
fn who_asks_too_often_is_told_when_to_come_again() {
    let rate = Rate { period_us: 1_000_000, burst: 2 };
    let limit = |by: Option<&str>| RateLimit {
        rate,
        by: by.map(|by| FieldTemplate::parse(by).unwrap()),
        status: 429,
        zone: "z".into(),
    };
    let story = with(RouteRules { rate_limits: vec![limit(None)], ..RouteRules::default() });
    story.origin([fresh(60, "page")]);
    let statuses: Vec<u16> = (0..4).map(|_| story.get("/", &[]).status()).collect();
    assert_eq!(statuses, [200, 200, 429, 429]);
    assert_eq!(story.get("/", &[]).field("retry-after"), "1");
    story.pass_seconds(1);
    assert_eq!([story.get("/", &[]).status(), story.get("/", &[]).status()], [200, 429]);
    let story = with(RouteRules { rate_limits: vec![limit(Some("$http_x_key"))], ..RouteRules::default() });
    story.origin([fresh(60, "page")]);
    let of = |key: &str| (0..3).map(|_| story.get("/", &[key]).status()).collect::<Vec<_>>();
    assert_eq!(
        (of("X-Key: a"), of("X-Key: b"), of("X-Other: c")),
        (vec![200, 200, 429], vec![200, 200, 429], vec![200; 3])
    );
}

#[test]
fn a_body_is_no_larger_than_the_route_allows() {
    let story = with(RouteRules { request_body_bytes_max: Some(3), ..RouteRules::default() });
    story.origin([answer(200, &[], "page")]);
    assert_eq!(story.ask("POST /", &[], "abc").status(), 200);
    assert_eq!(story.ask("POST /", &[], "abcd").status(), 413);
    let chunked = b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    assert_eq!(story.send(chunked).status(), 411);
}

#[test]
fn scripts_of_other_sites_read_what_they_may() {
    let cross_origin = CrossOrigin {
        origins: Some(names(&["https://*.b.test"])),
        methods: "GET, PUT".into(),
        request_fields: "".into(),
        exposed_fields: "X-Count".into(),
        credentials: true,
        max_age: Some(Duration::from_secs(600)),
    };
    let answer_fields = AnswerFields { cross_origin: Some(cross_origin), ..AnswerFields::default() };
    let story = with(RouteRules { answer_fields, ..RouteRules::default() });
    story.origin([answer(200, &["Cache-Control: max-age=60", "Access-Control-Allow-Origin: *"], "page")]);
    for _ in 0..2 {
        let said = |lines: &[&str]| {
            let reply = story.get("/", lines);
            (reply.field("access-control-allow-origin"), reply.field("vary"))
        };
        assert_eq!(said(&["Origin: https://x.b.test"]), ("https://x.b.test".to_owned(), "Origin".to_owned()));
        for other in ["Origin: https://b.test.evil.test", "Origin: https://evil.test/.b.test"] {
            assert_eq!(said(&[other]), (String::new(), "Origin".to_owned()), "{other}");
        }
        assert_eq!(said(&[]), (String::new(), "Origin".to_owned()));
    }
    let asks =
        ["Origin: https://x.b.test", "Access-Control-Request-Method: PUT", "Access-Control-Request-Headers: x-token"];
    let preflight = story.ask("OPTIONS /", &asks, "");
    let said = ["allow-origin", "allow-methods", "allow-headers", "allow-credentials", "max-age"];
    let said = said.map(|name| preflight.field(&format!("access-control-{name}")));
    assert_eq!((preflight.status(), preflight.asked().len()), (204, 0));
    assert_eq!(said, ["https://x.b.test", "GET, PUT", "x-token", "true", "600"]);
}

#[test]
fn each_request_has_a_number() {
    let rules = || RouteRules {
        request_fields: FieldEdits { request_id: Some(line("X-Request-Id", "$request_id")), ..FieldEdits::default() },
        answer_fields: AnswerFields {
            set: vec![line("X-Request-Id", "$http_x_request_id")],
            ..AnswerFields::default()
        },
        ..RouteRules::default()
    };
    let story = with(rules());
    story.origin([fresh(60, "page")]);
    let first = story.get("/", &["X-Request-Id: forged"]);
    assert_eq!(first.asked_with("x-request-id"), Some(&*first.field("x-request-id")));
    let second = story.get("/", &[]);
    assert_eq!(second.asked().len(), 0);
    let numbers = [first.field("x-request-id"), second.field("x-request-id")];
    assert!(numbers[0] != numbers[1] && numbers.iter().all(|number| number.len() == 16), "{numbers:?}");
    let story = Story::with(|settings| {
        settings.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        settings.routes[0].rules = Arc::new(rules());
    });
    story.origin([fresh(60, "page")]);
    assert_eq!(story.get("/", &["X-Request-Id: theirs"]).field("x-request-id"), "theirs");
}

#[test]
fn a_program_sees_what_the_route_has_left() {
    let rules = RouteRules {
        query: QueryRules { ignored: names(&["x"]), ..QueryRules::default() },
        request_fields: FieldEdits { set: vec![line("X-Site", "shop")], ..FieldEdits::default() },
        answer_fields: AnswerFields {
            set: vec![line("X-Last", "route")],
            removed: names(&["x-of-program"]),
            ..AnswerFields::default()
        },
        ..RouteRules::default()
    };
    let program = "sub vcl_deliver { set resp.http.X-Last = \"program\"; set resp.http.X-Of-Program = req.http.X-Site + req.url; \
                   set resp.http.X-Kept = req.http.X-Site + req.url; }";
    let story = under(program, rules);
    story.origin([fresh(60, "page")]);
    for asked in [1, 0] {
        let reply = story.get("/a?x=1", &[]);
        let said = ["x-last", "x-of-program", "x-kept"].map(|name| reply.field(name));
        assert_eq!((said, reply.asked().len()), (["route".to_owned(), String::new(), "shop/a".to_owned()], asked));
    }
}

#[test]
fn what_a_route_refuses_or_answers_no_program_sees() {
    let program = "sub vcl_recv { return (synth(299, \"Mine\")); } sub vcl_synth { set resp.http.X-Of = \"program\"; }";
    let access = guarded(Some("10.0.0.0/8"), &[]);
    let refused = under(program, RouteRules { access, ..RouteRules::default() }).get("/", &[]);
    assert_eq!((refused.status(), refused.field("x-of")), (403, String::new()));
    let asked = under(program, RouteRules::default()).get("/", &[]);
    assert_eq!((asked.status(), asked.field("x-of")), (299, "program".to_owned()));
}

#[test]
fn a_part_of_a_page_is_guarded_as_if_it_were_asked_for() {
    let story = Story::with(|settings| {
        settings.esi.pages = crate::settings::EsiPages::Surrogate;
        let rules = RouteRules { access: guarded(Some("10.0.0.0/8"), &[]), ..RouteRules::default() };
        let secret =
            RouteSettings { path_prefix: "/secret".to_owned(), rules: Arc::new(rules), ..settings.routes[0].clone() };
        settings.routes.push(secret);
    });
    let lines = ["Cache-Control: max-age=60", "Surrogate-Control: content=\"ESI/1.0\""];
    story.origin([answer(200, &lines, "a<esi:include src=\"/secret\" onerror=\"continue\"/>b"), fresh(60, "secret")]);
    let page = story.get("/", &[]);
    assert_eq!((page.body(), page.asked().len()), ("ab", 1));
}
