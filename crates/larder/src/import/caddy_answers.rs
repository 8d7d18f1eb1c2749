//! What one step of a site does to requests: it says something of them and lets them go on, or it answers. What larder has no words for
//! is closed, and listed.

use std::path::Path;

use proxy::settings::FieldTemplate;

use crate::import::caddy_access::{self, UserFiles};
use crate::import::caddy_condition::Condition;
use crate::import::caddy_fields::{FieldEdits, FieldsOf};
use crate::import::caddy_files;
use crate::import::caddy_leaves::{AnsweredRoute, LeafAnswer};
use crate::import::caddy_origin;
use crate::import::caddy_passage::{AskedRequests, Passage, PathNow};
use crate::import::caddy_steps::Step;
use crate::import::caddy_text::{TextScope, bytes, text};
use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_upstream::Origins;

/// What a step may add to.
pub struct Hands<'w> {
    pub findings: &'w mut Findings,
    pub origins: &'w mut Origins,
    pub users: &'w mut UserFiles,
    pub file: &'w Path,
    /// The folder in which it lies, from the root on.
    pub folder: &'w Path,
    /// Proxies are believed: who is connected may be one, and larder's networks are of clients.
    pub believes_proxies: bool,
    /// Routes may be told apart by fields.
    pub asks_fields: bool,
    /// Whether all of the site is served by TLS, or none of it.
    pub is_secure: Option<bool>,
}

/// What became of requests at a step.
pub enum Taken {
    Goes(Box<Passage>),
    /// Where this holds they go on changed, else as they are.
    GoesWhere(Condition, Box<Passage>),
    Answered(LeafAnswer),
}

/// Directives whose absence shows nothing to anybody.
const HARMLESS: [&str; 11] = [
    "encode",
    "tracing",
    "log_append",
    "skip_log",
    "log_skip",
    "log_name",
    "header",
    "push",
    "timeouts",
    "map",
    "vars",
];

pub fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name)
}

/// What is said where nobody can tell for whom a harmless step is. Fields that it takes out are taken out for all, and a page that it may keep
/// for one client is kept by none.
pub fn left_unsaid(step: &Step<'_>, passage: &Passage) -> Passage {
    let mut now = passage.clone();
    for member in step.members().iter().filter(|member| member.directive.name == "header") {
        let (mut edits, mut unheard) = (FieldEdits::default(), Findings::default());
        let scope = TextScope::default();
        edits.take_lines(member.directive, member.words, FieldsOf::Answers, scope, &mut unheard);
        now.answers = now.answers.and(&edits.of_all());
    }
    now
}

/// What Caddy says where nobody answers: 200, and nothing.
pub fn nothing(hands: &mut Hands<'_>, passage: &Passage) -> LeafAnswer {
    match &passage.scripts {
        None if passage.needs_file => LeafAnswer::Closed,
        Some(scripts) => {
            let why = "closed: larder shows the files beside scripts, and here is no file_server for them";
            hands.findings.leave(&scripts.said, why);
            LeafAnswer::Closed
        }
        None => answered(passage, vec!["respond = { status = 200, body = \"\" }".to_owned()]),
    }
}

/// Takes a step for requests that it is for.
pub fn take(hands: &mut Hands<'_>, step: &Step<'_>, passage: &Passage, asked: &AskedRequests) -> Taken {
    let mut now = passage.clone();
    let (directive, words) = (step.directive, step.words);
    let scope = scope(passage, asked);
    match directive.name.as_str() {
        "handle" | "route" => {}
        "handle_path" => match &step.cuts {
            Some(cut) => now.path = without_beginning(&passage.path, cut),
            None => return closed(hands, directive, "closed: no beginning of a path that is cut off"),
        },
        "root" => now.root = words.first().cloned(),
        "header" => now.answers.take_lines(directive, words, FieldsOf::Answers, scope, hands.findings),
        "request_header" => now.requests.take_lines(directive, words, FieldsOf::Requests, scope, hands.findings),
        "request_body" => match request_body(directive) {
            Some(max) => now.body_bytes_max = Some(max),
            None => hands.findings.leave(directive, "larder bounds a body by max_size alone"),
        },
        "basic_auth" | "basicauth" => match hands.users.login(directive, words, hands.findings) {
            Some(line) if !passage.guards.iter().any(|guard| guard.starts_with("basic_auth")) => now.guards.push(line),
            Some(_) => return closed(hands, directive, "closed: a route asks for one password"),
            None => return Taken::Answered(LeafAnswer::Closed),
        },
        "forward_auth" if !passage.path.is_own() || passage.fallback.is_some() || !passage.requests.is_empty() => {
            return closed(hands, directive, "closed: a service is told the client's own path and fields");
        }
        "forward_auth" => match caddy_access::service(directive, words, hands.folder, hands.origins, hands.findings) {
            Some(service) if !passage.guards.iter().any(|guard| guard.starts_with("auth_request")) => {
                now.guards.push(service.line);
                now.requests = service.requests;
            }
            Some(_) => return closed(hands, directive, "closed: a route asks one service"),
            None => return Taken::Answered(LeafAnswer::Closed),
        },
        "rewrite" => now.path = rewritten(words, &passage.path, scope),
        "uri" => return uri(hands, directive, words, now),
        "try_files" => match caddy_files::fallback(words, directive) {
            Some(fallback) if passage.path.is_own() => {
                now.is_path_unsure |= words.iter().any(|word| word.starts_with("{path}/"));
                now.needs_file |= fallback.is_none() && words.iter().any(|word| word.starts_with('='));
                now.fallback = fallback.or(now.fallback);
                now.looked_in = Some(passage.root.clone());
            }
            _ => return closed(hands, directive, "closed: larder looks for the path, then for one file of its root"),
        },
        "php_fastcgi" => match caddy_files::scripts(hands, directive, words, passage) {
            Some(scripts) => now.scripts = Some(scripts),
            None => return Taken::Answered(LeafAnswer::Closed),
        },
        name if is_harmless(name) => passed_by(hands, directive),
        _ => return Taken::Answered(answer(hands, step, passage, asked)),
    }
    Taken::Goes(Box::new(now))
}

/// Of no effect in larder.
fn passed_by(hands: &mut Hands<'_>, directive: &Directive) {
    match directive.name.as_str() {
        "encode" => hands.findings.note(directive, "larder compresses by itself"),
        "map" | "vars" => {
            hands.findings.note(directive, "where its variable is used and cannot be, that is said there")
        }
        _ => hands.findings.leave(directive, "larder has no setting that this becomes"),
    }
}

fn closed(hands: &mut Hands<'_>, directive: &Directive, why: &'static str) -> Taken {
    hands.findings.leave(directive, why);
    Taken::Answered(LeafAnswer::Closed)
}

pub fn scope<'a>(passage: &Passage, asked: &'a AskedRequests) -> TextScope<'a> {
    TextScope {
        is_rewritten: !passage.path.is_own() || passage.fallback.is_some() || passage.is_path_unsure,
        has_login: passage.guards.iter().any(|guard| guard.starts_with("basic_auth")),
        groups: asked.groups(),
        upstream: None,
    }
}

/// A path without a beginning that it has.
fn without_beginning(path: &PathNow, cut: &str) -> PathNow {
    match path {
        PathNow::Of { stripped, added } if added.is_empty() => {
            PathNow::Of { stripped: format!("{stripped}{cut}"), added: String::new() }
        }
        _ => PathNow::Unknown,
    }
}

/// `rewrite TO`.
fn rewritten(words: &[String], path: &PathNow, scope: TextScope<'_>) -> PathNow {
    let [to] = words else { return PathNow::Unknown };
    let to = to.strip_suffix("?{query}").or_else(|| to.strip_suffix("?{http.request.uri.query}")).unwrap_or(to);
    let own = ["{uri}", "{path}", "{http.request.uri}"].into_iter().find_map(|own| to.strip_suffix(own));
    match (own, path) {
        (Some(before), PathNow::Of { stripped, added }) if !before.contains(['{', '?']) => {
            PathNow::Of { stripped: stripped.clone(), added: format!("{}{added}", before.trim_end_matches('/')) }
        }
        _ if to.contains('?') || !to.starts_with('/') => PathNow::Unknown,
        _ if !to.contains(['{', '$', '\\']) => PathNow::Fixed(to.to_owned()),
        _ => text(to, scope).map_or(PathNow::Unknown, PathNow::Written),
    }
}

/// `uri strip_prefix /x`; all else is a path that nobody knows.
fn uri(hands: &mut Hands<'_>, directive: &Directive, words: &[String], mut now: Passage) -> Taken {
    match words {
        [kind, cut] if kind == "strip_prefix" && !cut.contains(['{', '*']) && cut.len() > 1 => {
            let cut = format!("/{}", cut.trim_matches('/'));
            now.path = without_beginning(&now.path, &cut);
            Taken::GoesWhere(Condition::Path(vec![format!("{cut}*")]), Box::new(now))
        }
        _ => closed(hands, directive, "closed: larder cuts beginnings off, and changes no path otherwise"),
    }
}

fn request_body(directive: &Directive) -> Option<u64> {
    let [line] = directive.children() else { return None };
    (line.name == "max_size").then(|| bytes(line.argument(0))).flatten()
}

/// The lines that everybody who answers has.
fn words(passage: &Passage) -> Vec<String> {
    passage.guards.iter().cloned().chain(passage.answers.line(FieldsOf::Answers)).collect()
}

fn answered(passage: &Passage, who: Vec<String>) -> LeafAnswer {
    LeafAnswer::Answered(Box::new(AnsweredRoute { who, words: words(passage), ..AnsweredRoute::default() }))
}

/// The answer of a step that ends the way.
fn answer(hands: &mut Hands<'_>, step: &Step<'_>, passage: &Passage, asked: &AskedRequests) -> LeafAnswer {
    let (directive, words) = (step.directive, step.words);
    let close = |hands: &mut Hands<'_>, why: &'static str| {
        hands.findings.leave(directive, why);
        LeafAnswer::Closed
    };
    if passage.requests.closes || passage.answers.closes {
        return LeafAnswer::Closed;
    }
    if passage.needs_file && (directive.name != "file_server" || passage.scripts.is_some()) {
        return close(hands, "closed: only who asks for a file comes here, and larder looks for one where it shows it");
    }
    match directive.name.as_str() {
        "abort" => {
            hands.findings.note(directive, "403: larder answers, and ends no connection without a word");
            LeafAnswer::Closed
        }
        "error" => {
            let status = words.iter().rev().find_map(|word| word.parse::<u16>().ok()).unwrap_or(500);
            refused_or_answered(passage, status, "")
        }
        "respond" => match own_answer(directive, words, scope(passage, asked)) {
            Some((_, body)) if says_changed(passage, &body) => close(hands, SAYS_CHANGED),
            Some((status, body)) => refused_or_answered(passage, status, &body),
            None => close(hands, "closed: a text with a placeholder that larder has not"),
        },
        "redir" => match redirect(words, scope(passage, asked)) {
            Some(line) if says_changed(passage, &line) => close(hands, SAYS_CHANGED),
            Some(line) => answered(passage, vec![line]),
            None => close(hands, "closed: a redirect to what larder cannot say"),
        },
        "reverse_proxy" => proxied(hands, step, passage, asked),
        "file_server" => match caddy_files::answer(hands, directive, words, passage) {
            Some(mut answer) => {
                answer.words = self::words(passage);
                if passage.scripts.is_some() {
                    answer.words.extend(passage.requests.line(FieldsOf::Requests));
                    answer.words.extend(not_stored(&passage.answers));
                }
                answer.body_bytes_max = passage.body_bytes_max;
                LeafAnswer::Answered(Box::new(answer))
            }
            None => LeafAnswer::Closed,
        },
        _ => close(hands, "closed: larder has no such handler, or does not answer so"),
    }
}

const SAYS_CHANGED: &str = "closed: it says a field that another directive has changed before";

/// Does a text say a field that has been changed? larder's variables are of the request as it came.
fn says_changed(passage: &Passage, text: &str) -> bool {
    let said = text.split("${http_").skip(1).filter_map(|rest| rest.split_once('}'));
    said.map(|(name, _)| name.replace('_', "-")).any(|name| passage.requests.names(&name))
}

/// A status of 4xx keeps people out.
fn refused_or_answered(passage: &Passage, status: u16, body: &str) -> LeafAnswer {
    let who = vec![format!("respond = {{ status = {status}, body = {} }}", quoted(body))];
    match status {
        401 | 403 => LeafAnswer::Closed,
        400..=499 => LeafAnswer::Refusal(who.into_iter().chain(words(passage)).collect()),
        _ => answered(passage, who),
    }
}

/// `[STATUS | BODY [STATUS]]`, or a block that says them.
fn own_answer(directive: &Directive, words: &[String], scope: TextScope<'_>) -> Option<(u16, String)> {
    let status = |word: &str| word.parse::<u16>().ok().filter(|status| (200..=599).contains(status));
    let (mut body, mut code) = (String::new(), 200);
    match words {
        [] => {}
        [one] => match status(one).filter(|_| one.len() == 3) {
            Some(found) => code = found,
            None => body.clone_from(one),
        },
        [text, found] => {
            body.clone_from(text);
            code = status(found)?;
        }
        _ => return None,
    }
    for line in directive.children() {
        match line.name.as_str() {
            "body" => line.argument(0).clone_into(&mut body),
            "close" => {}
            _ => return None,
        }
    }
    let body = text(&body, scope)?;
    FieldTemplate::parse(&body).is_ok().then_some((code, body))
}

/// What is said to be for one client alone is not stored; larder would store what the origin said.
fn not_stored(answers: &FieldEdits) -> Option<String> {
    answers.keep_private().then(|| "cache = false".to_owned())
}

/// `TO [CODE]`.
fn redirect(words: &[String], scope: TextScope<'_>) -> Option<String> {
    let (to, status) = match words {
        [to] => (to, 302),
        [to, code] => {
            let code = match code.as_str() {
                "permanent" => 301,
                "temporary" => 302,
                code => code.parse::<u16>().ok()?,
            };
            (to, code)
        }
        _ => return None,
    };
    let to = text(to, scope)?;
    Some(format!("redirect = {{ to = {}, status = {status} }}", quoted(&to)))
}

fn proxied(hands: &mut Hands<'_>, step: &Step<'_>, passage: &Passage, asked: &AskedRequests) -> LeafAnswer {
    let close = |hands: &mut Hands<'_>, why: &'static str| {
        hands.findings.leave(step.directive, why);
        LeafAnswer::Closed
    };
    if passage.fallback.is_some() {
        return close(hands, "closed: what the origin is asked for goes by which files there are");
    }
    let mut scope = scope(passage, asked);
    scope.groups = None;
    let asked_origin = caddy_origin::of(step.directive, step.words, scope, hands.folder, hands.origins, hands.findings);
    let Some(origin) = asked_origin else { return LeafAnswer::Closed };
    let mut who = vec![format!("origin = {}", quoted(&origin.origin))];
    let (mut pattern, mut closed) = (None, Vec::new());
    match &passage.path {
        PathNow::Of { stripped, added } if stripped.is_empty() && added.is_empty() => {}
        PathNow::Of { stripped, added } => {
            let (written, group) = asked.pattern_with_rest(stripped);
            pattern = Some(written);
            // Caddy cleans what is left of a path.
            closed.push(r"(?i)//|/(?:\.|%2e){1,2}(?:/|$)".to_owned());
            who.push(format!("rewrite = {}", quoted(&format!("{}/${{{group}}}", added.replace('$', "$$")))));
        }
        PathNow::Fixed(path) => who.push(format!("rewrite = {}", quoted(&path.replace('$', "$$")))),
        PathNow::Written(text) if says_changed(passage, text) => return close(hands, SAYS_CHANGED),
        PathNow::Written(text) => who.push(format!("rewrite = {}", quoted(text))),
        PathNow::Unknown => return close(hands, "closed: larder cannot say the path that the origin is asked for"),
    }
    let answers = passage.answers.and(&origin.answers);
    let requests = passage.requests.and(&origin.requests).line(FieldsOf::Requests);
    let answers = not_stored(&answers).into_iter().chain(answers.line(FieldsOf::Answers));
    let words = passage.guards.iter().cloned().chain(requests).chain(answers).chain(origin.timeouts).collect();
    let body_bytes_max = passage.body_bytes_max;
    LeafAnswer::Answered(Box::new(AnsweredRoute { pattern, who, words, closed, body_bytes_max, ..Default::default() }))
}
