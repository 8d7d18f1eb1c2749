//! What routes say of storing and of asking the origin: vcl_hash, vcl_backend_fetch, vcl_backend_response.

use proxy::settings::{GrantedLifetime, OriginTimeouts, RouteRules, Selector, TargetRewrite};

use super::printed_route::{KEPT_ROUTE, Needs, Printed, ROUTE, by_route, subroutine};
use super::vcl_statements::Statements;
use super::vcl_texts::{RequestSide, duration, escaped, template};

/// By what responses of a route are selected: names of fields.
pub fn selectors(known: &[Printed<'_>], rules: &RouteRules) -> Vec<String> {
    let own = rules.caching.selected_by.iter().map(|selector| match selector {
        Selector::Field(name) => (**name).to_owned(),
        Selector::Device => "X-Device".to_owned(),
    });
    let cookies = rules.cookies.kept.as_ref().is_some_and(|kept| !kept.is_empty());
    // Where a field tells routes apart, the same URL has an answer for each of its values.
    let conditions = known.iter().flat_map(|printed| &printed.route.fields).map(|field| field.name().to_owned());
    let mut all: Vec<String> = own.chain(cookies.then(|| "Cookie".to_owned())).chain(conditions).collect();
    all.sort_unstable();
    all.dedup();
    all
}

pub fn hash(known: &[Printed<'_>]) -> String {
    let all = by_route(known, &format!("req.http.{ROUTE}"), |printed, out| {
        let names = selectors(known, &printed.route.rules);
        names.iter().for_each(|name| out.say(format!("hash_data(req.http.{name})")));
    });
    subroutine("vcl_hash", "For each of their values there is a response of its own.", &all)
}

pub fn pipe() -> String {
    let mut all = Statements::default();
    all.say(format!("unset bereq.http.{ROUTE}"));
    subroutine("vcl_pipe", "", &all)
}

pub fn backend_fetch(known: &[Printed<'_>], needs: &mut Needs) -> String {
    needs.modules.insert("var");
    let mut all = Statements::default();
    let mut kept = Statements::default();
    kept.say(format!("var.set(\"route\", bereq.http.{ROUTE})"));
    kept.say(format!("unset bereq.http.{ROUTE}"));
    kept.append(by_route(known, KEPT_ROUTE, |printed, out| {
        let route = printed.route;
        rewrite(&route.rules.target, route.path_pattern.as_deref(), needs, out);
        timeouts(&route.rules.timeouts.of_origin, out);
    }));
    // A second attempt has it no more, and everything is done.
    all.when(&format!("bereq.http.{ROUTE}"), kept);
    subroutine("vcl_backend_fetch", "No origin is told of the route.", &all)
}

fn rewrite(
    target: &TargetRewrite,
    pattern: Option<&proxy::settings::RoutePattern>,
    needs: &mut Needs,
    out: &mut Statements,
) {
    if let Some(written) = &target.target
        && let Some(value) = template(written, RequestSide::Fetch, pattern, &mut needs.modules)
    {
        let has_query = written
            .pieces()
            .any(|piece| matches!(piece, proxy::settings::TemplatePiece::Text(text) if text.contains(&b'?')));
        let query = if has_query { "" } else { " + regsub(bereq.url, \"^[^?]*\", \"\")" };
        out.say(format!("set bereq.url = regsub({value}, \"^(?!/)\", \"/\"){query}"));
    } else if let Some(prefix) = &target.stripped_prefix {
        let prefix = escaped(prefix.trim_end_matches('/').as_bytes());
        let rest = format!("regsub(bereq.url, \"^{prefix}(?=/|\\?|$)\", \"\")");
        out.say(format!("set bereq.url = regsub({rest}, \"^(?!/)\", \"/\")"));
    }
}

fn timeouts(said: &OriginTimeouts, out: &mut Statements) {
    let all = [("connect", said.connect), ("first_byte", said.first_byte), ("between_bytes", said.between_bytes)];
    for (name, time) in all.into_iter().filter_map(|(name, time)| Some((name, time?))) {
        out.say(format!("set bereq.{name}_timeout = {}", duration(time)));
    }
}

/// A response is fresh as long as it says, or as its route says.
const SAYS_LIFETIME: &str =
    "beresp.http.Cache-Control ~ \"(?i)(?:^|[\\s,])(?:max-age|s-maxage)\\s*=\" || beresp.http.Expires";

pub fn backend_response(known: &[Printed<'_>], needs: &mut Needs) -> String {
    needs.modules.insert("std");
    let mut all = Statements::default();
    all.when_say(&format!("!({SAYS_LIFETIME})"), "set beresp.ttl = 0s");
    let mut heuristic = Statements::default();
    heuristic.say("set beresp.ttl = (now - std.time(beresp.http.Last-Modified, now)) * 0.1");
    heuristic.when_say("beresp.ttl > 1d", "set beresp.ttl = 1d");
    let is_usual = "beresp.status == 200 || beresp.status == 203 || beresp.status == 300 || beresp.status == 301 || \
                    beresp.status == 308 || beresp.status == 404 || beresp.status == 410";
    all.when(
        &format!("beresp.ttl == 0s && beresp.http.Last-Modified && !({SAYS_LIFETIME}) && ({is_usual})"),
        heuristic,
    );
    let no_grace = "set beresp.grace = 0s";
    all.when_say("beresp.http.Cache-Control !~ \"(?i)stale-while-revalidate\"", no_grace);
    all.append(by_route(known, KEPT_ROUTE, |printed, out| grant(&printed.route.rules, out)));
    // RFC 9111 §3.5.
    let says_shared =
        "beresp.http.Cache-Control !~ \"(?i)(?:^|[\\s,])(?:public|must-revalidate|s-maxage)(?:[\\s,=]|$)\"";
    all.when_say(&format!("bereq.http.Authorization && {says_shared}"), "set beresp.uncacheable = true");
    subroutine("vcl_backend_response", "Nothing is fresh that nobody has called so.", &all)
}

/// What a route says of how its responses are stored.
fn grant(rules: &RouteRules, out: &mut Statements) {
    let grant = &rules.caching.grant;
    if rules.caching.is_off {
        return;
    }
    if let Some(seconds) = grant.stale_while_revalidate_s {
        let says = "beresp.http.Cache-Control !~ \"(?i)stale-while-revalidate\"";
        out.when_say(says, format!("set beresp.grace = {seconds}s"));
    }
    if grant.ignores_set_cookie {
        out.say("unset beresp.http.Set-Cookie");
    }
    let lives = lifetimes(&grant.lifetimes);
    if !grant.ignores_directives {
        if !lives.is_empty() {
            out.when(&format!("!({SAYS_LIFETIME})"), lives);
        }
        return;
    }
    out.say("set beresp.ttl = 0s");
    out.append(lives);
    // What builtin.vcl would look at counts for nothing.
    let mut stores = Statements::default();
    stores.say("set beresp.uncacheable = true");
    out.when("beresp.ttl <= 0s || beresp.http.Set-Cookie || bereq.http.Authorization", stores);
    out.say("return (deliver)");
}

fn lifetimes(all: &[GrantedLifetime]) -> Statements {
    let mut out = Statements::default();
    for lifetime in all {
        let mut set = Statements::default();
        set.say(format!("set beresp.ttl = {}s", lifetime.seconds));
        let condition = match lifetime.statuses {
            None => "beresp.status == 200 || beresp.status == 203 || beresp.status == 300 || beresp.status == 301 || \
                     beresp.status == 308"
                .to_owned(),
            Some((first, last)) if first == last => format!("beresp.status == {first}"),
            Some((first, last)) => format!("beresp.status >= {first} && beresp.status <= {last}"),
        };
        out.else_when(&condition, set);
    }
    out
}
