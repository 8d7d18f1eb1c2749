//! What HAProxy answers by itself: `redirect`, and `http-request return`, as `redirect` and `respond` of a `[[route]]`.

use crate::import::haproxy_rules::RuleEnding;
use crate::import::haproxy_texts::{plain, template};
use crate::import::import_findings::quoted;

/// HAProxy's status where a rule says none.
const FOUND: &str = "302";

const REDIRECTS: [&str; 5] = ["301", "302", "303", "307", "308"];

/// The answer that these words make. `None`: larder has no such one.
pub fn answer(words: &[String]) -> Option<RuleEnding> {
    let (action, words) = words.split_first()?;
    match action.as_str() {
        "redirect" => redirect(words),
        "return" => respond(words),
        _ => None,
    }
}

fn redirect(words: &[String]) -> Option<RuleEnding> {
    let (mut to, mut is_scheme, mut status, mut drops_query) = (None, false, FOUND, false);
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "location" => to = Some((template(words.next()?)?, false)),
            "prefix" => to = Some((template(words.next()?)?, true)),
            "scheme" => {
                let scheme = words.next().filter(|scheme| matches!(*scheme, "http" | "https"))?;
                is_scheme = scheme == "https";
                to = Some((format!("{scheme}://$host"), true));
            }
            "code" => status = words.next().filter(|code| REDIRECTS.contains(code))?,
            "drop-query" => drops_query = true,
            // Cookies and slashes that are set on the way are not said here.
            _ => return None,
        }
    }
    let (to, is_prefix) = to?;
    if is_scheme && !drops_query {
        return Some(RuleEnding::ToTls(status.parse().ok()?));
    }
    let rest = if drops_query { "$uri" } else { "$request_uri" };
    let to = if is_prefix { format!("{}{rest}", to.trim_end_matches('/')) } else { to };
    let is_url = to.starts_with('/') || to.starts_with('$') || to.contains("://");
    (is_url && !to.contains([' ', '"']))
        .then(|| RuleEnding::Answered(vec![format!("redirect = {{ to = {}, status = {status} }}", quoted(&to))]))
}

/// The line of a route that leads to the same URL at https.
pub fn to_tls(status: u16) -> String {
    format!("redirect = {{ to = \"https://$host$request_uri\", status = {status} }}")
}

fn respond(words: &[String]) -> Option<RuleEnding> {
    let (mut status, mut kind, mut body) = (200_u16, None, String::new());
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "status" => status = words.next()?.parse().ok().filter(|status| (200..=599).contains(status))?,
            "content-type" => kind = Some(words.next()?.to_owned()),
            "string" => body = plain(words.next()?),
            "lf-string" => body = template(words.next()?)?,
            "default-errorfiles" => {}
            _ => return None,
        }
    }
    // A refusal is one for every spelling of the path.
    if status == 401 || status == 403 {
        return Some(RuleEnding::Closed(status));
    }
    let mut parts = vec![format!("status = {status}")];
    if !body.is_empty() {
        parts.push(format!("body = {}", quoted(&body)));
    }
    parts.extend(kind.filter(|kind| kind.contains('/')).map(|kind| format!("type = {}", quoted(&kind))));
    Some(RuleEnding::Answered(vec![format!("respond = {{ {} }}", parts.join(", "))]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], expect: Option<&str>) {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let shown = answer(&words).map(|ending| match ending {
            RuleEnding::Answered(lines) => lines.join(" "),
            RuleEnding::ToTls(status) => format!("to tls, {status}"),
            other => format!("{other:?}"),
        });
        assert_eq!(shown.as_deref(), expect, "{words:?}");
    }

    #[test]
    fn redirects_lead_where_haproxy_leads() {
        let to = |to: &str, status: u16| format!("redirect = {{ to = \"{to}\", status = {status} }}");
        check(&["redirect", "scheme", "https", "code", "301"], Some("to tls, 301"));
        check(&["redirect", "scheme", "https"], Some("to tls, 302"));
        check(&["redirect", "location", "/new", "code", "301"], Some(&to("/new", 301)));
        check(&["redirect", "prefix", "https://b.test"], Some(&to("https://b.test$request_uri", 302)));
        check(&["redirect", "prefix", "https://b.test", "drop-query"], Some(&to("https://b.test$uri", 302)));
        check(&["redirect", "location", "https://b.test%[path]"], Some(&to("https://b.test${uri}", 302)));
        check(&["redirect", "location", "https://%[map(x)]"], None);
        check(&["redirect", "prefix", "/", "append-slash"], None);
        check(&["redirect", "location", "new"], None);
    }

    #[test]
    fn texts_are_answered() {
        let words = ["return", "status", "410", "content-type", "text/plain", "string", "gone for $5"];
        check(&words, Some("respond = { status = 410, body = \"gone for $$5\", type = \"text/plain\" }"));
        check(&["return", "status", "403"], Some("Closed(403)"));
        check(&["return", "file", "/x"], None);
    }
}
