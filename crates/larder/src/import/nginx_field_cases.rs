//! What an `if` or a `map` of nginx asks of a field of the request, as the conditions of routes that shut out. nginx knows no difference
//! between a field that is missing and one that is empty; larder asks for these apart.

use proxy::settings::RoutePattern;

use crate::import::import_findings::{literal, quoted};
use crate::import::nginx_conditions::with_case;
use crate::import::nginx_order::escaped;

/// One condition of a route: `header = { NAME = VALUE }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldCase {
    name: String,
    /// As it stands in a larder.toml.
    value: String,
}

impl FieldCase {
    pub fn line(&self) -> String {
        format!("header = {{ {} = {} }}", self.name, self.value)
    }
}

/// The name of a field by its variable. `None`: it is another variable, or says which site is asked for.
fn field_of(variable: &str) -> Option<String> {
    let name = variable.strip_prefix("$http_").filter(|name| !name.is_empty() && *name != "host")?;
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_').then(|| name.replace('_', "-"))
}

/// The conditions of which one holds wherever this one of an `if` does. `None`: it asks for something else.
pub fn of_condition(words: &[&str]) -> Option<Vec<FieldCase>> {
    let (variable, sign, value) = match *words {
        [variable] => (variable, "!~", "^0?$"),
        [variable, sign] => (variable, sign, ""),
        [variable, sign, value] => (variable, sign, value),
        _ => return None,
    };
    let name = field_of(variable)?;
    if value.contains('$') && !sign.contains('~') {
        return None;
    }
    match sign {
        "=" => Some(matching(&name, &exactly(value), false)),
        "!=" => Some(matching(&name, &exactly(value), true)),
        "~" | "~*" => of_regex(&name, &with_case(sign, value), false),
        "!~" | "!~*" => of_regex(&name, &with_case(sign, value), true),
        _ => None,
    }
}

/// The conditions of which one holds wherever a regex of a `map` is met, and none of those before it.
pub fn of_regex_behind(variable: &str, regex: &str, before: &[String]) -> Option<Vec<FieldCase>> {
    let others: String = before.iter().map(|other| format!("(?!(?s:.*?)(?:{other}))")).collect();
    let regex = if others.is_empty() { regex.to_owned() } else { format!("^{others}(?s:.*?)(?:{regex})") };
    of_regex(&field_of(variable)?, &regex, false)
}

fn exactly(text: &str) -> String {
    format!("^{}$", escaped(text))
}

fn of_regex(name: &str, regex: &str, is_otherwise: bool) -> Option<Vec<FieldCase>> {
    RoutePattern::new(regex).ok().map(|_| matching(name, regex, is_otherwise))
}

fn matching(name: &str, regex: &str, is_otherwise: bool) -> Vec<FieldCase> {
    let case = |value: String| FieldCase { name: quoted_if_needed(name), value };
    let matches_nothing = RoutePattern::new(regex).is_ok_and(|pattern| pattern.is_match(b""));
    let sign = if is_otherwise { "!~" } else { "~" };
    let is_nothing = matches!(regex, "^$" | "(?i)^$") && !is_otherwise;
    let by_value = (!is_nothing).then(|| case(literal(&format!("{sign}{regex}"))));
    let missing = (matches_nothing != is_otherwise).then(|| case("false".to_owned()));
    by_value.into_iter().chain(missing).collect()
}

/// A key of TOML.
fn quoted_if_needed(name: &str) -> String {
    let is_bare = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_bare { name.to_owned() } else { quoted(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_of_fields_are_asked_of_fields() {
        for (words, expect) in [
            (&["$http_user_agent", "~*", "(ahrefs|semrush)"][..], &["user-agent = '~(?i)(ahrefs|semrush)'"][..]),
            (&["$http_user_agent", "=", ""], &["user-agent = false"]),
            (&["$http_user_agent", "="], &["user-agent = false"]),
            (&["$http_user_agent", "~", "^$"], &["user-agent = false"]),
            (&["$http_user_agent", "~", "^(curl|)$"], &["user-agent = '~^(curl|)$'", "user-agent = false"]),
            (&["$http_x_key", "!=", "a.b"], &["x-key = '!~^a\\.b$'", "x-key = false"]),
            (&["$http_x_key", "=", "a"], &["x-key = '~^a$'"]),
            (&["$http_x_key", "!~", "^a"], &["x-key = '!~^a'", "x-key = false"]),
            (&["$http_x_key", "!~*", "^a|^$"], &["x-key = '!~(?i)^a|^$'"]),
            (&["$http_x_bad"], &["x-bad = '!~^0?$'"]),
        ] {
            let lines: Vec<String> =
                of_condition(words).expect("it is of a field").iter().map(FieldCase::line).collect();
            let expect: Vec<String> = expect.iter().map(|asked| format!("header = {{ {asked} }}")).collect();
            assert_eq!(lines, expect, "{words:?}");
        }
    }

    #[test]
    fn what_is_no_condition_of_a_field_is_none() {
        for words in [
            &["$http_host", "!=", "a.test"][..],
            &["$host", "=", "a.test"],
            &["$http_x", "=", "$host"],
            &["$http_x", "~", "("],
            &["$http_", "=", "a"],
            &["-f", "$http_x"],
        ] {
            assert_eq!(of_condition(words), None, "{words:?}");
        }
    }

    #[test]
    fn entries_of_a_map_come_behind_those_that_take_requests_from_them() {
        let line = |cases: Option<Vec<FieldCase>>| cases.expect("a field's")[0].line();
        assert_eq!(line(of_regex_behind("$http_user_agent", "bot", &[])), "header = { user-agent = '~bot' }");
        let behind = of_regex_behind("$http_user_agent", "(?i)bot", &["(?i)google", "bing"].map(str::to_owned));
        let pattern = "^(?!(?s:.*?)(?:(?i)google))(?!(?s:.*?)(?:bing))(?s:.*?)(?:(?i)bot)";
        assert_eq!(line(behind), format!("header = {{ user-agent = '~{pattern}' }}"));
        let pattern = RoutePattern::new(pattern).expect("a pattern");
        for (agent, expect) in
            [("a Bot", true), ("GoogleBot", false), ("bingbot", false), ("Bingbot", true), ("x", false)]
        {
            assert_eq!(pattern.is_match(agent.as_bytes()), expect, "{agent}");
        }
    }
}
