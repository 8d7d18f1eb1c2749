//! Fields of answers, as nginx's `add_header`, `expires` and their kin say them, as `response_headers` of a `[[route]]`.
//!
//! nginx hands lines of one kind down to a level that says none of them itself. It knows no routes.

use proxy::settings::FieldTemplate;

use crate::config::may_be_set_in_answers;
use crate::import::import_findings::{Findings, quoted};
use crate::import::imported_fields::lets_store;
use crate::import::nginx_conf::Directive;
use crate::import::nginx_times::seconds;

/// What a level says of fields and the levels inside it inherit.
#[derive(Clone, Debug, Default)]
pub struct FieldLevel {
    added: Option<Vec<Directive>>,
    hidden: Option<Vec<Directive>>,
    /// What `expires` makes of Cache-Control. `Some(None)`: it says nothing, whatever is said around.
    expires: Option<Option<String>>,
    /// What `expires` makes of it is another thing for each answer.
    is_life_unknown: bool,
}

/// A table of TOML in one line: names and values.
pub fn inline_table(fields: &[(String, String)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("{} = {}", quoted(name), quoted(value))).collect();
    format!("{{ {} }}", fields.join(", "))
}

impl FieldLevel {
    pub fn within(self, outer: &FieldLevel) -> FieldLevel {
        FieldLevel {
            added: self.added.or_else(|| outer.added.clone()),
            hidden: self.hidden.or_else(|| outer.hidden.clone()),
            is_life_unknown: self.is_life_unknown || self.expires.is_none() && outer.is_life_unknown,
            expires: self.expires.or_else(|| outer.expires.clone()),
        }
    }

    /// Takes a directive in. False: it is another one.
    pub fn take(&mut self, directive: &Directive, findings: &mut Findings) -> bool {
        match directive.name.as_str() {
            "add_header" => self.added.get_or_insert_default().push(directive.clone()),
            "more_set_headers" => {
                for line in &directive.arguments {
                    let Some((name, value)) = line.split_once(':') else { continue };
                    let arguments = vec![name.trim().to_owned(), value.trim().to_owned(), "always".to_owned()];
                    self.added.get_or_insert_default().push(Directive { arguments, ..directive.clone() });
                }
            }
            "proxy_hide_header" | "fastcgi_hide_header" | "more_clear_headers" => {
                self.hidden.get_or_insert_default().push(directive.clone());
            }
            "expires" => self.take_expires(directive, findings),
            _ => return false,
        }
        true
    }

    fn take_expires(&mut self, directive: &Directive, findings: &mut Findings) {
        let seconds = match directive.argument(0) {
            "off" => return self.expires = Some(None),
            "epoch" | "-1" => None,
            "max" => Some(315_360_000),
            text => match seconds(text) {
                Some(seconds) => Some(seconds),
                None if text.contains('$') => {
                    (self.expires, self.is_life_unknown) = (Some(None), true);
                    return findings.leave(
                        directive,
                        "a variable that larder has not: the origin's word counts, and nothing is stored",
                    );
                }
                None => return findings.leave(directive, "a time must be a plain number with a unit"),
            },
        };
        self.expires = Some(Some(seconds.map_or("no-cache".to_owned(), |seconds| format!("max-age={seconds}"))));
        findings.note(directive, "Cache-Control says it; no Expires is sent beside it");
    }

    /// Does it say of answers that they are one client's?
    pub fn keeps_caches_out(&self) -> bool {
        let added = self.added.iter().flatten().any(|line| !lets_store(line.argument(0), line.argument(1)));
        self.is_life_unknown || added || self.expires.iter().flatten().any(|lives| !lets_store("Cache-Control", lives))
    }

    /// Cache-Control of a file.
    pub fn cache_control(&self) -> Option<String> {
        let is_it = |line: &&Directive| is_cache_control(line) && !line.argument(1).contains('$');
        let added = self.added.iter().flatten().filter(is_it).map(|line| line.argument(1).to_owned());
        let said: Vec<String> = self.expires.clone().flatten().into_iter().chain(added).collect();
        (!said.is_empty()).then(|| said.join(", "))
    }

    /// The lines of a route. Files have their Cache-Control by a key of their own.
    pub fn lines(&self, is_of_files: bool, findings: &mut Findings) -> Vec<String> {
        let (mut added, mut set, mut on_success) = (Vec::new(), Vec::new(), Vec::new());
        for line in self.added.iter().flatten() {
            if is_of_files && is_cache_control(line) && !line.argument(1).contains('$') {
                continue;
            }
            let (name, value) = (line.argument(0), line.argument(1));
            if added.iter().any(|(known, _): &(String, String)| known.eq_ignore_ascii_case(name)) {
                findings.leave(line, "a route says a field once");
                continue;
            }
            match why_not_said(name, value) {
                None => {
                    added.push((name.to_owned(), value.to_owned()));
                    on_success.extend((line.argument(2) != "always").then(|| quoted(name)));
                }
                Some(why) => findings.leave(line, why),
            }
        }
        if let (false, Some(Some(lives))) = (is_of_files, &self.expires) {
            set.push(("Cache-Control".to_owned(), lives.clone()));
            on_success.push(quoted("Cache-Control"));
            on_success.dedup();
        }
        let mut removed: Vec<String> = Vec::new();
        for line in self.hidden.iter().flatten() {
            let names = line.arguments.iter().filter(|name| may_be_set_in_answers(name) && !name.contains('*'));
            removed.extend(names.map(|name| quoted(name)));
        }
        if set.iter().any(|(name, _)| name == "Cache-Control") {
            removed.push(quoted("Expires"));
        }
        let mut tables = Vec::new();
        if !set.is_empty() {
            tables.push(format!("set = {}", inline_table(&set)));
        }
        if !added.is_empty() {
            tables.push(format!("add = {}", inline_table(&added)));
        }
        if !removed.is_empty() {
            tables.push(format!("remove = [{}]", removed.join(", ")));
        }
        if !on_success.is_empty() {
            tables.push(format!("on_success = [{}]", on_success.join(", ")));
        }
        if tables.is_empty() { Vec::new() } else { vec![format!("response_headers = {{ {} }}", tables.join(", "))] }
    }
}

fn is_cache_control(line: &Directive) -> bool {
    line.argument(0).eq_ignore_ascii_case("cache-control")
}

/// Why a field cannot be said, if it cannot.
fn why_not_said(name: &str, value: &str) -> Option<&'static str> {
    if value.contains("$upstream_cache_status") {
        return Some("larder says it by itself, in Cache-Status");
    }
    let said = FieldTemplate::parse(value).ok().filter(|value| !value.has_groups() && !value.has_user());
    match (may_be_set_in_answers(name), said) {
        (false, _) => Some("larder writes this field by itself"),
        (true, None) => Some("a variable that a field of an answer cannot have"),
        (true, Some(_)) if value.is_empty() || value.contains(char::is_control) => Some("no value of a field"),
        (true, Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn level(lines: &[&str]) -> (FieldLevel, Findings) {
        let (mut level, mut findings) = (FieldLevel::default(), Findings::default());
        assert!(lines.iter().all(|line| level.take(&directive(line), &mut findings)));
        (level, findings)
    }

    /// The lines of a route with an origin, and how much is left.
    fn check(lines: &[&str], expect: &[&str], left: usize) {
        let (level, mut findings) = level(lines);
        assert_eq!(level.lines(false, &mut findings), expect, "{lines:?}");
        assert_eq!(findings.left_count(), left, "{lines:?}: {findings:?}");
    }

    #[test]
    fn fields_are_added_taken_out_and_lives_said() {
        check(&["add_header X-A b always"], &["response_headers = { add = { \"X-A\" = \"b\" } }"], 0);
        check(
            &["add_header X-Host $host", "proxy_hide_header X-Powered-By"],
            &[
                "response_headers = { add = { \"X-Host\" = \"$host\" }, remove = [\"X-Powered-By\"], on_success = [\"X-Host\"] }",
            ],
            0,
        );
        let lives = "response_headers = { set = { \"Cache-Control\" = \"max-age=3600\" }, remove = [\"Expires\"], on_success = [\"Cache-Control\"] }";
        check(&["expires 1h"], &[lives], 0);
        check(&["expires off"], &[], 0);
    }

    /// `map $sent_http_content_type $expires { default off; text/html epoch; }`.
    #[test]
    fn a_life_that_is_not_known_keeps_caches_out() {
        let (unknown, findings) = level(&["expires $expires"]);
        assert!(unknown.keeps_caches_out() && findings.left_count() == 1);
        assert!(FieldLevel::default().within(&unknown).keeps_caches_out());
        let (known, _) = level(&["expires 1h"]);
        assert!(!known.within(&unknown).keeps_caches_out());
        let (by_map, _) = level(&["add_header Cache-Control $cache_header"]);
        assert!(by_map.keeps_caches_out());
    }

    #[test]
    fn what_cannot_be_said_is_left() {
        check(&["add_header X-A $upstream_addr"], &[], 1);
        check(&["add_header Content-Length 5"], &[], 1);
        check(&["add_header X-A $1"], &[], 1);
        check(
            &["add_header Link a", "add_header Link b"],
            &["response_headers = { add = { \"Link\" = \"a\" }, on_success = [\"Link\"] }"],
            1,
        );
    }

    #[test]
    fn lines_come_from_around_where_a_level_has_none() {
        let (outer, _) = level(&["add_header X-A b", "expires 1h"]);
        let (inner, _) = level(&["add_header X-C d"]);
        let mut findings = Findings::default();
        let lines = inner.within(&outer).lines(true, &mut findings);
        assert_eq!(lines, ["response_headers = { add = { \"X-C\" = \"d\" }, on_success = [\"X-C\"] }"]);
        let inherited = FieldLevel::default().within(&outer);
        assert_eq!(inherited.cache_control().as_deref(), Some("max-age=3600"));
        assert_eq!(
            inherited.lines(true, &mut findings),
            ["response_headers = { add = { \"X-A\" = \"b\" }, on_success = [\"X-A\"] }"]
        );
    }

    #[test]
    fn lives_of_files_come_together() {
        let (level, _) = level(&["expires 30d", "add_header Cache-Control public"]);
        assert_eq!(level.cache_control().as_deref(), Some("max-age=2592000, public"));
    }
}
