//! What is said of one request that was asked in a dry run: for people, and as JSON.

use std::fmt::Write as _;

use proxy::dry_runner::{DryRunOutcome, Event};
use proxy::policy_columns::Life;
use serde_json::{Value, json};

use crate::quantities::counted;
use crate::vcl_command::dry_run_trace::{TraceLine, trace};

/// A dry run that is over, with the lines that ran.
pub struct Explained<'p> {
    pub outcome: &'p DryRunOutcome,
    traces: Vec<Vec<TraceLine>>,
    /// What was wished for and could not be.
    note: Option<String>,
}

/// How it is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    pub colour: bool,
    /// Also conditions of builtin.vcl that did not hold, and statements that changed nothing.
    pub all: bool,
}

impl<'p> Explained<'p> {
    pub fn of(outcome: &'p DryRunOutcome, note: Option<String>) -> Explained<'p> {
        Explained { outcome, traces: outcome.ran.iter().map(trace).collect(), note }
    }

    pub fn show(&self, style: Style) -> String {
        let mut out = String::new();
        let (bold, plain) = if style.colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        if let Some(note) = &self.note {
            let _ = writeln!(out, "note: {note}");
        }
        for (ran, lines) in self.outcome.ran.iter().zip(&self.traces) {
            let aside = if ran.is_background { "  (in the background)" } else { "" };
            let _ = writeln!(out, "{bold}{}{plain}{aside}", ran.method.name());
            show_lines(&mut out, lines, style);
            let _ = writeln!(out, "  {bold}return ({}){plain}", ran.verdict);
        }
        if self.outcome.ran.is_empty() {
            out.push_str("no subroutine ran: the request was refused before the program\n");
        }
        let _ = writeln!(out);
        self.summary(&mut out);
        out
    }

    /// What came of it.
    fn summary(&self, out: &mut String) {
        for sent in &self.outcome.sent {
            match &sent.request {
                Some(request) => {
                    let host = request.field("host").map(|host| format!(" Host: {host}")).unwrap_or_default();
                    let _ = writeln!(out, "asked    {}: {} {}{host}", sent.backend, request.method, request.url);
                }
                None => {
                    let _ = writeln!(out, "asked    {}: no connection", sent.backend);
                }
            }
        }
        if let Some(key) = self.hashed() {
            let _ = writeln!(out, "hash     {}", key.join(", "));
        }
        for settled in &self.outcome.settled {
            life_lines(out, &settled.life, settled.is_background);
        }
        match (&self.outcome.got, &self.outcome.closed) {
            (Some(got), closed) => {
                let _ = writeln!(out, "answer   {}: {} {}", self.outcome(), got.head.status, got.reason);
                if let Some(why) = closed.map(|closed| closed.why).filter(|why| !why.is_empty()) {
                    let _ = writeln!(out, "because  {why}");
                }
                for (name, value) in &got.head.fields {
                    let _ = writeln!(out, "         {name}: {value}");
                }
                let _ = writeln!(out, "         ({})", counted(got.body.len() as u64, "byte of body"));
            }
            (None, _) => {
                let _ = writeln!(out, "answer   {}: the connection was closed without one", self.outcome());
            }
        }
    }

    /// As the access log says it.
    pub fn outcome(&self) -> &'static str {
        self.outcome.closed.as_ref().map_or("refused", |closed| closed.verdict.token())
    }

    /// What was hashed last, in order; texts in quotes.
    pub fn hashed(&self) -> Option<Vec<String>> {
        let ran = self.outcome.ran.iter().rfind(|ran| ran.method.name() == "vcl_hash")?;
        let part = |event: &Event| match event {
            Event::Hashed(part) => Some(part.as_ref().map_or("(absent)".to_owned(), |part| format!("{part:?}"))),
            _ => None,
        };
        Some(ran.events.iter().filter_map(part).collect())
    }

    /// How long what the client waited for lives; of several fetches the last.
    pub fn life(&self) -> Option<&Life> {
        let settled = self.outcome.settled.iter();
        settled.clone().rfind(|settled| !settled.is_background).or(settled.last()).map(|settled| &settled.life)
    }

    /// Whether a statement of this line ran. The file may be named without its folder; without a name it is not the
    /// built-in one.
    pub fn ran(&self, file: Option<&str>, line_number: usize) -> bool {
        let is_file = |line: &TraceLine| match file {
            None => !line.is_builtin,
            Some(file) => line.file.strip_suffix(file).is_some_and(|rest| rest.is_empty() || rest.ends_with('/')),
        };
        self.traces.iter().flatten().any(|line| line.line == line_number && is_file(line))
    }

    pub fn row(&self) -> Value {
        let subroutines = self.outcome.ran.iter().zip(&self.traces).map(|(ran, lines)| {
            let lines = lines.iter().map(|line| {
                json!({
                    "file": line.file, "line": line.line, "text": line.text, "held": line.held,
                    "effects": line.effects, "builtin": line.is_builtin,
                })
            });
            json!({
                "subroutine": ran.method.name(), "verdict": ran.verdict, "background": ran.is_background,
                "statements": lines.collect::<Vec<_>>(),
            })
        });
        let sent = self.outcome.sent.iter().map(|sent| {
            let request = sent.request.as_ref();
            json!({
                "backend": sent.backend, "method": request.map(|head| &head.method), "url": request.map(|head| &head.url),
                "fields": request.map(|head| &head.fields),
            })
        });
        let got = self.outcome.got.as_ref().map(|got| {
            json!({
                "status": got.head.status, "reason": got.reason, "fields": got.head.fields,
                "body": String::from_utf8_lossy(&got.body),
            })
        });
        let lives = self.outcome.settled.iter().map(|settled| life_row(&settled.life, settled.is_background));
        json!({
            "subroutines": subroutines.collect::<Vec<_>>(),
            "asked": sent.collect::<Vec<_>>(),
            "hash": self.hashed(),
            "lives": lives.collect::<Vec<_>>(),
            "outcome": self.outcome(),
            "why": self.outcome.closed.as_ref().map(|closed| closed.why).filter(|why| !why.is_empty()),
            "answer": got,
            "note": self.note,
        })
    }
}

fn show_lines(out: &mut String, lines: &[TraceLine], style: Style) {
    let (dim, green, plain) = if style.colour { ("\x1b[2m", "\x1b[32m", "\x1b[0m") } else { ("", "", "") };
    let last = lines.len().saturating_sub(1);
    for (number, line) in lines.iter().enumerate() {
        let is_silent = line.effects.is_empty() && line.held != Some(true);
        if line.is_builtin && !style.all && is_silent && number != last {
            continue;
        }
        let held = match line.held {
            Some(true) => format!("  {green}yes{plain}"),
            Some(false) => format!("  {dim}no{plain}"),
            None => String::new(),
        };
        let indent = "  ".repeat(line.depth + 1);
        let _ = writeln!(out, "{indent}{dim}{}:{}{plain}  {}{held}", line.file, line.line, line.text);
        for effect in &line.effects {
            let _ = writeln!(out, "{indent}    {effect}");
        }
    }
}

/// Without a fraction when there is none.
pub fn show_seconds(ms: i64) -> String {
    let text = format!("{:.3}", ms as f64 / 1_000.0);
    format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
}

fn life_lines(out: &mut String, life: &Life, is_background: bool) {
    let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    let aside = if is_background { "  (of the refresh)" } else { "" };
    let _ = writeln!(out, "ttl      {}  by {}{aside}", show_seconds(life.ttl_ms), life.ttl_by);
    let _ = writeln!(out, "grace    {}  by {}", show_seconds(signed(life.grace_ms)), life.grace_by);
    let _ = writeln!(out, "keep     {}  by {}", show_seconds(signed(life.keep_ms)), life.keep_by);
    let by = life.kept_by.as_ref().map(|by| format!("  by {by}")).unwrap_or_default();
    let _ = writeln!(out, "cache    {}{by}", life.kept.token());
}

fn life_row(life: &Life, is_background: bool) -> Value {
    json!({
        "ttl_ms": life.ttl_ms, "ttl_by": life.ttl_by, "grace_ms": life.grace_ms, "grace_by": life.grace_by,
        "keep_ms": life.keep_ms, "keep_by": life.keep_by, "kept": life.kept.token(), "kept_by": life.kept_by,
        "background": is_background,
    })
}
