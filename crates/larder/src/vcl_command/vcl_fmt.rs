//! `larder vcl fmt FILE…`: files in, files out; how a text is laid out is the affair of `vcl::formatting`.

use std::io::{IsTerminal, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use vcl::Included;
use vcl::formatting::{Formatted, Indent, format};

use crate::check_vcl::{diagnostic_row, read_vcl};

#[derive(Clone, Debug, Args)]
pub struct FmtFlags {
    /// VCL files; - reads standard input and writes standard output
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Change nothing; name the files that are not formatted, and exit 1 if there are any
    #[arg(long, conflicts_with = "stdout")]
    pub check: bool,

    /// Print the new text instead of writing it into the file
    #[arg(long)]
    pub stdout: bool,

    /// Spaces for each level, or tab
    #[arg(long, value_name = "N|tab", default_value = "4", value_parser = parse_indent)]
    pub indent: Indent,

    /// Print the result as JSON
    #[arg(long, conflicts_with = "stdout")]
    pub json: bool,
}

fn parse_indent(text: &str) -> Result<Indent, String> {
    if text == "tab" {
        return Ok(Indent::Tab);
    }
    let columns = text.parse().ok().filter(|columns| (1..=16).contains(columns));
    columns.map(Indent::Spaces).ok_or_else(|| "must be 1 to 16, or tab".to_owned())
}

/// What came of one file.
enum Outcome {
    AsBefore,
    /// Or would be, with `--check`.
    Changed,
    Broken(Formatted),
    /// It cannot be read or written.
    Failed(String),
}

pub fn fmt(flags: &FmtFlags) -> ExitCode {
    let results: Vec<_> = flags.files.iter().map(|path| (path, one_file(path, flags))).collect();
    // A closed pipe must not end this with a panic: the exit code still tells.
    if flags.json {
        let files: Vec<Value> = results.iter().map(|(path, outcome)| outcome.row(path)).collect();
        let _ = writeln!(std::io::stdout(), "{}", json!({ "files": files }));
    } else {
        for (path, outcome) in &results {
            outcome.show(path, flags.check);
        }
    }
    let is_good = |outcome: &Outcome| match outcome {
        Outcome::AsBefore => true,
        Outcome::Changed => !flags.check,
        Outcome::Broken(_) | Outcome::Failed(_) => false,
    };
    if results.iter().all(|(_, outcome)| is_good(outcome)) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn one_file(path: &Path, flags: &FmtFlags) -> Outcome {
    let is_input = path.as_os_str() == "-";
    let bytes = match if is_input { read_input() } else { read_vcl(path) } {
        Ok(bytes) => bytes,
        Err(why) => return Outcome::Failed(why),
    };
    let name = if is_input { "<stdin>".to_owned() } else { path.display().to_string() };
    let formatted = format(Included { name, bytes: bytes.clone() }, flags.indent);
    let Some(text) = &formatted.text else { return Outcome::Broken(formatted) };
    let changed = *text != bytes;
    let written = if flags.check || is_input && flags.json {
        Ok(())
    } else if flags.stdout || is_input {
        std::io::stdout().write_all(text).map_err(|e| format!("standard output: {e}"))
    } else if changed {
        replace(path, text)
    } else {
        Ok(())
    };
    match written {
        Err(why) => Outcome::Failed(why),
        Ok(()) if changed => Outcome::Changed,
        Ok(()) => Outcome::AsBefore,
    }
}

fn read_input() -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let bytes_max = vcl::limits::FILE_BYTES_MAX as u64 + 1;
    std::io::stdin().lock().take(bytes_max).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    Ok(bytes)
}

/// By way of a second file, so that the first is never half of either text.
fn replace(path: &Path, text: &[u8]) -> Result<(), String> {
    let in_path = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    // What a link points to is changed, not the link.
    let path = &std::fs::canonicalize(path).map_err(|e| in_path(path, e))?;
    let metadata = std::fs::metadata(path).map_err(|e| in_path(path, e))?;
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".larder-{}", std::process::id()));
    let beside = path.with_file_name(name);
    let replaced = write_beside(&beside, text, &metadata).and_then(|()| std::fs::rename(&beside, path));
    replaced.map_err(|e| {
        let _ = std::fs::remove_file(&beside);
        in_path(path, e)
    })
}

fn write_beside(beside: &Path, text: &[u8], like: &std::fs::Metadata) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(beside)?;
    file.write_all(text)?;
    file.set_permissions(like.permissions())?;
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
        std::os::unix::fs::fchown(&file, Some(like.uid()), Some(like.gid()))?;
    }
    file.sync_all()
}

impl Outcome {
    fn show(&self, path: &Path, is_check: bool) {
        let mut errors = std::io::stderr();
        let _ = match self {
            Outcome::Changed if is_check => writeln!(std::io::stdout(), "{}", path.display()),
            Outcome::AsBefore | Outcome::Changed => Ok(()),
            Outcome::Failed(why) => writeln!(errors, "{}: error: {why}", path.display()),
            Outcome::Broken(formatted) => {
                let colour = errors.is_terminal();
                for diagnostic in &formatted.diagnostics {
                    let _ = writeln!(errors, "{}", vcl::draw(diagnostic, &formatted.sources, colour));
                }
                writeln!(errors, "{}: left as it is", path.display())
            }
        };
    }

    fn row(&self, path: &Path) -> Value {
        let file = path.display().to_string();
        match self {
            Outcome::AsBefore => json!({ "file": file, "ok": true, "changed": false, "errors": [] }),
            Outcome::Changed => json!({ "file": file, "ok": true, "changed": true, "errors": [] }),
            Outcome::Failed(why) => {
                json!({ "file": file, "ok": false, "changed": false, "errors": [{ "message": why }] })
            }
            Outcome::Broken(formatted) => {
                let rows = formatted.diagnostics.iter().map(|found| diagnostic_row(found, &formatted.sources));
                json!({ "file": file, "ok": false, "changed": false, "errors": rows.collect::<Vec<_>>() })
            }
        }
    }
}
