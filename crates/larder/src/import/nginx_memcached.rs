//! A location of nginx's that asks memcached, by its own module or by memc-nginx-module, as the keys of a `[[route]]`:
//! variables become the parts of a request that they stand for, and an upstream its servers.
//!
//! What has no such form leaves the location shut, with a word on it: a key that is made otherwise would be another's item.

use std::collections::BTreeMap;

use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;

/// nginx's, where a configuration does not say.
const TIMEOUT_DEFAULT: &str = "60s";
/// What variables in variables may grow to.
const VARIABLE_BYTES_MAX: usize = 64 << 10;

/// `upstream NAME { … }`
#[derive(Clone, Debug)]
pub struct Upstreams(BTreeMap<String, Upstream>);

#[derive(Clone, Debug)]
struct Upstream {
    directive: Directive,
    servers: Vec<String>,
    /// The text behind `hash`, and whether it is consistent.
    hash: Option<(String, bool)>,
    /// Something else says who is asked.
    is_otherwise: bool,
    /// Of the servers that say so.
    max_fails: Option<String>,
    fail_timeout: Option<String>,
}

/// What a level says of memcached and the levels inside it inherit.
#[derive(Clone, Debug, Default)]
pub struct MemcachedLevel {
    /// Names and texts of `set`, in the order in which nginx sets them.
    sets: Vec<(String, String)>,
    connect_timeout: Option<String>,
    read_timeout: Option<String>,
    next_upstream: Option<Vec<String>>,
    commands: Option<Vec<String>>,
    gzip_flag: Option<String>,
    flags_to_last_modified: Option<bool>,
}

/// Which of the two modules, and where it leads.
#[derive(Clone, Debug)]
pub struct Pass {
    pub directive: Directive,
    is_memc: bool,
}

impl Pass {
    pub fn read(directive: &Directive) -> Option<Pass> {
        let is_memc = match directive.name.as_str() {
            "memc_pass" => true,
            "memcached_pass" => false,
            _ => return None,
        };
        Some(Pass { directive: directive.clone(), is_memc })
    }
}

impl Upstreams {
    /// Those that memcached's locations name; others are proxied to.
    pub fn read(http: &Directive, findings: &mut Findings) -> Upstreams {
        let mut upstreams = BTreeMap::new();
        for block in http.children().iter().filter(|directive| directive.name == "upstream") {
            if asks(http, block.argument(0)) {
                upstreams.insert(block.argument(0).to_owned(), Upstream::read(block, findings));
            }
        }
        Upstreams(upstreams)
    }
}

/// Is there a location in it that asks this upstream for items?
fn asks(block: &Directive, upstream: &str) -> bool {
    block.children().iter().any(|directive| match Pass::read(directive) {
        Some(pass) => pass.directive.argument(0) == upstream,
        None => asks(directive, upstream),
    })
}

impl Upstream {
    fn read(block: &Directive, findings: &mut Findings) -> Upstream {
        let mut upstream = Upstream {
            directive: block.clone(),
            servers: Vec::new(),
            hash: None,
            is_otherwise: false,
            max_fails: None,
            fail_timeout: None,
        };
        for directive in block.children() {
            match directive.name.as_str() {
                "server" => upstream.server(directive, findings),
                "hash" => {
                    let is_consistent = directive.argument(1) == "consistent";
                    upstream.hash = Some((directive.argument(0).to_owned(), is_consistent));
                }
                "keepalive" | "keepalive_requests" | "keepalive_timeout" | "keepalive_time" | "zone" => {
                    findings.note(directive, "connections are kept, and shared by all clients of a core");
                }
                _ => {
                    upstream.is_otherwise = true;
                    findings.leave(directive, "the key alone decides which server is asked");
                }
            }
        }
        upstream
    }

    fn server(&mut self, directive: &Directive, findings: &mut Findings) {
        let mut server = directive.argument(0).to_owned();
        for word in &directive.arguments[1.min(directive.arguments.len())..] {
            match word.split_once('=') {
                Some(("weight", "1")) => {}
                Some(("weight", weight)) => server.push_str(&format!(" weight={weight}")),
                Some(("max_fails", count)) => self.max_fails = Some(count.to_owned()),
                Some(("fail_timeout", time)) => self.fail_timeout = Some(time.to_owned()),
                _ if word == "down" => return findings.note(directive, "left out: it is down"),
                _ => findings.leave(directive, "of a server larder knows weight, max_fails and fail_timeout"),
            }
        }
        self.servers.push(server);
    }
}

impl MemcachedLevel {
    pub fn within(self, outer: &MemcachedLevel) -> MemcachedLevel {
        MemcachedLevel {
            sets: outer.sets.iter().cloned().chain(self.sets).collect(),
            connect_timeout: self.connect_timeout.or_else(|| outer.connect_timeout.clone()),
            read_timeout: self.read_timeout.or_else(|| outer.read_timeout.clone()),
            next_upstream: self.next_upstream.or_else(|| outer.next_upstream.clone()),
            commands: self.commands.or_else(|| outer.commands.clone()),
            gzip_flag: self.gzip_flag.or_else(|| outer.gzip_flag.clone()),
            flags_to_last_modified: self.flags_to_last_modified.or(outer.flags_to_last_modified),
        }
    }

    /// Takes a directive in, if it is about memcached. False: it is another one.
    pub fn take(&mut self, directive: &Directive, findings: &mut Findings) -> bool {
        let first = directive.argument(0).to_owned();
        match directive.name.as_str() {
            "set" => {
                let name = first.trim_start_matches('$').to_owned();
                if !name.starts_with("memc") {
                    findings.note(directive, "larder uses this variable in keys of memcached only");
                }
                self.sets.push((name, directive.argument(1).to_owned()));
            }
            "memc_connect_timeout" | "memcached_connect_timeout" => self.connect_timeout = Some(first),
            "memc_read_timeout" | "memcached_read_timeout" => self.read_timeout = Some(first),
            "memc_next_upstream" | "memcached_next_upstream" => self.next_upstream = Some(directive.arguments.clone()),
            "memc_cmds_allowed" => self.commands = Some(directive.arguments.clone()),
            "memcached_gzip_flag" => self.gzip_flag = Some(first),
            "memc_flags_to_last_modified" => self.flags_to_last_modified = Some(first == "on"),
            "memc_send_timeout" | "memcached_send_timeout" => {
                findings.note(directive, "one time counts, from the command to its reply");
            }
            "memc_buffer_size" | "memcached_buffer_size" | "memc_ignore_client_abort" => {
                findings.note(directive, "larder does so by itself");
            }
            _ => return false,
        }
        true
    }

    /// The keys of a route. `None`: what makes the key, or who is asked, has no form here, and that was said.
    pub fn lines(&self, pass: &Pass, upstreams: &Upstreams, findings: &mut Findings) -> Option<Vec<String>> {
        let mut lines = vec!["mode = \"nginx-memc\"".to_owned()];
        let key_name = if pass.is_memc { "memc_key" } else { "memcached_key" };
        let Some(key) = self.parts(key_name) else {
            findings.leave(&pass.directive, "its key has a variable that `key` cannot have");
            return None;
        };
        lines.push(format!("key = {}", quoted(&key)));
        lines.splice(0..0, self.server_lines(pass, &key, upstreams, findings)?);
        if pass.is_memc {
            for (name, setting) in [("cmd", "command"), ("value", "value"), ("flags", "flags"), ("exptime", "exptime")]
            {
                let Some(part) = self.parts(&format!("memc_{name}")).filter(|part| is_single(part)) else {
                    findings.leave(&pass.directive, "one of its variables is made of more than one part of a request");
                    return None;
                };
                lines.push(format!("{setting} = {}", quoted(&part)));
            }
            if let Some(commands) = &self.commands {
                let commands: Vec<String> = commands.iter().map(|command| quoted(command)).collect();
                lines.push(format!("commands = [{}]", commands.join(", ")));
            }
        } else {
            lines.extend(["command = \"\"", "commands = [\"get\"]"].map(str::to_owned));
            findings.note(&pass.directive, "what is neither GET nor HEAD is a 403, where nginx says 405");
        }
        for (setting, time) in [("connect_timeout", &self.connect_timeout), ("reply_timeout", &self.read_timeout)] {
            let time = time.as_deref().unwrap_or(TIMEOUT_DEFAULT);
            match duration(time) {
                Some(time) => lines.push(format!("{setting} = {}", quoted(&time))),
                None => findings.leave(&pass.directive, "one of its times is not a plain number with a unit"),
            }
        }
        if let Some(words) = &self.next_upstream {
            let known = ["error", "timeout", "invalid_response", "not_found", "off"];
            let carried: Vec<String> =
                words.iter().filter(|word| known.contains(&word.as_str())).map(|word| quoted(word)).collect();
            if carried.len() < words.len() {
                findings.leave(&pass.directive, "next_server cannot have this word");
            }
            lines.push(format!("next_server = [{}]", carried.join(", ")));
        }
        if let Some(flag) = &self.gzip_flag {
            lines.push(format!("gzip_flag = {flag}"));
        }
        if self.flags_to_last_modified == Some(true) {
            lines.push("flags_to_last_modified = true".to_owned());
        }
        Some(lines)
    }

    fn server_lines(
        &self,
        pass: &Pass,
        key: &str,
        upstreams: &Upstreams,
        findings: &mut Findings,
    ) -> Option<Vec<String>> {
        let to = pass.directive.argument(0);
        if to.contains('$') {
            findings.leave(&pass.directive, "memcached cannot have a variable for its servers");
            return None;
        }
        let Some(upstream) = upstreams.0.get(to) else {
            return Some(vec![format!("memcached = {}", quoted(to))]);
        };
        if upstream.is_otherwise || upstream.servers.is_empty() {
            findings.leave(&pass.directive, "its upstream has servers that a hash cannot choose from");
            return None;
        }
        let servers: Vec<String> = upstream.servers.iter().map(|server| quoted(server)).collect();
        let mut lines = vec![format!("memcached = [{}]", servers.join(", "))];
        if servers.len() == 1 {
            return Some(lines);
        }
        lines.push("hash = \"nginx-consistent\"".to_owned());
        match &upstream.hash {
            Some((text, true)) if self.written(text).as_deref() == Some(key) => {}
            Some((_, true)) => findings.leave(&upstream.directive, "the key alone decides which server is asked"),
            Some((_, false)) => {
                findings.leave(&upstream.directive, "keys are found by consistent hashing: most will be elsewhere");
            }
            None => {
                findings.leave(&upstream.directive, "nginx asks by turns what has no hash; here a key has one server")
            }
        }
        // nginx's own, where a server does not say; 0 is never, for which larder has a number that is not reached.
        let failures = match upstream.max_fails.as_deref() {
            Some("0") => u32::MAX.to_string(),
            failures => failures.unwrap_or("1").to_owned(),
        };
        lines.push(format!("ejection_failures = {failures}"));
        match duration(upstream.fail_timeout.as_deref().unwrap_or("10s")) {
            Some(time) => lines.push(format!("ejection_time = {}", quoted(&time))),
            None => findings.leave(&upstream.directive, "one of its times is not a plain number with a unit"),
        }
        Some(lines)
    }

    /// A variable as a setting of a route has it; empty where it is not set.
    fn parts(&self, name: &str) -> Option<String> {
        match self.sets.iter().any(|(set, _)| set == name) {
            true => self.written(&format!("${name}")),
            false => Some(String::new()),
        }
    }

    /// A text of nginx's with its variables, as one of larder's.
    fn written(&self, text: &str) -> Option<String> {
        let mut known = Variables::new();
        for (name, text) in &self.sets {
            let text = expanded(text, &known);
            known.insert(name, text);
        }
        // Words of larder's own for parts of a path.
        expanded(text, &known).filter(|out| !matches!(out.as_str(), "path" | "uri"))
    }
}

/// What is set so far; `None`: that is no text of larder's.
type Variables<'a> = BTreeMap<&'a str, Option<String>>;

/// With the values that variables have now, as nginx does it where it sets one.
fn expanded(text: &str, known: &Variables) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        push(&mut out, &rest[..at])?;
        let behind = &rest[at + 1..];
        let (name, after) = match behind.strip_prefix('{') {
            Some(inner) => inner.split_once('}')?,
            None => behind.split_at(behind.find(|c| !is_of_name(c)).unwrap_or(behind.len())),
        };
        let is_asked = !known.contains_key("args");
        match name {
            _ if known.contains_key(name) => push(&mut out, known[name].as_deref()?)?,
            "uri" | "document_uri" => push(&mut out, "$uri")?,
            "args" | "query_string" if is_asked => push(&mut out, "$args")?,
            "host" => push(&mut out, "$host")?,
            _ if name.starts_with("arg_") && is_asked || name.starts_with("http_") => {
                push(&mut out, &format!("${name}"))?;
            }
            _ => return None,
        }
        rest = after;
    }
    push(&mut out, rest)?;
    Some(out)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// `None`: it would be read as more of the name in front of it, or is too long.
fn push(out: &mut String, more: &str) -> Option<()> {
    let ends_in_name = out.rfind('$').is_some_and(|at| out[at + 1..].chars().all(is_of_name));
    if ends_in_name && more.starts_with(is_of_name) || out.len() + more.len() > VARIABLE_BYTES_MAX {
        return None;
    }
    out.push_str(more);
    Some(())
}

/// One part of a request, or a text.
fn is_single(part: &str) -> bool {
    let variables = part.matches('$').count();
    let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    variables == 0 || variables == 1 && part != "$host" && part.strip_prefix('$').is_some_and(is_name)
}

/// `60`, `500ms`, `1m`.
fn duration(text: &str) -> Option<String> {
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    match text.strip_suffix("ms") {
        Some(digits) => is_number(digits).then(|| text.to_owned()),
        None => Some(format!("{}s", crate::import::nginx_times::seconds(text)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::Place;

    /// A level with these lines.
    fn level(sets: &[(&str, &str)]) -> MemcachedLevel {
        let (mut level, mut findings) = (MemcachedLevel::default(), Findings::default());
        for (name, text) in sets {
            let arguments = vec![format!("${name}"), (*text).to_owned()];
            let place = Place { file: "nginx.conf".into(), line: 1 };
            let set = Directive { name: "set".to_owned(), arguments, block: None, place };
            assert!(level.take(&set, &mut findings));
        }
        level
    }

    fn check(sets: &[(&str, &str)], text: &str, expect: Option<&str>) {
        assert_eq!(level(sets).written(text).as_deref(), expect, "{text}");
    }

    #[test]
    fn variables_are_parts_of_a_request_or_made_of_such() {
        check(&[], "$uri?$args", Some("$uri?$args"));
        check(&[], "${document_uri}?$query_string", Some("$uri?$args"));
        check(&[], "ns:$arg_k:$http_x_user", Some("ns:$arg_k:$http_x_user"));
        check(&[("j", "$arg_j"), ("k", "a:$j")], "$k;", Some("a:$arg_j;"));
        check(&[], "$remote_addr", None);
        check(&[("k", "$k")], "$k", None);
        check(&[], "${arg_k}x", None);
        check(&[], "uri", None);
        check(&[], "", Some(""));
    }

    /// nginx makes a variable's text where it is set, and those of the server before those of the location.
    #[test]
    fn a_variable_is_what_the_others_were_when_it_was_set() {
        check(&[("ns", "a"), ("k", "$ns:$uri"), ("ns", "b")], "$k", Some("a:$uri"));
        check(&[("k", "$late"), ("late", "x")], "$k", None);
        check(&[("ns", "a"), ("ns", "$ns:b")], "$ns", Some("a:b"));
        check(&[("k", "$remote_addr"), ("k", "x")], "$k", Some("x"));
        let server = level(&[("ns", "a"), ("k", "$ns:$arg_k")]);
        let location = level(&[("ns", "b")]).within(&server);
        assert_eq!(location.written("$k $ns").as_deref(), Some("a:$arg_k b"));
        // Of nginx's own, too.
        check(&[("args", "x")], "$args", Some("x"));
        check(&[("args", "k=x")], "$arg_k", None);
    }

    /// Two texts beside one another would be the name of a third.
    #[test]
    fn no_name_grows_by_what_stands_behind_it() {
        check(&[("m", "yz")], "$arg_j$m", None);
        check(&[("j", "$arg_j")], "${j}_x", None);
        check(&[("m", "-yz")], "$arg_j$m", Some("$arg_j-yz"));
        check(&[("m", "yz")], "${m}_x", Some("yz_x"));
    }

    #[test]
    fn a_variable_that_grows_without_end_is_none() {
        let mut sets = vec![("k", "a very long key")];
        sets.resize(200, ("k", "$k$k"));
        check(&sets, "$k", None);
    }

    #[test]
    fn times_have_units() {
        assert_eq!(
            ["60", "1m", "500ms", "1h30m", "x"].map(duration),
            [Some("60s".to_owned()), Some("60s".to_owned()), Some("500ms".to_owned()), Some("5400s".to_owned()), None]
        );
    }
}
