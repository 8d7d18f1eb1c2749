//! Runs the behaviour files: `spec/<step>/<behaviour>.vtc`, each by a `varnishtest` of its own with larder as a
//! process, two at a time.
//!
//! What a file finds: `${serve}`, the command line of a larder that listens on `l.sock`, with its admin address on
//! `a.sock`, and writes `up` when it is ready, all in the file's own folder; `${larder}`, the bare program; `${port1}`
//! to `${port3}`, free TCP ports; `${spec}`, the folder with `ready`, `managed`, `reaches` and
//! `advance`.
//!
//! `--over tls` and `--over h2` run the same files with a shim between their clients and larder (`shim.rs`).
//!
//! What larder does not do yet waits in a folder whose name ends in `.pending`: its files run only when named.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::project::Project;
use crate::shim::Over;
use crate::step_tally::{Tally, make_folder, tail};
use crate::{edge_counts, ports, test_certificate};

const AT_A_TIME: usize = 2;
/// A file that takes longer hangs; the slowest takes a second or two.
const SECONDS_MAX: u32 = 30;
const PORTS_EACH: usize = 3;
/// Of what a shell that failed said, this is shown.
const SHELL_LINES_SHOWN: usize = 3;
/// `cargo xtask test` runs every so many of the files over TLS, and as many others over HTTP/2.
const SAMPLE_EVERY: usize = 8;
/// How a file starts larder where its clients ask. Without that there is nothing to stand between.
const STARTS_LARDER: &str = "${serve}";
const PANIC: &str = "panicked at";

/// All files, or those named. Over anything but the clear without those that are listed with a reason, unless they are named.
pub fn task(project: &Project, over: Over, named: &[&str]) -> Result<(), String> {
    project.build_larder()?;
    let files = match named {
        [] => files_over(project, over)?,
        named => named.iter().map(PathBuf::from).collect(),
    };
    said(run_files(project, &files, over)?)
}

fn said(tally: Tally) -> Result<(), String> {
    for remark in &tally.remarks {
        println!("{remark}");
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if tally.failed == 0 { Ok(()) } else { Err(String::new()) }
}

pub fn run(project: &Project) -> Result<Tally, String> {
    let mut tally = run_files(project, &files(project)?, Over::Clear)?;
    for (nth, over) in [Over::Tls, Over::Http2].into_iter().enumerate() {
        let first = nth * SAMPLE_EVERY / 2;
        let sample = files_over(project, over)?.into_iter().skip(first).step_by(SAMPLE_EVERY).collect::<Vec<_>>();
        tally.add(run_files(project, &sample, over)?);
    }
    Ok(tally)
}

/// All files; over something else those that start larder where their clients ask, but for those that its list gives a reason for.
fn files_over(project: &Project, over: Over) -> Result<Vec<PathBuf>, String> {
    let files = files(project)?;
    if over == Over::Clear {
        return Ok(files);
    }
    let path = format!("xtask/over/{}.toml", over.name());
    let list: ExcusedFiles = toml::from_str(&project.read(&path)?).map_err(|e| format!("{path}: {e}"))?;
    for (excused, reason) in &list.files {
        if !files.iter().any(|file| file == Path::new(excused)) || reason.split_whitespace().count() < 3 {
            return Err(format!("{path}: {excused}: there is no such file, or no reason"));
        }
    }
    let mut kept = Vec::new();
    for file in files {
        let is_listed = list.files.contains_key(&*file.to_string_lossy());
        if !is_listed && project.read(&file)?.contains(STARTS_LARDER) {
            kept.push(file);
        }
    }
    Ok(kept)
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ExcusedFiles {
    files: std::collections::BTreeMap<String, String>,
}

fn files(project: &Project) -> Result<Vec<PathBuf>, String> {
    let mut files = project.files()?;
    files.retain(|path| path.starts_with("spec") && path.extension().is_some_and(|e| e == "vtc") && !pending(path));
    Ok(files)
}

fn pending(path: &Path) -> bool {
    path.parent().and_then(Path::file_name).is_some_and(|folder| folder.to_string_lossy().ends_with(".pending"))
}

fn run_files(project: &Project, files: &[PathBuf], over: Over) -> Result<Tally, String> {
    if !project.larder().is_file() {
        return Err(format!("{} is not there: cargo build --release --package larder", project.larder().display()));
    }
    if Command::new("varnishtest").arg("-h").output().is_err() {
        return Err("varnishtest is not installed: ./setup".to_string());
    }
    make_folder(&project.edges_folder())?;
    let certificates = project.scratch("over")?;
    if over == Over::Tls {
        test_certificate::make(&certificates)?;
    }
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = run_file(project, path, over, &certificates);
                    results.lock().expect("no thread panics with the lock").push((path, result));
                }
            });
        }
    });
    let mut tally = Tally::default();
    let mut results = results.into_inner().expect("no thread panics with the lock");
    results.sort();
    for (path, result) in results {
        match result {
            Ok(()) => tally.passed += 1,
            Err(why) => {
                tally.failed += 1;
                let how = if over == Over::Clear { String::new() } else { format!(" over {}", over.name()) };
                tally.remarks.push(format!("{}{how} failed", path.display()));
                tally.remarks.extend(why.into_iter().map(|line| format!("    {line}")));
            }
        }
    }
    Ok(tally)
}

/// Runs one file; what it says when it fails are the lines that matter of its log.
fn run_file(project: &Project, path: &Path, over: Over, certificates: &Path) -> Result<(), Vec<String>> {
    let mut command = Command::new("varnishtest");
    command.arg("-v").arg("-t").arg(SECONDS_MAX.to_string());
    let larder = project.larder().display().to_string();
    let behind = match over {
        Over::Clear => String::new(),
        Over::Tls | Over::Http2 => {
            let own = std::env::current_exe().map_err(|e| vec![format!("the shim: {e}")])?;
            format!("{} over {} {} ", own.display(), over.name(), certificates.display())
        }
    };
    command.arg(format!("-Dserve={behind}{larder} serve --listen unix:l.sock --admin unix:a.sock --ports-file up"));
    command.arg(format!("-Dlarder={larder}"));
    command.arg(format!("-Dspec={}", project.root.join("spec").display()));
    for number in 1..=PORTS_EACH {
        let port = ports::free().map_err(|why| vec![why])?;
        command.arg(format!("-Dport{number}={port}"));
    }
    command.arg(path).current_dir(&project.root).env(edge_counts::FOLDER_VARIABLE, project.edges_folder());
    let output = command.stdin(Stdio::null()).output().map_err(|e| vec![format!("varnishtest: {e}")])?;
    let log = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // A task that panics costs only its own connection, which a client can take for something else.
    if output.status.success() && !log.contains(PANIC) {
        return Ok(());
    }
    let name = path.with_extension("log").to_string_lossy().replace('/', "-");
    let kept = project.scratch("behaviours").map_err(|why| vec![why])?.join(name);
    let mut lines = telling(&log);
    match std::fs::write(&kept, &log) {
        Ok(()) => lines.push(format!("all of it: {}", kept.display())),
        Err(why) => lines.push(format!("{}: {why}", kept.display())),
    }
    if output.status.code() == Some(77) {
        lines.push("varnishtest skipped it, which counts as failed".to_string());
    }
    Err(lines)
}

/// varnishtest marks what failed by four dashes; of a shell that failed, what it said is the reason, and its first lines
/// say it.
fn telling(log: &str) -> Vec<String> {
    let mut told = Vec::new();
    let mut said: Vec<&str> = Vec::new();
    for line in log.lines() {
        let is_a_failure = line.starts_with("----");
        if line.contains("shell_cmd|") {
            said.clear();
        } else if line.contains("shell_out|") && said.len() < SHELL_LINES_SHOWN {
            said.push(line);
        }
        if is_a_failure && line.contains("shell_exit") {
            told.append(&mut said);
        }
        if is_a_failure || line.contains(PANIC) {
            told.push(line);
        }
    }
    if told.is_empty() { tail(log, 10) } else { told.into_iter().map(str::to_string).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_a_pending_folder_wait() {
        assert!(pending(Path::new("spec/policy.pending/order_pass.vtc")));
        assert!(!pending(Path::new("spec/policy/order_pass.vtc")));
        assert!(!pending(Path::new("spec/policy/pending.pending.vtc")));
    }

    #[test]
    fn a_failure_shows_what_the_shell_that_failed_said_first() {
        let of_shell = |line: &str| format!("**** top   shell_out|{line}\n");
        let later: String = (0..SHELL_LINES_SHOWN).map(|number| of_shell(&number.to_string())).collect();
        let log = [
            "**** top   shell_cmd|true\n",
            &of_shell("of another shell"),
            "**** top   shell_cmd|check\n",
            &of_shell("no 1003 Hit"),
            &later,
            "---- top   shell_exit not as expected: got 0x0001 wanted 0x0000\n",
            "*    top   RESETTING\n",
        ]
        .concat();
        let told = telling(&log);
        assert_eq!(told.len(), SHELL_LINES_SHOWN + 1);
        assert!(told[0].ends_with("|no 1003 Hit"));
        assert!(told[SHELL_LINES_SHOWN].starts_with("----"));
        assert_eq!(telling("---- c1 EXPECT failed\nnothing\n"), ["---- c1 EXPECT failed"]);
        assert_eq!(telling("nothing\n"), ["nothing"]);
    }
}
