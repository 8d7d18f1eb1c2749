//! `proxy_cache` and `fastcgi_cache` with what belongs to them, as the words of a `[[route]]` that say what is stored and for how
//! long. What keeps a response from being stored and cannot be said keeps all of the route's from it.

use std::collections::BTreeMap;

use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_maps::Maps;
use crate::import::nginx_times::seconds;

/// What a level says of storing and the levels inside it inherit, each kind of line by itself.
#[derive(Clone, Debug, Default)]
pub struct CachingLevel {
    /// By names without `proxy_` or `fastcgi_`.
    lines: BTreeMap<&'static str, Vec<Directive>>,
}

const KINDS: [&str; 6] = ["cache", "cache_valid", "cache_bypass", "no_cache", "cache_key", "ignore_headers"];

/// What larder does by itself, or has a key for that holds for all routes.
const NEEDS_NOTHING: [&str; 9] = [
    "cache_path",
    "cache_lock",
    "cache_lock_age",
    "cache_lock_timeout",
    "cache_revalidate",
    "cache_background_update",
    "cache_min_uses",
    "cache_max_range_offset",
    "cache_convert_head",
];

/// Where a configuration says nothing of statuses.
const STATUSES_USUAL: [&str; 3] = ["200", "301", "302"];

impl CachingLevel {
    pub fn within(mut self, outer: &CachingLevel) -> CachingLevel {
        for (kind, lines) in &outer.lines {
            self.lines.entry(kind).or_insert_with(|| lines.clone());
        }
        self
    }

    /// Takes a directive in. False: it is another one.
    pub fn take(&mut self, directive: &Directive, findings: &mut Findings) -> bool {
        let Some((_, name)) = directive.name.split_once('_').filter(|(of, _)| matches!(*of, "proxy" | "fastcgi"))
        else {
            return false;
        };
        if let Some(kind) = KINDS.iter().find(|kind| **kind == name) {
            self.lines.entry(kind).or_default().push(directive.clone());
            return true;
        }
        match name {
            "cache_use_stale" => {
                findings.leave(directive, "for how long, say stale_if_error and stale_while_revalidate of the route");
            }
            "cache_methods" => findings.leave(directive, "GET and HEAD are stored"),
            name if NEEDS_NOTHING.contains(&name) => {
                findings.note(directive, "larder does so by itself; how much it stores say [memory] and [[disk]]");
            }
            name if name.starts_with("cache") => findings.leave(directive, "larder has no setting that this becomes"),
            _ => return false,
        }
        true
    }

    fn of(&self, kind: &str) -> impl Iterator<Item = &Directive> {
        self.lines.get(kind).into_iter().flatten()
    }

    /// Does it store responses?
    pub fn is_on(&self) -> bool {
        self.of("cache").last().is_some_and(|cache| cache.argument(0) != "off")
    }

    /// The lines of a route with an origin. `others_store`: somewhere in the configuration responses are stored.
    pub fn route_lines(&self, others_store: bool, maps: &Maps, findings: &mut Findings) -> Vec<String> {
        match (self.is_on(), others_store) {
            (false, false) => return Vec::new(),
            (false, true) => return vec!["cache = false".to_owned()],
            (true, _) => {}
        }
        let mut parts = StoringWords::default();
        self.of("no_cache").for_each(|line| parts.keep_out(line, true, maps, findings));
        self.of("cache_bypass").for_each(|line| parts.keep_out(line, false, maps, findings));
        self.of("cache_key").for_each(|line| parts.key(line, findings));
        self.of("cache_valid").for_each(|line| parts.lives(line, findings));
        self.of("ignore_headers").for_each(|line| parts.ignore(line, findings));
        parts.lines()
    }
}

/// The words as they come together.
#[derive(Default)]
struct StoringWords {
    is_off: bool,
    bypass: Vec<String>,
    kept_cookies: Vec<String>,
    vary_by: Vec<String>,
    ttl: Vec<(String, u64)>,
    ignored: Vec<String>,
}

impl StoringWords {
    /// A line with variables: where one of them says something, nothing is stored, or nothing stored is served.
    fn keep_out(&mut self, line: &Directive, of_storing: bool, maps: &Maps, findings: &mut Findings) {
        let words: Vec<&str> = line.arguments.iter().map(|word| maps.presence_of(word)).collect();
        for word in &words {
            if let Some(cookie) = word.strip_prefix("$cookie_").filter(|name| is_name(name)) {
                self.bypass.push(cookie.to_owned());
            } else if matches!(*word, "$http_authorization" | "$http_pragma" | "$http_cache_control") {
                findings.note(line, "larder heeds these fields by itself");
            } else if of_storing {
                self.is_off = true;
                findings.leave(line, "nothing is stored: larder cannot tell when it must not be");
            } else {
                findings.leave(line, "only cookies can lead past the store: cookies.bypass");
            }
        }
        if of_storing && !self.bypass.is_empty() && words.iter().any(|word| word.starts_with("$cookie_")) {
            findings.note(line, "who has the cookie goes past the store, and nothing of that is kept");
        }
    }

    /// What selects a response beside its URL.
    fn key(&mut self, line: &Directive, findings: &mut Findings) {
        const OF_URLS: [&str; 11] = [
            "scheme",
            "host",
            "http_host",
            "proxy_host",
            "server_name",
            "server_port",
            "request_uri",
            "uri",
            "args",
            "is_args",
            "request_method",
        ];
        let key = line.arguments.concat().replace(['{', '}'], "");
        let names = key
            .split('$')
            .skip(1)
            .map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default());
        for name in names {
            if OF_URLS.contains(&name) {
                continue;
            }
            if let Some(cookie) = name.strip_prefix("cookie_") {
                self.kept_cookies.push(cookie.to_owned());
            } else if let Some(field) = name.strip_prefix("http_") {
                self.vary_by.push(format!("header:{}", field.replace('_', "-")));
            } else {
                self.is_off = true;
                findings.leave(line, "nothing is stored: larder's keys cannot have this variable");
            }
        }
        findings.note(line, "larder's key is the whole URL, which may be more than this");
    }

    fn lives(&mut self, line: &Directive, findings: &mut Findings) {
        let Some((time, statuses)) = line.arguments.split_last() else { return };
        let Some(seconds) = seconds(time) else { return findings.leave(line, "no time") };
        let statuses: Vec<String> = match statuses {
            [] => STATUSES_USUAL.map(str::to_owned).into(),
            [any] if any == "any" => vec!["default".to_owned()],
            some => some.to_vec(),
        };
        for status in statuses {
            let is_status =
                status == "default" || status.parse().is_ok_and(|status: u16| (200..=599).contains(&status));
            match is_status && !self.ttl.iter().any(|(known, _)| *known == status) {
                true => self.ttl.push((status, seconds)),
                false => findings.leave(line, "no status that has a lifetime, or one that has one already"),
            }
        }
    }

    fn ignore(&mut self, line: &Directive, findings: &mut Findings) {
        let has = |name: &str| line.arguments.iter().any(|word| word.eq_ignore_ascii_case(name));
        match (has("cache-control"), has("expires")) {
            (true, true) => self.ignored.push("Cache-Control".to_owned()),
            (false, false) => {}
            _ => findings.leave(line, "Cache-Control and Expires are heeded or ignored together"),
        }
        if has("set-cookie") {
            self.ignored.push("Set-Cookie".to_owned());
        }
        if has("vary") {
            findings.leave(line, "Vary is heeded always: other clients would be told what was meant for one");
        }
    }

    fn lines(&self) -> Vec<String> {
        if self.is_off {
            return vec!["cache = false".to_owned()];
        }
        let list = |names: &[String]| {
            let mut names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
            names.sort_unstable();
            names.dedup();
            names.join(", ")
        };
        let mut lines = Vec::new();
        if !self.ttl.is_empty() {
            let ttl: Vec<String> = self.ttl.iter().map(|(status, s)| format!("{status} = \"{s}s\"")).collect();
            lines.push(format!("ttl = {{ {} }}", ttl.join(", ")));
        }
        if !self.ignored.is_empty() {
            lines.push(format!("ignore_origin = [{}]", list(&self.ignored)));
        }
        let mut cookies = Vec::new();
        if !self.bypass.is_empty() {
            cookies.push(format!("bypass = [{}]", list(&self.bypass)));
        }
        if !self.kept_cookies.is_empty() {
            cookies.push(format!("keep = [{}]", list(&self.kept_cookies)));
        }
        if !cookies.is_empty() {
            lines.push(format!("cookies = {{ {} }}", cookies.join(", ")));
        }
        if !self.vary_by.is_empty() {
            lines.push(format!("vary_by = [{}]", list(&self.vary_by)));
        }
        lines
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn check(lines: &[&str], expect: &[&str], left: usize) {
        let (mut level, mut findings) = (CachingLevel::default(), Findings::default());
        assert!(lines.iter().all(|line| level.take(&directive(line), &mut findings)));
        assert_eq!(level.route_lines(true, &Maps::default(), &mut findings), expect, "{lines:?}");
        assert_eq!(findings.left_count(), left, "{lines:?}: {findings:?}");
    }

    #[test]
    fn lives_and_what_goes_past_the_store_are_words_of_a_route() {
        let valid = ["proxy_cache c", "proxy_cache_valid 200 302 10m", "proxy_cache_valid any 1m"];
        check(&valid, &["ttl = { 200 = \"600s\", 302 = \"600s\", default = \"60s\" }"], 0);
        check(
            &["fastcgi_cache c", "fastcgi_cache_valid 5s"],
            &["ttl = { 200 = \"5s\", 301 = \"5s\", 302 = \"5s\" }"],
            0,
        );
        check(
            &["proxy_cache c", "proxy_no_cache $cookie_sid $http_authorization", "proxy_cache_bypass $cookie_sid"],
            &["cookies = { bypass = [\"sid\"] }"],
            0,
        );
        let ignored = "proxy_ignore_headers Cache-Control Expires Set-Cookie";
        check(&["proxy_cache c", ignored], &["ignore_origin = [\"Cache-Control\", \"Set-Cookie\"]"], 0);
        check(
            &["proxy_cache c", "proxy_cache_key $scheme$host$request_uri$cookie_lang$http_x_tenant"],
            &["cookies = { keep = [\"lang\"] }", "vary_by = [\"header:x-tenant\"]"],
            0,
        );
    }

    #[test]
    fn what_cannot_be_said_of_storing_stores_nothing() {
        check(&["proxy_cache c", "proxy_cache_valid 5s", "proxy_no_cache $skip"], &["cache = false"], 1);
        check(&["proxy_cache c", "proxy_cache_key $request_uri$user_group"], &["cache = false"], 1);
        check(&["proxy_cache off"], &["cache = false"], 0);
        // What is bypassed would be fetched, and no more.
        check(&["proxy_cache c", "proxy_cache_bypass $arg_fresh"], &[], 1);
    }

    #[test]
    fn where_nothing_is_stored_nothing_is_said() {
        assert!(CachingLevel::default().route_lines(false, &Maps::default(), &mut Findings::default()).is_empty());
    }
}
