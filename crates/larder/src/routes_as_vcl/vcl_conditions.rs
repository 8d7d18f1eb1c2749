//! Which requests a route is for, as a condition of VCL, and in which order routes are asked.

use std::cmp::Reverse;

use proxy::settings::{FieldAsked, FieldCondition, FieldText, NamePattern, RouteSettings};

use super::printed_route::Printed;
use super::vcl_texts::{RequestSide, alternatives, escaped, path};

/// Puts routes into the order in which the first that fits is the one that counts.
pub fn sort(routes: &mut [Printed<'_>]) {
    routes.sort_by_key(|printed| {
        let (route, asks) = (printed.route, conditions_count(printed.route));
        let host = match route.host.as_deref() {
            Some(host) if host.starts_with('*') => (1, Reverse(host.len())),
            Some(_) => (0, Reverse(0)),
            None => (2, Reverse(0)),
        };
        // Of patterns the first counts, whatever else it asks for.
        let path = match (&route.path_pattern, &*route.path_prefix) {
            (Some(_), _) if route.yields_to_paths => (2, Reverse(0), Reverse(0)),
            (Some(_), _) => (0, Reverse(0), Reverse(0)),
            (None, "/") => (3, Reverse(0), Reverse(asks)),
            (None, prefix) => (1, Reverse(prefix.len()), Reverse(asks)),
        };
        (host, path, printed.number)
    });
}

fn conditions_count(route: &RouteSettings) -> usize {
    usize::from(!route.methods.is_empty()) + route.fields.len()
}

/// What a route asks of a request. `None`: nothing.
pub fn of(route: &RouteSettings) -> Option<String> {
    let mut all = Vec::new();
    all.extend(route.host.as_deref().map(host));
    all.extend(of_path(route));
    if !route.methods.is_empty() {
        let in_either_case = route.guards_methods_in_either_case();
        let methods = route.methods.iter().map(|method| match in_either_case {
            true => format!("req.method ~ \"(?i)^{}$\"", escaped(method.as_bytes())),
            false => format!("req.method == \"{method}\""),
        });
        let methods: Vec<String> = methods.collect();
        all.push(if methods.len() == 1 { methods.join("") } else { format!("({})", methods.join(" || ")) });
    }
    all.extend(route.fields.iter().map(field));
    (!all.is_empty()).then(|| all.join(" && "))
}

fn host(host: &str) -> String {
    let name = match host.strip_prefix('*') {
        Some(beneath) => format!(".+{}", escaped(beneath.as_bytes())),
        None => escaped(host.as_bytes()),
    };
    format!("req.http.Host ~ \"(?i)^{name}\\.?(?::\\d+)?$\"")
}

fn of_path(route: &RouteSettings) -> Option<String> {
    if let Some(pattern) = &route.path_pattern {
        return Some(format!("{} ~ \"{}\"", path(RequestSide::Client), in_a_text(pattern.text())));
    }
    match &*route.path_prefix {
        "/" => None,
        prefix if prefix.ends_with('/') => Some(format!("req.url ~ \"^{}\"", escaped(prefix.as_bytes()))),
        prefix => Some(format!("req.url ~ \"^{}(?:/|\\?|$)\"", escaped(prefix.as_bytes()))),
    }
}

fn field(condition: &FieldCondition) -> String {
    let name = condition.name();
    match condition.asked() {
        FieldAsked::Present => format!("req.http.{name}"),
        FieldAsked::Missing => format!("(!req.http.{name} || req.http.{name} == \"\")"),
        FieldAsked::Value(value) => format!("req.http.{name} ~ \"{}\"", regex(value)),
        FieldAsked::OtherValue(value) => format!("req.http.{name} && req.http.{name} !~ \"{}\"", regex(value)),
    }
}

fn regex(value: &FieldText) -> String {
    let whole = |pattern: &NamePattern| alternatives(std::slice::from_ref(pattern), ".*");
    match value {
        FieldText::Exactly(value) => format!("^{}$", whole(value)),
        FieldText::InEitherCase(value) => format!("(?i)^{}$", whole(value)),
        FieldText::Matching(pattern) => in_a_text(pattern.text()),
    }
}

/// A pattern in other letters, where a text of VCL would end at them.
fn in_a_text(pattern: &str) -> String {
    let (mut out, mut is_escaped) = (String::new(), false);
    for letter in pattern.chars() {
        match letter {
            '"' | '\n' | '\r' if is_escaped => out.push_str(&format!("x{:02x}", u32::from(letter))),
            '"' | '\n' | '\r' => out.push_str(&format!("\\x{:02x}", u32::from(letter))),
            _ => out.push(letter),
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    out
}

#[cfg(test)]
mod tests {
    use proxy::settings::{RoutePattern, RouteTarget};

    use super::*;

    #[test]
    fn no_pattern_ends_a_text() {
        for (pattern, expect) in
            [(r#"a"b"#, r"a\x22b"), (r#"a\"b"#, r"a\x22b"), (r#"\\""#, r"\\\x22"), ("\n\\r", r"\x0a\r")]
        {
            assert_eq!(in_a_text(pattern), expect, "{pattern}");
        }
    }

    #[test]
    fn what_is_asked_of_a_field_is_asked_in_vcl() {
        let written = |value| FieldCondition::written("X", value).expect("a condition");
        for (condition, expect) in [
            (FieldCondition::present("X"), "req.http.X"),
            (FieldCondition::missing("X"), "(!req.http.X || req.http.X == \"\")"),
            (written("a*"), "req.http.X ~ \"^a.*$\""),
            (written("!(?i)a"), "req.http.X && req.http.X !~ \"(?i)^a$\""),
            (written("~^a|b\""), "req.http.X ~ \"^a|b\\x22\""),
            (written("!~b"), "req.http.X && req.http.X !~ \"b\""),
        ] {
            assert_eq!(field(&condition), expect);
        }
        let path_pattern = Some(std::sync::Arc::new(RoutePattern::new("\"}").expect("a pattern")));
        let route = RouteSettings { path_pattern, ..RouteSettings::to(RouteTarget::Closed) };
        assert!(of(&route).is_some_and(|condition| condition.contains("\\x22}")));
    }
}
