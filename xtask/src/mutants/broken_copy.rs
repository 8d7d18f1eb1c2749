//! A copy of the workspace in target/mutants, in which one mutation at a time is built and tested. The checkout itself is
//! never touched: a run that is interrupted leaves nothing broken behind.
//!
//! It is built without optimisation and incrementally, because a mutant is tested once: the code of a crate is
//! compiled in about a second so, and the tests of larder are not measured by it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::mutated_crates::MutatedCrate;
use super::mutation::Mutation;
use crate::project::{Project, Stopwatch};

/// Checks as in the released program: an overflow panics, and what only a debug build asserts kills nothing.
const PROFILE: [&str; 4] = ["--config", "profile.dev.debug=false", "--config", "profile.dev.debug-assertions=false"];
/// A mutant whose loop never ends may keep what it reads; this ends it before the machine is out of memory.
const MEMORY_KIB_MAX: u64 = 8 << 20;
/// How much longer than the tests of the unbroken crate a mutant's may take.
const TIMES_LONGER: f64 = 8.0;
const SECONDS_AT_LEAST: f64 = 15.0;
const LOOK: Duration = Duration::from_millis(10);

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A test failed, the first of them by name.
    Killed(String),
    /// The tests did not end.
    TimedOut,
    /// The compiler refuses it: no test is needed.
    DoesNotBuild,
    Survived,
}

pub struct BrokenCopy {
    of: &'static MutatedCrate,
    root: PathBuf,
    /// Of each run of tests.
    seconds_max: Vec<f64>,
}

impl BrokenCopy {
    /// Copies what is committed, or would be, and sees that the tests pass while nothing is broken.
    pub fn make(project: &Project, of: &'static MutatedCrate, lane: usize) -> Result<BrokenCopy, String> {
        let root = project.target.join("mutants").join(format!("{}-{lane}", of.name));
        copy(project, &root)?;
        let mut whole = BrokenCopy { of, root, seconds_max: vec![f64::MAX; of.tests.len()] };
        for run in 0..of.tests.len() {
            let program = whole.build(run)?.ok_or(format!("{} does not build", of.name))?;
            let watch = Stopwatch::start();
            match whole.test(&program, run)? {
                Fate::Survived => {}
                fate => return Err(format!("{}: its tests fail before anything is broken: {fate:?}", of.name)),
            }
            whole.seconds_max[run] = (watch.seconds() * TIMES_LONGER).max(SECONDS_AT_LEAST);
        }
        Ok(whole)
    }

    /// Breaks the file, tests it, and mends it again.
    pub fn try_out(&self, file: &Path, text: &str, mutation: &Mutation) -> Result<Fate, String> {
        let path = self.root.join(file);
        write(&path, &mutation.applied(text))?;
        let fate = self.fate();
        write(&path, text)?;
        fate
    }

    fn fate(&self) -> Result<Fate, String> {
        for run in 0..self.of.tests.len() {
            let Some(program) = self.build(run)? else { return Ok(Fate::DoesNotBuild) };
            let fate = self.test(&program, run)?;
            if fate != Fate::Survived {
                return Ok(fate);
            }
        }
        Ok(Fate::Survived)
    }

    /// The program of these tests; none if the compiler refuses it.
    fn build(&self, run: usize) -> Result<Option<PathBuf>, String> {
        let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string()));
        command.args(["test", "--locked", "--no-run", "--message-format", "json", "--jobs", "1", "--package"]);
        command.arg(self.of.name).args(self.of.tests[run]).args(PROFILE);
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", self.root.join("target"));
        let output = command.stdin(Stdio::null()).output().map_err(|error| format!("cargo test: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let by_compiler = said.contains("could not compile");
            return if by_compiler { Ok(None) } else { Err(format!("cargo test: {said}")) };
        }
        let output = String::from_utf8_lossy(&output.stdout);
        let mut programs = output.lines().filter_map(|line| {
            let message: Value = serde_json::from_str(line).ok()?;
            message["executable"].as_str().map(PathBuf::from)
        });
        programs.next_back().map(Some).ok_or("cargo test --no-run names no program".to_string())
    }

    fn test(&self, program: &Path, run: usize) -> Result<Fate, String> {
        let said = |error: std::io::Error| format!("{}: {error}", program.display());
        let log = self.root.join("target/tests.log");
        let output = std::fs::File::create(&log).map_err(said)?;
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v \"$1\" && exec \"$2\"", "sh", &MEMORY_KIB_MAX.to_string()]).arg(program);
        command.current_dir(self.root.join("crates").join(self.of.name)).stdin(Stdio::null());
        command.stderr(output.try_clone().map_err(said)?).stdout(output);
        let mut child = command.spawn().map_err(said)?;
        let Some(status) = ended(&mut child, self.seconds_max[run]).map_err(said)? else { return Ok(Fate::TimedOut) };
        if status.success() {
            return Ok(Fate::Survived);
        }
        let log = String::from_utf8_lossy(&std::fs::read(&log).map_err(said)?).into_owned();
        Ok(Fate::Killed(first_failed(&log).unwrap_or_else(|| format!("the tests end with {status}"))))
    }
}

fn first_failed(log: &str) -> Option<String> {
    let failed = log.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    failed.min().map(str::to_string)
}

/// Waits for the program; none if it had to be ended.
fn ended(child: &mut Child, seconds_max: f64) -> std::io::Result<Option<ExitStatus>> {
    let watch = Stopwatch::start();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if watch.seconds() > seconds_max {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}

/// Makes the copy like the project. What is alike already keeps its time, so that cargo builds only what changed.
fn copy(project: &Project, root: &Path) -> Result<(), String> {
    let files: BTreeSet<PathBuf> = project.files()?.into_iter().collect();
    for file in &files {
        let said = |error: std::io::Error| format!("{}: {error}", file.display());
        let (from, to) = (project.root.join(file), root.join(file));
        let bytes = std::fs::read(&from).map_err(said)?;
        if std::fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        std::fs::create_dir_all(to.parent().unwrap_or(root)).map_err(said)?;
        std::fs::write(&to, bytes).map_err(said)?;
    }
    drop_strangers(root, root, &files)
}

/// A file that is the project's no more would be built as a test, or found by a corpus.
fn drop_strangers(root: &Path, folder: &Path, files: &BTreeSet<PathBuf>) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(said)? {
        let path = entry.map_err(said)?.path();
        let inside = path.strip_prefix(root).unwrap_or(&path);
        match path.is_dir() {
            true if inside == Path::new("target") => {}
            true => drop_strangers(root, &path, files)?,
            false if files.contains(inside) => {}
            false => std::fs::remove_file(&path).map_err(said)?,
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_test_that_failed_is_named() {
        let log = "test b ... FAILED\ntest a::c ... FAILED\ntest a ... ok\ntest result: FAILED. 1 passed\n";
        assert_eq!(first_failed(log), Some("a::c".to_string()));
        assert_eq!(first_failed("memory allocation failed\n"), None);
    }
}
