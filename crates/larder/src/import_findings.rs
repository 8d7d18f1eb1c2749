//! What is said of the import of another server's configuration, and how the larder.toml that came of it is given away.
//! It knows no server.

use std::io::Write;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::import::ImportFlags;
use crate::nginx_conf::{Directive, Place};

/// What is said of the import: what is missing now, and what deserves a look.
#[derive(Debug, Default)]
pub struct Findings {
    left: Vec<Remark>,
    notes: Vec<Remark>,
}

#[derive(Debug)]
struct Remark {
    place: Place,
    what: String,
    why: &'static str,
}

impl Findings {
    /// Not carried over.
    pub fn leave(&mut self, directive: &Directive, why: &'static str) {
        self.left.push(Remark { place: directive.place.clone(), what: directive.text(), why });
    }

    #[cfg(test)]
    pub fn left_count(&self) -> usize {
        self.left.len()
    }

    pub fn note(&mut self, directive: &Directive, why: &'static str) {
        self.notes.push(Remark { place: directive.place.clone(), what: directive.text(), why });
    }
}

/// As a string of TOML.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", c as u32)),
            c => out.push(c),
        }
    }
    out + "\""
}

/// Gives away what was made, if larder takes it. The exit code is 0 only when nothing was left.
pub fn finish(flags: &ImportFlags, done: Result<(Findings, String), String>) -> ExitCode {
    let done = done.and_then(|(findings, text)| {
        if let Err(complaints) = crate::config::read(&text) {
            let said: Vec<&str> = complaints.iter().map(|complaint| complaint.what.as_str()).collect();
            return Err(format!("what came of it is no good config: {}", said.join("; ")));
        }
        write(flags, &findings, &text).map(|()| findings)
    });
    match done {
        Ok(findings) if findings.left.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "{}: error: {why}", flags.file.display());
            ExitCode::FAILURE
        }
    }
}

/// The text, and what is said of it. A closed pipe must not end this with a panic: the exit code still tells.
fn write(flags: &ImportFlags, findings: &Findings, text: &str) -> Result<(), String> {
    if let Some(output) = &flags.output {
        std::fs::write(output, text).map_err(|error| format!("{}: {error}", output.display()))?;
    }
    if flags.json {
        let row = |remark: &Remark| json!({ "file": remark.place.file.display().to_string(), "line": remark.place.line, "directive": remark.what, "why": remark.why });
        let rows = |all: &[Remark]| Value::Array(all.iter().map(row).collect());
        let mut all = json!({ "file": flags.file.display().to_string(), "ok": findings.left.is_empty(),
                              "left": rows(&findings.left), "notes": rows(&findings.notes) });
        if flags.output.is_none() {
            all["text"] = text.into();
        }
        let _ = writeln!(std::io::stdout(), "{all}");
        return Ok(());
    }
    if flags.output.is_none() {
        std::io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    }
    let mut out = std::io::stderr();
    for (label, all) in [("note", &findings.notes), ("not carried over", &findings.left)] {
        for Remark { place, what, why } in all {
            let _ = writeln!(out, "{}:{}: {label}: {what}: {why}", place.file.display(), place.line);
        }
    }
    let (left, notes) = (findings.left.len(), findings.notes.len());
    let _ = writeln!(out, "{}: {notes} notes, {left} directives not carried over", flags.file.display());
    Ok(())
}
