//! What is said of the import of another server's configuration, and how the larder.toml that came of it is given away.
//! It knows no server.

use std::io::Write;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::import::import_flags::ImportFlags;
use crate::import::nginx_conf::{Directive, Place};

/// What is said of the import: what is missing now, and what deserves a look.
#[derive(Debug, Default)]
pub struct Findings {
    left: Vec<Remark>,
    notes: Vec<Remark>,
}

#[derive(Debug, PartialEq, Eq)]
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

    #[cfg(test)]
    pub fn left_count(&self) -> usize {
        self.left.len()
    }

    pub fn note(&mut self, directive: &Directive, why: &'static str) {
        add(&mut self.notes, directive, why);
    }
}

/// The same of the same place is said once.
fn add(remarks: &mut Vec<Remark>, directive: &Directive, why: &'static str) {
    let remark = Remark { place: directive.place.clone(), what: shown(directive), why };
    if !remarks.contains(&remark) {
        remarks.push(remark);
    }
}

/// In the place of a secret.
const MARK: &str = "…";
/// Words that are a secret's name, with `=` and the secret behind them.
const SECRETS: [&str; 6] = ["login", "password", "passwd", "secret", "token", "key"];

/// A directive as it is written, with a mark in the place of passwords: what is said goes to terminals, logs and tickets.
fn shown(directive: &Directive) -> String {
    let mut shown = directive.clone();
    for word in &mut shown.arguments {
        let name = word.split_once('=').map(|(name, _)| name.to_owned());
        if let Some(name) = name.filter(|name| SECRETS.contains(&name.to_lowercase().as_str())) {
            *word = format!("{name}={MARK}");
        }
    }
    if let Some(at) = secret_from(directive).filter(|at| *at < shown.arguments.len()) {
        shown.arguments.splice(at.., [MARK.to_owned()]);
    }
    shown.text()
}

/// The first of its words that may be a secret, or an option with one.
fn secret_from(directive: &Directive) -> Option<usize> {
    let value = directive.argument(1);
    let is_variable = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let is_plain = directive.argument(0).eq_ignore_ascii_case("host")
        || value.is_empty()
        || value.strip_prefix('$').is_some_and(is_variable);
    match directive.name.as_str() {
        "cachemgr_passwd" | "secure_link_md5" | "secure_link_secret" | "if" => Some(0),
        "external_acl_type" | "request_header_add" | "request_header_replace" => Some(1),
        "auth_param" if value == "program" => Some(3),
        "header_up" | "request_header" => (!value.starts_with('{')).then_some(1).filter(|_| !is_plain),
        "acme_dns" | "dns" | "eab" | "acme_eab" => Some(1),
        "env" => Some(0),
        "lb_policy" if directive.argument(0) == "cookie" => Some(2),
        "set" | "proxy_set_header" | "grpc_set_header" | "fastcgi_param" | "uwsgi_param" | "scgi_param" => {
            (!is_plain).then_some(1)
        }
        name if name.ends_with("_program") => Some(1),
        _ => None,
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// What is said of a directive whose words are divided by single blanks.
    fn check(written: &str, expect: &str) {
        let mut words = written.split(' ').map(str::to_owned);
        let place = Place { file: PathBuf::from("f"), line: 1 };
        let name = words.next().unwrap_or_default();
        let directive = Directive { name, arguments: words.collect(), block: None, place };
        let mut findings = Findings::default();
        findings.leave(&directive, "");
        findings.note(&directive, "");
        let said: Vec<&str> = findings.left.iter().chain(&findings.notes).map(|remark| remark.what.as_str()).collect();
        assert_eq!(said, [expect, expect], "{written}");
    }

    /// What is said goes to terminals, logs and tickets.
    #[test]
    fn no_secret_is_said() {
        check(
            "cache_peer p.test parent 3128 0 login=ann:secret name=up",
            "cache_peer p.test parent 3128 0 login=… name=up",
        );
        check("auth_param basic program /usr/lib/ldap_auth -w secret", "auth_param basic program /usr/lib/ldap_auth …");
        check("auth_param basic realm our proxy", "auth_param basic realm our proxy");
        check("external_acl_type groups %LOGIN /usr/lib/groups -w secret", "external_acl_type groups …");
        check("url_rewrite_program /usr/lib/rewrite secret", "url_rewrite_program /usr/lib/rewrite …");
        check("cachemgr_passwd secret all", "cachemgr_passwd …");
        check("request_header_add Authorization secret all", "request_header_add Authorization …");
        check("wccp2_service standard 0 password=secret", "wccp2_service standard 0 password=…");
        for field in ["Authorization", "proxy-authorization", "Cookie", "X-Api-Key"] {
            check(&format!("proxy_set_header {field} secret"), &format!("proxy_set_header {field} …"));
        }
        check("fastcgi_param DB_PASSWORD secret", "fastcgi_param DB_PASSWORD …");
        check("set $api_key secret", "set $api_key …");
        check("header_up Authorization secret", "header_up Authorization …");
        check("request_header X-Api-Key secret", "request_header X-Api-Key …");
        check("env DB_PASSWORD secret", "env …");
        check("acme_dns cloudflare secret", "acme_dns cloudflare …");
        check("lb_policy cookie lb secret", "lb_policy cookie lb …");
        check("secure_link_md5 $uri$secure_link_expires secret", "secure_link_md5 …");
        check("if ($http_x_token != secret)", "if …");
    }

    #[test]
    fn what_is_no_secret_is_said() {
        for plain in [
            "http_access deny slow",
            "proxy_set_header Host app.test",
            "header_up X-Real-IP {remote_host}",
            "lb_policy cookie lb",
            "proxy_set_header X-Real-IP $remote_addr",
            "set $item $arg_key",
            "proxy_pass https://app",
            "location /private/",
            "cache_peer p.test sibling 3128 3130",
        ] {
            check(plain, plain);
        }
    }
}
