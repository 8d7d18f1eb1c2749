//! The matrix: servers × rows, measured so that the figures can be believed.
//!
//! The story: a lab file is read (`lab_file`) and planned (`matrix_plan`); every server is started once to see that it
//! can be; then row after row (`row_run`) its servers are brought up on a stage (`server_stage`), looked at and warmed, and get
//! their slices (`measuring`) in interleaved blocks. After each block everything is kept (`saved_run`), and
//! `made_results` makes the results of it: medians, colours, differences beyond the noise.
//!
//! It starts and ends processes and writes below one directory. It reads neither argv nor the environment nor signals:
//! all that comes in the [`MatrixOrder`] and the stop flag.

pub(crate) mod cell_figures;
mod cpu_sets;
pub(crate) mod differences;
mod direct_asking;
mod group_keeper;
mod held_connections;
mod lab_file;
mod machine_facts;
mod made_results;
mod matrix_plan;
mod measuring;
mod plain_fetch;
mod plain_http2;
mod planned_rows;
mod planned_servers;
mod process_tree;
mod profiles;
mod row_contents;
mod row_protocol;
mod row_run;
mod run_certificate;
mod saved_run;
mod server_process;
mod server_profile;
mod server_stage;
mod site_pages;
pub(crate) mod statistics;
mod warm_up;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use group_keeper::keep_groups;
pub use lab_file::Nearest;

use crate::answer_coding::ContentCoding;
use crate::lab_clock::{Nanos, utc_now};
use crate::matrix::lab_file::OriginChoice;
use crate::matrix::machine_facts::{Ticks, load_average};
use crate::matrix::made_results::{Told, results};
use crate::matrix::matrix_plan::{Plan, plan};
use crate::matrix::planned_rows::PlannedRow;
use crate::matrix::row_protocol::Spoken;
use crate::matrix::row_run::{RowEnd, RowRun};
use crate::matrix::saved_run::{SavedRow, SavedRun};
use crate::matrix::server_stage::{Contestant, Stage};
use crate::results::{LabResults, Machine, NamedText, ServerUsed};
use crate::whole_file::write_whole;

/// What is to be run, and how.
#[derive(Clone, Debug)]
pub struct MatrixOrder {
    pub lab_file: NamedText,
    /// Where everything is written.
    pub out: PathBuf,
    /// Fewer and shorter blocks.
    pub quick: bool,
    /// Only these servers, beside the reference; all when it is empty.
    pub only: Vec<String>,
    /// Only rows whose name holds this.
    pub rows: Option<String>,
    pub seed: Option<u64>,
    /// Forget what an interrupted run has left.
    pub fresh: bool,
    /// The binary that is larder, the null server and the origin.
    pub larder: PathBuf,
    /// Where other servers' binaries are looked for.
    pub search: Vec<PathBuf>,
    /// The command that repeats it.
    pub repeat: String,
    pub nearest: Nearest,
}

/// Files of ours beside the connections of a row.
const FILES_SPARE: u64 = 100;

/// Runs it to its end, or until `stop` is true; what there is then is in the results. `say` gets a line now and then.
pub fn run_matrix(
    order: &MatrixOrder,
    stop: &Arc<AtomicBool>,
    say: &mut dyn FnMut(&str),
) -> Result<LabResults, String> {
    let plan = plan(order)?;
    let out = fs::create_dir_all(&order.out).and_then(|()| fs::canonicalize(&order.out));
    let out = out.map_err(|error| format!("{}: {error}", order.out.display()))?;
    let (mut machine, ticks) = (machine_facts::gather(), Ticks::read());
    check_files(&plan, &machine)?;
    cpu_sets::pin_to(&plan.method.client_cpus)
        .map_err(|error| format!("cannot run on the processors {:?}: {error}", plan.method.client_cpus))?;
    let mut stage = Stage::new(out.join("work"), &plan, order, machine.open_files_max, stop)?;
    let mut contestants = contestants(order, &plan, &out.join("work"), say)?;
    stage.see_to_origin(plan.origin, None)?;
    try_all(&mut stage, &mut contestants, &plan, say)?;

    let mut saved = begin(order, &plan, &contestants, &out, say)?;
    let (base, begun) = (saved.elapsed_seconds, Nanos::now());
    let at = || base + begun.until(Nanos::now()).as_secs_f64();
    let mut pace = Pace::new(&plan, &contestants, &saved);
    for row in &plan.rows {
        let (name, blocks) = (&row.used.name, plan.blocks_of(row));
        let mut of_row = saved.rows.get(name).cloned().unwrap_or_default();
        if of_row.blocks >= blocks || stop.load(Ordering::Relaxed) {
            continue;
        }
        say(&pace.heading(name, at() - base));
        if plan.origin == OriginChoice::Nginx {
            site_pages::write_files(row, &stage.docroot)?;
        }
        stage.see_to_origin(plan.origin, row.mean_bytes())?;
        let origin = stage.origin_used();
        let mut keep = |of_row: &SavedRow, contestants: &[Contestant]| {
            saved.rows.insert(name.clone(), of_row.clone());
            saved.elapsed_seconds = at();
            pace.done += 1;
            write(&out, &plan, &machine, origin.as_ref(), contestants, &saved).map(|_| ())
        };
        let run = RowRun::new(&mut stage, &mut contestants, row, &mut of_row, &at, say);
        if run.run(blocks, &mut keep)? == RowEnd::Interrupted {
            say("interrupted: what is finished is kept, and the same command goes on from there");
        }
    }
    saved.is_finished = !stop.load(Ordering::Relaxed);
    saved.elapsed_seconds = at();
    machine.load_after = load_average();
    machine.steal_share = ticks.steal_share_until(Ticks::read());
    let origin = stage.origin_used();
    write(&out, &plan, &machine, origin.as_ref(), &contestants, &saved)
}

fn check_files(plan: &Plan, machine: &Machine) -> Result<(), String> {
    let files = machine.open_files_max;
    match plan.rows.iter().find(|row| row.used.connections as u64 + FILES_SPARE > files) {
        None => Ok(()),
        Some(row) => {
            let (name, connections) = (&row.used.name, row.used.connections);
            Err(format!("row `{name}`: {connections} connections do not fit into {files} open files (ulimit -n)"))
        }
    }
}

/// Keeps the run, and writes its results as they are now.
fn write(
    out: &Path,
    plan: &Plan,
    machine: &Machine,
    origin: Option<&ServerUsed>,
    contestants: &[Contestant],
    saved: &SavedRun,
) -> Result<LabResults, String> {
    saved.save(&out.join("progress.json"))?;
    let results = results(&Told { plan, method: &plan.method, machine, origin }, contestants, saved);
    let json = serde_json::to_vec_pretty(&results).map_err(|error| error.to_string())?;
    write_whole(&out.join("results.json"), &json)?;
    Ok(results)
}

/// Finds each server's binary, and asks it for its version.
fn contestants(
    order: &MatrixOrder,
    plan: &Plan,
    work: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<Contestant>, String> {
    let mut all = Vec::new();
    for planned in plan.servers.clone() {
        let (binary, used) = match planned.find_binary(&order.larder, &order.search) {
            // A path that somebody wrote down is a mistake; what is not installed is only missing.
            Err(what) if planned.binary.is_some() => return Err(what),
            Err(why) => {
                say(&format!("{} is skipped: {why}", planned.name));
                (None, planned.skipped(Some(why)))
            }
            Ok(binary) => {
                let behind = planned.behind().and_then(|behind| {
                    let binary = behind.find_binary(&order.larder, &order.search).ok()?;
                    Some(Box::new(behind.used(&binary, work)))
                });
                let used = ServerUsed { behind, ..planned.used(&binary, work) };
                (Some(binary), used)
            }
        };
        all.push(Contestant { planned, binary, used });
    }
    match all.iter().find(|contestant| contestant.planned.name == plan.method.reference) {
        Some(Contestant { used: ServerUsed { skipped: Some(why), .. }, .. }) => {
            Err(format!("the reference, {}, cannot run: {why}", plan.method.reference))
        }
        _ => Ok(all),
    }
}

/// A server that does not start is a mistake to be mended before hours of measuring, not after: each in every way in which
/// it is asked.
fn try_all(
    stage: &mut Stage,
    contestants: &mut [Contestant],
    plan: &Plan,
    say: &mut dyn FnMut(&str),
) -> Result<(), String> {
    for contestant in contestants {
        if stage.is_stopped() {
            return Ok(());
        }
        let codings = [None].into_iter().chain(ContentCoding::ALL.map(Some));
        for (spoken, coding) in codings.flat_map(|coding| Spoken::ALL.map(|spoken| (spoken, coding))) {
            let is_so = |row: &&PlannedRow| {
                (Spoken::of(&row.used), row.encoding) == (spoken, coding) && contestant.absence(row).is_none()
            };
            let Some(row) = plan.rows.iter().find(is_so) else { continue };
            let begun = Nanos::now();
            let server = stage.start(contestant, row)?;
            let millis = begun.until(Nanos::now()).as_millis();
            let (name, manner) = (&contestant.planned.name, spoken.in_few_words());
            let coding = coding.map_or(String::new(), |coding| format!(", {}", coding.name()));
            say(&format!("{name} starts in {millis} ms ({manner}{coding}): {}", contestant.used.version));
            drop(server);
        }
    }
    Ok(())
}

/// What an interrupted run of the same file with the same binaries has left, or the beginning.
fn begin(
    order: &MatrixOrder,
    plan: &Plan,
    contestants: &[Contestant],
    out: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<SavedRun, String> {
    let binary = |used: &ServerUsed| {
        let behind = used.behind.as_ref().map(|behind| behind.binary_sha256.clone());
        (used.name.clone(), used.binary_sha256.clone(), behind, used.skipped.is_some())
    };
    let now: Vec<_> = contestants.iter().map(|contestant| binary(&contestant.used)).collect();
    let fresh = SavedRun {
        fingerprint: plan.fingerprint.clone(),
        servers: contestants.iter().map(|contestant| contestant.used.clone()).collect(),
        begun: utc_now(),
        ..SavedRun::default()
    };
    let Some(left) = SavedRun::load(&out.join("progress.json")) else { return Ok(fresh) };
    let is_same = left.fingerprint == plan.fingerprint && left.servers.iter().map(binary).eq(now);
    if left.is_finished || order.fresh || !is_same {
        let aside = format!("results-{}.json", left.begun.replace(':', ""));
        // There may be none yet.
        if fs::rename(out.join("results.json"), out.join(&aside)).is_ok() {
            say(&format!("the results of an earlier run are kept as {aside}"));
        }
        return Ok(fresh);
    }
    let blocks: usize = left.rows.values().map(|row| row.blocks).sum();
    say(&format!("goes on after {blocks} blocks of the run begun at {} (--fresh begins anew)", left.begun));
    Ok(left)
}

/// How far it is, in blocks of a row.
struct Pace {
    done: usize,
    before: usize,
    all: usize,
}

impl Pace {
    fn new(plan: &Plan, contestants: &[Contestant], saved: &SavedRun) -> Pace {
        let takes_part = |row| contestants.iter().any(|contestant| contestant.absence(row).is_none());
        let all = plan.rows.iter().filter(|row| takes_part(row)).map(|row| plan.blocks_of(row)).sum();
        let done = saved.rows.values().map(|row| row.blocks).sum();
        Pace { done, before: done, all }
    }

    fn heading(&self, row: &str, seconds: f64) -> String {
        let (done, all) = (self.done, self.all);
        let left = match self.done - self.before {
            0 => String::new(),
            new => {
                let left = seconds / new as f64 * all.saturating_sub(done) as f64;
                format!(", about {:.0} min left", (left / 60.0).ceil())
            }
        };
        format!("{row}  ({done} of {all} blocks{left})")
    }
}
