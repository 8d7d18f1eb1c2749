//! Texts, patterns and values with variables, as VCL writes them.

use std::collections::BTreeSet;
use std::time::Duration;

use proxy::settings::{FieldTemplate, NamePattern, RoutePattern, TemplatePiece};

/// Where the fields of what is asked for stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestSide {
    Client,
    Fetch,
}

/// A text. `None`: it has everything in it by which a text could end.
pub fn quoted(text: &str) -> Option<String> {
    if !text.contains(['"', '\n', '\r']) {
        return Some(format!("\"{text}\""));
    }
    (!text.contains("\"}")).then(|| format!("{{\"{text}\"}}"))
}

/// What stands for exactly this text in a regular expression.
pub fn escaped(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let is_plain = |letter: char| letter.is_alphanumeric() || "/_-<>@#%&=:,;!'~ ".contains(letter);
    let one = |letter: char| match letter {
        // No text in VCL has these in it.
        '"' | '\n' | '\r' => format!("\\x{:02x}", u32::from(letter)),
        letter if is_plain(letter) => letter.to_string(),
        letter => format!("\\{letter}"),
    };
    text.chars().map(one).collect()
}

/// Names that are alike, each as a regular expression in which a star stands for this.
pub fn alternatives(patterns: &[NamePattern], star: &str) -> String {
    let one = |pattern: &NamePattern| pattern.parts().map(escaped).collect::<Vec<_>>().join(star);
    patterns.iter().map(one).collect::<Vec<_>>().join("|")
}

/// A name without a star.
pub fn plain_name(pattern: &NamePattern) -> Option<String> {
    let parts: Vec<&[u8]> = pattern.parts().collect();
    let [name] = parts[..] else { return None };
    String::from_utf8(name.to_vec()).ok().filter(|name| is_field(name))
}

/// Can a field of this name be named in VCL?
pub fn is_field(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

pub fn duration(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis()),
    }
}

/// The path of what is asked for.
pub fn path(side: RequestSide) -> String {
    format!("regsub({}, \"\\?.*$\", \"\")", url(side))
}

pub fn url(side: RequestSide) -> &'static str {
    match side {
        RequestSide::Client => "req.url",
        RequestSide::Fetch => "bereq.url",
    }
}

/// A value with variables. `None`: one of them has no VCL, or a text in it has none.
pub fn template(
    value: &FieldTemplate,
    side: RequestSide,
    pattern: Option<&RoutePattern>,
    modules: &mut BTreeSet<&'static str>,
) -> Option<String> {
    let pieces = value.pieces().map(|piece| match piece {
        TemplatePiece::Text(text) => quoted(std::str::from_utf8(text).ok()?),
        TemplatePiece::Variable(name) => variable(&name, side, pattern, modules),
    });
    let pieces = pieces.collect::<Option<Vec<_>>>()?;
    Some(if pieces.is_empty() { "\"\"".to_owned() } else { pieces.join(" + ") })
}

fn variable(
    name: &str,
    side: RequestSide,
    pattern: Option<&RoutePattern>,
    modules: &mut BTreeSet<&'static str>,
) -> Option<String> {
    let request = if side == RequestSide::Client { "req" } else { "bereq" };
    let url = url(side);
    Some(match name {
        "host" => {
            modules.insert("std");
            format!("std.tolower(regsub({request}.http.Host, \"\\.?(?::\\d+)?$\", \"\"))")
        }
        "request_uri" => url.to_owned(),
        "uri" => path(side),
        "args" => format!("regsub({url}, \"^[^?]*\\??\", \"\")"),
        "is_args" => format!("regsub({url}, \"^[^?]*((\\?).+)?.*$\", \"\\2\")"),
        "and_args" => format!("regsub(regsub({url}, \"^[^?]*\\??\", \"&\"), \"^&$\", \"\")"),
        "remote_addr" if side == RequestSide::Client => "client.ip".to_owned(),
        "request_method" => format!("{request}.method"),
        _ => match (name.strip_prefix("http_"), name.parse::<usize>()) {
            (Some(field), _) => format!("{request}.http.{}", field.replace('_', "-")),
            (None, Ok(group)) => {
                let expression = quoted(&format!("^.*?(?:{}).*$", pattern?.text()))?;
                format!("regsub({}, {expression}, \"\\{group}\")", path(side))
            }
            (None, Err(_)) => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_they_can_be() {
        assert_eq!(quoted("a\\.b"), Some("\"a\\.b\"".to_owned()));
        assert_eq!(quoted("a \"b\""), Some("{\"a \"b\"\"}".to_owned()));
        assert_eq!(quoted("\"}"), None);
        assert_eq!(escaped(b"a.b*(c)"), "a\\.b\\*\\(c\\)");
        assert_eq!(escaped(b"a\"b"), "a\\x22b");
        let patterns = ["a", "b*c"].map(NamePattern::new);
        assert_eq!(alternatives(&patterns, ".*"), "a|b.*c");
        assert_eq!((plain_name(&patterns[0]), plain_name(&patterns[1])), (Some("a".to_owned()), None));
    }

    #[test]
    fn values_are_put_together() {
        let shown = |text: &str| {
            let pattern = RoutePattern::new("^/a/(.*)$").unwrap();
            let value = FieldTemplate::parse(text).unwrap();
            template(&value, RequestSide::Client, Some(&pattern), &mut BTreeSet::new())
        };
        assert_eq!(shown("a$http_x_lang").as_deref(), Some("\"a\" + req.http.x-lang"));
        let group = "\"/b/\" + regsub(regsub(req.url, \"\\?.*$\", \"\"), \"^.*?(?:^/a/(.*)$).*$\", \"\\1\")";
        assert_eq!(shown("/b/$1").as_deref(), Some(group));
        for none in ["$cookie_a", "$request_id", "$remote_user", "$arg_a", "$scheme"] {
            assert_eq!(shown(none), None, "{none}");
        }
        assert_eq!(duration(Duration::from_millis(1_500)), "1500ms");
    }
}
