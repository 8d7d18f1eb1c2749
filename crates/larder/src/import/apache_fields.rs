//! `Header` and `RequestHeader` of Apache: fields that a route sets or takes out. Values that are made up as they are sent, and conditions,
//! cannot be said.

use crate::config::{may_be_set_in_answers, may_be_set_in_requests};
use crate::import::apache_conf::name_of;
use crate::import::imported_fields::{EditedFields, is_of_caches};
use crate::import::nginx_conf::Directive;

/// Fields of requests that larder writes by itself.
const WRITTEN_ANYWAY: [&str; 8] = [
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-server",
    "forwarded",
    "connection",
    "accept-encoding",
];

/// What a scope or a section says of fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApacheFields {
    answers: EditedFields,
    requests: EditedFields,
    /// Nothing is stored: what caches are told is another thing than what the origin says.
    pub is_kept_private: bool,
}

impl ApacheFields {
    /// Takes a `Header` or a `RequestHeader` in. `None`: it cannot be said. False: larder does so by itself.
    pub fn take(&mut self, directive: &Directive) -> Option<bool> {
        let is_answer = name_of(directive) == "header";
        let mut words = directive.arguments.iter().map(String::as_str).peekable();
        if is_answer {
            words.next_if(|word| matches!(word.to_ascii_lowercase().as_str(), "always" | "onsuccess"));
        }
        let (action, name) = (words.next()?.to_ascii_lowercase(), words.next()?.trim_end_matches(':'));
        let rest: Vec<&str> = words.collect();
        let lower = name.to_ascii_lowercase();
        if !is_answer && WRITTEN_ANYWAY.contains(&lower.as_str()) {
            return (rest.len() <= 1).then_some(false);
        }
        let may_be = if is_answer { may_be_set_in_answers(name) } else { may_be_set_in_requests(name) };
        if !may_be || rest.iter().any(|value| value.contains(['%', '{', '\r', '\n'])) {
            return None;
        }
        if is_answer {
            self.is_kept_private |=
                is_of_caches(name) || matches!(lower.as_str(), "set-cookie" | "age" | "etag" | "last-modified");
        }
        let edits = if is_answer { &mut self.answers } else { &mut self.requests };
        match (action.as_str(), &rest[..]) {
            ("set", [value]) => edits.set(name, value.replace('$', "$$")),
            ("add" | "append" | "merge", [value]) => edits.add(name, value.replace('$', "$$")),
            ("unset", []) => edits.remove(name),
            // Before anything else looks at it, which is what larder does.
            ("unset", ["early"]) if !is_answer => edits.remove(name),
            _ => return None,
        }
        Some(true)
    }

    pub fn then(&mut self, later: &ApacheFields) {
        self.answers.then(&later.answers);
        self.requests.then(&later.requests);
        self.is_kept_private |= later.is_kept_private;
    }

    /// Fields of requests are for who is asked, and nobody is for files.
    pub fn lines(&self, has_origin: bool) -> Vec<String> {
        let requests = has_origin.then(|| self.requests.line("request_headers").0).flatten();
        requests.into_iter().chain(self.answers.line("response_headers").0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    #[test]
    fn fields_are_said_or_not() {
        let check = |line: &str, expect: Option<&str>| {
            let mut fields = ApacheFields::default();
            let taken = fields.take(&directive(line));
            assert_eq!(taken.map(|_| fields.lines(true).join("; ")), expect.map(str::to_owned), "{line}");
        };
        check("Header always set X-A b", Some("response_headers = { set = { \"X-A\" = \"b\" } }"));
        check("header unset X-A", Some("response_headers = { remove = [\"X-A\"] }"));
        check("RequestHeader unset X-User", Some("request_headers = { remove = [\"X-User\"] }"));
        check("RequestHeader set X-Forwarded-Proto https", Some(""));
        check("RequestHeader set X-User %{REMOTE_USER}e", None);
        check("Header set X-A b env=c", None);
        check("Header edit Set-Cookie a b", None);
        check("Header set X-A", None);
        check("RequestHeader set Host a", None);
    }
}
