//! `cargo xtask test`: everything that must hold, in order, each step's output in a file of its own. A step that
//! fails does not stop the others; the run fails at the end, and says there once more what failed: of a long log, people
//! and CI keep the end. The last line is the one that CI reads.

use std::process::{Command, Stdio};

use crate::project::{IntegrationTest, Project, Stopwatch};
use crate::step_tally::{Tally, make_folder, tail};
use crate::{
    behaviours, cache_random, conformance, counts, crash, edge_counts, fleet_history, floods, h2spec, import_corpus,
    large, memory, mutants, soak, tidy, vcl_random,
};

type Step = (&'static str, fn(&Project) -> Result<Tally, String>);

const QUICK: [Step; 3] = [("format", format), ("lints", lints), ("tidy", tidy_step)];
/// What needs the toolchain and nothing else.
const UNIT: [Step; 3] =
    [("unit tests", unit_tests), ("in-memory tests", in_memory_tests), ("doc examples", documented_examples)];
const SLOW: [Step; 17] = [
    ("build", build),
    ("integration tests", integration_tests),
    ("behaviours", behaviours::run),
    ("crashes", crash::run),
    ("random answers", cache_random::run),
    ("counts", counts::run),
    ("purges of a fleet", fleet_history::run),
    ("random programs", vcl_random::run),
    ("random imports", import_corpus::random_run::run),
    ("mutants", mutants_step),
    ("large objects", large::run),
    ("memory", memory::run),
    ("soak", soak::run),
    ("conformance", conformance::run),
    ("h2spec", h2spec::run),
    ("floods", floods::run),
    ("edges all taken", edge_counts::run),
];

pub fn check(project: &Project) -> Result<(), String> {
    walk(project, &QUICK)
}

pub fn unit(project: &Project) -> Result<(), String> {
    walk(project, &UNIT)
}

pub fn test(project: &Project) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(project.target.join("test"));
    walk(project, &[QUICK.as_slice(), &UNIT, &SLOW].concat())
}

/// Of what a step that failed remarked, so many lines are said again at the end.
const REMARKS_REPEATED_MAX: usize = 30;

fn walk(project: &Project, steps: &[Step]) -> Result<(), String> {
    let whole = Stopwatch::start();
    let (mut passed, mut failed) = (0, 0);
    let mut failures = Vec::new();
    for (name, step) in steps {
        let watch = Stopwatch::start();
        println!("  {name:<18} …");
        let tally = step(project).unwrap_or_else(Tally::broken);
        let verdict = if tally.failed == 0 { "ok" } else { "FAILED" };
        println!(
            "  {name:<18} {verdict:<7} {:>6.1} s  {:>5} passed {:>4} failed",
            watch.seconds(),
            tally.passed,
            tally.failed
        );
        for remark in &tally.remarks {
            println!("      {remark}");
        }
        passed += tally.passed;
        failed += tally.failed;
        if tally.failed > 0 {
            failures.push((*name, tally.remarks));
        }
    }
    println!("  all                        {:>6.1} s", whole.seconds());
    for (name, remarks) in failures {
        println!("  {name:<18} FAILED:");
        for remark in &remarks[remarks.len().saturating_sub(REMARKS_REPEATED_MAX)..] {
            println!("      {remark}");
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { Ok(()) } else { Err(String::new()) }
}

fn format(project: &Project) -> Result<Tally, String> {
    one(project, "format", &mut project.cargo(&["fmt", "--all", "--check"]))
}

fn lints(project: &Project) -> Result<Tally, String> {
    let arguments =
        ["clippy", "--release", "--locked", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    one(project, "lints", &mut project.cargo(&arguments))
}

fn tidy_step(project: &Project) -> Result<Tally, String> {
    let findings = tidy::look(project)?;
    let mut tally = Tally::of(findings.complaints);
    tally.remarks.extend(findings.warnings.iter().map(|warning| format!("warning: {warning}")));
    Ok(tally)
}

fn mutants_step(project: &Project) -> Result<Tally, String> {
    let verdict = mutants::run(project)?;
    let remarks = [verdict.said, verdict.wrong.clone()].concat();
    Ok(Tally { passed: verdict.right, failed: verdict.wrong.len(), remarks })
}

fn build(project: &Project) -> Result<Tally, String> {
    one(project, "build", &mut project.cargo(&["build", "--release", "--locked", "--package", "larder"]))
}

fn unit_tests(project: &Project) -> Result<Tally, String> {
    cargo_test(project, "unit-tests", &["--workspace", "--lib", "--bins"])
}

/// The integration tests that start no program of somebody else's and need no build of their own.
fn in_memory_tests(project: &Project) -> Result<Tally, String> {
    plain_targets(project, "in-memory-tests", |target| !target.starts_programs)
}

fn documented_examples(project: &Project) -> Result<Tally, String> {
    cargo_test(project, "doc-examples", &["--workspace", "--doc"])
}

/// All other integration tests.
fn integration_tests(project: &Project) -> Result<Tally, String> {
    let mut tally = plain_targets(project, "integration-tests", |target| target.starts_programs)?;
    let targets = project.integration_tests();
    for target in targets.iter().filter(|target| !target.features.is_empty()) {
        let which = ["--package", &target.package, "--features", &target.features, "--test", &target.name];
        tally.add(cargo_test(project, &target.name, &which)?);
    }
    Ok(tally)
}

/// Those of the integration tests without features of their own that `wanted` takes.
fn plain_targets(project: &Project, name: &str, wanted: fn(&IntegrationTest) -> bool) -> Result<Tally, String> {
    let targets = project.integration_tests();
    let plain = targets.iter().filter(|target| target.features.is_empty() && wanted(target));
    let which = plain.flat_map(|target| ["--test", target.name.as_str()]);
    cargo_test(project, name, &std::iter::once("--workspace").chain(which).collect::<Vec<&str>>())
}

/// Runs the tests and counts what cargo says of them.
fn cargo_test(project: &Project, name: &str, which: &[&str]) -> Result<Tally, String> {
    let arguments = [["test", "--release", "--locked", "--no-fail-fast"].as_slice(), which].concat();
    let mut command = project.cargo(&arguments);
    command.env(edge_counts::FOLDER_VARIABLE, make_folder(&project.edges_folder())?);
    let (success, output, log) = capture(project, name, &mut command)?;
    let (passed, failed, names) = count(&output);
    let mut remarks: Vec<String> = names.into_iter().map(|name| format!("{name} failed")).collect();
    if success {
        return Ok(Tally { passed, failed, remarks });
    }
    if failed == 0 {
        remarks.extend(tail(&output, 30));
    }
    remarks.extend(panics(&output));
    remarks.push(format!("all of it: {log}"));
    Ok(Tally { passed, failed: failed.max(1), remarks })
}

/// Adds up cargo's `test result:` lines; the names are those of failed tests.
fn count(output: &str) -> (usize, usize, Vec<String>) {
    let (mut passed, mut failed, mut names) = (0, 0, Vec::new());
    for line in output.lines() {
        if let Some(counts) = line.strip_prefix("test result: ") {
            let number = |what: &str| {
                let before = counts.split(what).next()?;
                before.trim_end().rsplit(' ').next()?.parse::<usize>().ok()
            };
            passed += number(" passed").unwrap_or(0);
            failed += number(" failed").unwrap_or(0);
        } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            names.push(name.to_string());
        }
    }
    (passed, failed, names)
}

/// Where tests that failed panicked, and the first line of what they said of it.
fn panics(output: &str) -> Vec<String> {
    let mut lines = output.lines();
    let mut told = Vec::new();
    while let Some(line) = lines.next() {
        if line.contains("panicked at") {
            told.push(line.to_string());
            told.extend(lines.next().map(|said| format!("    {said}")));
        }
    }
    told
}

/// A command that is one check: it passes or shows the end of what it said.
fn one(project: &Project, name: &str, command: &mut Command) -> Result<Tally, String> {
    let (success, output, log) = capture(project, name, command)?;
    if success {
        return Ok(Tally { passed: 1, ..Tally::default() });
    }
    let mut remarks = tail(&output, 40);
    remarks.push(format!("all of it: {log}"));
    Ok(Tally { passed: 0, failed: 1, remarks })
}

/// Runs a command with both its outputs in one file.
fn capture(project: &Project, name: &str, command: &mut Command) -> Result<(bool, String, String), String> {
    let path = project.scratch("logs")?.join(format!("{name}.log"));
    let said = |e: std::io::Error| format!("{name}: {e}");
    let log = std::fs::File::create(&path).map_err(said)?;
    let both = log.try_clone().map_err(said)?;
    let status = command.stdin(Stdio::null()).stdout(log).stderr(both).status().map_err(said)?;
    let output = String::from_utf8_lossy(&std::fs::read(&path).map_err(said)?).into_owned();
    Ok((status.success(), output, path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_failed_is_told_with_where_it_panicked() {
        let output = "\
thread 'a::c' (7) panicked at crates/a/src/c.rs:3:5:
assertion `left == right` failed
  left: 1
note: run with `RUST_BACKTRACE=1`
";
        let told = ["thread 'a::c' (7) panicked at crates/a/src/c.rs:3:5:", "    assertion `left == right` failed"];
        assert_eq!(panics(output), told);
    }

    #[test]
    fn cargos_results_are_added_up() {
        let output = "\
running 3 tests
test a::b ... ok
test a::c ... FAILED
test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: ok. 40 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
        assert_eq!(count(output), (42, 1, vec!["a::c".to_string()]));
    }
}
