//! A service says who may come in (`auth_request`): what it is asked, what comes of its answer, and what nobody else gets of that.

use super::what_routes_say::line;
use super::*;
use crate::settings::{
    AnswerFields, AuthRequest, CachingRules, CookieRules, EsiPages, FieldEdits, FieldLine, FieldTemplate, RouteAccess,
    Selector,
};
use crate::static_files::finding::tests::TestFolder;

/// Whom the origin itself lets in, which is asked for `/verify`.
fn service(copied: &[&str]) -> AuthRequest {
    AuthRequest {
        origin: 0,
        target: "/verify".into(),
        copied: copied.iter().map(|name| (*name).into()).collect(),
        user: copied.first().map(|name| (*name).into()),
        login: None,
        timeout: Duration::from_secs(5),
        known_for: Duration::ZERO,
    }
}

fn guarded_by(service: AuthRequest) -> RouteRules {
    let access = RouteAccess { service: Some(service), ..RouteAccess::default() };
    RouteRules { access, ..RouteRules::default() }
}

fn with(rules: RouteRules) -> Story {
    Story::with(|settings| settings.routes[0].rules = Arc::new(rules))
}

/// A route whose service copies the name of a user.
pub(super) fn of_users() -> Story {
    with(guarded_by(service(&["X-User"])))
}

fn ok(user: &str) -> MockedAnswer {
    answer(200, &[&format!("X-User: {user}")], "welcome")
}

fn asked_with<'a>(reply: &'a Reply, at: usize, name: &str) -> Option<&'a str> {
    reply.asked[at].request.as_ref().and_then(|head| head.field(name))
}

/// As nginx's `error_page 401 = @login` with `return 302`. What was asked for is one parameter of the page, whatever is in it.
#[test]
fn who_has_to_log_in_is_led_to_the_page_for_it() {
    let login = FieldTemplate::parse("https://id.test/login?back=$scheme://$host$request_uri").ok();
    let story = with(guarded_by(AuthRequest { login, ..service(&[]) }));
    let asks = answer(401, &["WWW-Authenticate: Basic", "Set-Cookie: state=1"], "who?");
    story.origin([asks, answer(403, &[], "no"), answer(200, &[], ""), fresh(60, "page")]);
    let led = story.get("/a?b=1&c=%20", &[]);
    let there = "https://id.test/login?back=http://a.test/a%3Fb%3D1%26c%3D%2520";
    assert_eq!((led.status(), led.field("location").as_str(), led.asked().len()), (302, there, 1));
    assert_eq!((led.field("cache-control").as_str(), led.field("www-authenticate").as_str()), ("no-store", ""));
    assert_eq!(led.verdict(), (CacheVerdict::Refused, "auth-request-refused"));
    assert_eq!(
        (story.get("/", &[]).status(), story.get("/", &[]).body()),
        (403, "page"),
        "no other answer leads there"
    );
    let own = FieldTemplate::parse("/login?back=$request_uri").ok();
    let story = with(guarded_by(AuthRequest { login: own, ..service(&[]) }));
    story.origin([answer(401, &[], "who?")]);
    assert_eq!(story.get("//evil.test/", &[]).field("location"), "/login?back=//evil.test/");
}

/// A browser would go on to show the page for logging in to who has logged in.
#[test]
fn what_a_route_says_of_its_pages_is_not_said_of_a_refusal() {
    let set = ["Cache-Control: max-age=60", "CDN-Cache-Control: max-age=60", "X-Site: a"];
    let lines = set.iter().filter_map(|line| line.split_once(": ")).map(|(name, value)| line(name, value));
    let answer_fields = AnswerFields { set: lines.collect(), ..AnswerFields::default() };
    let login = FieldTemplate::parse("/login").ok();
    for login in [login, None] {
        let rules = guarded_by(AuthRequest { login, ..service(&[]) });
        let story = with(RouteRules { answer_fields: answer_fields.clone(), ..rules });
        story.origin([answer(401, &[], "who?")]);
        let reply = story.get("/", &[]);
        assert_eq!(
            ["cache-control", "cdn-cache-control", "x-site"].map(|name| reply.field(name)),
            ["no-store", "", "a"],
            "{}",
            reply.status()
        );
    }
}

#[test]
fn who_is_let_in_goes_on_with_what_the_service_says_of_it() {
    let story = of_users();
    story.origin([ok("ann"), fresh(60, "page")]);
    let reply = story.ask(
        "POST /shop?q=1",
        &["X-User: root", "X_User: root", "Cookie: sid=1", "X-Original-URI: /", "X-Real-IP: 192.0.2.9"],
        "a=b",
    );
    assert_eq!((reply.status(), reply.body()), (200, "page"));
    assert_eq!(reply.asked(), ["GET /verify", "POST /shop?q=1"]);
    let question = ["cookie", "x-original-uri", "x-original-method", "x-forwarded-uri", "x-forwarded-method", "x-user"]
        .map(|name| asked_with(&reply, 0, name));
    assert_eq!(question, [Some("sid=1"), Some("/shop?q=1"), Some("POST"), Some("/shop?q=1"), Some("POST"), None]);
    assert_eq!(
        (asked_with(&reply, 0, "x-original-url"), asked_with(&reply, 0, "content-length")),
        (Some("http://a.test/shop?q=1"), None)
    );
    let said = asked_with(&reply, 0, "x-forwarded-for");
    assert_eq!((said.is_some(), asked_with(&reply, 0, "x-real-ip")), (true, said), "its address is its own");
    assert_eq!(asked_with(&reply, 1, "x-real-ip"), None);
    assert_eq!((asked_with(&reply, 1, "x-user"), asked_with(&reply, 1, "x_user")), (Some("ann"), None));
    assert_eq!(asked_with(&reply, 1, "x-original-method"), None, "that is said to the service alone");
    assert!(reply.log_lines.contains(" - ann ["), "{}", reply.log_lines);
}

#[test]
fn a_name_that_begins_as_ours_is_handed_on_where_the_service_says_it() {
    let story = with(guarded_by(service(&["X-Forwarded-User"])));
    story.origin([answer(204, &["X-Forwarded-User: ann"], ""), fresh(60, "page")]);
    let reply = story.get("/", &["X-Forwarded-User: root", "X-Forwarded-Groups: admins"]);
    assert_eq!(
        (asked_with(&reply, 1, "x-forwarded-user"), asked_with(&reply, 1, "x-forwarded-groups")),
        (Some("ann"), None)
    );
}

#[test]
fn who_is_refused_is_told_what_the_service_says_and_nobody_keeps_it() {
    let story = of_users();
    for (status, lines) in [
        (401, &["WWW-Authenticate: Bearer", "Set-Cookie: csrf=1", "Cache-Control: max-age=60"][..]),
        (403, &["Expires: Thu, 31 Dec 2037 23:55:55 GMT"]),
        (302, &["Location: https://login.test/?back=/x", "Set-Cookie: state=7"]),
    ] {
        story.origin([answer(status, lines, "who are you?")]);
        let reply = story.get("/x", &["Accept-Encoding: gzip"]);
        assert_eq!(
            (reply.status(), reply.body(), reply.asked()),
            (status, "who are you?", vec!["GET /verify".to_owned()])
        );
        for line in lines {
            let (name, value) = line.split_once(": ").unwrap();
            let expect = match name {
                "Cache-Control" | "Expires" => "",
                _ => value,
            };
            let said = reply.field(name).replace("no-store", "");
            assert_eq!(said, expect, "{status} {name}");
        }
        assert_eq!(reply.field("cache-control"), "no-store", "{status}");
        assert_eq!(reply.verdict(), (CacheVerdict::Refused, "auth-request-refused"));
    }
    let head = story.ask("HEAD /x", &[], "");
    assert_eq!((head.status(), head.body()), (302, ""));
    assert_eq!(story.core.counters.auth_requests_refused.get(), 4);
}

#[test]
fn what_is_no_clear_answer_lets_nobody_in() {
    let story = of_users();
    let long = format!("X-User: {}", "a".repeat(9 << 10));
    for none in [
        answer(500, &[], "no"),
        answer(404, &[], "no"),
        answer(304, &[], ""),
        answer(200, &[&long], ""),
        wire("HTTP/1.1 200", Then::Closes),
        MockedAnswer::Refused,
    ] {
        story.origin([none.clone(), fresh(60, "secret")]);
        let reply = story.get("/x", &[]);
        assert_eq!((reply.status(), reply.verdict()), (502, (CacheVerdict::Error, "auth-request-failed")), "{none:?}");
        assert!(!reply.body().contains("secret"));
    }
    assert_eq!(story.core.counters.auth_requests_failed.get(), 6);
}

#[test]
fn pages_made_for_a_user_are_kept_for_nobody() {
    let story = of_users();
    for (user, page) in [("ann", "ann's"), ("bob", "bob's"), ("ann", "ann's again")] {
        story.origin([ok(user), fresh(60, page)]);
        let reply = story.get("/", &[]);
        assert_eq!((reply.body(), reply.field("cache-control")), (page, "max-age=60, private".to_owned()));
        assert_eq!(reply.verdict(), (CacheVerdict::Pass, "credentials"));
    }
}

#[test]
fn pages_are_stored_for_each_user_where_the_route_says_that_they_select() {
    let caching = CachingRules { selected_by: vec![Selector::Field("x-user".into())], ..CachingRules::default() };
    let story = with(RouteRules { caching, ..guarded_by(service(&["X-User"])) });
    for (user, page) in [("ann", "ann's"), ("bob", "bob's")] {
        story.origin([ok(user), fresh(60, page)]);
        assert_eq!(story.get("/", &[]).body(), page);
    }
    for (user, page) in [("ann", "ann's"), ("bob", "bob's")] {
        story.origin([ok(user)]);
        // What a client says of itself selects nothing.
        let hit = story.get("/", &["X-User: bob"]);
        assert_eq!((hit.body(), hit.asked()), (page, vec!["GET /verify".to_owned()]));
        assert_eq!(hit.field("cache-control"), "max-age=60, private");
    }
}

#[test]
fn what_is_the_same_for_all_is_stored_and_each_is_asked_about() {
    let story = with(guarded_by(service(&[])));
    story.origin([
        ok("ann"),
        answer(200, &["Cache-Control: public, max-age=60", "CDN-Cache-Control: max-age=9"], "page"),
    ]);
    assert_eq!(story.get("/", &[]).body(), "page");
    story.origin([ok("ann")]);
    let hit = story.get("/", &[]);
    assert_eq!((hit.body(), hit.asked(), hit.verdict().0), ("page", vec!["GET /verify".to_owned()], CacheVerdict::Hit));
    // A cache behind us would not ask.
    assert_eq!(
        (hit.field("cache-control"), hit.field("cdn-cache-control")),
        ("max-age=60, private".into(), String::new())
    );
    story.origin([answer(401, &[], "")]);
    assert_eq!(story.get("/", &[]).status(), 401);
}

#[test]
fn who_was_let_in_a_moment_ago_is_known_by_its_credentials_and_its_address() {
    let known = AuthRequest { known_for: Duration::from_secs(10), ..service(&["X-User"]) };
    let story = with(guarded_by(known));
    story.origin([ok("ann"), answer(200, &["Cache-Control: no-store"], "page")]);
    let asked = |lines: &[&str]| story.get("/", lines).asked();
    let both = ["GET /verify".to_owned(), "GET /".to_owned()];
    assert_eq!(asked(&["Cookie: sid=1"]), both);
    story.origin([answer(200, &["Cache-Control: no-store"], "page")]);
    let again = story.get("/y", &["Cookie: sid=1"]);
    assert_eq!((again.asked(), again.asked_with("x-user")), (vec!["GET /y".to_owned()], Some("ann")));
    assert_eq!(story.core.counters.auth_requests_known.get(), 1);
    // Others are not, nor is who shows nothing.
    for others in [&["Cookie: sid=2"][..], &["Cookie: sid=1", "Authorization: Bearer a"], &[], &[]] {
        story.origin([ok("bob"), answer(200, &[], "page")]);
        assert_eq!(asked(others), both, "{others:?}");
    }
    story.pass_seconds(10);
    story.origin([ok("ann"), answer(200, &[], "page")]);
    assert_eq!(asked(&["Cookie: sid=1"]), both);
}

/// To who is asked, another spelling may be a path of another route.
#[test]
fn who_is_known_is_not_known_for_another_spelling() {
    let known = AuthRequest { known_for: Duration::from_secs(10), ..service(&[]) };
    let story = Story::with(|settings| {
        settings.routes[0].rules = Arc::new(guarded_by(known));
        settings.routes.push(RouteSettings { path_prefix: "/b".to_owned(), ..settings.routes[0].clone() });
    });
    let asked = |path: &str| {
        story.origin([answer(204, &[], ""), answer(200, &["Cache-Control: no-store"], "page")]);
        story.get(path, &["Cookie: sid=1"]).asked().iter().filter(|asked| *asked == "GET /verify").count()
    };
    let spelled = ["/b/x", "/b/x", "/b/../x", "/b/%2e%2e/x", "/%62/x"].map(asked);
    assert_eq!(spelled, [1, 0, 1, 1, 1]);
}

/// Nobody says by which fields a service decides.
#[test]
fn who_is_known_is_not_known_without_a_field_that_was_shown_too() {
    let known = AuthRequest { known_for: Duration::from_secs(10), ..service(&[]) };
    let story = with(guarded_by(known));
    let asked = |lines: &[&str]| {
        story.origin([answer(204, &[], ""), answer(200, &["Cache-Control: no-store"], "page")]);
        story.get("/", lines).asked().iter().filter(|asked| *asked == "GET /verify").count()
    };
    let shown =
        [&["Cookie: lang=en", "X-Ok: 1"][..], &["Cookie: lang=en", "X-Ok: 1", "Sec-Fetch-Mode: cors"]].map(asked);
    assert_eq!((shown, asked(&["Cookie: lang=en"])), ([1, 0], 1));
}

#[test]
fn a_refusal_is_asked_about_anew_each_time() {
    let story = with(guarded_by(AuthRequest { known_for: Duration::from_secs(10), ..service(&[]) }));
    story.origin([answer(401, &[], ""), ok("ann"), fresh(60, "page")]);
    assert_eq!(story.get("/", &["Cookie: sid=1"]).status(), 401);
    assert_eq!(story.get("/", &["Cookie: sid=1"]).body(), "page");
}

#[test]
fn no_spelling_of_a_path_is_a_way_round_the_service() {
    let story = Story::with(|settings| {
        let rules = Arc::new(guarded_by(service(&[])));
        let admin = RouteSettings { path_prefix: "/admin".to_owned(), rules, ..settings.routes[0].clone() };
        settings.routes.push(admin);
    });
    story.origin([fresh(60, "secret")]);
    for path in ["/%61dmin", "//admin", "/x/../admin", "/admin%2fx", "/x/..%2fadmin"] {
        let reply = story.get(path, &[]);
        assert_eq!((reply.status(), reply.asked().len()), (403, 0), "{path}");
    }
    assert_eq!(story.get("/x", &[]).body(), "secret", "what is for everybody is not asked about");
}

#[test]
fn a_program_sees_what_the_service_says_and_not_whom_it_refuses() {
    let program = "import std; sub vcl_recv { if (req.url == \"/back\") { std.rollback(req); } return (pass); } \
                   sub vcl_deliver { set resp.http.X-Seen = \"1\"; }";
    let story =
        Story::vcl_with(program, |settings| settings.routes[0].rules = Arc::new(guarded_by(service(&["X-User"]))));
    for path in ["/", "/back"] {
        story.origin([ok("ann"), answer(200, &[], "page")]);
        let reply = story.get(path, &["X-User: root"]);
        assert_eq!(
            (reply.body(), asked_with(&reply, 1, "x-user"), reply.field("x-seen")),
            ("page", Some("ann"), "1".to_owned())
        );
        assert_eq!(reply.field("cache-control"), "private");
    }
    story.origin([answer(403, &[], "not you")]);
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.body(), reply.field("x-seen")), (403, "not you", String::new()));
}

#[test]
fn parts_of_a_page_are_asked_about_too() {
    let story = Story::with(|settings| {
        settings.esi.pages = EsiPages::All;
        settings.limits.esi_ahead_max = 1;
        let rules = Arc::new(guarded_by(service(&[])));
        let own = RouteSettings { path_prefix: "/own".to_owned(), rules, ..settings.routes[0].clone() };
        settings.routes.push(own);
    });
    let page = answer(
        200,
        &["Cache-Control: max-age=60", "Content-Type: text/html"],
        "<p>a<esi:include src=\"/own\" onerror=\"continue\"/>b",
    );
    story.origin([page, ok("ann"), answer(200, &["Cache-Control: no-store"], "[own]")]);
    let reply = story.get("/page", &[]);
    assert_eq!(
        (reply.body(), reply.asked()),
        ("<p>a[own]b", ["GET /page", "GET /verify", "GET /own"].map(str::to_owned).to_vec())
    );
    story.origin([answer(401, &[], "who are you?")]);
    assert_eq!(story.get("/page", &[]).body(), "<p>ab");
}

#[test]
fn the_log_names_who_has_shown_a_password() {
    let folder = TestFolder::new("log-of-users");
    folder.write("page", "hello");
    let story = what_routes_say::files_of_users(&folder);
    // Once it is verified, and then it is known.
    for _ in 0..2 {
        let reply = story.get("/page", &[what_routes_say::ANN]);
        assert!(reply.log_lines.contains(" - ann ["), "{}", reply.log_lines);
    }
    for nobody in [&[][..], &["Authorization: Basic YW5uOndyb25n"]] {
        let reply = story.get("/page", nobody);
        assert!(reply.log_lines.contains(" - - [") && reply.status() == 401, "{}", reply.log_lines);
    }
}

/// Beside a password of larder's the service is asked with it, where it is not to say another, and what it says in its place reaches the origin.
#[test]
fn a_password_is_larders_and_what_the_service_says_in_its_place_is_the_origins() {
    let folder = TestFolder::new("login-and-service");
    let users = what_routes_say::users(&folder);
    let told = |copied: &[&str], said: &str| {
        let access = RouteAccess { service: Some(service(copied)), ..users.access.clone() };
        let story = with(RouteRules { access, ..RouteRules::default() });
        story.origin([answer(200, &[said, "X-User: ann"], ""), fresh(60, "page")]);
        let reply = story.get("/", &[what_routes_say::ANN]);
        assert_eq!((reply.status(), reply.asked()), (200, vec!["GET /verify".to_owned(), "GET /".to_owned()]));
        [0, 1].map(|at| asked_with(&reply, at, "authorization").map(str::to_owned))
    };
    let own = what_routes_say::ANN.strip_prefix("Authorization: ").map(str::to_owned);
    let token = "Authorization: Bearer of-the-service";
    assert_eq!(told(&["X-User", "Authorization"], token), [None, Some("Bearer of-the-service".to_owned())]);
    assert_eq!(told(&["X-User", "Authorization"], "X-Nothing: 1"), [None, None]);
    assert_eq!(told(&["X-User"], token), [own.clone(), None]);
    assert_eq!(told(&[], token), [own, None]);
}

#[test]
fn a_client_that_leaves_meanwhile_is_led_nowhere() {
    let story = of_users();
    story.origin([ok("ann"), fresh(60, "page")]);
    let reply = story.leave("/", &[]);
    assert_eq!(reply.verdict(), (CacheVerdict::Refused, "client-left"));
    assert!(!reply.asked().contains(&"GET /".to_owned()));
}

/// The words of the route are said over what the service says, and the service is asked about what its client has sent.
#[test]
fn no_word_of_the_route_is_made_of_what_its_client_says_in_place_of_the_service() {
    let name =
        FieldLine::new("Remote-User", FieldTemplate::parse("$http_x_user for $remote_user").expect("a template"));
    let key = FieldLine::new("X-Api-Key", FieldTemplate::of_text("the origin's"));
    let story = with(RouteRules {
        request_fields: FieldEdits { set: vec![name, key], ..FieldEdits::default() },
        cookies: CookieRules { kept: Some(Vec::new()), ..CookieRules::default() },
        ..guarded_by(service(&["X-User"]))
    });
    story.origin([ok("ann"), fresh(60, "page")]);
    let reply = story.get("/?utm_source=a&b=1", &["X-User: root", "Cookie: sid=1"]);
    assert_eq!((reply.status(), reply.asked()), (200, vec!["GET /verify".to_owned(), "GET /?b=1".to_owned()]));
    let of = |at| ["remote-user", "x-api-key", "cookie", "x-original-uri"].map(|name| asked_with(&reply, at, name));
    assert_eq!(of(0), [None, None, Some("sid=1"), Some("/?utm_source=a&b=1")], "it is asked about what was sent");
    assert_eq!(of(1), [Some("ann for ann"), Some("the origin's"), None, None]);
}

#[test]
fn no_client_takes_out_what_is_said_of_it() {
    let story = of_users();
    story.origin([ok("ann"), fresh(60, "page")]);
    let nominates = "Connection: X-User, X-Original-URI, X-Original-Method, X-Forwarded-For, Cookie";
    let reply = story.get("/shop", &[nominates, "X-Forwarded-For: 192.0.2.1", "Cookie: sid=1", "X-User: root"]);
    let question = ["cookie", "x-original-uri", "x-original-method", "x-forwarded-uri", "x-forwarded-method"];
    assert_eq!(
        question.map(|name| asked_with(&reply, 0, name)),
        [Some("sid=1"), Some("/shop"), Some("GET"), Some("/shop"), Some("GET")]
    );
    assert_eq!(asked_with(&reply, 1, "x-user"), Some("ann"));
}

#[test]
fn under_a_program_it_is_the_same() {
    let name = FieldLine::new("Remote-User", FieldTemplate::parse("$http_x_user").expect("a template"));
    let rules = RouteRules {
        request_fields: FieldEdits { set: vec![name], ..FieldEdits::default() },
        ..guarded_by(service(&["X-User"]))
    };
    let story =
        Story::vcl_with("sub vcl_recv { return (pass); }", |settings| settings.routes[0].rules = Arc::new(rules));
    story.origin([ok("ann"), fresh(60, "page")]);
    let reply = story.get("/", &["Connection: X-User", "X-User: root"]);
    assert_eq!((reply.status(), reply.body()), (200, "page"));
    let told = ["x-user", "remote-user"].map(|name| asked_with(&reply, 1, name));
    assert_eq!(told, [Some("ann"), Some("ann")]);
}

/// A program that asks once more where something failed would come to its origin past the door.
#[test]
fn no_program_has_a_say_in_a_refusal() {
    let program = "sub vcl_recv { return (pass); } \
                   sub vcl_synth { set resp.status = 200; set resp.http.X-Seen = \"1\"; return (restart); }";
    let login = FieldTemplate::parse("/login?back=$request_uri").ok();
    let story = Story::vcl_with(program, |settings| {
        settings.routes[0].rules = Arc::new(guarded_by(AuthRequest { login, ..service(&["X-User"]) }));
    });
    let refusals = [(answer(401, &[], ""), 302, "/login?back=/a"), (answer(500, &[], ""), 502, "")];
    for (said, status, location) in refusals {
        story.origin([said, fresh(60, "secret")]);
        let reply = story.get("/a", &[]);
        assert_eq!((reply.status(), reply.field("location").as_str(), reply.asked().len()), (status, location, 1));
        assert_eq!((reply.field("cache-control").as_str(), reply.field("x-seen").as_str()), ("no-store", ""));
    }
}

/// A page behind the service, with a part that is not, and the other way round.
fn page_and_part(guarded: &str) -> Story {
    let rules = guarded_by(service(&["X-User"]));
    Story::with(|settings| {
        settings.esi.pages = EsiPages::Surrogate;
        settings.limits.esi_ahead_max = 1;
        let route =
            RouteSettings { path_prefix: guarded.to_owned(), rules: Arc::new(rules), ..settings.routes[0].clone() };
        settings.routes.push(route);
    })
}

const WITH_A_PART: [&str; 2] = ["Cache-Control: max-age=60", "Surrogate-Control: content=\"ESI/1.0\""];

#[test]
fn what_a_service_says_is_for_nobody_whom_it_does_not_guard() {
    let story = page_and_part("/page");
    story.origin([ok("ann"), answer(200, &WITH_A_PART, "a<esi:include src=\"/menu\"/>b"), fresh(60, "menu")]);
    let reply = story.get("/page", &["X-User: root"]);
    assert_eq!((reply.body(), reply.asked()[2].as_str()), ("amenub", "GET /menu"));
    assert_eq!([1, 2].map(|at| asked_with(&reply, at, "x-user")), [Some("ann"), None]);
}

#[test]
fn a_page_with_a_part_that_is_somebody_s_is_for_no_cache_behind() {
    let story = page_and_part("/own");
    story.origin([answer(200, &WITH_A_PART, "a<esi:include src=\"/own\"/>b"), ok("ann"), fresh(60, "own")]);
    let reply = story.get("/page", &[]);
    assert_eq!((reply.body(), reply.field("cache-control")), ("aownb", "max-age=60, private".to_owned()));
}

#[test]
fn another_spelling_of_what_is_counted_leads_past_no_count() {
    let limit = crate::settings::ConnectionLimit {
        requests_max: 1,
        by: crate::settings::CountedBy::Client,
        status: 429,
        zone: "api".to_owned(),
    };
    let rules = RouteRules { connection_limits: vec![limit], ..RouteRules::default() };
    let story = Story::vcl_with("sub vcl_recv { return (synth(299)); }", |settings| {
        settings.routes[0].path_prefix = "/api".to_owned();
        settings.routes[0].rules = Arc::new(rules);
    });
    let statuses = ["/api", "/other", "//api", "/%61pi"].map(|path| story.get(path, &[]).status());
    assert_eq!(statuses, [299, 299, 403, 403]);
}

#[test]
fn a_service_is_asked_about_each_part_though_it_let_the_client_in_to_the_page() {
    let story = Story::with(|settings| {
        settings.esi.pages = EsiPages::Surrogate;
        settings.limits.esi_ahead_max = 1;
        settings.routes[0].rules = Arc::new(guarded_by(service(&[])));
    });
    let text = "a<esi:include src=\"/admin\" onerror=\"continue\"/>b";
    story.origin([ok("ann"), answer(200, &WITH_A_PART, text), answer(403, &[], "no")]);
    let reply = story.get("/public", &[]);
    assert_eq!((reply.body(), reply.asked().len()), ("ab", 3), "it says another thing of another path");
}

#[test]
fn under_a_program_parts_are_not_told_what_the_service_of_the_page_says() {
    let program = "sub vcl_recv { return (pass); } sub vcl_backend_response { set beresp.do_esi = true; }";
    let story = Story::vcl_with(program, |settings| {
        settings.limits.esi_ahead_max = 1;
        let name = FieldLine::new("Remote-User", FieldTemplate::parse("$http_x_user").expect("a template"));
        let request_fields = FieldEdits { set: vec![name], ..FieldEdits::default() };
        let guarded = Arc::new(RouteRules { request_fields, ..guarded_by(service(&["X-User"])) });
        let route = RouteSettings { path_prefix: "/page".to_owned(), rules: guarded, ..settings.routes[0].clone() };
        settings.routes.push(route);
    });
    story.origin([ok("ann"), answer(200, &[], "<p><esi:include src=\"/menu\"/>"), answer(200, &[], "menu")]);
    let reply = story.get("/page", &[]);
    assert_eq!((reply.body(), reply.asked()[2].as_str()), ("<p>menu", "GET /menu"));
    for name in ["x-user", "remote-user"] {
        assert_eq!([1, 2].map(|at| asked_with(&reply, at, name)), [Some("ann"), None], "{name}");
    }
}

#[test]
fn under_a_program_no_part_comes_past_what_its_route_answers_itself() {
    let program = "sub vcl_recv { return (pass); } sub vcl_backend_response { set beresp.do_esi = true; }";
    let story = Story::vcl_with(program, |settings| {
        settings.limits.esi_ahead_max = 1;
        let answer = crate::settings::OwnAnswer {
            status: 503,
            location: None,
            body: None,
            kind: "text/plain".into(),
            retry_after: None,
            but_for: Vec::new(),
        };
        let rules = Arc::new(RouteRules { answer: Some(answer), ..RouteRules::default() });
        let route = RouteSettings { path_prefix: "/shop".to_owned(), rules, ..settings.routes[0].clone() };
        settings.routes.push(route);
    });
    story.origin([answer(200, &[], "<p><esi:include src=\"/shop/cart\"/>"), answer(200, &[], "cart")]);
    let reply = story.get("/page", &[]);
    assert_eq!((reply.body(), reply.asked().len()), ("<p>", 1));
}

#[test]
fn who_is_known_to_one_route_is_not_known_to_another_that_a_field_tells_apart() {
    let service = AuthRequest { known_for: Duration::from_secs(10), ..service(&[]) };
    let story = Story::with(|settings| {
        settings.routes[0].rules = Arc::new(guarded_by(service));
        let tenant = crate::settings::FieldCondition::written("X-Tenant", "b").expect("a condition");
        settings.routes.push(RouteSettings { fields: vec![tenant], ..settings.routes[0].clone() });
    });
    let questions = |lines: &[&str]| {
        story.origin([answer(204, &[], ""), answer(200, &["Cache-Control: no-store"], "page")]);
        story
            .get("/", &[&["Authorization: Bearer x"][..], lines].concat())
            .asked()
            .iter()
            .filter(|asked| *asked == "GET /verify")
            .count()
    };
    assert_eq!((questions(&["X-Tenant: a"]), questions(&["X-Tenant: b"])), (1, 1));
}

#[test]
fn a_page_for_each_user_is_stored_whatever_the_field_is_called() {
    let story = with(RouteRules {
        caching: CachingRules {
            selected_by: vec![Selector::Field("remote-user".into())],
            grant: crate::settings::Grant {
                lifetimes: [crate::settings::GrantedLifetime { statuses: None, seconds: 60 }].into(),
                ..crate::settings::Grant::default()
            },
            ..CachingRules::default()
        },
        ..guarded_by(service(&["Remote-User"]))
    });
    let is = |name: &str| answer(200, &[&format!("Remote-User: {name}")], "");
    story.origin([is("ann"), answer(200, &[], "ann's"), is("ann"), is("bob"), answer(200, &[], "bob's")]);
    let pages = [0; 3].map(|_| {
        let reply = story.get("/", &[]);
        (reply.body().to_owned(), reply.asked().len())
    });
    let page = |text: &str, asked| (text.to_owned(), asked);
    assert_eq!(pages, [page("ann's", 2), page("ann's", 1), page("bob's", 2)]);
}
