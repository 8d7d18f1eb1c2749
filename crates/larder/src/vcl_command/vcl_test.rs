//! `larder vcl test FILE.toml`: unit tests of a VCL program. Requests in, expectations out; each case is a dry run in a
//! place of its own.

use std::io::{IsTerminal, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use proxy::dry_runner::{DryRunOutcome, DryRunner, MockedAnswer};
use serde_json::{Value, json};

use crate::limits::{TEST_CASES_MAX, TEST_FILE_BYTES_MAX, TESTS_BEFORE_MAX};
use crate::quantities::parse_duration;
use crate::vcl_command::dry_run_heads::{Asked, parse_answer};
use crate::vcl_command::dry_running::{CLIENT_DEFAULT, Cached, Company, play, scene};
use crate::vcl_command::explained::{Explained, Style};
use crate::vcl_command::vcl_expect::{Found, Other};
use crate::vcl_command::vcl_suite::{Before, Case, OneOrMany, Suite, read_suite};

#[derive(Clone, Debug, Args)]
pub struct TestFlags {
    /// Test files
    #[arg(required = true, value_name = "FILE.toml")]
    pub files: Vec<PathBuf>,

    /// Test this VCL instead of the one that the test file names
    #[arg(long, value_name = "FILE")]
    pub vcl: Option<PathBuf>,

    /// Run only cases whose names contain this
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,

    /// Do not show the statements that ran in failed cases
    #[arg(long)]
    pub brief: bool,

    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// What came of one case.
struct Judged {
    name: String,
    /// What is not as it should be.
    failures: Vec<String>,
    trace: String,
    row: Value,
}

pub fn test(flags: &TestFlags) -> ExitCode {
    let mut rows = Vec::new();
    let (mut good, mut failed, mut broken) = (0, 0, false);
    for path in &flags.files {
        let judged = match one_file(path, flags) {
            Ok(judged) => judged,
            Err(why) => {
                broken = true;
                rows.push(json!({ "file": path.display().to_string(), "ok": false, "error": why.trim_end() }));
                if !flags.json {
                    let _ = std::io::stderr().write_all(why.as_bytes());
                }
                continue;
            }
        };
        let bad = judged.iter().filter(|judged| !judged.failures.is_empty()).count();
        (good, failed) = (good + judged.len() - bad, failed + bad);
        match flags.json {
            true => rows.push(row(path, &judged)),
            false => show(&judged, flags.brief),
        }
    }
    // A closed pipe must not end this with a panic: the exit code still tells.
    let _ = match flags.json {
        true => writeln!(std::io::stdout(), "{}", json!({ "files": rows, "ok": good, "failed": failed })),
        false => {
            let counted = if good + failed == 1 { "1 case".to_owned() } else { format!("{} cases", good + failed) };
            writeln!(std::io::stdout(), "{counted}: {good} ok, {failed} failed")
        }
    };
    let nothing_ran = good + failed == 0;
    if failed > 0 || broken || nothing_ran { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The error ends with a line's end.
fn one_file(path: &Path, flags: &TestFlags) -> Result<Vec<Judged>, String> {
    let in_file = |why: String| format!("{}: error: {}\n", path.display(), why.trim_end());
    let size = std::fs::metadata(path).map_err(|e| in_file(e.to_string()))?.len();
    if size > TEST_FILE_BYTES_MAX {
        return Err(in_file(format!(
            "{size} bytes; a file of tests may have {TEST_FILE_BYTES_MAX} (TEST_FILE_BYTES_MAX)"
        )));
    }
    let text = std::fs::read_to_string(path).map_err(|e| in_file(e.to_string()))?;
    let suite = read_suite(&text).map_err(in_file)?;
    if suite.case.len() > TEST_CASES_MAX {
        return Err(in_file(format!("{} cases; a file may have {TEST_CASES_MAX} (TEST_CASES_MAX)", suite.case.len())));
    }
    let company = company(path, &suite, flags).map_err(in_file)?;
    let wanted = |case: &&Case| flags.only.as_ref().is_none_or(|only| case.name.contains(only.as_str()));
    let mut judged = Vec::new();
    for case in suite.case.iter().filter(wanted) {
        let in_case = |why: String| in_file(format!("case {:?}: {why}", case.name));
        judged.push(one_case(case, &company).map_err(|why| match why {
            // The program's own mistakes name their places.
            Broken::Program(why) => why,
            Broken::Case(why) => in_case(why),
        })?);
    }
    Ok(judged)
}

fn company(path: &Path, suite: &Suite, flags: &TestFlags) -> Result<Company, String> {
    let beside = |other: &Path| path.parent().map_or_else(|| other.to_owned(), |folder| folder.join(other));
    let vcl = match (&flags.vcl, &suite.vcl) {
        (Some(vcl), _) => vcl.clone(),
        (None, Some(vcl)) => beside(vcl),
        (None, None) => {
            return Err("it does not say which program is tested: write `vcl = \"FILE\"`, or give --vcl".to_owned());
        }
    };
    Ok(Company {
        vcl,
        vcl_path: suite.vcl_path.iter().map(|folder| beside(folder)).collect(),
        labels: suite.labels.iter().map(|(name, file)| (name.clone(), beside(file))).collect(),
        parameters: suite.parameters.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        sick: Vec::new(),
    })
}

/// Why a case could not be judged.
enum Broken {
    Program(String),
    Case(String),
}

fn one_case(case: &Case, company: &Company) -> Result<Judged, Broken> {
    if case.expect.is_empty() {
        return Err(Broken::Case("it expects nothing, so it cannot fail: write `expect = { … }`".to_owned()));
    }
    let mut runner = Company { sick: case.sick.clone(), ..company.clone() }.runner().map_err(Broken::Program)?;
    let mut asked = Asked::parse(&case.request).map_err(Broken::Case)?;
    asked.fields.extend(case.fields.iter().map(|(name, value)| (name.clone(), value.clone())));
    asked.body = case.body.clone().unwrap_or_default().into_bytes();
    let answers = answers(case.origin.as_ref(), case.origin_body.as_deref()).map_err(Broken::Case)?;
    let client = case.client.unwrap_or(CLIENT_DEFAULT);
    let (outcome, note) = perform(&mut runner, case, &asked, client, &answers).map_err(Broken::Case)?;
    let others = case.expect.others().into_iter().map(|(request, is_same)| {
        let asked = Asked::parse(request)?;
        let mut elsewhere = company.runner()?;
        let outcome = elsewhere.ask(&scene(&asked, client, &answers))?;
        Ok(Other { request: request.to_owned(), is_same, hashed: Explained::of(&outcome, None).hashed() })
    });
    let others = others.collect::<Result<Vec<_>, String>>().map_err(Broken::Case)?;
    let explained = Explained::of(&outcome, note);
    let loaded = runner.loaded();
    let found = Found { explained: &explained, loaded: &loaded, others };
    let failures = case.expect.failures(&found).map_err(Broken::Case)?;
    let trace = explained.show(Style::default());
    let mut row = json!({ "name": case.name, "ok": failures.is_empty(), "failures": failures });
    if !failures.is_empty() {
        row["explained"] = explained.row();
    }
    Ok(Judged { name: case.name.clone(), failures, trace, row })
}

/// What comes before, then the request itself.
fn perform(
    runner: &mut DryRunner,
    case: &Case,
    asked: &Asked,
    client: IpAddr,
    own_answers: &[MockedAnswer],
) -> Result<(DryRunOutcome, Option<String>), String> {
    if case.before.len() > TESTS_BEFORE_MAX {
        return Err(format!(
            "{} requests before; there may be {TESTS_BEFORE_MAX} (TESTS_BEFORE_MAX)",
            case.before.len()
        ));
    }
    for before in &case.before {
        let table = match before {
            Before::Request(request) => {
                runner.ask(&scene(&Asked::parse(request)?, client, own_answers))?;
                continue;
            }
            Before::Table(table) => table,
        };
        let answers = match &table.origin {
            None => own_answers.to_vec(),
            Some(_) => answers(table.origin.as_ref(), None)?,
        };
        runner.ask(&scene(&Asked::parse(&table.request)?, table.client.unwrap_or(client), &answers))?;
        if let Some(time) = &table.then_wait {
            runner.advance(parse_duration(time)?.as_millis() as u64);
        }
    }
    let cached = case.cached.as_deref().map_or(Ok(Cached::Miss), Cached::parse)?;
    play(runner, &scene(asked, client, own_answers), cached, &case.sick)
}

fn answers(written: Option<&OneOrMany>, body: Option<&str>) -> Result<Vec<MockedAnswer>, String> {
    let mut answers = match written {
        None if body.is_none() => return Ok(Vec::new()),
        None => vec![MockedAnswer::default()],
        Some(OneOrMany::One(text)) => vec![parse_answer(text)?],
        Some(OneOrMany::Many(texts)) => texts.iter().map(|text| parse_answer(text)).collect::<Result<_, _>>()?,
    };
    for answer in &mut answers {
        if let (MockedAnswer::Given(answer), Some(body)) = (answer, body) {
            answer.body = body.as_bytes().to_vec();
        }
    }
    Ok(answers)
}

fn show(judged: &[Judged], brief: bool) {
    let mut out = std::io::stdout();
    let colour = out.is_terminal();
    let (red, green, plain) = if colour { ("\x1b[1;31m", "\x1b[32m", "\x1b[0m") } else { ("", "", "") };
    for judged in judged {
        let is_good = judged.failures.is_empty();
        let word = if is_good { format!("{green}ok{plain}  ") } else { format!("{red}FAIL{plain}") };
        let _ = writeln!(out, "{word}  {}", judged.name);
        for failure in &judged.failures {
            let _ = writeln!(out, "      {failure}");
        }
        if !is_good && !brief {
            for line in judged.trace.lines() {
                let _ = writeln!(out, "{}", format!("      | {line}").trim_end());
            }
        }
    }
}

fn row(path: &Path, judged: &[Judged]) -> Value {
    let is_good = judged.iter().all(|judged| judged.failures.is_empty());
    let cases: Vec<&Value> = judged.iter().map(|judged| &judged.row).collect();
    json!({ "file": path.display().to_string(), "ok": is_good, "cases": cases })
}
