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
/// A name with one of these in it (`db_password`, `AuthToken`) is a secret's, wherever it stands.
const SECRET_PARTS: [&str; 9] =
    ["password", "passwd", "passphrase", "secret", "token", "apikey", "api_key", "api-key", "credential"];
/// But for these.
const NO_SECRETS: [&str; 1] = ["server_tokens"];
/// How hashes of passwords begin.
const HASHES: [&str; 9] = ["$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$apr1$", "$argon2", "{SHA"];

/// A directive as it is written, with a mark in the place of passwords: what is said goes to terminals, logs and tickets.
fn shown(directive: &Directive) -> String {
    let mut shown = directive.clone();
    shown.name = shown_name(&directive.name);
    for word in &mut shown.arguments {
        *word = shown_word(word);
    }
    let from = match is_secret_name(&directive.name) {
        true => Some(0),
        false => directive.arguments.iter().position(|word| is_secret_name(word)).map(|at| at + 1),
    };
    if let Some(at) = from.into_iter().chain(secret_from(directive)).min().filter(|at| *at < shown.arguments.len()) {
        shown.arguments.splice(at.., [MARK.to_owned()]);
    }
    shown.text()
}

/// Is it what a secret is called, and no path or variable of such a name?
fn is_secret_name(word: &str) -> bool {
    let word = word.trim_end_matches([':', '=']).to_lowercase();
    word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
        && SECRET_PARTS.iter().any(|part| word.contains(part))
        && !NO_SECRETS.contains(&word.as_str())
}

/// Without the value of a secret's name, a hash of a password, or what stands before the host of a URL.
fn shown_word(word: &str) -> String {
    let is_one = |name: &str| SECRETS.contains(&name.to_lowercase().as_str()) || is_secret_name(name);
    if let Some((name, _)) = word.split_once('=').filter(|(name, _)| is_one(name)) {
        return format!("{name}={MARK}");
    }
    if let Some(at) = HASHES.iter().filter_map(|hash| word.find(hash)).min() {
        return format!("{}{MARK}", &word[..at]);
    }
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((_, behind)) = rest.split('/').next().and_then(|authority| authority.rsplit_once('@'))
    {
        let path = rest.find('/').map_or("", |at| &rest[at..]);
        return format!("{scheme}://{MARK}@{behind}{path}");
    }
    word.to_owned()
}

/// A line that is no directive may be one of a users' file: what stands behind its colon is no port, then.
fn shown_name(name: &str) -> String {
    let shown = shown_word(name);
    let may_be_user = |(user, rest): &(&str, &str)| {
        let is_port = rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'*');
        !is_port && !user.contains(['{', '[', '@', '/']) && !rest.starts_with(['/', ':'])
    };
    match name.split_once(':').filter(may_be_user) {
        Some((user, _)) if shown == name => format!("{user}:{MARK}"),
        _ => shown,
    }
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
        name => secret_of_apache(&name.to_ascii_lowercase(), directive),
    }
}

/// The same of Apache's words, whose names are written in any letters.
fn secret_of_apache(name: &str, directive: &Directive) -> Option<usize> {
    let is_always = directive.argument(0).eq_ignore_ascii_case("always");
    match name {
        "setenv" | "define" => Some(1),
        "setenvif" | "setenvifnocase" => Some(1),
        "header" | "requestheader" => Some(if is_always { 3 } else { 2 }),
        name if ["password", "passphrase", "secret", "php_value", "php_admin_value"]
            .iter()
            .any(|word| name.contains(word)) =>
        {
            Some(0)
        }
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

const NO_LISTENER: &str = "nobody listens: none of its addresses is carried over, or it names none; larder takes the new file \
    when its [[listen]] has an address";

fn has_listener(text: &str) -> bool {
    text.lines().any(|line| line == "[[listen]]")
}

/// Without a `[[listen]]` larder serves at an address of its own, which the old file has not named. So there is one that waits for its
/// address, and until then the file is refused. It comes before all other sections.
fn with_unnamed_listener(text: &str) -> String {
    const UNNAMED: &str = "[[listen]]\n# Nobody listens yet: write here where larder is to serve what stands below, and take the sign off.\n\
        # address = \"*:80\"\n";
    match text.lines().find(|line| line.starts_with('[')).and_then(|first| text.find(&format!("\n{first}"))) {
        Some(at) => format!("{}\n{UNNAMED}{}", &text[..at], &text[at..]),
        None => format!("{text}\n{UNNAMED}"),
    }
}

/// Gives away what was made, if larder takes it. The exit code is 0 only when nothing was left.
pub fn finish(flags: &ImportFlags, done: Result<(Findings, String), String>) -> ExitCode {
    let done = done.and_then(|(findings, text)| {
        if let Err(complaints) = crate::config::read(&text) {
            let said: Vec<&str> = complaints.iter().map(|complaint| complaint.what.as_str()).collect();
            return Err(format!("what came of it is no good config: {}", said.join("; ")));
        }
        let (mut findings, mut text) = (findings, text);
        if !has_listener(&text) {
            let place = Place { file: flags.file.clone(), line: 1 };
            findings.left.push(Remark { place, what: "addresses".to_owned(), why: NO_LISTENER });
            text = with_unnamed_listener(&text);
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
        check("SetEnv DB_PASSWORD secret", "SetEnv DB_PASSWORD …");
        check("RequestHeader set Authorization secret", "RequestHeader set Authorization …");
        check("Header always set X-Key secret", "Header always set X-Key …");
        check("SetEnvIf X-Token ^secret$ let_in", "SetEnvIf X-Token …");
        check("AuthLDAPBindPassword secret", "AuthLDAPBindPassword …");
    }

    #[test]
    fn no_word_that_looks_like_a_secret_is_said() {
        check("basic_auth_user ann $2a$14$abc more", "basic_auth_user ann … more");
        check("ann $2y$10$abcdef", "ann …");
        check("AuthToken secret", "AuthToken …");
        check("auth_token secret", "auth_token …");
        check("x-api-token: secret", "x-api-token: …");
        check("proxy_pass http://ann:secret@app.test/path", "proxy_pass http://…@app.test/path");
        check("requirepass_options db.password=secret b", "requirepass_options db.password=… b");
        check("option password secret more", "option password …");
        check("listen_user ann:{SHA}abc", "listen_user ann:…");
        // A line of a users' file begins with it.
        check("ann:$2a$14$abc", "ann:…");
        check("ann:hunter2 more", "ann:… more");
        check("https://ann:hunter2@a.test more", "https://…@a.test more");
    }

    #[test]
    fn a_file_without_a_listener_waits_for_one() {
        for text in ["# Made\n", "# Made\nworkers = 2\n\n[[route]]\npath = \"/\"\nclosed = true\n\n[limits]\n"] {
            assert!(!has_listener(text));
            let waits = with_unnamed_listener(text);
            let complaints = crate::config::read(&waits).expect_err(&waits);
            assert_eq!((complaints.len(), complaints[0].what.as_str()), (1, "`address` is missing"), "{waits}");
            let named = waits.replace("# address", "address");
            assert!(has_listener(&named) && crate::config::read(&named).is_ok(), "{named}");
        }
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
            "location /forgotten-password",
            "server_tokens off",
            "hash $cookie_token consistent",
            "proxy_pass http://app.test/a@b",
            "cache_peer p.test sibling 3128 3130",
            "a.test:8080",
            ":80",
            "[::1]:80",
            "https://a.test:8443",
        ] {
            check(plain, plain);
        }
    }
}
