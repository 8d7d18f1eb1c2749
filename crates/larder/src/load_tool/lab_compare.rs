//! `larder lab report` and `larder lab compare`: results that were written before, read again. What they say is `lab`'s.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lab::lab_report::{self, TableForm};
use lab::results::LabResults;

use crate::bounded_file;
use crate::limits;
use crate::say::say;

#[derive(Clone, Debug, Args)]
pub struct ReportFlags {
    /// The results.json that `larder lab run` wrote
    #[arg(value_name = "RESULTS.json")]
    pub results: PathBuf,

    /// Write the HTML page here
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write the cells and blocks as CSV here
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct CompareFlags {
    /// The results to compare with
    #[arg(value_name = "BEFORE.json")]
    pub before: PathBuf,

    /// The results to judge
    #[arg(value_name = "AFTER.json")]
    pub after: PathBuf,

    /// Fail when a figure is worse by more than this; what is within the noise never fails
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = parse_threshold)]
    pub threshold: f64,

    /// Print the comparison as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn compare(flags: &CompareFlags) -> ExitCode {
    let both = read(&flags.before).and_then(|before| Ok((before, read(&flags.after)?)));
    let (before, after) = match both {
        Ok(both) => both,
        Err(sentence) => {
            say!("error: {sentence}");
            return ExitCode::FAILURE;
        }
    };
    let comparison = lab_report::compare(&before, &after, flags.threshold);
    let mut stdout = std::io::stdout();
    let _ = match flags.json {
        true => {
            writeln!(stdout, "{}", serde_json::to_string_pretty(&comparison).expect("plain values have a JSON form"))
        }
        false => write!(stdout, "{}", lab_report::comparison_text(&comparison)),
    };
    if comparison.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// `5%`, `5` or `7.5%`, as a share.
fn parse_threshold(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    let percent = percent.filter(|percent: &f64| (0.0..=1_000_000.0).contains(percent));
    percent.map(|percent| percent / 100.0).ok_or_else(|| "a threshold is per cent, such as 5% or 7.5%".to_owned())
}

pub fn report(flags: &ReportFlags) -> ExitCode {
    match read(&flags.results).and_then(|results| write_reports(&results, flags)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            say!("error: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn write_reports(results: &LabResults, flags: &ReportFlags) -> Result<(), String> {
    let write = |path: &Option<PathBuf>, render: fn(&LabResults) -> String| match path {
        None => Ok(()),
        Some(path) => fs::write(path, render(results)).map_err(|error| format!("{}: {error}", path.display())),
    };
    write(&flags.html, lab_report::html)?;
    write(&flags.csv, lab_report::csv)?;
    let _ = write!(std::io::stdout(), "{}", lab_report::table(results, table_form()));
    Ok(())
}

fn read(path: &Path) -> Result<LabResults, String> {
    let complain = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
    let json = bounded_file::read(path, limits::LAB_RESULTS_BYTES_MAX).map_err(|why| complain(&why))?;
    LabResults::parse(&json).map_err(|what| complain(&what))
}

/// As wide as the terminal, and coloured unless somebody asked for none (no-color.org).
pub fn table_form() -> TableForm {
    let stdout = std::io::stdout();
    let columns = rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| usize::from(size.ws_col));
    TableForm {
        width_columns: if columns == 0 { limits::LAB_TABLE_COLUMNS } else { columns },
        ansi: stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_per_cent() {
        for (text, share) in [("5%", 0.05), ("5", 0.05), ("7.5 %", 0.075), ("0", 0.0), ("200%", 2.0)] {
            assert_eq!(parse_threshold(text), Ok(share), "{text}");
        }
        for text in ["", "%", "-1", "nan", "inf", "5%%", "a"] {
            assert!(parse_threshold(text).is_err(), "{text}");
        }
        assert_eq!(parse_threshold("5%"), Ok(lab_report::THRESHOLD_DEFAULT));
    }

    #[test]
    fn what_is_no_results_file_is_named() {
        let error = read(Path::new("Cargo.toml")).unwrap_err();
        assert!(error.starts_with("Cargo.toml: is no results file"), "{error}");
        assert!(read(Path::new("no-such.json")).unwrap_err().starts_with("no-such.json: "));
    }
}
