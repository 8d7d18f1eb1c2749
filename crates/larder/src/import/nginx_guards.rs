//! What of an nginx configuration keeps people out or answers in a way that larder has not: what stands beside it is closed, or
//! larder would show it to everybody. It makes no routes.

use crate::import::nginx_conf::Directive;

/// Directives that keep people out or answer by themselves, whatever they say.
const GUARDS: [&str; 8] =
    ["valid_referers", "perl", "empty_gif", "random_index", "dav_methods", "SecRulesEnabled", "CheckRule", "BasicRule"];

/// The same for all whose names begin so.
const GUARD_BEGINNINGS: [&str; 7] =
    ["auth_", "secure_link", "js_", "modsecurity", "access_by_", "session_log", "geoip2_deny"];

/// Those that are looked at by who reads levels and locations.
const ANSWERED_FOR: [&str; 8] = [
    "proxy_pass",
    "fastcgi_pass",
    "memcached_pass",
    "memc_pass",
    "auth_basic",
    "auth_basic_user_file",
    "auth_request",
    "auth_request_set",
];

/// Is it one of those?
pub fn is_guard(directive: &Directive) -> bool {
    let name = directive.name.as_str();
    if ANSWERED_FOR.contains(&name) {
        return false;
    }
    GUARDS.contains(&name)
        || GUARD_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || name.contains("_by_lua")
        || name.ends_with("_pass")
        || matches!(name, "ssl_verify_client" | "ssi" | "sub_filter_once") && directive.argument(0) == "on"
        || name == "ssl_verify_client" && directive.argument(0) != "off"
}

/// What keeps a location, or those around it, for nginx's own questions.
pub fn hides_from_outside<'a>(blocks: &[&'a Directive]) -> Option<&'a Directive> {
    blocks.iter().flat_map(|block| block.children()).find(|child| child.name == "internal")
}

/// Names of sources that are nobody's to read, where something in here hands files to a program that runs them.
pub fn sources_run_by(block: &Directive) -> Option<&'static str> {
    match block.name.as_str() {
        "fastcgi_pass" => Some(r"(?i)\.(?:php[0-9]?|phtml|phar|f?cgi|pl|inc)(?:$|[/~.])"),
        "uwsgi_pass" | "scgi_pass" => Some(r"(?i)\.(?:py|rb|f?cgi|pl)(?:$|[/~.])"),
        _ => block.children().iter().find_map(sources_run_by),
    }
}

/// Words of routes that keep people out.
const GUARDING_WORDS: [&str; 4] = ["allow", "deny", "basic_auth", "auth_request"];

/// The word that a line of a route is about.
fn word_of(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

/// Does a route with these lines keep out whom one with those others does?
pub fn are_guarded_like(lines: &[String], others: &[String]) -> bool {
    let mut guards = others.iter().filter(|line| GUARDING_WORDS.contains(&word_of(line)));
    guards.all(|guard| lines.contains(guard))
}

/// Lines of a route, and what others say beside them.
pub fn with_others(lines: &[String], others: &[String]) -> Vec<String> {
    let is_new = |other: &&String| !lines.iter().any(|line| word_of(line) == word_of(other));
    lines.iter().chain(others.iter().filter(is_new)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    #[test]
    fn what_is_not_carried_over_guards() {
        for guard in [
            "auth_jwt x",
            "uwsgi_pass a",
            "grpc_pass a",
            "content_by_lua_block",
            "access_by_lua_file x",
            "secure_link_md5 x",
            "ssl_verify_client on",
            "ssl_verify_client optional",
            "ssi on",
            "js_content x",
            "dav_methods PUT",
        ] {
            assert!(is_guard(&directive(guard)), "{guard}");
        }
        for plain in [
            "proxy_pass http://a",
            "fastcgi_pass a",
            "expires 1d",
            "ssi off",
            "ssl_verify_client off",
            "auth_basic x",
            "auth_request /a",
        ] {
            assert!(!is_guard(&directive(plain)), "{plain}");
        }
    }

    #[test]
    fn guards_of_others_are_asked_for() {
        let lines = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
        let (own, login) =
            (lines(&["allow = [\"10.0.0.0/8\"]", "rate_limit = \"1/s\""]), lines(&["basic_auth = \"a\""]));
        assert!(are_guarded_like(&own, &lines(&["allow = [\"10.0.0.0/8\"]", "rate_limit = \"2/s\""])));
        assert!(!are_guarded_like(&own, &lines(&["allow = [\"10.0.0.1\"]"])) && !are_guarded_like(&own, &login));
        assert_eq!(with_others(&login, &own).len(), 3);
        assert_eq!(with_others(&own, &lines(&["allow = []"])), own);
    }

    #[test]
    fn sources_are_nobodys_where_they_are_run() {
        let server = |child: &str| Directive { block: Some(vec![directive(child)]), ..directive("server") };
        let sources = sources_run_by(&server("fastcgi_pass a")).expect("programs are run");
        let closes = |path: &str| proxy::settings::ClosedPaths::new([sources]).expect("a regex").close(path.as_bytes());
        for closed in ["/a.php", "/a.PHP", "/a.php5", "/a.phtml", "/a.php/x", "/config.php.bak", "/a.php~", "/x.inc"] {
            assert!(closes(closed), "{closed}");
        }
        for open in ["/a.html", "/php", "/a.phpx", "/include"] {
            assert!(!closes(open), "{open}");
        }
        assert_eq!(sources_run_by(&server("proxy_pass http://a")), None);
    }
}
