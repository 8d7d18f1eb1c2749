//! What routes make of requests, as statements of vcl_recv: a subroutine for each route, and who calls it.

use proxy::settings::{CookieRules, Network, QueryRules, RouteRules, RouteTarget, Selector, Settings};

use super::printed_route::{DECIDED, Needs, Printed, ROUTE, subroutine};
use super::vcl_conditions;
use super::vcl_fields::{self, PREFLIGHT, Put};
use super::vcl_statements::Statements;
use super::vcl_texts::{RequestSide, alternatives, template};

const READS: &str = "req.method == \"GET\" || req.method == \"HEAD\"";

/// The subroutines of all routes.
pub fn routes(known: &[Printed<'_>], settings: &Settings, needs: &mut Needs) -> String {
    let mut in_order: Vec<Printed<'_>> = known.to_vec();
    in_order.sort_by_key(|printed| printed.number);
    let one = |printed: &Printed<'_>| {
        let body = of_route(*printed, settings, needs);
        let comment = format!("[[route]] {}: {}", printed.number, crate::config::shown_route(printed.route));
        subroutine(&format!("route_{}", printed.number), &comment, &body)
    };
    in_order.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// vcl_recv: finds the route.
pub fn receive(known: &[Printed<'_>]) -> String {
    let mut all = Statements::default();
    all.say(format!("unset req.http.{ROUTE}"));
    all.say(format!("unset req.http.{DECIDED}"));
    let mut finds = Statements::default();
    let mut is_complete = false;
    for printed in known.iter() {
        let mut found = Statements::default();
        found.say(format!("set req.http.{ROUTE} = \"{}\"", printed.number));
        found.say(format!("call route_{}", printed.number));
        match vcl_conditions::of(printed.route) {
            Some(condition) => finds.else_when(&condition, found),
            None => {
                finds.otherwise(found);
                is_complete = true;
                break;
            }
        }
    }
    if !is_complete {
        let mut nobody = Statements::default();
        nobody.say("return (synth(404))");
        finds.otherwise(nobody);
    }
    all.append(finds);
    all.when_say("req.http.Upgrade ~ \"(?i)^websocket$\"", "return (pipe)");
    let mut passes = Statements::default();
    passes.say(format!("unset req.http.{DECIDED}"));
    passes.say("return (pass)");
    all.when(&format!("req.http.{DECIDED} == \"pass\" || (req.method != \"GET\" && req.method != \"HEAD\")"), passes);
    all.say("return (hash)");
    subroutine("vcl_recv", "", &all)
}

fn of_route(printed: Printed<'_>, settings: &Settings, needs: &mut Needs) -> Statements {
    let (route, rules) = (printed.route, &*printed.route.rules);
    let mut all = Statements::default();
    if let RouteTarget::Origin(origin) = route.target {
        all.say(format!("set req.backend_hint = {}", settings.origins[origin].name));
    }
    guards(printed, needs, &mut all);
    if rules.answer_fields.cross_origin.is_some() {
        all.when_say(PREFLIGHT, "return (synth(204))");
    }
    own_answer(printed, needs, &mut all);
    match route.target {
        RouteTarget::Closed => all.say("return (synth(403))"),
        RouteTarget::Itself => all.say("return (synth(404))"),
        _ => {
            query(&rules.query, needs, &mut all);
            cookies(&rules.cookies, needs, &mut all);
            if rules.caching.selected_by.contains(&Selector::Device) {
                device(&mut all);
            }
            let edits = &rules.request_fields;
            let pattern = route.path_pattern.as_deref();
            vcl_fields::remove("req", &edits.removed, &mut all);
            vcl_fields::put(("req", Put::InPlace), &edits.set, pattern, needs, &mut all);
            vcl_fields::put(("req", Put::Beside), &edits.added, pattern, needs, &mut all);
            store(rules, &mut all);
        }
    }
    all
}

/// Who is not answered.
fn guards(printed: Printed<'_>, needs: &mut Needs, out: &mut Statements) {
    let (number, rules) = (printed.number, &printed.route.rules);
    if !rules.access.denied.is_empty() {
        let name = format!("route_{number}_denied");
        needs.acls.push(acl(&name, &rules.access.denied));
        out.when_say(&format!("client.ip ~ {name}"), "return (synth(403))");
    }
    if let Some(allowed) = &rules.access.allowed {
        let name = format!("route_{number}_allowed");
        needs.acls.push(acl(&name, allowed));
        out.when_say(&format!("client.ip !~ {name}"), "return (synth(403))");
    }
    for (at, limit) in rules.rate_limits.iter().enumerate() {
        let who = match &limit.by {
            None => Some("client.ip".to_owned()),
            Some(key) => template(key, RequestSide::Client, printed.route.path_pattern.as_deref(), &mut needs.modules),
        };
        let Some(who) = who else { continue };
        needs.modules.insert("vsthrottle");
        let (burst, micros) = (limit.rate.burst, limit.rate.period_us.saturating_mul(u64::from(limit.rate.burst)));
        let period = super::vcl_texts::duration(std::time::Duration::from_micros(micros));
        let denied = format!("vsthrottle.is_denied(\"{number} {at} \" + {who}, {burst}, {period})");
        out.when_say(&denied, format!("return (synth({}))", limit.status));
    }
    if let Some(max) = rules.request_body_bytes_max {
        needs.modules.insert("std");
        out.when_say("req.http.Transfer-Encoding", "return (synth(411))");
        out.when_say(&format!("std.integer(req.http.Content-Length, 0) > {max}"), "return (synth(413))");
    }
}

fn acl(name: &str, networks: &[Network]) -> String {
    let line = |network: &Network| format!("    \"{}\"/{};\n", network.address, network.prefix_bits);
    format!("acl {name} {{\n{}}}\n", networks.iter().map(line).collect::<String>())
}

/// What the route answers by itself; the answer is made in vcl_synth.
fn own_answer(printed: Printed<'_>, needs: &mut Needs, out: &mut Statements) {
    let Some(answer) = &printed.route.rules.answer else { return };
    let mut says = Statements::default();
    says.say(format!("set req.http.{DECIDED} = \"answer\""));
    says.say(format!("return (synth({}))", answer.status));
    if answer.but_for.is_empty() {
        return out.append(says);
    }
    let name = format!("route_{}_sees_it", printed.number);
    needs.acls.push(acl(&name, &answer.but_for));
    out.when(&format!("client.ip !~ {name}"), says);
}

fn query(rules: &QueryRules, needs: &mut Needs, out: &mut Statements) {
    if !rules.bypass.is_empty() {
        let names = alternatives(&rules.bypass, "[^=&]*");
        out.when_say(&format!("req.url ~ \"[?&](?:{names})(?:=|&|$)\""), passes());
    }
    let cut = |names: &str| format!("set req.url = regsuball(req.url, \"(?<=[?&]){names}(?:=[^&]*)?(?:&|$)\", \"\")");
    if !rules.ignored.is_empty() {
        out.say(cut(&format!("(?:{})", alternatives(&rules.ignored, "[^=&]*"))));
    }
    match rules.kept.as_deref() {
        None => {}
        Some([]) => out.say("set req.url = regsub(req.url, \"\\?.*$\", \"\")"),
        Some(kept) => {
            out.say(cut(&format!("(?!(?:{})(?:[=&]|$))[^=&]*", alternatives(kept, "[^=&]*"))));
        }
    }
    if rules.sorts {
        needs.modules.insert("std");
        out.say("set req.url = std.querysort(req.url)");
    }
    if !rules.ignored.is_empty() || rules.kept.as_ref().is_some_and(|kept| !kept.is_empty()) {
        out.say("set req.url = regsub(req.url, \"[?&]$\", \"\")");
    }
}

fn cookies(rules: &CookieRules, needs: &mut Needs, out: &mut Statements) {
    if !rules.acts() {
        return;
    }
    let mut cuts = Statements::default();
    if !rules.stripped.is_empty() {
        cuts.say(format!("cookie.filter_re(\"^(?:{})$\")", alternatives(&rules.stripped, ".*")));
    }
    match rules.kept.as_deref() {
        None | Some([]) => {}
        Some(kept) => cuts.say(format!("cookie.keep_re(\"^(?:{})$\")", alternatives(kept, ".*"))),
    }
    let mut left = Statements::default();
    if rules.kept.as_ref().is_some_and(Vec::is_empty) {
        left.say("unset req.http.Cookie");
    } else if !cuts.is_empty() {
        needs.modules.insert("cookie");
        left.say("cookie.parse(req.http.Cookie)");
        left.append(cuts);
        left.say("set req.http.Cookie = regsub(cookie.get_string(), \";\\s*$\", \"\")");
        left.when_say("req.http.Cookie == \"\"", "unset req.http.Cookie");
    }
    let mut with_cookies = Statements::default();
    if !rules.bypass.is_empty() {
        let names = alternatives(&rules.bypass, "[^=;]*");
        let one = format!("req.http.Cookie ~ \"(?:^|;)\\s*(?:{names})\\s*(?:=|;|$)\"");
        with_cookies.when_say(&one, passes());
    }
    with_cookies.otherwise(left);
    out.when(&format!("req.http.Cookie && ({READS})"), with_cookies);
}

fn passes() -> String {
    format!("set req.http.{DECIDED} = \"pass\"")
}

/// What a browser says that it runs on.
fn device(out: &mut Statements) {
    let mut kinds = Statements::default();
    let is = "req.http.User-Agent ~";
    for (condition, kind) in [
        (format!("{is} \"(?i)bot|crawl|spider|slurp\""), "bot"),
        (format!("{is} \"(?i)ipad\" || ({is} \"(?i)android\" && req.http.User-Agent !~ \"(?i)mobile\")"), "tablet"),
        (format!("{is} \"(?i)tablet\" && req.http.User-Agent !~ \"(?i)tablet pc\""), "tablet"),
        (format!("{is} \"(?i)mobi|iphone|ipod|android\""), "mobile"),
    ] {
        let mut set = Statements::default();
        set.say(format!("set req.http.X-Device = \"{kind}\""));
        kinds.else_when(&condition, set);
    }
    let mut other = Statements::default();
    other.say("set req.http.X-Device = \"desktop\"");
    kinds.otherwise(other);
    out.append(kinds);
}

/// What goes past the store.
fn store(rules: &RouteRules, out: &mut Statements) {
    if rules.caching.is_off {
        return out.say(passes());
    }
    if !rules.caching.grant.gives_lifetimes() {
        return;
    }
    out.remark("The origin has not said who may have its pages: nobody's own go into the store. VCL asks for fields by name: add those of your application.");
    let selects = rules.cookies.kept.as_ref().is_some_and(|kept| !kept.is_empty());
    let names = proxy::settings::credential_names().filter(|name| !selects || *name != "Cookie");
    let shown: Vec<String> = names.map(|name| format!("req.http.{name}")).collect();
    out.when_say(&shown.join(" || "), passes());
}
