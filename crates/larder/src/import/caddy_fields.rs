//! Fields of requests and answers, as Caddy's `header`, `request_header`, `header_up` and `header_down` edit them, as words of a route.

use crate::config::{may_be_set_in_answers, may_be_set_in_requests, says_client_address};
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
    /// Names that another word of the route writes.
    elsewhere: Vec<String>,
    /// Fields would stay that nobody can name: who has them is answered nothing.
    pub closes: bool,
    /// Something was said of who may keep a page, and cannot be.
    keeps_private: bool,
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
/// Fields of answers by which stores are told what is for whom.
const OF_STORES: [&str; 6] = ["cache-control", "expires", "vary", "pragma", "surrogate-control", "cdn-cache-control"];

impl FieldEdits {
    /// `[+|-|?|>]NAME [VALUE [REPLACEMENT]]`, as words of this directive. What cannot be said of a request's field takes that out: it would be
    /// the client's own.
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
        if WRITTEN_ANYWAY.contains(&name.to_lowercase().as_str()) && of == FieldsOf::Requests {
            return findings.note(directive, "larder writes this field by itself");
        }
        if let Err(why) = self.edit((kind, name, rest), of, scope) {
            findings.leave(directive, why);
            self.leave_out(kind, name, of);
        }
    }

    fn edit(
        &mut self,
        (kind, name, rest): (char, &str, &[String]),
        of: FieldsOf,
        scope: TextScope<'_>,
    ) -> Result<(), &'static str> {
        let may_be = match of {
            FieldsOf::Requests => may_be_set_in_requests(name.trim_end_matches('*')),
            FieldsOf::Answers => may_be_set_in_answers(name.trim_end_matches('*')),
        };
        match (kind, rest) {
            ('-', _) if name.trim_end_matches('*').contains('*') || name.trim_end_matches('*').is_empty() => {
                Err("closed: a field is taken out by its name, or by how that begins")
            }
            _ if !may_be => Err("a field that larder does not write"),
            ('-', _) => {
                self.remove(name);
                Ok(())
            }
            (_, [value]) => {
                let value = self.value(value, of, scope)?;
                self.put(kind, name, value);
                Ok(())
            }
            _ => Err("larder sets, adds and removes fields, and replaces no part of one"),
        }
    }

    fn value(&self, written: &str, of: FieldsOf, scope: TextScope<'_>) -> Result<String, &'static str> {
        let said = text(written, TextScope { groups: None, ..scope }).filter(|said| !said.contains(char::is_control));
        let said = said.ok_or("a placeholder that a field of larder's cannot have")?;
        // Without a login the name is what a client says it is.
        let has_name = of == FieldsOf::Requests && scope.has_login;
        if said.is_empty() || said.contains("${remote_user}") && !has_name {
            return Err("no value of a field");
        }
        if of == FieldsOf::Requests && self.reads_what_it_changed(&said) {
            return Err("a field that an earlier line has changed");
        }
        Ok(said)
    }

    fn put(&mut self, kind: char, name: &str, value: String) {
        let is_taken_out = self.removed.iter().any(|known| is_named(known, name));
        let to = match kind {
            // What has been taken out and is then added is set.
            '+' if !is_taken_out && !says_client_address(name) => &mut self.added,
            '?' if !is_taken_out => &mut self.default,
            _ => &mut self.set,
        };
        to.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        to.push((name.to_owned(), value));
        self.removed.retain(|known| !known.eq_ignore_ascii_case(name));
    }

    fn remove(&mut self, name: &str) {
        for lines in [&mut self.set, &mut self.added, &mut self.default] {
            lines.retain(|(known, _)| !is_named(name, known));
        }
        self.removed.push(name.to_owned());
    }

    /// What is left of an edit that cannot be said.
    fn leave_out(&mut self, kind: char, name: &str, of: FieldsOf) {
        let is_pattern = name.contains('*') || name.is_empty();
        match of {
            FieldsOf::Requests if !is_pattern && may_be_set_in_requests(name) => self.remove(name),
            FieldsOf::Requests => self.closes |= is_pattern || name.eq_ignore_ascii_case("host"),
            FieldsOf::Answers => {
                self.closes |= kind == '-' && is_pattern;
                self.keeps_private |= OF_STORES.iter().any(|known| known.eq_ignore_ascii_case(name));
            }
        }
    }

    /// Another word of the route writes this field.
    pub fn is_written_elsewhere(&mut self, name: &str) {
        self.elsewhere.push(name.to_owned());
    }

    pub fn is_empty(&self) -> bool {
        *self == FieldEdits::default()
    }

    /// Would a value be the client's own that has been changed or taken out here?
    fn reads_what_it_changed(&self, value: &str) -> bool {
        value.split("${http_").skip(1).any(|rest| {
            let name = rest.split('}').next().unwrap_or_default().replace('_', "-");
            self.changed().any(|known| is_named(&known.replace('_', "-"), &name))
        })
    }

    /// What is said all the same where nobody can tell for whom it is: what is taken out is, and what may be for one alone is kept by none.
    pub fn of_all(&self) -> FieldEdits {
        FieldEdits {
            removed: self.removed.clone(),
            closes: self.closes,
            keeps_private: self.keep_private(),
            ..FieldEdits::default()
        }
    }

    /// May an answer be for one client alone, by what is said of it here?
    pub fn keep_private(&self) -> bool {
        let may_be = |(name, value): &(String, String)| match name.to_lowercase().as_str() {
            "cache-control" | "surrogate-control" | "cdn-cache-control" => !is_for_all(value),
            "vary" => !value.eq_ignore_ascii_case("accept-encoding"),
            name => OF_STORES.contains(&name),
        };
        self.keeps_private || self.set.iter().chain(&self.added).chain(&self.default).any(may_be)
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
        later.removed.iter().for_each(|name| all.remove(name));
        for (kind, lines) in [('=', &later.set), ('+', &later.added), ('?', &later.default)] {
            for (name, value) in lines {
                match self.reads_what_it_changed(value) {
                    true => all.remove(name),
                    false => all.put(kind, name, value.clone()),
                }
            }
        }
        all.elsewhere.extend(later.elsewhere.iter().cloned());
        all.closes |= later.closes;
        all.keeps_private |= later.keeps_private;
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

    fn changed(&self) -> impl Iterator<Item = &String> {
        let lines = self.set.iter().chain(&self.added).chain(&self.default);
        lines.map(|(name, _)| name).chain(&self.removed)
    }

    /// Is a field of this name another one than the client's?
    pub fn names(&self, name: &str) -> bool {
        self.changed().chain(&self.elsewhere).any(|known| is_named(known, name))
    }
}

/// Is it this name, or one that begins as what stands before a `*`?
fn is_named(known: &str, name: &str) -> bool {
    match known.strip_suffix('*') {
        Some(start) => name.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start)),
        None => known.eq_ignore_ascii_case(name),
    }
}

/// Does a Cache-Control let everybody have the same page from a store?
fn is_for_all(value: &str) -> bool {
    let lower = value.to_lowercase();
    let mut words = lower.split(',').map(str::trim);
    let lasts = |word: &str| {
        let age = word.strip_prefix("s-maxage=").or_else(|| word.strip_prefix("max-age="));
        word == "public" || word == "immutable" || age.is_some_and(|age| age.parse::<u64>().is_ok_and(|age| age > 0))
    };
    words.clone().any(lasts)
        && !words.any(|word| ["private", "no-store", "no-cache"].iter().any(|no| word.starts_with(no)))
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
        let gone = Some("request_headers = { remove = [\"A\"] }");
        for line in ["header_up A b c", "header_up A {env.X}", "header_up A {http.auth.user.id}"] {
            check(&[line], requests, gone, 1);
        }
        check(
            &["header_up -B", "header_up A {header.B}"],
            requests,
            Some("request_headers = { remove = [\"B\", \"A\"] }"),
            1,
        );
        check(&["header_up -A", "header_up +A 1"], requests, Some("request_headers = { set = { \"A\" = \"1\" } }"), 0);
        check(&["header_up X-Forwarded-Proto https"], requests, None, 0);
        check(
            &["header_up X-A {remote_host}"],
            requests,
            Some("request_headers = { set = { \"X-A\" = \"${remote_addr}\" } }"),
            0,
        );
    }
    fn edits(lines: &[&str], of: FieldsOf) -> FieldEdits {
        let mut edits = FieldEdits::default();
        for line in lines {
            let directive = directive(line);
            edits.take_lines(&directive, &directive.arguments, of, TextScope::default(), &mut Findings::default());
        }
        edits
    }

    #[test]
    fn later_edits_are_told_over_earlier_ones() {
        let requests = |lines: &[&str]| edits(lines, FieldsOf::Requests);
        let line = |first: &[&str], then: &[&str]| requests(first).and(&requests(then)).line(FieldsOf::Requests);
        let gone = "request_headers = { remove = [\"X-A\"] }";
        assert_eq!(line(&["h X-A 1"], &["h -X-A"]).as_deref(), Some(gone));
        assert_eq!(line(&["h X-A 1"], &["h -X-*"]).as_deref(), Some("request_headers = { remove = [\"X-*\"] }"));
        let both = "request_headers = { remove = [\"X-B\", \"X-A\"] }";
        assert_eq!(line(&["h -X-B"], &["h X-A {header.X-B}"]).as_deref(), Some(both));
        let mut removed = requests(&["h -X-Int-*"]);
        removed.is_written_elsewhere("X-User");
        assert!(removed.names("x-int-role") && removed.names("X-user") && !removed.names("X-Int"));
        assert!(
            requests(&["h -*-Secret"]).closes && requests(&["h -*"]).closes && requests(&["h Host {env.X}"]).closes
        );
        assert!(!requests(&["h Connection {env.X}"]).closes && edits(&["h -*-Secret"], FieldsOf::Answers).closes);
    }

    #[test]
    fn what_is_for_one_client_is_kept_by_none() {
        for (line, expect) in [
            ("h Cache-Control max-age=60,public", false),
            ("h Cache-Control public", false),
            ("h Cache-Control max-age=0", true),
            ("h Cache-Control private", true),
            ("h ?Cache-Control no-store", true),
            ("h Cache-Control {env.X}", true),
            ("h Vary Accept-Encoding", false),
            ("h +Vary Cookie", true),
            ("h Expires 0", true),
            ("h -Cache-Control", false),
            ("h X-A private", false),
        ] {
            assert_eq!(edits(&[line], FieldsOf::Answers).keep_private(), expect, "{line}");
        }
    }
}
