//! What of an nginx configuration keeps people out or answers in place of files, and which paths it holds for. What cannot be
//! carried over is closed: larder would show it to everybody. It makes no routes.

use proxy::settings::ClosedPaths;

use crate::import::nginx_conf::Directive;

/// Directives that keep people out or answer by themselves, whatever they say.
const GUARDS: [&str; 14] = [
    "satisfy",
    "limit_except",
    "valid_referers",
    "internal",
    "if",
    "rewrite",
    "return",
    "perl",
    "empty_gif",
    "random_index",
    "dav_methods",
    "SecRulesEnabled",
    "CheckRule",
    "BasicRule",
];

/// The same for all whose names begin so.
const GUARD_BEGINNINGS: [&str; 7] =
    ["auth_", "secure_link", "js_", "modsecurity", "access_by_", "session_log", "geoip2_deny"];

/// Is it one of those? `allow` and `deny` are judged together, by [`AccessRules`].
pub fn is_guard(directive: &Directive) -> bool {
    let name = directive.name.as_str();
    GUARDS.contains(&name)
        || GUARD_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || name.contains("_by_lua")
        || name.ends_with("_pass")
        || matches!(name, "ssl_verify_client" | "ssi") && directive.argument(0) != "off"
}

/// `allow` and `deny` of one level: the first that fits a client counts.
#[derive(Clone, Debug, Default)]
pub struct AccessRules {
    /// Networks, and whether they are let in.
    rules: Vec<(String, bool)>,
}

impl AccessRules {
    /// Takes one in. False: it is another directive.
    pub fn take(&mut self, directive: &Directive) -> bool {
        let is_rule = matches!(directive.name.as_str(), "allow" | "deny");
        if is_rule {
            self.rules.push((directive.argument(0).to_owned(), directive.name == "allow"));
        }
        is_rule
    }

    /// Is everybody let in?
    pub fn admit_all(&self) -> bool {
        let first_that_decides = self.rules.iter().find(|(network, admits)| !admits || network == "all");
        first_that_decides.is_none_or(|(_, admits)| *admits)
    }

    /// Those who are let in, by networks in CIDR form, before the first that keeps all others out.
    pub fn admitted(&self) -> Vec<String> {
        let all = ["0.0.0.0/0", "::/0"].map(str::to_owned);
        if self.admit_all() {
            return all.into();
        }
        let admitted = self.rules.iter().take_while(|(network, admits)| *admits || network != "all");
        let admitted = admitted.filter(|(_, admits)| *admits);
        admitted.flat_map(|(network, _)| if network == "all" { all.to_vec() } else { vec![network.clone()] }).collect()
    }
}

/// The regex of a location that has one, as PCRE2 takes it.
pub fn regex_of(location: &Directive) -> Option<String> {
    let (first, second) = (location.argument(0), location.argument(1));
    let (regex, ignores_case) = match first {
        "~" => (second, false),
        "~*" => (second, true),
        attached => match attached.strip_prefix("~*") {
            Some(rest) => (rest, true),
            None => (attached.strip_prefix('~')?, false),
        },
    };
    Some(if ignores_case { format!("(?i){regex}") } else { regex.to_owned() })
}

/// Does a location show what lies beneath the root around it, as it is? `root` is how that is written there.
pub fn shows_plain_files(location: &Directive, root: Option<&str>) -> bool {
    let mut rules = AccessRules::default();
    let is_root = |child: &Directive| child.name == "root" && root == Some(child.argument(0));
    let is_plain = |child: &Directive| rules.take(child) || is_about_the_way(child) || is_root(child);
    location.children().iter().all(is_plain) && rules.admit_all()
}

/// Does a location ask an origin, and nothing else that would keep anybody out or answer by itself?
pub fn asks_an_origin(location: &Directive) -> bool {
    const OF_ORIGINS: [&str; 4] = ["proxy_pass", "proxy_set_header", "proxy_http_version", "proxy_redirect"];
    const BEGINNINGS: [&str; 4] = ["proxy_cache", "proxy_buffer", "proxy_busy_buffers", "proxy_next_upstream"];
    let mut rules = AccessRules::default();
    let is_timeout = |name: &str| name.starts_with("proxy_") && name.ends_with("_timeout");
    let is_of_origins = |name: &str| {
        OF_ORIGINS.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) || is_timeout(name)
    };
    let is_plain = |child: &Directive| {
        let about_the_way = is_about_the_way(child) && child.name != "try_files";
        rules.take(child) || about_the_way || is_of_origins(&child.name)
    };
    let has_one = location.children().iter().filter(|child| child.name == "proxy_pass").count() == 1;
    has_one && location.children().iter().all(is_plain) && rules.admit_all()
}

/// Is it about how a file is sent, and not about which, nor to whom?
fn is_about_the_way(directive: &Directive) -> bool {
    const NAMES: [&str; 20] = [
        "access_log",
        "error_log",
        "log_not_found",
        "expires",
        "add_header",
        "add_trailer",
        "more_set_headers",
        "etag",
        "if_modified_since",
        "charset",
        "default_type",
        "types",
        "index",
        "aio",
        "directio",
        "output_buffers",
        "postpone_output",
        "max_ranges",
        // Of rewriting, of which there is none beside it.
        "break",
        "send_timeout",
    ];
    const BEGINNINGS: [&str; 9] =
        ["gzip", "brotli", "zstd", "tcp_", "sendfile", "open_file_cache", "limit_rate", "keepalive_", "client_"];
    let name = directive.name.as_str();
    match name {
        "try_files" => tries_its_own_file(directive),
        _ => NAMES.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)),
    }
}

/// Is the file of the path that is asked for among those that are tried?
pub fn tries_its_own_file(try_files: &Directive) -> bool {
    try_files.arguments.iter().any(|word| word == "$uri")
}

/// What a location by a regex, or one within another, closes on the route around it: all of it where it does not show files as
/// they are, and otherwise what others would answer.
pub fn closed_by(location: &Directive, root: Option<&str>) -> ClosedPath {
    let closed = all_of(location);
    if shows_plain_files(location, root) { closed.of_files() } else { closed }
}

fn all_of(location: &Directive) -> ClosedPath {
    let closed = match regex_of(location) {
        Some(regex) => ClosedPath::by_regex(regex),
        None => {
            let path = location.arguments.last().filter(|path| path.starts_with('/'));
            path.map(|path| ClosedPath::by_path(path, location.argument(0) == "="))
        }
    };
    // What is no regex here may guard anything.
    closed.unwrap_or_else(|| ClosedPath::by_path("/", false))
}

/// Names of sources that are nobody's to read, where something in here hands files to a program that runs them.
pub fn sources_run_by(block: &Directive) -> Option<&'static str> {
    match block.name.as_str() {
        "fastcgi_pass" => Some(r"(?i)\.(?:php[0-9]?|phtml|phar|f?cgi|pl)(?:$|/)"),
        "uwsgi_pass" | "scgi_pass" => Some(r"(?i)\.(?:py|rb|f?cgi|pl)(?:$|/)"),
        _ => block.children().iter().find_map(sources_run_by),
    }
}

/// A redirect to where larder does not lead yet.
pub fn leads_to_tls(directive: &Directive) -> bool {
    let target = match directive.name.as_str() {
        "return" | "rewrite" => directive.argument(1),
        _ => return false,
    };
    target.starts_with("https://")
}

/// Paths that are closed on some routes of a server.
#[derive(Clone, Debug)]
pub struct ClosedPath {
    pattern: String,
    /// Closed by a location of this path: what lies beneath another location's longer path is that one's.
    of_path: Option<String>,
    answered_by: AnsweredBy,
}

/// Who answers in nginx what a closed path matches: a route that does the same need not be closed.
#[derive(Clone, Debug)]
enum AnsweredBy {
    /// Nobody, or somebody whom larder does not ask.
    Nobody,
    Files,
    /// An origin, by the key of the routes that ask it.
    Origin(String),
}

impl ClosedPath {
    /// By a regex of nginx's; `None`: it is no regex here.
    pub fn by_regex(pattern: String) -> Option<ClosedPath> {
        ClosedPaths::new([pattern.as_str()]).ok()?;
        Some(ClosedPath { pattern, of_path: None, answered_by: AnsweredBy::Nobody })
    }

    /// Everything that nginx counts to a location by a path: all names that begin so, or that one alone.
    pub fn by_path(path: &str, is_exact: bool) -> ClosedPath {
        let end = if is_exact { "$" } else { "" };
        let pattern = format!("^{}{end}", escaped(path));
        ClosedPath { pattern, of_path: Some(path.to_owned()), answered_by: AnsweredBy::Nobody }
    }

    /// Names that begin as this path does, and go on within its last segment: nginx counts them to its location too.
    pub fn beside(path: &str) -> ClosedPath {
        let pattern = format!("^{}[^/]", escaped(path));
        ClosedPath { pattern, of_path: Some(path.to_owned()), answered_by: AnsweredBy::Nobody }
    }

    /// The same, closed only where others than files answer.
    pub fn of_files(self) -> ClosedPath {
        ClosedPath { answered_by: AnsweredBy::Files, ..self }
    }

    /// The same, open where this origin is asked.
    pub fn of_origin(self, key: String) -> ClosedPath {
        ClosedPath { answered_by: AnsweredBy::Origin(key), ..self }
    }

    /// Does a route answer otherwise than nginx what this matches? `asks` is the route's key for whom it asks, if it does.
    pub fn concerns(&self, asks: Option<&str>) -> bool {
        match &self.answered_by {
            AnsweredBy::Nobody => true,
            AnsweredBy::Files => asks.is_some(),
            AnsweredBy::Origin(key) => asks != Some(key),
        }
    }

    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Does it hold on a route with this path, of a location of this kind?
    pub fn holds_on(&self, route: &str, kind: Kind, asks: Option<&str>) -> bool {
        if !self.concerns(asks) {
            return false;
        }
        match (&self.of_path, kind) {
            (Some(path), _) => !(route.starts_with(path.as_str()) && route.len() >= path.len()) || route == "/",
            (None, Kind::BeforeRegexes) => false,
            // The path itself is that location's, and what lies beneath it is not.
            (None, Kind::Exact) => !self.closes(route),
            (None, Kind::Usual) => true,
        }
    }

    /// Is this path of a file closed?
    pub fn closes_files(&self, path: &str) -> bool {
        !matches!(self.answered_by, AnsweredBy::Files) && self.closes(path)
    }

    pub fn closes(&self, path: &str) -> bool {
        ClosedPaths::new([self.pattern.as_str()]).map_or(true, |closed| closed.close(path.as_bytes()))
    }
}

/// What nginx asks before and after a location by a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Usual,
    /// `=`
    Exact,
    /// `^~`: no regex is looked at.
    BeforeRegexes,
}

/// As a regex that matches this text alone.
fn escaped(text: &str) -> String {
    text.chars().flat_map(|c| (c.is_ascii_punctuation() && c != '/').then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn location(head: &str, children: &[&str]) -> Directive {
        Directive { block: Some(children.iter().map(|child| directive(child)).collect()), ..directive(head) }
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        let check = |rules: &[&str], admits_all: bool, admitted: &[&str]| {
            let mut read = AccessRules::default();
            assert!(rules.iter().all(|rule| read.take(&directive(rule))));
            assert_eq!(
                (read.admit_all(), read.admitted()),
                (admits_all, admitted.iter().map(|&a| a.to_owned()).collect())
            );
        };
        let all = ["0.0.0.0/0", "::/0"];
        check(&[], true, &all);
        check(&["allow all"], true, &all);
        check(&["allow all", "deny all"], true, &all);
        check(&["allow 10.0.0.0/8"], true, &all);
        check(&["allow 10.0.0.0/8", "allow all"], true, &all);
        check(&["allow 10.0.0.0/8", "deny all"], false, &["10.0.0.0/8"]);
        check(&["deny 10.0.0.1", "allow all"], false, &all);
        check(&["deny all", "allow all"], false, &[]);
    }

    #[test]
    fn a_location_by_a_regex_is_open_if_it_shows_files_as_they_are() {
        let check = |children: &[&str], expect| {
            assert_eq!(shows_plain_files(&location("location ~ x", children), Some("/srv")), expect, "{children:?}")
        };
        check(&["expires 30d", "add_header Cache-Control public", "access_log off"], true);
        check(&["try_files $uri /index.php$request_uri", "expires 6M"], true);
        check(&["allow all", "log_not_found off"], true);
        check(&["root /srv", "gzip_static on"], true);
        check(&["try_files /maintenance.html =404"], false);
        for guard in [
            "deny all",
            "return 404",
            "fastcgi_pass a",
            "root /other",
            "alias /x",
            "auth_request /a",
            "unheard_of x",
            "access_by_lua_block",
        ] {
            check(&["expires 30d", guard], false);
        }
    }

    #[test]
    fn a_location_asks_an_origin_if_it_does_nothing_else() {
        let check = |children: &[&str], expect| {
            assert_eq!(asks_an_origin(&location("location ~ x", children)), expect, "{children:?}")
        };
        check(&["proxy_pass http://app", "expires 30d", "proxy_set_header Host $host", "proxy_read_timeout 5s"], true);
        check(&["expires 30d"], false);
        for guard in ["deny all", "auth_basic x", "try_files $uri =404", "rewrite a b", "proxy_method HEAD", "alias /x"]
        {
            check(&["proxy_pass http://app", guard], false);
        }
    }

    #[test]
    fn regexes_are_those_of_pcre() {
        let check =
            |head: &str, expect: Option<&str>| assert_eq!(regex_of(&directive(head)).as_deref(), expect, "{head}");
        check("location ~ \\.php$", Some("\\.php$"));
        check("location ~* \\.(js|css)$", Some("(?i)\\.(js|css)$"));
        check("location ~\\.php$", Some("\\.php$"));
        check("location ~*\\.php$", Some("(?i)\\.php$"));
        check("location /a", None);
        check("location ^~ /a", None);
        check("location @a", None);
    }

    const ASKS: Option<&str> = Some("origin = \"app\"");

    #[test]
    fn a_closed_path_holds_around_its_location_and_not_beneath_longer_ones() {
        let inc = ClosedPath::by_path("/inc", false);
        assert!(inc.closes("/inc") && inc.closes("/include/x") && inc.closes("/inc.php") && !inc.closes("/in"));
        assert!(
            inc.holds_on("/", Kind::Usual, ASKS)
                && inc.holds_on("/in", Kind::Usual, ASKS)
                && !inc.holds_on("/include/", Kind::Usual, ASKS)
        );
        let start = ClosedPath::by_path("/", true);
        assert!(start.closes("/") && !start.closes("/a") && start.holds_on("/", Kind::Usual, ASKS));
        let php = ClosedPath::by_regex("\\.php$".to_owned()).unwrap();
        assert!(php.holds_on("/", Kind::Usual, ASKS) && !php.holds_on("/raw/", Kind::BeforeRegexes, ASKS));
        assert!(!php.holds_on("/index.php", Kind::Exact, ASKS) && php.holds_on("/start", Kind::Exact, ASKS));
        let shown = ClosedPath::by_regex("^/assets/".to_owned()).unwrap().of_files();
        assert!(shown.holds_on("/", Kind::Usual, ASKS) && !shown.holds_on("/", Kind::Usual, None));
        let asked = ClosedPath::by_regex("\\.svg$".to_owned()).unwrap().of_origin("origin = \"app\"".to_owned());
        assert!(!asked.holds_on("/", Kind::Usual, ASKS) && asked.holds_on("/", Kind::Usual, None));
        assert!(asked.holds_on("/", Kind::Usual, Some("origin = \"api\"")) && asked.closes_files("/a.svg"));
        assert!(ClosedPath::by_regex("(a".to_owned()).is_none());
        assert!(ClosedPath::by_path("/a.b+c", true).closes("/a.b+c"));
        let beside = ClosedPath::beside("/api");
        assert!(
            beside.closes("/apis/x") && beside.closes("/api.txt") && !beside.closes("/api") && !beside.closes("/api/x")
        );
    }
}
