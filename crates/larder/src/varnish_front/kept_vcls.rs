//! The programs and labels that the front has loaded, with their texts: what is loaded again when serving begins anew, and
//! what `vcl.show` shows. Which of them the proxy has at the moment is the proxy's to say.

use std::path::{Path, PathBuf};

use varnishd::{Refusal, SourceRow, VclState, VclText};

use crate::check_vcl;
use crate::plan::Plan;
use crate::vcl_loading::{self, Ready};

/// What a text is called that has no file.
const INLINE_NAME: &str = "<vcl.inline>";

pub struct Kept {
    pub name: String,
    pub kind: KeptKind,
}

pub enum KeptKind {
    Program { from: String, text: Vec<u8>, state: VclState, sources: Vec<SourceRow>, hands_to: Vec<String> },
    Label { of: String },
}

/// Reads and checks a program. Files are looked for in the VCL path.
pub fn prepare(name: &str, text: VclText<'_>, state: VclState, plan: &Plan) -> Result<(Kept, Ready), Refusal> {
    let (from, text) = match text {
        VclText::Inline(text) => (INLINE_NAME.to_owned(), text.to_vec()),
        VclText::File(written) => {
            let path = found(written, &plan.vcl_path);
            let text = check_vcl::read_vcl(&path);
            let text = text.map_err(|why| Refusal::Wrong(format!("Cannot read file '{written}' ({why})")))?;
            (path.display().to_string(), text)
        }
    };
    let ready = checked(name, &from, &text, plan)?;
    let files = ready.program.sources.files();
    let source = |file: &vcl::source_files::SourceFile| SourceRow { name: file.name.clone(), text: file.bytes.clone() };
    let mut sources: Vec<SourceRow> = files.iter().map(source).collect();
    if let Some(builtin) = sources.last_mut() {
        builtin.name = "<builtin>".to_owned();
    }
    let hands_to = ready.program.program.labels.clone();
    Ok((Kept { name: name.to_owned(), kind: KeptKind::Program { from, text, state, sources, hands_to } }, ready))
}

/// With `vcc_err_unref` what nothing uses is a mistake, as in Varnish.
pub fn checked(name: &str, from: &str, text: &[u8], plan: &Plan) -> Result<Ready, Refusal> {
    let ready = vcl_loading::from_text(name, from, text.to_vec(), (&plan.vcl_path, &[])).map_err(Refusal::Wrong)?;
    match ready.has_unused && plan.refuses_unused {
        true => Err(Refusal::Wrong(format!("{}(-p vcc_err_unref=off takes it all the same)\n", ready.warnings))),
        false => Ok(ready),
    }
}

/// The first file of that name in the VCL path; the name itself if there is none.
pub fn found(written: &str, vcl_path: &[PathBuf]) -> PathBuf {
    let path = Path::new(written);
    if path.is_absolute() || path.is_file() && vcl_path.is_empty() {
        return path.to_owned();
    }
    let candidates = vcl_path.iter().map(|folder| folder.join(path));
    candidates.into_iter().find(|candidate| candidate.is_file()).unwrap_or_else(|| path.to_owned())
}

impl Kept {
    pub fn label_of(&self) -> Option<&str> {
        match &self.kind {
            KeptKind::Label { of } => Some(of),
            KeptKind::Program { .. } => None,
        }
    }
}
