//! What a case of `larder vcl test` expects, and where a dry run differs from it.

use std::collections::BTreeMap;

use proxy::dry_runner::{Event, RanHead};
use proxy::policy_columns::Kept;
use serde::Deserialize;
use vcl::subroutines::Method;
use vcl::{Loaded, LogKind, Pattern as VclPattern};

use crate::quantities::parse_duration;
use crate::vcl_command::dry_running::meant;
use crate::vcl_command::explained::{Explained, show_seconds};

/// Everything is optional; what is not named is not looked at.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// hit, stale, miss, pass, pipe, synth … as the access log says it.
    outcome: Option<String>,
    status: Option<u16>,
    reason: Option<String>,
    verdicts: Option<Verdicts>,
    /// The backend that was asked last.
    backend: Option<String>,
    /// How often a backend was asked.
    fetches: Option<usize>,
    /// `req.url` at the end, and the URL that the backend was asked for.
    url: Option<Wanted>,
    bereq_url: Option<Wanted>,
    bereq_method: Option<Wanted>,
    req: BTreeMap<String, Wanted>,
    bereq: BTreeMap<String, Wanted>,
    beresp: BTreeMap<String, Wanted>,
    resp: BTreeMap<String, Wanted>,
    body: Option<Wanted>,
    ttl: Option<String>,
    grace: Option<String>,
    keep: Option<String>,
    /// What decided, such as `max-age` or `shop.vcl:31`.
    ttl_by: Option<String>,
    grace_by: Option<String>,
    keep_by: Option<String>,
    /// Whether the response went into the cache; and in more words.
    stored: Option<bool>,
    kept: Option<String>,
    /// What is hashed, in order.
    hash: Option<Vec<String>>,
    same_hash_as: Option<String>,
    other_hash_than: Option<String>,
    bans: Option<Vec<String>>,
    /// Texts of std.log, each of which must be among those that were logged.
    logs: Vec<String>,
    /// Whether anything that was stored was purged.
    purged: Option<bool>,
    restarts: Option<usize>,
    retries: Option<usize>,
    /// Lines whose statement ran, as `12` or `"shop.vcl:12"`.
    ran: Vec<LineNumber>,
    not_ran: Vec<LineNumber>,
}

/// Each in its order, or of some subroutines the last.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "all of them as [\"recv hash\", …], or some as { recv = \"hash\" }")]
enum Verdicts {
    All(Vec<String>),
    Some(BTreeMap<String, String>),
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a text, true, false, or { matches = \"REGEX\" }")]
enum Wanted {
    There(bool),
    Text(String),
    Pattern(Pattern),
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pattern {
    matches: String,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a number of a line, or \"FILE:LINE\"")]
enum LineNumber {
    Number(usize),
    Place(String),
}

/// What was found.
pub struct Found<'f> {
    pub explained: &'f Explained<'f>,
    pub loaded: &'f Loaded,
    pub others: Vec<Other>,
}

/// Another request, whose hash is to be the same or not.
pub struct Other {
    pub request: String,
    pub is_same: bool,
    pub hashed: Option<Vec<String>>,
}

const OUTCOMES: [&str; 11] =
    ["hit", "stale", "revalidated", "miss", "coalesced", "pass", "pipe", "purge", "synth", "error", "refused"];
const KEPT: [Kept; 4] = [Kept::Stored, Kept::HitForMiss, Kept::HitForPass, Kept::No];

type Failures = Vec<String>;

impl Expect {
    pub fn is_empty(&self) -> bool {
        *self == Expect::default()
    }

    /// Requests whose hash is looked at, and whether it is to be the same.
    pub fn others(&self) -> Vec<(&str, bool)> {
        let same = self.same_hash_as.as_deref().map(|request| (request, true));
        same.into_iter().chain(self.other_hash_than.as_deref().map(|request| (request, false))).collect()
    }

    /// One sentence for each difference. The error is a mistake in the case.
    pub fn failures(&self, found: &Found<'_>) -> Result<Failures, String> {
        let mut failures = Vec::new();
        self.answer(found, &mut failures)?;
        self.verdicts(found, &mut failures)?;
        self.asked(found, &mut failures)?;
        self.messages(found, &mut failures)?;
        self.life(found, &mut failures)?;
        self.hash(found, &mut failures);
        self.acts(found, &mut failures);
        self.statements(found, &mut failures)?;
        Ok(failures)
    }

    fn answer(&self, found: &Found<'_>, failures: &mut Failures) -> Result<(), String> {
        if let Some(wanted) = &self.outcome {
            if !OUTCOMES.contains(&wanted.as_str()) {
                return Err(format!("there is no outcome `{wanted}`{}", meant(wanted, &OUTCOMES)));
            }
            differ(failures, "outcome", wanted, &found.explained.outcome());
        }
        let got = found.explained.outcome.got.as_ref();
        let shown = |number: Option<u16>| number.map_or("none".to_owned(), |number| number.to_string());
        if self.status.is_some() {
            differ(failures, "status", &shown(self.status), &shown(got.map(|got| got.head.status)));
        }
        if let Some(wanted) = &self.reason {
            let got = got.map(|got| got.reason.as_str()).unwrap_or_default();
            differ(failures, "reason", &format!("{wanted:?}"), &format!("{got:?}"));
        }
        Ok(())
    }

    fn verdicts(&self, found: &Found<'_>, failures: &mut Failures) -> Result<(), String> {
        let full = |name: &str| if name.starts_with("vcl_") { name.to_owned() } else { format!("vcl_{name}") };
        let known = |name: &str| {
            let names: Vec<&str> = Method::all().map(Method::name).collect();
            let name = full(name);
            if names.contains(&name.as_str()) {
                Ok(name)
            } else {
                Err(format!("there is no subroutine `{name}`{}", meant(&name, &names)))
            }
        };
        let ran = || found.explained.outcome.ran.iter().filter(|ran| !ran.is_background);
        match &self.verdicts {
            None => {}
            Some(Verdicts::Some(some)) => {
                for (name, wanted) in some {
                    let name = known(name)?;
                    let got = ran().rfind(|ran| ran.method.name() == name);
                    let got = got.map_or("it did not run", |ran| ran.verdict.as_str());
                    if got != wanted && word(got) != wanted {
                        differ(failures, &name, wanted, &got);
                    }
                }
            }
            Some(Verdicts::All(all)) => {
                for line in all {
                    known(line.split_whitespace().next().unwrap_or_default())?;
                }
                let got: Vec<(&str, &str)> =
                    ran().map(|ran| (ran.method.name().trim_start_matches("vcl_"), ran.verdict.as_str())).collect();
                let is_it = |(wanted, (name, verdict)): (&String, &(&str, &str))| {
                    let (own, said) = wanted.split_once(char::is_whitespace).unwrap_or((wanted, ""));
                    own.trim_start_matches("vcl_") == *name && (said.trim() == *verdict || said.trim() == word(verdict))
                };
                if all.len() != got.len() || !all.iter().zip(&got).all(is_it) {
                    let got: Vec<String> = got.iter().map(|(name, verdict)| format!("{name} {verdict}")).collect();
                    differ(failures, "verdicts", &all.join(", "), &got.join(", "));
                }
            }
        }
        let runs = |name: &str| ran().filter(|ran| ran.method.name() == name).count();
        let restarts = ran().filter(|ran| ran.verdict == "restart").count();
        for (what, wanted, got) in [
            ("restarts", self.restarts, restarts),
            ("retries", self.retries, runs("vcl_backend_fetch").saturating_sub(fetches_begun(found))),
        ] {
            if let Some(wanted) = wanted {
                differ(failures, what, &wanted, &got);
            }
        }
        Ok(())
    }

    fn asked(&self, found: &Found<'_>, failures: &mut Failures) -> Result<(), String> {
        let sent = &found.explained.outcome.sent;
        if let Some(wanted) = &self.backend {
            let names: Vec<&str> = found.loaded.backends().iter().map(|backend| backend.name.as_str()).collect();
            let got = sent.last().map_or("none", |sent| sent.backend.as_str());
            if wanted != "none" && wanted != got && !names.contains(&wanted.as_str()) {
                return Err(format!("there is no backend `{wanted}`{}", meant(wanted, &names)));
            }
            differ(failures, "backend", wanted, &got);
        }
        if let Some(wanted) = self.fetches {
            differ(failures, "fetches", &wanted, &sent.len());
        }
        Ok(())
    }

    fn messages(&self, found: &Found<'_>, failures: &mut Failures) -> Result<(), String> {
        let outcome = found.explained.outcome;
        let is_client = |ran: &&proxy::dry_runner::Ran| !ran.method.name().starts_with("vcl_backend");
        let req = outcome.ran.iter().rfind(is_client).map(|ran| &ran.request);
        let bereq = outcome.sent.iter().rev().find_map(|sent| sent.request.as_ref());
        let beresp = outcome.ran.iter().rfind(|ran| !is_client(ran)).and_then(|ran| ran.response.as_ref());
        let resp = outcome.got.as_ref().map(|got| &got.head);
        let all: [(&str, &BTreeMap<String, Wanted>, Option<&RanHead>); 4] = [
            ("req", &self.req, req),
            ("bereq", &self.bereq, bereq),
            ("beresp", &self.beresp, beresp),
            ("resp", &self.resp, resp),
        ];
        for (message, wanted, head) in all {
            for (name, wanted) in wanted {
                wanted.compare(&format!("{message}.http.{name}"), head.and_then(|head| head.field(name)), failures)?;
            }
        }
        let body = outcome.got.as_ref().map(|got| String::from_utf8_lossy(&got.body).into_owned());
        for (what, wanted, got) in [
            ("req.url", &self.url, req.map(|head| head.url.as_str())),
            ("bereq.url", &self.bereq_url, bereq.map(|head| head.url.as_str())),
            ("bereq.method", &self.bereq_method, bereq.map(|head| head.method.as_str())),
            ("body", &self.body, body.as_deref().filter(|body| !body.is_empty())),
        ] {
            if let Some(wanted) = wanted {
                wanted.compare(what, got, failures)?;
            }
        }
        Ok(())
    }

    fn life(&self, found: &Found<'_>, failures: &mut Failures) -> Result<(), String> {
        let life = found.explained.life();
        let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
        let all = [
            ("ttl", &self.ttl, &self.ttl_by, life.map(|life| (life.ttl_ms, &life.ttl_by))),
            ("grace", &self.grace, &self.grace_by, life.map(|life| (signed(life.grace_ms), &life.grace_by))),
            ("keep", &self.keep, &self.keep_by, life.map(|life| (signed(life.keep_ms), &life.keep_by))),
        ];
        for (what, wanted, wanted_by, got) in all {
            if let Some(wanted) = wanted {
                let wanted = signed_ms(wanted).map_err(|why| format!("{what}: {why}"))?;
                match got {
                    Some((got, by)) if got != wanted => {
                        failures.push(format!(
                            "{what}: expected {}, got {} (by {by})",
                            show_seconds(wanted),
                            show_seconds(got)
                        ));
                    }
                    Some(_) => {}
                    None => {
                        failures.push(format!("{what}: expected {}, but nothing was fetched", show_seconds(wanted)))
                    }
                }
            }
            if let Some(wanted) = wanted_by {
                let got = got.map_or("nothing was fetched", |(_, by)| by);
                let is_it =
                    got.strip_suffix(wanted.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
                if !is_it {
                    differ(failures, &format!("{what}_by"), wanted, &got);
                }
            }
        }
        let kept = life.map_or(Kept::No, |life| life.kept);
        let by = life.and_then(|life| life.kept_by.as_ref()).map(|by| format!(" (by {by})")).unwrap_or_default();
        if let Some(wanted) = self.stored.filter(|wanted| *wanted != (kept == Kept::Stored)) {
            failures.push(format!("stored: expected {wanted}, got {}{by}", kept.token()));
        }
        if let Some(wanted) = &self.kept {
            let known = KEPT.map(Kept::token);
            if !known.contains(&wanted.as_str()) {
                return Err(format!("`kept` is no `{wanted}`{}", meant(wanted, &known)));
            }
            if wanted != kept.token() {
                failures.push(format!("kept: expected {wanted}, got {}{by}", kept.token()));
            }
        }
        Ok(())
    }

    fn hash(&self, found: &Found<'_>, failures: &mut Failures) {
        let got = found.explained.hashed();
        let shown =
            |hashed: &Option<Vec<String>>| hashed.as_ref().map_or("nothing".to_owned(), |parts| parts.join(", "));
        if let Some(wanted) = &self.hash {
            let wanted: Vec<String> = wanted.iter().map(|part| format!("{part:?}")).collect();
            differ(failures, "hash", &wanted.join(", "), &shown(&got));
        }
        for other in &found.others {
            let is_same = other.hashed == got;
            if is_same != other.is_same {
                let what = if other.is_same { "same_hash_as" } else { "other_hash_than" };
                let (own, its) = (shown(&got), shown(&other.hashed));
                failures.push(format!("{what} {:?}: its hash is {its}, this one's {own}", other.request));
            }
        }
    }

    fn acts(&self, found: &Found<'_>, failures: &mut Failures) {
        let events = || found.explained.outcome.ran.iter().flat_map(|ran| &ran.events);
        if let Some(wanted) = &self.bans {
            let ban = |event: &Event| match event {
                Event::Banned { expression, refused: None } => Some(expression.clone()),
                _ => None,
            };
            let got: Vec<String> = events().filter_map(ban).collect();
            differ(failures, "bans", &format!("{wanted:?}"), &format!("{got:?}"));
        }
        let logged = |event: &Event| match event {
            Event::Logged(LogKind::Program, text) => Some(text.clone()),
            _ => None,
        };
        let logged: Vec<String> = events().filter_map(logged).collect();
        for wanted in self.logs.iter().filter(|wanted| !logged.contains(wanted)) {
            failures.push(format!("logs: expected {wanted:?}, got {logged:?}"));
        }
        if let Some(wanted) = self.purged {
            let by_program = events().any(|event| matches!(event, Event::Purged { count: 1.., .. }));
            let by_verdict = found.explained.outcome.ran.iter().any(|ran| ran.method == Method::Purge);
            differ(failures, "purged", &wanted, &(by_program || by_verdict));
        }
    }

    fn statements(&self, found: &Found<'_>, failures: &mut Failures) -> Result<(), String> {
        for (lines, should) in [(&self.ran, true), (&self.not_ran, false)] {
            for line in lines {
                let (file, number) = line.place()?;
                if found.explained.ran(file, number) != should {
                    let place = file.map_or(format!("line {number}"), |file| format!("{file}:{number}"));
                    failures.push(match should {
                        true => format!("ran: {place} did not run"),
                        false => format!("not_ran: {place} ran"),
                    });
                }
            }
        }
        Ok(())
    }
}

/// A verdict without its arguments.
fn word(verdict: &str) -> &str {
    verdict.split('(').next().unwrap_or(verdict)
}

/// Fetches of the client's, each of which may try again.
fn fetches_begun(found: &Found<'_>) -> usize {
    let ran = found.explained.outcome.ran.iter().filter(|ran| !ran.is_background);
    // vcl_miss and vcl_pass say fetch once for each; vcl_hit of old may ask for one, too.
    ran.filter(|ran| match ran.method {
        Method::Miss | Method::Pass => ran.verdict == "fetch",
        Method::Hit => ran.verdict == "miss",
        _ => false,
    })
    .count()
}

/// `90s`, `1h`, `-1s`.
fn signed_ms(text: &str) -> Result<i64, String> {
    let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    Ok(sign * parse_duration(rest)?.as_millis() as i64)
}

fn differ<T, U>(failures: &mut Failures, what: &str, wanted: &T, got: &U)
where
    T: PartialEq<U> + std::fmt::Display,
    U: std::fmt::Display,
{
    if wanted != got {
        failures.push(format!("{what}: expected {wanted}, got {got}"));
    }
}

impl Wanted {
    fn compare(&self, what: &str, got: Option<&str>, failures: &mut Failures) -> Result<(), String> {
        let shown = got.map_or("nothing".to_owned(), |got| format!("{got:?}"));
        match self {
            Wanted::There(true) if got.is_none() => failures.push(format!("{what}: expected any, got nothing")),
            Wanted::There(false) if got.is_some() => failures.push(format!("{what}: expected none, got {shown}")),
            Wanted::Text(wanted) if got != Some(wanted) => {
                failures.push(format!("{what}: expected {wanted:?}, got {shown}"));
            }
            Wanted::Pattern(Pattern { matches }) => {
                let wrong = |why: &dyn std::fmt::Display| format!("{what}: {why}");
                let pattern = VclPattern::checked(matches.as_bytes()).map_err(|why| wrong(&why))?;
                let found = got.map_or(Ok(false), |got| pattern.is_match(got.as_bytes()));
                if !found.map_err(|why| wrong(&why))? {
                    failures.push(format!("{what}: expected a match of {matches:?}, got {shown}"));
                }
            }
            Wanted::There(_) | Wanted::Text(_) => {}
        }
        Ok(())
    }
}

impl LineNumber {
    fn place(&self) -> Result<(Option<&str>, usize), String> {
        match self {
            LineNumber::Number(number) => Ok((None, *number)),
            LineNumber::Place(text) => {
                let parts = text.rsplit_once(':').and_then(|(file, line)| Some((Some(file), line.parse().ok()?)));
                parts.ok_or_else(|| format!("`{text}` is no place such as \"shop.vcl:12\""))
            }
        }
    }
}
