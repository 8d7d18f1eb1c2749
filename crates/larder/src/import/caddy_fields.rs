//! Fields of requests and answers, as Caddy's `header`, `request_header`, `header_up` and `header_down` edit them, as words of a route.

use crate::config::{may_be_set_in_answers, may_be_set_in_requests};
use crate::import::caddy_text::{TextScope, text};
use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_fields::inline_table;

/// Edits of fields, of which a later one replaces an earlier one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldEdits {
    set: Vec<(String, String)>,
    added: Vec<(String, String)>,
    default: Vec<(String, String)>,
    removed: Vec<String>,
}

/// Whose fields they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldsOf {
    Requests,
    Answers,
}

/// Fields that larder writes to origins by itself.
const WRITTEN_ANYWAY: [&str; 6] =
    ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "forwarded", "via"];

impl FieldEdits {
    /// `[+|-|?|>]NAME [VALUE [REPLACEMENT]]`, as words of this directive.
    pub fn take(
        &mut self,
        words: &[String],
        of: FieldsOf,
        scope: TextScope<'_>,
        (directive, findings): (&Directive, &mut Findings),
    ) {
        let [written, rest @ ..] = words else { return };
        let (kind, name) = match written.chars().next() {
            Some(kind @ ('+' | '-' | '?' | '>')) => (kind, &written[1..]),
            _ => ('=', written.as_str()),
        };
        let name = name.trim_end_matches(':');
        let may_be = match of {
            FieldsOf::Requests => may_be_set_in_requests(name.trim_end_matches('*')),
            FieldsOf::Answers => may_be_set_in_answers(name.trim_end_matches('*')),
        };
        if WRITTEN_ANYWAY.contains(&name.to_lowercase().as_str()) && of == FieldsOf::Requests {
            return findings.note(directive, "larder writes this field by itself");
        }
        if !may_be {
            return findings.leave(directive, "a field that larder does not write");
        }
        match (kind, rest) {
            ('-', _) if name.trim_end_matches('*').contains('*') => {
                findings.leave(directive, "a field is taken out by its name, or by how that begins");
            }
            ('-', _) => {
                self.set.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
                self.added.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
                self.default.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
                self.removed.push(name.to_owned());
            }
            (_, [value]) => self.put(kind, name, value, scope, (directive, findings)),
            _ => findings.leave(directive, "larder sets, adds and removes fields, and replaces no part of one"),
        }
    }

    fn put(
        &mut self,
        kind: char,
        name: &str,
        value: &str,
        scope: TextScope<'_>,
        (directive, findings): (&Directive, &mut Findings),
    ) {
        let said = text(value, TextScope { groups: None, ..scope }).filter(|said| !said.contains(char::is_control));
        let Some(said) = said else {
            return findings.leave(directive, "a placeholder that a field of larder's cannot have");
        };
        if said.is_empty() || said.contains("${remote_user}") {
            return findings.leave(directive, "no value of a field");
        }
        let to = match kind {
            '+' => &mut self.added,
            '?' => &mut self.default,
            _ => &mut self.set,
        };
        to.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        to.push((name.to_owned(), said));
        self.removed.retain(|known| !known.eq_ignore_ascii_case(name));
    }

    /// All words of a directive, or of its block.
    pub fn take_lines(
        &mut self,
        directive: &Directive,
        words: &[String],
        of: FieldsOf,
        scope: TextScope<'_>,
        findings: &mut Findings,
    ) {
        if !words.is_empty() {
            self.take(words, of, scope, (directive, findings));
        }
        for line in directive.children() {
            match line.name.as_str() {
                "defer" => {}
                "match" => findings.leave(line, "a route says a field whatever the status is"),
                name => {
                    let words: Vec<String> =
                        [name.to_owned()].into_iter().chain(line.arguments.iter().cloned()).collect();
                    self.take(&words, of, scope, (line, findings));
                }
            }
        }
    }

    /// With those of another place behind them.
    pub fn and(&self, later: &FieldEdits) -> FieldEdits {
        let mut all = self.clone();
        for (into, from) in
            [(&mut all.set, &later.set), (&mut all.added, &later.added), (&mut all.default, &later.default)]
        {
            for (name, value) in from {
                into.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
                into.push((name.clone(), value.clone()));
            }
        }
        all.removed.extend(later.removed.iter().cloned());
        all
    }

    /// The line of a route, if there is something to say.
    pub fn line(&self, of: FieldsOf) -> Option<String> {
        let mut tables = Vec::new();
        for (key, fields) in [("set", &self.set), ("add", &self.added), ("default", &self.default)] {
            if !fields.is_empty() {
                tables.push(format!("{key} = {}", inline_table(fields)));
            }
        }
        let mut removed: Vec<String> = self.removed.iter().map(|name| quoted(name)).collect();
        removed.dedup();
        if !removed.is_empty() {
            tables.push(format!("remove = [{}]", removed.join(", ")));
        }
        let key = match of {
            FieldsOf::Requests => "request_headers",
            FieldsOf::Answers => "response_headers",
        };
        (!tables.is_empty()).then(|| format!("{key} = {{ {} }}", tables.join(", ")))
    }

    /// Is a field of this name said or taken out?
    pub fn names(&self, name: &str) -> bool {
        let all = self.set.iter().chain(&self.added).chain(&self.default).map(|(name, _)| name).chain(&self.removed);
        all.into_iter().any(|known| known.trim_end_matches('*').eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    /// The line that comes of these, and how much is left.
    fn check(lines: &[&str], of: FieldsOf, expect: Option<&str>, left: usize) {
        let (mut edits, mut findings) = (FieldEdits::default(), Findings::default());
        for line in lines {
            let directive = directive(line);
            edits.take_lines(&directive, &directive.arguments, of, TextScope::default(), &mut findings);
        }
        let line = edits.line(of);
        assert_eq!((line.as_deref(), findings.left_count()), (expect, left), "{lines:?}");
        let text = format!("[[route]]\nrespond = \"\"\n{}\n", line.unwrap_or_default());
        assert!(of == FieldsOf::Requests || crate::config::read(&text).is_ok(), "{text}");
    }

    #[test]
    fn the_last_word_on_a_field_counts() {
        let answers = FieldsOf::Answers;
        check(&["header X-A a", "header x-a b"], answers, Some("response_headers = { set = { \"x-a\" = \"b\" } }"), 0);
        check(&["header X-A a", "header -X-A"], answers, Some("response_headers = { remove = [\"X-A\"] }"), 0);
        let all = "response_headers = { set = { \"C\" = \"3\" }, add = { \"A\" = \"1\" }, default = { \"B\" = \"${host}\" } }";
        check(&["header +A 1", "header ?B {host}", "header >C 3"], answers, Some(all), 0);
        check(&["header -X-*"], answers, Some("response_headers = { remove = [\"X-*\"] }"), 0);
    }

    #[test]
    fn what_cannot_be_said_is_left() {
        let answers = FieldsOf::Answers;
        for line in ["header A b c", "header A {env.X}", "header Content-Length 3", "header -*A"] {
            check(&[line], answers, None, 1);
        }
        let requests = FieldsOf::Requests;
        check(&["header_up X-Forwarded-Proto https"], requests, None, 0);
        check(
            &["header_up X-A {remote_host}"],
            requests,
            Some("request_headers = { set = { \"X-A\" = \"${remote_addr}\" } }"),
            0,
        );
    }
}
