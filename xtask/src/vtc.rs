//! Varnish's own tests on larder: files of a checkout outside the repository, each by an unmodified `varnishtest` of its own
//! that finds larder where it looks for `varnishd`, two at a time.
//!
//! Nothing of those files is committed. Committed are names: `xtask/vtc/allowed_to_fail.toml` says which may fail and why, and
//! `xtask/vtc/first.txt` which ones the word `first` stands for. What a file said when it failed is in `target/vtc/NAME.log`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::project::Project;
use crate::step_tally::make_folder;
use crate::vtc_kinds::needs_only_the_wire;
use crate::vtc_leftovers::OwnFolder;

const AT_A_TIME: usize = 2;
const SECONDS_MAX: u32 = 60;
const FOLDERS: [&str; 2] = ["bin/varnishtest/tests", "vmod/tests"];
const ALLOWED: &str = "xtask/vtc/allowed_to_fail.toml";
const FIRST: &str = "xtask/vtc/first.txt";
/// How varnishtest ends when a machine has not what a file asks for.
const SKIPPED: i32 = 77;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    /// It asks for something that this machine does not have.
    Skipped,
    /// With the line that says why.
    Failed(String),
}

struct Test {
    name: String,
    path: PathBuf,
    /// Tiers A and B: nothing but clients, servers, VCL, parameters and counters.
    is_of_the_wire: bool,
}

/// Why a file may fail, by name.
type Reasons = BTreeMap<String, String>;

/// All files of a checkout, or those named: `b00001`, `std_b00002`, `first`, `wire`.
pub fn task(project: &Project, folder: &str, named: &[&str]) -> Result<(), String> {
    project.build_larder()?;
    let tests = tests(project, Path::new(folder), named)?;
    let reasons = reasons(&project.read(ALLOWED)?)?;
    let outcomes = run(project, &tests)?;
    print!("{}", report(&tests, &outcomes, &reasons));
    let unforeseen = tests.iter().zip(&outcomes).filter(|(test, outcome)| is_unforeseen(test, outcome, &reasons));
    if unforeseen.count() == 0 { Ok(()) } else { Err(String::new()) }
}

fn is_unforeseen(test: &Test, outcome: &Outcome, reasons: &Reasons) -> bool {
    matches!(outcome, Outcome::Failed(_)) && !reasons.contains_key(&test.name)
}

fn reasons(text: &str) -> Result<Reasons, String> {
    toml::from_str(text).map_err(|error| format!("{ALLOWED}: {error}"))
}

fn tests(project: &Project, folder: &Path, named: &[&str]) -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    for folder in FOLDERS.map(|name| folder.join(name)) {
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "vtc"));
        paths.sort();
        for path in paths {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let is_of_the_wire = needs_only_the_wire(&name, &String::from_utf8_lossy(&text));
            let path = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
            tests.push(Test { name, path, is_of_the_wire });
        }
    }
    if named.is_empty() {
        return Ok(tests);
    }
    let first = project.read(FIRST)?;
    let first: Vec<&str> = first.lines().collect();
    if let Some(unknown) = named.iter().find(|name| !is_known(name, &tests)) {
        return Err(format!("{} has no {unknown}.vtc", folder.display()));
    }
    tests.retain(|test| {
        named.contains(&&*test.name)
            || named.contains(&"first") && first.contains(&&*test.name)
            || named.contains(&"wire") && test.is_of_the_wire
    });
    Ok(tests)
}

fn is_known(name: &str, tests: &[Test]) -> bool {
    ["first", "wire"].contains(&name) || tests.iter().any(|test| test.name == name)
}

fn run(project: &Project, tests: &[Test]) -> Result<Vec<Outcome>, String> {
    let kept = project.target.join("vtc");
    let programs = kept.join("bin");
    make_folder(&programs)?;
    let varnishd = programs.join("varnishd");
    // It may point to another build's.
    let _ = fs::remove_file(&varnishd);
    // The servers of the tests take one connection after the other, as Varnish asks for what a page includes.
    let script = format!("#!/bin/sh\nexec {} varnishd \"$@\" -p esi_ahead_max=1\n", project.larder().display());
    write_program(&varnishd, &script).map_err(|error| format!("{}: {error}", varnishd.display()))?;
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(vec![Outcome::Skipped; tests.len()]);
    let run_next = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(test) = tests.get(at) else { return };
            let outcome = run_one(&kept, &path, (at, test));
            outcomes.lock().expect("no thread panics with the lock")[at] = outcome;
        }
    };
    std::thread::scope(|scope| (0..AT_A_TIME).for_each(|_| drop(scope.spawn(run_next))));
    Ok(outcomes.into_inner().expect("no thread panics with the lock"))
}

fn run_one(kept: &Path, path: &str, (at, test): (usize, &Test)) -> Outcome {
    let folder = match OwnFolder::make(at) {
        Ok(folder) => folder,
        Err(why) => return Outcome::Failed(why),
    };
    let mut command = Command::new("varnishtest");
    command.arg("-t").arg(SECONDS_MAX.to_string()).arg(&test.path);
    command.current_dir(kept).env("PATH", path).env("TMPDIR", folder.path()).stdin(Stdio::null());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return Outcome::Failed(format!("varnishtest: {error}: ./setup")),
    };
    let log_path = kept.join(format!("{}.log", test.name));
    if output.status.success() {
        let _ = fs::remove_file(log_path);
        return Outcome::Passed;
    }
    let log = [output.stdout, output.stderr].concat();
    let wrote = fs::write(&log_path, &log).map_err(|error| format!("{}: {error}", log_path.display()));
    match (output.status.code(), wrote) {
        (Some(SKIPPED), _) => Outcome::Skipped,
        (_, Ok(())) => Outcome::Failed(telling(&String::from_utf8_lossy(&log))),
        (_, Err(why)) => Outcome::Failed(why),
    }
}

/// varnishtest marks what failed by four dashes.
fn telling(log: &str) -> String {
    log.lines().find(|line| line.starts_with("----")).or_else(|| log.lines().last()).unwrap_or_default().to_string()
}

fn report(tests: &[Test], outcomes: &[Outcome], reasons: &Reasons) -> String {
    let mut text = String::new();
    let mut by_reason: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let (mut wire, mut wire_passed) = (0, 0);
    for (test, outcome) in tests.iter().zip(outcomes) {
        let reason = reasons.get(&test.name);
        wire += usize::from(test.is_of_the_wire);
        wire_passed += usize::from(test.is_of_the_wire && *outcome == Outcome::Passed);
        match (outcome, reason) {
            (Outcome::Passed, reason) => {
                passed += 1;
                if reason.is_some() {
                    text += &format!("{} passes, and is allowed to fail: strike it from {ALLOWED}\n", test.name);
                }
            }
            (Outcome::Skipped, _) => skipped += 1,
            (Outcome::Failed(_), Some(reason)) => *by_reason.entry(reason).or_default() += 1,
            (Outcome::Failed(why), None) => {
                failed += 1;
                text += &format!("{} failed: {why}\n", test.name);
            }
        }
    }
    let allowed: usize = by_reason.values().sum();
    let mut by_reason: Vec<(&str, usize)> = by_reason.into_iter().collect();
    by_reason.sort_by_key(|(reason, count)| (std::cmp::Reverse(*count), *reason));
    text += &by_reason.iter().map(|(reason, count)| format!("{count:4} allowed: {reason}\n")).collect::<String>();
    text += &format!(
        "{passed} passed, {failed} failed, {allowed} allowed to fail, {skipped} skipped by varnishtest\n\
         {wire_passed} passed of the {wire} that need nothing but clients, servers, VCL, parameters and counters\n"
    );
    text
}

fn write_program(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(name: &str) -> Test {
        Test { name: name.to_string(), path: PathBuf::new(), is_of_the_wire: name.starts_with('b') }
    }

    #[test]
    fn a_report_names_what_nobody_allowed_and_what_needs_no_leave_any_more() {
        let tests = ["b00001", "b00002", "b00003", "e00001", "g00001"].map(test);
        let failed = |why: &str| Outcome::Failed(why.to_string());
        let outcomes = [Outcome::Passed, failed("---- c1 no"), Outcome::Skipped, failed("---- c1 no"), Outcome::Passed];
        let reasons = reasons("e00001 = \"esi\"\ng00001 = \"gzip\"\n").unwrap();
        let expect = "b00002 failed: ---- c1 no\n\
                      g00001 passes, and is allowed to fail: strike it from xtask/vtc/allowed_to_fail.toml\n   \
                      1 allowed: esi\n\
                      2 passed, 1 failed, 1 allowed to fail, 1 skipped by varnishtest\n\
                      1 passed of the 3 that need nothing but clients, servers, VCL, parameters and counters\n";
        assert_eq!(report(&tests, &outcomes, &reasons), expect);
        let unforeseen = tests.iter().zip(&outcomes).filter(|(test, outcome)| is_unforeseen(test, outcome, &reasons));
        assert_eq!(unforeseen.count(), 1);
    }

    #[test]
    fn what_failed_is_the_line_with_four_dashes() {
        assert_eq!(telling("**   c1\n---- c1    EXPECT 1 failed\n*    top\n"), "---- c1    EXPECT 1 failed");
        assert_eq!(telling("# top TEST TIMED OUT\n"), "# top TEST TIMED OUT");
    }
}
