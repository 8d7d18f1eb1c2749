//! `larder import FILE`: a file for Varnish 1 to 3 in, VCL 4.1 out, and a list of what could not be carried over. Whose file it is
//! says `import_kind.rs`; nginx's goes to `import_nginx.rs`, HAProxy's to `import_haproxy.rs`, squid's to `import_squid.rs`,
//! Caddy's to `import_caddy.rs`, and Apache's to `import_apache.rs`.
//!
//! The translation is `vcl::old_vcl`. Here its result is checked, with what it includes translated on the way, so that
//! exit code 0 means a file that can be used.

mod apache_access;
mod apache_conf;
mod apache_fields;
mod apache_listens;
mod apache_paths;
mod apache_proxy;
mod apache_redirects;
mod apache_regions;
mod apache_scope;
mod apache_sections;
mod apache_words;
mod caddy_access;
mod caddy_answers;
mod caddy_condition;
mod caddy_fields;
mod caddy_file;
mod caddy_files;
mod caddy_leaves;
mod caddy_listens;
mod caddy_origin;
mod caddy_passage;
mod caddy_steps;
mod caddy_text;
mod caddy_walk;
mod caddy_words;
mod decided_routes;
mod exact_networks;
mod field_values;
mod haproxy_acls;
mod haproxy_backends;
mod haproxy_binds;
mod haproxy_conditions;
mod haproxy_conf;
mod haproxy_keywords;
mod haproxy_proxies;
mod haproxy_rates;
mod haproxy_redirects;
mod haproxy_rules;
mod haproxy_servers;
mod haproxy_texts;
mod haproxy_times;
mod haproxy_users;
mod harmless_words;
mod import_apache;
mod import_caddy;
mod import_findings;
mod import_flags;
mod import_haproxy;
mod import_kind;
mod import_nginx;
mod import_squid;
mod imported_fields;
mod imported_toml;
mod include_pattern;
mod nginx_access;
mod nginx_caching;
mod nginx_closed_line;
mod nginx_closed_paths;
mod nginx_conditions;
mod nginx_conf;
mod nginx_field_cases;
mod nginx_fields;
mod nginx_found;
mod nginx_found_server;
mod nginx_guards;
mod nginx_head_buffers;
mod nginx_level;
mod nginx_limits;
mod nginx_listens;
mod nginx_maps;
mod nginx_memcached;
mod nginx_order;
mod nginx_routes;
mod nginx_rulings;
mod nginx_scripts;
mod nginx_service;
mod nginx_shown_files;
mod nginx_substitute;
mod nginx_timeouts;
mod nginx_times;
mod nginx_tree;
mod nginx_types;
mod nginx_upstream;
mod path_tests;
mod request_cells;
mod shown_directive;
mod shown_rule;
mod shown_word;
mod squid_access;
mod squid_conf;
mod squid_peers;
mod squid_sites;
mod squid_words;
mod stable_sort;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use vcl::old_vcl::{Dialect, Translated, is_present_vcl, translate};
use vcl::{Checked, Code, Diagnostic, IncludeRequest, Included, Includes, Severity, Sources};

pub use import_flags::ImportFlags;
use import_kind::ImportKind;

use crate::check_vcl::{Disk, diagnostic_row, read_vcl};

pub fn import(flags: &ImportFlags) -> ExitCode {
    let said = flags.kind.or(flags.from.map(|_| ImportKind::Vcl));
    match said.map_or_else(|| ImportKind::of(&flags.file), Ok) {
        Ok(ImportKind::Nginx) => import_nginx::import(flags),
        Ok(ImportKind::Haproxy) => import_haproxy::import(flags),
        Ok(ImportKind::Apache) => import_apache::import(flags),
        Ok(ImportKind::Caddy) => import_caddy::import(flags),
        Ok(ImportKind::Squid) => import_squid::import(flags),
        Ok(ImportKind::Vcl) => import_vcl(flags),
        Err(why) => fail(flags, &why),
    }
}

fn fail(flags: &ImportFlags, why: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{}: error: {why}", flags.file.display());
    ExitCode::FAILURE
}

fn import_vcl(flags: &ImportFlags) -> ExitCode {
    let (import, written) = match run(flags) {
        Ok(done) => done,
        Err(why) => return fail(flags, &why),
    };
    // A closed pipe must not end this with a panic: the exit code still tells.
    if flags.json {
        let _ = writeln!(std::io::stdout(), "{}", import.row(flags));
    } else {
        import.show(&flags.file, std::io::stderr().is_terminal());
    }
    if import.is_good() && written { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A translation, and what `check` said of it.
struct Import {
    translated: Translated,
    /// The sources are those of the new text.
    checked: Option<Checked>,
    /// No backend is defined, or an included file is not there: what is unknown here may be defined elsewhere.
    is_part: bool,
}

fn run(flags: &ImportFlags) -> Result<(Import, bool), String> {
    let bytes = read_vcl(&flags.file)?;
    if flags.output.as_ref().is_some_and(|output| is_same(output, &flags.file)) {
        return Err("--output names the file that is read, and would replace it; name another".to_owned());
    }
    let dialect = flags.from.map(|version| if version < 3 { Dialect::Vcl2 } else { Dialect::Vcl3 });
    let import = Import::of(&flags.file, bytes, dialect, &flags.vcl_path);
    let written = match (&import.translated.text, &flags.output) {
        (None, _) => false,
        (Some(text), Some(output)) => {
            std::fs::write(output, text).map_err(|e| format!("{}: {e}", output.display()))?;
            true
        }
        (Some(_), None) if flags.json => true,
        (Some(text), None) => std::io::stdout().write_all(text).is_ok(),
    };
    Ok((import, written))
}

fn is_same(a: &Path, b: &Path) -> bool {
    matches!((std::fs::canonicalize(a), std::fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

impl Import {
    fn of(path: &Path, bytes: Vec<u8>, dialect: Option<Dialect>, vcl_path: &[PathBuf]) -> Import {
        let name = path.display().to_string();
        let translated = if is_present_vcl(&bytes) {
            let mut sources = Sources::default();
            sources.add(name.clone(), bytes.clone());
            Translated { sources, diagnostics: Vec::new(), text: Some(bytes) }
        } else {
            translate(Included { name: name.clone(), bytes }, dialect)
        };
        let whole = translated.text.as_ref().filter(|_| translated.is_whole());
        // What it includes is often beside it, until all of it is where it belongs.
        let beside = path.parent().filter(|_| vcl_path.is_empty()).map(Path::to_owned);
        let vcl_path: Vec<PathBuf> = vcl_path.iter().cloned().chain(beside).collect();
        let includes = TranslatedIncludes { disk: Disk { vcl_path: &vcl_path }, dialect };
        let checked = whole.map(|text| vcl::check(Included { name, bytes: text.clone() }, &includes));
        let mut found = checked.iter().flat_map(|checked| &checked.diagnostics);
        let is_part = found.any(|found| matches!(found.code, Code::NoBackend | Code::IncludeNotFound));
        Import { translated, checked, is_part }
    }

    /// What keeps the new text from being used, with the files that the places are in.
    fn errors(&self) -> impl Iterator<Item = (&Diagnostic, &Sources)> {
        self.all().filter(|(found, _)| found.severity() == Severity::Error && !self.is_for_the_whole(found))
    }

    /// What deserves a look. Of the check only what else belongs to the whole program.
    fn notes(&self) -> impl Iterator<Item = (&Diagnostic, &Sources)> {
        self.all().filter(|(found, _)| found.code == Code::CarriedOver || self.is_for_the_whole(found))
    }

    fn is_for_the_whole(&self, found: &Diagnostic) -> bool {
        self.is_part && matches!(found.code, Code::NoBackend | Code::IncludeNotFound | Code::UnknownName)
    }

    fn all(&self) -> impl Iterator<Item = (&Diagnostic, &Sources)> {
        let own = self.translated.diagnostics.iter().map(|found| (found, &self.translated.sources));
        let checked = self.checked.iter();
        own.chain(checked.flat_map(|checked| checked.diagnostics.iter().map(|found| (found, &checked.sources))))
    }

    fn is_good(&self) -> bool {
        self.translated.text.is_some() && self.errors().next().is_none()
    }

    fn show(&self, path: &Path, colour: bool) {
        let mut out = std::io::stderr();
        let (errors, notes) = (self.errors().count(), self.notes().count());
        for (found, sources) in self.notes().chain(self.errors()) {
            let _ = writeln!(out, "{}", vcl::draw(found, sources, colour));
        }
        let counted = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
        let verdict = match (&self.translated.text, errors, self.is_part) {
            (None, ..) => "cannot be read".to_owned(),
            (_, 0, false) => format!("carried over, with {}; the new file is good", counted(notes, "note")),
            (_, 0, true) => format!("carried over as a part of a program, with {}", counted(notes, "note")),
            (_, errors, _) if self.checked.is_some() => {
                format!(
                    "carried over, with {}; the new file has {}",
                    counted(notes, "note"),
                    counted(errors, "mistake")
                )
            }
            (_, errors, _) => {
                format!("{} not carried over, {}", counted(errors, "thing"), counted(notes, "note"))
            }
        };
        let _ = writeln!(out, "{}: {verdict}", path.display());
    }

    fn row(&self, flags: &ImportFlags) -> Value {
        let rows = |found: Vec<(&Diagnostic, &Sources)>| -> Vec<Value> {
            found.into_iter().map(|(found, sources)| diagnostic_row(found, sources)).collect()
        };
        let mut row = json!({
            "file": flags.file.display().to_string(),
            "ok": self.is_good(),
            "part": self.is_part,
            "left": rows(self.errors().collect()),
            "notes": rows(self.notes().collect()),
        });
        if let (Some(text), None) = (&self.translated.text, &flags.output) {
            row["text"] = String::from_utf8_lossy(text).into();
        }
        row
    }
}

/// Finds included files, and translates those that are old.
struct TranslatedIncludes<'a> {
    disk: Disk<'a>,
    dialect: Option<Dialect>,
}

impl Includes for TranslatedIncludes<'_> {
    fn find(&self, request: &IncludeRequest<'_>) -> Result<Vec<Included>, String> {
        let found = self.disk.find(request)?;
        let present = |file: Included| {
            if is_present_vcl(&file.bytes) {
                return file;
            }
            // Its own import says what cannot be carried over.
            let text = translate(file.clone(), self.dialect).text;
            Included { bytes: text.unwrap_or(file.bytes), ..file }
        };
        Ok(found.into_iter().map(present).collect())
    }
}
