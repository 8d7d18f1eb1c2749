//! `larder lab run`: from what was typed to a matrix, and from its results to files and a table. The measuring is
//! `lab`'s.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use lab::results::{LabResults, NamedText};
use lab::{MatrixOrder, lab_report, run_matrix};
use tokio::sync::oneshot;

use crate::bounded_file;
use crate::config::nearest;
use crate::load_tool::lab_compare;
use crate::open_files;
use crate::say::say;
use crate::signals::{Signals, Told};

#[derive(Clone, Debug, Args)]
pub struct RunFlags {
    /// The lab file: servers, method and rows
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,

    /// Run fewer and shorter blocks: a first look
    #[arg(long)]
    pub quick: bool,

    /// Write results, report and the servers' directories here [default: lab-results/NAME-OF-THE-FILE]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Run only these servers, and the reference
    #[arg(long, value_name = "SERVER,…", value_delimiter = ',')]
    pub only: Vec<String>,

    /// Run only rows whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub rows: Option<String>,

    /// Seed of all that is random, such as the order of the servers
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Begin anew instead of continuing an interrupted run
    #[arg(long)]
    pub fresh: bool,
}

/// Lab files are small.
const LAB_FILE_BYTES_MAX: u64 = 1 << 20;

pub fn run(flags: &RunFlags) -> ExitCode {
    let finished = order(flags).and_then(|order| {
        open_files::raise_limit();
        let signals = Signals::listen().map_err(|error| format!("cannot listen for signals: {error}"))?;
        let out = order.out.clone();
        measure(order, signals).and_then(|results| report(&results, &out).map(|()| results))
    });
    match finished {
        Ok(results) if !results.interrupted => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(sentence) => {
            say!("error: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// Measures in a thread of its own, pinned by `lab`, while this one listens for signals: the first one ends the run.
fn measure(order: MatrixOrder, mut signals: Signals) -> Result<LabResults, String> {
    let stop = Arc::new(AtomicBool::new(false));
    let (ended_sender, mut ended) = oneshot::channel::<()>();
    let measuring = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            // Dropped, and with it the channel closed, when the thread ends, in whatever way.
            let _ended = ended_sender;
            run_matrix(&order, &stop, &mut |line| say!("{line}"))
        })
    };
    loop {
        match signals.wait(&mut ended, None) {
            Told::End => {
                say!("interrupted; the servers are stopped");
                stop.store(true, Ordering::Relaxed);
            }
            Told::Ended => break,
            Told::Reload | Told::Nothing => {}
        }
    }
    measuring.join().map_err(|_| "the run panicked".to_owned())?
}

fn order(flags: &RunFlags) -> Result<MatrixOrder, String> {
    let larder = std::env::current_exe().map_err(|error| format!("cannot find the program itself: {error}"))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Where Debian keeps what only administrators start.
    let more = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from);
    let stem = flags.file.file_stem().unwrap_or(flags.file.as_os_str());
    Ok(MatrixOrder {
        lab_file: NamedText { name: flags.file.display().to_string(), text: read(&flags.file)? },
        out: flags.out.clone().unwrap_or_else(|| Path::new("lab-results").join(stem)),
        quick: flags.quick,
        only: flags.only.clone(),
        rows: flags.rows.clone(),
        seed: flags.seed,
        fresh: flags.fresh,
        larder,
        search: std::env::split_paths(&path).chain(more).collect(),
        repeat: std::env::args().map(|word| quoted(&word)).collect::<Vec<_>>().join(" "),
        nearest: |word, known| nearest(word, known.iter().copied()),
    })
}

fn read(path: &Path) -> Result<String, String> {
    bounded_file::read_text(path, LAB_FILE_BYTES_MAX).map_err(|why| format!("{}: {why}", path.display()))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The results are written already, block by block; here is what people read.
fn report(results: &LabResults, out: &Path) -> Result<(), String> {
    for (name, text) in [("report.html", lab_report::html(results)), ("cells.csv", lab_report::csv(results))] {
        let path = out.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let mut stdout = std::io::stdout();
    let _ = writeln!(stdout, "{}", lab_report::table(results, lab_compare::table_form()));
    for name in ["results.json", "report.html", "cells.csv"] {
        let _ = writeln!(stdout, "{}", out.join(name).display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, expect) in [("--rows", "--rows"), ("64 conn", "'64 conn'"), ("it's", r"'it'\''s'"), ("", "''")] {
            assert_eq!(quoted(word), expect);
        }
    }
}
