//! The words of a `[[route]]` beside who answers it. `[policy]` has the same ones for all routes, and presets are made of them: what a route
//! says stands in place of what is said for all, but for fields, which come together.

use proxy::settings::{
    AuthRequest, Bandwidth, CookieRules, CrossOrigin, GrantedLifetime, Login, MirrorSettings, NamePattern, Network,
    OriginSettings, OwnAnswer, QueryRules, RouteAccess, RouteRules, RouteTimeouts, Selector, TargetRewrite, WordSource,
};

use toml::de::DeValue;

use super::complaint::Complaint;
use super::literal;
use super::route_access::{self, RateWords};
use super::route_answers;
use super::route_fields::{self, AnswerFieldWords, FieldWords};
use super::route_match::with_slash;
use super::route_mirror;
use super::route_pace::{self, ConnectionWords};
use super::route_service;
use super::section::{
    Node, Section, as_switch, choice, is_text, network, parsed, seconds, size, switch, text, wrong_type,
};
use super::timeout_words;

/// What was said, and what was not.
#[derive(Clone, Debug, Default)]
pub struct RouteWords {
    allowed: Option<Vec<Network>>,
    denied: Option<Vec<Network>>,
    login: Option<Option<Login>>,
    service: Option<Option<AuthRequest>>,
    rate_limits: Option<Vec<RateWords>>,
    connection_limits: Option<Vec<ConnectionWords>>,
    bandwidth: Option<Option<Bandwidth>>,
    request_body_bytes_max: Option<u64>,
    pub answer: Option<OwnAnswer>,
    /// `maintenance = false`: the site is open, whatever was said before.
    is_open: bool,
    target: Option<TargetRewrite>,
    timeouts: RouteTimeouts,
    pub mirror: Option<Option<MirrorSettings>>,
    query: Option<QueryRules>,
    cookies: Option<CookieRules>,
    request_fields: FieldWords,
    lifetimes: Option<Vec<GrantedLifetime>>,
    stale_while_revalidate_s: Option<u64>,
    stale_if_error_s: Option<u64>,
    cache: Option<Cache>,
    ignored: Option<Ignored>,
    selected_by: Option<Vec<Selector>>,
    answer_fields: AnswerFieldWords,
    cross_origin: Option<Option<CrossOrigin>>,
}

/// What `[policy]` says of all routes.
#[derive(Debug, Default)]
pub struct ForAll {
    pub words: RouteWords,
    /// A VCL decides how responses are stored.
    pub has_program: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cache {
    Off,
    /// As the origin says.
    Origin,
    /// Whatever the origin says.
    Force,
}

/// What of the origin's words does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ignored {
    directives: bool,
    set_cookie: bool,
}

/// Those that say how responses are stored: a program says that itself.
const OF_STORING: [&str; 6] = ["ttl", "stale_while_revalidate", "stale_if_error", "cache", "ignore_origin", "vary_by"];
/// And of what an origin is asked for, and how long it is waited for.
const OF_ASKING: [(&str, &str); 4] = [
    ("strip_prefix", "write `set req.url = …;` in vcl_recv"),
    ("rewrite", "write `set req.url = …;` in vcl_recv"),
    ("mirror", "leave it out: no VCL has a word for it"),
    ("timeouts", "write `set bereq.first_byte_timeout = …;` in vcl_backend_fetch"),
];

/// Reads all of them.
pub fn read(section: &mut Section<'_>, origins: &[OriginSettings]) -> RouteWords {
    let request_id = route_fields::request_id(section);
    RouteWords {
        allowed: section.read_list("allow", network),
        denied: section.read_list("deny", network),
        login: route_access::login(section),
        service: route_service::read(section, origins),
        rate_limits: route_access::rate_limits(section),
        connection_limits: route_pace::connection_limits(section),
        bandwidth: route_pace::bandwidth(section),
        request_body_bytes_max: section.read("request_body_max", size),
        answer: route_answers::read(section),
        is_open: section.read("maintenance", |node| Ok(as_switch(node) == Some(false))).unwrap_or(false),
        target: target(section),
        timeouts: timeout_words::of_route(section),
        mirror: route_mirror::read(section, origins),
        query: query(section),
        cookies: cookies(section),
        request_fields: route_fields::of_requests(section, &request_id),
        lifetimes: lifetimes(section),
        stale_while_revalidate_s: section.read("stale_while_revalidate", seconds),
        stale_if_error_s: section.read("stale_if_error", seconds),
        cache: section.read("cache", cache),
        ignored: ignored(section),
        selected_by: section.read_list("vary_by", selector),
        answer_fields: route_fields::of_answers(section, &request_id),
        cross_origin: route_fields::cross_origin(section),
    }
}

/// Complains about words that do not act beside a program.
pub fn check_beside_program(section: &mut Section<'_>) {
    for key in OF_STORING {
        if let Some(node) = section.get(key) {
            let what = format!("`{key}` says nothing beside a VCL, which decides by itself what is stored");
            let complaint = Complaint::new(node.span(), what, "does not act");
            section
                .complaints()
                .add(complaint.suggest("write it in vcl_backend_response, such as `set beresp.ttl = 10m;`"));
        }
    }
    for (key, suggestion) in OF_ASKING {
        if let Some(node) = section.get(key) {
            let what = format!("`{key}` says nothing beside a VCL, which decides by itself what is asked for");
            let complaint = Complaint::new(node.span(), what, "does not act");
            section.complaints().add(complaint.suggest(suggestion));
        }
    }
}

/// Complains about `cache = "force"` without a lifetime.
pub fn check_lifetimes(section: &mut Section<'_>, rules: &RouteRules) {
    let is_forced =
        section.get("cache").is_some_and(|node| matches!(node.get_ref(), DeValue::String(word) if word == "force"));
    if is_forced && !rules.caching.grant.gives_lifetimes() {
        let span = section.get("cache").map_or(section.span(), |node| node.span());
        let what = "cache = \"force\" needs a `ttl`: nothing else says how long responses are fresh";
        section.complaints().add(Complaint::new(span, what, "for how long?").suggest("add ttl = \"10m\""));
    }
}

impl RouteWords {
    /// The same, with parameters that make no difference, named in an older way.
    pub fn ignoring(mut self, parameters: Vec<NamePattern>) -> RouteWords {
        if !parameters.is_empty() {
            self.query.get_or_insert_default().ignored.extend(parameters);
        }
        self
    }

    /// `cache = false`.
    pub fn stores_nothing(&self) -> bool {
        self.cache == Some(Cache::Off)
    }

    /// What is said, and by whom, over what was said before. `zone` tells the route from others.
    pub fn over(&self, before: &RouteRules, source: WordSource, zone: &str) -> RouteRules {
        let mut rules = before.clone();
        let RouteWords { allowed, denied, login, service, .. } = self.clone();
        let access = &mut rules.access;
        *access = RouteAccess {
            allowed: allowed.or(access.allowed.take()),
            denied: denied.unwrap_or(std::mem::take(&mut access.denied)),
            login: login.unwrap_or(access.login.take()),
            service: service.unwrap_or(access.service.take()),
        };
        if let Some(limits) = &self.rate_limits {
            rules.rate_limits =
                limits.iter().enumerate().map(|(at, limit)| limit.in_zone(&format!("{zone} {at}"))).collect();
        }
        if let Some(limits) = &self.connection_limits {
            rules.connection_limits =
                limits.iter().enumerate().map(|(at, limit)| limit.in_zone(&format!("{zone} {at}"))).collect();
        }
        rules.bandwidth = self.bandwidth.unwrap_or(rules.bandwidth);
        rules.request_body_bytes_max = self.request_body_bytes_max.or(rules.request_body_bytes_max);
        let before = rules.answer.take().filter(|answer| !(self.is_open && route_answers::is_maintenance(answer)));
        rules.answer = self.answer.clone().or(before);
        rules.target = self.target.clone().unwrap_or(rules.target);
        rules.mirror = self.mirror.unwrap_or(rules.mirror);
        rules.timeouts = timeout_words::over(&self.timeouts, &rules.timeouts);
        // A preset's lists stay beside the route's own: who keeps one more cookie does not ask for sessions to be shared.
        let is_beside_preset = |by: WordSource| source == WordSource::Route && matches!(by, WordSource::Preset(_));
        match self.query.clone() {
            Some(query) if is_beside_preset(rules.sources.query) => rules.query = query.beside(rules.query),
            Some(query) => (rules.query, rules.sources.query) = (query, source),
            None => {}
        }
        match self.cookies.clone() {
            Some(cookies) if is_beside_preset(rules.sources.cookies) => rules.cookies = cookies.beside(rules.cookies),
            Some(cookies) => (rules.cookies, rules.sources.cookies) = (cookies, source),
            None => {}
        }
        self.request_fields.add_to(&mut rules.request_fields);
        self.answer_fields.add_to(&mut rules.answer_fields);
        if let Some(cross_origin) = &self.cross_origin {
            rules.answer_fields.cross_origin = cross_origin.clone();
        }
        self.store_over(&mut rules);
        if self.cache.is_some() {
            rules.sources.cache = source;
        }
        rules
    }

    fn store_over(&self, rules: &mut RouteRules) {
        let caching = &mut rules.caching;
        let grant = &mut caching.grant;
        if let Some(lifetimes) = &self.lifetimes {
            grant.lifetimes = lifetimes.clone().into();
        }
        grant.stale_while_revalidate_s = self.stale_while_revalidate_s.or(grant.stale_while_revalidate_s);
        grant.stale_if_error_s = self.stale_if_error_s.or(grant.stale_if_error_s);
        match self.cache {
            Some(Cache::Off) => caching.is_off = true,
            Some(Cache::Origin) => {
                caching.is_off = false;
                (grant.ignores_directives, grant.ignores_set_cookie) = (false, false);
            }
            Some(Cache::Force) => {
                caching.is_off = false;
                (grant.ignores_directives, grant.ignores_set_cookie) = (true, true);
            }
            None => {}
        }
        if let Some(Ignored { directives, set_cookie }) = self.ignored {
            (grant.ignores_directives, grant.ignores_set_cookie) = (directives, set_cookie);
        }
        if let Some(selected_by) = &self.selected_by {
            caching.selected_by = selected_by.clone();
        }
    }
}

/// `ttl = "10m"`, or for each status.
fn lifetimes(section: &mut Section<'_>) -> Option<Vec<GrantedLifetime>> {
    let node = section.get("ttl")?;
    if !matches!(node.get_ref(), DeValue::Table(_)) {
        let seconds = section.read("ttl", seconds)?;
        return Some(vec![GrantedLifetime { statuses: None, seconds }]);
    }
    let table = section.section("ttl")?;
    let mut lifetimes: Vec<GrantedLifetime> = Vec::new();
    for (key, span, node) in table.entries() {
        let statuses = match statuses(key) {
            Some(statuses) => statuses,
            None => {
                let complaint =
                    Complaint::new(span, format!("`{key}` is no status"), "200 to 599, \"4xx\" or \"default\"");
                table.complaints().add(complaint);
                continue;
            }
        };
        match seconds(node) {
            Ok(seconds) => lifetimes.push(GrantedLifetime { statuses, seconds }),
            Err(complaint) => table.complaints().add(complaint),
        }
    }
    // The more exact first.
    lifetimes.sort_by_key(|lifetime| lifetime.statuses.map_or(u16::MAX, |(first, last)| last - first));
    Some(lifetimes)
}

fn statuses(key: &str) -> Option<Option<(u16, u16)>> {
    if key == "default" {
        return Some(None);
    }
    if let Some(class) = key.strip_suffix("xx") {
        let class = class.parse::<u16>().ok().filter(|class| (2..=5).contains(class))?;
        return Some(Some((class * 100, class * 100 + 99)));
    }
    let status = key.parse::<u16>().ok().filter(|status| (200..=599).contains(status))?;
    Some(Some((status, status)))
}

fn cache(node: Node<'_>) -> Result<Cache, Complaint> {
    match as_switch(node) {
        Some(true) => Ok(Cache::Origin),
        Some(false) => Ok(Cache::Off),
        None if !is_text(node) => Err(wrong_type(node, "true, false, \"origin\" or \"force\"")),
        None => choice(node, &[("origin", Cache::Origin), ("force", Cache::Force)]).map_err(|complaint| {
            complaint.suggest(match text(node).unwrap_or_default() {
                "off" | "no" | "none" | "never" | "false" => "write false, without quotes",
                "on" | "yes" | "true" => "write true, without quotes",
                _ => "write true, false, \"origin\" or \"force\"",
            })
        }),
    }
}

fn ignored(section: &mut Section<'_>) -> Option<Ignored> {
    let fields = section.read_list("ignore_origin", |node| {
        let what = "field that can be ignored";
        parsed(node, what, "\"Cache-Control\" (with Expires and its kin) or \"Set-Cookie\"", |name| {
            match &*name.to_ascii_lowercase() {
                "cache-control" => Some(Ignored { directives: true, set_cookie: false }),
                "set-cookie" => Some(Ignored { directives: false, set_cookie: true }),
                _ => None,
            }
        })
    })?;
    Some(fields.into_iter().fold(Ignored::default(), |all, one| Ignored {
        directives: all.directives | one.directives,
        set_cookie: all.set_cookie | one.set_cookie,
    }))
}

fn selector(node: Node<'_>) -> Result<Selector, Complaint> {
    let selector =
        parsed(node, "part of a request", "\"device\", or a field as \"header:Accept-Language\"", |written| {
            match written.split_once(':') {
                None if written == "device" => Some(Selector::Device),
                Some(("header", name)) if route_fields::is_name(name) => {
                    Some(Selector::Field(name.to_ascii_lowercase().into()))
                }
                _ => None,
            }
        });
    selector.map_err(|complaint| match text(node) {
        Ok(name) if route_fields::is_name(name) => complaint.suggest(format!("write \"header:{name}\"")),
        _ => complaint,
    })
}

/// A list of names, each with a `*` for any text if need be.
pub fn names(section: &mut Section<'_>, key: &'static str, what: &'static str) -> Option<Vec<NamePattern>> {
    section.read_list(key, |node| {
        parsed(node, what, "a name, in which a * stands for any text", |written| {
            let is_name = !written.is_empty()
                && written.bytes().all(|byte| byte.is_ascii_graphic() && !b"=;&#?,".contains(&byte));
            is_name.then(|| NamePattern::new(written))
        })
    })
}

/// `query = { bypass, ignore, keep, sort }`, or `"ignore"`: all of it.
fn query(section: &mut Section<'_>) -> Option<QueryRules> {
    let node = section.get("query")?;
    if is_text(node) {
        return section
            .read("query", |node| choice(node, &[("ignore", ())]))
            .map(|()| QueryRules { kept: Some(Vec::new()), ..QueryRules::default() });
    }
    let mut table = section.section("query")?;
    let rules = QueryRules {
        bypass: names(&mut table, "bypass", "query parameter").unwrap_or_default(),
        ignored: names(&mut table, "ignore", "query parameter").unwrap_or_default(),
        kept: names(&mut table, "keep", "query parameter"),
        sorts: table.read("sort", switch).unwrap_or(false),
    };
    table.end();
    Some(rules)
}

/// `cookies = { bypass, strip, keep }`, or `"strip"`: all of them.
fn cookies(section: &mut Section<'_>) -> Option<CookieRules> {
    let node = section.get("cookies")?;
    if is_text(node) {
        return section
            .read("cookies", |node| choice(node, &[("strip", ())]))
            .map(|()| CookieRules { stripped: vec![NamePattern::new("*")], ..CookieRules::default() });
    }
    let mut table = section.section("cookies")?;
    let rules = CookieRules {
        bypass: names(&mut table, "bypass", "cookie").unwrap_or_default(),
        stripped: names(&mut table, "strip", "cookie").unwrap_or_default(),
        kept: names(&mut table, "keep", "cookie"),
    };
    table.end();
    Some(rules)
}

/// `^/a/(.*)$ /b/$1 last`, as nginx has it: a regex, what the path becomes, and a flag.
fn nginx_rewrite(written: &str) -> Option<String> {
    let mut words = written.split_whitespace();
    let (regex, to, flag) = (words.next()?, words.next()?, words.next());
    let (pattern, to) = (literal::text(regex), literal::text(to));
    Some(match flag {
        Some("permanent") => format!("write path_pattern = {pattern} and redirect = {to}"),
        Some("redirect") => format!("write path_pattern = {pattern} and redirect = {{ to = {to}, status = 302 }}"),
        _ => format!("write path_pattern = {pattern} and rewrite = {to}, in a [[route]] of its own"),
    })
}

/// `strip_prefix` and `rewrite`.
fn target(section: &mut Section<'_>) -> Option<TargetRewrite> {
    let prefix = section.read("strip_prefix", |node| {
        let prefix = parsed(node, "beginning of a path", "begins with a slash, as in \"/api\"", |written| {
            (written.starts_with('/') && written.len() > 1 && !written.contains(['?', '#'])).then(|| written.into())
        });
        prefix.map_err(|complaint| with_slash(node, complaint))
    });
    let rewrite = section.read("rewrite", |node| {
        let written = text(node)?;
        match written.starts_with('/') || written.starts_with('$') {
            true => route_fields::template(node),
            false => {
                let complaint = Complaint::new(node.span(), format!("`{written}` is no path"), "begins with a slash");
                Err(match nginx_rewrite(written) {
                    Some(write) => complaint.suggest(write),
                    None => with_slash(node, complaint),
                })
            }
        }
    });
    if let (true, true, Some(node)) = (prefix.is_some(), rewrite.is_some(), section.get("strip_prefix")) {
        let what = "`strip_prefix` and `rewrite` both say what the path becomes";
        section.complaints().add(Complaint::new(node.span(), what, "beside `rewrite`"));
    }
    let others = ["root", "memcached", "stub_status", "closed", "redirect", "respond"];
    let is_of_origin = !others.iter().any(|key| section.has(key));
    for key in ["strip_prefix", "rewrite"] {
        if let (false, Some(node)) = (is_of_origin, section.get(key)) {
            let what = format!("`{key}` is for routes with an origin: it says what that is asked for");
            section.complaints().add(Complaint::new(node.span(), what, "no origin here"));
        }
    }
    (prefix.is_some() || rewrite.is_some()).then_some(TargetRewrite { stripped_prefix: prefix, target: rewrite })
}

#[cfg(test)]
mod tests {
    use proxy::settings::RouteRules;

    use super::super::read as read_config;

    fn rules(preset: &str, words: &str) -> RouteRules {
        let text = format!("[origin.a]\nurls = \"http://a\"\n[[route]]\npreset = \"{preset}\"\n{words}\n");
        let plan = read_config(&text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
        (*plan.settings.routes[0].rules).clone()
    }

    #[test]
    fn a_route_s_cookies_and_parameters_stand_beside_those_of_its_preset() {
        let plain = rules("wordpress", "");
        let more = rules(
            "wordpress",
            "cookies = { keep = [\"pll_language\"], bypass = [\"mine\"] }\nquery = { ignore = [\"ref\"], bypass = [\"draft\"] }",
        );
        let is_in = |names: &[super::NamePattern], name: &str| super::NamePattern::any(names, name.as_bytes());
        for name in ["wordpress_logged_in_0f", "wp-postpass_0f", "mine"] {
            assert!(is_in(&more.cookies.bypass, name), "{name}");
        }
        assert!(is_in(more.cookies.kept.as_deref().unwrap(), "pll_language") && plain.cookies.kept.unwrap().is_empty());
        assert!(["rest_route", "draft"].iter().all(|name| is_in(&more.query.bypass, name)));
        assert!(is_in(&more.query.ignored, "ref"));
        // All of them: but for those by which somebody is known.
        for words in ["cookies = \"strip\"", "query = \"ignore\""] {
            let all = rules("wordpress", words);
            assert!(
                is_in(&all.cookies.bypass, "wordpress_logged_in_0f") && is_in(&all.query.bypass, "preview"),
                "{words}"
            );
        }
        // What is kept here is not taken out by a preset that takes out all.
        let kept = rules("static", "cookies = { keep = [\"lang\"] }").cookies;
        assert!(kept.stripped.is_empty() && is_in(&kept.kept.unwrap(), "lang"));
        // A preset that says nothing of cookies leaves what holds for all routes, in whose place the route's words stand.
        assert_eq!(rules("api", "cookies = { keep = [\"a\"] }").cookies.kept.map(|kept| kept.len()), Some(1));
    }
}
