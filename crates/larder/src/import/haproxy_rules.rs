//! The rules of a proxy of HAProxy's, one after the other: what becomes of which requests. Each rule divides them further, and the
//! first that ends it has the last word.
//!
//! A rule that keeps requests out, changes who is asked or is not known here closes what it may be about, if a route cannot say it.

use crate::config::{SENT_BY_US, may_be_set_in_answers, may_be_set_in_requests, says_client_address};
use crate::import::haproxy_acls::TestWorld;
use crate::import::haproxy_conditions::{self, Met, NamedTests, RuleCondition};
use crate::import::haproxy_keywords;
use crate::import::haproxy_redirects;
use crate::import::haproxy_texts::{plain, template};
use crate::import::import_findings::Findings;
use crate::import::imported_fields::{EditedFields, is_of_caches, lets_store};
use crate::import::nginx_conf::Directive;
use crate::import::path_tests::PathTest;
use crate::import::request_cells::{Asks, RequestCell};

/// Into more pieces than this no site is divided.
const BRANCHES_MAX: usize = 1_024;

/// The status of a refusal that says none.
const FORBIDDEN: u16 = 403;

/// Actions that say nothing to a client or an origin.
const SAY_NOTHING: [&str; 13] = [
    "capture",
    "disable-l7-retry",
    "early-hint",
    "set-log-level",
    "set-mark",
    "set-nice",
    "set-priority-class",
    "set-priority-offset",
    "set-timeout",
    "set-tos",
    "unset-var",
    "wait-for-body",
    "wait-for-handshake",
];

/// What `tcp-request` may set that nobody is let in by.
const SAY_NOTHING_OF_CLIENTS: [&str; 5] = ["set-log-level", "set-mark", "set-nice", "set-tos", "set-var"];

/// Paths in another spelling than they are meant.
const SPELLED_OTHERWISE: &str = r"//|/\.\.?(?:/|$)|%";

/// What HAProxy says at `monitor-uri`.
const ALIVE: &str =
    "respond = { body = \"<html><body><h1>200 OK</h1>\\nService ready.\\n</body></html>\\n\", type = \"text/html\" }";

/// Some requests, and what has been said of them so far.
#[derive(Clone, Debug)]
pub struct RuleBranch {
    pub cell: RequestCell,
    pub fields: EditedFields,
    pub answers: EditedFields,
    /// The Host that an origin gets, if a rule says it.
    pub host: Option<String>,
    /// The path that it is asked for.
    pub rewrite: Option<String>,
    /// The cache that answers …
    pub cache: Option<String>,
    /// … and that keeps what is answered, too.
    pub is_kept: bool,
    /// A rule of answers says something of who may keep them.
    pub is_stored_by_nobody: bool,
    pub ends: Option<RuleEnding>,
    /// No further rule of this list is asked.
    is_past: bool,
    /// The line that decided last.
    pub line: Directive,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleEnding {
    /// Nobody, with this status where somebody counts.
    Closed(u16),
    /// Lines of a route that answers by itself.
    Answered(Vec<String>),
    /// It is led to the same URL at https, with this status.
    ToTls(u16),
    /// Another proxy, whose rules have not been asked yet.
    Backend(String),
    /// The servers of this one.
    OwnServers(String),
}

/// The rules of one proxy, over what has come to it.
pub struct ProxyRules<'a> {
    pub lines: &'a [Directive],
    pub named: NamedTests,
    pub world: TestWorld<'a>,
    pub findings: &'a mut Findings,
    pub branches: Vec<RuleBranch>,
}

/// What is said where a rule closes.
pub const CLOSED_BY_CONDITION: &str = "closed: routes cannot tell who meets this condition";
const CLOSED_BY_ACTION: &str = "closed: larder has no word for this";

impl RuleBranch {
    pub fn all(line: &Directive) -> RuleBranch {
        RuleBranch {
            cell: RequestCell::default(),
            fields: EditedFields::default(),
            answers: EditedFields::default(),
            host: None,
            rewrite: None,
            cache: None,
            is_kept: false,
            is_stored_by_nobody: false,
            ends: None,
            is_past: false,
            line: line.clone(),
        }
    }

    /// Has a rule before changed what is asked?
    fn is_stale(&self, asks: &Asks) -> bool {
        match asks {
            Asks::Host(_) => self.host.is_some(),
            Asks::Path(_) => self.rewrite.is_some(),
            Asks::Field(name, _) if name.eq_ignore_ascii_case("host") => self.host.is_some(),
            Asks::Field(name, _) => self.fields.touches(name),
            Asks::Method(_) | Asks::Guard(_) => false,
        }
    }

    /// Does a text say what a rule before has changed? larder's variables are of the request as it came.
    fn says_changed(&self, text: &str) -> bool {
        let is_said = |names: &[&str]| names.iter().any(|name| text.contains(&format!("${{{name}}}")));
        self.fields.are_said_in(text)
            || self.host.is_some() && is_said(&["host"])
            || self.rewrite.is_some() && is_said(&["uri", "request_uri"])
    }

    fn end(&mut self, ending: RuleEnding, line: &Directive) {
        self.ends = Some(ending);
        self.line = line.clone();
    }

    pub fn close(&mut self, line: &Directive) {
        self.end(RuleEnding::Closed(FORBIDDEN), line);
    }
}

impl ProxyRules<'_> {
    /// All rules of requests, in the order in which HAProxy asks them; at the end of each list of rules the next begins.
    pub fn requests(&mut self) -> Result<(), String> {
        self.close_by_unknown();
        for layer in ["connection", "session", "content"] {
            let is_of = |line: &&Directive| line.name == "tcp-request" && line.argument(0) == layer;
            self.list(is_of, |rules, line| rules.tcp(line))?;
        }
        self.list(|line| line.name == "monitor-uri", |rules, line| rules.page(line))?;
        // What old versions call so.
        self.list(|line| line.name == "block", |rules, line| rules.rule(line, &renamed("deny", &line.arguments)))?;
        self.list(|line| line.name == "http-request", |rules, line| rules.rule(line, &line.arguments))?;
        self.list(|line| line.name == "stats", |rules, line| rules.page(line))?;
        self.list(
            |line| line.name == "redirect",
            |rules, line| rules.rule(line, &renamed("redirect", &line.arguments)),
        )?;
        self.fields_of_haproxy();
        Ok(())
    }

    /// Fields that HAProxy says behind all rules: who asks, by another name than larder has for that, and which request it is. What the client
    /// says by that name is gone.
    fn fields_of_haproxy(&mut self) {
        let lines = self.lines;
        for line in lines {
            let named = line.arguments.iter().position(|word| word == "header").map(|at| line.argument(at + 1));
            let (name, value) = match (line.name.as_str(), line.argument(0)) {
                ("option", "forwardfor") => (named.unwrap_or("X-Forwarded-For"), Some("${remote_addr}")),
                ("option", "originalto") => (named.unwrap_or("X-Original-To"), None),
                ("unique-id-header", name) => (name, Some("${request_id}")),
                _ => continue,
            };
            if SENT_BY_US.contains(&name.to_lowercase().as_str()) {
                continue;
            }
            if value.is_none() {
                self.findings.leave(line, "taken out: larder has no name for the address that a client came to");
            }
            for branch in self.branches.iter_mut().filter(|_| may_be_set_in_requests(name)) {
                match value {
                    Some(value) => branch.fields.set(name, value.to_owned()),
                    None => branch.fields.remove(name),
                }
            }
        }
    }

    fn list(
        &mut self,
        is_of: impl Fn(&&Directive) -> bool,
        ask: impl Fn(&mut Self, &Directive) -> Result<(), String>,
    ) -> Result<(), String> {
        let lines = self.lines;
        lines.iter().filter(is_of).try_for_each(|line| ask(self, line))?;
        self.branches.iter_mut().for_each(|branch| branch.is_past = false);
        Ok(())
    }

    /// A keyword that is not known may keep people out.
    fn close_by_unknown(&mut self) {
        let lines = self.lines;
        for line in lines.iter().filter(|line| !haproxy_keywords::is_known(line)) {
            self.findings.leave(line, "closed: larder does not know what this does");
            self.branches.iter_mut().for_each(|branch| branch.close(line));
        }
    }

    /// `use_backend`, then `default_backend`.
    pub fn backends(&mut self) -> Result<(), String> {
        for line in self.lines.iter().filter(|line| line.name == "use_backend") {
            let (words, condition) = self.divided(&line.arguments);
            let name = words.first().filter(|name| !name.contains('%')).cloned();
            if name.is_none() {
                self.findings.leave(line, "closed: who answers is looked up while it runs");
            }
            self.divide(line, &condition, |branch, is_sure| match (&name, is_sure) {
                (Some(name), true) => branch.end(RuleEnding::Backend(name.clone()), line),
                _ => branch.close(line),
            })?;
        }
        let Some(line) = self.lines.iter().rev().find(|line| line.name == "default_backend") else { return Ok(()) };
        for branch in self.branches.iter_mut().filter(|branch| branch.ends.is_none()) {
            branch.end(RuleEnding::Backend(line.argument(0).to_owned()), line);
        }
        Ok(())
    }

    /// Rules that choose one server of a backend.
    pub fn use_servers(&mut self) -> Result<(), String> {
        for line in self.lines.iter().filter(|line| line.name == "use-server") {
            let (_, condition) = self.divided(&line.arguments);
            self.findings.leave(line, "closed: an origin asks any of its servers");
            self.divide(line, &condition, |branch, _| branch.close(line))?;
        }
        Ok(())
    }

    fn divided(&self, words: &[String]) -> (Vec<String>, RuleCondition) {
        let (words, condition) = haproxy_conditions::divided(words, &self.named, &self.world);
        (words.to_vec(), condition)
    }

    /// Says something of those that meet a condition: for certain, or of those that may have met it.
    fn divide(
        &mut self,
        line: &Directive,
        condition: &RuleCondition,
        mut say: impl FnMut(&mut RuleBranch, bool),
    ) -> Result<(), String> {
        let mut divided = Vec::new();
        for branch in std::mem::take(&mut self.branches) {
            if branch.ends.is_some() || branch.is_past {
                divided.push(branch);
                continue;
            }
            for (cell, met) in condition.cells(&branch.cell, &|asks| branch.is_stale(asks)) {
                let mut part = RuleBranch { cell, ..branch.clone() };
                if met != Met::No {
                    say(&mut part, met == Met::Yes);
                }
                if met == Met::Unknown {
                    self.findings.leave(line, CLOSED_BY_CONDITION);
                }
                divided.push(part);
            }
            if divided.len() > BRANCHES_MAX {
                let (file, line) = (line.place.file.display(), line.place.line);
                return Err(format!("{file}:{line}: rules divide requests into more than {BRANCHES_MAX} kinds"));
            }
        }
        self.branches = divided;
        Ok(())
    }

    fn tcp(&mut self, line: &Directive) -> Result<(), String> {
        let Some((_, words)) = line.arguments.split_first() else { return Ok(()) };
        match words.first().map(String::as_str) {
            Some("accept") => self.rule(line, &renamed("allow", words.get(1..).unwrap_or_default())),
            Some("reject") => self.rule(line, words),
            Some(word) if word.starts_with("track-sc") || word.starts_with("sc-") => Ok(()),
            Some(word) if SAY_NOTHING_OF_CLIENTS.contains(&word.split('(').next().unwrap_or_default()) => Ok(()),
            Some("expect-proxy" | "capture" | "unset-var") => Ok(()),
            _ => {
                let (words, condition) = self.divided(words);
                self.unknown(line, &words, &condition)
            }
        }
    }

    /// Pages that HAProxy makes itself.
    fn page(&mut self, line: &Directive) -> Result<(), String> {
        if line.name == "monitor-uri" {
            let (path, query) =
                line.argument(0).split_once('?').map_or((line.argument(0), None), |(path, query)| (path, Some(query)));
            let ending = match query {
                None => {
                    self.findings
                        .note(line, "answered with any query, too, which HAProxy hands on: routes do not ask for one");
                    RuleEnding::Answered(vec![ALIVE.to_owned()])
                }
                Some(_) => {
                    self.findings.leave(line, "closed, with any query: routes do not ask for one");
                    RuleEnding::Closed(FORBIDDEN)
                }
            };
            self.first_end_those(&Asks::Path(PathTest::whole(path)), &ending, line);
            return Ok(());
        }
        let has_uri = self.lines.iter().any(|line| line.name == "stats" && line.argument(0) == "uri");
        let beginning = match (line.argument(0), line.argument(1)) {
            ("uri", uri) => uri.split('?').next().unwrap_or_default(),
            ("enable", _) if !has_uri => "/haproxy",
            _ => return Ok(()),
        };
        self.findings.leave(line, "closed: larder's own pages are at the admin address ([admin])");
        self.first_end_those(&Asks::Path(PathTest::beginning(beginning)), &RuleEnding::Closed(FORBIDDEN), line);
        Ok(())
    }

    /// Of those who are not answered yet, who meets this is answered so.
    fn first_end_those(&mut self, asks: &Asks, ending: &RuleEnding, line: &Directive) {
        let mut divided = Vec::new();
        for branch in std::mem::take(&mut self.branches) {
            if let Some(cell) = branch.cell.asking(asks).filter(|_| branch.ends.is_none()) {
                let mut ended = RuleBranch { cell, ..branch.clone() };
                ended.end(ending.clone(), line);
                divided.push(ended);
            }
            divided.push(branch);
        }
        self.branches = divided;
    }

    fn rule(&mut self, line: &Directive, words: &[String]) -> Result<(), String> {
        let (words, condition) = self.divided(words);
        let action = words.first().map(String::as_str).unwrap_or_default();
        match action {
            "deny" | "reject" | "tarpit" | "silent-drop" => {
                let at = words.iter().position(|word| word == "deny_status" || word == "status");
                let status = at.and_then(|at| words.get(at + 1)?.parse().ok()).unwrap_or(FORBIDDEN);
                self.divide(line, &condition, |branch, _| branch.end(RuleEnding::Closed(status), line))
            }
            "auth" => self.divide(line, &condition, |branch, _| branch.close(line)),
            "allow" => self.divide(line, &condition, |branch, is_sure| match is_sure {
                true => branch.is_past = true,
                false => branch.close(line),
            }),
            "redirect" | "return" => {
                let answer = haproxy_redirects::answer(&words);
                if answer.is_none() {
                    self.findings.leave(line, "closed: larder does not answer so");
                }
                let says_changed = |branch: &RuleBranch| match &answer {
                    Some(RuleEnding::Answered(lines)) => lines.iter().any(|text| branch.says_changed(text)),
                    Some(RuleEnding::ToTls(_)) => branch.host.is_some() || branch.rewrite.is_some(),
                    _ => false,
                };
                let mut is_changed = false;
                self.divide(line, &condition, |branch, is_sure| match (&answer, is_sure) {
                    (Some(answer), true) if !says_changed(branch) => branch.end(answer.clone(), line),
                    _ => {
                        is_changed |= says_changed(branch);
                        branch.close(line);
                    }
                })?;
                if is_changed {
                    self.findings.leave(line, "closed: it says what another rule has changed before");
                }
                Ok(())
            }
            "set-header" | "add-header" | "del-header" | "replace-header" | "replace-value" => {
                self.field(line, &words, &condition)
            }
            "set-path" | "replace-path" => self.path(line, &words, &condition),
            "normalize-uri" => {
                self.findings.leave(line, "closed: paths in another spelling than they are meant");
                let otherwise = Asks::Path(PathTest::matching(SPELLED_OTHERWISE));
                self.first_end_those(&otherwise, &RuleEnding::Closed(FORBIDDEN), line);
                Ok(())
            }
            "cache-use" => {
                let name = words.get(1).cloned();
                self.divide(line, &condition, |branch, is_sure| branch.cache = name.clone().filter(|_| is_sure))
            }
            _ => self.unknown(line, &words, &condition),
        }
    }

    fn unknown(&mut self, line: &Directive, words: &[String], condition: &RuleCondition) -> Result<(), String> {
        let action = words.first().map(String::as_str).unwrap_or_default();
        let name = action.split('(').next().unwrap_or_default();
        if SAY_NOTHING.contains(&name)
            || ["set-var", "track-sc", "sc-inc-", "sc-set-", "sc-add-", "add-acl", "del-acl", "set-map", "del-map"]
                .iter()
                .any(|start| name.starts_with(start))
        {
            self.findings.note(line, "of use to other rules alone, which say where they are closed without it");
            return Ok(());
        }
        self.findings.leave(line, CLOSED_BY_ACTION);
        self.divide(line, condition, |branch, _| branch.close(line))
    }

    /// A field of requests. One that cannot be said is taken out, so that no client says it in the rule's place.
    fn field(&mut self, line: &Directive, words: &[String], condition: &RuleCondition) -> Result<(), String> {
        let (action, name) = (words[0].as_str(), words.get(1).cloned().unwrap_or_default());
        let value = template(words.get(2).map(String::as_str).unwrap_or_default());
        if SENT_BY_US.contains(&name.to_lowercase().as_str()) {
            self.findings.note(line, "larder tells origins who asks by itself, and passes on no client's word on it");
            return Ok(());
        }
        if name.eq_ignore_ascii_case("host") {
            let host = value.filter(|value| action == "set-header" && !value.contains('$'));
            if host.is_none() {
                self.findings.leave(line, "closed: the Host of an origin is one name, or the client's");
            }
            return self.divide(line, condition, |branch, is_sure| match (&host, is_sure) {
                (Some(host), true) => branch.host = Some(host.clone()),
                _ => branch.close(line),
            });
        }
        let by_beginning =
            words.get(2).is_some_and(|word| word == "-m") && words.get(3).is_some_and(|word| word == "beg");
        let pattern = if by_beginning { format!("{name}*") } else { name.clone() };
        let is_plain = action != "del-header" || words.len() == 2 || by_beginning;
        if !may_be_set_in_requests(&name) {
            self.findings.leave(line, "a field that larder writes by itself, or hands on as it is");
            return Ok(());
        }
        if !is_plain {
            self.findings.leave(line, CLOSED_BY_ACTION);
            return self.divide(line, condition, |branch, _| branch.close(line));
        }
        let mut is_taken_out = action.starts_with("replace-");
        let said_by_it = |branch: &RuleBranch| value.clone().filter(|value| !branch.says_changed(value));
        self.divide(line, condition, |branch, is_sure| match (action, said_by_it(branch)) {
            ("del-header", _) => branch.fields.remove(&pattern),
            ("add-header", Some(value)) if is_sure && says_client_address(&name) => branch.fields.set(&name, value),
            ("add-header", Some(value)) if is_sure => branch.fields.add(&name, value),
            ("set-header", Some(value)) if is_sure => branch.fields.set(&name, value),
            // Nobody knows whether it would be said.
            ("add-header", Some(_)) => {}
            (_, value) => {
                is_taken_out |= value.is_none();
                branch.fields.remove(&name);
            }
        })?;
        if is_taken_out {
            self.findings.leave(line, "taken out: a value that larder's fields cannot have");
        }
        Ok(())
    }

    /// The path that an origin is asked for.
    fn path(&mut self, line: &Directive, words: &[String], condition: &RuleCondition) -> Result<(), String> {
        let (regex, target) = match (words[0].as_str(), &words[1..]) {
            ("set-path", [target]) => (None, template(target)),
            ("replace-path", [regex, target]) => (Some(regex.clone()), with_groups(target)),
            _ => (None, None),
        };
        let is_regex = |regex: &String| proxy::settings::RoutePattern::new(regex).is_ok();
        let target = target.filter(|target| !target.contains('?') && regex.as_ref().is_none_or(is_regex));
        if target.is_none() {
            self.findings.leave(line, "closed: a path that an origin of larder's cannot be asked for");
        }
        let mut unmatched = Vec::new();
        self.divide(line, condition, |branch, is_sure| {
            let before = branch.clone();
            let grouped = match (&regex, &target, branch.rewrite.is_none() && is_sure) {
                (Some(regex), Some(_), true) => branch.cell.grouped_by(regex),
                (None, Some(_), true) => Some(branch.cell.clone()),
                _ => None,
            };
            match grouped {
                Some(cell) => {
                    (branch.cell, branch.rewrite) = (cell, target.clone());
                    if regex.is_some() {
                        unmatched.push((branch.cell.clone(), before));
                    }
                }
                None => branch.close(line),
            }
        })?;
        // Paths that the expression does not match stay as they are.
        let mut all = Vec::new();
        for branch in std::mem::take(&mut self.branches) {
            let rest = unmatched.iter().position(|(cell, _)| *cell == branch.cell).map(|at| unmatched.remove(at).1);
            all.push(branch);
            all.extend(rest);
        }
        self.branches = all;
        Ok(())
    }

    /// Fields of answers. What is set in some answers alone is not said, what is taken out of some is taken out of all, and what keeps
    /// answers back closes. Where a rule has a word on who may keep an answer, larder does not.
    pub fn answers(&mut self) -> EditedFields {
        let mut edits = EditedFields::default();
        let is_of_answers = |line: &&Directive| line.name == "http-response" || line.name == "http-after-response";
        let mut closing = None;
        for line in self.lines.iter().filter(is_of_answers) {
            let (words, condition) = self.divided(&line.arguments);
            let word = |at: usize| words.get(at).map(String::as_str).unwrap_or_default();
            let value = template(word(2));
            let says_more = !matches!(word(0), "set-header" | "add-header") || condition.constant() != Some(true);
            let is_of_caches = is_of_caches(word(1)) && word(0) != "del-header";
            if is_of_caches && (says_more || !lets_store(word(1), word(2))) {
                self.branches.iter_mut().for_each(|branch| branch.is_stored_by_nobody = true);
            }
            match (word(0), condition.constant()) {
                (_, Some(false)) => {}
                ("set-header" | "add-header", Some(true)) if may_be_set_in_answers(word(1)) && value.is_some() => {
                    let value = value.unwrap_or_else(|| plain(word(2)));
                    if word(0) == "set-header" {
                        edits.set(word(1), value)
                    } else {
                        edits.add(word(1), value)
                    }
                    if line.name == "http-response" {
                        self.findings.note(line, "said in errors and redirects of larder's own, too");
                    }
                }
                ("del-header", is_for_all)
                    if may_be_set_in_answers(word(1)) && (words.len() == 2 || word(3) == "beg") =>
                {
                    let end = if words.len() == 2 { "" } else { "*" };
                    edits.remove(&format!("{}{end}", word(1)));
                    if is_for_all.is_none() {
                        self.findings.leave(line, "taken out of all answers: routes cannot tell which it is about");
                    }
                }
                ("replace-header" | "replace-value", _) | ("set-header", Some(true))
                    if may_be_set_in_answers(word(1)) && !is_of_caches =>
                {
                    edits.remove(word(1));
                    self.findings.leave(line, "taken out of all answers: a value that routes cannot say");
                }
                ("cache-store", is_for_all) => {
                    let is_kept =
                        |branch: &RuleBranch| is_for_all == Some(true) && branch.cache.as_deref() == Some(word(1));
                    self.branches.iter_mut().for_each(|branch| branch.is_kept |= is_kept(branch));
                    if is_for_all.is_none() {
                        self.findings.leave(line, "nothing is stored: routes cannot tell which answers it is about");
                    }
                }
                ("del-header", _) => {
                    self.findings.leave(line, CLOSED_BY_ACTION);
                    closing = Some(line);
                }
                ("allow" | "capture" | "set-log-level" | "set-nice" | "set-mark" | "set-tos", _) => {}
                ("set-header" | "add-header" | "replace-header" | "replace-value" | "set-status", _) => {
                    self.findings.leave(line, "a field or status of answers that routes cannot say");
                }
                (word, _) if word.starts_with("set-var") || word.starts_with("track-sc") || word.starts_with("sc-") => {
                }
                _ => {
                    self.findings.leave(line, CLOSED_BY_ACTION);
                    closing = Some(line);
                }
            }
        }
        if let Some(line) = closing {
            self.branches.iter_mut().for_each(|branch| branch.close(line));
        }
        edits
    }
}

fn renamed(action: &str, words: &[String]) -> Vec<String> {
    [action.to_owned()].into_iter().chain(words.iter().cloned()).collect()
}

/// `\1` of HAProxy is `$1`. `None`: more groups than there are, or samples.
fn with_groups(target: &str) -> Option<String> {
    let mut out = String::new();
    let mut letters = target.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => out.push_str(&format!("${{{}}}", letters.next().filter(|digit| ('1'..='9').contains(digit))?)),
            '%' => return None,
            '$' => out.push_str("$$"),
            letter => out.push(letter),
        }
    }
    Some(out)
}
