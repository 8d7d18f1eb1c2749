//! What is said of the import of another server's configuration, and how the larder.toml that came of it is given away.
//! It knows no server.

use std::io::Write;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::import::import_flags::ImportFlags;
use crate::import::nginx_conf::{Directive, Place};
use crate::import::shown_directive;
use crate::import::shown_word;

/// What is said of the import: what is missing now, and what deserves a look.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    left: Vec<Remark>,
    notes: Vec<Remark>,
    /// The other server was reached by TLS, if only by that.
    speaks_tls: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Remark {
    place: Place,
    what: String,
    why: &'static str,
}

impl Findings {
    /// Not carried over.
    pub fn leave(&mut self, directive: &Directive, why: &'static str) {
        add(&mut self.left, directive, why);
    }

    /// It listened by TLS: where nobody listens yet, that is what is to be written.
    pub fn speak_tls(&mut self) {
        self.speaks_tls = true;
    }

    #[cfg(test)]
    pub fn left_count(&self) -> usize {
        self.left.len()
    }

    #[cfg(test)]
    pub fn notes_count(&self) -> usize {
        self.notes.len()
    }

    pub fn note(&mut self, directive: &Directive, why: &'static str) {
        add(&mut self.notes, directive, why);
    }
}

/// The same of the same place is said once.
fn add(remarks: &mut Vec<Remark>, directive: &Directive, why: &'static str) {
    let remark = Remark { place: directive.place.clone(), what: shown_directive::said(directive), why };
    if !remarks.contains(&remark) {
        remarks.push(remark);
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

/// A regex as a TOML string: backslashes are plain in one between single quotes.
pub fn literal(pattern: &str) -> String {
    match pattern.contains('\'') || pattern.chars().any(char::is_control) {
        true => quoted(pattern),
        false => format!("'{pattern}'"),
    }
}

const NO_LISTENER: &str = "nobody listens: none of its addresses is carried over, or it names none; larder takes the new file \
    when its [[listen]] has an address";

fn has_listener(text: &str) -> bool {
    text.lines().any(|line| line == "[[listen]]")
}

/// Without a `[[listen]]` larder serves at an address of its own, which the old file has not named. So there is one that waits for its
/// address, and until then the file is refused. It comes before all other sections. What was shown by TLS alone is not suggested in the clear.
fn with_unnamed_listener(text: &str, speaks_tls: bool) -> String {
    const WAITS: &str =
        "# Nobody listens yet: write here where larder is to serve what stands below, and take the sign off.\n";
    let address = match speaks_tls {
        true => "# address = \"*:443\"\n# tls = { cert = \"CERTIFICATE.pem\", key = \"KEY.pem\" }\n",
        false => "# address = \"*:80\"\n",
    };
    let unnamed = format!("[[listen]]\n{WAITS}{address}");
    match text.lines().find(|line| line.starts_with('[')).and_then(|first| text.find(&format!("\n{first}"))) {
        Some(at) => format!("{}\n{unnamed}{}", &text[..at], &text[at..]),
        None => format!("{text}\n{unnamed}"),
    }
}

/// What larder says of a value, without what may be a secret in it.
fn shown_complaint(what: &str) -> String {
    let pieces = what.split('`').enumerate();
    let shown = pieces.map(|(at, piece)| if at % 2 == 1 { shown_word::shown(piece) } else { piece.to_owned() });
    shown.collect::<Vec<_>>().join("`")
}

/// Gives away what was made, if larder takes it. The exit code is 0 only when nothing was left.
pub fn finish(flags: &ImportFlags, done: Result<(Findings, String), String>) -> ExitCode {
    let done = done.and_then(|(findings, text)| {
        if let Err(complaints) = crate::config::read(&text) {
            let said: Vec<String> = complaints.iter().map(|complaint| shown_complaint(&complaint.what)).collect();
            return Err(format!("what came of it is no good config: {}", said.join("; ")));
        }
        let (mut findings, mut text) = (findings, text);
        if !has_listener(&text) {
            let place = Place { file: flags.file.clone(), line: 1 };
            findings.left.push(Remark { place, what: "addresses".to_owned(), why: NO_LISTENER });
            text = with_unnamed_listener(&text, findings.speaks_tls);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_larder_does_not_take_is_said_without_its_secrets() {
        let check = |what: &str, expect: &str| assert_eq!(shown_complaint(what), expect);
        check("`/a?k=secret` is no URL", "`/a?k=…` is no URL");
        check("`https://ann:secret@a.test/` is no URL", "`https://…@a.test/` is no URL");
        check("300 is no error", "300 is no error");
    }

    #[test]
    fn a_file_without_a_listener_waits_for_one() {
        for text in ["# Made\n", "# Made\nworkers = 2\n\n[[route]]\npath = \"/\"\nclosed = true\n\n[limits]\n"] {
            assert!(!has_listener(text));
            let waits = with_unnamed_listener(text, false);
            let complaints = crate::config::read(&waits).expect_err(&waits);
            assert_eq!((complaints.len(), complaints[0].what.as_str()), (1, "`address` is missing"), "{waits}");
            let named = waits.replace("# address", "address");
            assert!(has_listener(&named) && crate::config::read(&named).is_ok(), "{named}");
            let by_tls = with_unnamed_listener(text, true);
            assert!(by_tls.contains("# address = \"*:443\"\n# tls = ") && !by_tls.contains(":80"), "{by_tls}");
        }
    }
}
