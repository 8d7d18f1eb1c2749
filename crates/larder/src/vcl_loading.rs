//! From a VCL's text to a program that the proxy can load: read, checked, and drawn for people if it is no good.

use std::path::{Path, PathBuf};

use proxy::VclProgram;

pub use crate::check_vcl::Beside;
use crate::check_vcl::{self, VclResult};

/// A checked program, and what there is to say of it.
pub struct Ready {
    pub program: VclProgram,
    /// Everything that was warned of, drawn; empty when nothing was.
    pub warnings: String,
    /// Something is defined that nothing uses: one of the warnings.
    pub has_unused: bool,
    /// One line: what it holds, and how many warnings there are.
    pub summary: String,
}

/// Reads a file and what it includes. The error is drawn.
pub fn from_file(name: &str, file: &Path, beside: Beside<'_>, colour: bool) -> Result<Ready, String> {
    ready(name, check_vcl::load(file, beside), colour)
}

/// A text that somebody sent, beside folders and origins as for [`Beside`]; `from` is what its mistakes and its `./` includes refer to.
pub fn from_text(
    name: &str,
    from: &str,
    text: Vec<u8>,
    (vcl_path, origins): (&[PathBuf], &[String]),
) -> Result<Ready, String> {
    ready(name, check_vcl::check_text(from, text, Beside { vcl_path, origins }), false)
}

fn ready(name: &str, result: VclResult, colour: bool) -> Result<Ready, String> {
    let (drawn, summary, has_unused) = (result.show(colour), result.summary(), result.has(vcl::Code::Unused));
    let program = match result {
        VclResult::Checked(checked) => {
            let vcl::Checked { program, sources, .. } = *checked;
            program.map(|program| (program, sources))
        }
        VclResult::Unreadable(_) => None,
    };
    let ready = program.zip(summary).map(|((program, sources), summary)| Ready {
        program: VclProgram { name: name.to_owned(), program, sources },
        warnings: drawn.clone(),
        has_unused,
        summary,
    });
    ready.ok_or(drawn)
}
