//! What nginx's rewrite module makes of requests before anybody is asked: `return`, `rewrite` and `if` of one level, as rulings
//! for all of its requests or for some. What is not understood closes whatever it might be about.
//!
//! It reads no locations, and makes no routes.

use proxy::settings::{FieldTemplate, RoutePattern};

use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conditions::{
    act_of, asks_for_the_clear, condition_of, matches_everything, methods_of, says_a_client_alone, with_case,
};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_field_cases::{self, FieldCase};
use crate::import::nginx_listens::InTheClear;
use crate::import::nginx_maps::{self, MapCase, MapTest, Maps};
use crate::import::nginx_substitute::Substitute;

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Nobody is answered.
    Closed,
    /// It is answered here: the lines of a route.
    Answered(Vec<String>),
    /// It is led to TLS, at the same URL: by its listener, or by this line of a route.
    ToTls(String),
    /// This script answers, whatever is asked for.
    Script(Substitute),
    /// Who answers the level is asked for another path.
    Rewritten(String),
}

/// A ruling for the requests that fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseOf {
    /// A regex for paths; all of the level's without.
    pub pattern: Option<String>,
    /// It is for the path as it was asked for: whatever file nginx finds for that, it is not asked again.
    pub is_as_asked: bool,
    pub methods: Vec<String>,
    pub host: Option<String>,
    pub field: Option<FieldCase>,
    pub ruling: Ruling,
}

/// All of one level, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rulings {
    pub cases: Vec<CaseOf>,
    /// For what no case fits.
    pub rest: Option<Ruling>,
    /// A script that answers where there is no file.
    pub fallback: Option<Substitute>,
    /// And for directories, too: they are no files.
    pub passes_directories_by: bool,
    /// Other methods are closed.
    pub only_methods: Option<Vec<String>>,
}

/// What is known of the level.
#[derive(Clone, Copy)]
pub struct RulingScope<'a> {
    /// Groups of its regex may be named.
    pub has_groups: bool,
    /// An origin is asked by it.
    pub asks_origin: bool,
    pub server_name: &'a str,
    pub default_type: &'a str,
    pub maps: &'a Maps,
    pub clear: InTheClear,
}

const LEFT_TO_CLIENTS: &str = "who does not say so is let in by nginx, too: nobody is told apart here";

const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

pub fn is_of_rewriting(directive: &Directive) -> bool {
    matches!(directive.name.as_str(), "return" | "rewrite" | "if" | "limit_except" | "break" | "rewrite_log")
}

/// Reads what of a level is the rewrite module's.
pub fn read(block: &Directive, scope: &RulingScope<'_>, findings: &mut Findings) -> Rulings {
    let mut rulings = Rulings::default();
    let mut left = block.children().iter();
    while let (None, Some(directive)) = (&rulings.rest, left.next()) {
        match directive.name.as_str() {
            "break" => break,
            "if" if ends_for_some(directive) => {
                rulings.for_the_others(directive, left, scope, findings);
                break;
            }
            "return" => rulings.rest = Some(returned(directive, scope, findings)),
            "rewrite" => rulings.rewrite(directive, scope, findings),
            "if" => rulings.condition(directive, scope, findings),
            "limit_except" => rulings.limit_methods(directive, findings),
            _ => {}
        }
    }
    rulings
}

/// Is nothing that stands behind it for those who meet this condition?
fn ends_for_some(condition: &Directive) -> bool {
    act_of(condition).is_none() && condition.children().iter().any(|child| child.name == "break")
}

/// Does a level lead all of its requests to TLS, or those for some hosts and nobody else?
pub fn leads_to_tls(block: &Directive, server_name: &str) -> bool {
    let (maps, clear) = (&Maps::default(), InTheClear::Always);
    let scope = RulingScope { has_groups: false, asks_origin: false, server_name, default_type: "", maps, clear };
    let Rulings { cases, rest, .. } = read(block, &scope, &mut Findings::default());
    let by_host = cases.iter().all(|case| case.host.is_some() && matches!(case.ruling, Ruling::ToTls(_)));
    matches!(rest, Some(Ruling::ToTls(_))) || !cases.is_empty() && by_host && rest == Some(Ruling::Closed)
}

impl Ruling {
    /// Is it done without an origin, and so without a stored response that would be one for each value of a field?
    fn asks_nobody(&self) -> bool {
        matches!(self, Ruling::Closed | Ruling::Answered(_) | Ruling::ToTls(_))
    }

    /// Does it say again what a regex has found?
    fn names_groups(&self) -> bool {
        let has_one = |text: &String| ('1'..='9').any(|digit| text.contains(&format!("${digit}")));
        match self {
            Ruling::Answered(lines) => lines.iter().any(has_one),
            Ruling::Rewritten(target) => has_one(target),
            Ruling::Closed | Ruling::ToTls(_) | Ruling::Script(_) => false,
        }
    }
}

impl Rulings {
    fn rewrite(&mut self, directive: &Directive, scope: &RulingScope<'_>, findings: &mut Findings) {
        let regex = directive.argument(0);
        let ruling = rewritten(directive, scope, findings);
        match matches_everything(regex) {
            // Without its regex a route would have no groups.
            true if (ruling != Ruling::Closed || !scope.asks_origin) && !ruling.names_groups() => {
                self.rest = Some(ruling);
            }
            _ => self.case(Some(regex), Vec::new(), None, ruling),
        }
    }

    /// What is ruled behind `if (…) { break; }`: for what is no file it may be a script's to answer.
    fn for_the_others<'d>(
        &mut self,
        condition: &Directive,
        left: impl Iterator<Item = &'d Directive>,
        scope: &RulingScope<'_>,
        findings: &mut Findings,
    ) {
        let mut rules = left.filter(|line| is_of_rewriting(line) && !matches!(&*line.name, "break" | "limit_except"));
        let Some(first) = rules.next() else { return };
        let words = condition_of(condition);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let ["-f" | "-e", "$request_filename"] = words[..]
            && first.name == "rewrite"
            && matches_everything(first.argument(0))
            && let Ruling::Script(script) = rewritten(first, scope, findings)
        {
            self.fallback = Some(script);
            self.passes_directories_by = words[0] == "-f";
            return;
        }
        findings.leave(condition, "closed: what stands behind it is for those alone who do not meet this");
        self.rest = Some(Ruling::Closed);
    }

    fn case(&mut self, regex: Option<&str>, methods: Vec<String>, host: Option<String>, ruling: Ruling) {
        let pattern = regex.map(str::to_owned);
        self.add(CaseOf { pattern, is_as_asked: false, methods, host, field: None, ruling });
    }

    /// For requests that one of these holds for.
    fn by_fields(&mut self, fields: Vec<FieldCase>, ruling: &Ruling) {
        for field in fields.into_iter().map(Some) {
            let (pattern, methods, host, ruling) = (None, Vec::new(), None, ruling.clone());
            self.add(CaseOf { pattern, is_as_asked: false, methods, host, field, ruling });
        }
    }

    /// Whose method was refused before is not asked about.
    fn add(&mut self, mut case: CaseOf) {
        if let Some(only) = &self.only_methods {
            match case.methods.is_empty() {
                true => case.methods.clone_from(only),
                false => case.methods.retain(|method| only.contains(method)),
            }
            if case.methods.is_empty() {
                return;
            }
        }
        self.cases.push(case);
    }

    /// `if (…) { … }`
    fn condition(&mut self, directive: &Directive, scope: &RulingScope<'_>, findings: &mut Findings) {
        let Some(act) = act_of(directive) else {
            return findings.leave(directive, "what it changes of requests that go on is not carried over");
        };
        let condition = condition_of(directive);
        let words: Vec<&str> = condition.iter().map(String::as_str).collect();
        let asks_for_file = matches!(words[..], ["!-e" | "!-f", "$request_filename"]);
        // What is done where there is no file is done by a script, or not at all.
        let inner = RulingScope { has_groups: false, ..*scope };
        if self.mapped(directive, act, &words, &inner, findings) {
            return;
        }
        if let Some(is_of_the_clear) = asks_for_the_clear(&condition) {
            return self.clear(directive, is_of_the_clear, act, &inner, findings);
        }
        let ruling = acted(act, &inner, findings);
        if let (true, Ruling::Script(script)) = (asks_for_file, &ruling) {
            self.fallback = Some(script.clone());
            self.passes_directories_by = words[0] == "!-f";
            return;
        }
        match words[..] {
            ["$request_method", "=", method] => self.case(None, vec![method.to_owned()], None, ruling),
            ["$request_method", "~" | "~*", regex] if methods_of(regex).is_some() => {
                self.case(None, methods_of(regex).unwrap_or_default(), None, ruling);
            }
            ["$request_method", "!=", method] if ruling == Ruling::Closed => {
                self.only_methods = Some(vec![method.to_owned()]);
            }
            ["$request_method", "!~" | "!~*", regex] if ruling == Ruling::Closed && methods_of(regex).is_some() => {
                self.only_methods = methods_of(regex);
            }
            ["$uri" | "$document_uri", operator @ ("~" | "~*"), regex] => {
                self.case(Some(&with_case(operator, regex)), Vec::new(), None, ruling);
            }
            ["$request_uri", operator @ ("~" | "~*"), regex] if !regex.contains("\\?") && !regex.contains('=') => {
                let pattern = Some(with_case(operator, regex));
                let (methods, host, field) = (Vec::new(), None, None);
                self.add(CaseOf { pattern, is_as_asked: true, methods, host, field, ruling });
            }
            ["$host" | "$http_host", "=", host] => {
                self.case(None, Vec::new(), Some(host.to_lowercase()), ruling);
            }
            [variable, "=" | "~" | "~*", _]
                if !ruling.asks_nobody() && says_a_client_alone(variable) && !matches!(ruling, Ruling::Script(_)) =>
            {
                findings.leave(directive, LEFT_TO_CLIENTS);
            }
            _ => match nginx_field_cases::of_condition(&words).filter(|_| ruling.asks_nobody()) {
                Some(fields) => self.by_fields(fields, &ruling),
                None => {
                    findings.leave(directive, "closed: larder has no such condition");
                    self.rest = Some(Ruling::Closed);
                }
            },
        }
    }

    /// A condition that holds in the clear alone, or by TLS alone.
    fn clear(
        &mut self,
        directive: &Directive,
        is_of_the_clear: bool,
        act: &Directive,
        scope: &RulingScope<'_>,
        findings: &mut Findings,
    ) {
        match (scope.clear, is_of_the_clear) {
            (InTheClear::Always, true) | (InTheClear::Never | InTheClear::CanBeLed, false) => {
                match act.name == "rewrite" && !matches_everything(act.argument(0)) {
                    true => self.rewrite(act, scope, findings),
                    false => self.rest = Some(acted(act, scope, findings)),
                }
            }
            (InTheClear::CanBeLed, true) => {
                findings.note(directive, "what comes in the clear is led to https:// (mode = \"redirect\")");
            }
            (InTheClear::Always, false) | (InTheClear::Never, true) => {
                findings.note(directive, "no request to this server is so");
            }
        }
    }

    /// A condition on the variable of a `map`. False: it is another one, or larder cannot say for which requests it holds.
    fn mapped(
        &mut self,
        directive: &Directive,
        act: &Directive,
        words: &[&str],
        scope: &RulingScope<'_>,
        findings: &mut Findings,
    ) -> bool {
        let (variable, test) = match *words {
            [variable] => (variable, scope.maps.test(variable, nginx_maps::is_true)),
            [variable, "=", value] => (variable, scope.maps.test(variable, |other| other == value)),
            [variable, "!=", value] => (variable, scope.maps.test(variable, |other| other != value)),
            _ => return false,
        };
        let mut ruling_for = |value: &str| {
            let mut act = act.clone();
            act.arguments.iter_mut().for_each(|word| *word = nginx_maps::with_value(word, variable, value));
            acted(&act, scope, findings)
        };
        match test {
            None => return false,
            Some(MapTest::Never) => {}
            Some(MapTest::Always) => self.rest = Some(ruling_for("")),
            Some(MapTest::For(cases)) => {
                let cases = cases.into_iter().map(|(case, value)| (case, ruling_for(&value)));
                for (case, ruling) in cases.collect::<Vec<_>>() {
                    match case {
                        MapCase::Method(method) => self.case(None, vec![method], None, ruling),
                        MapCase::Path(regex) => self.case(Some(&regex), Vec::new(), None, ruling),
                        MapCase::Host(host) => self.case(None, Vec::new(), Some(host), ruling),
                        MapCase::Fields(fields) if ruling.asks_nobody() => self.by_fields(fields, &ruling),
                        MapCase::Fields(_) if scope.maps.is_by_word_of_client(variable) => {
                            findings.leave(directive, LEFT_TO_CLIENTS);
                        }
                        MapCase::Fields(_) => return false,
                    }
                }
            }
            Some(MapTest::ButForMethods(methods)) if ruling_for("") == Ruling::Closed => {
                self.only_methods = Some(methods);
            }
            Some(MapTest::ButForMethods(_)) => return false,
            Some(MapTest::ByWordOfClient) => {
                findings.leave(directive, LEFT_TO_CLIENTS);
            }
        }
        true
    }

    /// `limit_except GET { deny all; }`
    fn limit_methods(&mut self, directive: &Directive, findings: &mut Findings) {
        let denies_all = |child: &Directive| child.name == "deny" && child.argument(0) == "all";
        if directive.children().len() == 1 && directive.children().iter().all(denies_all) {
            let mut methods = directive.arguments.clone();
            if methods.iter().any(|method| method == "GET") {
                methods.push("HEAD".to_owned());
            }
            self.only_methods = Some(methods);
        } else {
            findings.leave(directive, "closed: larder cannot tell clients by their method");
            self.rest = Some(Ruling::Closed);
        }
    }
}

/// What an `if` does to all that meet it.
fn acted(act: &Directive, scope: &RulingScope<'_>, findings: &mut Findings) -> Ruling {
    match act.name.as_str() {
        "return" => returned(act, scope, findings),
        "rewrite" if matches_everything(act.argument(0)) => rewritten(act, scope, findings),
        _ => {
            findings.leave(act, "closed for whom the `if` around it is about: larder does not do this for some alone");
            Ruling::Closed
        }
    }
}

/// `return CODE`, `return CODE TEXT`, `return URL`.
fn returned(directive: &Directive, scope: &RulingScope<'_>, findings: &mut Findings) -> Ruling {
    let (first, second) = (directive.argument(0), directive.argument(1));
    let Ok(status) = first.parse::<u16>() else {
        return redirect(directive, first, 302, scope, findings);
    };
    match status {
        status if REDIRECTS.contains(&status) => redirect(directive, second, status, scope, findings),
        400..=499 => {
            if status != 403 {
                findings.note(directive, "answered with 403: closed paths hold in every spelling");
            }
            Ruling::Closed
        }
        200..=299 | 500..=599 => respond(directive, status, scope, findings),
        _ => {
            findings.leave(directive, "closed: larder does not answer so");
            Ruling::Closed
        }
    }
}

fn respond(directive: &Directive, status: u16, scope: &RulingScope<'_>, findings: &mut Findings) -> Ruling {
    let mut said = vec![format!("status = {status}")];
    let text = directive.argument(1);
    if !text.is_empty() {
        let Some(text) = template(text, scope) else {
            findings.leave(directive, "closed: a variable that larder's texts cannot have");
            return Ruling::Closed;
        };
        said.push(format!("body = {}", quoted(&text)));
        if scope.default_type.contains('/') {
            said.push(format!("type = {}", quoted(scope.default_type)));
        }
    }
    Ruling::Answered(vec![format!("respond = {{ {} }}", said.join(", "))])
}

fn redirect(
    directive: &Directive,
    target: &str,
    status: u16,
    scope: &RulingScope<'_>,
    findings: &mut Findings,
) -> Ruling {
    if let Some(host) = host_of_same_at_tls(target, scope) {
        let to = quoted(&format!("https://{host}$request_uri"));
        return Ruling::ToTls(format!("redirect = {{ to = {to}, status = {status} }}"));
    }
    let is_url = target.starts_with('/')
        || target.starts_with("http://")
        || target.starts_with("https://")
        || target.starts_with("$scheme://");
    match template(target, scope).filter(|target| is_url && !target.contains([' ', '"'])) {
        Some(target) => {
            if target.contains("$1") && !scope.has_groups {
                findings.note(directive, "groups are those of this rule's own regex");
            }
            Ruling::Answered(vec![format!("redirect = {{ to = {}, status = {status} }}", quoted(&target))])
        }
        None => {
            findings.leave(directive, "closed: larder cannot say where this leads");
            Ruling::Closed
        }
    }
}

/// Does a target mean what was asked for, over TLS? And by which of the server's names?
fn host_of_same_at_tls(target: &str, scope: &RulingScope<'_>) -> Option<String> {
    let rest = target.strip_prefix("https://")?;
    let (host, path) = rest.find(['/', '$']).map(|_| split_host(rest))?;
    let is_host = ["$host", "$http_host", "$server_name"].contains(&host) || host == scope.server_name;
    let is_same = is_host && matches!(path, "$request_uri" | "$uri" | "$uri$is_args$args" | "/$1" | "$1");
    is_same.then(|| host.replace("$http_host", "$host").replace("$server_name", scope.server_name))
}

fn split_host(rest: &str) -> (&str, &str) {
    let from = usize::from(rest.starts_with('$'));
    let end = rest[from..].find(['/', '$']).map_or(rest.len(), |at| at + from);
    rest.split_at(end)
}

/// `rewrite REGEX REPLACEMENT FLAG`.
fn rewritten(directive: &Directive, scope: &RulingScope<'_>, findings: &mut Findings) -> Ruling {
    let (regex, target, flag) = (directive.argument(0), directive.argument(1), directive.argument(2));
    let is_away = ["http://", "https://", "$scheme"].iter().any(|start| target.starts_with(start));
    let is_groups_own = RulingScope { has_groups: true, ..*scope };
    let closed = |findings: &mut Findings, why| {
        findings.leave(directive, why);
        Ruling::Closed
    };
    if RoutePattern::new(regex).is_err() {
        return closed(findings, "closed: PCRE2 does not take its regex");
    }
    if is_away || matches!(flag, "redirect" | "permanent") {
        let status = if flag == "permanent" { 301 } else { 302 };
        // nginx adds the query unless the replacement ends with a question mark.
        let target = match (target.strip_suffix('?'), target.contains('?')) {
            (Some(target), _) => target.to_owned(),
            (None, true) => format!("{target}$and_args"),
            (None, false) => format!("{target}$is_args$args"),
        };
        let target = target.replace("$request_uri$is_args$args", "$request_uri");
        return redirect(directive, &target, status, &is_groups_own, findings);
    }
    // The location stays the one that answers.
    let is_for_origin = flag == "break" && scope.asks_origin;
    if let Some(script) = Substitute::script(target).filter(|_| !is_for_origin) {
        return Ruling::Script(script);
    }
    if is_for_origin {
        // Without a question mark larder keeps the query by itself, and leaves it out where one ends the target, as nginx does.
        let target = match (target.strip_suffix('?'), target.contains('?')) {
            (Some(alone), _) if alone.contains('?') => alone.to_owned(),
            (None, true) => format!("{target}$and_args"),
            _ => target.to_owned(),
        };
        if let Some(target) = template(&target, &is_groups_own).filter(|target| target.starts_with('/')) {
            return Ruling::Rewritten(target);
        }
    }
    closed(findings, "closed: larder looks for no route again")
}

/// A text with variables, by larder's names for them. `None`: it has not all of them.
fn template(text: &str, scope: &RulingScope<'_>) -> Option<String> {
    let text = text
        .replace("$http_host", "$host")
        .replace("$document_uri", "$uri")
        .replace("$query_string", "$args")
        .replace("$server_name", scope.server_name);
    let parsed = FieldTemplate::parse(&text).ok()?;
    (scope.has_groups || !parsed.has_groups()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conditions::says_of_the_clear;
    use crate::import::nginx_conf::directive;

    fn read_by(lines: Vec<Directive>, maps: &Maps, clear: InTheClear) -> (Rulings, usize) {
        let block = Directive { block: Some(lines), ..directive("location /") };
        let (mut findings, server_name, default_type) = (Findings::default(), "a.test", "text/plain");
        let scope = RulingScope { has_groups: false, asks_origin: false, server_name, default_type, maps, clear };
        let rulings = read(&block, &scope, &mut findings);
        (rulings, findings.left_count())
    }

    fn read_all(lines: Vec<Directive>) -> (Rulings, usize) {
        read_by(lines, &Maps::default(), InTheClear::Always)
    }

    fn rest(line: &str, expect: Ruling, left: usize) {
        let (rulings, found) = read_all(vec![directive(line)]);
        assert_eq!((rulings.rest, found), (Some(expect), left), "{line}");
    }

    fn answered(line: &str) -> Ruling {
        Ruling::Answered(vec![line.to_owned()])
    }

    fn to_tls(host: &str, status: u16) -> Ruling {
        Ruling::ToTls(format!("redirect = {{ to = \"https://{host}$request_uri\", status = {status} }}"))
    }

    fn conditional(head: &str, act: &str) -> Directive {
        Directive { block: Some(vec![directive(act)]), ..directive(head) }
    }

    #[test]
    fn what_is_returned_is_answered_or_closed() {
        rest("return 404", Ruling::Closed, 0);
        rest("return 444", Ruling::Closed, 0);
        rest("return 204", answered("respond = { status = 204 }"), 0);
        rest("return 503", answered("respond = { status = 503 }"), 0);
        let text = "respond = { status = 200, body = \"hi-$host\", type = \"text/plain\" }";
        rest("return 200 hi-$http_host", answered(text), 0);
        rest("return 301 https://$host$request_uri", to_tls("$host", 301), 0);
        // Whoever has no name of the server's is led to its first one, as by nginx.
        for host in ["a.test", "$server_name"] {
            rest(&format!("return 308 https://{host}$request_uri"), to_tls("a.test", 308), 0);
        }
        let away = "redirect = { to = \"https://b.test$request_uri\", status = 301 }";
        rest("return 301 https://b.test$request_uri", answered(away), 0);
        rest("return /x", answered("redirect = { to = \"/x\", status = 302 }"), 0);
        rest("return 301 $where", Ruling::Closed, 1);
        rest("return 200 $hostname", Ruling::Closed, 1);
        rest("return 301 /$1", Ruling::Closed, 1);
    }

    #[test]
    fn rewrites_lead_away_to_a_script_or_are_closed() {
        let case = |line: &str, ruling: Ruling, left: usize| {
            let (rulings, found) = read_all(vec![directive(line)]);
            let rulings: Vec<_> = rulings.cases.into_iter().map(|case| (case.pattern, case.ruling)).collect();
            assert_eq!((rulings, found), (vec![(Some("^/old/(.*)$".to_owned()), ruling)], left), "{line}");
        };
        let to = |status| answered(&format!("redirect = {{ to = \"/new/$1$is_args$args\", status = {status} }}"));
        case("rewrite ^/old/(.*)$ /new/$1 permanent", to(301), 0);
        case("rewrite ^/old/(.*)$ /new/$1 redirect", to(302), 0);
        case("rewrite ^/old/(.*)$ /new/$1? permanent", answered("redirect = { to = \"/new/$1\", status = 301 }"), 0);
        case("rewrite ^/old/(.*)$ /index.php?q=$1 last", Ruling::Script(Substitute::whole("/index.php".to_owned())), 0);
        case("rewrite ^/old/(.*)$ /new/$1 last", Ruling::Closed, 1);
        rest("rewrite ^ /index.php last", Ruling::Script(Substitute::whole("/index.php".to_owned())), 0);
        rest("rewrite ^ https://$host$request_uri? permanent", to_tls("$host", 301), 0);
        let (rulings, _) = read_all(vec![directive("rewrite ^/(.*)$ https://b.test/$1 permanent")]);
        let to = "redirect = { to = \"https://b.test/$1$is_args$args\", status = 301 }";
        let case = &rulings.cases[0];
        assert_eq!((case.pattern.as_deref(), &case.ruling), (Some("^/(.*)$"), &answered(to)));
        assert_eq!(rulings.rest, None);
    }

    #[test]
    fn what_an_origin_is_asked_for_keeps_the_query_as_nginx_does() {
        for (target, expect) in [
            ("/new/$1", "/new/$1"),
            ("/new/$1?", "/new/$1?"),
            ("/new?a=$1", "/new?a=$1$and_args"),
            ("/new?a=$1?", "/new?a=$1"),
            ("/w.php?p=$1", "/w.php?p=$1$and_args"),
        ] {
            let block = conditional("location /", &format!("rewrite ^/old/(.*)$ {target} break"));
            let (maps, clear) = (Maps::default(), InTheClear::Always);
            let (has_groups, asks_origin, server_name, default_type) = (false, true, "a.test", "text/plain");
            let scope = RulingScope { has_groups, asks_origin, server_name, default_type, maps: &maps, clear };
            let rulings = read(&block, &scope, &mut Findings::default());
            assert_eq!(rulings.cases[0].ruling, Ruling::Rewritten(expect.to_owned()), "{target}");
        }
    }

    #[test]
    fn conditions_are_cases_or_close() {
        let (rulings, _) = read_all(vec![conditional("if ($request_method = POST)", "return 405")]);
        assert_eq!(
            (&rulings.cases[0].methods[..], &rulings.cases[0].ruling),
            (&["POST".to_owned()][..], &Ruling::Closed)
        );
        let (rulings, _) = read_all(vec![conditional("if ($request_method !~ ^(GET|HEAD)$ )", "return 444")]);
        assert_eq!(rulings.only_methods, Some(vec!["GET".to_owned(), "HEAD".to_owned()]));
        let (rulings, _) = read_all(vec![conditional("if (!-e $request_filename)", "rewrite ^(.*)$ /index.php last")]);
        assert_eq!((rulings.fallback, rulings.rest), (Some(Substitute::whole("/index.php".to_owned())), None));
        let (rulings, _) = read_all(vec![conditional("if ($host = www.a.test)", "return 301 https://a.test/x")]);
        assert_eq!(rulings.cases[0].host.as_deref(), Some("www.a.test"));
        for closed in ["if ($invalid_referer)", "if ($http_x_key != $key)", "if ($remote_addr = 10.0.0.1)", "if (-f x)"]
        {
            let (rulings, left) = read_all(vec![conditional(closed, "return 403")]);
            assert_eq!((rulings.rest, left), (Some(Ruling::Closed), 1), "{closed}");
        }
        let (rulings, left) = read_all(vec![conditional("if ($http_user_agent ~ bot)", "return 403")]);
        let fields: Vec<_> = rulings.cases.iter().filter_map(|case| case.field.as_ref().map(FieldCase::line)).collect();
        assert_eq!((rulings.rest, fields, left), (None, vec!["header = { user-agent = '~bot' }".to_owned()], 0));
        let (rulings, left) = read_all(vec![conditional("if ($http_x_key != secret)", "return 403")]);
        assert_eq!((rulings.rest, rulings.cases.len(), left), (None, 2, 0), "another one, and none");
        let (rulings, left) = read_all(vec![conditional("if ($http_user_agent ~ bot)", "return 301 /bots")]);
        let redirect = answered("redirect = { to = \"/bots\", status = 301 }");
        assert_eq!((rulings.rest, &rulings.cases[0].ruling, left), (None, &redirect, 0));
        let (rulings, left) = read_all(vec![conditional("if ($http_cookie ~ x)", "set $skip 1")]);
        assert_eq!((rulings.rest, rulings.cases.len(), left), (None, 0, 1));
    }

    /// Whether a request is in the clear is known of a listener, and is no word of a client's.
    #[test]
    fn what_comes_in_the_clear_is_led_away_or_ruled() {
        let rest = |head: &str, clear| {
            read_by(vec![conditional(head, "return 301 https://$host$request_uri")], &Maps::default(), clear).0.rest
        };
        let led = Some(to_tls("$host", 301));
        for head in ["if ($scheme = http)", "if ($scheme != https)", "if ($https = )", "if ($server_port = 80)"] {
            let found = [InTheClear::Always, InTheClear::Never, InTheClear::CanBeLed].map(|clear| rest(head, clear));
            assert_eq!(found, [led.clone(), None, None], "{head}");
            let server = Directive { block: Some(vec![conditional(head, "return 403")]), ..directive("server") };
            assert_eq!(says_of_the_clear(&server).len(), 1, "{head}");
        }
        for head in ["if ($scheme = https)", "if ($https)", "if ($server_port = 443)"] {
            let found = [InTheClear::Always, InTheClear::Never, InTheClear::CanBeLed].map(|clear| rest(head, clear));
            assert_eq!(found, [None, led.clone(), led.clone()], "{head}");
        }
        assert_eq!(rest("if ($scheme ~ p$)", InTheClear::CanBeLed), Some(Ruling::Closed));
    }

    /// A rewriting of some paths is about no others, and what is closed is said.
    #[test]
    fn what_is_rewritten_for_some_leaves_the_rest_alone() {
        let read = |head: &str, clear| {
            let act = "rewrite ^/login(/.*)?$ https://$server_name$uri last";
            let (rulings, left) = read_by(vec![conditional(head, act)], &Maps::default(), clear);
            let cases: Vec<_> = rulings.cases.into_iter().map(|case| (case.pattern, case.ruling)).collect();
            (cases, rulings.rest, left)
        };
        let led = vec![(Some("^/login(/.*)?$".to_owned()), to_tls("a.test", 302))];
        assert_eq!(read("if ($server_port != 443)", InTheClear::Always), (led, None, 0));
        assert_eq!(read("if ($server_port != 443)", InTheClear::Never), (vec![], None, 0));
        let closed = vec![(None, Ruling::Closed)];
        assert_eq!(read("if ($host = b.test)", InTheClear::Always), (closed, None, 1));
    }

    #[test]
    fn conditions_on_maps_are_those_that_the_maps_are_made_of() {
        let mut maps = Maps::default();
        let map = |head: &str, lines: &[&str]| Directive {
            block: Some(lines.iter().map(|line| directive(line)).collect()),
            ..directive(head)
        };
        for map in [
            map("map $request_method $refused", &["default 1", "GET 0", "HEAD 0"]),
            map("map $uri $moved", &["/old /new", "~^/a/ /b"]),
            map("map $http_user_agent $bot", &["default 0", "~bot 1"]),
            map("map $remote_addr $inside", &["10.0.0.1 1"]),
        ] {
            assert!(maps.take(&map));
        }
        let read = |head: &str, act: &str| read_by(vec![conditional(head, act)], &maps, InTheClear::Always);
        assert_eq!(read("if ($refused)", "return 405").0.only_methods, Some(vec!["GET".to_owned(), "HEAD".to_owned()]));
        let (rulings, left) = read("if ($moved)", "return 301 $moved");
        let found: Vec<_> = rulings.cases.iter().map(|case| (case.pattern.as_deref(), &case.ruling)).collect();
        let to = |path: &str| answered(&format!("redirect = {{ to = \"{path}\", status = 301 }}"));
        assert_eq!((found, left), (vec![(Some("(?i)^/old$"), &to("/new")), (Some("^/a/"), &to("/b"))], 0));
        let (rulings, left) = read("if ($bot)", "return 403");
        assert_eq!((rulings.rest, rulings.cases.len(), left), (None, 1, 0));
        assert_eq!(
            rulings.cases[0].field.as_ref().map(FieldCase::line).as_deref(),
            Some("header = { user-agent = '~bot' }")
        );
        let (rulings, left) = read("if ($bot)", "return 301 /bots");
        assert_eq!((rulings.rest, rulings.cases.len(), left), (None, 1, 0));
        let (rulings, left) = read("if ($inside = 1)", "return 403");
        assert_eq!((rulings.rest, left), (Some(Ruling::Closed), 1));
        let (rulings, left) = read("if ($refused = 2)", "return 403");
        assert_eq!((rulings.rest, left), (None, 0));
    }

    #[test]
    fn methods_are_limited() {
        let limited = |inside: &str| read_all(vec![conditional("limit_except GET POST", inside)]);
        assert_eq!(limited("deny all").0.only_methods, Some(["GET", "POST", "HEAD"].map(str::to_owned).into()));
        assert_eq!((limited("allow 10.0.0.1").0.rest, limited("allow 10.0.0.1").1), (Some(Ruling::Closed), 1));
    }
}
