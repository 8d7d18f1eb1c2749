//! h2spec, the public conformance test of HTTP/2, against a larder that fetches, stores and serves: over TLS and in the
//! clear. Every case must pass; one that does not is printed by its section and its name.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::original_scenario::Answer;
use crate::project::Project;
use crate::scenario_origin::RecordingOrigin;
use crate::step_tally::Tally;
use crate::{edge_counts, ports, test_certificate};

const PROGRAM: &str = "target/tools/h2spec/h2spec";

/// What `./setup` leaves where it could not build it, having said so.
const GO_IS_MISSING: &str = "target/tools/go-is-missing";
const START_SECONDS_MAX: f64 = 20.0;
/// What h2spec asks for again and again. Longer than the small windows of some of its cases.
const PAGE_BYTES: usize = 2_000;
/// A case waits for an answer so long; the machine may be busy with others.
const CASE_SECONDS_MAX: &str = "10";
/// Fewer would mean that h2spec no longer runs them all.
const CASES_MIN: usize = 146;
/// In the clear larder speaks HTTP/1 too, so whoever does not begin with the preface of HTTP/2 is told 400 in HTTP/1's
/// words, and the connection ends. RFC 9113 §3.4 lets a GOAWAY be left out; h2spec takes the words for a broken frame.
const IS_HTTP1_IN_THE_CLEAR: &str = "http2/3.5 Sends invalid connection preface";

pub fn task(project: &Project) -> Result<(), String> {
    project.build_larder()?;
    let tally = run(project)?;
    for remark in &tally.remarks {
        println!("{remark}");
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if tally.failed == 0 { Ok(()) } else { Err(String::new()) }
}

pub fn run(project: &Project) -> Result<Tally, String> {
    let program = project.root.join(PROGRAM);
    if !program.is_file() {
        let remark = "NOT RUN: h2spec could not be built by ./setup for want of Go".to_string();
        return match project.root.join(GO_IS_MISSING).exists() {
            true => Ok(Tally { remarks: vec![remark], ..Tally::default() }),
            false => Err(format!("{PROGRAM} is not there: ./setup")),
        };
    }
    let folder = project.scratch("h2spec")?;
    test_certificate::make(&folder)?;
    // It reads a request to its end before it answers: what comes behind an answer is judged by other rules.
    let page = Answer {
        headers: vec!["Cache-Control: max-age=600".to_string()],
        body: Some("a".repeat(PAGE_BYTES)),
        ..Answer::default()
    };
    let origin = RecordingOrigin::start(vec![page])?;
    let judged = Http2Subject::start(project, &folder, origin.port)?;
    let mut tally = Tally::default();
    let over_tls = judge(&program, &folder.join("tls"), judged.tls, &["-t", "-k"])?;
    count("over TLS", over_tls, &mut tally);
    let mut in_the_clear = judge(&program, &folder.join("clear"), judged.clear, &[])?;
    in_the_clear.failed.retain(|name| name != IS_HTTP1_IN_THE_CLEAR);
    count("in the clear", in_the_clear, &mut tally);
    judged.end()?;
    Ok(tally)
}

fn count(how: &str, verdict: Verdict, tally: &mut Tally) {
    let Verdict { cases, passed, failed } = verdict;
    tally.remarks.push(format!("{how}: {passed} of {cases} cases passed"));
    tally.remarks.extend(failed.iter().map(|name| format!("{how}: {name} failed")));
    tally.passed += passed;
    tally.failed += failed.len();
    if cases < CASES_MIN {
        tally.failed += 1;
        tally.remarks.push(format!("{how}: fewer than {CASES_MIN} cases were run"));
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    cases: usize,
    passed: usize,
    failed: Vec<String>,
}

/// Runs all cases, the strict ones too; `report` is where what it printed and its JUnit report are kept.
fn judge(program: &Path, report: &Path, port: u16, flags: &[&str]) -> Result<Verdict, String> {
    let (printed, junit) = (report.with_extension("log"), report.with_extension("xml"));
    let _ = std::fs::remove_file(&junit);
    let log = std::fs::File::create(&printed).map_err(|e| format!("{}: {e}", printed.display()))?;
    let ran = Command::new(program)
        .args(["--strict", "--host", "127.0.0.1", "--timeout", CASE_SECONDS_MAX, "--port", &port.to_string()])
        .args(["--path", "/page.html"])
        .args(flags)
        .arg("--junit-report")
        .arg(&junit)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(Stdio::null())
        .status()
        .map_err(|e| format!("h2spec: {e}"))?;
    let text = std::fs::read_to_string(&junit).map_err(|_| format!("h2spec: {ran}: {}", printed.display()))?;
    let verdict = read_report(&text);
    if ran.success() == verdict.failed.is_empty() {
        return Ok(verdict);
    }
    Err(format!("h2spec ended with {ran}, which its report does not bear out: {}", printed.display()))
}

/// The cases of a JUnit report: `<testcase package="http2/6.5" classname="what is asked"` and so on, with an element
/// inside where it failed, broke or was skipped.
fn read_report(text: &str) -> Verdict {
    let mut verdict = Verdict::default();
    for case in text.split("<testcase ").skip(1) {
        verdict.cases += 1;
        let attribute = |name: &str| {
            let value = case.split_once(&format!("{name}=\""))?.1.split_once('"')?.0;
            Some(value.replace("&#34;", "\"").replace("&#39;", "'").replace("&amp;", "&"))
        };
        if ["<failure", "<error", "<skipped"].iter().any(|wrong| case.contains(wrong)) {
            let part = |name: &str| attribute(name).unwrap_or_default();
            verdict.failed.push(format!("{} {}", part("package"), part("classname")));
        } else {
            verdict.passed += 1;
        }
    }
    verdict
}

/// The larder under test.
struct Http2Subject {
    tls: u16,
    clear: u16,
    process: Child,
}

impl Http2Subject {
    fn start(project: &Project, folder: &Path, origin: u16) -> Result<Http2Subject, String> {
        let (tls, clear) = (ports::free()?, ports::free()?);
        let at = |port: u16| format!("127.0.0.1:{port}");
        let log = folder.join("larder.log");
        let log = std::fs::File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let process = Command::new(project.larder())
            .args([
                "serve",
                "--no-supervisor",
                "--admin",
                "off",
                "--workers",
                "2",
                "--origin",
                &format!("http://{}", at(origin)),
            ])
            .args(["--listen", &at(clear), "--h2c", "--tls", &at(tls), "--cert", "site.pem", "--key", "site.key"])
            .current_dir(folder)
            .env(edge_counts::FOLDER_VARIABLE, project.edges_folder())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|e| format!("{}: {e}", project.larder().display()))?;
        let mut judged = Http2Subject { tls, clear, process };
        for port in [tls, clear] {
            ports::wait(port, START_SECONDS_MAX, || matches!(judged.process.try_wait(), Ok(None)))?;
        }
        Ok(judged)
    }

    /// Asks it to end, so that it leaves its edge counts; it must end well.
    fn end(mut self) -> Result<(), String> {
        edge_counts::terminate(self.process.id());
        match self.process.wait() {
            Ok(status) if status.success() => Ok(()),
            status => Err(format!("larder ended badly: {status:?}")),
        }
    }
}

impl Drop for Http2Subject {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_failed_or_was_not_run_is_named() {
        let text = r#"<testsuite><testcase package="http2/5.1" classname="half closed: &#34;a&#34;" time="0.1"></testcase>
            <testcase package="http2/6.9" classname="window &amp; more" time="1"><failure>Expect: x</failure></testcase>
            <testcase package="hpack/2" classname="index" time="1"><skipped></skipped></testcase></testsuite>"#;
        let failed = ["http2/6.9 window & more", "hpack/2 index"].map(str::to_owned).into();
        assert_eq!(read_report(text), Verdict { cases: 3, passed: 1, failed });
    }
}
