//! `auth_request` of nginx: which service is asked whether a request may come in, and what of its answer goes on with the request,
//! as `auth_request` of a `[[route]]`. What the service would be told otherwise closes: it might let in whom it refuses.
//!
//! The service stands behind another location of the same server. What of that counts for a question is said here.

use proxy::settings::{FieldTemplate, RoutePattern};

use crate::config::may_be_set_in_requests;
use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_maps::{is_named_in, with_value};
use crate::import::nginx_order::{Kind, LocationOrder, Matcher};
use crate::import::nginx_upstream::ProxyLevel;

/// What a level says of a service and the levels inside it inherit.
#[derive(Clone, Debug, Default)]
pub struct ServiceLevel {
    asked: Option<Directive>,
    /// `auth_request_set`: inherited all together or not at all.
    sets: Option<Vec<Directive>>,
    /// Questions have another method, body or fields than the request.
    is_asked_otherwise: bool,
}

/// A variable that has a field of the service's answer, and that field's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceWord {
    pub variable: String,
    pub field: String,
}

/// What may stand in the location that asks the service. Whatever keeps people out there is not asked by nginx either, nor does an
/// answer of it go to anybody.
const OF_QUESTIONS: [&str; 24] = [
    "internal",
    "proxy_pass",
    "proxy_set_header",
    "proxy_pass_request_body",
    "proxy_redirect",
    "proxy_next_upstream",
    "proxy_buffers",
    "proxy_buffer_size",
    "proxy_hide_header",
    "proxy_pass_header",
    "proxy_no_cache",
    "set",
    "add_header",
    "auth_request",
    "auth_request_set",
    "auth_basic",
    "allow",
    "deny",
    "access_log",
    "log_not_found",
    "client_body_buffer_size",
    "send_timeout",
    "resolver",
    "resolver_timeout",
];

/// The same for all whose names begin so.
const OF_QUESTIONS_BEGINNINGS: [&str; 9] = [
    "proxy_cache",
    "proxy_connect_timeout",
    "proxy_read_timeout",
    "proxy_send_timeout",
    "proxy_http_version",
    "proxy_ssl_",
    "proxy_buffering",
    "proxy_busy_buffers",
    "proxy_request_buffering",
];

/// Fields that larder tells a service, and the values that mean the same.
const TOLD: [(&str, &[&str]); 13] = [
    ("x-original-uri", &["$request_uri"]),
    ("x-original-method", &["$request_method"]),
    (
        "x-original-url",
        &[
            "$scheme://$http_host$request_uri",
            "$scheme://$host$request_uri",
            "$scheme://$host:$server_port$request_uri",
        ],
    ),
    ("x-forwarded-uri", &["$request_uri"]),
    ("x-forwarded-method", &["$request_method"]),
    ("x-forwarded-for", &["$remote_addr", "$proxy_add_x_forwarded_for"]),
    ("x-forwarded-proto", &["$scheme", "https"]),
    ("x-forwarded-host", &["$host", "$http_host"]),
    ("x-real-ip", &["$remote_addr"]),
    ("host", &["$host", "$http_host", "$proxy_host"]),
    // The question has no body, and a connection of its own.
    ("content-length", &[""]),
    ("content-type", &[""]),
    ("connection", &["", "close", "keep-alive"]),
];

/// Fields that say once more what larder tells a service otherwise, or where its own pages lead.
const TOLD_OTHERWISE: [(&str, &[&str]); 6] = [
    ("x-scheme", &["$scheme"]),
    ("x-forwarded-scheme", &["$scheme"]),
    ("x-forwarded-ssl", &["on"]),
    ("x-forwarded-port", &["$server_port"]),
    ("x-forwarded-server", &["$host"]),
    ("x-auth-request-redirect", &["$request_uri", "$scheme://$host$request_uri", "$scheme://$http_host$request_uri"]),
];

impl ServiceLevel {
    pub fn within(self, outer: &ServiceLevel) -> ServiceLevel {
        ServiceLevel {
            asked: self.asked.or_else(|| outer.asked.clone()),
            sets: self.sets.or_else(|| outer.sets.clone()),
            is_asked_otherwise: self.is_asked_otherwise || outer.is_asked_otherwise,
        }
    }

    /// Takes a directive in. False: it is another one.
    pub fn take(&mut self, directive: &Directive) -> bool {
        match directive.name.as_str() {
            "auth_request" => self.asked = Some(directive.clone()),
            "auth_request_set" => self.sets.get_or_insert_default().push(directive.clone()),
            _ => return false,
        }
        true
    }

    /// Looks at what changes questions, wherever it stands. Who takes it in is another's affair.
    pub fn look_at(&mut self, directive: &Directive) {
        let name = directive.name.as_str();
        self.is_asked_otherwise |= matches!(name, "proxy_method" | "proxy_set_body")
            || name == "proxy_pass_request_headers" && directive.argument(0) == "off";
    }

    pub fn is_asked_otherwise(&self) -> bool {
        self.is_asked_otherwise
    }

    /// The line that says which service is asked, if one is.
    pub fn asked(&self) -> Option<&Directive> {
        self.asked.as_ref().filter(|asked| asked.argument(0) != "off")
    }

    /// Variables that have a field of its answer, where one is asked.
    pub fn words(&self) -> Vec<ServiceWord> {
        let word = |set: &Directive| {
            let field = set.argument(1).strip_prefix("$upstream_http_")?.replace('_', "-");
            is_copied(&field).then(|| ServiceWord { variable: set.argument(0).to_owned(), field })
        };
        self.asked().iter().flat_map(|_| self.sets.iter().flatten()).filter_map(word).collect()
    }
}

/// May a service say it of a request? Credentials are what its question is about.
fn is_copied(field: &str) -> bool {
    may_be_set_in_requests(field) && !is_credential(field)
}

fn is_credential(field: &str) -> bool {
    ["authorization", "cookie", "set-cookie", "proxy-authorization"].iter().any(|name| field.eq_ignore_ascii_case(name))
}

/// Where a service is asked: a location, and what nginx makes of the path of the question.
pub struct Question<'a> {
    /// Those around it, the outermost first, and itself.
    pub blocks: Vec<&'a Directive>,
    path: String,
    /// How its paths begin, where that is what is replaced.
    beginning: Option<String>,
}

impl<'a> Question<'a> {
    /// `None`: nobody is asked by a location from which larder could ask.
    pub fn of(server: &'a Directive, asked: &Directive) -> Option<Question<'a>> {
        let path = asked.argument(0);
        let is_plain = |path: &str| path.bytes().all(|byte| byte.is_ascii_graphic() && !b"$?%#".contains(&byte));
        if !path.starts_with('/') || !is_plain(path) || path.contains("//") || path.contains("/.") {
            return None;
        }
        let order = LocationOrder::of(server);
        let spot = order.spots.into_iter().find(|spot| spot.matches(path)).filter(|_| order.unknown.is_empty())?;
        let block = *spot.blocks.last()?;
        let is_of_questions = |child: &Directive| {
            let name = child.name.as_str();
            OF_QUESTIONS.contains(&name) || OF_QUESTIONS_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        };
        let passes = block.children().iter().filter(|child| child.name == "proxy_pass").count();
        if passes != 1 || !block.children().iter().all(is_of_questions) {
            return None;
        }
        let beginning = match (spot.kind, &spot.matcher) {
            (Kind::Regex, _) => None,
            (_, Matcher::Path(_) | Matcher::Pattern(_)) => spot.path,
        };
        Some(Question { blocks: spot.blocks, path: path.to_owned(), beginning })
    }

    /// How paths of the location begin, if that is what says which they are.
    pub fn beginning(&self) -> Option<&str> {
        self.beginning.as_deref()
    }

    /// The location's own line that says who is asked.
    pub fn pass(&self) -> Option<&'a Directive> {
        self.blocks.last()?.children().iter().find(|child| child.name == "proxy_pass")
    }

    /// Is what it asks known from lines that nobody else changes? Variables are a request's, whichever location sets them.
    pub fn has_own_constants(&self, server: &Directive) -> bool {
        let (Some(pass), Some(block)) = (self.pass(), self.blocks.last()) else { return false };
        let is_set_here = |name: &str| block.children().iter().any(|set| set.name == "set" && set.argument(0) == name);
        let mut names: Vec<(String, usize)> = Vec::new();
        count_sets(server, &mut names);
        let written = pass.argument(0).replace(['{', '}'], "");
        !names.iter().any(|(name, times)| *times > 1 && written.contains(name.as_str()) && !is_set_here(name))
    }

    /// Does a rule of the server answer the question, or lead it elsewhere?
    pub fn is_met_by(&self, pattern: &str) -> bool {
        RoutePattern::new(pattern).map_or(true, |pattern| pattern.is_match(self.path.as_bytes()))
    }

    /// Path and query that the service is asked for. `replaced_by`: what stands in place of the location's own path; `as_it_is`: in place
    /// of all of it, because it came of a variable.
    pub fn target(&self, replaced_by: Option<&str>, as_it_is: bool) -> Option<String> {
        let target = match (replaced_by, &self.beginning) {
            (None, _) => self.path.clone(),
            (Some(uri), _) if as_it_is => uri.to_owned(),
            (Some(uri), Some(beginning)) => format!("{uri}{}", self.path.strip_prefix(beginning.as_str())?),
            (Some(_), None) => return None,
        };
        let is_said = target.starts_with('/') && target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        is_said.then_some(target)
    }
}

fn count_sets(block: &Directive, names: &mut Vec<(String, usize)>) {
    for child in block.children() {
        if child.name == "set" {
            match names.iter_mut().find(|(name, _)| name == child.argument(0)) {
                Some((_, times)) => *times += 1,
                None => names.push((child.argument(0).to_owned(), 1)),
            }
        }
        count_sets(child, names);
    }
}

/// Fields that a client must not say to the service in the place of nginx, by what the question's location says of them. `None`: the
/// service would be told something else.
pub fn hidden_from(proxy: &ProxyLevel, findings: &mut Findings) -> Option<Vec<String>> {
    let mut hidden = Vec::new();
    for line in proxy.headers() {
        let (name, value) = (line.argument(0).to_lowercase(), line.argument(1));
        let says = |(known, values): &(&str, &[&str])| *known == name && values.contains(&value);
        let is_constant_host = name == "host" && !value.is_empty() && !value.contains('$');
        if TOLD.iter().any(says) || is_constant_host {
            continue;
        }
        if !TOLD_OTHERWISE.iter().any(says) {
            findings.leave(line, "closed: the service that says who may come in would not be told this");
            return None;
        }
        findings.note(line, "the service is told X-Forwarded-For, -Proto and -Uri, and this not: no client can say it");
        // What larder writes by itself is hidden anyway.
        hidden.extend(may_be_set_in_requests(&name).then(|| line.argument(0).to_owned()));
    }
    Some(hidden)
}

/// Where `error_page 401` leads: to a URL, or to a location of that name which does nothing else. `None`: larder cannot lead there.
pub fn login_url(error_page: &Directive, server: &Directive) -> Option<String> {
    let page = error_page.arguments.last()?;
    let url = match page.starts_with('@') {
        false => page.clone(),
        true => {
            let is_it = |child: &&Directive| child.name == "location" && child.argument(0) == page;
            let [answer] = server.children().iter().find(is_it)?.children() else { return None };
            let is_return = answer.name == "return" && answer.arguments.len() == 2 && answer.argument(0) == "302";
            is_return.then(|| answer.argument(1).to_owned())?
        }
    };
    let said = FieldTemplate::parse(&url).ok().filter(|said| !said.has_groups() && !said.has_user());
    let is_url = url.starts_with(['/', '$']) || url.contains("://");
    said.filter(|_| is_url && !url.contains([' ', '"'])).map(|_| url)
}

/// The line of a route. `proxy`: what is said of the requests that come in.
pub fn line(
    (origin, target): (&str, &str),
    login: Option<&str>,
    hidden: Vec<String>,
    words: &[ServiceWord],
    proxy: &ProxyLevel,
) -> String {
    let mut copied = hidden;
    for line in proxy.headers() {
        for word in words.iter().filter(|word| is_named_in(line.argument(1), &word.variable)) {
            copied.push(word.field.clone());
            // Also where it is called otherwise, in whatever spelling its reader takes for the same.
            copied.extend(is_copied(line.argument(0)).then(|| line.argument(0).to_owned()));
        }
    }
    copied.sort_by_key(|name| name.to_lowercase());
    copied.dedup_by(|one, other| one.eq_ignore_ascii_case(other));
    let copied: Vec<String> = copied.iter().map(|name| quoted(name)).collect();
    let copy = if copied.is_empty() { String::new() } else { format!(", copy = [{}]", copied.join(", ")) };
    let login = login.map_or(String::new(), |url| format!(", login = {}", quoted(url)));
    format!("auth_request = {{ origin = {}, path = {}{copy}{login} }}", quoted(origin), quoted(target))
}

/// A value with the service's fields in place of the variables that have them.
pub fn said_by(value: &str, words: &[ServiceWord]) -> String {
    let field = |word: &ServiceWord| format!("$http_{}", word.field.replace('-', "_"));
    words.iter().fold(value.to_owned(), |value, word| with_value(&value, &word.variable, &field(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn location(head: &str, lines: &[&str]) -> Directive {
        let block = lines.iter().map(|line| directive(line)).collect();
        Directive { block: Some(block), ..directive(&format!("location {head}")) }
    }

    /// What is asked for by `auth_request /in/auth` through this location.
    fn target(head: &str, replaced_by: Option<&str>, as_it_is: bool) -> Option<String> {
        let server = Directive { block: Some(vec![location(head, &["proxy_pass http://a"])]), ..directive("server") };
        Question::of(&server, &directive("auth_request /in/auth"))?.target(replaced_by, as_it_is)
    }

    #[test]
    fn a_service_is_asked_for_what_nginx_would_ask_it_for() {
        assert_eq!(target("= /in/auth", None, false).as_deref(), Some("/in/auth"));
        assert_eq!(target("= /in/auth", Some("/v?a=b"), false).as_deref(), Some("/v?a=b"));
        assert_eq!(target("/in/", Some("/api/"), false).as_deref(), Some("/api/auth"));
        assert_eq!(target("/in/", Some("/api/"), true).as_deref(), Some("/api/"));
        assert_eq!(target("~ ^/in/", None, false).as_deref(), Some("/in/auth"));
        assert_eq!((target("~ ^/in/", Some("/v"), false), target("/other/", None, false)), (None, None));
    }

    #[test]
    fn who_has_to_log_in_is_led_where_nginx_leads() {
        let led = |error_page: &str, lines: &[&str]| {
            let server = Directive { block: Some(vec![location("@login", lines)]), ..directive("server") };
            login_url(&directive(error_page), &server)
        };
        let url = "https://id.test/?rd=$scheme://$http_host$request_uri";
        let answer = format!("return 302 {url}");
        assert_eq!(led("error_page 401 = @login", &[&answer]).as_deref(), Some(url));
        assert_eq!(led(&format!("error_page 401 =302 {url}"), &[]).as_deref(), Some(url));
        for (error_page, lines) in [
            ("error_page 401 = @login", &["return 302 /a$upstream_http_x"][..]),
            ("error_page 401 = @login", &["return 403"]),
            ("error_page 401 = @login", &["return 301 /login"]),
            ("error_page 401 = @login", &["add_header A b", "return 302 /login"]),
            ("error_page 401 = @other", &["return 302 /login"]),
            ("error_page 401 =302 $redirection_url", &[]),
        ] {
            assert_eq!(led(error_page, lines), None, "{error_page} {lines:?}");
        }
    }

    #[test]
    fn what_may_change_a_question_is_no_question() {
        let asked_by = |lines: &[&str], asked: &str| {
            let server = Directive { block: Some(vec![location("= /a", lines)]), ..directive("server") };
            Question::of(&server, &directive(asked)).is_some()
        };
        let pass = "proxy_pass http://a";
        assert!(asked_by(&[pass, "internal", "proxy_cache c", "proxy_pass_request_body off"], "auth_request /a"));
        for line in
            ["rewrite ^ /b", "return 204", "proxy_pass_request_headers off", "proxy_method POST", "ssi on", pass]
        {
            assert!(!asked_by(&[pass, line], "auth_request /a"), "{line}");
        }
        for asked in
            ["auth_request /a$x", "auth_request /b", "auth_request /a?b", "auth_request @a", "auth_request //a"]
        {
            assert!(!asked_by(&[pass], asked), "{asked}");
        }
    }

    #[test]
    fn a_service_is_told_the_same_or_nobody_comes_in() {
        let hidden = |line: &str| {
            let (mut level, mut findings) = (ProxyLevel::default(), Findings::default());
            let mut line = directive(line);
            line.arguments.iter_mut().for_each(|word| *word = word.replace('\'', ""));
            assert!(level.take(&line, &mut findings));
            hidden_from(&level, &mut findings)
        };
        for same in [
            "X-Original-URI $request_uri",
            "Content-Length ''",
            "Host a.test",
            "X-Forwarded-Proto $scheme",
            "X-Real-IP $remote_addr",
        ] {
            assert_eq!(hidden(&format!("proxy_set_header {same}")), Some(Vec::new()), "{same}");
        }
        assert_eq!(hidden("proxy_set_header X-Scheme $scheme"), Some(vec!["X-Scheme".to_owned()]));
        for other in [
            "X-Original-URI /public",
            "X-Group admins",
            "Authorization ''",
            "Cookie ''",
            "Host $arg_a",
            "X-Real-IP 10.0.0.1",
        ] {
            assert_eq!(hidden(&format!("proxy_set_header {other}")), None, "{other}");
        }
    }

    #[test]
    fn what_a_service_says_goes_on_under_the_names_that_it_has() {
        let (mut level, mut proxy, mut findings) =
            (ServiceLevel::default(), ProxyLevel::default(), Findings::default());
        for line in [
            "auth_request /a",
            "auth_request_set $user $upstream_http_x_auth_user",
            "auth_request_set $token $upstream_http_authorization",
            "auth_request_set $cookie $upstream_http_set_cookie",
        ] {
            assert!(level.take(&directive(line)));
        }
        for line in ["X-User $user", "X-Users $users", "Authorization $token"] {
            assert!(proxy.take(&directive(&format!("proxy_set_header {line}")), &mut findings));
        }
        let words = level.words();
        let expect =
            "auth_request = { origin = \"auth\", path = \"/v\", copy = [\"x-auth-user\", \"X-Scheme\", \"X-User\"] }";
        assert_eq!(line(("auth", "/v"), None, vec!["X-Scheme".to_owned()], &words, &proxy), expect);
        assert_eq!(said_by("$user-$users", &words), "$http_x_auth_user-$users");
        let lines = proxy.route_lines(&words, &mut findings);
        let expect = "request_headers = { set = { \"X-User\" = \"$http_x_auth_user\" }, remove = [\"X-Users\", \"Authorization\"] }";
        assert_eq!((lines, findings.left_count()), (vec![expect.to_owned()], 2));
        let off = ServiceLevel { asked: Some(directive("auth_request off")), ..ServiceLevel::default() }.within(&level);
        assert!(off.asked().is_none() && off.words().is_empty());
    }
}
