//! The rules of the house as a test: what ARCHITECTURE.md promises, what a file must look like, and which words
//! may not be committed. It looks at every file that is, or by `git add .` would be, part of the repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::allowances::Allowances;
use crate::findings::Findings;
use crate::module_map::ModuleMap;
use crate::mutants::survivors;
use crate::page_names::Pages;
use crate::project::Project;
use crate::{circles, glossary, homonyms, imports, licences, source, walls};

const LINES_MAX: usize = 700;
const LINES_SUSPECT: usize = 500;

/// These names say where a file stands, not what is in it; every other name is given once.
const NAMES_SHARED: [&str; 5] = ["lib.rs", "main.rs", "limits.rs", "tests.rs", "build.rs"];

/// Parts of a file name that say nothing about what is in it.
const NAMES_EMPTY: [&str; 8] = ["util", "utils", "helper", "helpers", "manager", "context", "common", "misc"];

/// Reminders and leftovers. Written in two halves, or this file would be the first to break the rule.
const CODE_FORBIDDEN: [&str; 3] = [concat!("to", "do!"), concat!("unimpl", "emented!"), concat!("db", "g!")];
const TEXT_FORBIDDEN: [&str; 4] = [concat!("FIX", "ME"), concat!("X", "XX"), concat!("TO", "DO"), concat!("HA", "CK")];

/// What git writes around two versions of a piece of text. In halves, too.
const MERGE_MARKS: [&str; 2] = [concat!("<<<<", "<<< "), concat!(">>>>", ">>> ")];

/// Paths of somebody's machine, which mean nothing anywhere else.
const PATHS_FORBIDDEN: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/fa", "rm/"), concat!("/ho", "me/")];

pub fn task(project: &Project) -> Result<(), String> {
    let findings = look(project)?;
    for warning in &findings.warnings {
        println!("warning: {warning}");
    }
    for complaint in &findings.complaints {
        println!("{complaint}");
    }
    match findings.complaints.len() {
        0 => Ok(()),
        count => Err(format!("tidy: {count} to mend")),
    }
}

pub fn look(project: &Project) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let architecture = project.read("ARCHITECTURE.md")?;
    findings.complaints.extend(imports::complaints(&architecture, &project.metadata));
    findings
        .complaints
        .extend(licences::complaints(&project.read("deny.toml")?, &project.tree(licences::TREE_FORMAT)?));
    let (crates, allowances) = (ModuleMap::of_crates(project)?, Allowances::read(project)?);
    circles::look(&crates, &allowances, &mut findings);
    findings.complaints.extend(homonyms::complaints(&crates, &allowances));
    findings.complaints.extend(glossary::complaints(&project.read(glossary::FILE)?, &crates));
    findings.complaints.extend(walls::complaints(&architecture, &crates));
    let unsafe_files = unsafe_files(&architecture);
    let files = project.files()?;
    names(&files, &mut findings);
    for path in &files {
        let Ok(text) = project.read(path) else { continue }; // not text
        words(path, &text, &mut findings);
        match path.extension().and_then(|e| e.to_str()) {
            Some("rs") => rust(path, &text, unsafe_files.contains(path), &mut findings),
            Some("vtc") => behaviour(path, &text, &mut findings),
            _ => {}
        }
    }
    let is_page = |path: &&PathBuf| path.extension().is_some_and(|e| e == "md");
    let page = |path: &PathBuf| Some((path.clone(), project.read(path).ok()?));
    let pages: Vec<(PathBuf, String)> = files.iter().filter(is_page).filter_map(page).collect();
    let all = Pages::new(&files, &pages);
    for (path, text) in &pages {
        all.complaints(path, text).into_iter().for_each(|complaint| findings.complain(path, complaint));
    }
    findings.complaints.extend(survivors::stale(project)?);
    for path in unsafe_files.iter().filter(|path| !files.contains(path)) {
        findings
            .complain(Path::new("ARCHITECTURE.md"), format!("lists {} for unsafe, which is no file", path.display()));
    }
    Ok(findings)
}

/// The files named in back quotes under the heading that has the word.
fn unsafe_files(architecture: &str) -> Vec<PathBuf> {
    let heading = |line: &&str| line.starts_with('#');
    let section = architecture.lines().skip_while(|line| !(heading(line) && line.contains("unsafe"))).skip(1);
    let bullets = section.take_while(|line| !heading(line)).filter(|line| line.trim_start().starts_with("* `"));
    bullets.filter_map(|line| line.split('`').nth(1)).map(PathBuf::from).collect()
}

/// Typing a file's name must open one file.
fn names(files: &[PathBuf], findings: &mut Findings) {
    let mut seen: BTreeMap<&str, &Path> = BTreeMap::new();
    let rust = files.iter().filter(|path| path.extension().is_some_and(|e| e == "rs") && !path.starts_with("fuzz"));
    for path in rust {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if name == "mod.rs" {
            findings.complain(path, "is a mod.rs: name the file after its module");
        }
        let stem = name.trim_end_matches(".rs");
        if let Some(empty) = stem.split('_').find(|part| NAMES_EMPTY.contains(part)) {
            findings.complain(path, format!("'{empty}' says nothing about what is in it"));
        }
        if NAMES_SHARED.contains(&name) {
            continue;
        }
        if let Some(other) = seen.insert(name, path) {
            findings.complain(path, format!("has the name of {}", other.display()));
        }
    }
}

/// Words that no committed file may hold.
fn words(path: &Path, text: &str, findings: &mut Findings) {
    if path.file_name().is_some_and(|name| name == "LICENSE" || name == "Cargo.lock") {
        return;
    }
    for word in TEXT_FORBIDDEN {
        for line in source::lines_with_word(text, word) {
            findings.complain(path, format!("{line}: '{word}' is a reminder; do it or say why not"));
        }
    }
    for (index, line) in text.lines().enumerate() {
        if MERGE_MARKS.iter().any(|mark| line.starts_with(mark)) {
            findings.complain(path, format!("{}: a mark that a merge has left", index + 1));
        }
    }
    for forbidden in PATHS_FORBIDDEN {
        for (index, line) in text.lines().enumerate() {
            let at_path_start = |at: usize| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || ".}-_/".contains(c))
            };
            if line.match_indices(forbidden).any(|(at, _)| at_path_start(at)) {
                findings.complain(path, format!("{}: '{forbidden}' is a path of one machine", index + 1));
            }
        }
    }
}

fn rust(path: &Path, text: &str, may_be_unsafe: bool, findings: &mut Findings) {
    let code = source::code_of(text);
    for word in CODE_FORBIDDEN {
        for line in source::lines_with_word(&code, word) {
            findings.complain(path, format!("{line}: {word}"));
        }
    }
    if !may_be_unsafe {
        for line in source::lines_with_word(&code, "unsafe") {
            findings.complain(path, format!("{line}: unsafe, and not on the list in ARCHITECTURE.md"));
        }
    }
    if !text.starts_with("//!") {
        findings.complain(path, "does not open with '//!': what it is, where it stands, what it does not know");
    }
    match text.lines().count() {
        lines if lines > LINES_MAX => findings.complain(path, format!("{lines} lines; {LINES_MAX} at most")),
        lines if lines > LINES_SUSPECT => {
            findings.warnings.push(format!("{}: {lines} lines; is it two things?", path.display()));
        }
        _ => {}
    }
}

/// A behaviour file says in a sentence what must hold, then which clause or edge it guards; and it never waits
/// for time to pass.
fn behaviour(path: &Path, text: &str, findings: &mut Findings) {
    let mut lines = text.lines();
    if !lines.next().is_some_and(|line| line.starts_with("varnishtest \"") && line.ends_with('"')) {
        findings.complain(path, "line 1 must be: varnishtest \"a sentence\"");
    }
    shells(path, text, findings);
    let guarded = lines.next().and_then(|line| line.strip_prefix("# guards: "));
    if guarded.is_none_or(|what| what.len() <= 5) {
        findings.complain(path, "line 2 must be: # guards: RFC clause, or edge");
    }
    for (index, line) in lines.enumerate() {
        let words = || line.split_whitespace();
        if words().next() == Some("delay") || words().any(|word| word == "sleep") {
            findings.complain(path, format!("{}: waits for time to pass; use a barrier", index + 3));
        }
    }
}

/// Of a shell's commands only the last one's result counts, unless it is told to stop at the first that fails: a check
/// before the last cannot fail.
fn shells(path: &Path, text: &str, findings: &mut Findings) {
    let mut block: Option<(usize, Vec<&str>)> = None;
    for (index, line) in text.lines().enumerate() {
        match &mut block {
            None if line.trim_end() == "shell {" => block = Some((index + 1, Vec::new())),
            None => {}
            Some((began, lines)) if line == "}" => {
                let stops = lines.iter().any(|line| line.starts_with("set -e"));
                let checks = lines[..lines.len().saturating_sub(1)].iter().any(|line| is_check(line));
                if checks && !stops {
                    findings.complain(path, format!("{began}: a check before the last cannot fail: begin with set -e"));
                }
                block = None;
            }
            Some((_, lines)) => lines.extend(Some(line.trim()).filter(|line| !line.is_empty())),
        }
    }
}

/// A command that only says yes or no, and whose answer nothing in its line hears.
fn is_check(line: &str) -> bool {
    let command = line.trim_start_matches("! ").split(' ').next().unwrap_or_default();
    matches!(command, "grep" | "test" | "[" | "diff" | "cmp") && !line.contains("||") && !line.contains("&&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(look: impl Fn(&mut Findings), expect: &[&str]) {
        let mut findings = Findings::default();
        look(&mut findings);
        assert_eq!(findings.complaints.len(), expect.len(), "{:?}", findings.complaints);
        for (complaint, part) in findings.complaints.iter().zip(expect) {
            assert!(complaint.contains(part), "{complaint:?} says nothing of {part:?}");
        }
    }

    #[test]
    fn rust_files_obey_the_house() {
        let path = Path::new("crates/a/src/b.rs");
        check(|f| rust(path, "//! B.\nfn f() {}\n", false, f), &[]);
        check(|f| rust(path, "fn f() {}\n", false, f), &["does not open"]);
        check(|f| rust(path, "//! B.\n// unsafe\nfn f() { unsafe { g() } }\n", false, f), &["3: unsafe"]);
        check(|f| rust(path, "//! B.\nfn f() { unsafe { g() } }\n", true, f), &[]);
        check(|f| rust(path, &format!("//! B.\nfn f() {{ {}(1); }}\n", CODE_FORBIDDEN[2]), false, f), &["dbg"]);
        check(|f| rust(path, &format!("//! B.\n{}", "//\n".repeat(LINES_MAX)), false, f), &["701 lines"]);
    }

    #[test]
    fn file_names_are_given_once() {
        let look = |names_of: &[&str]| names_of.iter().map(PathBuf::from).collect::<Vec<_>>();
        check(|f| names(&look(&["a/lib.rs", "b/lib.rs", "a/x.rs", "b/y.rs"]), f), &[]);
        check(|f| names(&look(&["a/x.rs", "b/x.rs"]), f), &["has the name of a/x.rs"]);
        check(|f| names(&look(&["a/mod.rs"]), f), &["mod.rs"]);
        check(|f| names(&look(&["a/string_utils.rs"]), f), &["'utils'"]);
    }

    #[test]
    fn reminders_and_machine_paths_are_refused() {
        let path = Path::new("a.md");
        check(|f| words(path, "GET /a/b HTTP/1.1 and target/work/x, spec/work/y", f), &[]);
        check(|f| words(path, &format!("see {}x", PATHS_FORBIDDEN[0]), f), &["1: '"]);
        check(|f| words(path, &format!("\n// {}: later", TEXT_FORBIDDEN[0]), f), &["2: '"]);
        check(|f| words(path, &format!("a\n{}HEAD\nb", MERGE_MARKS[0]), f), &["2: a mark that a merge"]);
    }

    #[test]
    fn behaviour_files_say_what_they_guard() {
        let path = Path::new("spec/hit/a.vtc");
        check(|f| behaviour(path, "varnishtest \"A hit\"\n# guards: RFC 9111 §4\n", f), &[]);
        check(|f| behaviour(path, "varnishtest \"A hit\"\n\n", f), &["line 2"]);
        check(|f| behaviour(path, "# A hit\n# guards: RFC 9111 §4\n", f), &["line 1"]);
        check(|f| behaviour(path, "varnishtest \"A\"\n# guards: RFC 9111 §4\n  delay 1\n", f), &["3: waits"]);
    }

    #[test]
    fn every_check_of_a_shell_can_fail() {
        let path = Path::new("spec/hit/a.vtc");
        let shell = |lines: &str| format!("x\nshell {{\n{lines}\n}}\n");
        check(|f| shells(path, &shell("\tgrep -q a b\n\tgrep -q c d"), f), &["2: a check before the last"]);
        check(|f| shells(path, &shell("\tset -e\n\tgrep -q a b\n\tgrep -q c d"), f), &[]);
        check(|f| shells(path, &shell("\tgrep -q a b || exit 1\n\ttest -s d && exit 1\n\t! diff a b"), f), &[]);
        check(|f| shells(path, &shell("\techo a\n\t[origin.site]\n\ttest -s d"), f), &[]);
    }

    #[test]
    fn unsafe_files_are_listed_under_their_heading() {
        let text = "# A\n* `no.rs`\n## Files with unsafe\nNone but:\n* `crates/x/src/y.rs`: why\n## B\n* `no.rs`\n";
        assert_eq!(unsafe_files(text), [PathBuf::from("crates/x/src/y.rs")]);
    }
}
