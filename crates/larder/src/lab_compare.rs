//! `larder lab report` and `larder lab compare`: results that were written before, read again. What they say is `lab`'s.

use std::fs;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lab::lab_report::{self, TableForm};
use lab::results::LabResults;

use crate::limits;
use crate::say::say;

#[derive(Clone, Debug, Args)]
pub struct ReportFlags {
    /// What `larder lab run` wrote
    #[arg(value_name = "RESULTS.json")]
    pub results: PathBuf,

    /// Write the page here
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write the cells and blocks here
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
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
    let max = limits::LAB_RESULTS_BYTES_MAX;
    let mut json = Vec::new();
    match fs::File::open(path).and_then(|file| file.take(max + 1).read_to_end(&mut json)) {
        Err(error) => Err(complain(&error)),
        Ok(bytes) if bytes as u64 > max => Err(complain(&format_args!("larger than {max} bytes"))),
        Ok(_) => LabResults::parse(&json).map_err(|what| complain(&what)),
    }
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
