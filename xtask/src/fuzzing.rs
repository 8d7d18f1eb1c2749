//! Builds and runs one fuzz target. The instrumentation flags are all stable ones, so the pinned toolchain does;
//! there is no address sanitizer, because there is no unsafe code for it to find anything in.

use std::path::Path;
use std::process::Command;

use crate::project::Project;

pub const SECONDS_DEFAULT: u64 = 60;

/// What libFuzzer needs the compiler to put in, and every check that a test build would have.
const FLAGS: &str = "--cfg fuzzing -Cdebug-assertions -Ccodegen-units=1 -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cllvm-args=-simplifycfg-branch-fold-threshold=0";

pub fn task(project: &Project, target: &str, seconds: u64) -> Result<(), String> {
    let folder = project.root.join("fuzz");
    let source = folder.join("fuzz_targets").join(format!("{target}.rs"));
    if !source.is_file() {
        return Err(format!("no fuzz target '{target}'; there are: {}", targets(&folder).join(", ")));
    }
    let host = host()?;
    // With --target given, the flags do not reach build scripts and procedural macros.
    let built = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string()))
        .args(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &host, "--bin", target])
        .env("RUSTFLAGS", FLAGS)
        .env("CARGO_TARGET_DIR", project.target.join("fuzz"))
        .current_dir(&project.root)
        .status()
        .map_err(|e| format!("cargo: {e}"))?;
    if !built.success() {
        return Err(format!("fuzz target {target} does not build (libFuzzer itself needs a C++ compiler: g++)"));
    }
    let corpus = folder.join("corpus").join(target);
    let artifacts = folder.join("artifacts").join(target);
    let found = project.scratch("fuzz")?.join(target);
    for made in [&corpus, &artifacts, &found] {
        std::fs::create_dir_all(made).map_err(|e| format!("{}: {e}", made.display()))?;
    }
    // The first corpus folder takes what the run finds; the committed one is only read.
    let ran = Command::new(project.target.join("fuzz").join(&host).join("release").join(target))
        .args([&found, &corpus])
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(format!("-dict={}", folder.join("http.dict").display()))
        .args(["-print_final_stats=1", "-timeout=10", "-rss_limit_mb=4096"])
        .status()
        .map_err(|e| format!("{target}: {e}"))?;
    if ran.success() { Ok(()) } else { Err(format!("{target} found something: see {}", artifacts.display())) }
}

fn targets(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("fuzz_targets")).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|e| e.file_name().to_str()?.strip_suffix(".rs").map(str::to_string)).collect();
    names.sort();
    names
}

fn host() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output().map_err(|e| format!("rustc: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_string).ok_or("rustc -vV names no host".to_string())
}
