//! What becomes of the requests that come to a listener of HAProxy's: the rules of its proxy, then those of the backend that they lead
//! to.

use std::collections::BTreeSet;

use crate::import::decided_routes::DecidedCell;
use crate::import::haproxy_acls::TestWorld;
use crate::import::haproxy_conditions::NamedTests;
use crate::import::haproxy_conf::HaproxySection;
use crate::import::haproxy_redirects;
use crate::import::haproxy_rules::{ProxyRules, RuleBranch, RuleEnding};
use crate::import::import_findings::{Findings, quoted};
use crate::import::imported_fields::EditedFields;
use crate::import::nginx_conf::Directive;

/// What users are told that they are asked for, where nothing is said.
const REALM: &str = "larder";

/// All that is answered at one kind of listeners.
pub struct ProxyAnswers {
    branches: Vec<RuleBranch>,
    /// What the proxy says of answers, behind what a backend does.
    answers: EditedFields,
    realm: Option<String>,
}

impl ProxyAnswers {
    /// The rules of a frontend, or of a `listen`.
    pub fn of(
        section: &HaproxySection,
        named: NamedTests,
        world: TestWorld<'_>,
        findings: &mut Findings,
    ) -> Result<ProxyAnswers, String> {
        let branches = vec![RuleBranch::all(&section.head)];
        let mut rules = ProxyRules { lines: &section.lines, named, world, findings, branches };
        rules.requests()?;
        rules.backends()?;
        rules.use_servers()?;
        let answers = rules.answers();
        let mut branches = rules.branches;
        for branch in branches.iter_mut().filter(|branch| branch.ends.is_none()) {
            branch.ends = Some(own_servers(section));
        }
        Ok(ProxyAnswers { branches, answers, realm: realm(section) })
    }

    /// The rules of a backend, for what has been led to it.
    pub fn within(
        &mut self,
        section: &HaproxySection,
        named: NamedTests,
        world: TestWorld<'_>,
        findings: &mut Findings,
    ) -> Result<(), String> {
        let is_led_here = |branch: &RuleBranch| branch.ends == Some(RuleEnding::Backend(section.name.clone()));
        if !self.branches.iter().any(is_led_here) {
            return Ok(());
        }
        let mut all = Vec::new();
        for mut branch in std::mem::take(&mut self.branches) {
            if !is_led_here(&branch) {
                all.push(branch);
                continue;
            }
            // Nobody asks the rules of what is disabled.
            if is_disabled(section) {
                branch.ends = Some(RuleEnding::Closed(UNAVAILABLE));
                all.push(branch);
                continue;
            }
            branch.ends = None;
            let branches = vec![branch];
            let (named, world) = (named.clone(), world);
            let mut rules = ProxyRules { lines: &section.lines, named, world, findings: &mut *findings, branches };
            rules.requests()?;
            rules.use_servers()?;
            let answers = rules.answers();
            for mut branch in rules.branches {
                branch.answers = answers.clone();
                branch.ends.get_or_insert_with(|| own_servers(section));
                all.push(branch);
            }
        }
        self.branches = all;
        self.realm = self.realm.take().or_else(|| realm(section));
        Ok(())
    }

    pub fn branches(&self) -> &[RuleBranch] {
        &self.branches
    }

    pub fn realm(&self) -> &str {
        self.realm.as_deref().unwrap_or(REALM)
    }

    /// Is whoever is answered by nothing else led to https? But for some paths, or for names of which others are refused.
    pub fn leads_to_tls(&self) -> bool {
        let is_led = |branch: &RuleBranch| matches!(branch.ends, Some(RuleEnding::ToTls(_)));
        let is_refused = |branch: &RuleBranch| matches!(branch.ends, Some(RuleEnding::Closed(_)) | None);
        let mut led = self.branches.iter().filter(|branch| is_led(branch)).peekable();
        led.peek().is_some()
            && (self.branches.iter().all(|branch| is_led(branch) || is_refused(branch))
                || led.any(|branch| branch.cell.is_all_but_some_paths()))
    }

    pub fn only_leads_to_tls(&self) -> bool {
        self.leads_to_tls() && self.branches.iter().all(|branch| matches!(branch.ends, Some(RuleEnding::ToTls(_))))
    }

    pub fn opens_anything(&self) -> bool {
        self.branches.iter().any(|branch| !matches!(branch.ends, Some(RuleEnding::Closed(_)) | None))
    }

    /// All that is decided: two kinds of listeners with the same are the same.
    pub fn decided_texts(&self) -> Vec<String> {
        let shown = |branch: &RuleBranch| {
            let RuleBranch { cell, fields, answers, host, rewrite, ends, .. } = branch;
            let RuleBranch { cache, is_kept, is_stored_by_nobody, .. } = branch;
            let stored = (cache, is_kept, is_stored_by_nobody);
            format!("{cell:?} {fields:?} {answers:?} {host:?} {rewrite:?} {stored:?} {ends:?} {:?}", self.answers)
        };
        self.branches.iter().map(shown).collect()
    }

    /// The section whose servers answer.
    pub fn backend_of(&self, branch: &RuleBranch) -> Option<String> {
        match &branch.ends {
            Some(RuleEnding::OwnServers(name)) => Some(name.clone()),
            _ => None,
        }
    }

    /// What the routes say of a branch. `origin`: the one that stands for its backend. `has_cache`: is there a part of the site that a cache of
    /// HAProxy's answers? Then the others are not stored. `asked`: fields that any route asks for.
    pub fn decided(
        &self,
        branch: &RuleBranch,
        origin: Option<String>,
        (has_cache, asked): (bool, &BTreeSet<String>),
        findings: &mut Findings,
    ) -> DecidedCell {
        let refused_with = if let Some(RuleEnding::Closed(status)) = branch.ends { status } else { 429 };
        let mut decided =
            DecidedCell { cell: branch.cell.clone(), lines: None, refused_with, line: branch.line.clone() };
        if asked.iter().any(|name| branch.fields.touches(name)) {
            findings.leave(&branch.line, "closed: a field is changed here by which routes are told apart");
            return decided;
        }
        let mut answers = branch.answers.clone();
        answers.then(&self.answers);
        let (of_answers, twice) = answers.line("response_headers");
        let (of_requests, also_twice) = branch.fields.line("request_headers");
        if !twice.is_empty() || !also_twice.is_empty() {
            findings.leave(&branch.line, "a route says a field once: of several lines of one the first is said");
        }
        let mut lines = match (&branch.ends, origin) {
            (Some(RuleEnding::Answered(lines)), _) => lines.clone(),
            (Some(RuleEnding::ToTls(status)), _) => vec![haproxy_redirects::to_tls(*status)],
            (Some(RuleEnding::OwnServers(_)), Some(origin)) => {
                let mut lines = vec![format!("origin = {}", quoted(&origin))];
                lines.extend(branch.rewrite.as_ref().map(|target| format!("rewrite = {}", quoted(target))));
                lines.extend(of_requests);
                if branch.is_stored_by_nobody || has_cache && !branch.is_kept {
                    lines.push("cache = false".to_owned());
                }
                lines
            }
            (Some(RuleEnding::Backend(_)), _) => {
                findings.leave(&branch.line, "closed: there is no such backend");
                return decided;
            }
            _ => return decided,
        };
        lines.extend(of_answers);
        decided.lines = Some(lines);
        decided
    }
}

/// What HAProxy says where there is no server.
const UNAVAILABLE: u16 = 503;

/// The last word of the two counts.
fn is_disabled(section: &HaproxySection) -> bool {
    let said = section.lines.iter().rev().find(|line| matches!(line.name.as_str(), "disabled" | "enabled"));
    said.is_some_and(|line| line.name == "disabled")
}

/// Where there are none HAProxy says 503.
fn own_servers(section: &HaproxySection) -> RuleEnding {
    let is_server = |name: &str| matches!(name, "server" | "server-template" | "dispatch" | "transparent");
    match section.lines.iter().any(|line| is_server(&line.name)) && !is_disabled(section) {
        true => RuleEnding::OwnServers(section.name.clone()),
        false => RuleEnding::Closed(UNAVAILABLE),
    }
}

/// What a rule says that users are asked for.
fn realm(section: &HaproxySection) -> Option<String> {
    let is_auth = |line: &&Directive| line.name == "http-request" && line.argument(0) == "auth";
    let line = section.lines.iter().find(is_auth)?;
    let said = line.arguments.iter().position(|word| word == "realm").map(|at| line.argument(at + 1))?;
    let is_plain = |c: &char| (' '..='~').contains(c) && !"\"\\".contains(*c);
    let said: String = said.chars().filter(is_plain).take(64).collect();
    (!said.is_empty()).then_some(said)
}
