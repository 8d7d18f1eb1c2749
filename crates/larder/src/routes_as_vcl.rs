//! `larder config show --as-vcl`: the routes of a larder.toml as a program, and what of them no program says.
//!
//! Origins are not printed: a program names those of larder.toml as backends. What has no VCL is told above the program, word by word: most of
//! that holds beside a program, and stays where it is.

use proxy::settings::{RouteSettings, RouteTarget, Settings};

use crate::plan::Plan;

mod printed_route;
mod vcl_conditions;
mod vcl_fields;
mod vcl_of_answers;
mod vcl_of_requests;
mod vcl_of_storing;
mod vcl_statements;
mod vcl_texts;
mod words_without_vcl;

use self::printed_route::{Needs, Printed};

/// The program that says what the routes of this plan say. `name`: what the file is called.
pub fn print(plan: &Plan, name: &str) -> String {
    let settings = &plan.settings;
    let all: Vec<Printed<'_>> =
        settings.routes.iter().enumerate().map(|(at, route)| Printed { number: at + 1, route }).collect();
    let mut needs = Needs::default();
    all.iter().for_each(|printed| words_without_vcl::note(printed.route, &mut needs.notes));
    let mut known: Vec<Printed<'_>> = all.into_iter().filter(|printed| decides(printed.route)).collect();
    vcl_conditions::sort(&mut known);
    let answers = vcl_of_answers::answers(&known, &mut needs);
    let synth = vcl_of_answers::synth(&known, !answers.is_empty(), &mut needs);
    let parts = [
        vcl_of_requests::routes(&known, settings, &mut needs),
        vcl_of_requests::receive(&known),
        vcl_of_storing::hash(&known),
        vcl_of_storing::pipe(),
        vcl_of_storing::backend_fetch(&known, &mut needs),
        vcl_of_storing::backend_response(&known, &mut needs),
        answers,
        synth,
    ];
    let mut text = format!("vcl 4.1;\n\n{}", head(settings, name, &needs));
    needs.modules.iter().for_each(|module| text.push_str(&format!("import {module};\n")));
    if settings.origins_for_programs().is_empty() {
        text.push_str("\nbackend default none;\n");
    }
    needs.acls.iter().for_each(|acl| text.push_str(&format!("\n{acl}")));
    parts.iter().filter(|part| !part.is_empty()).for_each(|part| text.push_str(&format!("\n{part}")));
    text
}

/// Is it the program that decides about its requests? Files and memcached answer without one.
fn decides(route: &RouteSettings) -> bool {
    matches!(route.target, RouteTarget::Origin(_) | RouteTarget::Itself | RouteTarget::Closed)
}

/// What there is to know before the program is used.
fn head(settings: &Settings, name: &str, needs: &Needs) -> String {
    let mut lines = vec![
        format!(
            "The routes of {name} as a program. To use it, write vcl = \"FILE\" in [policy], leave each [origin.NAME] where it is, and"
        ),
        "take out every [[route]], and all words of routes in [policy], but for those that are named here.".to_owned(),
    ];
    if settings.policy.ignore_tracking.unwrap_or(true) {
        lines.push("Write ignore_tracking = true in [policy], too: beside a program it is off.".to_owned());
    }
    lines.extend(needs.notes.draw());
    lines.push(
        "Beyond its routes the built-in policy keeps the rules of HTTP (RFC 9111): what a client says in Cache-Control, and invalidation by"
            .to_owned(),
    );
    lines.push("methods that write. This program does not.".to_owned());
    lines.iter().map(|line| format!("# {line}").trim_end().to_owned() + "\n").chain(["\n".to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check_vcl::{self, Beside, VclResult};
    use crate::config;

    fn printed(text: &str) -> String {
        let plan = config::read(text).unwrap_or_else(|wrong| panic!("{wrong:?}"));
        let program = print(&plan, "larder.toml");
        let origins = plan.settings.origins_for_programs();
        let beside = Beside { vcl_path: &[], origins: &origins };
        let checked = check_vcl::check_text("printed.vcl", program.clone().into_bytes(), beside);
        match &checked {
            VclResult::Checked(checked) => assert!(checked.program.is_some(), "{:?}\n{program}", checked.diagnostics),
            VclResult::Unreadable(why) => panic!("{why}"),
        }
        program
    }

    const ORIGINS: &str = "[origin.app]\nurls = \"http://a\"\n[origin.next]\nurls = \"http://b\"\n";

    /// What is printed of a route with these words.
    fn of_route(words: &str) -> String {
        printed(&format!("{ORIGINS}[[route]]\norigin = \"app\"\n{words}\n"))
    }

    #[test]
    fn each_word_has_its_statement() {
        for (words, expect) in [
            ("path = \"/a\"", "if (req.url ~ \"^/a(?:/|\\?|$)\") {"),
            ("host = \"a.test\"", "if (req.http.Host ~ \"(?i)^a\\.test\\.?(?::\\d+)?$\") {"),
            ("host = \"*.a.test\"", "\"(?i)^.+\\.a\\.test\\.?(?::\\d+)?$\""),
            ("method = [\"POST\", \"PUT\"]", "(req.method == \"POST\" || req.method == \"PUT\")"),
            ("header = { X-Beta = \"y*\" }", "req.http.X-Beta ~ \"^y.*$\""),
            ("allow = [\"10.0.0.0/8\"]", "if (client.ip !~ route_1_allowed) {\n        return (synth(403));"),
            ("deny = [\"10.0.0.1\"]", "acl route_1_denied {\n    \"10.0.0.1\"/32;\n}"),
            ("rate_limit = \"10/s\"", "if (vsthrottle.is_denied(\"1 0 \" + client.ip, 10, 1s)) {"),
            ("request_body_max = \"1KiB\"", "if (std.integer(req.http.Content-Length, 0) > 1024) {"),
            ("query = { ignore = [\"a\", \"b*\"] }", "\"(?<=[?&])(?:a|b[^=&]*)(?:=[^&]*)?(?:&|$)\", \"\")"),
            ("query = { bypass = [\"a\", \"b*\"] }", "if (req.url ~ \"[?&](?:a|b[^=&]*)(?:=|&|$)\") {"),
            ("query = { sort = true }", "set req.url = std.querysort(req.url);"),
            ("query = \"ignore\"", "set req.url = regsub(req.url, \"\\?.*$\", \"\");"),
            ("cookies = { bypass = [\"sid\"] }", "if (req.http.Cookie ~ \"(?:^|;)\\s*(?:sid)\\s*(?:=|;|$)\") {"),
            ("cookies = \"strip\"", "unset req.http.Cookie;"),
            ("cookies = { strip = [\"_x*\"] }", "cookie.filter_re(\"^(?:_x.*)$\");"),
            ("cookies = { keep = [\"lang\"] }", "hash_data(req.http.Cookie);"),
            ("vary_by = [\"header:Accept-Language\"]", "hash_data(req.http.accept-language);"),
            ("request_headers = { set = { X-A = \"b $host\" } }", "set req.http.X-A = \"b \" + std.tolower("),
            ("response_headers = { set = { X-A = \"b\" } }", "set resp.http.X-A = \"b\";"),
            ("response_headers = { default = { X-A = \"b\" } }", "if (!resp.http.X-A) {"),
            ("path = \"/a\"\nstrip_prefix = \"/a\"", "regsub(bereq.url, \"^/a(?=/|\\?|$)\", \"\")"),
            ("timeouts = { first_byte = \"2s\" }", "set bereq.first_byte_timeout = 2s;"),
            ("ttl = \"5m\"", "set beresp.ttl = 300s;"),
            ("ttl = { 404 = \"1s\", \"5xx\" = \"2s\" }", "if (beresp.status >= 500 && beresp.status <= 599) {"),
            ("stale_while_revalidate = \"1m\"", "set beresp.grace = 60s;"),
            ("cache = false", "set req.http.Larder-Says = \"pass\";"),
            ("ttl = \"1m\"\nignore_origin = [\"Set-Cookie\"]", "unset beresp.http.Set-Cookie;"),
            ("cors = true", "set resp.http.Access-Control-Allow-Origin = \"*\";"),
            ("maintenance = true", "return (synth(503));"),
        ] {
            let program = of_route(words);
            assert!(program.contains(expect), "{words}\n{program}");
            assert!(program.contains("set req.backend_hint = app;"), "{program}");
        }
    }

    #[test]
    fn what_a_route_answers_itself_is_a_synth() {
        let of = |words: &str| printed(&format!("{ORIGINS}[[route]]\npath = \"/x\"\n{words}\n"));
        let redirect = of("redirect = \"https://www.a.test$request_uri\"");
        assert!(redirect.contains("return (synth(301));"), "{redirect}");
        assert!(redirect.contains("set resp.http.Location = "), "{redirect}");
        let respond = of("respond = { status = 410, body = \"gone \\\"away\\\"\" }");
        assert!(respond.contains("synthetic({\"gone \"away\"\"});"), "{respond}");
        assert!(of("closed = true").contains("return (synth(403));"));
    }

    #[test]
    fn routes_are_asked_in_their_order() {
        let text = format!(
            "{ORIGINS}[[route]]\norigin = \"app\"\n[[route]]\npath = \"/a/b\"\norigin = \"app\"\n[[route]]\npath = \"/a\"\norigin = \"app\"\n\
             [[route]]\npath_pattern = \"\\\\.png$\"\norigin = \"app\"\n[[route]]\nhost = \"a.test\"\norigin = \"app\"\n\
             [[route]]\npath = \"/a\"\nmethod = \"POST\"\norigin = \"app\"\n"
        );
        let program = printed(&text);
        let calls: Vec<&str> = program.lines().filter_map(|line| line.trim().strip_prefix("call route_")).collect();
        assert_eq!(calls, ["5;", "4;", "2;", "6;", "3;", "1;"], "{program}");
    }

    #[test]
    fn a_word_without_vcl_is_named_with_its_route_and_what_to_do() {
        for (words, expect) in [
            ("bandwidth = \"1MiB/s\"", "any host and /: bandwidth"),
            ("connection_limit = 5", "any host and /: connection_limit"),
            ("auth_request = { origin = \"next\" }", "any host and /: auth_request"),
            ("mirror = \"next\"", "any host and /: mirror"),
            ("timeouts = { whole = \"9s\" }", "any host and /: timeouts.whole"),
            ("request_id = true", "any host and /: request_id"),
            ("stale_if_error = \"1m\"", "any host and /: stale_if_error"),
            (
                "response_headers = { remove = [\"X-Int-*\"] }",
                "any host and /: response_headers.remove = [\"x-int-*\"]",
            ),
            ("path = \"/a\"\nallow = [\"::1\"]", "any host and /a: allow, deny"),
        ] {
            let program = of_route(words);
            assert!(program.contains(&format!("#   {expect}")), "{words}\n{program}");
        }
        let files = printed("[[route]]\nroot = \"/srv\"\n[[route]]\npath = \"/x\"\nrespond = \"a\"");
        assert!(files.contains("#   any host and /: root"), "{files}");
        assert!(!of_route("").contains("#   "), "{}", of_route(""));
    }
}
