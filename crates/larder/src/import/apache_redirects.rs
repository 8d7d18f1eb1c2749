//! `Redirect` of Apache, and the one set of its rewriting rules that leads a whole host to `https://`.

use crate::import::apache_conf::name_of;
use crate::import::apache_paths::PathBeginning;
use crate::import::import_findings::quoted;
use crate::import::nginx_conf::Directive;
use crate::import::nginx_order::escaped;

/// Where a beginning of paths is led; `to` is `None`: it is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectWord {
    pub to: Option<String>,
    pub status: u16,
}

/// `[STATUS] FROM TO`. `None`: the path may be spelt in several ways.
pub fn read(directive: &Directive) -> Option<(PathBeginning, RedirectWord)> {
    let mut words: Vec<&str> = directive.arguments.iter().map(String::as_str).collect();
    let mut status = match name_of(directive).as_str() {
        "redirectpermanent" => 301,
        _ => 302,
    };
    if words.first().is_some_and(|first| !first.starts_with('/')) {
        status = match words.remove(0).to_ascii_lowercase().as_str() {
            "permanent" => 301,
            "temp" => 302,
            "seeother" => 303,
            number => number.parse().unwrap_or(0),
        };
    }
    let from = PathBeginning::new(words.first()?)?;
    // Behind a host stands a path, so that what is asked for says no part of the host.
    let is_url = |to: &str| {
        let rest = to.strip_prefix("https://").or(to.strip_prefix("http://"));
        let is_whole =
            rest.map_or(to.len() > 1 && to.starts_with('/') && !to.contains("//"), |rest| rest.contains('/'));
        is_whole && !to.contains(['?', '#', '%', ' ', '\\']) && to.ends_with('/') == from.is_directory()
    };
    let is_known = matches!(status, 301 | 302 | 303 | 307 | 308) && words.len() == 2;
    let to = words.get(1).filter(|to| is_known && is_url(to)).map(|&to| to.to_owned());
    Some((from, RedirectWord { to, status }))
}

/// The expression of a `RedirectMatch`, which may have a status before it, and behind some no URL.
pub fn expression(directive: &Directive) -> Option<&str> {
    let first = directive.argument(0);
    let named = ["permanent", "temp", "seeother", "gone"];
    let is_status =
        first.starts_with(|c: char| c.is_ascii_digit()) || named.contains(&first.to_ascii_lowercase().as_str());
    match (directive.arguments.len(), is_status) {
        (2 | 3, true) => Some(directive.argument(1)),
        (2, false) => Some(first),
        _ => None,
    }
}

/// `RewriteEngine On`, conditions that ask for no TLS, and one rule to `https://` of the same host and path: whether it asks. `None`: it
/// is something else.
pub fn leads_to_tls(lines: &[Directive]) -> Option<bool> {
    let (mut is_on, mut asks, mut leads) = (false, false, false);
    for line in lines {
        let words: Vec<&str> = line.arguments.iter().map(String::as_str).collect();
        match (name_of(line).as_str(), &words[..]) {
            _ if leads => return None,
            ("rewriteengine", [on]) if on.eq_ignore_ascii_case("on") => is_on = true,
            ("rewritecond", ["%{HTTPS}", "off" | "!on" | "!=on" | "=off"]) => asks = true,
            ("rewriterule", [all, to, flags]) => {
                let all_of_it =
                    ["^", ".*", "^.*$", "(.*)", "^(.*)", "^(.*)$", "^/?(.*)", "^/?(.*)$", "^/(.*)", "^/(.*)$"];
                let whole = ["https://%{HTTP_HOST}%{REQUEST_URI}", "https://%{SERVER_NAME}%{REQUEST_URI}"];
                let rest = ["https://%{HTTP_HOST}/$1", "https://%{SERVER_NAME}/$1"];
                let is_rest = all.starts_with("^/") && rest.contains(to);
                let flags = flags.strip_prefix('[').and_then(|flags| flags.strip_suffix(']'))?;
                let mut flags = flags.split(',').map(str::trim);
                let is_redirect = |flag: &str| matches!(flag, "R" | "R=301" | "R=302" | "R=308" | "R=permanent");
                let is_known = |flag: &str| is_redirect(flag) || matches!(flag, "L" | "NE" | "END" | "QSA");
                let are_known = flags.clone().all(is_known) && flags.any(is_redirect);
                leads = are_known && all_of_it.contains(all) && (is_rest || whole.contains(to));
                leads.then_some(())?;
            }
            _ => return None,
        }
    }
    (is_on && leads).then_some(asks)
}

impl RedirectWord {
    /// The pattern of the route, with the group of what stands behind the beginning, and what it does. `None`: it is closed.
    pub fn lines(&self, of: &PathBeginning, region: &PathBeginning) -> Option<(String, Vec<String>)> {
        let to = self.to.as_ref()?.replace('$', "$$");
        let ahead = region.regex().replacen('^', "(?=", 1);
        let pattern = format!("^{ahead}){}(.*)$", escaped(of.text()));
        let text = quoted(&format!("{to}$1$is_args$args"));
        Some((pattern, vec![format!("redirect = {{ to = {text}, status = {} }}", self.status)]))
    }
}

/// Conditions that ask for a WebSocket and a rule that leads it to this URL, as it is asked for: how many lines that are.
pub fn sockets_led(lines: &[Directive], url: &str) -> Option<usize> {
    let said: Vec<String> =
        lines.iter().take(3).map(|line| format!("{} {}", name_of(line), line.arguments.join(" "))).collect();
    let asks = |line: &String, field: &str, values: &[&str]| {
        let value = line.strip_prefix(&format!("rewritecond %{{HTTP:{field}}} "));
        value.is_some_and(|value| values.contains(&value.to_lowercase().as_str()))
    };
    asks(said.first()?, "Upgrade", &["websocket [nc]", "=websocket [nc]", "websocket", "=websocket"]).then_some(())?;
    let asks_more = asks(said.get(1)?, "Connection", &["upgrade [nc]", "=upgrade [nc]"]);
    let rule = said.get(1 + usize::from(asks_more))?.strip_prefix("rewriterule ")?;
    let is_it = ["^/?(.*)", "/?(.*)", "/(.*)", "^/(.*)", "^/?(.*)$", "^/(.*)$"]
        .iter()
        .any(|all| ["[P,L]", "[P]"].iter().any(|flags| rule == format!("{all} {url}/$1 {flags}")));
    is_it.then_some(2 + usize::from(asks_more))
}
